/* SPDX-License-Identifier: Apache-2.0 */
/* What shaped counters and rates are taken for, and what is predicted from them. */
#include <stdlib.h>
#include <string.h>

#include "base/attr.h"
#include "test.h"
#include "tools.h"

/* Of 100 s, in which 1,000 samples were loaded; times in seconds. */
typedef struct Case {
    const char *expected, *second;
    double wait, fetch, fetch_idle, read, verify, read_idle, memory;
    double decode, resample, store, decode_idle, decode_cpu;
    uint32_t io_threads, wanted;
    uint64_t slots;
} Case;

static uint64_t ns(double seconds)
{
    return (uint64_t)(seconds * 1e9);
}

static PenLoaderStats stats_of(const Case *c)
{
    PenLoaderStats s = {.threads = 1,
                        .node_ranks = 1,
                        .io_threads = c->io_threads,
                        .io_threads_wanted = c->wanted,
                        .slots_limit = c->slots,
                        .ns_elapsed = ns(100),
                        .batches = 10,
                        .samples = 1000,
                        .bytes_read = 1000 * 1000,
                        .ns_wait = ns(c->wait),
                        .ns_fetch_idle = ns(c->fetch_idle),
                        .ns_read_idle = ns(c->read_idle),
                        .ns_memory_wait = ns(c->memory),
                        .ns_decode_idle = ns(c->decode_idle),
                        .ns_decode_cpu = ns(c->decode_cpu)};
    s.stage_ns[PEN_LOAD_STAGE_FETCH] = ns(c->fetch);
    s.stage_ns[PEN_LOAD_STAGE_READ] = ns(c->read);
    s.stage_ns[PEN_LOAD_STAGE_VERIFY] = ns(c->verify);
    s.stage_ns[PEN_LOAD_STAGE_DECODE] = ns(c->decode);
    s.stage_ns[PEN_LOAD_STAGE_RESAMPLE] = ns(c->resample);
    s.stage_ns[PEN_LOAD_STAGE_STORE] = ns(c->store);
    return s;
}

static const Case decode_bound = {
    .wait = 99, .read = 5, .read_idle = 95, .decode = 80, .resample = 10, .store = 10};
static const Case fetch_bound = {.wait = 95,
                                 .fetch = 6300,
                                 .fetch_idle = 100,
                                 .read = 2,
                                 .read_idle = 198,
                                 .decode = 30,
                                 .decode_idle = 70,
                                 .io_threads = 64,
                                 .wanted = 64};
static const Case read_bound = {.wait = 95,
                                .read = 195,
                                .verify = 2,
                                .read_idle = 3,
                                .decode = 25,
                                .decode_idle = 75,
                                .io_threads = 2,
                                .wanted = 2};

static PenDiagnosis diagnose(const Case *c, const PenRunFacts *facts)
{
    PenLoaderStats s = stats_of(c);
    PenDiagnosis d;
    pen_diagnose(&s, facts, &d);
    return d;
}

static const PenAdvice *advice_of(const PenDiagnosis *d, const char *change)
{
    for (uint32_t i = 0; i < d->n_advices; i++)
        if (strcmp(d->advices[i].change, change) == 0)
            return &d->advices[i];
    return NULL;
}

/* ---- the bottleneck ---- */

