/* SPDX-License-Identifier: Apache-2.0 */
/* What the terminal can show. */
#ifndef PEN_CLI_OUTPUT_TERMINAL_H
#define PEN_CLI_OUTPUT_TERMINAL_H

#include <stddef.h>
#include <stdio.h>

#define CLI_COLOUR_RED "\033[31m"
#define CLI_COLOUR_GREEN "\033[32m"
#define CLI_COLOUR_YELLOW "\033[33m"
#define CLI_COLOUR_BOLD "\033[1m"
#define CLI_COLOUR_NONE "\033[0m"

int cli_terminal_is(FILE *to);
/* Not if the stream is not a terminal, if NO_COLOR is set, or if TERM is "dumb". */
int cli_terminal_has_colour(FILE *to);
/* Block characters such as U+258C: if the locale is UTF-8. The console of Linux has few of them. */
int cli_terminal_has_blocks(void);
/* Not if this is a background job of a shell: others write to the terminal. */
int cli_terminal_is_foreground(void);
/* Columns of stderr that can be written without a line break; 79 if unknown. */
size_t cli_terminal_width(void);

#endif
