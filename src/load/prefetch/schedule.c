/* SPDX-License-Identifier: Apache-2.0 */
#include "load/prefetch/schedule.h"

#include "base/attr.h"
#include "base/error.h"
#include "base/mem.h"

#define WHERE "load/schedule"

enum {
    MAX_STEPS = 4096, /* samples in one call: the caller may hold a lock */
    MAX_BUCKETS = 65536,
    STARVED = 64 /* fewer scheduled samples than this: blocks needed later are dropped, too */
};

/* ---- the table ---- */

int pen__schedule_init(PenSchedule *s, const PenSchedulePlan *plan, PenError *reterr)
{
    uint64_t blocks = plan->n_samples / plan->block_samples + 1, n = 16;
    while (n < blocks && n < MAX_BUCKETS)
        n *= 2;
    *s = (PenSchedule){.plan = *plan, .mask = n - 1};
    s->table = pen__zalloc((size_t)n * sizeof(PenScheduledBlock *));
    return s->table ? PEN_OK : pen__fail_memory(reterr, WHERE, "schedule of blocks");
}

static PenScheduledBlock **place_of(const PenSchedule *s, uint64_t number)
{
    PenScheduledBlock **at = &s->table[number & s->mask];
    while (*at && (*at)->number != number)
        at = &(*at)->chain;
    return at;
}

PenScheduledBlock *pen__schedule_find(const PenSchedule *s, uint64_t number)
{
    return *place_of(s, number);
}

/* ---- blocks that no scheduled sample needs ---- */

static PenScheduledList *list_of(PenSchedule *s, const PenScheduledBlock *b)
{
    return b->finished ? &s->finished : &s->later;
}

static bool is_listed(const PenSchedule *s, const PenScheduledBlock *b)
{
    return b->newer || b->older || s->finished.newest == b || s->later.newest == b;
}

static void unlist(PenSchedule *s, PenScheduledBlock *b)
{
    PenScheduledList *list = list_of(s, b);
    if (!is_listed(s, b))
        return;
    *(b->newer ? &b->newer->older : &list->newest) = b->older;
    *(b->older ? &b->older->newer : &list->oldest) = b->newer;
    b->newer = b->older = NULL;
}

static void enlist(PenSchedule *s, PenScheduledBlock *b, bool finished)
{
    unlist(s, b);
    b->finished = finished;
    PenScheduledList *list = list_of(s, b);
    b->older = list->newest;
    *(list->newest ? &list->newest->newer : &list->oldest) = b;
    list->newest = b;
}

static void drop(PenSchedule *s, PenScheduledBlock *b)
{
    unlist(s, b);
    *place_of(s, b->number) = b->chain;
    s->bytes -= b->bytes;
    s->n_blocks--;
    if (b->data)
        s->plan.drop(s->plan.ctx, b);
    pen__free(b);
}

void pen__schedule_fini(PenSchedule *s)
{
    for (uint64_t i = 0; s->table && i <= s->mask; i++)
        while (s->table[i])
            drop(s, s->table[i]);
    pen__free(s->table);
    *s = (PenSchedule){0};
}

static bool fits(const PenSchedule *s, uint64_t bytes)
{
    return !s->n_blocks ||
           (s->bytes <= s->plan.limit_bytes && bytes <= s->plan.limit_bytes - s->bytes);
}

bool pen__schedule_has_first_batch(const PenSchedule *s)
{
    return s->cursor >= s->first_batch;
}

bool pen__schedule_is_starved(const PenSchedule *s)
{
    return s->cursor - s->done < STARVED;
}

/* Finished blocks are dropped first. A block that is needed later would have to be fetched again,
 * so it is dropped only when the batches would wait otherwise. */
static bool free_bytes(PenSchedule *s, uint64_t bytes)
{
    bool starved = pen__schedule_is_starved(s);
    while (!fits(s, bytes)) {
        PenScheduledBlock *b = s->finished.oldest;
        if (!b && starved)
            b = s->later.oldest;
        if (!b)
            return false;
        drop(s, b);
    }
    return true;
}

/* ---- the pass ---- */

static void forget_uses(PenSchedule *s)
{
    for (uint64_t i = 0; i <= s->mask; i++)
        for (PenScheduledBlock *b = s->table[i]; b; b = b->chain) {
            b->uses = 0;
            b->last = UINT64_MAX;
            if (b->state != PEN_FETCH_REQUESTED)
                enlist(s, b, true);
        }
}

void pen__schedule_begin(PenSchedule *s, const PenOrder *order, const PenSplit *split,
                         uint64_t steps)
{
    forget_uses(s);
    s->order = *order;
    s->split = *split;
    s->n = pen__split_samples(split, steps);
    s->first_batch = pen__split_samples(split, PEN_MIN(steps, 1u));
    s->cursor = s->done = 0;
}

void pen__schedule_end(PenSchedule *s)
{
    s->n = s->cursor;
    s->order.table = NULL;
}

