/* SPDX-License-Identifier: Apache-2.0 */
/* The counters of a loader: waits by their percentiles, stages by their shares, and what a pass
 * adds to them. */
#include "load/counters.h"

#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "load_help.h"
#include "tools.h"

#define MS UINT64_C(1000000)

TEST(percentiles_are_those_of_the_waits)
{
    PenLoadCounters c = {0};
    PenLoaderStats s = {0};
    for (uint64_t i = 1; i <= 100; i++)
        pen__counters_waited(&c, i * MS, 3);
    pen__counters_report(&c, 100 * MS, &s);
    CHECK(s.wait_p50_ns >= 50 * MS && s.wait_p50_ns <= 50 * MS * 9 / 8);
    CHECK(s.wait_p95_ns >= 95 * MS && s.wait_p95_ns <= 100 * MS);
    CHECK(s.wait_p99_ns >= 99 * MS && s.wait_p99_ns <= 100 * MS);
    CHECK_INT(s.wait_max_ns, 100 * MS);
    CHECK(s.ready_mean == 3.0);
}

TEST(without_waits_all_are_0)
{
    PenLoadCounters c = {0};
    PenLoaderStats s = {.wait_p50_ns = 1, .ready_mean = 1};
    pen__counters_report(&c, 0, &s);
    CHECK_INT(s.wait_p50_ns, 0);
    CHECK_INT(s.wait_p99_ns, 0);
    CHECK(s.ready_mean == 0);
    for (int i = 0; i < PEN_LOAD_STAGE_COUNT; i++)
        CHECK_INT(s.stage_ns[i], 0);
}

TEST(every_wait_is_in_one_bucket)
{
    PenLoadCounters c = {0};
    PenLoaderStats s = {0};
    uint64_t n = 0;
    for (uint64_t ns = 1; ns < UINT64_C(1) << 60; ns *= 3, n++)
        pen__counters_waited(&c, ns, 0);
    pen__counters_report(&c, UINT64_MAX, &s);
    uint64_t sum = 0;
    for (int i = 0; i < PEN_WAIT_BUCKETS; i++)
        sum += s.wait_buckets[i];
    CHECK_INT(sum, n);
    CHECK(s.wait_buckets[PEN_WAIT_BUCKETS - 1] > 0);
}

TEST(a_bucket_ends_at_a_power_of_two)
{
    PenLoadCounters c = {0};
    PenLoaderStats s = {0};
    pen__counters_waited(&c, 500, 0);
    pen__counters_waited(&c, 900 * 1000, 0);
    pen__counters_report(&c, MS, &s);
    CHECK_INT(s.wait_buckets[0], 1);  /* at most 1 us */
    CHECK_INT(s.wait_buckets[10], 1); /* more than 512 us, at most 1,024 us */
}

TEST(stages_share_the_time_as_the_timed_samples_do)
{
    PenLoadCounters c = {0};
    PenLoaderStats s = {0};
    c.ns_of[PEN_ROLE_READ][PEN_ACTIVITY_LOCATING] = 10 * MS;
    c.ns_of[PEN_ROLE_READ][PEN_ACTIVITY_READING] = 30 * MS;
    c.ns_of[PEN_ROLE_READ][PEN_ACTIVITY_WAITING] = 7 * MS;
    c.ns_of[PEN_ROLE_READ][PEN_ACTIVITY_IDLE] = 8 * MS;
    c.ns_of[PEN_ROLE_DECODE][PEN_ACTIVITY_DECODING] = 1000 * MS;
    c.ns_of[PEN_ROLE_DECODE][PEN_ACTIVITY_IDLE] = 9 * MS;
    c.ns_of[PEN_ROLE_FETCH][PEN_ACTIVITY_READING] = 500 * MS;
    c.ns_of[PEN_ROLE_FETCH][PEN_ACTIVITY_IDLE] = 6 * MS;
    const PenStageClock clock = {.ns = {[PEN_TIMED_READ] = 4 * MS,
                                        [PEN_TIMED_VERIFY] = 1 * MS,
                                        [PEN_TIMED_DECODE] = 100 * MS,
                                        [PEN_TIMED_ROWS] = 30 * MS,
                                        [PEN_TIMED_STORE] = 10 * MS}};
    pen__counters_add_clock(&c, &clock);
    pen__counters_report(&c, 0, &s);
    CHECK_INT(s.stage_ns[PEN_LOAD_STAGE_FETCH], 500 * MS);
    CHECK_INT(s.stage_ns[PEN_LOAD_STAGE_READ], 30 * MS);
    CHECK_INT(s.stage_ns[PEN_LOAD_STAGE_VERIFY], 10 * MS);
    CHECK_INT(s.stage_ns[PEN_LOAD_STAGE_DECODE], 700 * MS);
    CHECK_INT(s.stage_ns[PEN_LOAD_STAGE_RESAMPLE], 200 * MS);
    CHECK_INT(s.stage_ns[PEN_LOAD_STAGE_STORE], 100 * MS);
    CHECK_INT(s.ns_memory_wait, 7 * MS);
    CHECK_INT(s.ns_read_idle, 8 * MS);
    CHECK_INT(s.ns_decode_idle, 9 * MS);
    CHECK_INT(s.ns_fetch_idle, 6 * MS);
}

