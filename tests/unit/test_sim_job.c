/* SPDX-License-Identifier: Apache-2.0 */
/* Simulated jobs: the same numbers each time, no block too often, no memory too much, and what the
 * constants say must come out. */
#include <math.h>
#include <stdlib.h>

#include <penstock/loader.h>

#include "test.h"

#include "base/attr.h"
#include "sim/arguments.h"
#include "sim/simulate.h"

static PenSimSettings small(void)
{
    PenSimSettings s;
    if (pen__sim_settings_parse(&s, NULL, 0, NULL) < 0)
        abort();
    s.n_samples = 40000;
    s.sample_bytes = 10000;
    s.block_samples = 16;
    s.shard_bytes = 16 << 20;
    s.nodes = 2;
    s.ranks = 4;
    s.batch = 64;
    s.step_ms = 20;
    s.memory_bytes = 64 << 20;
    s.shuffle_buffer = 3072;
    return s;
}

static bool near(double found, double expected, double share)
{
    bool is = fabs(found - expected) <= share * expected;
    if (!is)
        printf("found %g, expected %g\n", found, expected);
    return is;
}

TEST(the_same_seed_gives_the_same_numbers)
{
    PenSimSettings s = small();
    PenSimResult a, b, c;
    s.failures = 20;
    CHECK_INT(pen__simulate(&s, &a, NULL), PEN_OK);
    CHECK_INT(pen__simulate(&s, &b, NULL), PEN_OK);
    s.seed = 1;
    CHECK_INT(pen__simulate(&s, &c, NULL), PEN_OK);
    CHECK_INT(a.requests, b.requests);
    CHECK_INT(a.retries, b.retries);
    CHECK(a.retries > 0);
    CHECK(a.seconds == b.seconds && a.samples_per_s == b.samples_per_s);
    CHECK(a.first_batch_p50_s == b.first_batch_p50_s && a.longest_stall_s == b.longest_stall_s);
    CHECK(a.node_peak_bytes_per_s == b.node_peak_bytes_per_s);
    CHECK(a.first_batch_p50_s != c.first_batch_p50_s);
}

TEST(an_epoch_fetches_each_block_once)
{
    PenSimSettings s = small();
    PenSimResult r;
    CHECK_INT(pen__simulate(&s, &r, NULL), PEN_OK);
    CHECK_INT(r.shuffle_buffer, 3072);
    CHECK_INT(r.fetch_unit, PEN_FETCH_BLOCKS);
    CHECK_INT(r.memory_wanted_bytes, 0);
    CHECK_INT(r.n_blocks, 2500);
    CHECK_INT(r.steps, 78);
    CHECK_INT(r.batches, 8 * 78);
    CHECK_INT(r.is_exact, 1);
    /* The ranks request what was counted without time. */
    CHECK_INT(r.block_requests, r.block_fetches + r.part_fetches);
    CHECK_INT(r.index_requests, r.index_fetches);
    CHECK(r.amplification > 0.99 && r.amplification < 1.02);
    CHECK(r.requests_per_block > 0.99 && r.requests_per_block < 1.4);
    CHECK(r.memory_bytes > 0 && r.memory_bytes <= r.memory_room);
}

TEST(the_default_buffer_is_a_gibibyte_of_the_pack)
{
    PenSimSettings s = small();
    PenSimResult r;
    s.shuffle_buffer = 0;
    CHECK_INT(pen__simulate(&s, &r, NULL), PEN_OK);
    CHECK_INT(r.shuffle_buffer, s.n_samples); /* all of them */
    s.sample_bytes = 100000;
    s.memory_bytes = 512 << 20;
    CHECK_INT(pen__simulate(&s, &r, NULL), PEN_OK);
    CHECK_INT(r.shuffle_buffer, 768 * 16); /* 10,737, rounded up to 3 * 2^k blocks */
}

/* ---- memory, and numbers of ranks ------------------------------------------------------------ */

