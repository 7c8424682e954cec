/* SPDX-License-Identifier: Apache-2.0 */
/* The samples that -s and -k select: sorted ranges that do not touch. Without them, all samples. */
#ifndef PEN_CLI_ARGUMENTS_SELECTION_H
#define PEN_CLI_ARGUMENTS_SELECTION_H

#include <penstock/pack.h>

#include "arguments/args.h"

typedef struct CliRange {
    uint64_t first, end; /* end is exclusive */
} CliRange;

typedef struct CliSelection {
    CliRange *ranges;
    size_t n;
    uint64_t n_samples; /* in all of them */
} CliSelection;

int cli_selection_make(PenPack *pack, const CliArgs *args, CliSelection *ret, PenError *reterr);
void cli_selection_fini(CliSelection *selection);

#endif