TEST(the_bottleneck_follows_the_rules)
{
    static const Case cases[] = {
        {"consumer", NULL, .wait = 1, .decode = 50, .decode_idle = 50},
        {"consumer", "decode", .wait = 1, .decode = 95, .decode_idle = 5},
        {"decode", "consumer", .wait = 5, .decode = 99, .decode_idle = 1},
        {"decode", NULL, .wait = 50, .decode = 85, .decode_idle = 15},
        {"decode", NULL, .wait = 50, .decode = 60, .decode_idle = 40},
        {"unknown", NULL, .wait = 60, .decode = 49, .decode_idle = 51},
        {"resample", "decode", .wait = 50, .decode = 55, .resample = 60, .store = 40},
        {"resample", NULL, .wait = 50, .decode = 40, .resample = 60, .store = 40},
        {"store", NULL, .wait = 50, .decode = 40, .resample = 50, .store = 61},
        {"memory", NULL, .wait = 70, .read = 10, .memory = 30, .read_idle = 60, .decode_idle = 100},
        {"unknown", NULL, .wait = 70, .read = 20, .memory = 20, .read_idle = 60,
         .decode_idle = 100},
        /* A full queue before busy decoders is no lack of memory. */
        {"decode", NULL, .wait = 70, .read = 10, .memory = 80, .read_idle = 10, .decode = 100},
        {"fetch", NULL, .wait = 90, .fetch = 640, .fetch_idle = 10, .read_idle = 100,
         .decode_idle = 10, .io_threads = 64, .wanted = 64},
        {"memory", NULL, .wait = 90, .fetch = 640, .fetch_idle = 10, .read_idle = 100,
         .decode_idle = 10, .io_threads = 4, .wanted = 64},
        {"unknown", NULL, .wait = 95, .fetch = 40, .fetch_idle = 360, .read_idle = 100, .decode = 9,
         .decode_idle = 91, .io_threads = 4, .wanted = 64},
        {"memory", NULL, .wait = 90, .decode = 70, .decode_idle = 30, .slots = 2},
        {"decode", NULL, .wait = 90, .decode = 90, .decode_idle = 10, .slots = 2},
        {"read", NULL, .wait = 90, .read = 90, .verify = 1, .read_idle = 5, .decode_idle = 90},
        {"verify", NULL, .wait = 90, .read = 40, .verify = 50, .read_idle = 5, .decode_idle = 90},
        {"unknown", NULL, .wait = 90},
        {"unknown", NULL, .wait = 90, .fetch = 84, .fetch_idle = 6316, .io_threads = 64},
        {"fetch", NULL, .wait = 90, .fetch = 2000, .fetch_idle = 4400, .io_threads = 64},
    };
    for (size_t i = 0; i < PEN_LEN(cases); i++) {
        PenLoaderStats s = stats_of(&cases[i]);
        PenDiagnosis d = diagnose(&cases[i], NULL);
        CHECK_STR(d.bottleneck, cases[i].expected);
        CHECK_STR(d.second ? d.second : "", cases[i].second ? cases[i].second : "");
        CHECK_STR(pen_loader_bottleneck(&s), cases[i].expected);
    }
}

TEST(without_a_batch_nothing_is_known)
{
    PenLoaderStats none = {0};
    CHECK_STR(pen_loader_bottleneck(&none), "unknown");
    none.ns_elapsed = 100; /* no batch was requested yet */
    CHECK_STR(pen_loader_bottleneck(&none), "unknown");
    PenDiagnosis d = diagnose(&(Case){.wait = 100}, NULL);
    CHECK(d.n_stages == 0 && d.n_advices == 0);
}

TEST(only_what_was_counted_later_counts)
{
    Case before = read_bound, after = read_bound;
    after.decode += 100;
    after.wait += 1;
    PenLoaderStats since = stats_of(&before), s = stats_of(&after);
    PenRunFacts facts = {0};
    PenDiagnosis d;
    facts.since = &since;
    s.ns_elapsed = ns(200);
    s.samples = 3000;
    s.batches = 30;
    s.ns_wait = ns(194);
    pen_diagnose(&s, &facts, &d);
    CHECK_STR(d.bottleneck, "decode");
    CHECK(d.per_second == 20);
    CHECK(d.wait_share > 0.98 && d.wait_share < 1);
}

/* ---- stages ---- */

static double rate_of(const PenDiagnosis *d, const char *name, double *ratio)
{
    for (uint32_t i = 0; i < d->n_stages; i++)
        if (strcmp(d->stages[i].name, name) == 0) {
            *ratio = d->stages[i].ratio;
            return d->stages[i].per_second;
        }
    return 0;
}

static int near(double a, double b)
{
    return a > 0.999 * b && a < 1.001 * b;
}

