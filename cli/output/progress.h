/* SPDX-License-Identifier: Apache-2.0 */
/* Shows how far a command is, on stderr: a bar on a terminal, otherwise a line every 30 seconds, or
 * a line of JSON every second. */
#ifndef PEN_CLI_OUTPUT_PROGRESS_H
#define PEN_CLI_OUTPUT_PROGRESS_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <penstock/error.h>

#include "output/rates.h"

typedef struct CliProgress {
    pthread_mutex_t lock; /* of all below and of `to`: other threads may print errors */
    FILE *to;
    int is_terminal, utf8, colour;
    int is_json;                     /* set by the command after the init function */
    uint64_t updated_ns, printed_ns; /* times of the last update and of the last plain line */
    CliRates rates;
    size_t columns; /* of the line on the terminal */
} CliProgress;

uint64_t cli_clock_ns(void);

void cli_progress_init(CliProgress *progress);
/* Cheap: does something ten times a second at most, and when a stage starts. */
void cli_progress_show(CliProgress *progress, const CliProgressState *state);
void cli_progress_show_at(CliProgress *progress, const CliProgressState *state, uint64_t now_ns);
/* A line of ASCII instead, for work whose progress is unknown. Only a terminal shows it. */
void cli_progress_note(CliProgress *progress, const char *text);
/* An error that does not end the work. */
void cli_progress_error(CliProgress *progress, const PenError *error);
/* Removes the line. */
void cli_progress_fini(CliProgress *progress);

#endif
