/* SPDX-License-Identifier: Apache-2.0 */
/* The JSON and the tab-separated form of a report. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "output/messages.h"
#include "output/report.h"
#include "output/text.h"

static int finish(const CliReport *report, FILE *to, PenError *reterr)
{
    if (report->failed)
        return cli_fail_memory(reterr);
    fputc('\n', to);
    return ferror(to) ? cli_fail(reterr, PEN_E_IO, "stdout: cannot write the result") : PEN_OK;
}

const char *cli_real_text(double value, char buf[32])
{
    for (int digits = 6; digits <= 17; digits++) {
        snprintf(buf, 32, "%.*g", digits, value);
        if (strtod(buf, NULL) == value)
            break;
    }
    return buf;
}

static void put_hex_name(FILE *to, const char *of)
{
    char name[64];
    snprintf(name, sizeof name, "%s_hex", of);
    fputs(", ", to);
    cli_text_json(to, name, strlen(name));
    fputs(": ", to);
}

static void put_hex(FILE *to, const CliEntry *e)
{
    fputc('"', to);
    for (size_t i = 0; i < e->bytes; i++)
        fprintf(to, "%02x", (uint8_t)e->text[i]);
    fputc('"', to);
}

static int needs_hex(const CliEntry *e)
{
    return e->kind == CLI_TEXT && !cli_utf8_valid(e->text, e->bytes);
}

/* A list of texts is also written in hexadecimal if one of them is not UTF-8, because two different
 * texts may have the same escaped form. */
static void put_hex_list(FILE *to, const CliReport *report, size_t list, size_t end)
{
    int needed = 0;
    for (size_t i = list + 1; i < end; i++) {
        if (report->entries[i].kind != CLI_TEXT || report->entries[i].name)
            return; /* a list of objects: each text has its own member */
        needed |= needs_hex(&report->entries[i]);
    }
    if (!needed || !report->entries[list].name)
        return;
    put_hex_name(to, report->entries[list].name);
    for (size_t i = list + 1; i < end; i++) {
        fputs(i > list + 1 ? ", " : "[", to);
        put_hex(to, &report->entries[i]);
    }
    fputc(']', to);
}

static void put_json_value(FILE *to, const CliEntry *e)
{
    char buf[32];
    switch (e->kind) {
    case CLI_NUMBER:
        fprintf(to, "%" PRIu64, e->number);
        break;
    case CLI_INTEGER:
    case CLI_SIZE:
        fprintf(to, "%" PRId64, e->integer);
        break;
    case CLI_REAL:
        /* JSON has no infinity and no NaN. */
        fputs(isfinite(e->real) ? cli_real_text(e->real, buf) : "null", to);
        break;
    case CLI_BOOL:
        fputs(e->number ? "true" : "false", to);
        break;
    case CLI_JSON:
        fwrite(e->text, 1, e->bytes, to);
        break;
    case CLI_TEXT:
        cli_text_json(to, e->text, e->bytes);
        if (e->name && needs_hex(e)) {
            put_hex_name(to, e->name);
            put_hex(to, e);
        }
        break;
    case CLI_OBJECT:
    case CLI_LIST:
    case CLI_CLOSE:
        break;
    }
}

static size_t put_json_members(const CliReport *report, size_t i, FILE *to)
{
    for (int first = 1; i < report->n && report->entries[i].kind != CLI_CLOSE; first = 0) {
        const CliEntry *e = &report->entries[i];
        if (!first)
            fputs(", ", to);
        if (e->name) {
            cli_text_json(to, e->name, strlen(e->name));
            fputs(": ", to);
        }
        if (e->kind == CLI_OBJECT || e->kind == CLI_LIST) {
            size_t list = i;
            fputc(e->kind == CLI_OBJECT ? '{' : '[', to);
            i = put_json_members(report, i + 1, to);
            fputc(e->kind == CLI_OBJECT ? '}' : ']', to);
            if (e->kind == CLI_LIST)
                put_hex_list(to, report, list, i);
        } else {
            put_json_value(to, e);
        }
        i++;
    }
    return i;
}

int cli_report_print_json(const CliReport *report, uint32_t schema, FILE *to, PenError *reterr)
{
    if (report->failed)
        return cli_fail_memory(reterr);
    fputc('{', to);
    if (schema)
        fprintf(to, "\"schema\": %" PRIu32 "%s", schema, report->n ? ", " : "");
    put_json_members(report, 0, to);
    fputc('}', to);
    return finish(report, to, reterr);
}

enum { MAX_DEPTH = 8 };

static void put_path(FILE *to, const char *const *path, size_t depth, const char *name)
{
    int first = 1;
    for (size_t i = 0; i <= depth; i++) {
        const char *part = i < depth ? path[i] : name;
        if (!part)
            continue;
        fputs(first ? "" : ".", to);
        cli_text_tsv(to, part, strlen(part));
        first = 0;
    }
}

static void put_tsv_value(FILE *to, const CliEntry *e)
{
    char buf[32];
    if (e->kind == CLI_TEXT || e->kind == CLI_JSON)
        cli_text_tsv(to, e->text, e->bytes);
    else if (e->kind == CLI_REAL)
        fputs(cli_real_text(e->real, buf), to);
    else
        put_json_value(to, e);
}

/* A value, or the values of a list, as one cell. */
static void put_tsv_cell(const CliReport *report, size_t i, FILE *to)
{
    if (report->entries[i].kind != CLI_LIST) {
        put_tsv_value(to, &report->entries[i]);
        return;
    }
    size_t end = cli_report_skip(report, i) - 1;
    for (size_t k = i + 1; k < end; k++) {
        fputs(k > i + 1 ? "," : "", to);
        put_tsv_value(to, &report->entries[k]);
    }
}

int cli_report_print_tsv(const CliReport *report, int names, FILE *to, PenError *reterr)
{
    const char *path[MAX_DEPTH] = {NULL};
    size_t depth = 0;
    int first = 1;
    for (size_t i = 0; i < report->n && !report->failed;) {
        const CliEntry *e = &report->entries[i];
        if (e->kind == CLI_OBJECT && depth < MAX_DEPTH)
            path[depth++] = e->quiet ? NULL : e->name;
        else if (e->kind == CLI_CLOSE && depth > 0)
            depth--;
        if (e->kind == CLI_OBJECT || e->kind == CLI_CLOSE) {
            i++;
            continue;
        }
        fputs(first ? "" : "\t", to);
        first = 0;
        if (names)
            put_path(to, path, depth, e->name);
        else
            put_tsv_cell(report, i, to);
        i = cli_report_skip(report, i);
    }
    return finish(report, to, reterr);
}
