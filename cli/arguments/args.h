/* SPDX-License-Identifier: Apache-2.0 */
/* The command line, parsed and checked against the table of options. */
#ifndef PEN_CLI_ARGUMENTS_ARGS_H
#define PEN_CLI_ARGUMENTS_ARGS_H

#include "arguments/tables.h"

/* argv[0] is the first word after the command. Fills `ret` even when it fails; fini frees it in
 * any case. */
int cli_args_parse(CliCommandId command, int argc, char **argv, CliArgs *ret, PenError *reterr);
void cli_args_fini(CliArgs *args);

/* One value, checked against its option. */
int cli_value_parse(const CliOption *option, const char *text, CliValue *ret, PenError *reterr);
/* Number of `word` in "a|b|c", or -1. */
int cli_choice_find(const char *choices, const char *word);
/* "a|b|c" as "a, b or c"; only those whose bit is set in `mask`. */
void cli_choice_list(const char *choices, uint32_t mask, char *buf, size_t cap);

/* The option of the command (or, with all_commands, of any) by its name of `bytes` letters;
 * CLI_N_OPTIONS = none. */
CliOpt cli_option_find(CliCommandId command, const char *name, size_t bytes, int all_commands);
/* The name that is most similar to a wrong option or value; NULL if none is similar. */
const char *cli_option_near(CliCommandId command, const char *word);
const char *cli_choice_near(const char *choices, const char *word, char *buf, size_t cap);
/* Edit distance: letters to change, insert, delete or swap. */
size_t cli_word_distance(const char *a, const char *b);
int cli_word_is_near(const char *typed, const char *right, size_t *best);

#endif
