/* SPDX-License-Identifier: Apache-2.0 */
#include "pack/format/shard_read.h"

#include <inttypes.h>
#include <string.h>

#include "base/bytes.h"
#include "base/sha256.h"
#include "pack/format/keys.h"
#include "pack/format/place.h"

#define WHERE "pack/shard"

static int damaged(const PenShard *s, const char *what, uint64_t offset, PenError *reterr)
{
    return pen__fail(reterr, PEN_E_CORRUPT, WHERE,
                     "%s: offset %" PRIu64 ": %s: the shard is damaged or belongs to another pack",
                     s->source->name, offset, what);
}

static int check_sum(const PenShard *s, uint32_t part, const uint8_t *data, uint64_t bytes,
                     uint32_t expected, const char *what, uint64_t offset, PenError *reterr)
{
    PenPlace place = {.id = s->entry.id, .block = PEN_ALL, .sample = PEN_ALL, .field = part};
    uint32_t sum = pen__place_sum(&place, data, (size_t)bytes);
    if (sum == expected)
        return PEN_OK;
    return pen__fail(
        reterr, PEN_E_CORRUPT, WHERE,
        "%s: offset %" PRIu64
        ": %s: checksum 0x%08x, expected 0x%08x: the shard is damaged or belongs to another pack",
        s->source->name, offset, what, sum, expected);
}

static int check_footer(PenShard *s, const uint8_t *f, PenError *reterr)
{
    uint64_t at = s->source->bytes - PEN_SHARD_FOOTER_BYTES;
    if (memcmp(f, "PENSHEND", 8) != 0)
        return damaged(s, "no footer", at, reterr);
    int r = pen__format_check(s->source->name, pen__load32(f + 8), reterr);
    if (r < 0)
        return r;
    r = check_sum(s, PEN_PART_FOOTER, f + 16, PEN_SHARD_FOOTER_BYTES - 16, pen__load32(f + 12),
                  "footer", at, reterr);
    if (r < 0)
        return r;
    s->entry.file_bytes = pen__load64(f + 32);
    s->entry.n_blocks = s->entry.blocks_used = pen__load64(f + 40);
    s->n_samples = s->entry.samples_used = pen__load64(f + 48);
    s->block_samples = pen__load64(f + 56);
    s->keys_offset = pen__load64(f + 64);
    s->tail_offset = pen__load64(f + 72);
    s->keys_crc = pen__load32(f + 84);
    s->plan_first = pen__load64(f + 96);
    s->plan_end = pen__load64(f + 104);
    s->n_bad = pen__load64(f + 112);
    uint64_t keys = s->n_samples * PEN_KEY_HASH_BYTES;
    uint64_t tail = s->entry.n_blocks * PEN_BLOCK_ENTRY_BYTES + 8ull * pen__load32(f + 80) +
                    PEN_SHARD_FOOTER_BYTES;
    if (memcmp(f + 16, s->entry.id, PEN_ID_BYTES) != 0 || pen__load64(f + 120) ||
        s->entry.file_bytes != s->source->bytes || s->n_samples >= PEN_ALL ||
        s->entry.n_blocks < 1 || s->entry.n_blocks >= PEN_ALL - 1 || s->block_samples < 1 ||
        s->block_samples > PEN_MAX_BLOCK_SAMPLES || pen__load32(f + 80) > PEN_MAX_STATS ||
        tail > s->source->bytes || s->tail_offset != s->source->bytes - tail ||
        keys > s->tail_offset || s->keys_offset != s->tail_offset - keys ||
        s->keys_offset < PEN_SHARD_HEADER_BYTES)
        return damaged(s, "the footer does not match the file", at, reterr);
    s->entry.tail_bytes = tail;
    return PEN_OK;
}

void pen__shard_stats(const PenShard *s, PenPackStats *ret)
{
    uint64_t table = s->entry.n_blocks * PEN_BLOCK_ENTRY_BYTES;
    uint64_t bytes = s->entry.tail_bytes - table - PEN_SHARD_FOOTER_BYTES;
    pen__stats_load(ret, s->tail + table, (size_t)(bytes / 8));
}

uint64_t pen__shard_stat(const PenShard *s, uint32_t number)
{
    uint64_t table = s->entry.n_blocks * PEN_BLOCK_ENTRY_BYTES;
    uint64_t n = (s->entry.tail_bytes - table - PEN_SHARD_FOOTER_BYTES) / 8;
    return number < n ? pen__load64(s->tail + table + 8ull * number) : 0;
}

