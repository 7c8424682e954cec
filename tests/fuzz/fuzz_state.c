/* SPDX-License-Identifier: Apache-2.0 */
/* A state. What is read is written down and then reads the same; its order is one that can be
 * walked, and the batches that follow are positions of it. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "help.h"
#include "load/epoch/buckets.h"
#include "load/epoch/split.h"
#include "load/epoch/state.h"

/* ---- the hash ---------------------------------------------------------------------------------
 */

/* What follows "key=" in the text; "" where there is none. */
static const char *value_of(const char *text, const char *key)
{
    size_t n = strlen(key);
    for (const char *at = text; (at = strstr(at, key)); at += n)
        if (at[n] == '=' && (at == text || at[-1] == ' '))
            return at + n + 1;
    return "";
}

static uint64_t number_of(const char *text, const char *key, int base)
{
    return strtoull(value_of(text, key), NULL, base);
}

/* Else an input whose order is another would be refused for its hash. */
static void repair_hash(char *text)
{
    const char *kind = value_of(text, "order"), *pack = value_of(text, "pack");
    char *hash = (char *)(uintptr_t)value_of(text, "hash"), digits[17];
    PenState s = {.order = {.n = number_of(text, "samples", 10),
                            .seed = number_of(text, "seed", 10),
                            .block_samples = number_of(text, "block", 10)},
                  .subset = number_of(text, "subset", 16),
                  .global_batch = number_of(text, "global_batch", 10),
                  .by_step = *value_of(text, "step")};
    uint64_t buffer = number_of(text, "shuffle_buffer", 10);
    const char *name;
    while ((name = pen__order_name(s.order.kind)) && strncmp(kind, name, strlen(name)) != 0)
        s.order.kind++;
    if (s.order.block_samples)
        s.order.streams = (uint32_t)(buffer / s.order.block_samples);
    for (size_t i = 0; i < 16 && strlen(pack) >= 32; i++)
        s.pack_id[i] = (uint8_t)strtoul((char[]){pack[2 * i], pack[2 * i + 1], 0}, NULL, 16);
    snprintf(digits, sizeof digits, "%016" PRIx64, pen__state_hash(&s));
    if (strlen(hash) >= 16 && name)
        memcpy(hash, digits, 16);
}

/* ---- what was accepted ------------------------------------------------------------------------
 */

/* Positions at both ends and somewhere between are samples, and others where they are others. */
static void walk(const PenState *s)
{
    PenError err;
    PenOrder o;
    MUST(pen__order_init(&o, &s->order, s->epoch, &err));
    const uint64_t places[] = {0,
                               s->order.n - 1,
                               s->position % s->order.n,
                               s->order.n / 3,
                               o.body ? o.body - 1 : 0,
                               o.body % s->order.n};
    enum { PLACES = sizeof places / sizeof *places };
    for (size_t i = 0; i < PLACES; i++) {
        uint64_t sample = pen__order_at(&o, places[i]);
        REQUIRE(sample < s->order.n);
        for (size_t k = 0; k < i; k++)
            REQUIRE((pen__order_at(&o, places[k]) == sample) == (places[k] == places[i]));
    }
}

/* The hashes serve as numbers of ranks and batches. */
static void cut(const PenState *s)
{
    PenError err;
    PenOrder o;
    MUST(pen__order_init(&o, &s->order, s->epoch, &err));
    uint32_t world = (uint32_t)(s->pipeline | 1) >> (s->pack_id[2] & 31) | 1;
    uint32_t batch = (uint32_t)(s->subset | 1);
    PenSplit split = {.n = s->order.n,
                      .start = s->position,
                      .batch = batch,
                      .rank = world - 1,
                      .world = world,
                      .last_batch = PEN_LAST_SHORT + s->pack_id[0] % 3,
                      .deal = pen__deal_for(&o, world),
                      .streams = o.streams};
    uint64_t steps = pen__split_steps(&split);
    bool valid = false;
    if (!steps)
        return;
    PenPassStep step = pen__split_step(&split, 0);
    REQUIRE(pen__split_position(&split, &step, 0, &valid) < s->order.n);
    step = pen__split_step(&split, steps - 1);
    REQUIRE(step.n && step.valid <= batch && step.before + step.valid <= step.n);
    REQUIRE(pen__split_position(&split, &step, batch - 1, &valid) < s->order.n);
    REQUIRE(valid || split.last_batch != PEN_LAST_DROP);
}

