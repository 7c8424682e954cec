/* SPDX-License-Identifier: Apache-2.0 */
/* A pack in shared memory: where its parts lie in it, and getting them there. */
#ifndef PEN_PACK_PRELOAD_PRELOAD_H
#define PEN_PACK_PRELOAD_PRELOAD_H

#include <stdatomic.h>
#include <stdbool.h>

#include <penstock/preload.h>

#include "io/shared.h"
#include "pack/reader/reader.h"

/* ---- preload_layout.c ------------------------------------------------------------------------ */

/* Head; a record for each shard; a state for each of its parts (at the number of its first piece);
 * the shards. All of it follows from the manifest, so all processes agree. */
typedef struct PenPreloadLayout {
    uint8_t head[PEN_SHARED_HEAD_BYTES];
    uint64_t *states;     /* where those of a shard lie */
    uint64_t *shards;     /* and its bytes */
    uint64_t bytes;       /* of all */
    uint64_t shard_bytes; /* of the shards alone */
} PenPreloadLayout;

int pen__preload_layout(PenPreloadLayout *ret, const PenManifest *m, const char *name,
                        PenError *reterr);
void pen__preload_layout_fini(PenPreloadLayout *l); /* a zeroed one is fine */

enum { PEN_PRELOAD_EMPTY = 0, PEN_PRELOAD_GOOD = 1, PEN_PRELOAD_DAMAGED = 2 };

/* Told from process to process; no more than a hint, as all that is read is checked. */
typedef struct PenPreloadRecord {
    uint64_t state;  /* of the shard */
    uint64_t filled; /* bytes of it */
} PenPreloadRecord;

/* Where the record of a shard lies. */
uint64_t pen__preload_record_at(uint64_t shard);

/* ---- preload.c ------------------------------------------------------------------------------- */

typedef struct PenPreload {
    atomic_int refs;
    PenPreloadLayout layout;
    PenShared *shared;
} PenPreload;

/* ---- preload_fill.c: bringing there what is not there -----------------------------------------
 */

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
