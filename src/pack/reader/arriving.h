/* SPDX-License-Identifier: Apache-2.0 */
/* A block that is checked while its bytes arrive: they are then still in the cache of the processor
 * that received them, and need not be read from memory a second time. */
#ifndef PEN_PACK_READER_ARRIVING_H
#define PEN_PACK_READER_ARRIVING_H

#include "base/arrival.h"
#include "pack/reader/reader_impl.h"

typedef struct PenArriving {
    PenPack *pack;
    PenBlockEntry entry;
    PenBlock block;     /* its view is valid once the index has arrived and fits */
    uint32_t n_checked; /* samples that fit; of the next one, what comes next: */
    uint32_t field, frame, part;
    int status;      /* < 0: something does not fit */
    bool is_open;    /* the index fits */
    bool is_checked; /* all of it does */
} PenArriving;

/* `data` is where the block's bytes go. */
void pen__arriving_begin(PenArriving *a, PenPack *p, uint64_t block, PenShardRef *shard,
                         uint8_t *data);
/* The first `bytes` bytes are in place; 0: they arrive from the beginning again. By one thread at a
 * time: the one that receives them. */
void pen__arriving_more(PenArriving *a, uint64_t bytes);
/* All bytes are in place: checks those that were not checked yet. PEN_OK, PEN_E_CORRUPT, or why it
 * cannot be known. */
int pen__arriving_end(PenArriving *a);

/* As pen__block_fetch. If `ret` says that all was checked, its view is that of the block. */
int pen__block_fetch_checked(PenPack *p, uint64_t block, PenShardRef *shard, uint8_t *data,
                             PenArriving *ret, PenError *reterr);

#endif
