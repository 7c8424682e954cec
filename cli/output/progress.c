/* SPDX-License-Identifier: Apache-2.0 */
#include "output/progress.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "output/terminal.h"
#include "output/text.h"

#define SHOW_NS 200000000ull /* five times a second at most */
#define RATE_SECONDS 5.0     /* time constant of the rates */

enum { BAR = 20 };

uint64_t cli_clock_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

void cli_progress_init(CliProgress *progress)
{
    *progress =
        (CliProgress){.on = isatty(STDERR_FILENO), .colour = cli_terminal_has_colour(stderr)};
    pthread_mutex_init(&progress->lock, NULL);
}

void cli_progress_fini(CliProgress *progress)
{
    cli_progress_clear(progress);
    pthread_mutex_destroy(&progress->lock);
}

static void rate_update(double *rate, double now, double seconds)
{
    double keep = *rate < 0 ? 0 : RATE_SECONDS / (RATE_SECONDS + seconds);
    *rate = keep * *rate + (1 - keep) * now;
}

static void rates_update(CliProgress *p, const CliProgressState *s, uint64_t now_ns)
{
    if (strncmp(p->stage, s->stage, sizeof p->stage - 1) != 0 || s->done < p->rated_done) {
        snprintf(p->stage, sizeof p->stage, "%s", s->stage);
        p->per_second = p->bytes_per_second = -1;
    } else {
        double seconds = (double)(now_ns - p->rated_ns) / 1e9;
        rate_update(&p->per_second, (double)(s->done - p->rated_done) / seconds, seconds);
        rate_update(&p->bytes_per_second, (double)(s->done_bytes - p->rated_bytes) / seconds,
                    seconds);
    }
    p->rated_ns = now_ns;
    p->rated_done = s->done;
    p->rated_bytes = s->done_bytes;
}

/* From 0 to 1; 0 if there is no total. */
static double share_done(const CliProgressState *s)
{
    double share = 0;
    if (s->total_seconds > 0)
        share = s->seconds / s->total_seconds;
    else if (s->total_bytes > 0)
        share = (double)s->done_bytes / (double)s->total_bytes;
    else if (s->total > 0)
        share = (double)s->done / (double)s->total;
    return share < 1 ? share : 1;
}

static void put_bar(FILE *to, const CliProgressState *s)
{
    char bar[BAR + 1];
    double share = share_done(s);
    size_t full = (size_t)(share * BAR);
    if (s->total == 0 && s->total_bytes == 0 && s->total_seconds <= 0)
        return;
    memset(bar, ' ', BAR);
    memset(bar, '=', full);
    if (full < BAR)
        bar[full] = '>';
    bar[BAR] = '\0';
    fprintf(to, " [%s] %3d %%", bar, (int)(100 * share));
}

static void put_counts(FILE *to, const CliProgressState *s)
{
    char a[CLI_NUMBER_TEXT], b[CLI_NUMBER_TEXT];
    if (s->total_seconds > 0)
        fprintf(to, "  %s of %s", cli_text_time(s->seconds, a), cli_text_time(s->total_seconds, b));
    else if (s->total_bytes > 0)
        fprintf(to, "  %s of %s", cli_text_size((double)s->done_bytes, a),
                cli_text_size((double)s->total_bytes, b));
    else if (s->total > 0)
        fprintf(to, "  %s of %s", cli_text_number((int64_t)s->done, a),
                cli_text_number((int64_t)s->total, b));
    else
        fprintf(to, "  %s", cli_text_number((int64_t)s->done, a));
}

/* < 0 if it is unknown. */
static double seconds_left(const CliProgress *p, const CliProgressState *s)
{
    if (s->total_seconds > 0)
        return s->total_seconds - s->seconds;
    if (s->total_bytes > 0)
        return p->bytes_per_second > 0
                   ? (double)(s->total_bytes - s->done_bytes) / p->bytes_per_second
                   : -1;
    return p->per_second > 0 && s->total > s->done ? (double)(s->total - s->done) / p->per_second
                                                   : -1;
}

static void put_rates(FILE *to, const CliProgress *p, const CliProgressState *s)
{
    char buf[CLI_NUMBER_TEXT];
    double left = seconds_left(p, s);
    if (s->total_bytes == 0 && p->per_second >= 0)
        fprintf(to, "  %.*f/s", p->per_second < 10 ? 1 : 0, p->per_second);
    if (p->bytes_per_second > 0)
        fprintf(to, "  %.1f MB/s", p->bytes_per_second / 1e6);
    if (left > 0)
        fprintf(to, "  %s left", cli_text_time(left, buf));
    if (s->bad > 0)
        fprintf(to, "  %s bad", cli_text_number((int64_t)s->bad, buf));
}

/* Overwrites the previous line, and pads with spaces: this works on every terminal. The bar, if
 * there is one, is coloured. */
static void put_line(CliProgress *p, const char *line)
{
    size_t n = strlen(line), most = cli_terminal_width();
    n = n < most ? n : most;
    size_t blank = p->width > n ? p->width - n : 0;
    size_t bar = strcspn(line, "["), end = strcspn(line, "]");
    if (p->colour && end < n)
        fprintf(stderr, "\r%.*s" CLI_COLOUR_GREEN "%.*s" CLI_COLOUR_NONE "%.*s%*s", (int)bar + 1,
                line, (int)(end - bar) - 1, line + bar + 1, (int)(n - end), line + end, (int)blank,
                "");
    else
        fprintf(stderr, "\r%.*s%*s", (int)n, line, (int)blank, "");
    if (n == 0)
        fputc('\r', stderr);
    fflush(stderr);
    p->width = n;
}

void cli_progress_show(CliProgress *progress, const CliProgressState *state)
{
    char line[256] = "";
    uint64_t now = cli_clock_ns();
    if (!progress->on)
        return;
    pthread_mutex_lock(&progress->lock);
    if (now - progress->shown_ns >= SHOW_NS) {
        progress->shown_ns = now;
        rates_update(progress, state, now);
        FILE *to = fmemopen(line, sizeof line, "w");
        if (to) {
            fputs(state->stage, to);
            put_bar(to, state);
            put_counts(to, state);
            put_rates(to, progress, state);
            fclose(to);
        }
        put_line(progress, line);
    }
    pthread_mutex_unlock(&progress->lock);
}

void cli_progress_note(CliProgress *progress, const char *text)
{
    if (!progress->on)
        return;
    pthread_mutex_lock(&progress->lock);
    put_line(progress, text);
    pthread_mutex_unlock(&progress->lock);
}

void cli_progress_clear(CliProgress *progress)
{
    if (!progress->on)
        return;
    pthread_mutex_lock(&progress->lock);
    if (progress->width > 0)
        put_line(progress, "");
    pthread_mutex_unlock(&progress->lock);
}
