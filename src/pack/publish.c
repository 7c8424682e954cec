/* SPDX-License-Identifier: Apache-2.0 */
#include "pack/publish.h"

#include <string.h>

#include "io/dir.h"
#include "io/sink.h"

#define WHERE "pack/publish"

static int open_part(void *ctx, const char *name, PenSource **ret, PenError *reterr)
{
    const PenDraft *d = ctx;
    if (strcmp(name, PEN_MANIFEST_NAME) == 0)
        return pen__source_open_memory("new manifest", d->manifest.data, d->manifest.bytes, ret,
                                       reterr);
    char *path = pen__path_join(d->dir, name);
    if (!path)
        return pen__fail_memory(reterr, WHERE, name);
    int r = pen__source_open_file(path, ret, reterr);
    pen__free(path);
    return r;
}

int pen__draft_open(PenDraft *d, const char *dir, PenManifest *m, PenError *reterr)
{
    *d = (PenDraft){.dir = dir};
    int r = pen__manifest_write(m, &d->manifest, reterr);
    if (r == PEN_OK)
        r = pen__pack_open_with(dir, open_part, d, &d->pack, reterr);
    if (r < 0)
        pen__draft_close(d);
    return r;
}

void pen__draft_close(PenDraft *d)
{
    pen_pack_close(&d->pack);
    pen__buf_free(&d->manifest);
}

int pen__pack_publish(const char *dir, const char *part_path, PenManifest *m, PenError *reterr)
{
    PenDraft draft = {0};
    char *path = pen__path_join(dir, PEN_MANIFEST_NAME);
    int r = path ? PEN_OK : pen__fail_memory(reterr, WHERE, dir);
    if (r == PEN_OK)
        r = pen__draft_open(&draft, dir, m, reterr);
    if (r == PEN_OK)
        r = pen__pack_check_duplicates(draft.pack, reterr);
    if (r == PEN_OK)
        r = pen__file_store(part_path, path, draft.manifest.data, draft.manifest.bytes, reterr);
    pen__draft_close(&draft);
    pen__free(path);
    return r;
}
