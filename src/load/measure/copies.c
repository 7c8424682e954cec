/* SPDX-License-Identifier: Apache-2.0 */
#include "load/measure/copies.h"

#include <string.h>

#include "base/attr.h"
#include "base/error.h"
#include "base/mem.h"
#include "base/sys.h"
#include "base/team.h"

#define WHERE "load/measure"

/* Of all threads together, more than caches hold; of one copy. */
enum { ALL_BYTES = 128 << 20, STEP = 64 << 10 };
enum { MEMORY_PART = 8 };
/* The fastest of them counts, as another program may slow down the others. */
enum { ROUNDS = 4 };

typedef struct Copier { /* one thread */
    size_t steps;       /* in each of the two halves of its memory */
    uint64_t for_ns;
    double per_second; /* bytes; the result. < 0: no memory */
} Copier;

/* The thread itself writes its memory first, so that it is near to it: pages that nobody has
 * written are all the same one. */
static void copy(void *copiers, unsigned number)
{
    Copier *c = (Copier *)copiers + number;
    size_t half = c->steps * STEP;
    uint8_t *memory = pen__alloc(2 * half);
    uint64_t done = 0, ns;
    c->per_second = -1;
    if (!memory)
        return;
    memset(memory, 1, 2 * half);
    uint64_t start = pen__sys->now_ns();
    do {
        size_t at = (size_t)(done % c->steps) * STEP;
        memcpy(memory + half + at, memory + at, STEP);
        ns = pen__sys->now_ns() - start;
        done++;
    } while (ns < c->for_ns);
    c->per_second = (double)done * STEP * 1e9 / (double)PEN_MAX(ns, UINT64_C(1));
    pen__free(memory);
}

int pen__copies_measure(uint32_t threads, uint64_t memory_bytes, double seconds, double *ret,
                        PenError *reterr)
{
    uint64_t all = PEN_MIN((uint64_t)ALL_BYTES, memory_bytes / MEMORY_PART);
    Copier *copiers = pen__alloc_array(threads, sizeof *copiers);
    PenTeamWork work = {.name = "pen-copy", .run = copy, .ctx = copiers};
    int r = PEN_OK;
    if (!copiers)
        return pen__fail_memory(reterr, WHERE, "threads");
    *ret = 0;
    for (int round = 0; round < ROUNDS && r == PEN_OK; round++) {
        double sum = 0;
        for (uint32_t i = 0; i < threads; i++)
            copiers[i] = (Copier){.steps = (size_t)PEN_MAX(all / 2 / threads / STEP, UINT64_C(1)),
                                  .for_ns = (uint64_t)(seconds * 1e9 / ROUNDS)};
        r = pen__team_run(&work, threads, reterr);
        for (uint32_t i = 0; i < threads && r == PEN_OK; i++) {
            sum += copiers[i].per_second;
            if (copiers[i].per_second < 0)
                r = pen__fail_memory(reterr, WHERE, "copies");
        }
        *ret = PEN_MAX(*ret, sum);
    }
    pen__free(copiers);
    return r;
}
