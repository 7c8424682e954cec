/* SPDX-License-Identifier: Apache-2.0 */
#include "load/ahead.h"

#include "base/attr.h"
#include "base/error.h"
#include "base/mem.h"

#define WHERE "load/ahead"

enum {
    LOOK_MOST = 4096, /* samples in one call: the caller may hold a lock */
    BUCKETS_MOST = 65536,
    STARVED = 64 /* fewer samples than this ahead: blocks needed later make room, too */
};

/* ---- the table ---- */

int pen__ahead_init(PenAhead *a, const PenAheadPlan *plan, PenError *reterr)
{
    uint64_t blocks = plan->n_samples / plan->block_samples + 1, n = 16;
    while (n < blocks && n < BUCKETS_MOST)
        n *= 2;
    *a = (PenAhead){.plan = *plan, .mask = n - 1};
    a->table = pen__zalloc((size_t)n * sizeof(PenAheadBlock *));
    return a->table ? PEN_OK : pen__fail_memory(reterr, WHERE, "window");
}

static PenAheadBlock **place_of(const PenAhead *a, uint64_t number)
{
    PenAheadBlock **at = &a->table[number & a->mask];
    while (*at && (*at)->number != number)
        at = &(*at)->chain;
    return at;
}

PenAheadBlock *pen__ahead_at(const PenAhead *a, uint64_t number)
{
    return *place_of(a, number);
}

/* ---- what nobody seen needs ---- */

static PenAheadList *list_of(PenAhead *a, const PenAheadBlock *b)
{
    return b->finished ? &a->finished : &a->later;
}

static bool is_listed(const PenAhead *a, const PenAheadBlock *b)
{
    return b->newer || b->older || a->finished.newest == b || a->later.newest == b;
}

static void unlist(PenAhead *a, PenAheadBlock *b)
{
    PenAheadList *list = list_of(a, b);
    if (!is_listed(a, b))
        return;
    *(b->newer ? &b->newer->older : &list->newest) = b->older;
    *(b->older ? &b->older->newer : &list->oldest) = b->newer;
    b->newer = b->older = NULL;
}

static void enlist(PenAhead *a, PenAheadBlock *b, bool finished)
{
    unlist(a, b);
    b->finished = finished;
    PenAheadList *list = list_of(a, b);
    b->older = list->newest;
    *(list->newest ? &list->newest->newer : &list->oldest) = b;
    list->newest = b;
}

static void drop(PenAhead *a, PenAheadBlock *b)
{
    unlist(a, b);
    *place_of(a, b->number) = b->chain;
    a->bytes -= b->bytes;
    a->n_blocks--;
    if (b->data)
        a->plan.drop(a->plan.ctx, b);
    pen__free(b);
}

void pen__ahead_fini(PenAhead *a)
{
    for (uint64_t i = 0; a->table && i <= a->mask; i++)
        while (a->table[i])
            drop(a, a->table[i]);
    pen__free(a->table);
    *a = (PenAhead){0};
}

static bool fits(const PenAhead *a, uint64_t bytes)
{
    return !a->n_blocks || (a->bytes <= a->plan.room && bytes <= a->plan.room - a->bytes);
}

bool pen__ahead_is_starved(const PenAhead *a)
{
    return a->cursor - a->done < STARVED;
}

/* First those that are finished. One that is needed later would have to be fetched again; it goes
 * only when the batches would have to wait otherwise. */
static bool make_room(PenAhead *a, uint64_t bytes)
{
    bool starved = pen__ahead_is_starved(a);
    while (!fits(a, bytes)) {
        PenAheadBlock *b = a->finished.oldest;
        if (!b && starved)
            b = a->later.oldest;
        if (!b)
            return false;
        drop(a, b);
    }
    return true;
}

/* ---- the pass ---- */

static void forget_uses(PenAhead *a)
{
    for (uint64_t i = 0; i <= a->mask; i++)
        for (PenAheadBlock *b = a->table[i]; b; b = b->chain) {
            b->uses = 0;
            b->last = UINT64_MAX;
            if (b->state != PEN_AHEAD_ASKED)
                enlist(a, b, true);
        }
}

void pen__ahead_begin(PenAhead *a, const PenOrder *order, const PenSplit *split, uint64_t steps)
{
    forget_uses(a);
    a->order = *order;
    a->split = *split;
    a->n = steps * split->batch;
    a->cursor = a->done = 0;
}

static uint64_t sample_at(const PenAhead *a, uint64_t i)
{
    bool valid;
    uint64_t p =
        pen__split_position(&a->split, i / a->split.batch, (uint32_t)(i % a->split.batch), &valid);
    uint64_t index = pen__order_at(&a->order, p);
    return a->plan.subset ? a->plan.subset[index] : a->plan.first + index;
}

