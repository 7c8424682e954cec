/* SPDX-License-Identifier: Apache-2.0 */
#include "extract/csv.h"

#include <string.h>

static int needs_quotes(const char *s, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        if (s[i] == ',' || s[i] == '"' || s[i] == '\r' || s[i] == '\n')
            return 1;
    return 0;
}

void cli_csv_cell(CliCsv *csv, const void *text, size_t bytes)
{
    const char *s = text;
    if (csv->column++ > 0)
        fputc(',', csv->to);
    if (!needs_quotes(s, bytes)) {
        fwrite(s, 1, bytes, csv->to);
        return;
    }
    fputc('"', csv->to);
    for (size_t i = 0; i < bytes; i++) {
        if (s[i] == '"')
            fputc('"', csv->to);
        fputc(s[i], csv->to);
    }
    fputc('"', csv->to);
}

void cli_csv_text(CliCsv *csv, const char *text)
{
    cli_csv_cell(csv, text, strlen(text));
}

void cli_csv_row(CliCsv *csv)
{
    fputc('\n', csv->to);
    csv->column = 0;
}
