/* SPDX-License-Identifier: Apache-2.0 */
/* Measures loading as in a training loop, then every stage alone. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include <penstock/bench.h>
#include <penstock/cache.h>
#include <penstock/trace.h>

#include "arguments/commands.h"
#include "arguments/remote_options.h"
#include "interrupt.h"
#include "output/messages.h"
#include "output/pack_report.h"
#include "output/progress.h"
#include "output/result.h"

enum { MAX_WAITS = 1 << 20 };

/* If loading reaches less than this share of what the other stages reach, it waits for reads. */
#define READ_BOUND 0.75
/* If the consumer waits for less than this share of the time, it is the bottleneck. */
#define CONSUMER_BOUND 0.1

typedef struct Run {
    PenLoader *loader;
    CliProgress progress;
    double seconds, consumer;
    int by_blocks; /* remote, or with a cache: read alone has no rate */
    double *waits; /* for a batch, in seconds */
    size_t n_waits;
    uint64_t samples, bytes;
    double first_batch, waited, elapsed, cpu;
    int complete_passes; /* 0 = the time was over in the first one */
    PenLoaderStats stats;
    PenTraceStats traced; /* struct_size 0 = there is no trace */
} Run;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static double cpu_seconds(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
           (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1e-6;
}

static void hold(double seconds)
{
    struct timespec t = {.tv_sec = (time_t)seconds,
                         .tv_nsec = (long)((seconds - (double)(time_t)seconds) * 1e9)};
    nanosleep(&t, NULL);
}

/* One pass, or what fits before `end`. */
static int one_pass(Run *run, const char *stage, double end, PenError *reterr)
{
    for (;;) {
        PenBatch *batch = NULL;
        double start = now();
        if (cli_interrupted())
            return cli_fail(reterr, PEN_E_CANCELLED, "interrupted");
        if (start >= end)
            return PEN_OK;
        cli_progress_show(&run->progress,
                          &(CliProgressState){.stage = stage,
                                              .unit = "samples",
                                              .done = (double)run->samples,
                                              .seconds = run->seconds - (end - start),
                                              .total_seconds = run->seconds});
        int r = pen_loader_next(run->loader, -1, &batch, reterr);
        if (r != PEN_OK)
            return r;
        double wait = now() - start;
        if (run->n_waits < MAX_WAITS)
            run->waits[run->n_waits++] = wait;
        run->waited += wait;
        run->samples += batch->n_valid;
        if (run->consumer > 0)
            hold(run->consumer);
        pen_batch_unref(&batch);
    }
}

static void begin_counting(Run *run)
{
    PenLoaderStats stats;
    pen_loader_stats(run->loader, &stats);
    run->bytes = stats.bytes_read;
    run->samples = run->n_waits = 0;
    run->waited = 0;
}

/* The first pass counts only if there is no time for another. */
static int load(Run *run, PenError *reterr)
{
    double start = now(), cpu = cpu_seconds(), end = start + run->seconds;
    begin_counting(run);
    int r = one_pass(run, "first pass", end, reterr);
    run->first_batch = run->n_waits ? run->waits[0] : 0;
    if (r == PEN_END) {
        begin_counting(run);
        start = now();
        cpu = cpu_seconds();
        end = start + run->seconds;
        while (r == PEN_END) {
            r = one_pass(run, "load", end, reterr);
            run->complete_passes += r == PEN_END;
        }
    }
    run->elapsed = now() - start;
    run->cpu = cpu_seconds() - cpu;
    pen_loader_stats(run->loader, &run->stats);
    run->bytes = run->stats.bytes_read - run->bytes;
    return r < 0 ? r : PEN_OK;
}

/* With a trace of it, if there is to be one. A trace that is incomplete fails nothing. */
static int load_traced(Run *run, const char *path, PenError *reterr)
{
    PenTrace *trace = NULL;
    PenError error = {0};
    int r = path ? pen_trace_open(path, NULL, &trace, reterr) : PEN_OK;
    if (r == PEN_OK && trace)
        r = pen_loader_trace(run->loader, trace, reterr);
    if (r == PEN_OK)
        r = load(run, reterr);
    if (!trace)
        return r;
    pen_loader_trace(run->loader, NULL, NULL);
    if (pen_trace_close(&trace, &run->traced, &error) < 0)
        cli_print_message("warning: %s: %s", path, error.message);
    return r;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void add_wait(CliReport *report, const Run *run, const char *name, double share)
{
    size_t i = (size_t)(share * (double)(run->n_waits - 1) + 0.5);
    cli_report_measured(report, name, run->waits[i] * 1e3, "ms");
}

static void add_memory(CliReport *report, const Run *run)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    cli_report_size(report, "loader_memory_reserved_bytes", (int64_t)run->stats.memory_peak_bytes);
    cli_report_size(report, "process_memory_resident_bytes", (int64_t)usage.ru_maxrss * 1024);
}

static void add_run(CliReport *report, Run *run)
{
    cli_report_measured(report, "samples_per_second", (double)run->samples / run->elapsed, NULL);
    cli_report_measured(report, "read_mb_per_second", (double)run->bytes / run->elapsed / 1e6,
                        "MB/s");
    cli_report_number(report, "samples", run->samples);
    cli_report_measured(report, "seconds", run->elapsed, "s");
    cli_report_number(report, "complete_passes", (uint64_t)run->complete_passes);
    cli_report_measured(report, "first_batch_seconds", run->first_batch, "s");
    cli_report_measured(report, "cpu_seconds_per_1000_samples",
                        run->cpu / (double)run->samples * 1000, NULL);
    add_memory(report, run);
    qsort(run->waits, run->n_waits, sizeof *run->waits, by_size);
    cli_report_object(report, "wait_for_a_batch");
    add_wait(report, run, "p50_ms", 0.50);
    add_wait(report, run, "p95_ms", 0.95);
    add_wait(report, run, "p99_ms", 0.99);
    add_wait(report, run, "max_ms", 1);
    cli_report_close(report);
}

static const char *stage_name(int stage)
{
    static const char *const names[PEN_STAGE_COUNT] = {"read", "verify", "decode", "resample",
                                                       "decode_and_resample"};
    return names[stage];
}

/* Of the stages that need the CPU, one after the other. */
static double cpu_rate(const PenStages *stages)
{
    double verify = stages->per_second[PEN_STAGE_VERIFY], rest = stages->per_second[PEN_STAGE_ALL];
    return verify > 0 && rest > 0 ? 1 / (1 / verify + 1 / rest) : 0;
}

static const char *bottleneck(const PenStages *stages, const Run *run)
{
    double rate = run->elapsed > 0 ? (double)run->samples / run->elapsed : 0;
    int slowest = -1;
    for (int i = 0; i < PEN_STAGE_ALL; i++)
        if (stages->per_second[i] > 0 &&
            (slowest < 0 || stages->per_second[i] < stages->per_second[slowest]))
            slowest = i;
    if (slowest < 0)
        return "unknown";
    if (run->consumer > 0 && run->waited < CONSUMER_BOUND * run->elapsed)
        return "consumer";
    if (run->by_blocks && rate < READ_BOUND * cpu_rate(stages))
        return stage_name(PEN_STAGE_READ);
    return stage_name(slowest);
}

static void add_stages(CliReport *report, const PenStages *stages)
{
    cli_report_object(report, "stages_alone_samples_per_second");
    for (int i = 0; i < PEN_STAGE_COUNT; i++)
        if (stages->per_second[i] > 0)
            cli_report_measured(report, stage_name(i), stages->per_second[i], NULL);
    cli_report_close(report);
}

static void add_cache(CliReport *report, const PenPack *pack)
{
    PenCacheStats c;
    pen_pack_cache_stats(pack, &c);
    cli_report_object(report, "cache");
    cli_report_number(report, "hits", c.hits);
    cli_report_number(report, "misses", c.misses);
    cli_report_size(report, "from_cache_bytes", (int64_t)c.bytes_cache);
    cli_report_size(report, "from_origin_bytes", (int64_t)c.bytes_origin);
    cli_report_number(report, "blocks_stored", c.stored);
    cli_report_count(report, "not_stored_full", c.not_stored_full);
    cli_report_count(report, "not_stored_disk", c.not_stored_disk);
    cli_report_count(report, "not_stored_error", c.not_stored_error);
    cli_report_count(report, "not_stored_busy", c.not_stored_busy);
    cli_report_count(report, "damaged", c.bad);
    cli_report_close(report);
}

static void add_requests(CliReport *report, const PenPack *pack)
{
    PenRemoteStats s;
    pen_pack_remote_stats(pack, &s);
    cli_report_object(report, "requests");
    cli_report_number(report, "made", s.requests);
    cli_report_size(report, "bytes", (int64_t)s.bytes);
    cli_report_number(report, "in_flight_limit", s.limit);
    cli_report_count(report, "retries", s.retries);
    cli_report_count(report, "hedges", s.hedges);
    cli_report_count(report, "throttles", s.throttles);
    cli_report_close(report);
}

static void add_trace(CliReport *report, const char *path, const PenTraceStats *traced)
{
    cli_report_object(report, "trace");
    cli_report_text(report, "file", path);
    cli_report_number(report, "events", traced->events);
    cli_report_number(report, "dropped", traced->dropped);
    cli_report_size(report, "file_bytes", (int64_t)traced->bytes);
    cli_report_close(report);
}

static int finish(const CliArgs *args, Run *run, const PenPack *pack, const PenStages *stages,
                  const PenLoaderSettings *settings)
{
    CliReport report = {0};
    cli_report_text(&report, "pack", args->operands[0]);
    cli_report_text(&report, "pipeline", pen_loader_pipeline(run->loader));
    cli_report_text(&report, "order", settings->order == PEN_ORDER_BLOCK ? "block" : "random");
    cli_report_text(&report, "tier", pen_cpu_tier());
    cli_report_number(&report, "threads", run->stats.threads);
    cli_report_number(&report, "batch", settings->batch_size);
    if (run->consumer > 0)
        cli_report_real(&report, "consumer_ms", run->consumer * 1e3, "ms");
    if (run->n_waits)
        add_run(&report, run);
    if (args->values[CLI_OPT_CACHE].given)
        add_cache(&report, pack);
    if (pen_is_remote(args->operands[0]))
        add_requests(&report, pack);
    if (run->traced.struct_size)
        add_trace(&report, args->values[CLI_OPT_TRACE].text, &run->traced);
    add_stages(&report, stages);
    cli_report_text(&report, "bottleneck", bottleneck(stages, run));
    int code = cli_result_print(args, &report, NULL);
    cli_report_fini(&report);
    return code;
}

/* If entire blocks are read, the order is by blocks, as in penstock.Loader. */
static PenLoaderSettings settings_of(const CliArgs *args, int by_blocks)
{
    PenLoaderSettings s;
    pen_loader_settings_init(&s);
    s.order = by_blocks ? PEN_ORDER_BLOCK : PEN_ORDER_RANDOM;
    s.pipeline = args->values[CLI_OPT_PIPELINE].text;
    s.batch_size = (uint32_t)args->values[CLI_OPT_BATCH].number;
    s.threads = (int32_t)args->values[CLI_OPT_THREADS].number;
    return s;
}

static int measure(Run *run, PenPack *pack, const PenLoaderSettings *s, const char *trace,
                   PenStages *stages, PenError *reterr)
{
    int r = pen_loader_open(pack, s, &run->loader, reterr);
    if (r == PEN_OK && pen_loader_warning(run->loader))
        cli_print_message("warning: %s", pen_loader_warning(run->loader));
    cli_progress_init(&run->progress);
    if (r == PEN_OK)
        r = load_traced(run, trace, reterr);
    if (r == PEN_OK) {
        cli_progress_note(&run->progress, "measuring each stage alone ...");
        r = pen_bench_stages(pack, s, run->seconds / PEN_STAGE_COUNT, stages, reterr);
    }
    cli_progress_fini(&run->progress);
    return r;
}

int cli_bench(const CliArgs *args)
{
    PenPack *pack = NULL;
    PenError error = {0};
    PenStages stages = {0};
    Run run = {.seconds = (double)args->values[CLI_OPT_SECONDS].number,
               .consumer = (double)args->values[CLI_OPT_CONSUMER].number * 1e-3,
               .by_blocks = args->values[CLI_OPT_CACHE].given || pen_is_remote(args->operands[0]),
               .waits = malloc(MAX_WAITS * sizeof *run.waits)};
    PenLoaderSettings s = settings_of(args, run.by_blocks);
    cli_interrupt_install();
    int r = run.waits ? cli_remote_open(args, args->operands[0], &pack, &error)
                      : cli_fail_memory(&error);
    if (r == PEN_OK)
        r = measure(&run, pack, &s, args->values[CLI_OPT_TRACE].text, &stages, &error);
    int code = r == PEN_E_CANCELLED
                   ? cli_result_interrupted(args, &error, "the measurement is not complete")
               : r < 0 ? cli_result_error(args, &error)
                       : finish(args, &run, pack, &stages, &s);
    pen_loader_close(&run.loader);
    pen_pack_close(&pack);
    free(run.waits);
    return code;
}
