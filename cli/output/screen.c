/* SPDX-License-Identifier: Apache-2.0 */
#include "output/screen.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "output/terminal.h"

#define OTHER_SCREEN "\033[?1049h"
#define FIRST_SCREEN "\033[?1049l"
#define HIDE_CURSOR "\033[?25l"
#define SHOW_CURSOR "\033[?25h"
#define TO_START "\033[H"
#define CLEAR_LINE "\033[K"
#define CLEAR_BELOW "\033[J"

int cli_screen_is_possible(void)
{
    const char *term = getenv("TERM");
    return cli_terminal_is(stdout) && term && strcmp(term, "dumb") != 0;
}

/* Keys arrive at once and are not shown. Ctrl-C still ends the program; Ctrl-Z would leave the
 * terminal as it is now. */
void cli_screen_open(CliScreen *screen)
{
    screen->has_keys = isatty(STDIN_FILENO) && tcgetattr(STDIN_FILENO, &screen->before) == 0;
    if (screen->has_keys) {
        struct termios now = screen->before;
        now.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
        now.c_cc[VMIN] = 0;
        now.c_cc[VTIME] = 0;
        now.c_cc[VSUSP] = _POSIX_VDISABLE;
        (void)tcsetattr(STDIN_FILENO, TCSANOW, &now);
    }
    fputs(OTHER_SCREEN HIDE_CURSOR, stdout);
    fflush(stdout);
}

void cli_screen_close(CliScreen *screen)
{
    fputs(SHOW_CURSOR FIRST_SCREEN, stdout);
    fflush(stdout);
    if (screen->has_keys)
        (void)tcsetattr(STDIN_FILENO, TCSANOW, &screen->before);
}

/* Lines are overwritten and then cleared, so that nothing flickers. */
void cli_screen_draw(const char *text)
{
    fputs(TO_START, stdout);
    for (const char *end; (end = strchr(text, '\n')); text = end + 1)
        printf("%.*s" CLEAR_LINE "\n", (int)(end - text), text);
    fputs(CLEAR_BELOW, stdout);
    fflush(stdout);
}

size_t cli_screen_rows(void)
{
    struct winsize size;
    return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row ? size.ws_row : 24;
}

char cli_screen_key(const CliScreen *screen, int ms)
{
    struct pollfd in = {.fd = STDIN_FILENO, .events = POLLIN};
    char key = 0;
    if (poll(&in, screen->has_keys ? 1 : 0, ms) > 0 && read(STDIN_FILENO, &key, 1) <= 0)
        return 'q'; /* the terminal was closed */
    return key;
}
