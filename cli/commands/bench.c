/* SPDX-License-Identifier: Apache-2.0 */
/* Loading as a training loop does it, measured; then every stage alone. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include <penstock/bench.h>
#include <penstock/cache.h>

#include "arguments/commands.h"
#include "arguments/remote_options.h"
#include "interrupt.h"
#include "output/messages.h"
#include "output/pack_report.h"
#include "output/result.h"

enum { MAX_WAITS = 1 << 20 };

typedef struct Run {
    PenLoader *loader;
    double seconds, consumer;
    double *waits; /* for a batch, in seconds */
    size_t n_waits;
    uint64_t samples, bytes;
    double first_batch, elapsed, cpu;
    int whole_passes; /* 0 = the time was over in the first one */
    PenLoaderStats stats;
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
static int one_pass(Run *run, double end, PenError *reterr)
{
    for (;;) {
        PenBatch *batch = NULL;
        double start = now();
        if (start >= end || cli_interrupted())
            return PEN_OK;
        int r = pen_loader_next(run->loader, -1, &batch, reterr);
        if (r != PEN_OK)
            return r;
        if (run->n_waits < MAX_WAITS)
            run->waits[run->n_waits++] = now() - start;
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
}

/* The first pass is only counted when there is no time for another. */
static int load(Run *run, PenError *reterr)
{
    double start = now(), cpu = cpu_seconds(), end = start + run->seconds;
    begin_counting(run);
    int r = one_pass(run, end, reterr);
    run->first_batch = run->n_waits ? run->waits[0] : 0;
    if (r == PEN_END) {
        begin_counting(run);
        start = now();
        cpu = cpu_seconds();
        end = start + run->seconds;
        while (r == PEN_END) {
            r = one_pass(run, end, reterr);
            run->whole_passes += r == PEN_END;
        }
    }
    run->elapsed = now() - start;
    run->cpu = cpu_seconds() - cpu;
    pen_loader_stats(run->loader, &run->stats);
    run->bytes = run->stats.bytes_read - run->bytes;
    return r < 0 ? r : PEN_OK;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void add_wait(CliReport *report, const Run *run, const char *name, double share)
{
    size_t i = (size_t)(share * (double)(run->n_waits - 1) + 0.5);
    cli_report_real(report, name, cli_pack_report_round(run->waits[i] * 1e3), "ms");
}

static void add_run(CliReport *report, Run *run)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    cli_report_real(report, "samples_per_second",
                    cli_pack_report_round((double)run->samples / run->elapsed), NULL);
    cli_report_real(report, "read", cli_pack_report_round((double)run->bytes / run->elapsed / 1e6),
                    "MB/s");
    cli_report_number(report, "samples", run->samples);
    cli_report_real(report, "seconds", cli_pack_report_round(run->elapsed), "s");
    cli_report_number(report, "whole_passes", (uint64_t)run->whole_passes);
    cli_report_real(report, "first_batch", cli_pack_report_round(run->first_batch), "s");
    cli_report_real(report, "cpu_seconds_per_1000_samples",
                    cli_pack_report_round(run->cpu / (double)run->samples * 1000), NULL);
    cli_report_size(report, "loader_memory_peak", (int64_t)run->stats.memory_peak_bytes);
    cli_report_size(report, "process_memory_peak", (int64_t)usage.ru_maxrss * 1024);
    qsort(run->waits, run->n_waits, sizeof *run->waits, by_size);
    cli_report_object(report, "wait_for_a_batch");
    add_wait(report, run, "p50", 0.50);
    add_wait(report, run, "p95", 0.95);
    add_wait(report, run, "p99", 0.99);
    add_wait(report, run, "max", 1);
    cli_report_close(report);
}

/* The slowest of the stages that follow each other; with a consumer slower than all of them, it is
 * that. */
static const char *what_binds(const PenStages *stages, const Run *run, uint32_t batch)
{
    int slowest = -1;
    for (int i = 0; i < PEN_STAGE_ALL; i++)
        if (stages->per_second[i] > 0 &&
            (slowest < 0 || stages->per_second[i] < stages->per_second[slowest]))
            slowest = i;
    if (slowest < 0)
        return "nothing but the loop";
    if (run->consumer > 0 && (double)run->samples / run->elapsed > 0.95 * batch / run->consumer)
        return "the consumer";
    return pen_stage_name(slowest);
}

static void add_stages(CliReport *report, const PenStages *stages)
{
    cli_report_object(report, "stages_alone_per_second");
    for (int i = 0; i < PEN_STAGE_COUNT; i++)
        if (stages->per_second[i] > 0)
            cli_report_real(report, pen_stage_name(i), cli_pack_report_round(stages->per_second[i]),
                            NULL);
    cli_report_close(report);
}

static void add_cache(CliReport *report, const PenPack *pack)
{
    PenCacheStats c;
    pen_pack_cache_stats(pack, &c);
    cli_report_object(report, "cache");
    cli_report_number(report, "hits", c.hits);
    cli_report_number(report, "misses", c.misses);
    cli_report_size(report, "from_cache", (int64_t)c.bytes_cache);
    cli_report_size(report, "from_origin", (int64_t)c.bytes_origin);
    cli_report_number(report, "stored", c.stored);
    cli_report_count(report, "not_stored_full", c.not_stored_full);
    cli_report_count(report, "not_stored_disk", c.not_stored_disk);
    cli_report_count(report, "not_stored_error", c.not_stored_error);
    cli_report_count(report, "not_stored_busy", c.not_stored_busy);
    cli_report_count(report, "bad", c.bad);
    cli_report_close(report);
}

static void add_requests(CliReport *report, const PenPack *pack)
{
    PenRemoteStats s;
    pen_pack_remote_stats(pack, &s);
    cli_report_object(report, "requests");
    cli_report_number(report, "made", s.requests);
    cli_report_size(report, "bytes", (int64_t)s.bytes);
    cli_report_number(report, "at_once", s.limit);
    cli_report_count(report, "retries", s.retries);
    cli_report_count(report, "hedges", s.hedges);
    cli_report_count(report, "throttles", s.throttles);
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
        cli_report_real(&report, "simulated_consumer", run->consumer * 1e3, "ms");
    if (run->n_waits)
        add_run(&report, run);
    if (args->values[CLI_OPT_CACHE].given)
        add_cache(&report, pack);
    if (pen_is_remote(args->operands[0]))
        add_requests(&report, pack);
    add_stages(&report, stages);
    cli_report_text(&report, "binds", what_binds(stages, run, settings->batch_size));
    int code = cli_result_print(args, &report, NULL);
    cli_report_fini(&report);
    return code;
}

/* What is read by whole blocks is loaded in an order by blocks, as penstock.Loader does. */
static PenLoaderSettings settings_of(const CliArgs *args)
{
    int whole = args->values[CLI_OPT_CACHE].given || pen_is_remote(args->operands[0]);
    PenLoaderSettings s;
    pen_loader_settings_init(&s);
    s.order = whole ? PEN_ORDER_BLOCK : PEN_ORDER_RANDOM;
    s.pipeline = args->values[CLI_OPT_PIPELINE].text;
    s.batch_size = (uint32_t)args->values[CLI_OPT_BATCH].number;
    s.threads = (int32_t)args->values[CLI_OPT_THREADS].number;
    return s;
}

int cli_bench(const CliArgs *args)
{
    PenPack *pack = NULL;
    PenError error = {0};
    PenStages stages = {0};
    PenLoaderSettings s = settings_of(args);
    Run run = {.seconds = (double)args->values[CLI_OPT_SECONDS].number,
               .consumer = (double)args->values[CLI_OPT_CONSUMER].number * 1e-3,
               .waits = malloc(MAX_WAITS * sizeof *run.waits)};
    cli_interrupt_install();
    int r = run.waits ? cli_remote_open(args, args->operands[0], &pack, &error)
                      : cli_fail_memory(&error);
    if (r == PEN_OK)
        r = pen_loader_open(pack, &s, &run.loader, &error);
    if (r == PEN_OK && pen_loader_warning(run.loader))
        cli_print_message("warning: %s", pen_loader_warning(run.loader));
    if (r == PEN_OK)
        r = load(&run, &error);
    if (r == PEN_OK && !cli_interrupted())
        r = pen_bench_stages(pack, &s, run.seconds / PEN_STAGE_COUNT, &stages, &error);
    int code = r < 0 ? cli_result_error(args, &error) : finish(args, &run, pack, &stages, &s);
    pen_loader_close(&run.loader);
    pen_pack_close(&pack);
    free(run.waits);
    return code;
}
