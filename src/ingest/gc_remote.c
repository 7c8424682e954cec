/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "ingest/gc.h"

#define WHERE "ingest/gc"

/* Names are kept until the list has ended: removing changes what the next page would be. */
typedef struct Unused {
    const PenNamed *named;
    PenBuf names; /* each with its NUL */
    uint64_t n, bytes;
} Unused;

static int note(void *ctx, const char *name, uint64_t bytes)
{
    Unused *u = ctx;
    if (!pen__named_unused(u->named, name))
        return 0;
    u->n++;
    u->bytes += bytes;
    return pen__buf_add(&u->names, name, strlen(name) + 1);
}

int pen__gc_remote(PenRemote *remote, const PenNamed *named, PenGcResult *ret, PenError *reterr)
{
    Unused u = {.named = named};
    int r = pen__remote_list(remote, note, &u, reterr);
    if (r == PEN_E_NO_MEMORY)
        pen__fail_memory(reterr, WHERE, pen__remote_text(remote));
    for (size_t at = 0; at < u.names.bytes && r == PEN_OK;) {
        const char *name = (const char *)u.names.data + at;
        r = pen__remote_remove(remote, name, reterr);
        at += strlen(name) + 1;
    }
    if (r == PEN_OK) {
        ret->files += u.n;
        ret->bytes += u.bytes;
        r = pen__remote_abort_uploads(remote, 0, &ret->uploads, reterr);
    }
    pen__buf_free(&u.names);
    return r;
}
