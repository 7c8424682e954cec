/* SPDX-License-Identifier: Apache-2.0 */
/* The table of commands: what each is called, does, teaches and runs. */
#ifndef PEN_CLI_ARGUMENTS_COMMANDS_H
#define PEN_CLI_ARGUMENTS_COMMANDS_H

#include "arguments/args.h"

typedef struct CliCommand {
    const char *name;
    const char *also;                /* another spelling; NULL = none */
    const char *usage;               /* what stands behind the command */
    const char *operand_help;        /* what it needs, for the message when it is missing */
    int many;                        /* several operands */
    int two;                         /* just two */
    int none;                        /* or no operand at all */
    int never;                       /* takes no operand */
    const char *summary;             /* for the list of commands */
    const char *about;               /* paragraphs; "\n" between them */
    const char *examples;            /* lines, as typed */
    const char *next;                /* what to do afterwards */
    int (*run)(const CliArgs *args); /* gives the exit code */
} CliCommand;

extern const CliCommand cli_commands[CLI_N_COMMANDS];

/* The command with this name, CLI_N_COMMANDS when there is none. */
CliCommandId cli_command_find(const char *name);
const char *cli_command_near(const char *name);

int cli_pack(const CliArgs *args);
int cli_plan(const CliArgs *args);
int cli_finalise(const CliArgs *args);
int cli_gc(const CliArgs *args);
int cli_info(const CliArgs *args);
int cli_verify(const CliArgs *args);
int cli_extract(const CliArgs *args);
int cli_copy(const CliArgs *args);
int cli_ops(const CliArgs *args);
int cli_bench(const CliArgs *args);
int cli_cache(const CliArgs *args);
int cli_simulate(const CliArgs *args);
int cli_probe(const CliArgs *args);

#endif
