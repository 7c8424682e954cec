/* SPDX-License-Identifier: Apache-2.0 */
/* Simulated packing: the same numbers each time, requests as a count by hand gives them, and the
 * bottleneck that the constants make. */
#include <math.h>
#include <string.h>

#include "test.h"

#include <penstock/simulate.h>

enum { BLOCK = 16, SAMPLE = 100000 };

typedef struct Job {
    PenSimSettings job;
    PenSimPackingSettings s;
} Job;

/* 2 nodes with 2 tasks each at a time: 8 tasks of 3,000 samples, each with shards of 10 blocks. */
static void small(Job *j)
{
    pen_sim_settings_init(&j->job);
    pen_sim_packing_settings_init(&j->s);
    j->job.n_samples = 24000;
    j->job.sample_bytes = SAMPLE;
    j->job.block_samples = BLOCK;
    j->job.shard_bytes = (uint64_t)10 * BLOCK * SAMPLE;
    j->job.nodes = 2;
    j->job.failures = 0;
    j->job.latency_p99_ms = j->job.latency_ms;
    j->s.job = &j->job;
    j->s.tasks = 8;
    j->s.tasks_per_node = 2;
    j->s.sample_ms = j->s.write_ms = 0;
}

static void fail_with(const char *message)
{
    CHECK_STR(message, "");
}

static PenSimPackingResult run(const Job *j)
{
    PenSimPackingResult r = {0};
    PenError err;
    if (pen_simulate_packing(&j->s, &r, &err) < 0)
        fail_with(err.message);
    return r;
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
    Job j;
    small(&j);
    j.job.failures = 20;
    j.s.lost = 30;
    PenSimPackingResult a = run(&j), b = run(&j);
    CHECK(a.retries > 0 && a.retries == b.retries);
    CHECK(a.tasks_s == b.tasks_s && a.finalise_s == b.finalise_s && a.dollars == b.dollars);
    j.job.seed = 1;
    CHECK(run(&j).tasks_s != a.tasks_s);
}

/* A task of 3,000 samples: 187 blocks in 19 shards, a rest of 8 samples. */
TEST(requests_are_counted)
{
    Job j;
    small(&j);
    PenSimPackingResult r = run(&j);
    CHECK_INT(r.followed, 2);
    CHECK_INT(r.task_samples, 3000);
    CHECK_INT(r.simulated_samples, 3000);
    CHECK_INT(r.n_shards, 8 * 19 + 1);
    CHECK(r.source_gets == 24000);
    CHECK(r.retries == 0 && r.hedges == 0 && r.throttles == 0);
    CHECK(r.posts == 8 * (1 + 2 * 20) + 3 + 2);
    /* Shards of 16 MB are two parts, the last one of 7 blocks as well; the rest one; the record. */
    CHECK(r.puts == 8 * (19 * 2 + 1 + 1) + 2 + 2);
    /* Of the sources: the first page, the folders, and 23 ranges of 11 folders side by side, each
     * of which is a little more than a page, but for the first and the last. */
    CHECK(r.lists == 8 + (2 + 1 + 21 * 2 + 1) + 3);
    double dollars =
        (r.source_gets + r.gets + r.heads) * 0.4e-6 + (r.puts + r.posts + r.lists) * 5e-6;
    CHECK(near(r.dollars, dollars, 1e-9));
}

TEST(concurrent_requests_bound_the_rate)
{
    Job j;
    small(&j);
    j.job.connect_ms = 0;
    j.job.in_flight = 16;
    j.job.connection_bytes_per_s = 0;
    j.job.shard_bytes = 512 << 20;
    PenSimPackingResult r = run(&j);
    CHECK_INT(r.limit, PEN_SIM_LIMIT_REQUESTS);
    CHECK(near(r.samples_per_s, 4 * 16 / 0.1, 0.15));
    CHECK(r.requests_busy > 0.8);
    j.job.in_flight = 8;
    CHECK(near(run(&j).samples_per_s, 4 * 8 / 0.1, 0.15));
}

TEST(what_is_slowest_is_the_bottleneck)
{
    Job j;
    small(&j);
    j.job.latency_ms = j.job.latency_p99_ms = 10;
    j.job.shard_bytes = 512 << 20;
    j.s.sample_ms = 20;
    PenSimPackingResult r = run(&j);
    CHECK_INT(r.limit, PEN_SIM_LIMIT_CORES);
    CHECK(near(r.samples_per_s, 4 * 4 / 0.02, 0.1));
    j.s.sample_ms = 0;
    j.s.write_ms = 5;
    r = run(&j);
    CHECK_INT(r.limit, PEN_SIM_LIMIT_WRITER);
    CHECK(near(r.samples_per_s, 4 / 0.005, 0.1));
    j.s.write_ms = 0;
    j.job.node_bytes_per_s = 50000000;
    r = run(&j);
    CHECK_INT(r.limit, PEN_SIM_LIMIT_NETWORK);
    CHECK(near(r.samples_per_s, 2 * 50e6 / SAMPLE, 0.15));
}

