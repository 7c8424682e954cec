/* SPDX-License-Identifier: Apache-2.0 */
/* The text form of a report: names and values in columns, lists of objects as tables. */
#include <inttypes.h>
#include <string.h>

#include "output/messages.h"
#include "output/report.h"
#include "output/terminal.h"
#include "output/text.h"

enum { CELL = 64, MAX_COLUMNS = 8, LIST_SHOWN = 8 };

static int is_scalar(const CliEntry *e)
{
    return e->kind != CLI_OBJECT && e->kind != CLI_LIST && e->kind != CLI_CLOSE;
}

static int is_numeric(const CliEntry *e)
{
    return is_scalar(e) && e->kind != CLI_TEXT && e->kind != CLI_JSON && e->kind != CLI_BOOL;
}

/* Without the unit, which follows the value. */
static size_t label_length(const CliEntry *e)
{
    static const char *const units[] = {"_seconds", "_ms", "_percent", "_mb_per_second",
                                        "_gbit_per_second"};
    size_t n = e->name ? strlen(e->name) : 0;
    for (size_t i = 0; e->unit && i < sizeof units / sizeof *units; i++) {
        size_t m = strlen(units[i]);
        if (n > m && strcmp(e->name + n - m, units[i]) == 0)
            return n - m;
    }
    return n;
}

/* "samples_per_second" as "samples per second". */
static const char *label(const CliEntry *e, char buf[CELL])
{
    snprintf(buf, CELL, "%.*s", (int)label_length(e), e->name ? e->name : "");
    for (char *s = buf; *s; s++)
        if (*s == '_')
            *s = ' ';
    return buf;
}

/* The value of a number. Texts may have any length and are printed directly. */
static const char *cell(const CliEntry *e, char buf[CELL])
{
    char number[CLI_NUMBER_TEXT];
    if (e->kind == CLI_NUMBER && e->number <= INT64_MAX)
        snprintf(buf, CELL, "%s", cli_text_number((int64_t)e->number, number));
    else if (e->kind == CLI_NUMBER)
        snprintf(buf, CELL, "%" PRIu64, e->number);
    else if (e->kind == CLI_REAL)
        snprintf(buf, CELL, e->real >= 1000 ? "%.0f" : "%.4g", e->real);
    else
        snprintf(buf, CELL, "%s", cli_text_number(e->integer, number));
    return buf;
}

static void put_value(FILE *to, const CliEntry *e, size_t width)
{
    char buf[CELL], size[CLI_NUMBER_TEXT];
    if (e->kind == CLI_BOOL) {
        fputs(e->number ? "yes" : "no", to);
        return;
    }
    if (!is_numeric(e)) {
        cli_text_print(to, e->text, e->bytes);
        return;
    }
    fprintf(to, "%*s", (int)width, cell(e, buf));
    if (e->kind == CLI_SIZE && (e->integer >= 1024 || e->integer <= -1024))
        fprintf(to, "  %10s", cli_text_size((double)e->integer, size));
    if (e->unit)
        fprintf(to, " %s", e->unit);
}

/* A paragraph, at this column. */
static void put_prose(const CliEntry *e, size_t indent, FILE *to)
{
    fprintf(to, "%*s", (int)indent, "");
    cli_text_words(to, e->text, indent, indent);
    fputc('\n', to);
}

/* A list of paragraphs. */
static size_t put_paragraphs(const CliReport *report, size_t i, size_t indent, FILE *to)
{
    for (; i < report->n && report->entries[i].kind != CLI_CLOSE; i++)
        put_prose(&report->entries[i], indent, to);
    return i + 1;
}

static size_t put_list(const CliReport *report, size_t i, FILE *to)
{
    size_t n = 0;
    for (; i < report->n && report->entries[i].kind != CLI_CLOSE; i++, n++) {
        if (n < LIST_SHOWN) {
            fputs(n > 0 ? ", " : "", to);
            put_value(to, &report->entries[i], 0);
        }
    }
    if (n > LIST_SHOWN)
        fputs(", ...", to);
    return i + 1;
}

/* Widths of the columns of a list of objects that all have the same members. */
static void table_widths(const CliReport *report, size_t i, size_t widths[MAX_COLUMNS])
{
    char buf[CELL];
    size_t column = 0;
    for (; i < report->n && report->entries[i].kind != CLI_CLOSE; i++) {
        for (i++, column = 0; report->entries[i].kind != CLI_CLOSE; i++, column++) {
            const CliEntry *e = &report->entries[i];
            if (e->prose)
                continue;
            size_t w = is_numeric(e) ? strlen(cell(e, buf)) : e->bytes;
            size_t name = strlen(label(e, buf));
            w = w > name ? w : name;
            if (column < MAX_COLUMNS && w > widths[column])
                widths[column] = w;
        }
    }
}

