/* SPDX-License-Identifier: Apache-2.0 */
#include "output/terminal.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

int cli_terminal_has_colour(FILE *to)
{
    const char *no_colour = getenv("NO_COLOR"), *term = getenv("TERM");
    return isatty(fileno(to)) && !(no_colour && no_colour[0]) && term && strcmp(term, "dumb") != 0;
}

size_t cli_terminal_width(void)
{
    struct winsize size;
    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col < 20)
        return 79;
    return (size_t)size.ws_col - 1u;
}
