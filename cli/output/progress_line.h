/* SPDX-License-Identifier: Apache-2.0 */
/* The text of the progress: a bar for a terminal, a sentence for a log. */
#ifndef PEN_CLI_OUTPUT_PROGRESS_LINE_H
#define PEN_CLI_OUTPUT_PROGRESS_LINE_H

#include <stddef.h>

#include "output/rates.h"

enum { CLI_LINE_BYTES = 512 };

typedef struct CliLineStyle {
    size_t columns; /* at most */
    int utf8, colour;
} CliLineStyle;

/* "pack  [######          ]   42 %  12,345 of 29,000  410 samples/s  41 s left". If the columns are
 * few, the less important pieces are left out. Returns the columns that the line takes. */
size_t cli_progress_line(const CliProgressState *state, const CliRates *rates,
                         const CliLineStyle *style, char line[CLI_LINE_BYTES]);
/* "pack: 42 %, 12,345 of 29,000, 410 samples/s, 96.1 MB/s, 41 s left". */
void cli_progress_sentence(const CliProgressState *state, const CliRates *rates,
                           char line[CLI_LINE_BYTES]);

#endif