/* With a token budget, all samples that are left are in the steps that follow, or dropped. */
static void count_steps(const PenState *s)
{
    PenLengths l = {.n = s->pack_id[1] % PEN_MAX_LENGTHS + 1u, .seed = s->order.seed};
    for (uint32_t i = 0; i < l.n; i++) {
        l.batch[i] = (uint32_t)(s->subset >> i % 44 & 0xfffff) + 1;
        l.round += l.batch[i];
    }
    PenSplit split = {.n = s->order.n,
                      .start = s->position,
                      .batch = 1,
                      .world = (uint32_t)(s->pipeline & 0xfffff) + 1,
                      .last_batch = PEN_LAST_SHORT + s->pack_id[0] % 3,
                      .lengths = &l,
                      .epoch = s->epoch,
                      .step = s->step};
    bool valid;
    uint64_t steps = pen__split_steps(&split), left = s->order.n - s->position;
    uint64_t most = pen__split_places(&split, steps) * split.world;
    bool drops = split.last_batch == PEN_LAST_DROP;
    REQUIRE(drops ? most <= left : most >= left);
    if (!drops && steps)
        REQUIRE(pen__split_places(&split, steps - 1) * split.world < left);
    if (!steps)
        return;
    PenPassStep step = pen__split_step(&split, steps - 1);
    REQUIRE(pen__split_position(&split, &step, 0, &valid) < s->order.n);
}

/* Of a few samples in buckets, a table can be made. */
static void group(const PenState *s)
{
    static uint8_t of_entry[64];
    PenBucketOf of = {.of_entry = of_entry, .n_buckets = 3, .n = s->order.n};
    PenBucketTable *table = NULL;
    PenError err;
    PenOrder o;
    uint32_t world = (uint32_t)(s->global_batch % 7) + 1;
    uint64_t group = world * (s->global_batch / 7 % 64 + 1);
    if (!s->global_batch || of.n > sizeof of_entry)
        return;
    for (size_t i = 0; i < sizeof of_entry; i++)
        of_entry[i] = (uint8_t)((s->subset >> i & 1) + (s->pipeline >> i & 1));
    MUST(pen__order_init(&o, &s->order, s->epoch, &err));
    PenBucketSteps steps = {.group = group,
                            .world = world,
                            .last_batch = PEN_LAST_SHORT + s->pack_id[0] % 3,
                            .has_pairs = s->pack_id[3] & 1};
    MUST(pen__bucket_table_new(&of, &o, &steps, &table, &err));
    for (uint64_t p = 0; p < table->n_groups * table->group; p++)
        REQUIRE(pen__bucket_table_at(table, p) < of.n);
    pen__bucket_table_free(&table);
}

static void write_again(const PenState *s)
{
    PenError err;
    PenState again;
    char text[PEN_STATE_BYTES], twice[PEN_STATE_BYTES];
    MUST(pen__state_write(s, text, &err));
    MUST(pen__state_read(text, &again, &err));
    MUST(pen__state_match(s, &again, &err));
    REQUIRE(again.epoch == s->epoch && again.position == s->position);
    REQUIRE(again.place == s->place && again.global_batch == s->global_batch);
    REQUIRE(again.step == s->step && again.by_step == s->by_step);
    MUST(pen__state_write(&again, twice, &err));
    REQUIRE(strcmp(text, twice) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    PenError err;
    PenState s;
    char *text = malloc(bytes + 1);
    memcpy(text, data, bytes);
    text[bytes] = 0;
    if (bytes % 8) /* in some, the hash is as it came */
        repair_hash(text);
    if (GOES(pen__state_read(text, &s, &err))) {
        write_again(&s);
        walk(&s);
        cut(&s);
        group(&s);
        count_steps(&s);
    }
    free(text);
    return 0;
}