TEST(a_sample_that_waits_for_a_core_counts_for_less)
{
    PenLoadCounters c = {0};
    PenLoaderStats s = {0};
    c.ns_of[PEN_ROLE_DECODE][PEN_ACTIVITY_DECODING] = 1000 * MS;
    const PenStageClock usual = {.ns = {[PEN_TIMED_DECODE] = 10 * MS, [PEN_TIMED_ROWS] = 2 * MS},
                                 .decode_cpu_ns = 10 * MS};
    const PenStageClock interrupted = {
        .ns = {[PEN_TIMED_DECODE] = 100 * MS, [PEN_TIMED_ROWS] = 100 * MS},
        .decode_cpu_ns = 10 * MS};
    for (int i = 0; i < 10; i++)
        pen__counters_add_clock(&c, i ? &usual : &interrupted); /* the latter counts for 1 ms */
    pen__counters_report(&c, 0, &s);
    CHECK_INT(s.stage_ns[PEN_LOAD_STAGE_DECODE] / MS, 791); /* 72 of 91 */
    CHECK_INT(s.stage_ns[PEN_LOAD_STAGE_RESAMPLE] / MS, 208);
    CHECK_INT(s.ns_decode_cpu / MS, 526); /* 100 of 190 */
}

TEST(a_difference_is_what_was_counted_since)
{
    PenLoadCounters before = {.batches = 3, .ns_wait = 5}, now = {.batches = 10, .ns_wait = 6};
    PenLoaderStats s = {0};
    before.waits[40] = 1;
    now.waits[40] = 1;
    now.waits[8] = 1;
    pen__counters_subtract(&now, &before);
    pen__counters_report(&now, MS, &s);
    CHECK_INT(s.batches, 7);
    CHECK_INT(s.ns_wait, 1);
    CHECK_INT(s.wait_p99_ns, pen__log_bin_end_ns(8));
}

/* ---- of a loader ---- */

static PenPack *pack;
enum { N = 400, BATCH = 20 };

static uint64_t busy_ns(const PenLoaderStats *s)
{
    uint64_t sum = 0;
    for (int i = 0; i < PEN_LOAD_STAGE_COUNT; i++)
        sum += s->stage_ns[i];
    return sum;
}

static uint64_t waits(const PenLoaderStats *s)
{
    uint64_t sum = 0;
    for (int i = 0; i < PEN_WAIT_BUCKETS; i++)
        sum += s->wait_buckets[i];
    return sum;
}

/* The time of each thread is divided between its stages and its waits. What was reported of a stage
 * stays, although later samples divide the time anew, so the sum of the stages may be more. */
static bool is_time_counted(const PenLoaderStats *s)
{
    uint64_t threads = s->threads + s->io_threads;
    uint64_t counted = busy_ns(s) + s->ns_read_idle + s->ns_decode_idle + s->ns_memory_wait;
    return counted <= s->ns_elapsed * threads / 100 * 120 &&
           counted >= s->ns_elapsed * threads / 100 * 90;
}

