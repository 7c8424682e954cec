/* SPDX-License-Identifier: Apache-2.0 */
/* How a command ends: its record on stdout in the form asked for, or a message; and the exit code.
 */
#ifndef PEN_CLI_OUTPUT_RESULT_H
#define PEN_CLI_OUTPUT_RESULT_H

#include "arguments/args.h"
#include "output/report.h"

/* `line` (may be NULL) is printed instead of the record where text is asked for. */
int cli_result_print(const CliArgs *args, const CliReport *report, const char *line);
int cli_result_error(const CliArgs *args, const PenError *error);
/* For work that was interrupted: `advice` says how to go on. */
int cli_result_interrupted(const CliArgs *args, const PenError *error, const char *advice);

#endif
