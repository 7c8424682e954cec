/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include <penstock/copy.h>

#include "arguments/commands.h"
#include "arguments/remote_options.h"
#include "interrupt.h"
#include "output/messages.h"
#include "output/pack_report.h"
#include "output/progress.h"
#include "output/result.h"
#include "output/text.h"

static int on_progress(void *ctx, uint64_t done_bytes, uint64_t total_bytes)
{
    cli_progress_show(
        ctx,
        &(CliProgressState){.stage = "copy", .done_bytes = done_bytes, .total_bytes = total_bytes});
    return cli_interrupted();
}

static void fill_report(CliReport *report, const CliArgs *args, const PenCopyResult *result,
                        double seconds)
{
    cli_report_text(report, "pack", args->operands[1]);
    cli_report_text(report, "from", args->operands[0]);
    cli_pack_report_id(report, result->id);
    cli_report_number(report, "samples", result->n_samples);
    cli_report_number(report, "shards", result->shards);
    cli_report_size(report, "bytes", (int64_t)result->bytes);
    cli_report_number(report, "already_copied_shards", result->known_shards);
    cli_report_size(report, "already_copied_bytes", (int64_t)result->known_bytes);
    cli_report_measured(report, "seconds", seconds, "s");
}

static void write_line(char *line, size_t cap, const PenCopyResult *result, double seconds)
{
    char shards[CLI_NUMBER_TEXT], bytes[CLI_NUMBER_TEXT], took[CLI_NUMBER_TEXT];
    char known[CLI_NUMBER_TEXT], there[CLI_NUMBER_TEXT + 32] = "";
    if (result->known_shards > 0)
        snprintf(there, sizeof there, "; %s already copied",
                 cli_text_count(result->known_shards, "shard", known));
    snprintf(line, cap, "%s copied, %s, every byte checked, in %s (%.0f MB/s)%s",
             cli_text_count(result->shards, "shard", shards),
             cli_text_size((double)result->bytes, bytes), cli_text_time(seconds, took),
             seconds > 0 ? (double)result->bytes / seconds / 1e6 : 0, there);
}

static int end_done(const CliArgs *args, const PenCopyResult *result, double seconds)
{
    CliReport report = {0};
    char line[256];
    fill_report(&report, args, result, seconds);
    write_line(line, sizeof line, result, seconds);
    int code = cli_result_print(args, &report, line);
    cli_report_fini(&report);
    return code;
}

int cli_copy(const CliArgs *args)
{
    const CliValue *v = args->values;
    PenRemoteSettings from, to;
    PenCopySettings settings;
    PenCopyResult result = {0};
    PenError error = {0};
    CliProgress progress;
    CliFiles files;
    if (cli_files_settings(args, &files, &error) < 0) {
        cli_print_error(&error);
        return CLI_EXIT_USAGE;
    }
    cli_remote_settings_from(args, &from);
    cli_remote_settings(args, &to);
    pen_copy_settings_init(&settings);
    settings.from = args->operands[0];
    settings.to = args->operands[1];
    settings.from_remote = &from;
    settings.to_remote = &to;
    settings.work = v[CLI_OPT_WORK].text;
    settings.files = &files.settings;
    if (v[CLI_OPT_AT_ONCE].given)
        settings.threads = (int32_t)v[CLI_OPT_AT_ONCE].number;
    settings.progress = on_progress;
    settings.ctx = &progress;
    cli_interrupt_install();
    cli_progress_init(&progress);
    uint64_t start_ns = cli_clock_ns();
    int r = pen_copy(&settings, &result, &error);
    cli_progress_fini(&progress);
    if (r == PEN_E_CANCELLED)
        return cli_result_interrupted(
            args, &error, "run the same command again to resume after the last finished shard");
    if (r < 0)
        return cli_result_error(args, &error);
    return end_done(args, &result, (double)(cli_clock_ns() - start_ns) / 1e9);
}
