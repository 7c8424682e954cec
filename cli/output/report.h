/* SPDX-License-Identifier: Apache-2.0 */
/* What a command found or did. The text, JSON and tab-separated forms are all derived from it. A
 * report is a list of named values; objects and lists nest, up to their close. */
#ifndef PEN_CLI_OUTPUT_REPORT_H
#define PEN_CLI_OUTPUT_REPORT_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <penstock/error.h>

typedef enum CliKind {
    CLI_OBJECT,
    CLI_LIST,
    CLI_CLOSE,
    CLI_NUMBER,
    CLI_INTEGER,
    CLI_SIZE, /* bytes */
    CLI_REAL,
    CLI_BOOL,
    CLI_TEXT,
    CLI_JSON /* a text that is JSON already */
} CliKind;

typedef struct CliEntry {
    CliKind kind;
    const char *name; /* the caller's, NULL in a list */
    const char *unit; /* the caller's, NULL = none; only in the text form */
    int prose;        /* text: sentences of ours, which the text form breaks into lines */
    int quiet; /* number, list: not in the text form if it is 0 or empty; object: its name is not
                  in TSV */
    uint64_t number;
    int64_t integer;
    double real;
    char *text;
    size_t bytes;
} CliEntry;

typedef struct CliReport {
    CliEntry *entries;
    size_t n, cap;
    int failed; /* out of memory: nothing more is added, and printing fails */
} CliReport;

/* A CliReport starts as {0}. Names must live as long as it does; values are copied. Names end in
 * the unit of the value (_bytes, _seconds, _ms, _percent, _mb_per_second, _gbit_per_second), unless
 * the object that contains them does. The text form prints the unit after the value instead. */
void cli_report_reset(CliReport *report); /* empties it; keeps its memory */
void cli_report_fini(CliReport *report);

void cli_report_object(CliReport *report, const char *name);
void cli_report_group(CliReport *report, const char *name); /* an object that TSV does not name */
void cli_report_list(CliReport *report, const char *name);
/* A list that the text form has only if it is not empty. */
void cli_report_rare_list(CliReport *report, const char *name);
void cli_report_close(CliReport *report);
void cli_report_number(CliReport *report, const char *name, uint64_t value);
/* A number that the text form has only if it is not 0. */
void cli_report_count(CliReport *report, const char *name, uint64_t value);
void cli_report_integer(CliReport *report, const char *name, int64_t value);
void cli_report_size(CliReport *report, const char *name, int64_t bytes);
void cli_report_real(CliReport *report, const char *name, double value, const char *unit);
/* The same, rounded to six digits. */
void cli_report_measured(CliReport *report, const char *name, double value, const char *unit);
void cli_report_bool(CliReport *report, const char *name, int value);
void cli_report_text(CliReport *report, const char *name, const char *value);
/* Sentences of ours. In a table they are the last member, and follow their row. */
void cli_report_prose(CliReport *report, const char *name, const char *value);
/* Any bytes. If they are not UTF-8, JSON has NAME and NAME_hex. */
void cli_report_bytes(CliReport *report, const char *name, const void *value, size_t bytes);
/* Text that should be JSON: inserted unchanged if it is valid, as a string otherwise. */
void cli_report_json_text(CliReport *report, const char *name, const char *json);
void cli_report_error(CliReport *report, const PenError *error);

/* The index after the entry at `i` and everything nested in it. */
size_t cli_report_skip(const CliReport *report, size_t i);

/* The shortest decimal text that parses to the same double. */
const char *cli_real_text(double value, char buf[32]);

int cli_report_print_text(const CliReport *report, FILE *to, PenError *reterr);
/* One line. `schema` is the version of the members, as docs/reference/json.md describes them; it is
 * printed first. 0 = none. */
int cli_report_print_json(const CliReport *report, uint32_t schema, FILE *to, PenError *reterr);
/* All values in one line, separated by tabs; those of a list by commas. With `names`, their names
 * instead, as a.b. */
int cli_report_print_tsv(const CliReport *report, int names, FILE *to, PenError *reterr);

#endif
