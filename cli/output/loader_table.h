/* SPDX-License-Identifier: Apache-2.0 */
/* Running loaders as a table for people and as a report. */
#ifndef PEN_CLI_OUTPUT_LOADER_TABLE_H
#define PEN_CLI_OUTPUT_LOADER_TABLE_H

#include <stdio.h>

#include "output/report.h"
#include "tools.h"

typedef struct CliTableStyle {
    size_t columns, rows; /* at most; 0 = any number */
    int colour;
} CliTableStyle;

/* One line for each loader, below the name of its pack. Fits into 78 columns, but for names of
 * packs if any number of columns may be used. */
void cli_loader_table(const PenLoaderList *list, const CliTableStyle *style, FILE *to);
void cli_loader_report(const PenLoaderList *list, CliReport *report);

#endif
