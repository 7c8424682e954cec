/* SPDX-License-Identifier: Apache-2.0 */
#include "output/report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "output/messages.h"
#include "output/text.h"

void cli_report_reset(CliReport *report)
{
    for (size_t i = 0; i < report->n; i++)
        free(report->entries[i].text);
    report->n = 0;
    report->failed = 0;
}

void cli_report_fini(CliReport *report)
{
    cli_report_reset(report);
    free(report->entries);
    *report = (CliReport){0};
}

static int reserve(CliReport *report)
{
    if (report->n < report->cap)
        return 0;
    size_t cap = report->cap ? report->cap * 2 : 64;
    CliEntry *entries = reallocarray(report->entries, cap, sizeof *entries);
    if (!entries)
        return -1;
    report->entries = entries;
    report->cap = cap;
    return 0;
}

static void add(CliReport *report, CliEntry entry)
{
    if (report->failed || reserve(report) != 0) {
        report->failed = 1;
        free(entry.text);
        return;
    }
    report->entries[report->n++] = entry;
}

static void add_copy(CliReport *report, CliKind kind, const char *name, const void *value,
                     size_t bytes)
{
    char *copy = malloc(bytes + 1);
    if (!copy) {
        report->failed = 1;
        return;
    }
    if (bytes > 0)
        memcpy(copy, value, bytes);
    copy[bytes] = '\0';
    add(report, (CliEntry){.kind = kind, .name = name, .text = copy, .bytes = bytes});
}

void cli_report_object(CliReport *report, const char *name)
{
    add(report, (CliEntry){.kind = CLI_OBJECT, .name = name});
}

void cli_report_group(CliReport *report, const char *name)
{
    add(report, (CliEntry){.kind = CLI_OBJECT, .name = name, .quiet = 1});
}

void cli_report_list(CliReport *report, const char *name)
{
    add(report, (CliEntry){.kind = CLI_LIST, .name = name});
}

void cli_report_rare_list(CliReport *report, const char *name)
{
    add(report, (CliEntry){.kind = CLI_LIST, .name = name, .quiet = 1});
}

void cli_report_close(CliReport *report)
{
    add(report, (CliEntry){.kind = CLI_CLOSE});
}

void cli_report_number(CliReport *report, const char *name, uint64_t value)
{
    add(report, (CliEntry){.kind = CLI_NUMBER, .name = name, .number = value});
}

void cli_report_count(CliReport *report, const char *name, uint64_t value)
{
    add(report, (CliEntry){.kind = CLI_NUMBER, .name = name, .number = value, .quiet = 1});
}

void cli_report_integer(CliReport *report, const char *name, int64_t value)
{
    add(report, (CliEntry){.kind = CLI_INTEGER, .name = name, .integer = value});
}

void cli_report_size(CliReport *report, const char *name, int64_t bytes)
{
    add(report, (CliEntry){.kind = CLI_SIZE, .name = name, .integer = bytes});
}

void cli_report_real(CliReport *report, const char *name, double value, const char *unit)
{
    add(report, (CliEntry){.kind = CLI_REAL, .name = name, .real = value, .unit = unit});
}

void cli_report_measured(CliReport *report, const char *name, double value, const char *unit)
{
    char buf[32];
    snprintf(buf, sizeof buf, "%.6g", value);
    cli_report_real(report, name, strtod(buf, NULL), unit);
}

void cli_report_bool(CliReport *report, const char *name, int value)
{
    add(report, (CliEntry){.kind = CLI_BOOL, .name = name, .number = value != 0});
}

void cli_report_text(CliReport *report, const char *name, const char *value)
{
    add_copy(report, CLI_TEXT, name, value, strlen(value));
}

void cli_report_prose(CliReport *report, const char *name, const char *value)
{
    cli_report_text(report, name, value);
    if (!report->failed)
        report->entries[report->n - 1].prose = 1;
}

void cli_report_bytes(CliReport *report, const char *name, const void *value, size_t bytes)
{
    add_copy(report, CLI_TEXT, name, value, bytes);
}

/* Deeper values are shown as a text: many readers of JSON refuse them. */
enum { JSON_DEPTH = 64 };

static int is_deep(const char *text)
{
    int depth = 0, in_string = 0;
    for (; *text && depth <= JSON_DEPTH; text++) {
        if (in_string && *text == '\\' && text[1])
            text++;
        else if (*text == '"')
            in_string = !in_string;
        else if (!in_string)
            depth += (*text == '[' || *text == '{') - (*text == ']' || *text == '}');
    }
    return depth > JSON_DEPTH;
}

static int is_json(const char *text)
{
    if (is_deep(text))
        return 0;
    /* As real numbers, because jansson has no integers above INT64_MAX. */
    json_t *value =
        json_loads(text, JSON_DECODE_ANY | JSON_DECODE_INT_AS_REAL | JSON_ALLOW_NUL, NULL);
    json_decref(value);
    return value != NULL;
}

void cli_report_json_text(CliReport *report, const char *name, const char *json)
{
    add_copy(report, is_json(json) ? CLI_JSON : CLI_TEXT, name, json, strlen(json));
}

static const char *status_name(int status)
{
    switch (status) {
#define XX(name, value, text)                                                                      \
    case PEN_##name:                                                                               \
        return #name;
        PEN_STATUS_MAP(XX)
#undef XX
    default:
        return "?";
    }
}

void cli_report_error(CliReport *report, const PenError *error)
{
    cli_report_object(report, "error");
    cli_report_text(report, "status", status_name(error->status));
    cli_report_text(report, "message", error->message);
    cli_report_text(report, "where", error->where);
    if (error->sample >= 0)
        cli_report_integer(report, "sample", error->sample);
    if (error->os_errno != 0)
        cli_report_integer(report, "errno", error->os_errno);
    cli_report_close(report);
}

size_t cli_report_skip(const CliReport *report, size_t i)
{
    size_t depth = 0;
    do {
        CliKind kind = report->entries[i].kind;
        if (kind == CLI_OBJECT || kind == CLI_LIST)
            depth++;
        else if (kind == CLI_CLOSE)
            depth--;
        i++;
    } while (depth > 0 && i < report->n);
    return i;
}
