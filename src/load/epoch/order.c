/* SPDX-License-Identifier: Apache-2.0 */
/* Block order. Full blocks are dealt to C lanes by a permutation; position p belongs to lane p mod
 * C. A lane is a row of windows of W blocks, and within a window all samples are mixed. So about C
 * * W blocks are in use at a time, whatever n is. Windows of different lanes end at different
 * times, so that blocks are needed evenly over time. What does not fit into lanes (fewer than C
 * blocks, and the short last one) follows behind the body, mixed. */
#include "load/epoch/order.h"

#include <inttypes.h>

#include "base/attr.h"
#include "base/error.h"

enum { FOR_SAMPLES = 1, FOR_BLOCKS = 2, FOR_WINDOW = 3, FOR_REST = 4, FOR_LANE = 5 };

/* A window of a lane: blocks [first, first + n) of it. */
typedef struct Window {
    uint64_t index, first, n;
} Window;

const char *pen__order_name(int32_t kind)
{
    static const char *const names[] = {"sequential", "random", "block", "sticky"};
    return kind >= 0 && kind < (int32_t)PEN_LEN(names) ? names[kind] : NULL;
}

bool pen__order_by_block(int32_t kind)
{
    return kind == PEN_ORDER_BLOCK || kind == PEN_ORDER_STICKY;
}

int pen__order_check(const PenOrderPlan *p, PenError *reterr)
{
    if (!pen__order_name(p->kind))
        return pen__fail(reterr, PEN_E_INVALID, "load/order",
                         "order %d: expected sequential, random, block or sticky", (int)p->kind);
    if (p->n == 0 || p->n > PEN_PERMUTE_MOST)
        return pen__fail(reterr, PEN_E_INVALID, "load/order",
                         "order of %" PRIu64 " samples: expected 1 to 2^63", p->n);
    if (pen__order_by_block(p->kind) && (!p->block_samples || !p->lanes || !p->window))
        return pen__fail(reterr, PEN_E_INVALID, "load/order",
                         "block order with %" PRIu64 " samples per block, %" PRIu32
                         " lanes, %" PRIu32 " blocks per window: expected at least 1 of each",
                         p->block_samples, p->lanes, p->window);
    return PEN_OK;
}

static void permute_for(PenPermutation *ret, const PenOrder *o, uint64_t n, uint64_t purpose)
{
    pen__permute_init(ret, n, pen__permute_key(o->plan.seed, o->epoch, purpose, 0));
}

static void init_block(PenOrder *o)
{
    const PenOrderPlan *p = &o->plan;
    o->full_blocks = p->n / p->block_samples;
    o->lane_blocks = o->full_blocks / p->lanes;
    o->body = o->lane_blocks * p->lanes * p->block_samples;
    if (o->full_blocks && p->kind == PEN_ORDER_BLOCK)
        permute_for(&o->blocks, o, o->full_blocks, FOR_BLOCKS);
    /* Dealt once for all epochs; then every lane is mixed. */
    if (o->full_blocks && p->kind == PEN_ORDER_STICKY)
        pen__permute_init(&o->blocks, o->full_blocks, pen__permute_key(p->seed, 0, FOR_BLOCKS, 0));
    if (o->lane_blocks && p->kind == PEN_ORDER_STICKY)
        pen__permute_init(&o->lane, o->lane_blocks, 0);
    if (o->body < p->n)
        permute_for(&o->samples, o, p->n - o->body, FOR_REST);
    if (p->window <= o->lane_blocks)
        pen__permute_init(&o->window, p->window * p->block_samples, 0);
}

int pen__order_init(PenOrder *ret, const PenOrderPlan *plan, uint64_t epoch, PenError *reterr)
{
    int r = pen__order_check(plan, reterr);
    if (r < 0)
        return r;
    PenOrder o = {.plan = *plan, .epoch = epoch};
    if (plan->kind == PEN_ORDER_RANDOM)
        permute_for(&o.samples, &o, plan->n, FOR_SAMPLES);
    if (pen__order_by_block(plan->kind))
        init_block(&o);
    *ret = o;
    return PEN_OK;
}

/* ---- windows --------------------------------------------------------------------------------- */

/* The window that block `slot` of a lane is in. The first one is shorter the higher the lane; a
 * last one below half a window belongs to the one before. */