TEST(little_memory_makes_more_requests)
{
    PenSimSettings s = small();
    PenSimResult runs, samples, blocks;
    s.nodes = s.ranks = 1;
    s.batch_bytes = 10000;
    s.memory_bytes = 48 << 20;
    CHECK_INT(pen__simulate(&s, &runs, NULL), PEN_OK);
    CHECK_INT(runs.fetch_unit, PEN_FETCH_RUNS);
    CHECK(runs.requests_per_block > 2 && runs.requests_per_block < 10);
    CHECK(runs.amplification < 1.1);
    CHECK(runs.part_fetches > runs.block_fetches && runs.index_fetches > 0);
    CHECK_INT(runs.block_requests, runs.block_fetches + runs.part_fetches);
    s.memory_bytes = 12 << 20;
    CHECK_INT(pen__simulate(&s, &samples, NULL), PEN_OK);
    CHECK(samples.requests_per_block > runs.requests_per_block);
    CHECK(samples.memory_bytes <= samples.memory_room);
    /* What it says avoids that. */
    s.memory_bytes = runs.memory_wanted_bytes;
    CHECK_INT(pen__simulate(&s, &blocks, NULL), PEN_OK);
    CHECK_INT(blocks.fetch_unit, PEN_FETCH_BLOCKS);
    CHECK_INT(blocks.memory_wanted_bytes, 0);
    CHECK(blocks.requests_per_block < 1.4);
    CHECK_INT(samples.memory_wanted_bytes, runs.memory_wanted_bytes);
    s.memory_bytes = runs.memory_wanted_bytes / 10 * 8;
    CHECK_INT(pen__simulate(&s, &runs, NULL), PEN_OK);
    CHECK_INT(runs.fetch_unit, PEN_FETCH_RUNS);
}

TEST(much_memory_makes_no_more_requests)
{
    PenSimSettings s = small();
    PenSimResult r;
    s.nodes = s.ranks = 1;
    s.n_samples = 200000;
    s.memory_bytes = UINT64_C(1) << 30; /* twice as much as the schedule looks ahead */
    CHECK_INT(pen__simulate(&s, &r, NULL), PEN_OK);
    CHECK_INT(r.fetch_unit, PEN_FETCH_BLOCKS);
    CHECK(r.requests_per_block < 1.1);
}

TEST(any_number_of_ranks_reads_about_as_much)
{
    static const uint32_t worlds[] = {2, 3, 5, 7, 24, 25, 48};
    PenSimSettings s = small();
    PenSimResult r;
    s.ranks = 1;
    s.memory_bytes = 192 << 20;
    s.effort = 1;
    s.seconds = 1;
    for (size_t i = 0; i < PEN_LEN(worlds); i++) {
        s.nodes = worlds[i];
        CHECK_INT(pen__simulate(&s, &r, NULL), PEN_OK);
        CHECK_INT(r.fetch_unit, PEN_FETCH_BLOCKS);
        CHECK(r.is_exact);
        CHECK(r.amplification < (192 / 2 % s.nodes ? 1.1 : 1.02));
        CHECK(r.requests_per_block < (192 / 2 % s.nodes ? 2.5 : 1.5));
    }
}

/* ---- what the constants say ------------------------------------------------------------------ */

/* One rank that computes in no time, and answers that all take as long. */
static PenSimSettings bare(void)
{
    PenSimSettings s = small();
    s.nodes = s.ranks = 1;
    s.memory_bytes = 256 << 20;
    s.step_ms = 0.01;
    s.latency_ms = s.latency_p99_ms = 100;
    s.connection_bytes_per_s = s.node_bytes_per_s = 0;
    s.failures = 0;
    s.shard_bytes = UINT64_C(1) << 40; /* one shard, one index */
    return s;
}