PenBlockEntry pen__shard_block(const PenShard *s, uint64_t block)
{
    const uint8_t *e = s->tail + block * PEN_BLOCK_ENTRY_BYTES;
    return (PenBlockEntry){pen__load64(e), pen__load64(e + 8), pen__load64(e + 16),
                           pen__load32(e + 24), pen__load32(e + 28)};
}

/* Blocks lie one after another from the header to the keys, and all but the last are full. */
static int check_table(PenShard *s, PenError *reterr)
{
    uint64_t at = PEN_SHARD_HEADER_BYTES;
    uint64_t samples = 0;
    s->entry.largest_block = 0;
    for (uint64_t b = 0; b < s->entry.n_blocks; b++) {
        PenBlockEntry e = pen__shard_block(s, b);
        int last = b + 1 == s->entry.n_blocks;
        if (e.offset != at || !pen__range_ok(e.offset, e.bytes, s->keys_offset) ||
            e.index_bytes < PEN_BLOCK_HEADER_BYTES || e.index_bytes > e.bytes ||
            e.index_bytes > PEN_MAX_INDEX_BYTES || e.n_samples < 1 ||
            e.n_samples > s->block_samples || (!last && e.n_samples != s->block_samples))
            return pen__fail(reterr, PEN_E_CORRUPT, WHERE,
                             "%s: block %" PRIu64 ": its entry in the block table is not valid",
                             s->source->name, b);
        at += e.bytes;
        samples += e.n_samples;
        s->entry.largest_block = PEN_MAX(s->entry.largest_block, e.bytes);
    }
    if (at != s->keys_offset || samples != s->n_samples)
        return damaged(s, "the block table does not add up", s->tail_offset, reterr);
    return PEN_OK;
}

static int check_tail(PenShard *s, PenError *reterr)
{
    uint64_t bytes = s->source->bytes - s->tail_offset;
    uint64_t table = s->entry.n_blocks * PEN_BLOCK_ENTRY_BYTES;
    const uint8_t *f = s->tail + bytes - PEN_SHARD_FOOTER_BYTES;
    uint64_t n_stats = pen__load32(f + 80);
    uint8_t hash[32];
    pen__sha256(s->tail, (size_t)bytes, hash);
    memcpy(s->entry.digest, hash, sizeof s->entry.digest);
    int r = check_sum(s, PEN_PART_TABLE, s->tail, table, pen__load32(f + 88), "block table",
                      s->tail_offset, reterr);
    if (r == PEN_OK)
        r = check_sum(s, PEN_PART_STATS, s->tail + table, n_stats * 8, pen__load32(f + 92),
                      "statistics", s->tail_offset + table, reterr);
    if (r == PEN_OK)
        r = check_table(s, reterr);
    return r;
}

static int check_expected(const PenShard *s, const PenShardEntry *e, PenError *reterr)
{
    if (s->entry.n_blocks != e->n_blocks || s->entry.largest_block != e->largest_block ||
        s->n_samples < e->samples_used)
        return damaged(s, "does not fit the manifest", s->tail_offset, reterr);
    if (memcmp(s->entry.digest, e->digest, sizeof e->digest) != 0)
        return damaged(s, "the digest differs from the manifest", s->tail_offset, reterr);
    return PEN_OK;
}

/* Where no manifest tells how long it is: most are smaller, and the footer tells when one is not.
 */
enum { TAIL_GUESS = 16 * 1024 };

/* The end of the file, of which the footer is checked. */
static int read_end(PenShard *s, uint64_t bytes, uint8_t **ret, PenError *reterr)
{
    uint8_t *data = pen__alloc_array(bytes, 1);
    if (!data)
        return pen__fail_memory(reterr, WHERE, s->source->name);
    int r = pen__source_read(s->source, data, (size_t)bytes, s->source->bytes - bytes, reterr);
    if (r == PEN_OK)
        r = check_footer(s, data + bytes - PEN_SHARD_FOOTER_BYTES, reterr);
    if (r < 0)
        pen__free(data);
    else
        *ret = data;
    return r;
}