TEST(stages_are_compared_with_the_bottleneck)
{
    double ratio;
    PenDiagnosis d = diagnose(&decode_bound, NULL);
    CHECK(near(rate_of(&d, "decode", &ratio), 12.5) && near(ratio, 1));
    CHECK(near(rate_of(&d, "resample", &ratio), 100) && near(ratio, 8));
    CHECK(near(rate_of(&d, "read", &ratio), 200) && near(ratio, 16));
    CHECK(rate_of(&d, "fetch", &ratio) == 0 && rate_of(&d, "consumer", &ratio) == 0);
    d = diagnose(&(Case){.wait = 50, .decode = 90, .decode_idle = 10}, NULL);
    CHECK(near(rate_of(&d, "consumer", &ratio), 20));
}

TEST(reading_is_as_fast_as_it_was_measured)
{
    double ratio;
    PenRunFacts facts = {0};
    PenMeasured measured = {.read = 300, .read_cold = 6.25};
    facts.measured = &measured;
    PenDiagnosis d = diagnose(&decode_bound, &facts);
    CHECK(near(rate_of(&d, "decode", &ratio), 12.5) && near(ratio, 1));
    CHECK(rate_of(&d, "read", &ratio) == 300);
    CHECK(rate_of(&d, "read_cold", &ratio) == 6.25 && near(ratio, 0.5));
    d = diagnose(&fetch_bound, &facts);
    CHECK(rate_of(&d, "fetch", &ratio) == 300);
}

/* ---- advice ---- */

TEST(advice_is_sorted_by_its_gain)
{
    PenRunFacts facts = {0};
    PenMeasured measured = {.raw_ratio = 10, .area_ratio = 0.5, .short_side = 256, .read = 1000};
    facts.measured = &measured;
    facts.cores = 2;
    PenDiagnosis d = diagnose(&decode_bound, &facts);
    CHECK(d.n_advices == 3);
    CHECK_STR(d.advices[0].change, "raw-pack"); /* a fifth of the time is left */
    CHECK(near(d.advices[0].per_second, 50) && near(d.advices[0].gain, 5));
    CHECK_STR(d.advices[1].change, "threads");
    CHECK(near(d.advices[1].gain, 2));
    CHECK_STR(d.advices[2].change, "smaller-images"); /* half of all but storing */
    CHECK(strstr(d.advices[2].text, "--mode encode --short-side 256"));
    measured.raw_ratio = 1; /* what is not encoded stays so */
    d = diagnose(&decode_bound, &facts);
    CHECK(strstr(advice_of(&d, "smaller-images")->text, "--mode raw --short-side 256"));
    measured.raw_ratio = 10;
    d = diagnose(&decode_bound, &facts);
    CHECK(near(d.advices[2].gain, 1 / 0.55));
    Case with_reader = decode_bound; /* which needs the core, too */
    with_reader.io_threads = with_reader.wanted = 1;
    d = diagnose(&with_reader, &facts);
    CHECK(near(advice_of(&d, "raw-pack")->per_second, 10 * 0.101 / 0.03));
    measured.copy_bytes = 5e6; /* a fifth of the time for a sample is that for its 1,000 bytes */
    d = diagnose(&with_reader, &facts);
    CHECK(near(advice_of(&d, "raw-pack")->per_second, 10 * 0.101 / 0.0238));
    measured.copy_bytes = 0;
    measured.read = 150; /* raw images are ten times as large */
    d = diagnose(&decode_bound, &facts);
    CHECK(near(advice_of(&d, "raw-pack")->per_second, 15));
    facts.cpu_seconds = 150; /* there is half a core to spare */
    d = diagnose(&decode_bound, &facts);
    CHECK(near(advice_of(&d, "threads")->gain, 1.0 / 0.75));
    facts.cores = 1;
    d = diagnose(&decode_bound, &facts);
    CHECK(!advice_of(&d, "threads"));
}

