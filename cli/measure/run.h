/* SPDX-License-Identifier: Apache-2.0 */
/* Loads batches as a training loop does, for some seconds, and then measures what the counters do
 * not tell. */
#ifndef PEN_CLI_MEASURE_RUN_H
#define PEN_CLI_MEASURE_RUN_H

#include <stdbool.h>

#include <penstock/trace.h>

#include "arguments/args.h"
#include "output/progress.h"
#include "tools.h"

typedef struct CliRun {
    PenPack *pack;
    PenLoader *loader;          /* until cli_run_measure */
    PenLoaderSettings settings; /* texts belong to the arguments */
    char *pipeline;             /* with its defaults; of the loader */
    PenRunFacts facts;
    CliProgress progress;
    double seconds, consumer; /* how long to load; seconds that each batch is held */
    double *waits;            /* for a batch, in seconds */
    size_t n_waits;
    uint64_t samples, bytes;
    double first_batch, held, elapsed, cpu;
    int complete_passes; /* 0 = the time was over in the first one */
    PenLoaderStats since, stats;
    bool has_trace;
    PenTraceStats traced;
    PenMeasured measured;
} CliRun;

/* Opens the pack and the loader by the options --pipeline, --batch, --threads, --memory and
 * --cache. Call cli_run_close in any case. */
int cli_run_open(CliRun *run, const CliArgs *args, PenError *reterr);
void cli_run_close(CliRun *run);
/* Loads, with a trace at `path` if it is not NULL. Counters of an earlier call do not count. */
int cli_run_load(CliRun *run, const char *path, PenError *reterr);
/* Closes the loader before: it would load on, and its memory would be in use twice. */
int cli_run_measure(CliRun *run, PenError *reterr);
void cli_run_diagnose(const CliRun *run, PenDiagnosis *ret);

#endif
