/* SPDX-License-Identifier: Apache-2.0 */
/* How far the work of a command is, how fast it goes, and how long it still takes. */
#ifndef PEN_CLI_OUTPUT_RATES_H
#define PEN_CLI_OUTPUT_RATES_H

#include <stdint.h>

typedef struct CliProgressState { /* the share is of seconds, bytes or `done`: what has a total */
    const char *stage;
    const char *unit;                 /* of `done`, in the plural: "samples" */
    double done, total;               /* total 0 = unknown */
    uint64_t done_bytes, total_bytes; /* total 0 = not measured in bytes */
    double seconds, total_seconds;    /* total 0 = not measured in seconds */
    uint64_t bad;
} CliProgressState;

typedef struct CliRates { /* of the present stage; averages over the last seconds */
    char stage[16];
    uint64_t start_ns, last_ns;
    double done, bytes, share;                             /* at last_ns */
    double per_second, bytes_per_second, share_per_second; /* < 0 = unknown */
} CliRates;

/* From 0 to 1; < 0 if there is no total. */
double cli_progress_share(const CliProgressState *state);
/* The first call, and a new stage, start the measurement. */
void cli_rates_update(CliRates *rates, const CliProgressState *state, uint64_t now_ns);
/* Of this stage, and not of another or none. */
int cli_rates_are_of(const CliRates *rates, const char *stage);
/* < 0 if it is unknown. */
double cli_rates_seconds_left(const CliRates *rates);

#endif
