/* SPDX-License-Identifier: Apache-2.0 */
#include "output/progress.h"

#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "output/text.h"

#define SHOW_NS 200000000ull /* five times a second at most */
#define RATE_SECONDS 5.0     /* how far back the rates look, about */

uint64_t cli_clock_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

void cli_progress_init(CliProgress *progress)
{
    *progress = (CliProgress){.on = isatty(STDERR_FILENO)};
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

static void put_counts(FILE *to, const CliProgressState *s)
{
    char a[CLI_NUMBER_TEXT], b[CLI_NUMBER_TEXT];
    double done = (double)s->done, total = (double)s->total;
    if (s->total_bytes > 0) {
        done = (double)s->done_bytes;
        total = (double)s->total_bytes;
        fprintf(to, "%s: %s of %s", s->stage, cli_text_size(done, a), cli_text_size(total, b));
    } else if (s->total > 0) {
        fprintf(to, "%s: %s of %s", s->stage, cli_text_number((int64_t)s->done, a),
                cli_text_number((int64_t)s->total, b));
    } else {
        fprintf(to, "%s: %s", s->stage, cli_text_number((int64_t)s->done, a));
    }
    if (total > 0)
        fprintf(to, "  %d %%", (int)(100 * done / total));
}

static void put_rates(FILE *to, const CliProgress *p, const CliProgressState *s)
{
    char buf[CLI_NUMBER_TEXT];
    int in_bytes = s->total_bytes > 0;
    double rate = in_bytes ? p->bytes_per_second : p->per_second;
    double left = in_bytes             ? (double)(s->total_bytes - s->done_bytes)
                  : s->total > s->done ? (double)(s->total - s->done)
                                       : 0;
    if (!in_bytes && p->per_second >= 0)
        fprintf(to, "  %.*f/s", p->per_second < 10 ? 1 : 0, p->per_second);
    if (p->bytes_per_second > 0)
        fprintf(to, "  %.1f MB/s", p->bytes_per_second / 1e6);
    if (rate > 0 && left > 0)
        fprintf(to, "  %s left", cli_text_time(left / rate, buf));
    if (s->bad > 0)
        fprintf(to, "  %s bad", cli_text_number((int64_t)s->bad, buf));
}

static size_t terminal_width(void)
{
    struct winsize size;
    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col < 20)
        return 79;
    return (size_t)size.ws_col - 1u;
}

/* Written over what stands there, with spaces behind: works on every terminal. */
static void put_line(CliProgress *p, const char *line)
{
    size_t n = strlen(line), most = terminal_width();
    n = n < most ? n : most;
    size_t blank = p->width > n ? p->width - n : 0;
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
            put_counts(to, state);
            put_rates(to, progress, state);
            fclose(to);
        }
        put_line(progress, line);
    }
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
