/* SPDX-License-Identifier: Apache-2.0 */
#include "measure/run.h"

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "arguments/remote_options.h"
#include "interrupt.h"
#include "output/messages.h"

enum { MAX_WAITS = 1 << 20, SLICE_MS = 200 };
enum { PARTS = 5 }; /* that are measured after the run; all take as long as it */

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

/* ---- loading ---- */

/* Waits in slices: storage may hang, and Ctrl-C is to end that. */
static int next_batch(const CliRun *run, double start, PenBatch **ret, PenError *reterr)
{
    for (;;) {
        if (cli_interrupted())
            return cli_fail(reterr, PEN_E_CANCELLED, "interrupted");
        int r = pen_loader_next(run->loader, SLICE_MS, ret, reterr);
        if (r != PEN_E_TIMEOUT || now() - start >= run->settings.stall_ms * 1e-3)
            return r;
    }
}

/* One pass, or what fits before `end`. */
static int one_pass(CliRun *run, const char *stage, double end, PenError *reterr)
{
    for (;;) {
        PenBatch *batch = NULL;
        double start = now();
        if (start >= end)
            return PEN_OK;
        cli_progress_show(&run->progress,
                          &(CliProgressState){.stage = stage,
                                              .unit = "samples",
                                              .done = (double)run->samples,
                                              .seconds = run->seconds - (end - start),
                                              .total_seconds = run->seconds});
        int r = next_batch(run, start, &batch, reterr);
        if (!batch)
            return r;
        double got = now();
        if (run->n_waits < MAX_WAITS)
            run->waits[run->n_waits++] = got - start;
        run->samples += batch->n_valid;
        if (run->consumer > 0)
            hold(run->consumer);
        run->held += now() - got;
        pen_batch_unref(&batch);
    }
}

static void begin_counting(CliRun *run)
{
    pen_loader_stats(run->loader, &run->since);
    run->samples = run->n_waits = 0;
    run->held = 0;
}

/* The first pass counts only if there is no time for another. */
static int load(CliRun *run, PenError *reterr)
{
    double start = now(), cpu = cpu_seconds(), end = start + run->seconds;
    begin_counting(run);
    run->complete_passes = 0;
    int r = one_pass(run, "first pass", end, reterr);
    if (run->n_waits && run->first_batch <= 0) /* of the loader, not of its second run */
        run->first_batch = run->waits[0];
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
    run->bytes = run->stats.bytes_read - run->since.bytes_read;
    return r < 0 ? r : PEN_OK;
}

/* A trace that is incomplete fails nothing. */
int cli_run_load(CliRun *run, const char *path, PenError *reterr)
{
    PenTrace *trace = NULL;
    PenError error = {0};
    int r = path ? pen_trace_open(path, NULL, &trace, reterr) : PEN_OK;
    if (r == PEN_OK && trace)
        r = pen_loader_trace(run->loader, trace, reterr);
    cli_progress_init(&run->progress);
    if (r == PEN_OK)
        r = load(run, reterr);
    cli_progress_fini(&run->progress);
    if (!trace)
        return r;
    pen_loader_trace(run->loader, NULL, NULL);
    run->has_trace = true;
    if (pen_trace_close(&trace, &run->traced, &error) < 0)
        cli_print_message("warning: %s: %s", path, error.message);
    return r;
}

/* Keeps what is known about the run. */
static int close_loader(CliRun *run, PenError *reterr)
{
    pen_run_facts_of(run->loader, &run->facts);
    run->pipeline = strdup(pen_loader_pipeline(run->loader));
    pen_loader_close(&run->loader);
    return run->pipeline ? PEN_OK : cli_fail_memory(reterr);
}

int cli_run_measure(CliRun *run, PenError *reterr)
{
    int r = close_loader(run, reterr);
    if (r < 0)
        return r;
    cli_progress_init(&run->progress);
    cli_progress_note(&run->progress, "measuring how fast samples are read ...");
    r = pen_measure(run->pack, &run->settings, run->seconds / PARTS, &run->measured, reterr);
    cli_progress_fini(&run->progress);
    return r == PEN_OK && cli_interrupted() ? cli_fail(reterr, PEN_E_CANCELLED, "interrupted") : r;
}

void cli_run_diagnose(const CliRun *run, PenDiagnosis *ret)
{
    PenRunFacts facts = run->facts;
    facts.since = &run->since;
    facts.measured = &run->measured;
    facts.cpu_seconds = run->cpu;
    pen_diagnose(&run->stats, &facts, ret);
}

/* ---- opening ---- */

/* The order is that of penstock.Loader with shuffle=True. */
static PenLoaderSettings settings_of(const CliArgs *args)
{
    PenLoaderSettings s;
    pen_loader_settings_init(&s);
    s.order = PEN_ORDER_SHUFFLE;
    s.pipeline = args->values[CLI_OPT_PIPELINE].text;
    s.batch_size = (uint32_t)args->values[CLI_OPT_BATCH].number;
    s.threads = (int32_t)args->values[CLI_OPT_THREADS].number;
    if (args->values[CLI_OPT_MEMORY].given)
        s.memory_bytes = args->values[CLI_OPT_MEMORY].number;
    return s;
}

int cli_run_open(CliRun *run, const CliArgs *args, PenError *reterr)
{
    *run = (CliRun){.seconds = (double)args->values[CLI_OPT_SECONDS].number,
                    .consumer = args->values[CLI_OPT_CONSUMER].real * 1e-3,
                    .settings = settings_of(args),
                    .waits = malloc(MAX_WAITS * sizeof *run->waits)};
    if (!run->waits)
        return cli_fail_memory(reterr);
    int r = cli_remote_open(args, args->operands[0], &run->pack, reterr);
    if (r == PEN_OK)
        r = pen_loader_open(run->pack, &run->settings, &run->loader, reterr);
    if (r == PEN_OK && pen_loader_warning(run->loader))
        cli_print_message("warning: %s", pen_loader_warning(run->loader));
    return r;
}

void cli_run_close(CliRun *run)
{
    pen_loader_close(&run->loader);
    pen_pack_close(&run->pack);
    free(run->waits);
    free(run->pipeline);
    *run = (CliRun){0};
}
