/* SPDX-License-Identifier: Apache-2.0 */
/* How bytes are read that take a while: who hears of them while they arrive in their places, and
 * what ends the wait for them. */
#ifndef PEN_BASE_ARRIVAL_H
#define PEN_BASE_ARRIVAL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct PenArrival {
    /* Called by the thread that receives: the first `bytes` bytes are in place. 0: they arrive from
     * the beginning (again), and nothing that was reported before counts. Calls are optional except
     * those with 0, so whoever is called has to do the rest when all bytes are in place. NULL:
     * nobody. */
    void (*call)(void *ctx, uint64_t bytes);
    void *ctx;
    const atomic_bool *stop; /* set: whoever waits for the bytes gives up; may be NULL */
    bool is_again;           /* what came the last time was wrong: over another connection */
} PenArrival;

static inline void pen__arrival_tell(const PenArrival *a, uint64_t bytes)
{
    if (a && a->call)
        a->call(a->ctx, bytes);
}

static inline bool pen__arrival_is_stopped(const PenArrival *a)
{
    return a && a->stop && atomic_load(a->stop);
}

static inline bool pen__arrival_is_again(const PenArrival *a)
{
    return a && a->is_again;
}

#endif