uint64_t pen__ahead_block(const PenAhead *a, uint64_t i)
{
    return sample_at(a, i) / a->plan.block_samples;
}

/* Which of this rank's samples is the last in a block? The order answers that for each of the
 * block's samples; a list of samples does not, and then nobody knows. */
static uint64_t last_use(const PenAhead *a, uint64_t number)
{
    const PenAheadPlan *p = &a->plan;
    const PenSplit *s = &a->split;
    uint64_t at = number * p->block_samples, last = 0;
    uint64_t end = PEN_MIN(at + p->block_samples, p->first + s->n);
    if (p->subset)
        return UINT64_MAX;
    for (at = PEN_MAX(at, p->first); at < end; at++) {
        uint64_t position = pen__order_find(&a->order, at - p->first);
        uint64_t mine = position - s->start;
        if (position >= s->start && mine % s->world == s->rank)
            last = PEN_MAX(last, mine / s->world);
    }
    return last;
}

static int add(PenAhead *a, uint64_t number, uint64_t bytes, PenAheadBlock **ret, PenError *reterr)
{
    PenAheadBlock *b = pen__zalloc(sizeof *b);
    if (!b)
        return pen__fail_memory(reterr, WHERE, "block");
    PenAheadBlock **at = place_of(a, number);
    *b = (PenAheadBlock){.number = number, .bytes = bytes, .last = UINT64_MAX};
    *at = b;
    a->bytes += bytes;
    a->peak_bytes = PEN_MAX(a->peak_bytes, a->bytes);
    a->n_blocks++;
    a->asked++;
    *ret = b;
    return PEN_OK;
}

/* The cursor's sample needs it. */
static void see(PenAhead *a, PenAheadBlock *b)
{
    unlist(a, b);
    if (b->last == UINT64_MAX)
        b->last = last_use(a, b->number);
    b->uses++;
    a->cursor++;
}

int pen__ahead_want(PenAhead *a, PenAheadBlock **ret, PenError *reterr)
{
    *ret = NULL;
    for (int looked = 0; looked < LOOK_MOST && a->cursor < a->n; looked++) {
        uint64_t number = pen__ahead_block(a, a->cursor);
        PenAheadBlock *b = pen__ahead_at(a, number);
        if (!b) {
            uint64_t bytes = a->plan.block_bytes(a->plan.ctx, number);
            if (!make_room(a, bytes))
                return PEN_OK;
            int r = add(a, number, bytes, ret, reterr);
            if (r < 0)
                return r;
            see(a, *ret);
            return PEN_OK;
        }
        see(a, b);
    }
    return PEN_OK;
}

int pen__ahead_want_next(PenAhead *a, const PenAheadBlock *after, PenAheadBlock **ret,
                         PenError *reterr)
{
    *ret = NULL;
    for (int looked = 0; looked < LOOK_MOST && a->cursor < a->n; looked++) {
        uint64_t number = pen__ahead_block(a, a->cursor);
        PenAheadBlock *b = pen__ahead_at(a, number);
        if (!b)
            return number == after->number + 1 ? pen__ahead_want(a, ret, reterr) : PEN_OK;
        see(a, b);
    }
    return PEN_OK;
}

/* Nobody needs it any more: for now, or in this pass. When that is not known, those that were used
 * last stay longest. */
static void leave(PenAhead *a, PenAheadBlock *b)
{
    bool finished = b->last < a->cursor;
    if (finished && !a->plan.keeps)
        drop(a, b);
    else
        enlist(a, b, finished || b->last == UINT64_MAX);
}

void pen__ahead_arrived(PenAhead *a, PenAheadBlock *b, void *data, uint64_t bytes)
{
    a->bytes = a->bytes - b->bytes + bytes;
    a->peak_bytes = PEN_MAX(a->peak_bytes, a->bytes);
    b->bytes = bytes;
    b->state = PEN_AHEAD_HERE;
    b->data = data;
    if (!b->uses)
        leave(a, b);
}

void pen__ahead_failed(PenAhead *a, PenAheadBlock *b)
{
    b->state = PEN_AHEAD_FAILED;
    if (!b->uses)
        drop(a, b);
}

void pen__ahead_again(PenAheadBlock *b)
{
    b->state = PEN_AHEAD_ASKED;
}

void pen__ahead_used(PenAhead *a, PenAheadBlock *b)
{
    a->done++;
    if (--b->uses || b->state == PEN_AHEAD_ASKED)
        return;
    if (b->state == PEN_AHEAD_FAILED)
        drop(a, b);
    else
        leave(a, b);
}
