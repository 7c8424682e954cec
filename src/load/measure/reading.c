/* SPDX-License-Identifier: Apache-2.0 */
#include "load/measure/reading.h"

#include "base/sys.h"
#include "load/loader.h"
#include "load/measure/cold.h"

/* The page cache has all samples only after a complete pass, which is worth some time. */
#define LEAST_NS UINT64_C(1000000000)
/* Several times the latency of a slow store: many responses arrive at once. */
#define LEAST_REMOTE 2.5 /* seconds */

enum { PARTS = 4 };

/* Epochs that no training reaches, so that other samples come first than in the run before. What a
 * cache has stored in the first of them does not come first in the second one. */
static const uint64_t EPOCH = UINT64_C(1) << 40, OTHER_EPOCH = UINT64_C(1) << 41;

typedef struct Count {
    uint64_t samples, ns;
} Count;

static double rate_of(const Count *c)
{
    return c->ns ? (double)c->samples * 1e9 / (double)c->ns : 0;
}

/* ---- a loader ---- */

/* One pass, or what fits before `end_ns`, one batch at least. */
static int one_pass(PenLoader *l, uint64_t end_ns, Count *count, PenError *reterr)
{
    uint64_t start = pen__sys->now_ns(), last = start;
    int r = PEN_OK;
    while (r == PEN_OK && (last == start || last < end_ns)) {
        PenBatch *batch = NULL;
        r = pen_loader_next(l, -1, &batch, reterr);
        if (r != PEN_OK)
            break;
        count->samples += batch->n_valid;
        pen_batch_unref(&batch);
        last = pen__sys->now_ns();
    }
    count->ns += last - start;
    return r;
}

static int open_loader(const PenLoadPlan *plan, const PenLoaderSettings *s, uint64_t epoch,
                       PenLoader **ret, PenError *reterr)
{
    int r = pen_loader_open(plan->pack, s, ret, reterr);
    if (r < 0)
        return r;
    pen__loader_skip_decoding(*ret);
    return pen_loader_set_epoch(*ret, epoch, reterr);
}

/* The fastest part of what follows the first pass, as another program may slow down the others. */
static int measure_again(PenLoader *l, uint64_t ns, double *ret, PenError *reterr)
{
    int r = PEN_OK;
    for (int i = 0; i < PARTS && r >= 0; i++) {
        Count part = {0};
        uint64_t end = pen__sys->now_ns() + ns / PARTS;
        while (r >= 0 && pen__sys->now_ns() < end)
            r = one_pass(l, end, &part, reterr);
        *ret = PEN_MAX(*ret, rate_of(&part));
    }
    return r;
}

/* The first pass; and with `again`, what follows it. */
static int measure(const PenLoadPlan *plan, const PenLoaderSettings *s, uint64_t epoch,
                   double seconds, double *first, double *again, PenError *reterr)
{
    PenLoader *l = NULL;
    Count one = {0};
    uint64_t ns = (uint64_t)(seconds * 1e9), patience = again ? PEN_MAX(ns, LEAST_NS) : ns;
    int r = open_loader(plan, s, epoch, &l, reterr);
    if (r == PEN_OK)
        r = one_pass(l, pen__sys->now_ns() + patience, &one, reterr);
    if (again)
        *again = 0;
    if (again && r == PEN_END) /* a disk that is too slow for one pass has nothing in the cache */
        r = measure_again(l, ns, again, reterr);
    pen_loader_close(&l);
    if (r < 0)
        return r;
    if (first)
        *first = rate_of(&one);
    return PEN_OK;
}

/* ---- */

static int measure_local(const PenLoadPlan *plan, PenLoaderSettings *s, double seconds,
                         PenReadingRates *ret, PenError *reterr)
{
    PenCold c;
    double first;
    int r = pen__cold_choose(&c, plan, EPOCH, reterr);
    s->order = PEN_ORDER_SEQUENTIAL; /* of the list */
    s->subset = c.samples;
    s->n_subset = c.n_samples;
    s->first = s->count = 0;
    s->last_batch = PEN_LAST_SHORT;
    s->rank = 0;
    s->world = 1;
    if (r == PEN_OK) {
        bool cold = pen__cold_drop(&c);
        r = measure(plan, s, EPOCH, seconds, &first, &ret->warm, reterr);
        ret->cold = cold ? first : 0;
    }
    if (r == PEN_OK && ret->cold > 0 && pen__cold_drop(&c)) {
        s->io_threads = (int32_t)PEN_MAX(plan->io_threads / 2, 1u);
        r = measure(plan, s, EPOCH, seconds, &ret->half, NULL, reterr);
    }
    pen__cold_release(&c);
    return r;
}

int pen__reading_measure(const PenLoadPlan *plan, double seconds, PenReadingRates *ret,
                         PenError *reterr)
{
    PenLoaderSettings s = plan->set;
    *ret = (PenReadingRates){0};
    s.subset = plan->subset;
    s.n_subset = plan->subset ? plan->state.order.n : 0;
    if (!plan->fetch.fetchers)
        return measure_local(plan, &s, seconds, ret, reterr);
    if (seconds > 0) /* 0: one batch each */
        seconds = PEN_MAX(seconds, LEAST_REMOTE);
    int r = measure(plan, &s, EPOCH, seconds, &ret->warm, NULL, reterr);
    if (r == PEN_OK && plan->fetch.fetchers > 1) {
        s.io_threads = (int32_t)(plan->fetch.fetchers / 2);
        r = measure(plan, &s, OTHER_EPOCH, seconds, &ret->half, NULL, reterr);
    }
    return r;
}
