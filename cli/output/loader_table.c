/* SPDX-License-Identifier: Apache-2.0 */
#include "output/loader_table.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "output/terminal.h"
#include "output/text.h"

#define ROW "%7s %6s %9s %6s %5s  %-10s %7s %9s %4s %5s"

enum { CELL = 32, LINE = 512 };

typedef struct Loader {
    PenRunningLoader running;
    PenLoaderStats stats;
    double seconds, age; /* of the counters; since they were written */
    int idle;            /* no batch was requested for longer than is usual */
} Loader;

static int get(const PenLoaderList *list, uint64_t i, Loader *ret)
{
    if (pen_loader_list_get(list, i, &ret->running) != PEN_OK ||
        pen_loader_list_stats(list, i, &ret->stats) != PEN_OK)
        return 0;
    ret->seconds = (double)ret->stats.ns_elapsed / 1e9;
    ret->age = (double)ret->running.age_ns / 1e9;
    ret->idle = ret->age > 2 + 2 * ret->seconds;
    return 1;
}

static double per_second(const Loader *l, double value)
{
    return l->seconds > 0 ? value / l->seconds : 0;
}

static double wait_percent(const Loader *l)
{
    double percent = per_second(l, 100 * (double)l->stats.ns_wait / 1e9);
    return percent < 100 ? percent : 100;
}

/* < 0: there is no cache, or it was not used yet. */
static double cache_percent(const Loader *l)
{
    double all = (double)l->running.cache_hits + (double)l->running.cache_misses;
    return all > 0 ? 100 * (double)l->running.cache_hits / all : -1;
}

/* ---- cells ---- */

/* In at most 6 characters. */
static void rate_cell(double rate, char ret[CELL])
{
    if (rate < 99.95)
        snprintf(ret, CELL, "%.1f", rate);
    else if (rate < 999999.5)
        snprintf(ret, CELL, "%.0f", rate);
    else
        snprintf(ret, CELL, "%.0e", rate);
}

static void memory_cell(const Loader *l, char ret[CELL])
{
    const double mib = 1 << 20, gib = 1 << 30;
    double used = (double)l->stats.memory_bytes, most = (double)l->running.memory_limit_bytes;
    if (most < gib)
        snprintf(ret, CELL, "%.0f/%.0fM", used / mib, most / mib);
    else if (most < 100 * gib)
        snprintf(ret, CELL, "%.1f/%.1fG", used / gib, most / gib);
    else
        snprintf(ret, CELL, "%.0f/%.0fG", used / gib, most / gib);
}

static void idle_cell(const Loader *l, char ret[CELL])
{
    /* No pass was begun: the loader is open, and nobody has requested a batch. */
    const char *word = l->running.batches ? "idle" : "open";
    if (l->age < 99.5)
        snprintf(ret, CELL, "%s %.0f s", word, l->age);
    else if (l->age < 5970)
        snprintf(ret, CELL, "%s %.0f m", word, l->age / 60);
    else
        snprintf(ret, CELL, "%s %.0f h", word, l->age / 3600);
}

static void row(const Loader *l, char ret[LINE])
{
    char process[CELL], rank[CELL], rate[CELL] = "-", mb[CELL] = "-", wait[CELL] = "-";
    char bottleneck[CELL], threads[CELL], memory[CELL], requests[CELL], cache[CELL] = "-";
    snprintf(process, CELL, "%" PRId32, l->running.process);
    snprintf(rank, CELL, "%" PRIu32 "/%" PRIu32, l->running.rank, l->running.world);
    snprintf(threads, CELL, "%" PRIu32 "+%" PRIu32, l->stats.threads, l->stats.io_threads);
    snprintf(requests, CELL, "%" PRIu32, l->running.requests_in_flight);
    memory_cell(l, memory);
    if (l->idle) {
        idle_cell(l, bottleneck);
    } else {
        rate_cell(per_second(l, (double)l->stats.samples), rate);
        rate_cell(per_second(l, (double)l->stats.bytes_read / 1e6), mb);
        snprintf(wait, CELL, "%.0f%%", wait_percent(l));
        snprintf(bottleneck, CELL, "%s", pen_loader_bottleneck(&l->stats));
    }
    if (cache_percent(l) >= 0)
        snprintf(cache, CELL, "%.0f%%", cache_percent(l));
    snprintf(ret, LINE, ROW, process, rank, rate, mb, wait, bottleneck, threads, memory, requests,
             cache);
}

/* ---- lines ---- */