static Window window_of(const PenOrder *o, uint32_t lane, uint64_t slot)
{
    uint64_t w = o->plan.window;
    uint64_t head = w - lane * w / o->plan.lanes;
    uint64_t all = o->lane_blocks;
    uint64_t tail = all > head ? (all - head) % w : 0;
    uint64_t end = 2 * tail < w ? all - tail : all; /* here the last window may begin at most */
    Window win = {0};
    if (slot >= head && head < end) {
        win.index = (PEN_MIN(slot, end - 1) - head) / w + 1;
        win.first = head + (win.index - 1) * w;
    }
    uint64_t next = win.index ? win.first + w : head;
    win.n = (next >= end ? all : next) - win.first;
    return win;
}

/* The mix of a window's samples. */
static PenPermutation window_mix(const PenOrder *o, uint32_t lane, const Window *w)
{
    uint64_t key =
        pen__permute_key(o->plan.seed, o->epoch, FOR_WINDOW, w->index * o->plan.lanes + lane);
    uint64_t n = w->n * o->plan.block_samples;
    PenPermutation p = o->window;
    if (n == p.n)
        pen__permute_rekey(&p, key);
    else
        pen__permute_init(&p, n, key);
    return p;
}

/* Which of a lane's blocks is the one at `slot` in this epoch? And back. */
static PenPermutation lane_mix(const PenOrder *o, uint32_t lane)
{
    PenPermutation p = o->lane;
    pen__permute_rekey(&p, pen__permute_key(o->plan.seed, o->epoch, FOR_LANE, lane));
    return p;
}

static uint64_t lane_at(const PenOrder *o, uint32_t lane, uint64_t slot)
{
    if (o->plan.kind != PEN_ORDER_STICKY)
        return slot;
    PenPermutation mix = lane_mix(o, lane);
    return pen__permute_at(&mix, slot);
}

static uint64_t lane_find(const PenOrder *o, uint32_t lane, uint64_t block)
{
    if (o->plan.kind != PEN_ORDER_STICKY)
        return block;
    PenPermutation mix = lane_mix(o, lane);
    return pen__permute_find(&mix, block);
}

/* ---- positions ------------------------------------------------------------------------------- */

static uint64_t body_at(const PenOrder *o, uint64_t position)
{
    uint64_t k = o->plan.block_samples;
    uint32_t lane = (uint32_t)(position % o->plan.lanes);
    uint64_t q = position / o->plan.lanes;
    Window w = window_of(o, lane, q / k);
    PenPermutation mix = window_mix(o, lane, &w);
    uint64_t t = pen__permute_at(&mix, q - w.first * k);
    uint64_t slot = lane_at(o, lane, w.first + t / k);
    return pen__permute_at(&o->blocks, slot * o->plan.lanes + lane) * k + t % k;
}

/* `dealt` is the number of a full block's card: card j * C + c is block j of lane c. */
static uint64_t body_find(const PenOrder *o, uint64_t dealt, uint64_t in_block)
{
    uint64_t k = o->plan.block_samples;
    uint32_t lane = (uint32_t)(dealt % o->plan.lanes);
    uint64_t slot = lane_find(o, lane, dealt / o->plan.lanes);
    Window w = window_of(o, lane, slot);
    PenPermutation mix = window_mix(o, lane, &w);
    uint64_t t = pen__permute_find(&mix, (slot - w.first) * k + in_block);
    return (w.first * k + t) * o->plan.lanes + lane;
}

/* Behind the body: the blocks left over when dealing, then the short one. */
static uint64_t rest_at(const PenOrder *o, uint64_t position)
{
    uint64_t k = o->plan.block_samples;
    uint64_t t = pen__permute_at(&o->samples, position - o->body);
    uint64_t dealt = o->lane_blocks * o->plan.lanes + t / k;
    if (dealt >= o->full_blocks)
        return o->body + t; /* the short block is behind as many samples in both counts */
    return pen__permute_at(&o->blocks, dealt) * k + t % k;
}

static uint64_t block_find(const PenOrder *o, uint64_t sample)
{
    uint64_t k = o->plan.block_samples;
    uint64_t block = sample / k;
    uint64_t t = sample - o->body; /* of the short block */
    if (block < o->full_blocks) {
        uint64_t dealt = pen__permute_find(&o->blocks, block);
        uint64_t in_lanes = o->lane_blocks * o->plan.lanes;
        if (dealt < in_lanes)
            return body_find(o, dealt, sample % k);
        t = (dealt - in_lanes) * k + sample % k;
    }
    return o->body + pen__permute_find(&o->samples, t);
}

