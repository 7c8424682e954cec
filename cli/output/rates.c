/* SPDX-License-Identifier: Apache-2.0 */
#include "output/rates.h"

#include <stdio.h>
#include <string.h>

#define WINDOW_SECONDS 10.0     /* time constant of the averages */
#define LEFT_AFTER_SECONDS 0.5  /* before, an estimate would be a guess */
#define MOST_SECONDS_LEFT 3.6e6 /* 1,000 hours: the work has stopped rather than slowed down */

static double share_of(double done, double total)
{
    return done < total ? done / total : 1;
}

double cli_progress_share(const CliProgressState *s)
{
    if (s->total_seconds > 0)
        return share_of(s->seconds, s->total_seconds);
    if (s->total_bytes > 0)
        return share_of((double)s->done_bytes, (double)s->total_bytes);
    return s->total > 0 ? share_of(s->done, s->total) : -1;
}

int cli_rates_are_of(const CliRates *r, const char *stage)
{
    return r->start_ns > 0 && strncmp(r->stage, stage, sizeof r->stage - 1) == 0;
}

static int is_other_pass(const CliRates *r, const CliProgressState *s)
{
    return s->done < r->done || (double)s->done_bytes < r->bytes;
}

static void average(double *rate, double grown, double step, double keep)
{
    *rate = keep * *rate + (1 - keep) * grown / step;
}

void cli_rates_update(CliRates *r, const CliProgressState *s, uint64_t now_ns)
{
    double share = cli_progress_share(s), bytes = (double)s->done_bytes;
    if (!cli_rates_are_of(r, s->stage) || is_other_pass(r, s)) {
        *r = (CliRates){
            .start_ns = now_ns, .per_second = -1, .bytes_per_second = -1, .share_per_second = -1};
        snprintf(r->stage, sizeof r->stage, "%s", s->stage);
    } else if (now_ns > r->last_ns) {
        /* While the stage is younger than the window, this is the mean since its start. */
        double age = (double)(r->last_ns - r->start_ns) / 1e9;
        double step = (double)(now_ns - r->last_ns) / 1e9;
        double window = age < WINDOW_SECONDS ? age : WINDOW_SECONDS;
        double keep = window / (window + step);
        average(&r->per_second, s->done - r->done, step, keep);
        average(&r->bytes_per_second, bytes - r->bytes, step, keep);
        average(&r->share_per_second, share - r->share, step, keep);
    }
    r->last_ns = now_ns;
    r->done = s->done;
    r->bytes = bytes;
    r->share = share;
}

double cli_rates_seconds_left(const CliRates *r)
{
    if (r->share < 0 || r->share_per_second <= 0 ||
        (double)(r->last_ns - r->start_ns) / 1e9 < LEFT_AFTER_SECONDS)
        return -1;
    double left = (1 - r->share) / r->share_per_second;
    return left < MOST_SECONDS_LEFT ? left : -1;
}
