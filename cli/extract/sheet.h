/* SPDX-License-Identifier: Apache-2.0 */
/* Writing a list as comma-separated values (RFC 4180, with LF). */
#ifndef PEN_CLI_EXTRACT_SHEET_H
#define PEN_CLI_EXTRACT_SHEET_H

#include <stdio.h>

typedef struct CliSheet {
    FILE *to;
    int column; /* of the next cell */
} CliSheet;

void cli_sheet_cell(CliSheet *sheet, const void *text, size_t bytes);
void cli_sheet_text(CliSheet *sheet, const char *text);
void cli_sheet_row(CliSheet *sheet); /* ends a row */

#endif
