/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a range of a mapped shard whose payloads are objects of a store: all that it needs is
 * collected first, and then requested at once. */
#ifndef PEN_PACK_MAPPED_GATHER_H
#define PEN_PACK_MAPPED_GATHER_H

#include "io/outside.h"
#include "pack/format/map.h"

typedef struct PenGatherFrom {
    const PenMap *map;
    PenSource *file;     /* the stored bytes of the shard */
    PenOutside *outside; /* whose helpers are used; may be NULL */
    /* A range of file `number` of the map, by one request. Called by several threads. */
    int (*read)(void *ctx, uint32_t number, const struct iovec *v, int n, uint64_t offset,
                const PenArrival *arrival, PenError *reterr);
    void *ctx;
    const char *name; /* for messages */
    bool is_again;    /* what came the last time was wrong: over other connections */
} PenGatherFrom;

/* Neighbors in an object come by one request. A range with several payloads is read although some
 * of their objects are missing or others by now (PEN_E_CORRUPT): it has zeros there, which do not
 * fit their checksums. If all of several objects are, it is not. When one request fails for another
 * reason, or the caller is interrupted, the others are ended. */
int pen__gather(const PenGatherFrom *from, const struct iovec *v, int n, uint64_t offset,
                PenError *reterr);

#endif
