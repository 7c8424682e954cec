/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/sweep.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SHOWN = 8 };

static bool scale_is(const char *name)
{
    const char *scale = getenv("PENSTOCK_SCALE");
    return scale && strcmp(scale, name) == 0;
}

bool scale_is_full(void)
{
    return scale_is("full");
}

uint64_t scaled(uint64_t full, uint64_t sample)
{
    return scale_is_full() ? full : sample;
}

uint64_t scaled_to_few(uint64_t full, uint64_t sample, uint64_t few)
{
    return scale_is("few") ? few : scaled(full, sample);
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

Sweep sweep_begin(const char *name)
{
    return (Sweep){.name = name, .began = now()};
}

void sweep_bad(Sweep *s, const char *fmt, ...)
{
    if (s->bad++ >= SHOWN)
        return;
    va_list args;
    va_start(args, fmt);
    printf("  %s, case %" PRIu64 ": ", s->name, s->n);
    vprintf(fmt, args);
    printf("\n");
    va_end(args);
    fflush(stdout);
}

void sweep_end(const Sweep *s, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    printf("%s: ", s->name);
    vprintf(fmt, args);
    printf(", %" PRIu64 " complaints, %.1f s\n", s->bad, now() - s->began);
    va_end(args);
    fflush(stdout);
}

void must_failed(const char *file, int line, const char *what)
{
    printf("%s:%d: cannot go on: %s\n", file, line, what);
    fflush(stdout);
    exit(1); /* not abort: the scratch directory is removed on the way */
}
