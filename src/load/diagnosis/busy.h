/* SPDX-License-Identifier: Apache-2.0 */
/* How busy each part of a run was, and which of them was the bottleneck. A stage that cannot keep
 * up is busy all the time, and the stages around it wait. docs/reference/counters.md has the rules.
 */
#ifndef PEN_LOAD_DIAGNOSIS_BUSY_H
#define PEN_LOAD_DIAGNOSIS_BUSY_H

#include <penstock/loader.h>

/* What can be the bottleneck: a stage (PEN_LOAD_STAGE_*), or one of these. */
enum {
    PEN_LIMIT_CONSUMER = PEN_LOAD_STAGE_COUNT,
    PEN_LIMIT_TRANSFORM, /* of the consumer's time: functions that change each batch */
    PEN_LIMIT_MEMORY,
    PEN_LIMIT_UNKNOWN,
    PEN_LIMIT_NONE
};

/* Threads that share a queue; times are added up over them, in seconds. */
typedef struct PenBusyGroup {
    int first, last; /* stages */
    int largest;     /* of them: the one that took most of the time */
    double busy, all;
} PenBusyGroup;

typedef struct PenBusy {
    double seconds, samples, per_second;
    double bytes;    /* of the samples, as they were read */
    double consumer; /* share of the time in which the caller did not wait for a batch */
    double transform_seconds;
    double stage_seconds[PEN_LOAD_STAGE_COUNT];
    double decode_cpu; /* CPU time of decode, resample and store; 0 = not known */
    PenBusyGroup fetch, read, decode;
    int bottleneck, second; /* second: PEN_LIMIT_NONE = it is clear */
} PenBusy;

/* `since` may be NULL. */
void pen__busy_of(const PenLoaderStats *stats, const PenLoaderStats *since,
                  double transform_seconds, PenBusy *ret);
/* 0 to 1. */
double pen__busy_share(const PenBusyGroup *g);
const PenBusyGroup *pen__busy_group(const PenBusy *b, int stage);
const char *pen__limit_name(int limit); /* NULL for PEN_LIMIT_NONE */

#endif
