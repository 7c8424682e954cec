/* SPDX-License-Identifier: Apache-2.0 */
#include "extract/sheet.h"

#include <string.h>

static int needs_quotes(const char *s, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        if (s[i] == ',' || s[i] == '"' || s[i] == '\r' || s[i] == '\n')
            return 1;
    return 0;
}

void cli_sheet_cell(CliSheet *sheet, const void *text, size_t bytes)
{
    const char *s = text;
    if (sheet->column++ > 0)
        fputc(',', sheet->to);
    if (!needs_quotes(s, bytes)) {
        fwrite(s, 1, bytes, sheet->to);
        return;
    }
    fputc('"', sheet->to);
    for (size_t i = 0; i < bytes; i++) {
        if (s[i] == '"')
            fputc('"', sheet->to);
        fputc(s[i], sheet->to);
    }
    fputc('"', sheet->to);
}

void cli_sheet_text(CliSheet *sheet, const char *text)
{
    cli_sheet_cell(sheet, text, strlen(text));
}

void cli_sheet_row(CliSheet *sheet)
{
    fputc('\n', sheet->to);
    sheet->column = 0;
}
