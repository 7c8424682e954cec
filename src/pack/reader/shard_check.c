/* SPDX-License-Identifier: Apache-2.0 */
#include "pack/reader/shard_check.h"

#include <inttypes.h>
#include <string.h>

#include "base/bytes.h"
#include "pack/format/keys.h"

#define WHERE "pack/shard"

/* ---- where the pieces lie -------------------------------------------------------------------- */

uint64_t pen__shard_pieces(const PenShard *s)
{
    return s->entry.n_blocks + 3;
}

/* That they follow each other without a gap was seen when the tail was checked. */
static uint64_t piece_bytes(const PenShard *s, uint64_t piece)
{
    if (piece == 0)
        return PEN_SHARD_HEADER_BYTES;
    if (piece <= s->entry.n_blocks)
        return pen__shard_block(s, piece - 1).bytes;
    if (piece == s->entry.n_blocks + 1)
        return s->tail_offset - s->keys_offset;
    return s->source->bytes - s->tail_offset;
}

static uint64_t piece_offset(const PenShard *s, uint64_t piece)
{
    if (piece == 0)
        return 0;
    if (piece <= s->entry.n_blocks)
        return pen__shard_block(s, piece - 1).offset;
    return piece == s->entry.n_blocks + 1 ? s->keys_offset : s->tail_offset;
}

PenShardPart pen__shard_part(const PenShard *s, uint64_t first, uint64_t want)
{
    uint64_t n = pen__shard_pieces(s);
    PenShardPart part = {.offset = piece_offset(s, first), .first = first, .end = first};
    while (part.end < n && part.bytes < want)
        part.bytes += piece_bytes(s, part.end++);
    return part;
}

/* ---- checking -------------------------------------------------------------------------------- */

static int damaged(const PenShard *s, uint64_t offset, const char *what, PenError *reterr)
{
    return pen__fail(reterr, PEN_E_CORRUPT, WHERE, "%s: offset %" PRIu64 ": %s", s->source->name,
                     offset, what);
}

int pen__shard_header_check(const PenShard *s, const PenSchema *schema,
                            const uint8_t h[PEN_SHARD_HEADER_BYTES], PenError *reterr)
{
    PenPlace place = {
        .id = s->entry.id, .block = PEN_ALL, .sample = PEN_ALL, .field = PEN_PART_SHARD_HEADER};
    uint32_t sum = pen__place_sum(&place, h + 16, PEN_SHARD_HEADER_BYTES - 16);
    int zero = 1;
    for (size_t i = 40; i < PEN_SHARD_HEADER_BYTES; i++)
        zero &= h[i] == 0;
    if (memcmp(h, "PENSHARD", 8) == 0 && pen__load32(h + 8) == PEN_FORMAT_VERSION &&
        sum == pen__load32(h + 12) && (pen__load64(h + 16) & ~pen__schema_must(schema)) == 0 &&
        zero && memcmp(h + 24, s->entry.id, PEN_ID_BYTES) == 0)
        return PEN_OK;
    return damaged(s, 0, "the header is damaged; the samples can be read", reterr);
}

static int check_keys(const PenShard *s, const uint8_t *keys, PenError *reterr)
{
    PenPlace place = {
        .id = s->entry.id, .block = PEN_ALL, .sample = PEN_ALL, .field = PEN_PART_KEYS};
    uint32_t sum = pen__place_sum(&place, keys, (size_t)(s->tail_offset - s->keys_offset));
    if (sum != s->keys_crc)
        return pen__fail(reterr, PEN_E_CORRUPT, WHERE,
                         "%s: offset %" PRIu64 ": keys: checksum 0x%08x, expected 0x%08x",
                         s->source->name, s->keys_offset, sum, s->keys_crc);
    const char *what = pen__keys_check(keys, s->n_samples);
    return what ? damaged(s, s->keys_offset, what, reterr) : PEN_OK;
}

/* Also a block that the pack does not use (its samples were copied when more were appended): it is
 * part of the file. */
static int check_block(const PenShardRef *ref, const PenSchema *schema, uint64_t block,
                       const uint8_t *data, PenError *reterr)
{
    const PenShard *s = &ref->shard;
    PenBlockEntry e = pen__shard_block(s, block);
    PenBlock b = {.offset = e.offset, .shard = (PenShardRef *)ref, .data = (uint8_t *)data};
    b.number = block;
    b.first_sample = block * s->block_samples;
    int r = pen__block_view(&b.view, schema, s->entry.id, (uint32_t)block, &e, data,
                            s->source->name, reterr);
    return r < 0 ? r : pen__block_check(&b, reterr);
}

/* The tail that was opened fits the manifest's digest. */
static int check_tail(const PenShard *s, const uint8_t *data, PenError *reterr)
{
    if (memcmp(s->tail, data, (size_t)(s->source->bytes - s->tail_offset)) == 0)
        return PEN_OK;
    return damaged(s, s->tail_offset, "the tail has changed since the shard was opened", reterr);
}

int pen__shard_part_check(const PenShardRef *ref, const PenSchema *schema, const PenShardPart *part,
                          const uint8_t *data, PenError *reterr)
{
    const PenShard *s = &ref->shard;
    int r = PEN_OK;
    for (uint64_t piece = part->first; piece < part->end && r == PEN_OK; piece++) {
        if (piece == 0)
            r = pen__shard_header_check(s, schema, data, reterr);
        else if (piece <= s->entry.n_blocks)
            r = check_block(ref, schema, piece - 1, data, reterr);
        else if (piece == s->entry.n_blocks + 1)
            r = check_keys(s, data, reterr);
        else
            r = check_tail(s, data, reterr);
        data += piece_bytes(s, piece);
    }
    return r;
}

int pen__shard_part_read(const PenShardRef *ref, const PenSchema *schema, const PenShardPart *part,
                         PenBuf *buf, PenError *reterr)
{
    PenSource *source = ref->shard.source;
    size_t bytes = (size_t)part->bytes;
    buf->bytes = 0;
    if (part->bytes > SIZE_MAX / 4 || pen__buf_reserve(buf, bytes + PEN_SLACK) < 0)
        return pen__fail_memory(reterr, WHERE, source->name);
    int r = pen__source_read(source, buf->data, bytes, part->offset, reterr);
    if (r < 0)
        return r;
    r = pen__shard_part_check(ref, schema, part, buf->data, reterr);
    /* It may come right over another connection. */
    if (r == PEN_E_CORRUPT && source->is_remote) {
        r = pen__source_read_again(source, buf->data, bytes, part->offset, reterr);
        if (r < 0)
            return r;
        r = pen__shard_part_check(ref, schema, part, buf->data, reterr);
    }
    buf->bytes = bytes;
    return r;
}
