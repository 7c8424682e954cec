/* SPDX-License-Identifier: Apache-2.0 */
/* A mapped shard as the ordinary shard that it stands for: bytes that its file does not have are
 * read from the files that its map names. */
#ifndef PEN_PACK_READER_MAPPED_H
#define PEN_PACK_READER_MAPPED_H

#include "io/outside.h"
#include "pack/format/map.h"

/* Replaces *source, the file of shard `id`, by the shard. `outside` has to outlive it; NULL:
 * payloads cannot be read. On failure *source is as it was. */
int pen__mapped_open(PenSource **source, const uint8_t *id, PenOutside *outside, PenError *reterr);
/* Those whose extents lie in the payloads of blocks alone; `table` is the shard's block table. */
int pen__mapped_check(PenSource *source, const uint8_t *table, uint64_t n_blocks, PenError *reterr);
/* The size of the shard's file; 0: it is not mapped. */
uint64_t pen__mapped_stored(const PenSource *source);
/* Its map; NULL: it is not mapped. */
const PenMap *pen__mapped_map(const PenSource *source);

#endif
