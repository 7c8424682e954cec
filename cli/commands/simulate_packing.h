/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEN_CLI_COMMANDS_SIMULATE_PACKING_H
#define PEN_CLI_COMMANDS_SIMULATE_PACKING_H

#include <penstock/simulate.h>

#include "arguments/args.h"
#include "output/progress.h"

/* 'simulate --pack': ends the progress, prints the result, returns the exit code. */
int cli_simulate_packing(const CliArgs *args, PenSimSettings *job, CliProgress *progress);

#endif
