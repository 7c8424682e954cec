/* SPDX-License-Identifier: Apache-2.0 */
#include "pack_parts.h"

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/crc32c.h"
#include "base/sha256.h"
#include "help.h"
#include "io/source.h"
#include "pack/format/keys.h"
#include "pack/format/place.h"
#include "repair_block.h"

/* ---- parts ----------------------------------------------------------------------------------- */

static void take_part(const uint8_t **data, size_t *left, Part *ret)
{
    size_t n = *left < 4 ? 0 : pen__load32(*data);
    size_t head = PEN_MIN(*left, 4u);
    n = PEN_MIN(n, *left - head);
    *ret = (Part){copy_of(*data + head, n), n};
    *data += head + n;
    *left -= head + n;
}

void parts_split(const uint8_t *data, size_t bytes, PackParts *ret)
{
    *ret = (PackParts){.n_shards = 0};
    take_part(&data, &bytes, &ret->manifest);
    while (bytes > 4 && ret->n_shards < MAX_SHARDS)
        take_part(&data, &bytes, &ret->shards[ret->n_shards++]);
}

void parts_free(PackParts *parts)
{
    free(parts->manifest.data);
    for (uint32_t i = 0; i < parts->n_shards; i++)
        free(parts->shards[i].data);
    *parts = (PackParts){.n_shards = 0};
}

size_t parts_bytes(const PackParts *parts)
{
    size_t n = 4 + parts->manifest.bytes;
    for (uint32_t i = 0; i < parts->n_shards; i++)
        n += 4 + parts->shards[i].bytes;
    return n;
}

static uint8_t *put_part(const Part *part, uint8_t *to)
{
    pen__store32(to, (uint32_t)part->bytes);
    if (part->bytes)
        memcpy(to + 4, part->data, part->bytes);
    return to + 4 + part->bytes;
}

void parts_join(const PackParts *parts, uint8_t *to)
{
    to = put_part(&parts->manifest, to);
    for (uint32_t i = 0; i < parts->n_shards; i++)
        to = put_part(&parts->shards[i], to);
}

int parts_open(void *ctx, const char *name, PenSource **ret, PenError *reterr)
{
    const PackParts *parts = ctx;
    if (strcmp(name, PEN_MANIFEST_NAME) == 0)
        return pen__source_open_memory(name, parts->manifest.data, parts->manifest.bytes, ret,
                                       reterr);
    for (uint32_t i = 0; i < parts->n_shards; i++) {
        const Part *s = &parts->shards[i];
        char its_name[PEN_SHARD_NAME_BYTES];
        if (s->bytes < PEN_SHARD_FOOTER_BYTES)
            continue;
        pen__shard_name(s->data + s->bytes - PEN_SHARD_FOOTER_BYTES + 16, its_name);
        if (strcmp(its_name, name) == 0)
            return pen__source_open_memory(name, s->data, s->bytes, ret, reterr);
    }
    return pen__fail(reterr, PEN_E_NOT_FOUND, "fuzz", "%s: not there", name);
}

/* ---- manifest -------------------------------------------------------------------------------- */

/* Sections follow each other and the last one takes what is left. */
static void place_sections(Part *m, uint32_t *n)
{
    uint64_t room = (m->bytes - PEN_MANIFEST_HEADER_BYTES) / PEN_SECTION_ENTRY_BYTES;
    *n = (uint32_t)PEN_MIN(*n, PEN_MIN(room, PEN_MAX_SECTIONS));
    uint64_t at = PEN_MANIFEST_HEADER_BYTES + (uint64_t)*n * PEN_SECTION_ENTRY_BYTES;
    memcpy(m->data, "PENSTOCK", 8);
    pen__store32(m->data + 8, PEN_FORMAT_VERSION);
    pen__store64(m->data + 64, m->bytes);
    pen__store32(m->data + 72, *n);
    memset(m->data + 76, 0, 52);
    for (uint32_t i = 0; i < *n; i++) {
        uint8_t *e = m->data + PEN_MANIFEST_HEADER_BYTES + i * PEN_SECTION_ENTRY_BYTES;
        uint64_t bytes = pen__load64(e + 16);
        if (i + 1 == *n || bytes > m->bytes - at)
            bytes = m->bytes - at;
        pen__store64(e + 8, at);
        pen__store64(e + 16, bytes);
        pen__store32(e + 28, 0);
        at += bytes;
    }
}

