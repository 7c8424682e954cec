/* SPDX-License-Identifier: Apache-2.0 */
#include "mutate_pack.h"

#include <stdlib.h>
#include <string.h>

#include "base/attr.h"
#include "base/bytes.h"
#include "help.h"
#include "pack_parts.h"

/* Changes a part as a whole; it may become longer by `room`. */
static void mutate_all(Part *part, size_t room)
{
    size_t max = part->bytes + room;
    uint8_t *data = malloc(max + 1);
    if (part->bytes)
        memcpy(data, part->data, part->bytes);
    size_t bytes = LLVMFuzzerMutate(data, part->bytes, max);
    free(part->data);
    *part = (Part){copy_of(data, bytes), bytes};
    free(data);
}

static void mutate_inside(Dice *dice, Part *part)
{
    size_t bytes = 1 + roll(dice, PEN_MIN(part->bytes, 64u));
    size_t at = roll(dice, part->bytes - bytes + 1);
    LLVMFuzzerMutate(part->data + at, bytes, bytes);
}

/* One piece over another: entries are there twice, or in the wrong order. */
static void mutate_copy(Dice *dice, Part *part, const Part *from)
{
    size_t bytes = (size_t)8 << roll(dice, 6);
    if (bytes > part->bytes || bytes > from->bytes)
        return;
    size_t a = roll(dice, part->bytes - bytes + 1), b = roll(dice, from->bytes - bytes + 1);
    memmove(part->data + a - a % 4, from->data + b - b % 4, bytes);
}

/* A number in the structure: the payloads are most of a shard, but hardly ever looked into. */
static void mutate_structure(Dice *dice, Part *s)
{
    const uint8_t *f = s->data + s->bytes - PEN_SHARD_FOOTER_BYTES;
    uint64_t keys = s->bytes < PEN_SHARD_FOOTER_BYTES ? 0 : pen__load64(f + 64);
    uint64_t table = keys ? pen__load64(f + 72) : 0;
    uint64_t n = keys ? PEN_MIN(pen__load64(f + 40), 1000u) : 0;
    uint64_t entry = table + roll(dice, (size_t)n) * (uint64_t)PEN_BLOCK_ENTRY_BYTES;
    uint64_t from = keys, to = s->bytes; /* keys, table, statistics, footer */
    if (roll(dice, 8) && pen__range_ok(entry, PEN_BLOCK_ENTRY_BYTES, s->bytes)) {
        uint64_t block = pen__load64(s->data + entry);
        uint64_t bytes = pen__load64(s->data + entry + 8);
        uint64_t index = pen__load64(s->data + entry + 16);
        from = block;
        to = block + (roll(dice, 4) ? PEN_MIN(index, 256u) : index);
        if (!roll(dice, 4) && pen__range_ok(block, 64, s->bytes)) { /* the sections */
            from = block + pen__load64(s->data + block + 32);
            to = block + bytes;
        }
    }
    if (from < to && to <= s->bytes)
        put_awkward(dice, s->data + from, (size_t)(to - from));
}

static void mutate_part(Dice *dice, Part *part, const Part *other, size_t room)
{
    switch (roll(dice, 8)) {
    case 0:
        mutate_all(part, room);
        break;
    case 1:
        mutate_inside(dice, part);
        break;
    case 2:
        mutate_copy(dice, part, roll(dice, 2) ? other : part);
        break;
    case 3:
        put_awkward(dice, part->data, part->bytes);
        break;
    default:
        mutate_structure(dice, part);
    }
}

size_t mutate_pack(uint8_t *data, size_t bytes, size_t max_bytes, unsigned seed)
{
    enum { PLACES = REPAIR_SUMS | REPAIR_PLACES, ALL = PLACES | REPAIR_ENTRIES | REPAIR_KEYS };
    static const int whats[] = {
        0,      REPAIR_SUMS,          REPAIR_SUMS, REPAIR_SUMS | REPAIR_KEYS,
        PLACES, PLACES | REPAIR_KEYS, ALL,         ALL};
    Dice dice = {seed};
    PackParts parts;
    parts_split(data, bytes, &parts);
    size_t joined = parts_bytes(&parts);
    size_t room = max_bytes > joined ? max_bytes - joined : 0;
    for (uint32_t n = 1 + roll(&dice, 3); n; n--) {
        uint32_t which = roll(&dice, 4) ? roll(&dice, parts.n_shards) : MAX_SHARDS;
        Part *part = which < parts.n_shards ? &parts.shards[which] : &parts.manifest;
        if (part->bytes)
            mutate_part(&dice, part, &parts.shards[roll(&dice, parts.n_shards)], n == 1 ? room : 0);
    }
    repair_parts(&parts, whats[roll(&dice, PEN_LEN(whats))]);
    joined = parts_bytes(&parts);
    if (joined <= max_bytes) {
        parts_join(&parts, data);
        bytes = joined;
    }
    parts_free(&parts);
    return bytes;
}
