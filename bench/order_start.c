/* SPDX-License-Identifier: Apache-2.0 */
/* What the start of an epoch costs, and a resume in its middle: the order of an epoch of 10^9
 * samples is set up, and the samples of one batch are found at a random position.
 *
 *     ./dev bench order [SAMPLES]
 *
 * Microseconds of the thread's CPU: the median and the highest of many starts.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/attr.h"
#include "load/epoch/order.h"

enum { STARTS = 1001, BATCH = 256, BLOCK = 32, BUFFER = 12288 };

static double now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Microseconds, or negative. */
static double start(const PenOrderPlan *plan, uint64_t number, uint64_t *sum)
{
    PenOrder order;
    PenError err = {0};
    uint64_t position = number * UINT64_C(0x9e3779b97f4a7c15) % (plan->n - BATCH);
    double began = now_us();
    if (pen__order_init(&order, plan, number, &err) < 0) {
        fprintf(stderr, "order_start: %s\n", err.message);
        return -1;
    }
    for (uint64_t i = 0; i < BATCH; i++)
        *sum += pen__order_at(&order, position + i);
    return now_us() - began;
}

int main(int argc, char **argv)
{
    static const int kinds[] = {PEN_ORDER_SEQUENTIAL, PEN_ORDER_RANDOM, PEN_ORDER_SHUFFLE,
                                PEN_ORDER_STICKY};
    static double us[STARTS];
    uint64_t sum = 0, n = argc > 1 ? strtoull(argv[1], NULL, 10) : UINT64_C(1000000000);
    if (n <= BATCH) {
        fprintf(stderr, "usage: order_start [SAMPLES], more than %d\n", BATCH);
        return 2;
    }
    printf("%" PRIu64 " samples; the order and the first %d samples of it, in microseconds\n", n,
           BATCH);
    for (size_t k = 0; k < PEN_LEN(kinds); k++) {
        PenOrderPlan plan = {.kind = kinds[k], .n = n, .seed = 1};
        if (pen__order_has_streams(plan.kind)) {
            plan.block_samples = BLOCK;
            plan.streams = pen__streams_for(BUFFER, BLOCK);
        }
        for (uint64_t i = 0; i < STARTS; i++)
            if ((us[i] = start(&plan, i, &sum)) < 0)
                return 1;
        qsort(us, STARTS, sizeof us[0], by_value);
        printf("%-12s median %7.1f  highest %7.1f\n", pen__order_name(plan.kind), us[STARTS / 2],
               us[STARTS - 1]);
    }
    return sum == 0;
}