static uint8_t *find_section(const Part *m, const char *type, uint64_t *ret_bytes)
{
    if (m->bytes < PEN_MANIFEST_HEADER_BYTES)
        return NULL;
    uint32_t n = pen__load32(m->data + 72);
    for (uint32_t i = 0; i < n && i < PEN_MAX_SECTIONS; i++) {
        size_t at = PEN_MANIFEST_HEADER_BYTES + (size_t)i * PEN_SECTION_ENTRY_BYTES;
        if (!pen__range_ok(at, PEN_SECTION_ENTRY_BYTES, m->bytes))
            return NULL;
        uint8_t *e = m->data + at;
        uint64_t offset = pen__load64(e + 8);
        *ret_bytes = pen__load64(e + 16);
        if (memcmp(e, type, 4) == 0 && pen__range_ok(offset, *ret_bytes, m->bytes))
            return m->data + offset;
    }
    return NULL;
}

/* A tail that has room for the blocks, in a file that has room for it. */
static void place_tail(uint8_t *e)
{
    uint64_t n_blocks = pen__load64(e + 32), tail = pen__load64(e + 80);
    uint64_t least = n_blocks * PEN_BLOCK_ENTRY_BYTES + PEN_SHARD_FOOTER_BYTES;
    if (n_blocks >= PEN_ALL)
        return;
    if (tail < least || tail - least > 8ull * PEN_MAX_STATS || tail % 8)
        pen__store64(e + 80, tail = least);
    if (pen__load64(e + 48) < tail + PEN_SHARD_HEADER_BYTES)
        pen__store64(e + 48, tail + PEN_SHARD_HEADER_BYTES);
}

/* Shards follow each other and are full; only the last block of the pack may be short. */
static void place_shards(Part *m)
{
    uint64_t bytes = 0;
    uint8_t *e = find_section(m, "SHRD", &bytes);
    if (!e)
        return;
    uint64_t n = bytes / PEN_SHARD_ENTRY_BYTES;
    uint64_t k = pen__load64(m->data + 40);
    uint64_t blocks = 0, samples = 0;
    pen__store64(m->data + 56, n);
    for (uint64_t i = 0; i < n; i++, e += PEN_SHARD_ENTRY_BYTES) {
        uint64_t used = pen__load64(e + 24);
        uint64_t in_it = pen__load64(e + 40);
        if (i + 1 < n || in_it > used * k || in_it <= used * k - k)
            in_it = used * k;
        pen__store64(e + 16, blocks);
        pen__store64(e + 40, in_it);
        memset(e + 88, 0, 8);
        place_tail(e);
        blocks += used;
        samples += in_it;
    }
    pen__store64(m->data + 32, samples);
    pen__store64(m->data + 48, blocks);
}

void repair_manifest(Part *m, int what)
{
    if (m->bytes < PEN_MANIFEST_HEADER_BYTES)
        return;
    uint32_t n = pen__load32(m->data + 72);
    if (what & REPAIR_PLACES) {
        place_sections(m, &n);
        place_shards(m);
    }
    if (!(what & REPAIR_SUMS))
        return;
    uint64_t head = PEN_MANIFEST_HEADER_BYTES + (uint64_t)n * PEN_SECTION_ENTRY_BYTES;
    for (uint32_t i = 0; i < n && head <= m->bytes; i++) {
        uint8_t *e = m->data + PEN_MANIFEST_HEADER_BYTES + i * PEN_SECTION_ENTRY_BYTES;
        uint64_t at = pen__load64(e + 8);
        uint64_t bytes = pen__load64(e + 16);
        if (pen__range_ok(at, bytes, m->bytes))
            pen__store32(e + 24, pen__crc32c(0, m->data + at, (size_t)bytes));
    }
    if (head <= m->bytes)
        pen__store32(m->data + 12, pen__crc32c(0, m->data + 16, (size_t)head - 16));
}

