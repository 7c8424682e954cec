/* SPDX-License-Identifier: Apache-2.0 */
/* A pack in shared memory: where its parts lie in it, and sources of its shards. */
#ifndef PEN_PACK_PRELOAD_LAYOUT_H
#define PEN_PACK_PRELOAD_LAYOUT_H

#include <stdatomic.h>

#include "io/shared.h"
#include "pack/format/manifest.h"

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

typedef struct PenPreload {
    atomic_int refs;
    PenPreloadLayout layout;
    PenShared *shared;
} PenPreload;

/* A shard in it; `path` is that of the pack, for messages. */
int pen__preload_source(const PenPreload *preload, const PenManifest *m, const char *path,
                        uint64_t shard, PenSource **ret, PenError *reterr);
void pen__preload_close(PenPreload **preload); /* the last one; accepts NULL */

#endif
