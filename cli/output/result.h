/* SPDX-License-Identifier: Apache-2.0 */
/* The end of a command: prints its report or an error, and returns the exit code. */
#ifndef PEN_CLI_OUTPUT_RESULT_H
#define PEN_CLI_OUTPUT_RESULT_H

#include "arguments/args.h"
#include "output/report.h"

/* Prints JSON with --json, else `line`, or the report if `line` is NULL. */
int cli_result_print(const CliArgs *args, const CliReport *report, const char *line);
/* PEN_E_BUSY has an exit code of its own: the same command may work later. */
int cli_result_error(const CliArgs *args, const PenError *error);
/* For interrupted work: `advice` is what to do next. */
int cli_result_interrupted(const CliArgs *args, const PenError *error, const char *advice);

#endif