TEST(a_slow_disk_is_replaced_by_memory)
{
    PenRunFacts facts = {0};
    PenMeasured measured = {.read = 500, .read_cold = 10, .read_half = 10};
    facts.measured = &measured;
    facts.pack_bytes = 100;
    facts.memory_bytes = 200;
    PenDiagnosis d = diagnose(&read_bound, &facts);
    CHECK_STR(d.advices[0].change, "preload");
    CHECK(near(d.advices[0].per_second, 40) && near(d.advices[0].gain, 4));
    CHECK_STR(d.advices[1].change, "faster-disk");
    CHECK(!advice_of(&d, "more-requests")); /* half of the threads are as fast */
    measured.read_half = 5;
    facts.memory_bytes = 110;
    d = diagnose(&read_bound, &facts);
    CHECK_STR(d.advices[0].change, "faster-disk");
    CHECK(near(advice_of(&d, "more-requests")->gain, 2));
    facts.memory_bytes = 200;
    facts.is_preloaded = 1;
    d = diagnose(&read_bound, &facts);
    CHECK_STR(d.bottleneck, "read");
    CHECK(!advice_of(&d, "preload") && !advice_of(&d, "faster-disk"));
}

TEST(a_slow_network_needs_a_cache)
{
    PenRunFacts facts = {0};
    facts.is_remote = 1;
    facts.throttles = 7;
    PenDiagnosis d = diagnose(&fetch_bound, &facts);
    CHECK_STR(d.advices[0].change, "cache");
    CHECK(near(d.advices[0].gain, 1 / 0.3));
    CHECK(strstr(advice_of(&d, "throttled")->text, "asked 7 times") != NULL);
    facts.has_cache = 1;
    d = diagnose(&fetch_bound, &facts);
    CHECK_STR(d.advices[0].change, "faster-network");
}

TEST(more_memory_means_more_requests)
{
    Case c = fetch_bound;
    c.io_threads = 16;
    PenDiagnosis d = diagnose(&c, NULL);
    CHECK_STR(d.bottleneck, "memory");
    CHECK_STR(d.advices[0].change, "memory");
    CHECK(near(d.advices[0].gain, 1 / 0.3)); /* not 4: then decoding is too slow */
    CHECK(strstr(d.advices[0].text, "64 requests") != NULL);
    d = diagnose(&(Case){.wait = 90, .decode = 70, .decode_idle = 30, .slots = 2}, NULL);
    CHECK(near(d.advices[0].gain, 1 / 0.7));
    d = diagnose(&(Case){.wait = 95, .read = 25, .memory = 30, .read_idle = 45}, NULL);
    CHECK(near(d.advices[0].gain, 4)); /* readers that read all the time */
}

TEST(memory_for_entire_blocks_is_stated)
{
    PenLoaderStats s = stats_of(&fetch_bound);
    PenDiagnosis d;
    s.fetch_unit = PEN_FETCH_RUNS;
    s.memory_wanted_bytes = (UINT64_C(4000) << 20) + 1;
    pen_diagnose(&s, NULL, &d);
    CHECK_STR(d.bottleneck, "fetch");
    const PenAdvice *a = advice_of(&d, "memory");
    CHECK(a && near(a->gain, 1 / 0.3));
    CHECK(strstr(a->text, "memory=\"4001MiB\"") && strstr(a->text, "a few samples each"));
    s.io_threads = 16; /* memory is the bottleneck */
    s.fetch_unit = PEN_FETCH_SAMPLES;
    pen_diagnose(&s, NULL, &d);
    CHECK_STR(d.bottleneck, "memory");
    CHECK_INT(d.n_advices, 1);
    CHECK(strstr(d.advices[0].text, "4001MiB") && strstr(d.advices[0].text, "single samples"));
    s = stats_of(&decode_bound); /* it would not be faster */
    s.memory_wanted_bytes = 1;
    pen_diagnose(&s, NULL, &d);
    CHECK(!advice_of(&d, "memory"));
}