uint64_t pen__schedule_block_of(const PenSchedule *s, uint64_t i)
{
    bool valid;
    uint64_t p = pen__split_nth(&s->split, i, &valid);
    uint64_t index = pen__order_at(&s->order, p);
    return s->plan.block ? s->plan.block(s->plan.of, s->order.epoch, index)
                         : (s->plan.first + index) / s->plan.block_samples;
}

/* Which of this rank's samples is the last in a block? The inverse of the order tells it for each
 * sample of the block. Without an inverse the last use is unknown. */
static uint64_t last_use(const PenSchedule *s, uint64_t number)
{
    const PenSchedulePlan *p = &s->plan;
    const PenSplit *split = &s->split;
    uint64_t at = number * p->block_samples, last = 0;
    uint64_t end = PEN_MIN(at + p->block_samples, p->first + split->n);
    if (p->block)
        return UINT64_MAX;
    for (at = PEN_MAX(at, p->first); at < end; at++) {
        uint64_t position = pen__order_find(&s->order, at - p->first);
        uint64_t mine = position - split->start;
        if (position >= split->start && mine % split->world == split->rank)
            last = PEN_MAX(last, mine / split->world);
    }
    return last;
}

static int add(PenSchedule *s, uint64_t number, uint64_t bytes, PenScheduledBlock **ret,
               PenError *reterr)
{
    PenScheduledBlock *b = pen__zalloc(sizeof *b);
    if (!b)
        return pen__fail_memory(reterr, WHERE, "block");
    PenScheduledBlock **at = place_of(s, number);
    *b = (PenScheduledBlock){.number = number, .bytes = bytes, .last = UINT64_MAX};
    *at = b;
    s->bytes += bytes;
    s->peak_bytes = PEN_MAX(s->peak_bytes, s->bytes);
    s->n_blocks++;
    s->requested++;
    *ret = b;
    return PEN_OK;
}

/* The sample at the cursor needs the block. */
static void advance(PenSchedule *s, PenScheduledBlock *b)
{
    unlist(s, b);
    if (b->last == UINT64_MAX)
        b->last = last_use(s, b->number);
    b->uses++;
    s->cursor++;
}

int pen__schedule_next(PenSchedule *s, PenScheduledBlock **ret, PenError *reterr)
{
    *ret = NULL;
    for (int i = 0; i < MAX_STEPS && s->cursor < s->n; i++) {
        uint64_t number = pen__schedule_block_of(s, s->cursor);
        PenScheduledBlock *b = pen__schedule_find(s, number);
        if (!b) {
            uint64_t bytes = s->plan.block_bytes(s->plan.ctx, number);
            if (!free_bytes(s, bytes))
                return PEN_OK;
            int r = add(s, number, bytes, ret, reterr);
            if (r < 0)
                return r;
            advance(s, *ret);
            return PEN_OK;
        }
        advance(s, b);
    }
    return PEN_OK;
}

int pen__schedule_next_adjacent(PenSchedule *s, const PenScheduledBlock *after,
                                PenScheduledBlock **ret, PenError *reterr)
{
    *ret = NULL;
    for (int i = 0; i < MAX_STEPS && s->cursor < s->n; i++) {
        uint64_t number = pen__schedule_block_of(s, s->cursor);
        PenScheduledBlock *b = pen__schedule_find(s, number);
        if (!b)
            return number == after->number + 1 ? pen__schedule_next(s, ret, reterr) : PEN_OK;
        advance(s, b);
    }
    return PEN_OK;
}

/* No scheduled sample needs the block any more. When its last use is unknown, blocks are dropped in
 * the order of their last use. */
static void retire(PenSchedule *s, PenScheduledBlock *b)
{
    bool finished = b->last < s->cursor;
    if (finished && !s->plan.keeps)
        drop(s, b);
    else
        enlist(s, b, finished || b->last == UINT64_MAX);
}

void pen__schedule_arrived(PenSchedule *s, PenScheduledBlock *b, void *data, uint64_t bytes)
{
    s->bytes = s->bytes - b->bytes + bytes;
    s->peak_bytes = PEN_MAX(s->peak_bytes, s->bytes);
    b->bytes = bytes;
    b->state = PEN_FETCH_ARRIVED;
    b->data = data;
    if (!b->uses)
        retire(s, b);
}

void pen__schedule_failed(PenSchedule *s, PenScheduledBlock *b)
{
    b->state = PEN_FETCH_FAILED;
    if (!b->uses)
        drop(s, b);
}

void pen__schedule_retry(PenScheduledBlock *b)
{
    b->state = PEN_FETCH_REQUESTED;
}

void pen__schedule_sample_done(PenSchedule *s, PenScheduledBlock *b)
{
    s->done++;
    if (--b->uses || b->state == PEN_FETCH_REQUESTED)
        return;
    if (b->state == PEN_FETCH_FAILED)
        drop(s, b);
    else
        retire(s, b);
}
