/* SPDX-License-Identifier: Apache-2.0 */
#include "load/measure/reading.h"

#include "base/mem.h"
#include "base/sys.h"
#include "load/loader.h"
#include "pack/reader/reader.h"

#define WHERE "load/measure"
/* So many of the blocks must be out of the page cache, for a rate without it. */
#define COLD 0.9
#define MAX_SAMPLES UINT64_C(4096)
#define MAX_BLOCKS 64
#define PAGES (UINT64_C(2) << 20)

/* The page cache has all samples only after a complete pass, which is worth some time. */
#define LEAST_NS UINT64_C(1000000000)

enum { TRIES = 10, PAUSE_MS = 10 };

/* An epoch that no training reaches: other samples come first than in the run before. */
static const uint64_t EPOCH = UINT64_C(1) << 40;

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

static int open_loader(const PenLoadPlan *plan, const PenLoaderSettings *s, PenLoader **ret,
                       PenError *reterr)
{
    int r = pen_loader_open(plan->pack, s, ret, reterr);
    if (r < 0)
        return r;
    pen__loader_skip_decoding(*ret);
    return pen_loader_set_epoch(*ret, EPOCH, reterr);
}

/* The first pass; and with `again`, what follows it. */
static int measure(const PenLoadPlan *plan, const PenLoaderSettings *s, double seconds,
                   double *first, double *again, PenError *reterr)
{
    PenLoader *l = NULL;
    Count one = {0}, more = {0};
    uint64_t ns = (uint64_t)(seconds * 1e9), patience = again ? PEN_MAX(ns, LEAST_NS) : ns;
    int r = open_loader(plan, s, &l, reterr);
    if (r == PEN_OK)
        r = one_pass(l, pen__sys->now_ns() + patience, &one, reterr);
    uint64_t end = pen__sys->now_ns() + ns;
    while (again && r == PEN_END && pen__sys->now_ns() < end)
        r = one_pass(l, end, &more, reterr);
    pen_loader_close(&l);
    if (r < 0)
        return r;
    if (first)
        *first = rate_of(&one);
    if (again) /* a disk that is too slow for one pass has nothing in the page cache */
        *again = rate_of(&more);
    return PEN_OK;
}

/* ---- samples that are not in the page cache ---- */

/* Some entire blocks, and samples in them. A page cache works in units of up to 2 MiB, so that less
 * than a block cannot be dropped from it. */
typedef struct Chosen {
    PenBlock *blocks[MAX_BLOCKS]; /* held */
    uint64_t n_blocks;
    uint64_t *samples, n_samples;
} Chosen;

static int hold_block(const PenLoadPlan *plan, Chosen *c, uint64_t number, PenError *reterr)
{
    for (uint64_t i = 0; i < c->n_blocks; i++)
        if (c->blocks[i]->number == number)
            return PEN_OK;
    if (c->n_blocks == MAX_BLOCKS)
        return PEN_OK;
    int r = pen__pack_block(plan->pack, number, &c->blocks[c->n_blocks], reterr);
    c->n_blocks += r == PEN_OK;
    return r;
}

/* The blocks that come first in an epoch, then one sample of each, again and again. */
static int choose(const PenLoadPlan *plan, Chosen *c, PenError *reterr)
{
    PenOrder order;
    uint64_t each = pen_pack_info(plan->pack)->block_samples, all = plan->state.order.n;
    int r = pen__order_init(&order, &plan->state.order, EPOCH, reterr);
    for (uint64_t i = 0; r == PEN_OK && i < PEN_MIN(all, MAX_SAMPLES); i++) {
        uint64_t sample = pen__load_plan_sample(plan, pen__order_at(&order, i));
        if (plan->subset) /* others in the block are not among the samples */
            c->samples[c->n_samples++] = sample;
        r = hold_block(plan, c, sample / each, reterr);
    }
    for (uint64_t k = 0; r == PEN_OK && !plan->subset && k < each; k++)
        for (uint64_t i = 0; i < c->n_blocks && c->n_samples < MAX_SAMPLES; i++)
            if (c->blocks[i]->number * each + k - plan->set.first < all)
                c->samples[c->n_samples++] = c->blocks[i]->number * each + k;
    return r;
}

static bool drop_block(const PenBlock *b)
{
    PenSource *source = b->shard->shard.source;
    uint64_t first = b->offset - b->offset % PAGES;
    uint64_t end = PEN_MIN(b->offset + b->view.bytes + PAGES, source->bytes);
    return pen__source_drop(source, end - first, first);
}

/* True: they are not in the page cache now. Pages that the kernel reads in advance cannot be
 * dropped before they have arrived. */
static bool drop(const Chosen *c)
{
    uint64_t gone = 0;
    for (int tries = 0; tries < TRIES && (double)gone < COLD * (double)c->n_blocks; tries++) {
        if (tries)
            (void)pen__sys->poll(NULL, 0, PAUSE_MS);
        gone = 0;
        for (uint64_t i = 0; i < c->n_blocks; i++)
            gone += drop_block(c->blocks[i]);
    }
    return c->n_blocks && (double)gone >= COLD * (double)c->n_blocks;
}

/* ---- */

static int measure_local(const PenLoadPlan *plan, PenLoaderSettings *s, double seconds,
                         PenReadingRates *ret, PenError *reterr)
{
    Chosen c = {.samples = pen__alloc_array(MAX_SAMPLES, sizeof *c.samples)};
    double first;
    if (!c.samples)
        return pen__fail_memory(reterr, WHERE, "samples");
    int r = choose(plan, &c, reterr);
    s->order = PEN_ORDER_SEQUENTIAL; /* of the list */
    s->subset = c.samples;
    s->n_subset = c.n_samples;
    s->first = s->count = 0;
    s->drop_last = 0;
    s->rank = 0;
    s->world = 1;
    if (r == PEN_OK) {
        bool cold = drop(&c);
        r = measure(plan, s, seconds, &first, &ret->warm, reterr);
        ret->cold = cold ? first : 0;
    }
    if (r == PEN_OK && ret->cold > 0 && drop(&c)) {
        s->io_threads = (int32_t)PEN_MAX(plan->io_threads / 2, 1u);
        r = measure(plan, s, seconds, &ret->half, NULL, reterr);
    }
    for (uint64_t i = 0; i < c.n_blocks; i++)
        pen__pack_block_put(plan->pack, c.blocks[i]);
    pen__free(c.samples);
    return r;
}

int pen__reading_measure(const PenLoadPlan *plan, double seconds, PenReadingRates *ret,
                         PenError *reterr)
{
    PenLoaderSettings s = plan->set;
    *ret = (PenReadingRates){0};
    s.subset = plan->subset;
    s.n_subset = plan->subset ? plan->state.order.n : 0;
    if (!plan->fetchers)
        return measure_local(plan, &s, seconds, ret, reterr);
    int r = measure(plan, &s, seconds, &ret->warm, NULL, reterr);
    if (r == PEN_OK && plan->fetchers > 1) {
        s.io_threads = (int32_t)(plan->fetchers / 2);
        r = measure(plan, &s, seconds, &ret->half, NULL, reterr);
    }
    return r;
}
