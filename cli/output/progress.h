/* SPDX-License-Identifier: Apache-2.0 */
/* A line on the terminal with a bar, rates and the time left. Nothing is printed if stderr is not a
 * terminal. */
#ifndef PEN_CLI_OUTPUT_PROGRESS_H
#define PEN_CLI_OUTPUT_PROGRESS_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

typedef struct CliProgressState { /* the bar shows seconds, bytes or samples: what has a total */
    const char *stage;
    uint64_t done, total;             /* samples; total 0 = unknown */
    uint64_t done_bytes, total_bytes; /* total 0 = not measured in bytes */
    double seconds, total_seconds;    /* total 0 = not measured in seconds */
    uint64_t bad;
} CliProgressState;

typedef struct CliProgress {
    pthread_mutex_t lock; /* other threads may print messages */
    int on, colour;
    char stage[16];
    uint64_t shown_ns, rated_ns; /* times of the last line and rates */
    uint64_t rated_done, rated_bytes;
    double per_second, bytes_per_second; /* over the last seconds; < 0 = unknown */
    size_t width;                        /* of the line on the terminal */
} CliProgress;

uint64_t cli_clock_ns(void);

void cli_progress_init(CliProgress *progress);
void cli_progress_show(CliProgress *progress, const CliProgressState *state);
/* A line of text instead, for work whose progress is unknown. */
void cli_progress_note(CliProgress *progress, const char *text);
/* Removes the line, before a message or at the end. */
void cli_progress_clear(CliProgress *progress);
void cli_progress_fini(CliProgress *progress);

#endif
