/* SPDX-License-Identifier: Apache-2.0 */
#include "output/pack_report.h"

#include <stdio.h>
#include <stdlib.h>

#include <penstock/video.h>

#include "output/messages.h"

void cli_pack_report_id(CliReport *report, const uint8_t id[16])
{
    char text[33];
    for (int i = 0; i < 16; i++)
        snprintf(text + 2 * i, 3, "%02x", id[i]);
    cli_report_text(report, "id", text);
}

void cli_pack_report_images(CliReport *report, const PenPackStats *stats)
{
    cli_report_rare_list(report, "images");
    for (int codec = 0; codec < PEN_STORED_COUNT; codec++) {
        for (int how = 0; how < PEN_HOW_COUNT; how++) {
            if (stats->images[codec][how] == 0)
                continue;
            cli_report_object(report, NULL);
            cli_report_text(report, "codec", pen_stored_name(codec));
            cli_report_text(report, "how", pen_how_name(how));
            cli_report_number(report, "images", stats->images[codec][how]);
            cli_report_close(report);
        }
    }
    cli_report_close(report);
    if (stats->videos == 0)
        return;
    cli_report_object(report, "videos");
    cli_report_number(report, "videos", stats->videos);
    cli_report_number(report, "frames", stats->video_frames);
    cli_report_close(report);
}

void cli_pack_report_found(CliReport *report, const CliReport *found)
{
    cli_report_rare_list(report, "found");
    for (size_t i = 0; i < found->n; i++) {
        const CliEntry *e = &found->entries[i];
        if (e->kind == CLI_OBJECT)
            cli_report_object(report, NULL);
        else if (e->kind == CLI_CLOSE)
            cli_report_close(report);
        else if (e->kind == CLI_INTEGER)
            cli_report_integer(report, e->name, e->integer);
        else
            cli_report_bytes(report, e->name, e->text, e->bytes);
    }
    cli_report_close(report);
}

void cli_pack_report_missing(CliReport *report, const char *field, uint64_t samples)
{
    if (samples == 0)
        return;
    cli_report_object(report, NULL);
    cli_report_text(report, "field", field);
    cli_report_number(report, "samples", samples);
    cli_report_close(report);
}

/* May be negative: file systems compress, and packs share shards. */
static int64_t minus(uint64_t a, uint64_t b)
{
    return (int64_t)(a - b);
}

void cli_pack_report_parts(CliReport *report, const PenPackStats *stats, uint64_t pack_bytes,
                           int in_place)
{
    uint64_t known = stats->payload_bytes + stats->index_bytes + stats->section_bytes;
    cli_report_size(report, "payload", (int64_t)stats->payload_bytes);
    cli_report_size(report, "index", (int64_t)stats->index_bytes);
    cli_report_size(report, "metadata", (int64_t)stats->section_bytes);
    if (!in_place) /* else payloads are not in the pack */
        cli_report_size(report, "tables", minus(pack_bytes, known));
    cli_report_size(report, "pack", (int64_t)pack_bytes);
}

static void add_bytes(CliReport *report, const PenIngestResult *result, int in_place)
{
    /* For samples of earlier runs, only the apparent size of the source is known. */
    int complete = result->n_resumed == 0 && result->n_added == result->n_samples;
    cli_report_object(report, "bytes");
    cli_report_size(report, "source", (int64_t)result->stats.source_bytes);
    cli_report_size(report, complete ? "source_on_disk" : "source_on_disk_this_run",
                    (int64_t)result->source_disk_bytes);
    cli_pack_report_parts(report, &result->stats, result->pack_bytes, in_place);
    if (result->pack_disk_bytes) { /* unknown for object stores */
        cli_report_size(report, "slack", minus(result->pack_disk_bytes, result->pack_bytes));
        cli_report_size(report, "pack_on_disk", (int64_t)result->pack_disk_bytes);
    }
    cli_report_close(report);
    if (result->stats.source_bytes > 0)
        cli_report_measured(report, "pack_to_source",
                            (double)result->pack_bytes / (double)result->stats.source_bytes, NULL);
}

static void add_speed(CliReport *report, const PenIngestResult *result, double seconds)
{
    uint64_t done = result->n_added - result->n_resumed;
    cli_report_measured(report, "seconds", seconds, "s");
    if (seconds > 0)
        cli_report_measured(report, "samples_per_second", (double)done / seconds, NULL);
}

void cli_pack_report_classes(CliReport *report, const PenIngestResult *result)
{
    cli_report_number(report, "class_count", result->n_classes);
    if (result->n_classes == 0)
        return;
    cli_report_list(report, "first_classes");
    for (uint32_t i = 0; i < result->n_classes && i < PEN_FIRST_CLASSES; i++)
        cli_report_text(report, NULL, result->first_classes[i]);
    cli_report_close(report);
}

/* Why JPEGs that were kept have no entry index. */
static void add_reasons(CliReport *report, const PenIngestResult *result)
{
    cli_report_rare_list(report, "without_index");
    for (uint32_t i = 0; i < result->n_no_index; i++) {
        cli_report_object(report, NULL);
        cli_report_text(report, "why", result->no_index[i].why);
        cli_report_number(report, "images", result->no_index[i].n);
        cli_report_close(report);
    }
    cli_report_close(report);
}

void cli_pack_report_decoder(const char *pack, const PenPackStats *stats)
{
    PenError error = {0};
    if (stats->videos && pen_video_available(NULL, &error) < 0)
        cli_print_message("warning: %s: its videos cannot be loaded here: %s", pack, error.message);
}

void cli_pack_report_run(CliReport *report, const char *pack, const PenIngestResult *result,
                         double seconds, int in_place)
{
    uint64_t k = result->block_samples;
    cli_report_text(report, "pack", pack);
    if (result->published)
        cli_pack_report_id(report, result->id);
    cli_report_number(report, "samples", result->n_samples);
    if (result->n_added != result->n_samples)
        cli_report_number(report, "added", result->n_added);
    cli_report_count(report, "resumed", result->n_resumed);
    cli_report_count(report, "already_in_pack", result->n_known);
    cli_report_count(report, "broken_inputs_left_out", result->n_bad);
    cli_report_count(report, "files_ignored", result->n_ignored);
    cli_pack_report_classes(report, result);
    cli_report_rare_list(report, "missing");
    for (uint32_t i = 0; i < result->n_missing; i++)
        cli_pack_report_missing(report, result->missing[i].field, result->missing[i].n);
    cli_report_close(report);
    cli_pack_report_images(report, &result->stats);
    add_reasons(report, result);
    add_bytes(report, result, in_place);
    cli_report_number(report, "shards", result->n_shards);
    if (k > 0)
        cli_report_number(report, "blocks", result->n_samples / k + (result->n_samples % k != 0));
    cli_report_number(report, "samples_per_block", k);
    add_speed(report, result, seconds);
}
