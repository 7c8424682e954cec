/* SPDX-License-Identifier: Apache-2.0 */
/* Shows or clears a block cache. */
#include <stdio.h>
#include <time.h>

#include <penstock/cache.h>

#include "arguments/commands.h"
#include "output/result.h"
#include "output/text.h"

static void add_time(CliReport *report, uint64_t seconds)
{
    char text[32] = "unknown";
    time_t t = (time_t)seconds;
    struct tm parts;
    if (seconds && gmtime_r(&t, &parts))
        strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
    cli_report_text(report, "opened", text);
}

static void on_pack(void *ctx, const PenCachePack *pack)
{
    CliReport *report = ctx;
    char id[33];
    for (int i = 0; i < 16; i++)
        snprintf(id + 2 * i, 3, "%02x", pack->id[i]);
    cli_report_object(report, NULL);
    cli_report_text(report, "id", id);
    cli_report_text(report, "from", pack->from);
    cli_report_size(report, "bytes", (int64_t)pack->bytes);
    cli_report_number(report, "entries", pack->entries);
    add_time(report, pack->opened_s);
    cli_report_bool(report, "in_use", pack->in_use);
    cli_report_close(report);
}

static void add_total(CliReport *report, const PenCacheTotal *total)
{
    cli_report_number(report, "pack_count", total->packs);
    cli_report_size(report, "bytes", (int64_t)total->bytes);
    cli_report_number(report, "entries", total->entries);
    cli_report_size(report, "disk_bytes", (int64_t)total->disk_bytes);
    cli_report_size(report, "disk_free_bytes", (int64_t)total->disk_free_bytes);
}

static int show(const CliArgs *args, CliReport *report, PenError *reterr)
{
    PenCacheTotal total;
    cli_report_list(report, "packs");
    int r = pen_cache_inspect(args->operands[0], on_pack, report, &total, reterr);
    cli_report_close(report);
    if (r == PEN_OK)
        add_total(report, &total);
    return r;
}

static int clear(const CliArgs *args, CliReport *report, char *line, size_t cap, PenError *reterr)
{
    PenCacheTotal total;
    char entries[CLI_NUMBER_TEXT], bytes[CLI_NUMBER_TEXT], packs[CLI_NUMBER_TEXT];
    int r = pen_cache_clear(args->operands[0], &total, reterr);
    if (r < 0)
        return r;
    cli_report_number(report, "removed_entries", total.removed_entries);
    cli_report_size(report, "removed_bytes", (int64_t)total.removed_bytes);
    add_total(report, &total);
    int n = snprintf(line, cap, "removed %s (%s)",
                     cli_text_count(total.removed_entries, "file", entries),
                     cli_text_size((double)total.removed_bytes, bytes));
    if (total.packs)
        snprintf(line + n, cap - (size_t)n, "; %s still in use",
                 cli_text_count(total.packs, "pack", packs));
    return PEN_OK;
}

int cli_cache(const CliArgs *args)
{
    CliReport report = {0};
    PenError error = {0};
    char line[160];
    int clears = args->values[CLI_OPT_CLEAR].given;
    cli_report_text(&report, "directory", args->operands[0]);
    int r = clears ? clear(args, &report, line, sizeof line, &error) : show(args, &report, &error);
    int code = r < 0 ? cli_result_error(args, &error)
                     : cli_result_print(args, &report, clears ? line : NULL);
    cli_report_fini(&report);
    return code;
}