static size_t put_row(const CliReport *report, size_t i, int names, size_t indent,
                      const size_t widths[MAX_COLUMNS], FILE *to)
{
    char buf[CELL];
    fprintf(to, "%*s", (int)indent, "");
    for (size_t column = 0; report->entries[i].kind != CLI_CLOSE; i++, column++) {
        const CliEntry *e = &report->entries[i];
        size_t width = column < MAX_COLUMNS ? widths[column] : 0;
        int last = e[1].kind == CLI_CLOSE || e[1].prose;
        if (e->prose)
            continue;
        fputs(column > 0 ? "  " : "", to);
        if (is_numeric(e)) {
            fprintf(to, "%*s", (int)width, names ? label(e, buf) : cell(e, buf));
            continue;
        }
        size_t used = names                 ? strlen(label(e, buf))
                      : e->kind == CLI_BOOL ? 3u - !e->number
                                            : e->bytes;
        if (names)
            fputs(buf, to);
        else if (e->kind == CLI_BOOL)
            fputs(e->number ? "yes" : "no", to);
        else
            cli_text_print(to, e->text, e->bytes);
        if (!last && used < width)
            fprintf(to, "%*s", (int)(width - used), "");
    }
    fputc('\n', to);
    if (!names && report->entries[i - 1].prose)
        put_prose(&report->entries[i - 1], indent + 2, to);
    return i;
}

static size_t put_table(const CliReport *report, size_t i, size_t indent, FILE *to)
{
    size_t widths[MAX_COLUMNS] = {0};
    table_widths(report, i, widths);
    put_row(report, i + 1, 1, indent, widths, to);
    for (; i < report->n && report->entries[i].kind != CLI_CLOSE; i++)
        i = put_row(report, i + 1, 0, indent, widths, to);
    return i + 1;
}

/* A number or a list that is printed only if it is not 0 or empty. */
static int is_left_out(const CliReport *report, size_t i)
{
    const CliEntry *e = &report->entries[i];
    if (e->kind == CLI_LIST)
        return e->quiet && i + 1 < report->n && e[1].kind == CLI_CLOSE;
    return e->quiet && e->number == 0;
}

/* The width of the names and numbers of the members from `i` on. Numbers are right-aligned only if
 * all members are numbers. */
static void member_widths(const CliReport *report, size_t i, size_t *ret_name, size_t *ret_number)
{
    char buf[CELL];
    int all_numbers = 1;
    *ret_name = *ret_number = 0;
    for (; i < report->n && report->entries[i].kind != CLI_CLOSE; i = cli_report_skip(report, i)) {
        const CliEntry *e = &report->entries[i];
        if (is_left_out(report, i))
            continue;
        size_t n = strlen(label(e, buf));
        *ret_name = n > *ret_name ? n : *ret_name;
        n = is_numeric(e) ? strlen(cell(e, buf)) : 0;
        *ret_number = n > *ret_number ? n : *ret_number;
        all_numbers = all_numbers && is_numeric(e);
    }
    if (!all_numbers)
        *ret_number = 0;
}

static void put_heading(FILE *to, size_t indent, const char *text)
{
    int colours = cli_terminal_has_colour(to);
    fprintf(to, "%*s%s%s%s\n", (int)indent, "", colours ? CLI_COLOUR_BOLD : "", text,
            colours ? CLI_COLOUR_NONE : "");
}

static size_t put_members(const CliReport *report, size_t i, size_t indent, FILE *to)
{
    char buf[CELL];
    size_t name_width, number_width;
    member_widths(report, i, &name_width, &number_width);
    while (i < report->n && report->entries[i].kind != CLI_CLOSE) {
        const CliEntry *e = &report->entries[i];
        const CliEntry *next = i + 1 < report->n ? e + 1 : NULL;
        if (is_left_out(report, i)) {
            i = cli_report_skip(report, i);
            continue;
        }
        int nested =
            e->kind == CLI_OBJECT || (e->kind == CLI_LIST && next && next->kind == CLI_OBJECT);
        if (nested) {
            put_heading(to, indent, label(e, buf));
            i = e->kind == CLI_OBJECT ? put_members(report, i + 1, indent + 2, to)
                                      : put_table(report, i + 1, indent + 2, to);
            continue;
        }
        if (e->kind == CLI_LIST && next && next->prose) {
            put_heading(to, indent, label(e, buf));
            i = put_paragraphs(report, i + 1, indent + 2, to);
            continue;
        }
        fprintf(to, "%*s%-*s  ", (int)indent, "", (int)name_width, label(e, buf));
        if (e->kind == CLI_LIST) {
            i = put_list(report, i + 1, to);
        } else {
            put_value(to, e, number_width);
            i++;
        }
        fputc('\n', to);
    }
    return i + 1;
}

int cli_report_print_text(const CliReport *report, FILE *to, PenError *reterr)
{
    if (report->failed)
        return cli_fail_memory(reterr);
    put_members(report, 0, 0, to);
    return ferror(to) ? cli_fail(reterr, PEN_E_IO, "stdout: cannot write the result") : PEN_OK;
}
