/* SPDX-License-Identifier: Apache-2.0 */
/* Every byte of a shard, in pieces that carry their own checksums: header, blocks, keys, tail. */
#ifndef PEN_PACK_READER_SHARD_CHECK_H
#define PEN_PACK_READER_SHARD_CHECK_H

#include "pack/reader/reader.h"

/* Some pieces that lie one behind the other. */
typedef struct PenShardPart {
    uint64_t offset, bytes;
    uint64_t first, end; /* of the pieces; see pen__shard_pieces */
} PenShardPart;

/* The header, n_blocks blocks (also those that the pack has no use for), the keys, the tail. */
uint64_t pen__shard_pieces(const PenShard *s);
/* The part from piece `first` on that is the first to reach `want` bytes. */
PenShardPart pen__shard_part(const PenShard *s, uint64_t first, uint64_t want);

/* Is each of its bytes the one that was written? `data` holds them, `ref` is the open shard. */
int pen__shard_part_check(const PenShardRef *ref, const PenSchema *schema, const PenShardPart *part,
                          const uint8_t *data, PenError *reterr);

/* Reads it into `buf` and checks it; what comes wrong over a network is asked for once more. With
 * PEN_E_CORRUPT the bytes that are there are in `buf`, when buf->bytes is not 0. */
int pen__shard_part_read(const PenShardRef *ref, const PenSchema *schema, const PenShardPart *part,
                         PenBuf *buf, PenError *reterr);

/* The header alone. */
int pen__shard_header_check(const PenShard *s, const PenSchema *schema,
                            const uint8_t header[PEN_SHARD_HEADER_BYTES], PenError *reterr);

#endif
