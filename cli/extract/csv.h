/* SPDX-License-Identifier: Apache-2.0 */
/* Writes comma-separated values (RFC 4180, with LF). */
#ifndef PEN_CLI_EXTRACT_CSV_H
#define PEN_CLI_EXTRACT_CSV_H

#include <stdio.h>

typedef struct CliCsv {
    FILE *to;
    int column; /* of the next cell */
} CliCsv;

void cli_csv_cell(CliCsv *csv, const void *text, size_t bytes);
void cli_csv_text(CliCsv *csv, const char *text);
void cli_csv_row(CliCsv *csv); /* ends a row */

#endif
