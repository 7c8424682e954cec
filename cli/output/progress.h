/* SPDX-License-Identifier: Apache-2.0 */
/* One line on the terminal that says how far the work is; nothing at all when stderr is no
 * terminal. */
#ifndef PEN_CLI_OUTPUT_PROGRESS_H
#define PEN_CLI_OUTPUT_PROGRESS_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

typedef struct CliProgressState { /* what is known of the work at one moment */
    const char *stage;
    uint64_t done, total; /* samples; total 0 = not known */
    uint64_t done_bytes;
    uint64_t total_bytes; /* 0 = counted in samples, else in bytes alone */
    uint64_t bad;
} CliProgressState;

typedef struct CliProgress {
    pthread_mutex_t lock; /* messages may come from other threads */
    int on;
    char stage[16];
    uint64_t shown_ns, rated_ns; /* when the line was written, the rates taken */
    uint64_t rated_done, rated_bytes;
    double per_second, bytes_per_second; /* over the last seconds; < 0 = not known yet */
    size_t width;                        /* of what stands on the terminal */
} CliProgress;

uint64_t cli_clock_ns(void);

void cli_progress_init(CliProgress *progress);
void cli_progress_show(CliProgress *progress, const CliProgressState *state);
/* Takes the line off the terminal, for a message or at the end. */
void cli_progress_clear(CliProgress *progress);
void cli_progress_fini(CliProgress *progress);

#endif
