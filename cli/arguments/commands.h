/* SPDX-License-Identifier: Apache-2.0 */
/* The commands, by name. */
#ifndef PEN_CLI_ARGUMENTS_COMMANDS_H
#define PEN_CLI_ARGUMENTS_COMMANDS_H

#include "arguments/tables.h"

/* The command with this name, CLI_N_COMMANDS if there is none. */
CliCommandId cli_command_find(const char *name);
const char *cli_command_near(const char *name);

int cli_pack(const CliArgs *args);
int cli_index(const CliArgs *args);
int cli_plan(const CliArgs *args);
int cli_finalise(const CliArgs *args);
int cli_gc(const CliArgs *args);
int cli_info(const CliArgs *args);
int cli_verify(const CliArgs *args);
int cli_extract(const CliArgs *args);
int cli_copy(const CliArgs *args);
int cli_ops(const CliArgs *args);
int cli_doctor(const CliArgs *args);
int cli_top(const CliArgs *args);
int cli_cache(const CliArgs *args);
/* --version: without `json`, one line. Returns the exit code. */
int cli_version(int json);

#endif