/* ---- shards ---------------------------------------------------------------------------------- */

typedef struct Tail { /* of a shard, as its footer has it; repairing may then write over that */
    uint64_t n_blocks, n_samples, n_stats, keys, table, stats;
    uint8_t *footer;
} Tail;

static void place_footer(Part *s, uint8_t *f)
{
    uint64_t n_blocks = pen__load64(f + 40);
    uint64_t tail =
        n_blocks * PEN_BLOCK_ENTRY_BYTES + 8ull * pen__load32(f + 80) + PEN_SHARD_FOOTER_BYTES;
    uint64_t keys = pen__load64(f + 48) * PEN_KEY_HASH_BYTES;
    memcpy(f, "PENSHEND", 8);
    pen__store32(f + 8, PEN_FORMAT_VERSION);
    pen__store64(f + 32, s->bytes);
    pen__store64(f + 120, 0);
    if (n_blocks > s->bytes || tail > s->bytes || keys > s->bytes - tail)
        return;
    pen__store64(f + 72, s->bytes - tail);
    pen__store64(f + 64, s->bytes - tail - keys);
}

/* False when the parts are not where they could be looked at. */
static bool read_footer(const Part *s, Tail *ret)
{
    uint8_t *f = s->data + s->bytes - PEN_SHARD_FOOTER_BYTES;
    *ret = (Tail){.n_blocks = pen__load64(f + 40),
                  .n_samples = pen__load64(f + 48),
                  .n_stats = pen__load32(f + 80),
                  .keys = pen__load64(f + 64),
                  .table = pen__load64(f + 72),
                  .footer = f};
    uint64_t table = ret->n_blocks * PEN_BLOCK_ENTRY_BYTES;
    ret->stats = ret->table + table;
    return ret->n_blocks <= s->bytes && ret->n_samples <= s->bytes &&
           pen__range_ok(ret->table, table + 8 * ret->n_stats, s->bytes) &&
           pen__range_ok(ret->keys, ret->n_samples * PEN_KEY_HASH_BYTES, s->bytes);
}

/* Blocks follow each other up to the keys. */
static void place_blocks(Part *s, const Tail *t)
{
    uint64_t at = PEN_SHARD_HEADER_BYTES;
    for (uint64_t b = 0; b < t->n_blocks; b++) {
        uint8_t *e = s->data + t->table + b * PEN_BLOCK_ENTRY_BYTES;
        uint64_t bytes = pen__load64(e + 8);
        if (at > t->keys)
            return;
        if (b + 1 == t->n_blocks || bytes > t->keys - at)
            bytes = t->keys - at;
        pen__store64(e, at);
        pen__store64(e + 8, bytes);
        at += bytes;
    }
}

static void repair_blocks(Part *s, const Tail *t, const uint8_t *id, const PenSchema *schema,
                          int what)
{
    for (uint64_t b = 0; b < t->n_blocks; b++) {
        uint8_t *e = s->data + t->table + b * PEN_BLOCK_ENTRY_BYTES;
        uint64_t at = pen__load64(e);
        uint64_t bytes = pen__load64(e + 8);
        if (!pen__range_ok(at, bytes, s->bytes))
            continue;
        Part block = {s->data + at, (size_t)bytes};
        if (schema && what & REPAIR_SUMS && b + 1 == t->n_blocks)
            repair_columns(block, id, t->n_samples, schema);
        repair_block(block, id, (uint32_t)b, schema, e, what);
    }
}

static void repair_keys(Part *s, const Tail *t)
{
    uint64_t sample = 0;
    PenKeyHash *keys = calloc((size_t)t->n_samples + 1, sizeof *keys);
    for (uint64_t b = 0; b < t->n_blocks; b++) {
        const uint8_t *e = s->data + t->table + b * PEN_BLOCK_ENTRY_BYTES;
        uint64_t at = pen__load64(e);
        uint32_t n = pen__load32(e + 28);
        if (!pen__range_ok(at, pen__load64(e + 8), s->bytes))
            continue;
        for (uint32_t i = 0; i < n && sample < t->n_samples; i++, sample++) {
            keys[sample].sample = (uint32_t)sample;
            keys[sample].hash = block_key_hash(s->data + at, pen__load64(e + 8), i);
        }
    }
    PenBuf out = {0};
    if (pen__keys_write(keys, sample, &out) == PEN_OK && out.bytes)
        memcpy(s->data + t->keys, out.data, out.bytes);
    pen__buf_free(&out);
    free(keys);
}

