/* SPDX-License-Identifier: Apache-2.0 */
#include "commands/analyse.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "extract/csv.h"
#include "interrupt.h"
#include "measure/distribution.h"
#include "output/messages.h"
#include "output/pack_report.h"
#include "output/progress.h"
#include "output/result.h"
#include "tools.h"

enum { FOUND_KEPT = 100 }; /* damaged images in the report; stderr has all of them */

enum { QUALITY, WIDTH, HEIGHT, BYTES, BYTES_PER_PIXEL, N_MEASURES };

static const char *const measures[N_MEASURES] = {"quality", "width", "height", "bytes",
                                                 "bytes_per_pixel"};
static const char *const samplings[] = {"gray",  "4:4:4", "4:4:0", "4:2:2",
                                        "4:2:0", "4:1:1", "4:1:0", "other"};
enum { N_SAMPLINGS = sizeof samplings / sizeof *samplings };

typedef struct Analysis {
    const PenPackInfo *info;
    CliProgress progress;
    CliCsv csv; /* its file is NULL without --csv */
    CliDistribution values[N_MEASURES];
    uint64_t codecs[PEN_STORED_COUNT], sampled[N_SAMPLINGS], progressive, bytes;
    /* Of all pixels, gray ones in all three channels. */
    double pixels, sum[3], squares[3];
    CliReport found; /* members of a list */
    uint64_t n_found;
    int no_memory;
} Analysis;

/* ---- one image ------------------------------------------------------------------------------ */

static void write_real(CliCsv *csv, double value)
{
    char text[32];
    snprintf(text, sizeof text, "%.6g", value);
    text[strcspn(text, ",")] = text[strcspn(text, ",")] ? '.' : '\0'; /* of some locales */
    cli_csv_text(csv, text);
}

static void write_number(CliCsv *csv, uint64_t value)
{
    char text[24];
    snprintf(text, sizeof text, "%" PRIu64, value);
    cli_csv_text(csv, text);
}

