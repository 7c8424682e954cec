/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEN_CLI_COMMANDS_ANALYSE_H
#define PEN_CLI_COMMANDS_ANALYSE_H

#include <penstock/pack.h>

#include "arguments/args.h"

/* `penstock info --analyse`; returns the exit code. */
int cli_analyse(const CliArgs *args, PenPack *pack);

#endif
