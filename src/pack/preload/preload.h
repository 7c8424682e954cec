/* SPDX-License-Identifier: Apache-2.0 */
/* Bringing a pack into shared memory. */
#ifndef PEN_PACK_PRELOAD_PRELOAD_H
#define PEN_PACK_PRELOAD_PRELOAD_H

#include <penstock/preload.h>

#include "pack/preload/layout.h"
#include "pack/reader/reader.h"

/* fill.c: bringing there what is not there. */
typedef struct PenFill PenFill;

enum {
    PEN_FILL_TO_DO = 0,
    PEN_FILL_DONE = 1, /* as good as it gets: it may be damaged where this process reads it */
    PEN_FILL_HELD = 2  /* by another process */
};

int pen__fill_open(PenPack *pack, PenPreload *preload, unsigned threads, PenFill **ret,
                   PenError *reterr);
/* PEN_FILL_* for each shard; the caller's to change between passes. */
uint8_t *pen__fill_states(PenFill *f);
/* Fills those to do that no other process is at; `force`: those as well. Calls `tick` now and then,
 * which ends it by other than PEN_OK. */
int pen__fill_pass(PenFill *f, int force, int (*tick)(void *ctx, PenError *reterr), void *ctx,
                   PenError *reterr);
uint64_t pen__fill_read_bytes(const PenFill *f);
/* Threads that hang in a read are left behind, with all that they use. */
void pen__fill_close(PenFill **f);

#endif
