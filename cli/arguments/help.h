/* SPDX-License-Identifier: Apache-2.0 */
/* The help texts, derived from the tables of commands and options. */
#ifndef PEN_CLI_ARGUMENTS_HELP_H
#define PEN_CLI_ARGUMENTS_HELP_H

#include <stdio.h>

#include "arguments/args.h"

void cli_help_program(FILE *to);
void cli_help_command(FILE *to, CliCommandId command);
void cli_help_s3(FILE *to);
/* All of it, for programs. */
int cli_help_json(FILE *to, PenError *reterr);

#endif
