/* SPDX-License-Identifier: Apache-2.0 */
/* A mapped shard as the ordinary shard that it stands for: bytes that its file does not have are
 * read from the files that its map names. */
#ifndef PEN_PACK_MAPPED_MAPPED_H
#define PEN_PACK_MAPPED_MAPPED_H

#include "io/outside.h"
#include "pack/format/map.h"

/* The maps of a pack's shards: once one has been read and checked, it is kept for those who open
 * the shard again, as long as all of them fit into some memory. Thread-safe. `outside` has to
 * outlive it. */
typedef struct PenMaps PenMaps;
int pen__maps_new(uint64_t n_shards, PenOutside *outside, PenMaps **ret);
void pen__maps_close(PenMaps **maps); /* accepts one that is NULL */

/* Replaces *source, the file of shard `id`, by the shard. `maps` have to outlive it, and have its
 * map as that of shard `number`; NULL: payloads cannot be read. On failure *source is as it was. */
int pen__mapped_open(PenSource **source, const uint8_t *id, PenMaps *maps, uint64_t number,
                     PenError *reterr);
/* Those whose extents lie in the payloads of blocks alone; `table` is the shard's block table. */
int pen__mapped_check(PenSource *source, const uint8_t *table, uint64_t n_blocks, PenError *reterr);
/* What came with the map is not needed any more; accepts any source. */
void pen__mapped_settle(PenSource *source);
/* The size of the shard's file; 0: it is not mapped. */
uint64_t pen__mapped_stored(const PenSource *source);
/* How many of its files have another time of last change than its map has? */
uint64_t pen__mapped_modified(PenSource *source);
/* Its map; NULL: it is not mapped. */
const PenMap *pen__mapped_map(const PenSource *source);

#endif