TEST(latency_and_requests_at_once_bound_the_rate)
{
    PenSimSettings s = bare();
    PenSimResult r;
    s.in_flight = 8;
    CHECK_INT(pen__simulate(&s, &r, NULL), PEN_OK);
    /* Of the first blocks single samples are requested. */
    CHECK(near(r.samples_per_s, 8 * 16 / 0.1, 0.1));
    CHECK_INT(r.hedges, 0);
    /* Manifest, index of the shard, and 64 samples of some 60 blocks and their indexes, 8 at a
     * time. */
    CHECK(r.first_batch_p50_s > 1 && r.first_batch_p50_s < 2.3);
}

TEST(the_start_is_requests_that_follow_each_other)
{
    PenSimSettings s = bare();
    PenSimResult r;
    s.batch = 8;         /* of no more blocks than are asked for at once in the beginning */
    s.block_samples = 1; /* which are read entirely */
    s.shuffle_buffer = 96;
    s.connect_ms = 0;
    CHECK_INT(pen__simulate(&s, &r, NULL), PEN_OK);
    CHECK(near(r.first_batch_p50_s, 0.3, 0.01)); /* manifest, index, blocks */
    CHECK_INT(r.tails, 1);                       /* of which many ask for the only one */
    s.opened = 1;
    CHECK_INT(pen__simulate(&s, &r, NULL), PEN_OK);
    CHECK(near(r.first_batch_p50_s, 0.2, 0.01));
    CHECK(r.manifest_peak_per_s == 0);
}

/* Of an epoch that is simulated in full, every request is counted: those that are sent a second
 * time because the first takes too long cost as much as any. */
TEST(hedged_requests_cost_money)
{
    PenSimSettings s = bare();
    PenSimResult r;
    s.latency_ms = 20;
    s.latency_p99_ms = 2000;
    s.seconds = 36000;
    CHECK_INT(pen__simulate(&s, &r, NULL), PEN_OK);
    CHECK(r.hedges > 20);
    CHECK(r.retries < r.hedges / 5);
    CHECK(near(r.requests_per_epoch, (double)r.requests, 0.001));
    CHECK(near(r.dollars_per_epoch, r.requests_per_epoch * r.dollars_per_million / 1e6, 1e-9));
}

TEST(bandwidth_bounds_the_rate)
{
    PenSimSettings s = bare();
    PenSimResult r;
    s.latency_p99_ms = 200; /* or all begin and end at once, and nothing comes in between */
    s.node_bytes_per_s = 4000000;
    CHECK_INT(pen__simulate(&s, &r, NULL), PEN_OK);
    CHECK(near(r.samples_per_s, 400, 0.1)); /* indexes of blocks are bytes, too */
    CHECK(near(r.node_bytes_per_s, 4e6, 0.05));
    CHECK(r.node_peak_bytes_per_s <= 4.001e6);
    s.node_bytes_per_s = 0;
    s.nodes = 2;
    s.store_bytes_per_s = 4000000;
    s.n_samples = 200000;
    s.seconds = 300;
    CHECK_INT(pen__simulate(&s, &r, NULL), PEN_OK);
    CHECK(near(r.samples_per_s, 400, 0.05));
}

TEST(decoding_and_steps_bound_the_rate)
{
    PenSimSettings s = bare();
    PenSimResult r;
    s.decode_ms = 64;
    CHECK_INT(pen__simulate(&s, &r, NULL), PEN_OK);
    CHECK(near(r.samples_per_s, 1000, 0.02));
    /* It reads ahead as far as there is room. */
    CHECK((double)r.memory_bytes > 0.95 * (double)r.memory_room);
    CHECK(r.memory_bytes <= r.memory_room);
    CHECK(r.node_bytes_per_s < 1.2 * 1000 * 10000);
    s.decode_ms = 0;
    s.step_ms = 128;
    CHECK_INT(pen__simulate(&s, &r, NULL), PEN_OK);
    CHECK(near(r.samples_per_s, 500, 0.001));
    CHECK(r.stall_share < 0.002 && r.longest_stall_s < 0.1);
}