static void write_names(CliCsv *csv)
{
    static const char *const names[] = {
        "key",      "field",  "frame",           "codec",       "width",       "height",
        "channels", "bytes",  "bytes_per_pixel", "quality",     "sampling",    "progressive",
        "mean_0",   "mean_1", "mean_2",          "deviation_0", "deviation_1", "deviation_2"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        cli_csv_text(csv, names[i]);
    cli_csv_row(csv);
}

static double per_pixel(const PenImageAnalysis *image)
{
    return (double)image->bytes / ((double)image->width * image->height);
}

/* Cells of what an image does not have are empty. */
static void write_row(Analysis *a, const PenImageAnalysis *image)
{
    CliCsv *csv = &a->csv;
    uint32_t n = image->channels < 3 ? 1 : 3;
    cli_csv_cell(csv, image->key, image->key_bytes);
    cli_csv_text(csv, a->info->fields[image->field].name);
    write_number(csv, image->frame);
    cli_csv_text(csv, pen_stored_name(image->codec));
    write_number(csv, image->width);
    write_number(csv, image->height);
    write_number(csv, image->channels);
    write_number(csv, image->bytes);
    write_real(csv, per_pixel(image));
    if (image->quality)
        write_number(csv, (uint64_t)image->quality);
    else
        cli_csv_text(csv, "");
    cli_csv_text(csv, image->sampling);
    cli_csv_text(csv, !image->sampling[0] ? "" : image->progressive ? "1" : "0");
    for (uint32_t i = 0; i < 6; i++) {
        if (i % 3 < n)
            write_real(csv, i < 3 ? image->mean[i] : image->deviation[i - 3]);
        else
            cli_csv_text(csv, "");
    }
    cli_csv_row(csv);
}

static void count(Analysis *a, const PenImageAnalysis *image)
{
    double pixels = (double)image->width * image->height;
    a->codecs[image->codec]++;
    a->progressive += image->progressive != 0;
    a->bytes += image->bytes;
    for (size_t i = 0; i < N_SAMPLINGS; i++)
        a->sampled[i] += strcmp(image->sampling, samplings[i]) == 0;
    a->pixels += pixels;
    for (uint32_t c = 0; c < 3; c++) {
        uint32_t from = image->channels < 3 ? 0 : c;
        double mean = image->mean[from], deviation = image->deviation[from];
        a->sum[c] += pixels * mean;
        a->squares[c] += pixels * (mean * mean + deviation * deviation);
    }
}

static int on_image(void *ctx, const PenImageAnalysis *image)
{
    Analysis *a = ctx;
    const double values[N_MEASURES] = {image->quality, image->width, image->height,
                                       (double)image->bytes, per_pixel(image)};
    for (size_t i = 0; i < N_MEASURES; i++)
        if ((i != QUALITY || image->quality) && cli_distribution_add(&a->values[i], values[i]) < 0)
            a->no_memory = 1;
    count(a, image);
    if (a->csv.to)
        write_row(a, image);
    return a->no_memory || (a->csv.to && ferror(a->csv.to));
}

static void on_problem(void *ctx, const PenError *error)
{
    Analysis *a = ctx;
    cli_progress_error(&a->progress, error);
    if (a->n_found++ < FOUND_KEPT)
        cli_report_error(&a->found, error);
}

static int on_progress(void *ctx, uint64_t done, uint64_t total)
{
    Analysis *a = ctx;
    cli_progress_show(&a->progress, &(CliProgressState){.stage = "analyse",
                                                        .unit = "samples",
                                                        .done = (double)done,
                                                        .total = (double)total});
    return cli_interrupted();
}

/* ---- the report ------------------------------------------------------------------------------ */

static void add_counts(CliReport *report, const Analysis *a)
{
    cli_report_list(report, "codecs");
    for (int i = 0; i < PEN_STORED_COUNT; i++) {
        if (!a->codecs[i])
            continue;
        cli_report_object(report, NULL);
        cli_report_text(report, "codec", pen_stored_name(i));
        cli_report_number(report, "images", a->codecs[i]);
        cli_report_close(report);
    }
    cli_report_close(report);
    cli_report_rare_list(report, "sampling");
    for (size_t i = 0; i < N_SAMPLINGS; i++) {
        if (!a->sampled[i])
            continue;
        cli_report_object(report, NULL);
        cli_report_text(report, "sampling", samplings[i]);
        cli_report_number(report, "images", a->sampled[i]);
        cli_report_close(report);
    }
    cli_report_close(report);
    cli_report_number(report, "progressive", a->progressive);
}

static void add_channels(CliReport *report, const Analysis *a)
{
    static const char *const names[] = {"red", "green", "blue"};
    cli_report_list(report, "channels");
    for (size_t c = 0; c < 3 && a->pixels > 0; c++) {
        double mean = a->sum[c] / a->pixels;
        double variance = a->squares[c] / a->pixels - mean * mean;
        cli_report_object(report, NULL);
        cli_report_text(report, "channel", names[c]);
        cli_report_measured(report, "mean", mean, NULL);
        cli_report_measured(report, "deviation", variance > 0 ? sqrt(variance) : 0, NULL);
        cli_report_close(report);
    }
    cli_report_close(report);
}

/* The text form has the histogram of the quality alone. */
static void add_values(CliReport *report, Analysis *a, int is_json)
{
    for (size_t i = 0; i < N_MEASURES; i++)
        cli_distribution_sort(&a->values[i]);
    cli_report_list(report, "distributions");
    for (size_t i = 0; i < N_MEASURES; i++)
        cli_distribution_report(&a->values[i], report, measures[i]);
    cli_report_close(report);
    cli_report_list(report, "histograms");
    for (size_t i = 0; i < (is_json ? N_MEASURES : 1); i++)
        cli_distribution_histogram(&a->values[i], report, measures[i]);
    cli_report_close(report);
}

static int print_analysis(const CliArgs *args, Analysis *a, const PenAnalyseResult *result,
                          double seconds)
{
    CliReport report = {0};
    cli_report_text(&report, "pack", args->operands[0]);
    cli_report_number(&report, "samples", result->samples);
    cli_report_number(&report, "images", result->images);
    cli_report_number(&report, "problems", result->problems);
    cli_report_size(&report, "image_bytes", (int64_t)a->bytes);
    cli_report_measured(&report, "bytes_per_pixel",
                        a->pixels > 0 ? (double)a->bytes / a->pixels : 0, NULL);
    add_counts(&report, a);
    add_channels(&report, a);
    add_values(&report, a, args->values[CLI_OPT_JSON].given);
    cli_pack_report_found(&report, &a->found);
    cli_report_measured(&report, "seconds", seconds, "s");
    int code = cli_result_print(args, &report, NULL);
    cli_report_fini(&report);
    return result->problems > 0 ? CLI_EXIT_FAILURE : code;
}

/* ---- all --------------------------------------------------------------------------------------
 */

static int open_csv(Analysis *a, const char *path, PenError *reterr)
{
    if (!path)
        return PEN_OK;
    a->csv.to = fopen(path, "we");
    if (!a->csv.to)
        return cli_fail_os(reterr, errno, "--csv %s: cannot create the file", path);
    write_names(&a->csv);
    return PEN_OK;
}

static int close_csv(Analysis *a, const char *path, PenError *reterr)
{
    if (!a->csv.to)
        return PEN_OK;
    int failed = ferror(a->csv.to);
    failed |= fclose(a->csv.to) != 0;
    a->csv.to = NULL;
    return failed ? cli_fail_os(reterr, errno, "--csv %s: cannot write the file", path) : PEN_OK;
}

static int run(const CliArgs *args, PenPack *pack, Analysis *a, PenAnalyseResult *result,
               PenError *reterr)
{
    PenAnalyseSettings settings = {0};
    if (args->values[CLI_OPT_THREADS].given)
        settings.threads = (int32_t)args->values[CLI_OPT_THREADS].number;
    settings.image = on_image;
    settings.problem = on_problem;
    settings.progress = on_progress;
    settings.ctx = a;
    const char *path = args->values[CLI_OPT_CSV].text;
    int r = open_csv(a, path, reterr);
    if (r < 0)
        return r;
    r = pen_pack_analyse(pack, &settings, result, reterr);
    PenError error;
    int closed = close_csv(a, path, &error);
    if (closed < 0)
        *reterr = error;
    if (a->no_memory)
        return cli_fail_memory(reterr);
    return closed < 0 ? closed : r;
}

int cli_analyse(const CliArgs *args, PenPack *pack)
{
    Analysis a = {.info = pen_pack_info(pack)};
    PenAnalyseResult result = {0};
    PenError error = {0};
    cli_interrupt_install();
    cli_progress_init(&a.progress);
    uint64_t start_ns = cli_clock_ns();
    int r = run(args, pack, &a, &result, &error);
    cli_progress_fini(&a.progress);
    int code;
    if (r == PEN_E_CANCELLED)
        code = cli_result_interrupted(args, &error, "the analysis is not complete");
    else if (r < 0)
        code = cli_result_error(args, &error);
    else
        code = print_analysis(args, &a, &result, (double)(cli_clock_ns() - start_ns) / 1e9);
    cli_report_fini(&a.found);
    for (size_t i = 0; i < N_MEASURES; i++)
        cli_distribution_fini(&a.values[i]);
    return code;
}
