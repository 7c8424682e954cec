/* SPDX-License-Identifier: Apache-2.0 */
#include "output/terminal.h"

#include <langinfo.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

int cli_terminal_is(FILE *to)
{
    return isatty(fileno(to));
}

static int term_is(const char *name)
{
    const char *term = getenv("TERM");
    return !term || strcmp(term, name) == 0;
}

int cli_terminal_has_colour(FILE *to)
{
    const char *no_colour = getenv("NO_COLOR");
    return cli_terminal_is(to) && !(no_colour && no_colour[0]) && !term_is("dumb");
}

int cli_terminal_has_blocks(void)
{
    locale_t locale = newlocale(LC_CTYPE_MASK, "", (locale_t)0);
    if (!locale)
        return 0;
    int utf8 = strcmp(nl_langinfo_l(CODESET, locale), "UTF-8") == 0;
    freelocale(locale);
    return utf8 && !term_is("dumb") && !term_is("linux");
}

int cli_terminal_is_foreground(void)
{
    pid_t group = tcgetpgrp(STDERR_FILENO);
    return group < 0 || group == getpgrp(); /* < 0: not the terminal of this session */
}

size_t cli_terminal_width(void)
{
    struct winsize size;
    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0)
        return 79;
    return (size_t)size.ws_col - 1u;
}