TEST(a_prefix_takes_so_many_and_no_more)
{
    PenSimSettings s = bare();
    PenSimResult r;
    s.prefixes = 1;
    s.prefix_per_s = 20;
    s.seconds = 30;
    CHECK_INT(pen__simulate(&s, &r, NULL), PEN_OK);
    CHECK(r.throttles > 0);
    CHECK(r.prefix_peak_per_s > 20);
    CHECK(r.samples_per_s < 2.0 * 20 * 16); /* some were here before */
    CHECK(r.stall_share > 0.5);
    uint64_t throttles = r.throttles;
    s.prefix_per_s = 5500;
    CHECK_INT(pen__simulate(&s, &r, NULL), PEN_OK);
    CHECK(throttles > 0 && r.throttles == 0);
}

TEST(a_cache_is_of_use_in_the_second_epoch)
{
    PenSimSettings s = small();
    PenSimResult r;
    s.nodes = 1;
    s.cache_bytes = UINT64_C(1) << 40;
    CHECK_INT(pen__simulate(&s, &r, NULL), PEN_OK);
    CHECK_INT(r.block_requests, 2496); /* each is fetched once, and no index alone */
    CHECK_INT(r.index_requests, 0);
    CHECK_INT(r.part_fetches, 0);
    CHECK(r.second_epoch < 0.06);
    s.epoch = 1;
    CHECK_INT(pen__simulate(&s, &r, NULL), PEN_OK);
    CHECK(r.block_requests <= 8); /* some of the last 4 blocks, which were in no full batch */
    CHECK(r.hits >= 2488);
    CHECK(r.requests_per_epoch < s.ranks + 20); /* the manifest */
    s.cache_bytes = s.n_samples * s.sample_bytes / 2;
    CHECK_INT(pen__simulate(&s, &r, NULL), PEN_OK);
    CHECK(near(r.requests_per_epoch, (double)r.requests, 0.1));
    CHECK(near((double)r.hits / (double)(r.hits + r.block_requests), 0.5, 0.05));
    CHECK(near(r.second_epoch, 0.5, 0.1));
}

TEST(sticky_ranks_keep_a_cache_useful)
{
    PenSimSettings s = small();
    PenSimResult r;
    s.nodes = 8;
    s.ranks = 1;
    s.cache_bytes = s.n_samples * s.sample_bytes / 8 * 2;
    CHECK_INT(pen__simulate(&s, &r, NULL), PEN_OK);
    CHECK(near(r.second_epoch, 7 / 8.0, 0.05)); /* who had it before is chance */
    s.sticky = 1;
    s.epoch = 1;
    CHECK_INT(pen__simulate(&s, &r, NULL), PEN_OK);
    CHECK(r.second_epoch < 0.1);
    CHECK((double)r.hits > 0.95 * 2500);
}

/* ---- what is refused ------------------------------------------------------------------------- */

static int refused(const PenSimSettings *s, PenError *err)
{
    PenSimResult r = {.requests = 77};
    int status = pen__simulate(s, &r, err);
    return r.requests == 77 ? status : 1;
}

#define REFUSED(field, value, text)                                                                \
    do {                                                                                           \
        PenSimSettings s = small();                                                                \
        PenError err = {0};                                                                        \
        s.field = value;                                                                           \
        CHECK_INT(refused(&s, &err), PEN_E_INVALID);                                               \
        CHECK(strstr(err.message, text));                                                          \
    } while (0)

