/* SPDX-License-Identifier: Apache-2.0 */
/* Who hears of bytes while they arrive in their places. */
#ifndef PEN_BASE_ARRIVAL_H
#define PEN_BASE_ARRIVAL_H

#include <stdint.h>

typedef struct PenArrival {
    /* Called by the thread that receives: the first `bytes` bytes are in place. 0: they arrive from
     * the beginning (again), and nothing that was reported before counts. Calls are optional except
     * those with 0, so whoever is called has to do the rest when all bytes are in place. */
    void (*call)(void *ctx, uint64_t bytes);
    void *ctx;
} PenArrival;

static inline void pen__arrival_tell(const PenArrival *a, uint64_t bytes)
{
    if (a)
        a->call(a->ctx, bytes);
}

#endif
