/* SPDX-License-Identifier: Apache-2.0 */
/* Shards of a pack that has a cache, but whose blocks are not read whole, since they have videos:
 * the cache holds pieces of 1 MiB of their files, at multiples of that. */
#ifndef PEN_PACK_READER_PIECES_H
#define PEN_PACK_READER_PIECES_H

#include "pack/reader/reader_impl.h"

#define PEN_PIECE_BYTES (UINT64_C(1) << 20)

/* From now on `*source`, of that shard, reads by pieces. Whoever reads checks the bytes, as without
 * a cache. Pieces with bytes that he calls wrong (pen__source_forget, pen__source_read_again) are
 * dropped. On failure `*source` is as it was. */
int pen__pieces_open(PenPack *p, uint64_t shard, PenSource **source, PenError *reterr);

#endif