TEST(settings_that_make_no_sense_are_refused)
{
    REFUSED(nodes, 0, "nodes: expected 1 to 65536, found 0");
    REFUSED(nodes, 65537, "nodes");
    REFUSED(ranks, 0, "ranks");
    REFUSED(ranks, 1u << 20, "expected at most 1048576 ranks");
    REFUSED(batch, 0, "batch");
    REFUSED(step_ms, -1, "step_ms: expected 0 to 3600000, found -1");
    REFUSED(step_ms, NAN, "step_ms");
    REFUSED(step_ms, 0, "step_ms and decode_ms");
    REFUSED(latency_p99_ms, 50, "latency_p99_ms: expected no less than latency_ms, 100, found 50");
    REFUSED(prefetch, 0, "prefetch: expected 1 to");
    REFUSED(prefixes, 257, "prefixes");
    REFUSED(failures, 1001, "failures: expected 0 to 1000");
    REFUSED(seconds, 0, "seconds");
    REFUSED(effort, 0, "effort");
    REFUSED(spread_s, -1, "spread: expected 0 to 1000000, found -1");
    REFUSED(n_samples, 0, "expected a pack, or samples and sample_bytes");
    REFUSED(n_samples, UINT64_MAX, "samples");
    REFUSED(sample_bytes, UINT64_MAX / 40000, "sample_bytes: expected 0 to 1099511627776");
    REFUSED(n_samples, 511, "expected at least one batch of samples for each rank");
    PenSimSettings s = small();
    PenError err = {0};
    s.memory_bytes = 1 << 20;
    CHECK_INT(refused(&s, &err), PEN_E_LIMIT);
    CHECK(strstr(err.message, "increase the memory"));
}

TEST(little_effort_is_fewer_nodes_then_fewer_seconds)
{
    PenSimSettings s = small();
    PenSimResult all, some, few;
    s.n_samples = 100000000;
    s.nodes = 32;
    s.seconds = 5;
    CHECK_INT(pen__simulate(&s, &all, NULL), PEN_OK);
    CHECK_INT(all.followed, 32);
    s.effort = 0.6;
    CHECK_INT(pen__simulate(&s, &some, NULL), PEN_OK);
    CHECK(some.followed >= 4 && some.followed < 20);
    CHECK(some.seconds == 5);
    /* They stand for the others. */
    CHECK(near(some.samples_per_s, all.samples_per_s, 0.03));
    CHECK(near(some.first_batch_p50_s, all.first_batch_p50_s, 0.1));
    CHECK(near(some.node_bytes_per_s, all.node_bytes_per_s, 0.05));
    CHECK(near(some.prefix_per_s, all.prefix_per_s, 0.05));
    CHECK(near(some.prefix_peak_per_s, all.prefix_peak_per_s, 0.3));
    CHECK(near(some.manifest_peak_per_s, all.manifest_peak_per_s, 0.01));
    CHECK(near(some.requests_per_epoch, all.requests_per_epoch, 0.02));
    CHECK(near((double)some.block_fetches, (double)all.block_fetches, 0.01));
    s.effort = 0.05;
    CHECK_INT(pen__simulate(&s, &few, NULL), PEN_OK);
    CHECK_INT(few.followed, 4);
    CHECK(few.seconds < 5);
}

int main(int argc, char **argv)
{
    TEST_START(argc, argv);
    RUN(the_same_seed_gives_the_same_numbers);
    RUN(an_epoch_fetches_each_block_once);
    RUN(the_default_buffer_is_a_gibibyte_of_the_pack);
    RUN(little_memory_makes_more_requests);
    RUN(much_memory_makes_no_more_requests);
    RUN(any_number_of_ranks_reads_about_as_much);
    RUN(latency_and_requests_at_once_bound_the_rate);
    RUN(the_start_is_requests_that_follow_each_other);
    RUN(hedged_requests_cost_money);
    RUN(bandwidth_bounds_the_rate);
    RUN(decoding_and_steps_bound_the_rate);
    RUN(a_prefix_takes_so_many_and_no_more);
    RUN(a_cache_is_of_use_in_the_second_epoch);
    RUN(sticky_ranks_keep_a_cache_useful);
    RUN(settings_that_make_no_sense_are_refused);
    RUN(little_effort_is_fewer_nodes_then_fewer_seconds);
    return TEST_END();
}
