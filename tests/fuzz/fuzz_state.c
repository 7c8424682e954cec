/* SPDX-License-Identifier: Apache-2.0 */
/* A state. What is read is written down and then reads the same; its order is one that can be
 * walked, and the batches that follow are positions of it. */
#include <stdlib.h>
#include <string.h>

#include "help.h"
#include "load/epoch/buckets.h"
#include "load/epoch/state.h"

/* Positions at both ends and somewhere between are samples, and found again. */
static void walk(const PenState *s)
{
    PenError err;
    PenOrder o;
    MUST(pen__order_init(&o, &s->order, s->epoch, &err));
    const uint64_t places[] = {0, s->order.n - 1, s->position % s->order.n, s->order.n / 3};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        uint64_t sample = pen__order_at(&o, places[i]);
        REQUIRE(sample < s->order.n && pen__order_find(&o, sample) == places[i]);
        REQUIRE(pen__order_at(&o, pen__order_find(&o, places[i])) == places[i]);
    }
}

/* The hashes serve as numbers of ranks and batches. */
static void cut(const PenState *s)
{
    uint32_t world = (uint32_t)(s->pipeline | 1);
    uint32_t batch = (uint32_t)(s->subset | 1);
    PenSplit split = {.n = s->order.n,
                      .start = s->position,
                      .batch = batch,
                      .rank = world - 1,
                      .world = world,
                      .drop_last = s->pack_id[0] & 1};
    uint64_t steps = pen__split_steps(&split);
    bool valid = false;
    if (!steps)
        return;
    REQUIRE(pen__split_position(&split, 0, 0, &valid) < s->order.n);
    REQUIRE(pen__split_position(&split, steps - 1, batch - 1, &valid) < s->order.n);
    REQUIRE(valid || !split.drop_last);
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
                      .drop_last = s->pack_id[0] & 1,
                      .lengths = &l,
                      .epoch = s->epoch,
                      .step = s->step};
    bool valid;
    uint64_t steps = pen__split_steps(&split), left = s->order.n - s->position;
    uint64_t most = pen__split_samples(&split, steps) * split.world;
    REQUIRE(split.drop_last ? most <= left : most >= left);
    if (!split.drop_last && steps)
        REQUIRE(pen__split_samples(&split, steps - 1) * split.world < left);
    if (steps)
        REQUIRE(pen__split_position(&split, steps - 1, 0, &valid) < s->order.n);
}

/* Of a few samples in buckets, a table can be made. */
static void group(const PenState *s)
{
    static uint8_t of_entry[64];
    PenBucketOf of = {.of_entry = of_entry, .n_buckets = 3, .n = s->order.n};
    PenBucketTable *table = NULL;
    PenError err;
    PenOrder o;
    PenGrouping g = {.batch = s->group.batch % 64 + 1, .ranks = s->group.ranks % 64 + 1};
    if (!s->group.ranks || of.n > sizeof of_entry)
        return;
    for (size_t i = 0; i < sizeof of_entry; i++)
        of_entry[i] = (uint8_t)((s->subset >> i & 1) + (s->pipeline >> i & 1));
    MUST(pen__order_init(&o, &s->order, s->epoch, &err));
    MUST(pen__bucket_table_new(&of, &o, g, s->pack_id[0] & 1, &table, &err));
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
    REQUIRE(again.place == s->place && again.group.ranks == s->group.ranks);
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
