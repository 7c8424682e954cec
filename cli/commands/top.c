/* SPDX-License-Identifier: Apache-2.0 */
/* Shows the running loaders of this user: once, or again and again. */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

#include "arguments/commands.h"
#include "interrupt.h"
#include "output/loader_table.h"
#include "output/messages.h"
#include "output/result.h"
#include "output/screen.h"
#include "output/terminal.h"

enum { FRAME_ROWS = 5 }; /* around the table */

static const char nothing[] =
    "No loaders of this user are running here. A loader appears when it is opened,\n"
    "unless its process has PENSTOCK_TOP=0 in its environment or runs in another\n"
    "container.\n";

static int is_empty(const PenLoaderList *list)
{
    PenRunningLoader loader;
    return pen_loader_list_get(list, 0, &loader) != PEN_OK;
}

static void print_plain(const PenLoaderList *list)
{
    if (is_empty(list))
        fputs(nothing, stdout);
    else
        cli_loader_table(list, &(CliTableStyle){0}, stdout);
}

/* ---- once ---- */

static int print_once(const CliArgs *args)
{
    CliReport report = {0};
    PenError error = {0};
    PenLoaderList *list;
    int code = CLI_EXIT_OK;
    if (pen_loader_list_open(&list, &error) < 0)
        return cli_result_error(args, &error);
    if (args->values[CLI_OPT_JSON].given) {
        cli_loader_report(list, &report);
        code = cli_result_print(args, &report, NULL);
        cli_report_fini(&report);
    } else {
        print_plain(list);
    }
    pen_loader_list_close(&list);
    return code;
}

/* ---- again and again ---- */

static int draw(double seconds, PenError *reterr)
{
    PenLoaderList *list;
    char *text = NULL;
    size_t bytes, rows = cli_screen_rows();
    CliTableStyle style = {.columns = cli_terminal_width(),
                           .rows = rows > FRAME_ROWS ? rows - FRAME_ROWS : 1,
                           .colour = cli_terminal_has_colour(stdout)};
    int r = pen_loader_list_open(&list, reterr);
    if (r < 0)
        return r;
    FILE *to = open_memstream(&text, &bytes);
    if (to) {
        char title[80];
        snprintf(title, sizeof title, "penstock top: every %g s; q ends it", seconds);
        fprintf(to, "%.*s\n\n", (int)style.columns, title);
        if (is_empty(list))
            fputs(nothing, to);
        else
            cli_loader_table(list, &style, to);
        if (style.columns >= 78)
            fputs("\nwait: share of the time that training waited for data. threads: decode + "
                  "read.\n",
                  to);
        if (fclose(to) == 0)
            cli_screen_draw(text);
    }
    free(text);
    pen_loader_list_close(&list);
    return to ? PEN_OK : cli_fail_memory(reterr);
}

static int show_screen(double seconds, PenError *reterr)
{
    CliScreen screen;
    char key = 0;
    int r = PEN_OK;
    cli_screen_open(&screen);
    while (r == PEN_OK && key != 'q' && key != 'Q' && !cli_interrupted()) {
        r = draw(seconds, reterr);
        if (r == PEN_OK)
            key = cli_screen_key(&screen, (int)(seconds * 1000));
    }
    cli_screen_close(&screen);
    return r;
}

static int print_lines(double seconds, PenError *reterr)
{
    int r = PEN_OK;
    while (r == PEN_OK && !cli_interrupted()) {
        PenLoaderList *list;
        r = pen_loader_list_open(&list, reterr);
        if (r < 0)
            break;
        print_plain(list);
        pen_loader_list_close(&list);
        putchar('\n');
        if (fflush(stdout) != 0)
            break; /* main reports it */
        (void)poll(NULL, 0, (int)(seconds * 1000));
    }
    return r;
}

int cli_top(const CliArgs *args)
{
    PenError error = {0};
    double seconds = args->values[CLI_OPT_INTERVAL].real;
    if (args->values[CLI_OPT_ONCE].given || args->values[CLI_OPT_JSON].given)
        return print_once(args);
    cli_interrupt_install();
    int r = cli_screen_is_possible() ? show_screen(seconds, &error) : print_lines(seconds, &error);
    return r < 0 ? cli_result_error(args, &error) : CLI_EXIT_OK;
}