TEST(a_prefix_of_the_sources_takes_so_many_and_no_more)
{
    Job j;
    small(&j);
    j.s.source_prefixes = 1;
    j.job.prefix_per_s = 500;
    PenSimPackingResult r = run(&j);
    CHECK_INT(r.limit, PEN_SIM_LIMIT_STORE);
    CHECK(r.throttles > 0);
    CHECK(r.samples_per_s <= 500 * 1.1);
    CHECK(r.source_gets > 24000);
}

TEST(tasks_that_die_are_repeated)
{
    Job j;
    small(&j);
    PenSimPackingResult without = run(&j);
    CHECK_INT(without.runs, 8);
    j.s.lost = 25;
    PenSimPackingResult r = run(&j);
    CHECK_INT(r.runs, 10);
    CHECK(r.source_gets > 24000 && r.source_gets < 24000 + 2 * 3000);
    CHECK(r.tasks_s > without.tasks_s && r.tasks_s < 3 * without.tasks_s);
    CHECK(near(r.task_s, without.task_s, 1e-9));
}

/* A start of some tasks, for all of them. */
TEST(little_effort_gives_about_the_same)
{
    Job j;
    small(&j);
    j.job.nodes = 16;
    j.s.tasks = 64;
    j.job.n_samples = 640000;
    j.job.effort = 1000;
    PenSimPackingResult all = run(&j);
    CHECK_INT(all.followed, 16);
    CHECK_INT(all.simulated_samples, 10000);
    j.job.effort = 0.05;
    PenSimPackingResult some = run(&j);
    CHECK(some.followed >= 4 && some.followed < 16);
    CHECK(some.simulated_samples < 2000);
    CHECK(near(some.tasks_s, all.tasks_s, 0.05));
    CHECK(near(some.samples_per_s, all.samples_per_s, 0.05));
    CHECK(some.puts == all.puts && some.posts == all.posts && some.source_gets == all.source_gets);
}

static int steps;

static int stop_later(void *ctx, double seconds)
{
    (void)ctx;
    (void)seconds;
    return ++steps == 2;
}

TEST(it_can_be_stopped)
{
    Job j;
    PenSimPackingResult r;
    small(&j);
    j.job.progress = stop_later;
    CHECK_INT(pen_simulate_packing(&j.s, &r, NULL), PEN_E_CANCELLED);
    CHECK_INT(steps, 2);
}

static void refused(const Job *j, const char *what)
{
    PenSimPackingResult r;
    PenError err;
    CHECK_INT(pen_simulate_packing(&j->s, &r, &err), PEN_E_INVALID);
    CHECK(strstr(err.message, what) != NULL);
}

TEST(settings_that_make_no_sense_are_refused)
{
    Job j;
    small(&j);
    j.s.tasks = 24001;
    refused(&j, "tasks");
    small(&j);
    j.s.tasks_per_node = 0;
    refused(&j, "tasks of a node");
    small(&j);
    j.s.threads = 300;
    refused(&j, "threads");
    small(&j);
    j.s.write_ms = NAN;
    refused(&j, "time of a sample");
    small(&j);
    j.s.source_prefixes = 257;
    refused(&j, "prefixes");
    small(&j);
    j.s.lost = 101;
    refused(&j, "lost");
    small(&j);
    j.job.n_samples = 0;
    refused(&j, "samples");
    small(&j);
    j.job.latency_ms = -1;
    refused(&j, "milliseconds");
}

int main(int argc, char **argv)
{
    TEST_START(argc, argv);
    RUN(the_same_seed_gives_the_same_numbers);
    RUN(requests_are_counted);
    RUN(concurrent_requests_bound_the_rate);
    RUN(what_is_slowest_is_the_bottleneck);
    RUN(a_prefix_of_the_sources_takes_so_many_and_no_more);
    RUN(tasks_that_die_are_repeated);
    RUN(little_effort_gives_about_the_same);
    RUN(it_can_be_stopped);
    RUN(settings_that_make_no_sense_are_refused);
    return TEST_END();
}
