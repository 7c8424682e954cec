/* SPDX-License-Identifier: Apache-2.0 */
#include "output/progress.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "output/messages.h"
#include "output/progress_line.h"
#include "output/terminal.h"

#define UPDATE_NS 100000000ull /* ten times a second at most */
#define JSON_NS 1000000000ull
#define PLAIN_NS 30000000000ull /* a line of a log every 30 seconds, none if the work is short */

uint64_t cli_clock_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

void cli_progress_init(CliProgress *progress)
{
    *progress = (CliProgress){.to = stderr,
                              .is_terminal = cli_terminal_is(stderr),
                              .utf8 = cli_terminal_has_blocks(),
                              .colour = cli_terminal_has_colour(stderr),
                              .printed_ns = cli_clock_ns()};
    pthread_mutex_init(&progress->lock, NULL);
}

/* Overwrites the previous line, and pads with spaces: this works on every terminal. The cursor ends
 * at the start of the line, so that the ^C of a terminal is overwritten as well. Another program
 * has the terminal if this one runs in the background. */
static void put_line(CliProgress *p, const char *line, size_t columns)
{
    size_t width = cli_terminal_width();
    size_t old = p->columns < width ? p->columns : width;
    p->columns = 0;
    if (!cli_terminal_is_foreground())
        return;
    fprintf(p->to, "\r%s%*s\r", line, (int)(old > columns ? old - columns : 0), "");
    fflush(p->to);
    p->columns = columns;
}

static void clear(CliProgress *p)
{
    if (p->columns > 0)
        put_line(p, "", 0);
}

/* Names of stages need no escapes. */
static void put_json(CliProgress *p, const CliProgressState *s)
{
    fprintf(p->to,
            "{\"stage\": \"%s\", \"done\": %.0f, \"total\": %.0f, \"done_bytes\": %" PRIu64
            ", \"bad\": %" PRIu64 "}\n",
            s->stage, s->done, s->total, s->done_bytes, s->bad);
    fflush(p->to);
}

static void show(CliProgress *p, const CliProgressState *state, uint64_t now_ns)
{
    char line[CLI_LINE_BYTES];
    int is_new = !cli_rates_are_of(&p->rates, state->stage);
    p->updated_ns = now_ns;
    cli_rates_update(&p->rates, state, now_ns);
    if (p->is_json) {
        if (!is_new && now_ns - p->printed_ns < JSON_NS)
            return;
        p->printed_ns = now_ns;
        put_json(p, state);
    } else if (p->is_terminal) {
        CliLineStyle style = {cli_terminal_width(), p->utf8, p->colour};
        size_t columns = cli_progress_line(state, &p->rates, &style, line);
        put_line(p, line, columns);
    } else if (now_ns - p->printed_ns >= PLAIN_NS) {
        p->printed_ns = now_ns;
        cli_progress_sentence(state, &p->rates, line);
        fprintf(p->to, "penstock: %s\n", line);
    }
}

void cli_progress_show_at(CliProgress *progress, const CliProgressState *state, uint64_t now_ns)
{
    pthread_mutex_lock(&progress->lock);
    if (now_ns - progress->updated_ns >= UPDATE_NS ||
        !cli_rates_are_of(&progress->rates, state->stage))
        show(progress, state, now_ns);
    pthread_mutex_unlock(&progress->lock);
}

void cli_progress_show(CliProgress *progress, const CliProgressState *state)
{
    cli_progress_show_at(progress, state, cli_clock_ns());
}

void cli_progress_note(CliProgress *progress, const char *text)
{
    char line[CLI_LINE_BYTES];
    size_t n = strlen(text), width = cli_terminal_width();
    n = n < width ? n : width;
    if (!progress->is_terminal)
        return;
    pthread_mutex_lock(&progress->lock);
    snprintf(line, sizeof line, "%.*s", (int)n, text);
    put_line(progress, line, strlen(line));
    pthread_mutex_unlock(&progress->lock);
}

void cli_progress_error(CliProgress *progress, const PenError *error)
{
    pthread_mutex_lock(&progress->lock);
    clear(progress);
    cli_print_error(error);
    pthread_mutex_unlock(&progress->lock);
}

void cli_progress_fini(CliProgress *progress)
{
    pthread_mutex_lock(&progress->lock);
    clear(progress);
    pthread_mutex_unlock(&progress->lock);
    pthread_mutex_destroy(&progress->lock);
}