TEST(more_memory_does_not_widen_a_link)
{
    Case c = fetch_bound;
    PenRunFacts facts = {0};
    PenMeasured measured = {.read = 12, .read_half = 10};
    facts.measured = &measured;
    facts.is_remote = 1;
    c.io_threads = 16;
    PenDiagnosis d = diagnose(&c, &facts); /* half of the requests are almost as fast */
    CHECK_STR(d.bottleneck, "fetch");
    CHECK_STR(d.advices[0].change, "cache");
    CHECK(!advice_of(&d, "memory"));
    measured.read_half = 7;
    d = diagnose(&c, &facts);
    CHECK_STR(d.bottleneck, "memory");
}

TEST(a_consumer_that_transforms_batches_is_told_so)
{
    PenRunFacts facts = {0};
    Case c = {.wait = 1, .read = 5, .read_idle = 95, .decode = 10, .decode_idle = 90};
    facts.transform_seconds = 40;
    PenDiagnosis d = diagnose(&c, &facts);
    CHECK_STR(d.bottleneck, "consumer");
    CHECK_STR(d.advices[0].change, "consumer");
    CHECK(d.n_advices == 1 && d.advices[0].gain == 1);
    facts.transform_seconds = 79;
    d = diagnose(&c, &facts);
    CHECK_STR(d.bottleneck, "transform");
    CHECK_STR(d.advices[0].change, "python-transform");
    CHECK(near(d.advices[0].per_second, 50)); /* 20 s are left of 99 */
}

TEST(decoding_without_a_function_has_the_cores_for_itself)
{
    PenRunFacts facts = {0};
    Case c = {.wait = 1, .read = 1, .read_idle = 99, .decode = 10, .decode_idle = 90};
    facts.transform_seconds = 98;
    facts.cores = 2;
    PenDiagnosis d = diagnose(&c, &facts);
    CHECK(near(d.advices[0].per_second, 100)); /* decoding was busy for a tenth of the time */
    c.decode_cpu = 4;                          /* and waited for a core for most of that */
    d = diagnose(&c, &facts);
    CHECK(near(d.advices[0].per_second, 250));
}

/* ---- notes, sizes ---- */

/* Every diagnosis has what to do. */
TEST(a_diagnosis_without_advice_has_a_note)
{
    const Case unknown = {.wait = 80, .read = 10, .read_idle = 90, .decode = 10, .decode_idle = 90};
    const Case close = {.wait = 90, .fetch = 100, .decode = 99, .decode_idle = 1};
    PenLoaderStats none = {0};
    PenDiagnosis d = diagnose(&unknown, NULL);
    CHECK_STR(d.bottleneck, "unknown");
    CHECK(strstr(d.note, "busy for half of the time") &&
          strstr(d.note, "'penstock doctor NAME.pen --trace"));
    d = diagnose(&close, NULL);
    CHECK_STR(d.bottleneck, "fetch");
    CHECK(d.n_advices == 0 && strstr(d.note, "No single change brings 5 % or more."));
    pen_diagnose(&none, NULL, &d);
    CHECK_STR(d.note, "No batch has been delivered yet.");
    d = diagnose(&fetch_bound, NULL);
    CHECK(d.n_advices > 0 && !d.note);
}

int main(int argc, char **argv)
{
    TEST_START(argc, argv);
    RUN(the_bottleneck_follows_the_rules);
    RUN(without_a_batch_nothing_is_known);
    RUN(only_what_was_counted_later_counts);
    RUN(stages_are_compared_with_the_bottleneck);
    RUN(reading_is_as_fast_as_it_was_measured);
    RUN(advice_is_sorted_by_its_gain);
    RUN(a_slow_disk_is_replaced_by_memory);
    RUN(a_slow_network_needs_a_cache);
    RUN(more_memory_means_more_requests);
    RUN(memory_for_entire_blocks_is_stated);
    RUN(more_memory_does_not_widen_a_link);
    RUN(a_consumer_that_transforms_batches_is_told_so);
    RUN(decoding_without_a_function_has_the_cores_for_itself);
    RUN(a_diagnosis_without_advice_has_a_note);
    return TEST_END();
}