static void sum_shard(Part *s, const Tail *t, const uint8_t *id)
{
    uint8_t *f = t->footer;
    PenPlace place = {.id = id, .block = PEN_ALL, .sample = PEN_ALL, .field = PEN_PART_KEYS};
    pen__store32(f + 84, pen__place_sum(&place, s->data + t->keys,
                                        (size_t)t->n_samples * PEN_KEY_HASH_BYTES));
    place.field = PEN_PART_TABLE;
    pen__store32(f + 88, pen__place_sum(&place, s->data + t->table,
                                        (size_t)t->n_blocks * PEN_BLOCK_ENTRY_BYTES));
    place.field = PEN_PART_STATS;
    pen__store32(f + 92, pen__place_sum(&place, s->data + t->stats, 8 * (size_t)t->n_stats));
    place.field = PEN_PART_FOOTER;
    pen__store32(f + 12, pen__place_sum(&place, f + 16, PEN_SHARD_FOOTER_BYTES - 16));
    place.field = PEN_PART_SHARD_HEADER;
    pen__store32(s->data + 12, pen__place_sum(&place, s->data + 16, PEN_SHARD_HEADER_BYTES - 16));
}

/* `entry` is the shard's in the manifest. */
static void repair_shard(Part *s, uint8_t *entry, const PenSchema *schema, int what)
{
    Tail t;
    if (s->bytes < PEN_SHARD_HEADER_BYTES + PEN_SHARD_FOOTER_BYTES)
        return;
    uint8_t *f = s->data + s->bytes - PEN_SHARD_FOOTER_BYTES;
    if (what & REPAIR_PLACES) {
        memcpy(s->data, "PENSHARD", 8);
        memcpy(s->data + 24, entry, PEN_ID_BYTES);
        memcpy(f + 16, entry, PEN_ID_BYTES);
        place_footer(s, f);
    }
    if (!read_footer(s, &t))
        return;
    if (what & REPAIR_PLACES)
        place_blocks(s, &t);
    repair_blocks(s, &t, entry, schema, what);
    if (what & REPAIR_KEYS)
        repair_keys(s, &t);
    if (what & REPAIR_SUMS)
        sum_shard(s, &t, entry);
    if (what & REPAIR_PLACES) {
        uint64_t largest = 0;
        for (uint64_t b = 0; b < t.n_blocks; b++)
            largest =
                PEN_MAX(largest, pen__load64(s->data + t.table + b * PEN_BLOCK_ENTRY_BYTES + 8));
        pen__store64(entry + 32, t.n_blocks);
        pen__store64(entry + 48, s->bytes);
        pen__store64(entry + 56, largest);
        pen__store64(entry + 80, s->bytes - t.table);
    }
    uint8_t hash[32];
    pen__sha256(s->data + t.table, s->bytes - (size_t)t.table, hash);
    if (what & REPAIR_SUMS)
        memcpy(entry + 64, hash, 16);
}

void repair_parts(PackParts *parts, int what)
{
    Part *m = &parts->manifest;
    uint64_t schema_bytes = 0, shards_bytes = 0;
    PenSchema schema = {.class_field = -1};
    repair_manifest(m, what);
    const uint8_t *text = find_section(m, "SCHM", &schema_bytes);
    bool has_schema = text && pen__schema_read(&schema, text, (size_t)schema_bytes, NULL) == PEN_OK;
    uint8_t *entries = find_section(m, "SHRD", &shards_bytes);
    for (uint32_t i = 0; entries && i < parts->n_shards; i++)
        if (shards_bytes / PEN_SHARD_ENTRY_BYTES > i)
            repair_shard(&parts->shards[i], entries + i * PEN_SHARD_ENTRY_BYTES,
                         has_schema ? &schema : NULL, what);
    repair_manifest(m, what);
    pen__schema_fini(&schema);
}
