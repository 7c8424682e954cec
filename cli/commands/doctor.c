/* SPDX-License-Identifier: Apache-2.0 */
/* Finds out why training waits for data, and what to change. */
#include <stdio.h>

#include "arguments/commands.h"
#include "interrupt.h"
#include "measure/run.h"
#include "output/diagnosis_report.h"
#include "output/messages.h"
#include "output/result.h"
#include "output/text.h"

/* The utilization that MLPerf Storage requires for ResNet-50, in percent. */
#define ENOUGH 90.0

enum { TEXT_BYTES = 8192 };

/* Accelerators that take a batch every `consumer` seconds. */
typedef struct Accelerators {
    double most;        /* samples per second, without training steps */
    double each;        /* that one consumes if it never waits */
    double utilization; /* percent */
    unsigned count;     /* that can be fed */
} Accelerators;

/* As fast as possible, to learn how many accelerators could be fed; then with one. */
static int load(CliRun *run, Accelerators *ret, PenError *reterr)
{
    double consumer = run->consumer;
    run->consumer = 0;
    int r = cli_run_load(run, NULL, reterr);
    if (r < 0 || consumer <= 0)
        return r;
    ret->most = (double)run->samples / run->elapsed;
    ret->each = run->settings.batch_size / consumer;
    ret->count = (unsigned)(ret->most / (ret->each * ENOUGH / 100));
    run->consumer = consumer;
    r = cli_run_load(run, NULL, reterr);
    if (r < 0 || !run->n_waits)
        return r;
    ret->utilization = 100 * run->held / (run->elapsed - run->waits[0]);
    return r;
}

/* ---- JSON ---- */

static void add_accelerators(CliReport *report, const CliRun *run, const Accelerators *a)
{
    cli_report_object(report, "accelerators");
    cli_report_measured(report, "consumer_ms", run->consumer * 1e3, "ms");
    cli_report_measured(report, "samples_per_second_each", a->each, NULL);
    cli_report_measured(report, "utilization_percent", a->utilization, "%");
    cli_report_real(report, "wanted_percent", ENOUGH, "%");
    cli_report_bool(report, "is_enough", a->utilization >= ENOUGH);
    cli_report_measured(report, "samples_per_second_most", a->most, NULL);
    cli_report_number(report, "count", a->count);
    cli_report_close(report);
}

static void fill(CliReport *report, const CliArgs *args, const CliRun *run,
                 const PenDiagnosis *diagnosis, const Accelerators *a)
{
    cli_report_text(report, "pack", args->operands[0]);
    cli_report_text(report, "pipeline", run->pipeline);
    cli_report_text(report, "order", "shuffle");
    cli_report_number(report, "threads", run->stats.threads);
    cli_report_number(report, "cores", pen_cpu_cores());
    cli_report_number(report, "batch", run->settings.batch_size);
    cli_report_measured(report, "samples_per_second", diagnosis->per_second, NULL);
    cli_report_measured(report, "wait_percent", 100 * diagnosis->wait_share, "%");
    cli_report_text(report, "fetch_unit", cli_text_fetch_unit(run->stats.fetch_unit));
    cli_report_size(report, "memory_for_entire_blocks_bytes",
                    (int64_t)run->stats.memory_wanted_bytes);
    cli_report_measured(report, "memory_copy_mb_per_second", run->stages.copy_bytes / 1e6, "MB/s");
    cli_diagnosis_report(report, diagnosis, 1);
    if (run->consumer > 0)
        add_accelerators(report, run, a);
}

/* ---- text ---- */

static void print_accelerators(const CliRun *run, const Accelerators *a)
{
    char each[CLI_NUMBER_TEXT], most[CLI_NUMBER_TEXT], n[CLI_NUMBER_TEXT];
    printf("\nAn accelerator that trains on a batch of %u in %g ms takes %s samples/s.\n",
           run->settings.batch_size, run->consumer * 1e3,
           cli_text_number((int64_t)(a->each + 0.5), each));
    printf("Its utilization is %.0f %%. MLPerf Storage requires %.0f %% for ResNet-50.\n",
           a->utilization, ENOUGH);
    printf("This machine loads %s samples/s: %s %s at %.0f %%.\n",
           cli_text_number((int64_t)(a->most + 0.5), most), a->count ? "enough for" : "too few for",
           a->count ? cli_text_count(a->count, "accelerator", n) : "one accelerator", ENOUGH);
}

/* Why a remote pack takes more requests than it has blocks. */
static void print_fetching(const PenLoaderStats *s)
{
    char size[CLI_NUMBER_TEXT];
    if (s->memory_wanted_bytes)
        printf("\nThe loader requests %s, because entire blocks do not fit into its memory. They "
               "do with %s.\n",
               s->fetch_unit == PEN_FETCH_SAMPLES ? "single samples" : "runs of samples",
               cli_text_size((double)s->memory_wanted_bytes, size));
}

static int print_text(const CliRun *run, const PenDiagnosis *diagnosis, const Accelerators *a)
{
    char text[TEXT_BYTES], n[CLI_NUMBER_TEXT];
    pen_diagnosis_text(diagnosis, text, sizeof text);
    fputs(text, stdout);
    if (run->settings.order == PEN_ORDER_RANDOM && run->stages.samples > 0 &&
        run->stages.per_second[PEN_STAGE_READ_COLD] <= 0)
        fputs("\nThe page cache could not be dropped, so the disk was not measured.\n", stdout);
    print_fetching(&run->stats);
    if (run->stages.copy_bytes > 0)
        printf("\nMemory bandwidth: %.1f GB/s copied by %s.\n", run->stages.copy_bytes / 1e9,
               cli_text_count(run->stages.threads, "thread", n));
    if (run->consumer > 0)
        print_accelerators(run, a);
    return CLI_EXIT_OK;
}

static int print_result(const CliArgs *args, const CliRun *run, const PenDiagnosis *diagnosis,
                        const Accelerators *a)
{
    CliReport report = {0};
    if (!args->values[CLI_OPT_JSON].given)
        return print_text(run, diagnosis, a);
    fill(&report, args, run, diagnosis, a);
    int code = cli_result_print(args, &report, NULL);
    cli_report_fini(&report);
    return code;
}

int cli_doctor(const CliArgs *args)
{
    PenError error = {0};
    PenDiagnosis diagnosis;
    Accelerators accelerators = {0};
    CliRun run = {0};
    int r = PEN_OK;
    if (args->values[CLI_OPT_STEPS].given)
        r = cli_fail(&error, PEN_E_UNSUPPORTED,
                     "--trace: only the Python package reads traces; run 'python3 -m penstock "
                     "doctor', or pass --consumer MS");
    cli_interrupt_install();
    if (r == PEN_OK)
        r = cli_run_open(&run, args, &error);
    if (r == PEN_OK)
        r = load(&run, &accelerators, &error);
    if (r == PEN_OK)
        r = cli_run_stages(&run, &error);
    if (r == PEN_OK)
        cli_run_diagnose(&run, &diagnosis);
    int code = r == PEN_E_CANCELLED
                   ? cli_result_interrupted(args, &error, "the measurement is not complete")
               : r < 0 ? cli_result_error(args, &error)
                       : print_result(args, &run, &diagnosis, &accelerators);
    cli_run_close(&run);
    return code;
}
