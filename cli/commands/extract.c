/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include <penstock/pack.h>

#include "arguments/commands.h"
#include "arguments/remote_options.h"
#include "arguments/selection.h"
#include "extract/extractor.h"
#include "interrupt.h"
#include "output/messages.h"
#include "output/pack_report.h"
#include "output/progress.h"
#include "output/result.h"
#include "output/text.h"

typedef struct Job {
    const CliArgs *args;
    CliSelection selection;
    CliExtractor extractor;
    CliProgress progress;
    uint64_t done, failed;
} Job;

/* Failures of one sample that do not affect others. */
static int is_of_sample(int status)
{
    return status == PEN_E_INVALID || status == PEN_E_CORRUPT || status == PEN_E_DECODE ||
           status == PEN_E_UNSUPPORTED || status == PEN_E_EXISTS || status == PEN_E_LIMIT;
}

static int extract_one(Job *job, uint64_t sample, PenError *reterr)
{
    cli_progress_show(&job->progress, &(CliProgressState){.stage = "extract",
                                                          .unit = "samples",
                                                          .done = (double)job->done,
                                                          .total = (double)job->selection.n_samples,
                                                          .done_bytes = job->extractor.bytes,
                                                          .bad = job->failed});
    int r = cli_extractor_sample(&job->extractor, sample, reterr);
    job->done++;
    if (r < 0 && is_of_sample(r)) {
        cli_progress_error(&job->progress, reterr);
        job->failed++;
        r = PEN_OK;
    }
    if (r == PEN_OK && cli_interrupted())
        r = cli_fail(reterr, PEN_E_CANCELLED, "interrupted");
    return r;
}

static int extract_all(Job *job, PenError *reterr)
{
    int r = PEN_OK;
    for (size_t i = 0; r == PEN_OK && i < job->selection.n; i++)
        for (uint64_t s = job->selection.ranges[i].first;
             r == PEN_OK && s < job->selection.ranges[i].end; s++)
            r = extract_one(job, s, reterr);
    return r;
}

static int end_done(const Job *job, double seconds)
{
    const char *dir = job->args->values[CLI_OPT_DIR].text;
    CliReport report = {0};
    char line[512], samples[CLI_NUMBER_TEXT], files[CLI_NUMBER_TEXT], bytes[CLI_NUMBER_TEXT];
    char took[CLI_NUMBER_TEXT];
    uint64_t good = job->done - job->failed;
    cli_report_text(&report, "pack", job->args->operands[0]);
    cli_report_text(&report, "dir", dir);
    cli_report_number(&report, "samples", good);
    cli_report_number(&report, "failed", job->failed);
    cli_report_number(&report, "files", job->extractor.files);
    cli_report_size(&report, "bytes", (int64_t)job->extractor.bytes);
    cli_report_measured(&report, "seconds", seconds, "s");
    snprintf(line, sizeof line, "%s written to %s, %s, in %s; samples.csv lists them",
             cli_text_count(good, "sample", samples),
             cli_text_count(job->extractor.files, "file", files),
             cli_text_size((double)job->extractor.bytes, bytes), cli_text_time(seconds, took));
    int code = cli_result_print(job->args, &report, line);
    cli_report_fini(&report);
    if (job->extractor.unnamed)
        cli_print_message(
            "warning: samples.classes.csv was not written: some labels are not the number "
            "of a class. A pack of samples.csv will have the labels but no class names");
    if (job->failed == 0)
        return code;
    cli_print_message("%s could not be extracted", cli_text_count(job->failed, "sample", samples));
    return CLI_EXIT_FAILURE;
}

static int run_job(Job *job, PenPack *pack)
{
    PenError error = {0}, close_error = {0};
    uint64_t start_ns = cli_clock_ns();
    int r = cli_selection_make(pack, job->args, &job->selection, &error);
    if (r < 0)
        return cli_result_error(job->args, &error);
    cli_progress_init(&job->progress);
    r = cli_extractor_open(pack, job->args->values[CLI_OPT_DIR].text, &job->extractor, &error);
    if (r == PEN_OK)
        r = extract_all(job, &error);
    cli_progress_fini(&job->progress);
    if (cli_extractor_close(&job->extractor, &close_error) < 0 && r == PEN_OK) {
        r = close_error.status;
        error = close_error;
    }
    cli_selection_fini(&job->selection);
    if (r == PEN_E_CANCELLED)
        return cli_result_interrupted(
            job->args, &error, "the files written so far are complete, and samples.csv lists them");
    if (r < 0)
        return cli_result_error(job->args, &error);
    return end_done(job, (double)(cli_clock_ns() - start_ns) / 1e9);
}

/* Other formats are written in Python, which runs this program for folders only. */
static int check_format(const CliArgs *args)
{
    const CliValue *to = &args->values[CLI_OPT_TO];
    if (to->number != 0)
        cli_print_message("--to %s is a part of the Python package; run 'python3 -m penstock "
                          "extract'",
                          to->text);
    else if (args->values[CLI_OPT_FILE_BYTES].given)
        cli_print_message("--shard-bytes needs --to webdataset or --to parquet");
    else
        return CLI_EXIT_OK;
    return CLI_EXIT_USAGE;
}

int cli_extract(const CliArgs *args)
{
    Job job = {.args = args};
    PenPack *pack = NULL;
    PenError error = {0};
    if (check_format(args) != CLI_EXIT_OK)
        return CLI_EXIT_USAGE;
    cli_interrupt_install();
    if (cli_remote_open(args, args->operands[0], &pack, &error) < 0)
        return cli_result_error(args, &error);
    int code = run_job(&job, pack);
    pen_pack_close(&pack);
    return code;
}
