/* SPDX-License-Identifier: Apache-2.0 */
/* What a manifest names, and removing the rest. */
#ifndef PEN_MANAGE_GC_H
#define PEN_MANAGE_GC_H

#include <penstock/ingest.h>

#include "pack/format/format.h"
#include "pack/reader/reader.h"

typedef struct PenNamed { /* ids of the shards that are in use, sorted */
    uint8_t (*ids)[PEN_ID_BYTES];
    uint64_t n;
} PenNamed;

/* None when there is no pack. */
int pen__named_load(PenStore *store, PenNamed *ret, PenError *reterr);
/* 1: "3f/3f...shard", a name that we give, and not in use. */
int pen__named_unused(const PenNamed *named, const char *name);

/* pen_ingest_gc for a caller that holds the lock of the work directory. While tasks share a plan,
 * PEN_E_BUSY; with `abandon` it is discarded, in an object store before all else. */
int pen__gc_locked(PenStore *store, const char *home, int abandon, PenGcResult *ret,
                   PenError *reterr);

#endif