uint64_t pen__order_at(const PenOrder *o, uint64_t position)
{
    if (o->table)
        return pen__bucket_table_at(o->table, position);
    if (o->plan.kind == PEN_ORDER_SEQUENTIAL)
        return position;
    if (o->plan.kind == PEN_ORDER_RANDOM)
        return pen__permute_at(&o->samples, position);
    return position < o->body ? body_at(o, position) : rest_at(o, position);
}

uint64_t pen__order_find(const PenOrder *o, uint64_t sample)
{
    if (o->plan.kind == PEN_ORDER_SEQUENTIAL)
        return sample;
    if (o->plan.kind == PEN_ORDER_RANDOM)
        return pen__permute_find(&o->samples, sample);
    return block_find(o, sample);
}

/* ---- lanes from memory ----------------------------------------------------------------------- */

enum { WINDOW_LEAST = 8, WINDOW_MOST = 16 };

/* 1, 2, 4, 6, 12, 24, ...: many numbers of ranks divide it. */
static uint32_t more_lanes(uint32_t lanes)
{
    return lanes == 4 ? 6 : lanes * 2;
}

void pen__order_choose(uint64_t bytes, uint64_t block_bytes, uint64_t n_blocks, uint32_t world,
                       uint32_t *ret_lanes, uint32_t *ret_window)
{
    uint64_t fit = bytes / 2 / PEN_MAX(block_bytes, 1); /* half of it is for reading ahead */
    uint64_t most = UINT64_C(1) << 20;
    uint32_t lanes = 1;
    bool all_fit = n_blocks <= fit && n_blocks < most;
    if (all_fit)
        while (lanes <= n_blocks)
            lanes = more_lanes(lanes);
    else
        while (more_lanes(lanes) <= PEN_MIN(fit / WINDOW_LEAST, most))
            lanes = more_lanes(lanes);
    uint64_t window = PEN_MIN(fit / lanes, WINDOW_MOST);
    if (!all_fit)
        lanes += (world - lanes % world) % world;
    *ret_lanes = lanes;
    *ret_window = (uint32_t)PEN_MAX(window, 1);
}

/* ---- batches --------------------------------------------------------------------------------- */

static uint64_t samples_left(const PenSplit *s)
{
    return s->start < s->n ? s->n - s->start : 0;
}

uint64_t pen__split_steps(const PenSplit *s)
{
    uint64_t global = (uint64_t)s->batch * s->world;
    uint64_t left = samples_left(s);
    if (s->lengths)
        return pen__lengths_steps(s->lengths, s->epoch, s->step,
                                  left / s->world + (!s->drop_last && left % s->world != 0),
                                  !s->drop_last);
    return left / global + (!s->drop_last && left % global != 0);
}

uint64_t pen__split_samples(const PenSplit *s, uint64_t g)
{
    return s->lengths ? pen__lengths_samples(s->lengths, s->epoch, s->step, g) : g * s->batch;
}

/* Ranks that have no batch in the last step repeat one of the first. */
static uint64_t batch_position(const PenSplit *s, uint64_t g, uint32_t i, bool *ret_valid)
{
    uint64_t k = g * s->world + s->rank, left = samples_left(s) / s->batch;
    *ret_valid = k < left;
    if (k >= left)
        return (k - left) % (s->n / s->batch) * s->batch + i;
    return s->start + k * s->batch + i;
}

/* Nothing overflows: fewer samples than those of one step are behind what is left. */
uint64_t pen__split_nth(const PenSplit *s, uint64_t k, bool *ret_valid)
{
    if (s->by_batch)
        return batch_position(s, k / s->batch, (uint32_t)(k % s->batch), ret_valid);
    uint64_t left = samples_left(s), at = k * s->world + s->rank;
    *ret_valid = at < left;
    return at < left ? s->start + at : (at - left) % s->n;
}

uint64_t pen__split_position(const PenSplit *s, uint64_t g, uint32_t i, bool *ret_valid)
{
    return pen__split_nth(s, pen__split_samples(s, g) + i, ret_valid);
}
