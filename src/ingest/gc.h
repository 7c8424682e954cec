/* SPDX-License-Identifier: Apache-2.0 */
/* What a manifest names, and removing the rest. */
#ifndef PEN_INGEST_GC_H
#define PEN_INGEST_GC_H

#include <penstock/ingest.h>

#include "pack/format.h"
#include "pack/reader.h"

typedef struct PenNamed { /* ids of the shards that are in use, sorted */
    uint8_t (*ids)[PEN_ID_BYTES];
    uint64_t n;
} PenNamed;

/* None when there is no pack. */
int pen__named_load(PenStore *store, PenNamed *ret, PenError *reterr);
/* 1: "3f/3f...shard", a name that we give, and not in use. */
int pen__named_unused(const PenNamed *named, const char *name);

/* Objects that are not in use, and uploads that were left. */
int pen__gc_remote(PenRemote *remote, const PenNamed *named, PenGcResult *ret, PenError *reterr);

#endif
