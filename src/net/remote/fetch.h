/* SPDX-License-Identifier: Apache-2.0 */
/* An entire object, by several requests at a time. */
#ifndef PEN_NET_REMOTE_FETCH_H
#define PEN_NET_REMOTE_FETCH_H

#include "net/remote/remote.h"

typedef struct PenFetch {
    uint64_t most_bytes; /* a larger object is PEN_E_LIMIT */
    /* Gets its size, before its bytes. */
    int (*begin)(void *ctx, uint64_t bytes, PenError *reterr);
    /* Each byte comes once, in any order, from several threads. */
    int (*take)(void *ctx, const void *data, size_t bytes, uint64_t offset, PenError *reterr);
    void *ctx;
} PenFetch;

/* PEN_E_CHANGED: it was replaced in the meantime. The caller's `interrupted` is asked by this
 * thread, and ends it. */
int pen__remote_fetch(PenRemote *r, const char *name, const PenFetch *fetch, PenObject *ret,
                      PenError *reterr);

#endif