static void put(FILE *to, const CliTableStyle *style, const char *line, int bold)
{
    bold = bold && style->colour;
    fprintf(to, "%s%.*s%s\n", bold ? CLI_COLOUR_BOLD : "",
            (int)(style->columns ? style->columns : strlen(line)), line,
            bold ? CLI_COLOUR_NONE : "");
}

/* The end of a text that has at most `columns` characters. */
static const char *tail(const char *text, size_t columns)
{
    size_t n = 0;
    for (const char *c = text; *c; c++)
        n += ((unsigned char)*c & 0xC0) != 0x80;
    while (n > columns && *text) {
        text++;
        n -= ((unsigned char)*text & 0xC0) != 0x80;
    }
    return text;
}

/* Of a name that is too long, the end, which tells packs apart. */
static void put_pack(FILE *to, const CliTableStyle *style, const char *pack)
{
    char *text = NULL;
    size_t bytes;
    FILE *escaped = open_memstream(&text, &bytes);
    if (!escaped)
        return;
    cli_text_print(escaped, pack, strlen(pack));
    if (fclose(escaped) == 0) {
        const char *end = style->columns > 3 ? tail(text, style->columns) : text;
        if (end != text)
            fprintf(to, "...%s\n", tail(text, style->columns - 3));
        else
            fprintf(to, "%s\n", text);
    }
    free(text);
}

static uint64_t count(const PenLoaderList *list)
{
    PenRunningLoader loader;
    uint64_t n = 0;
    while (pen_loader_list_get(list, n, &loader) == PEN_OK)
        n++;
    return n;
}

void cli_loader_table(const PenLoaderList *list, const CliTableStyle *style, FILE *to)
{
    char line[LINE], more[CLI_NUMBER_TEXT];
    const char *pack = NULL;
    Loader l;
    uint64_t n = count(list), i = 0;
    size_t rows = 1;
    snprintf(line, LINE, ROW, "process", "rank", "samples/s", "MB/s", "wait", "bottleneck",
             "threads", "memory", "reqs", "cache");
    put(to, style, line, 1);
    for (; i < n && get(list, i, &l); i++) {
        int heading = !pack || strcmp(pack, l.running.pack) != 0;
        rows += heading ? 2 : 1;
        if (style->rows && rows + (i + 1 < n) > style->rows)
            break;
        pack = l.running.pack;
        if (heading)
            put_pack(to, style, pack);
        row(&l, line);
        put(to, style, line, 0);
    }
    if (i < n) {
        snprintf(line, LINE, "%s more", cli_text_count(n - i, "loader", more));
        put(to, style, line, 0);
    }
}

/* ---- report ---- */

void cli_loader_report(const PenLoaderList *list, CliReport *report)
{
    Loader l;
    cli_report_list(report, "loaders");
    for (uint64_t i = 0; get(list, i, &l); i++) {
        cli_report_object(report, NULL);
        cli_report_integer(report, "process", l.running.process);
        cli_report_number(report, "rank", l.running.rank);
        cli_report_number(report, "world_size", l.running.world);
        cli_report_bytes(report, "pack", l.running.pack, strlen(l.running.pack));
        cli_report_number(report, "epoch", l.running.epoch);
        cli_report_number(report, "batch", l.running.batch);
        cli_report_number(report, "batches", l.running.batches);
        cli_report_bool(report, "idle", l.idle);
        cli_report_measured(report, "age_seconds", l.age, NULL);
        cli_report_measured(report, "window_seconds", l.seconds, NULL);
        cli_report_measured(report, "samples_per_second", per_second(&l, (double)l.stats.samples),
                            NULL);
        cli_report_measured(report, "mb_per_second",
                            per_second(&l, (double)l.stats.bytes_read / 1e6), NULL);
        cli_report_measured(report, "wait_percent", wait_percent(&l), NULL);
        cli_report_text(report, "bottleneck", pen_loader_bottleneck(&l.stats));
        cli_report_number(report, "threads", l.stats.threads);
        cli_report_number(report, "io_threads", l.stats.io_threads);
        cli_report_size(report, "memory_bytes", (int64_t)l.stats.memory_bytes);
        cli_report_size(report, "memory_limit_bytes", (int64_t)l.running.memory_limit_bytes);
        cli_report_number(report, "requests_in_flight", l.running.requests_in_flight);
        if (cache_percent(&l) >= 0)
            cli_report_measured(report, "cache_hit_percent", cache_percent(&l), NULL);
        cli_report_close(report);
    }
    cli_report_close(report);
}
