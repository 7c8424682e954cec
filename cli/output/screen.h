/* SPDX-License-Identifier: Apache-2.0 */
/* A view that fills the terminal and is drawn again and again, until a key ends it. What was on the
 * terminal before is shown again afterwards. */
#ifndef PEN_CLI_OUTPUT_SCREEN_H
#define PEN_CLI_OUTPUT_SCREEN_H

#include <stddef.h>
#include <termios.h>

typedef struct CliScreen {
    int has_keys; /* stdin is a terminal, too */
    struct termios before;
} CliScreen;

/* Whether stdout is a terminal that can be drawn on. */
int cli_screen_is_possible(void);
void cli_screen_open(CliScreen *screen);
void cli_screen_close(CliScreen *screen);

/* Replaces everything by these lines, each ending in a line feed. */
void cli_screen_draw(const char *text);
/* Rows of the terminal; 24 if unknown. */
size_t cli_screen_rows(void);
/* Waits. Returns a key that was pressed; 0 after the time, or when a signal has arrived. */
char cli_screen_key(const CliScreen *screen, int ms);

#endif
