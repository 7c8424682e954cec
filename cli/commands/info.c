/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include <penstock/pack.h>

#include "arguments/commands.h"
#include "arguments/remote_options.h"
#include "commands/analyse.h"
#include "output/messages.h"
#include "output/pack_report.h"
#include "output/result.h"
#include "output/sample_values.h"
#include "output/samples.h"

static const char *coordinates_text(const PenField *f)
{
    switch (f->flags & PEN_FIELD_COORDINATES) {
    case PEN_FIELD_BOXES_XYXY:
        return " boxes xyxy";
    case PEN_FIELD_BOXES_XYWH:
        return " boxes xywh";
    case PEN_FIELD_BOXES_CXCYWH:
        return " boxes cxcywh";
    case PEN_FIELD_POINTS:
        return " points";
    default:
        return "";
    }
}

/* Like "f32[*x4]? boxes xyxy absolute". */
static const char *type_text(const PenField *f, char buf[96])
{
    const size_t cap = 96;
    int used = snprintf(buf, cap, "%s", pen_type_name(f->type));
    for (uint32_t d = 0; d < f->n_dims && d < 4; d++) {
        used += snprintf(buf + used, cap - (size_t)used, "%s", d ? "x" : "[");
        used += d == 0 && cli_field_is_ragged(f)
                    ? snprintf(buf + used, cap - (size_t)used, "*")
                    : snprintf(buf + used, cap - (size_t)used, "%u", (unsigned)f->dims[d]);
    }
    const char *unit = !(f->flags & PEN_FIELD_COORDINATES) ? ""
                       : f->flags & PEN_FIELD_RELATIVE     ? " relative"
                                                           : " absolute";
    snprintf(buf + used, cap - (size_t)used, "%s%s%s%s", f->n_dims > 0 ? "]" : "",
             f->flags & PEN_FIELD_OPTIONAL ? "?" : "", coordinates_text(f), unit);
    return buf;
}

static void add_fields(CliReport *report, const PenPackInfo *info)
{
    cli_report_list(report, "fields");
    for (uint32_t i = 0; i < info->n_fields; i++) {
        const PenField *f = &info->fields[i];
        char type[96];
        cli_report_object(report, NULL);
        cli_report_text(report, "name", f->name);
        cli_report_text(report, "type", type_text(f, type));
        cli_report_bool(report, "mask", (f->flags & PEN_FIELD_MASK) != 0);
        cli_report_bool(report, "class", info->class_field == (int32_t)i);
        cli_report_close(report);
    }
    cli_report_close(report);
}

static void add_classes(CliReport *report, const PenPackInfo *info)
{
    cli_report_number(report, "class_count", info->n_classes);
    if (info->n_classes == 0)
        return;
    cli_report_list(report, "classes");
    for (uint32_t i = 0; i < info->n_classes; i++)
        cli_report_text(report, NULL, info->classes[i]);
    cli_report_close(report);
}

static int is_in_place(const PenPackInfo *info)
{
    return info->stored_bytes != info->total_bytes;
}

static void add_bytes(CliReport *report, const PenPackInfo *info)
{
    cli_report_object(report, "bytes");
    cli_report_size(report, "source", (int64_t)info->stats.source_bytes);
    cli_pack_report_parts(report, &info->stats, info->stored_bytes, is_in_place(info));
    cli_report_size(report, "largest_block", (int64_t)info->largest_block_bytes);
    cli_report_close(report);
    if (info->stats.source_bytes > 0)
        cli_report_measured(report, "pack_to_source",
                            (double)info->stored_bytes / (double)info->stats.source_bytes, NULL);
}

static void add_missing(CliReport *report, const PenPackInfo *info)
{
    cli_report_rare_list(report, "missing");
    for (uint32_t i = 0; i < info->n_fields; i++)
        cli_pack_report_missing(report, info->fields[i].name, info->stats.missing[i]);
    cli_report_close(report);
}

static int print_info(const CliArgs *args, const PenPack *pack)
{
    const PenPackInfo *info = pen_pack_info(pack);
    CliReport report = {0};
    cli_report_text(&report, "pack", args->operands[0]);
    cli_pack_report_id(&report, info->id);
    cli_report_number(&report, "format_version", info->format_version);
    if (is_in_place(info))
        cli_report_bool(&report, "in_place", 1);
    cli_report_number(&report, "samples", info->n_samples);
    cli_report_count(&report, "broken_inputs_left_out", info->stats.bad);
    cli_report_number(&report, "shards", info->n_shards);
    cli_report_number(&report, "blocks", info->n_blocks);
    cli_report_number(&report, "samples_per_block", info->block_samples);
    add_classes(&report, info);
    add_fields(&report, info);
    add_missing(&report, info);
    cli_pack_report_images(&report, &info->stats);
    add_bytes(&report, info);
    cli_report_json_text(&report, "settings", info->settings);
    int code = cli_result_print(args, &report, NULL);
    cli_report_fini(&report);
    return code;
}

int cli_info(const CliArgs *args)
{
    PenPack *pack = NULL;
    PenError error = {0};
    int code;
    if (cli_remote_open(args, args->operands[0], &pack, &error) < 0)
        return cli_result_error(args, &error);
    if (args->values[CLI_OPT_ANALYSE].given) {
        code = cli_analyse(args, pack);
    } else if (!args->values[CLI_OPT_SAMPLES].given) {
        code = print_info(args, pack);
    } else if (cli_samples_print(pack, args->values[CLI_OPT_JSON].given, &error) < 0) {
        cli_print_error(&error);
        code = CLI_EXIT_FAILURE;
    } else {
        code = CLI_EXIT_OK;
    }
    pen_pack_close(&pack);
    return code;
}