static int read_tail(PenShard *s, const PenShardEntry *expected, PenError *reterr)
{
    /* Before the tail of a mapped shard there may be bytes of files, which are not needed here. */
    uint64_t guess = s->source->class_->origin ? PEN_SHARD_FOOTER_BYTES : TAIL_GUESS;
    uint64_t n = expected ? expected->tail_bytes : PEN_MIN(guess, s->source->bytes);
    int r = read_end(s, n, &s->tail, reterr);
    if (r < 0)
        return r;
    uint64_t bytes = s->entry.tail_bytes;
    if (expected && bytes != n)
        return damaged(s, "does not fit the manifest", s->tail_offset, reterr);
    if (bytes <= n) {
        memmove(s->tail, s->tail + n - bytes, (size_t)bytes);
        return PEN_OK;
    }
    pen__free(s->tail);
    s->tail = NULL;
    return read_end(s, bytes, &s->tail, reterr);
}

int pen__shard_open(PenShard *ret, PenSource *source, const uint8_t *id,
                    const PenShardEntry *expected, PenError *reterr)
{
    PenShard s = {.source = source};
    memcpy(s.entry.id, id, PEN_ID_BYTES);
    if (expected && source->bytes != expected->file_bytes)
        return pen__fail(reterr, PEN_E_CORRUPT, WHERE,
                         "%s: expected %" PRIu64 " bytes, found %" PRIu64
                         ": the shard is truncated or belongs to another pack",
                         source->name, expected->file_bytes, source->bytes);
    if (source->bytes < PEN_SHARD_HEADER_BYTES + PEN_SHARD_FOOTER_BYTES)
        return damaged(&s, "too short to be a shard", 0, reterr);
    int r = read_tail(&s, expected, reterr);
    if (r == PEN_OK)
        r = check_tail(&s, reterr);
    if (r == PEN_OK && expected)
        r = check_expected(&s, expected, reterr);
    if (r < 0) {
        pen__free(s.tail);
        return r;
    }
    *ret = s;
    return PEN_OK;
}

void pen__shard_close(PenShard *s)
{
    pen__source_close(&s->source);
    pen__free(s->tail);
    s->tail = NULL;
}

int pen__shard_keys(PenShard *s, uint8_t **ret, PenError *reterr)
{
    uint64_t bytes = s->n_samples * PEN_KEY_HASH_BYTES;
    uint8_t *keys = pen__alloc_array(bytes, 1);
    if (!keys)
        return pen__fail_memory(reterr, WHERE, s->source->name);
    int r = pen__source_read(s->source, keys, (size_t)bytes, s->keys_offset, reterr);
    if (r == PEN_OK)
        r = check_sum(s, PEN_PART_KEYS, keys, bytes, s->keys_crc, "keys", s->keys_offset, reterr);
    if (r == PEN_E_CORRUPT && s->source->is_remote) {
        r = pen__source_read_again(s->source, keys, (size_t)bytes, s->keys_offset, reterr);
        if (r == PEN_OK)
            r = check_sum(s, PEN_PART_KEYS, keys, bytes, s->keys_crc, "keys", s->keys_offset,
                          reterr);
    }
    const char *what = r == PEN_OK ? pen__keys_check(keys, s->n_samples) : NULL;
    if (what)
        r = damaged(s, what, s->keys_offset, reterr);
    if (r < 0)
        pen__free(keys);
    else
        *ret = keys;
    return r;
}

static int check_index(const PenShard *s, const PenSchema *schema, uint64_t block,
                       const PenBlockEntry *e, const uint8_t *data, PenBlockView *ret,
                       PenError *reterr)
{
    return pen__block_view(ret, schema, s->entry.id, (uint32_t)block, e, data, s->source->name,
                           reterr);
}

int pen__shard_index(PenShard *s, const PenSchema *schema, uint64_t block, uint8_t **ret_data,
                     PenBlockView *ret, PenError *reterr)
{
    PenBlockEntry e = pen__shard_block(s, block);
    size_t bytes = (size_t)e.index_bytes;
    uint8_t *data = pen__alloc_array(e.index_bytes, 1);
    if (!data)
        return pen__fail_memory(reterr, WHERE, s->source->name);
    int r = pen__source_read(s->source, data, bytes, e.offset, reterr);
    if (r == PEN_OK)
        r = check_index(s, schema, block, &e, data, ret, reterr);
    if (r == PEN_E_CORRUPT && s->source->is_remote) {
        r = pen__source_read_again(s->source, data, bytes, e.offset, reterr);
        if (r == PEN_OK)
            r = check_index(s, schema, block, &e, data, ret, reterr);
    }
    if (r < 0)
        pen__free(data);
    else
        *ret_data = data;
    return r;
}
