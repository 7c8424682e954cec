/* SPDX-License-Identifier: Apache-2.0 */
/* Where a sample's bytes are. */
#ifndef PEN_LOAD_READ_LOCATION_H
#define PEN_LOAD_READ_LOCATION_H

#include <stdbool.h>

#include "pack/reader/reader.h"

typedef struct PenLocation {
    PenBlock *block;
    uint32_t in_block; /* number of the sample in it */
    uint64_t bytes;    /* an upper bound of what reading takes */
    bool borrowed;     /* another holds the block for as long as it is used here */
} PenLocation;

/* In `block`, which the caller holds; or, when it is NULL, in a block that the pack finds. */
int pen__location_find(PenPack *pack, uint64_t sample, PenBlock *block, PenLocation *ret,
                       PenError *reterr);
void pen__location_release(PenPack *pack, PenLocation *at); /* a zeroed one is fine */

#endif
