/* SPDX-License-Identifier: Apache-2.0 */
#include "pack/write/publish.h"

#include <string.h>

#define WHERE "pack/publish"

static int open_part(void *ctx, const char *name, PenSource **ret, PenError *reterr)
{
    const PenPackDraft *d = ctx;
    if (strcmp(name, PEN_MANIFEST_NAME) == 0)
        return pen__source_open_memory("new manifest", d->manifest.data, d->manifest.bytes, ret,
                                       reterr);
    return pen__store_source(d->store, name, ret, reterr);
}

int pen__draft_open(PenPackDraft *d, PenStore *store, PenManifest *m, PenError *reterr)
{
    *d = (PenPackDraft){.store = store};
    int r = pen__manifest_write(m, &d->manifest, reterr);
    if (r == PEN_OK)
        r = pen__pack_open_with(pen__store_name(store), open_part, d, &d->pack, reterr);
    if (r < 0)
        pen__draft_close(d);
    return r;
}

void pen__draft_close(PenPackDraft *d)
{
    pen_pack_close(&d->pack);
    pen__buf_free(&d->manifest);
}

int pen__manifest_is(PenStore *store, const PenBuf *manifest, PenError *reterr)
{
    PenSource *source = NULL;
    int r = pen__store_source(store, PEN_MANIFEST_NAME, &source, reterr);
    if (r < 0)
        return r;
    uint8_t *data = source->bytes == manifest->bytes ? pen__alloc(manifest->bytes) : NULL;
    if (source->bytes != manifest->bytes)
        r = 0;
    else if (!data)
        r = pen__fail_memory(reterr, WHERE, source->name);
    else
        r = pen__source_read(source, data, manifest->bytes, 0, reterr);
    if (r == PEN_OK)
        r = data && memcmp(data, manifest->data, manifest->bytes) == 0;
    pen__free(data);
    pen__source_close(&source);
    return r;
}

/* The answer to an earlier attempt may have been lost: then the manifest that is in the way is
 * ours.
 */
static int is_ours(PenStore *store, const PenBuf *manifest)
{
    return pen__manifest_is(store, manifest, NULL) == 1;
}

int pen__manifest_put(PenStore *store, const PenPack *base, const char *part_path,
                      const PenBuf *manifest, PenError *reterr)
{
    int r = pen__store_put(store, part_path, PEN_MANIFEST_NAME, manifest,
                           base ? PEN_IF_SAME : PEN_IF_ABSENT, base ? pen__pack_object(base) : NULL,
                           reterr);
    if ((r != PEN_E_EXISTS && r != PEN_E_CHANGED) || !pen__store_remote(store))
        return r;
    if (is_ours(store, manifest))
        return PEN_OK;
    return pen__fail(reterr, base ? PEN_E_BUSY : PEN_E_EXISTS, WHERE,
                     "%s: another pack was published here in the meantime and is left unchanged%s",
                     pen__store_name(store),
                     base ? "; run the same command again to append to it" : "");
}

int pen__pack_publish(PenStore *store, const PenPack *base, const char *part_path, PenManifest *m,
                      int has_unique_keys, PenError *reterr)
{
    PenPackDraft draft = {0};
    int r = pen__draft_open(&draft, store, m, reterr);
    if (r == PEN_OK && !has_unique_keys)
        r = pen__pack_check_duplicates(draft.pack, reterr);
    if (r == PEN_OK)
        r = pen__manifest_put(store, base, part_path, &draft.manifest, reterr);
    pen__draft_close(&draft);
    return r;
}
