/* SPDX-License-Identifier: Apache-2.0 */
#include "load/measure/cold.h"

#include "base/mem.h"
#include "base/sys.h"

#define WHERE "load/measure"
/* So many of the blocks must be out of the page cache, for a rate without it. */
#define GONE 0.9
#define PAGES (UINT64_C(2) << 20)
#define MAX_BYTES (UINT64_C(256) << 20)

enum { TRIES = 10, PAUSE_MS = 10 };

_Static_assert(PEN_COLD_BLOCKS >= MAX_BYTES / (2 * PAGES), "each block takes more than that");

/* ---- which ---- */

/* PEN_END: it is too much. */
static int hold_block(PenCold *c, uint64_t number, PenError *reterr)
{
    PenBlock *b = NULL;
    for (uint64_t i = 0; i < c->n_blocks; i++)
        if (c->blocks[i]->number == number)
            return PEN_OK;
    if (c->is_full)
        return PEN_END;
    int r = pen__pack_block(c->pack, number, &b, reterr);
    if (r < 0)
        return r;
    uint64_t bytes = b->view.bytes + 2 * PAGES; /* the pages at its ends go, too */
    c->is_full = c->n_blocks && c->bytes + bytes > MAX_BYTES;
    if (c->is_full) {
        pen__pack_block_put(c->pack, b);
        return PEN_END;
    }
    c->blocks[c->n_blocks++] = b;
    c->bytes += bytes;
    return PEN_OK;
}

/* One sample of each block, again and again. */
static void take_samples(PenCold *c, const PenLoadPlan *plan)
{
    uint64_t each = pen_pack_info(plan->pack)->block_samples;
    for (uint64_t k = 0; k < each; k++)
        for (uint64_t i = 0; i < c->n_blocks && c->n_samples < PEN_COLD_SAMPLES; i++)
            if (c->blocks[i]->number * each + k - plan->set.first < plan->state.order.n)
                c->samples[c->n_samples++] = c->blocks[i]->number * each + k;
}

int pen__cold_choose(PenCold *c, const PenLoadPlan *plan, uint64_t epoch, PenError *reterr)
{
    PenOrder order;
    uint64_t each = pen_pack_info(plan->pack)->block_samples;
    bool is_listed = plan->subset || plan->weights;
    *c = (PenCold){.pack = plan->pack,
                   .samples = pen__alloc_array(PEN_COLD_SAMPLES, sizeof *c->samples)};
    if (!c->samples)
        return pen__fail_memory(reterr, WHERE, "samples");
    int r = pen__order_init(&order, &plan->state.order, epoch, reterr);
    for (uint64_t i = 0; r >= 0 && i < PEN_MIN(plan->state.order.n, PEN_COLD_SAMPLES); i++) {
        uint64_t sample = pen__load_plan_choose(plan, epoch, pen__order_at(&order, i)).sample;
        r = hold_block(c, sample / each, reterr);
        if (r == PEN_OK && is_listed) /* others in the block are not among the samples */
            c->samples[c->n_samples++] = sample;
    }
    if (r >= 0 && !is_listed)
        take_samples(c, plan);
    return r < 0 ? r : PEN_OK;
}

void pen__cold_release(PenCold *c)
{
    for (uint64_t i = 0; i < c->n_blocks; i++)
        pen__pack_block_put(c->pack, c->blocks[i]);
    pen__free(c->samples);
    *c = (PenCold){0};
}

/* ---- dropping ---- */

static bool drop_block(const PenBlock *b)
{
    PenSource *source = b->shard->shard.source;
    uint64_t first = b->offset - b->offset % PAGES;
    uint64_t end = PEN_MIN(b->offset + b->view.bytes + PAGES, source->bytes);
    return pen__source_drop(source, end - first, first);
}

/* Pages that the kernel reads in advance cannot be dropped before they have arrived. */
bool pen__cold_drop(const PenCold *c)
{
    uint64_t gone = 0;
    for (int tries = 0; tries < TRIES && (double)gone < GONE * (double)c->n_blocks; tries++) {
        if (tries)
            (void)pen__sys->poll(NULL, 0, PAUSE_MS);
        gone = 0;
        for (uint64_t i = 0; i < c->n_blocks; i++)
            gone += drop_block(c->blocks[i]);
    }
    return c->n_blocks && (double)gone >= GONE * (double)c->n_blocks;
}