TEST(a_loader_counts_each_epoch_and_all)
{
    PenError err = {0};
    PenLoader *l = NULL;
    PenLoaderSettings set = help_loader_settings(BATCH);
    set.threads = 2;
    CHECK_INT(pen_loader_open(pack, &set, &l, &err), PEN_OK);
    PenLoaderStats all, epoch;
    pen_loader_epoch_stats(l, &epoch);
    CHECK_INT(epoch.batches, 0);
    CHECK_INT(epoch.ns_elapsed, 0);
    for (uint64_t pass = 1; pass <= 3; pass++) {
        PenSha256 hash;
        pen__sha256_init(&hash);
        CHECK_INT(help_drain(l, &hash, -1, &err), N / BATCH);
        pen_loader_stats(l, &all);
        pen_loader_epoch_stats(l, &epoch);
        CHECK_INT(epoch.batches, N / BATCH);
        CHECK_INT(epoch.samples, N);
        CHECK_INT(waits(&epoch), N / BATCH);
        CHECK_INT(all.batches, pass * N / BATCH);
        CHECK_INT(waits(&all), pass * N / BATCH);
        CHECK(all.bytes_read >= epoch.bytes_read && epoch.bytes_read > 0);
        CHECK(all.wait_max_ns >= epoch.wait_max_ns);
        CHECK(epoch.ns_elapsed > 0 && epoch.ns_elapsed < all.ns_elapsed);
    }
    /* On a busy machine threads may start late; that counts less and less. */
    for (int i = 0; i < 20 && !is_time_counted(&all); i++) {
        PenSha256 hash;
        pen__sha256_init(&hash);
        CHECK_INT(help_drain(l, &hash, -1, &err), N / BATCH);
        pen_loader_stats(l, &all);
    }
    CHECK(is_time_counted(&all));
    CHECK(all.stage_ns[PEN_LOAD_STAGE_READ] > 0);
    CHECK(all.stage_ns[PEN_LOAD_STAGE_VERIFY] > 0);
    CHECK(all.stage_ns[PEN_LOAD_STAGE_DECODE] > 0);
    CHECK(all.stage_ns[PEN_LOAD_STAGE_RESAMPLE] > 0);
    CHECK(all.stage_ns[PEN_LOAD_STAGE_STORE] > 0);
    CHECK_INT(all.stage_ns[PEN_LOAD_STAGE_FETCH], 0);
    pen_loader_close(&l);
}

TEST(an_epoch_that_has_ended_stays_as_it_is)
{
    PenError err = {0};
    PenLoader *l = NULL;
    PenLoaderSettings set = help_loader_settings(BATCH);
    PenLoaderStats at_end, later;
    PenSha256 hash;
    pen__sha256_init(&hash);
    CHECK_INT(pen_loader_open(pack, &set, &l, &err), PEN_OK);
    CHECK_INT(help_drain(l, &hash, -1, &err), N / BATCH);
    pen_loader_epoch_stats(l, &at_end);
    usleep(20000); /* threads wait meanwhile */
    pen_loader_epoch_stats(l, &later);
    CHECK(at_end.ns_decode_idle > 0);
    CHECK_INT(later.ns_decode_idle, at_end.ns_decode_idle);
    CHECK_INT(later.ns_read_idle, at_end.ns_read_idle);
    CHECK_INT(later.ns_elapsed, at_end.ns_elapsed);
    CHECK_INT(help_drain(l, &hash, 1, &err), 1);
    pen_loader_epoch_stats(l, &later);
    CHECK_INT(later.batches, 1); /* of the next one */
    pen_loader_close(&l);
}

TEST(every_counter_has_a_name_and_a_value)
{
    PenLoaderStats s = {.threads = 3, .samples = 1 << 20};
    s.ns_wait = 1500 * MS;
    s.ready_mean = 2.5;
    s.stage_ns[PEN_LOAD_STAGE_STORE] = 250 * MS;
    int found = 0, n = 0;
    for (; pen_stat_name(n); n++) {
        double value = pen_stat_value(&s, n);
        found += !strcmp(pen_stat_name(n), "threads") && value == 3 && pen_stat_is_count(n);
        found += !strcmp(pen_stat_name(n), "samples") && value == 1 << 20 && pen_stat_is_count(n);
        found += !strcmp(pen_stat_name(n), "wait_seconds") && value == 1.5;
        found += !strcmp(pen_stat_name(n), "ready_mean") && value == 2.5 && !pen_stat_is_count(n);
        found += !strcmp(pen_stat_name(n), "store_seconds") && value == 0.25;
    }
    CHECK_INT(found, 5);
    CHECK(!pen_stat_name(-1));
    CHECK(pen_stat_value(&s, n) == 0 && pen_stat_value(&s, -1) == 0);
    CHECK(!pen_stat_is_count(n) && !pen_stat_is_count(-1));
}

int main(int argc, char **argv)
{
    TEST_START(argc, argv);
    RUN(percentiles_are_those_of_the_waits);
    RUN(without_waits_all_are_0);
    RUN(every_wait_is_in_one_bucket);
    RUN(a_bucket_ends_at_a_power_of_two);
    RUN(stages_share_the_time_as_the_timed_samples_do);
    RUN(a_sample_that_waits_for_a_core_counts_for_less);
    RUN(a_difference_is_what_was_counted_since);
    RUN(every_counter_has_a_name_and_a_value);
    help_begin();
    pack = help_load_pack("pack.pen", N, -1, PEN_MODE_KEEP);
    RUN(a_loader_counts_each_epoch_and_all);
    RUN(an_epoch_that_has_ended_stays_as_it_is);
    pen_pack_close(&pack);
    help_end();
    return TEST_END();
}
