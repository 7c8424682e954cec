/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include <penstock/pack.h>

#include "arguments/commands.h"
#include "arguments/remote_options.h"
#include "interrupt.h"
#include "output/messages.h"
#include "output/pack_report.h"
#include "output/progress.h"
#include "output/result.h"
#include "output/terminal.h"
#include "output/text.h"

enum { FOUND_KEPT = 100 }; /* problems in the report; stderr has all of them */

typedef struct Check {
    CliProgress progress;
    CliReport found; /* members of a list */
    uint64_t n_found;
} Check;

static void on_problem(void *ctx, const PenError *error)
{
    Check *check = ctx;
    cli_progress_error(&check->progress, error);
    if (check->n_found++ < FOUND_KEPT)
        cli_report_error(&check->found, error);
}

static int on_progress(void *ctx, uint64_t done_bytes, uint64_t total_bytes)
{
    Check *check = ctx;
    cli_progress_show(&check->progress, &(CliProgressState){.stage = "verify",
                                                            .done_bytes = done_bytes,
                                                            .total_bytes = total_bytes});
    return cli_interrupted();
}

static void fill_report(CliReport *report, const char *pack, const PenVerifyResult *result,
                        double seconds)
{
    cli_report_text(report, "pack", pack);
    cli_report_bool(report, "ok", result->problems == 0);
    cli_report_number(report, "problems", result->problems);
    cli_report_number(report, "shards", result->shards);
    cli_report_number(report, "blocks", result->blocks);
    cli_report_number(report, "samples", result->samples);
    cli_report_number(report, "images", result->images);
    cli_report_size(report, "bytes", (int64_t)result->bytes);
    if (result->modified_files)
        cli_report_number(report, "modified_files", result->modified_files);
    cli_report_measured(report, "seconds", seconds, "s");
}

static void write_line(char *line, size_t cap, const PenVerifyResult *result, double seconds)
{
    char samples[CLI_NUMBER_TEXT], blocks[CLI_NUMBER_TEXT], bytes[CLI_NUMBER_TEXT];
    char problems[CLI_NUMBER_TEXT], took[CLI_NUMBER_TEXT];
    int colours = cli_terminal_has_colour(stdout);
    const char *colour = result->problems ? CLI_COLOUR_RED : CLI_COLOUR_GREEN;
    cli_text_count(result->problems, "problem", problems);
    snprintf(line, cap, "%s%s%s: %s in %s, %s checked in %s (%.0f MB/s)", colours ? colour : "",
             result->problems ? problems : "ok", colours ? CLI_COLOUR_NONE : "",
             cli_text_count(result->samples, "sample", samples),
             cli_text_count(result->blocks, "block", blocks),
             cli_text_size((double)result->bytes, bytes), cli_text_time(seconds, took),
             seconds > 0 ? (double)result->bytes / seconds / 1e6 : 0);
    size_t n = strlen(line);
    if (result->modified_files)
        snprintf(line + n, cap - n, "; %s modified since the pack was made",
                 cli_text_count(result->modified_files, "file", samples));
}

static int end(const CliArgs *args, const PenPack *pack, const Check *check,
               const PenVerifyResult *result, double seconds)
{
    CliReport report = {0};
    char line[320];
    fill_report(&report, args->operands[0], result, seconds);
    cli_pack_report_found(&report, &check->found);
    write_line(line, sizeof line, result, seconds);
    int code = cli_result_print(args, &report, line);
    cli_pack_report_decoder(args->operands[0], &pen_pack_info(pack)->stats);
    cli_report_fini(&report);
    return result->problems > 0 ? CLI_EXIT_FAILURE : code;
}

static int verify_pack(const CliArgs *args, PenPack *pack)
{
    Check check = {0};
    PenVerifySettings settings;
    PenVerifyResult result = {0};
    PenError error = {0};
    int code;
    pen_verify_settings_init(&settings);
    settings.decode = args->values[CLI_OPT_DECODE].given;
    if (args->values[CLI_OPT_THREADS].given)
        settings.threads = (int32_t)args->values[CLI_OPT_THREADS].number;
    settings.problem = on_problem;
    settings.progress = on_progress;
    settings.ctx = &check;
    cli_progress_init(&check.progress);
    uint64_t start_ns = cli_clock_ns();
    int r = pen_pack_verify(pack, &settings, &result, &error);
    cli_progress_fini(&check.progress);
    if (r == PEN_E_CANCELLED)
        code = cli_result_interrupted(args, &error, "the check is not complete");
    else if (r < 0 && (r != PEN_E_CORRUPT || result.problems == 0))
        code = cli_result_error(args, &error);
    else
        code = end(args, pack, &check, &result, (double)(cli_clock_ns() - start_ns) / 1e9);
    cli_report_fini(&check.found);
    return code;
}

int cli_verify(const CliArgs *args)
{
    PenPack *pack = NULL;
    PenError error = {0};
    cli_interrupt_install();
    if (cli_remote_open(args, args->operands[0], &pack, &error) < 0)
        return cli_result_error(args, &error);
    int code = verify_pack(args, pack);
    pen_pack_close(&pack);
    return code;
}
