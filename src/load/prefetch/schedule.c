/* SPDX-License-Identifier: Apache-2.0 */
#include "load/prefetch/schedule.h"

#include <stdlib.h>

#include "base/attr.h"
#include "base/error.h"
#include "base/mem.h"

#define WHERE "load/schedule"

enum {
    MAX_STEPS = 4096, /* samples in one call: the caller may hold a lock */
    BUCKETS = 16384,
    SPARE_NEEDS = 8192, /* scheduled samples that the caller has not taken, at least */
    STARVED = 64,       /* fewer scheduled samples than this: parts needed later are dropped, too */
    GAP = 3,            /* samples between two runs that come with one request */
    MISSING = 8         /* a block is read entirely if at most 1 / 8 of it is not needed */
};
#define NONE UINT64_MAX

/* A sample that is needed. */
struct PenNeed {
    PenBlockPart *part; /* NULL: not planned */
    PenBlockNeeds *of;
    uint32_t sample, n_samples; /* in the block, and of it */
    uint64_t next;              /* number of the next one of its block; NONE: there is none */
};

/* A block that has parts, or samples that are needed and not planned. */
struct PenBlockNeeds {
    uint64_t block;
    uint64_t first, last, n; /* numbers of these samples, a list */
    uint32_t n_parts;
    PenBlockPart *resident; /* the part that stays */
    PenBlockNeeds *chain;
};

/* ---- blocks ---- */

int pen__schedule_init(PenSchedule *s, const PenSchedulePlan *plan, PenError *reterr)
{
    uint64_t capacity = SPARE_NEEDS, spare = PEN_MAX((uint64_t)SPARE_NEEDS, plan->horizon / 2);
    while (capacity < plan->horizon + spare)
        capacity *= 2;
    *s = (PenSchedule){.plan = *plan, .mask = BUCKETS - 1, .needs_mask = capacity - 1};
    s->table = pen__zalloc(BUCKETS * sizeof(PenBlockNeeds *));
    s->needs = pen__alloc_array(capacity, sizeof *s->needs);
    s->sorted = pen__alloc_array(capacity, sizeof *s->sorted);
    if (s->table && s->needs && s->sorted)
        return PEN_OK;
    pen__schedule_fini(s);
    return pen__fail_memory(reterr, WHERE, "schedule of blocks");
}

static PenNeed *need_at(const PenSchedule *s, uint64_t i)
{
    return &s->needs[i & s->needs_mask];
}

static PenBlockNeeds **place_of(const PenSchedule *s, uint64_t block)
{
    PenBlockNeeds **at = &s->table[block & s->mask];
    while (*at && (*at)->block != block)
        at = &(*at)->chain;
    return at;
}

static PenBlockNeeds *find_or_add(PenSchedule *s, uint64_t block)
{
    PenBlockNeeds **at = place_of(s, block), *b = *at;
    if (b)
        return b;
    b = s->unused;
    if (b)
        s->unused = b->chain;
    else
        b = pen__alloc(sizeof *b);
    if (b) {
        *b = (PenBlockNeeds){.block = block};
        *at = b;
    }
    return b;
}

static void forget_unneeded(PenSchedule *s, PenBlockNeeds *b)
{
    if (b->n || b->n_parts)
        return;
    *place_of(s, b->block) = b->chain;
    b->chain = s->unused;
    s->unused = b;
}

static void add_need(PenSchedule *s, PenBlockNeeds *b, uint64_t i)
{
    PenNeed *need = need_at(s, i);
    need->part = NULL;
    need->next = NONE;
    if (b->n++)
        need_at(s, b->last)->next = i;
    else
        b->first = i;
    b->last = i;
}

/* ---- parts ---- */

static void unlist(PenBlockPart *p)
{
    PenBlockPartList *list = p->list;
    if (!list)
        return;
    *(p->newer ? &p->newer->older : &list->newest) = p->older;
    *(p->older ? &p->older->newer : &list->oldest) = p->newer;
    p->newer = p->older = NULL;
    p->list = NULL;
}

static void enlist(PenBlockPartList *list, PenBlockPart *p)
{
    unlist(p);
    p->older = list->newest;
    *(list->newest ? &list->newest->newer : &list->oldest) = p;
    list->newest = p;
    p->list = list;
}

static PenBlockPart *add_part(PenSchedule *s, PenBlockNeeds *b, uint32_t first, uint32_t n)
{
    PenBlockPart *p = pen__zalloc(sizeof *p);
    if (!p)
        return NULL;
    *p = (PenBlockPart){.of = b, .block = b->block, .first = first, .n = n, .next = s->parts};
    if (s->parts)
        s->parts->before = p;
    s->parts = p;
    s->n_parts++;
    b->n_parts++;
    return p;
}

/* Samples behind the cursor that need it are planned again. */
static void drop(PenSchedule *s, PenBlockPart *p)
{
    PenBlockNeeds *b = p->of;
    unlist(p);
    for (uint64_t i = s->cursor; i < s->seen && p->uses_ahead; i++)
        if (need_at(s, i)->part == p) {
            p->uses_ahead--;
            add_need(s, b, i);
        }
    if (p->is_resident) {
        s->resident_bytes -= p->bytes;
        if (b->resident == p)
            b->resident = NULL;
    }
    if (p->state != PEN_FETCH_PLANNED)
        s->bytes -= p->bytes;
    *(p->before ? &p->before->next : &s->parts) = p->next;
    if (p->next)
        p->next->before = p->before;
    s->n_parts--;
    b->n_parts--;
    forget_unneeded(s, b);
    if (p->data)
        s->plan.drop(s->plan.ctx, p);
    pen__free(p);
}

void pen__schedule_fini(PenSchedule *s)
{
    s->seen = s->cursor;
    while (s->parts)
        drop(s, s->parts);
    for (uint64_t i = 0; s->table && i <= s->mask; i++)
        for (PenBlockNeeds *b = s->table[i], *next; b; b = next) {
            next = b->chain;
            pen__free(b);
        }
    for (PenBlockNeeds *b = s->unused, *next; b; b = next) {
        next = b->chain;
        pen__free(b);
    }
    pen__free(s->table);
    pen__free(s->needs);
    pen__free(s->sorted);
    *s = (PenSchedule){0};
}

/* No scheduled sample needs the part any more. */
static void retire(PenSchedule *s, PenBlockPart *p)
{
    if (p->uses_ahead)
        enlist(&s->later, p);
    else if (p->is_resident)
        enlist(&s->finished, p);
    else
        drop(s, p);
}

static bool fits(const PenSchedule *s, uint64_t bytes)
{
    return !s->bytes ||
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

/* What is dropped is fetched again, so that is done only when the batches would wait otherwise. Of
 * parts that are needed later, the one that was needed last has the most time. */
static bool free_bytes(PenSchedule *s, uint64_t bytes)
{
    bool starved = pen__schedule_is_starved(s);
    while (!fits(s, bytes)) {
        PenBlockPart *p = s->finished.oldest ? s->finished.oldest : s->later.newest;
        if (!p || !starved)
            return false;
        drop(s, p);
    }
    return true;
}

/* ---- the pass ---- */

/* Samples behind the cursor are not needed any more. */
static void forget_ahead(PenSchedule *s)
{
    for (uint64_t i = s->cursor; i < s->seen; i++) {
        PenNeed *need = need_at(s, i);
        if (need->part)
            need->part->uses_ahead--;
        else
            need->of->n = 0;
    }
    s->n = s->seen = s->cursor;
    for (uint64_t i = 0; i <= s->mask; i++)
        for (PenBlockNeeds *b = s->table[i], *next; b; b = next) {
            next = b->chain;
            forget_unneeded(s, b);
        }
    for (PenBlockPart *p = s->parts, *next; p; p = next) {
        next = p->next;
        if (p->uses || p->uses_ahead || p->state == PEN_FETCH_REQUESTED)
            continue;
        if (p->state == PEN_FETCH_ARRIVED)
            retire(s, p);
        else
            drop(s, p);
    }
}

void pen__schedule_begin(PenSchedule *s, const PenOrder *order, const PenSplit *split,
                         uint64_t steps)
{
    for (PenBlockPart *p = s->parts; p; p = p->next)
        p->uses = 0;
    forget_ahead(s);
    s->order = *order;
    s->split = *split;
    s->n = pen__split_samples(split, steps);
    s->first_batch = pen__split_samples(split, PEN_MIN(steps, 1u));
    s->taken = s->cursor = s->seen = s->done = 0;
    s->next_step = s->next_index = 0;
    s->step = (PenPassStep){0};
}

void pen__schedule_end(PenSchedule *s)
{
    forget_ahead(s);
    s->order.table = s->split.table = NULL;
}

/* ---- what is needed ---- */

static uint64_t next_index(PenSchedule *s)
{
    bool valid;
    while (s->next_index == s->step.samples) { /* a batch may have none */
        s->step = pen__split_step(&s->split, s->next_step++);
        s->next_index = 0;
    }
    uint64_t position = pen__split_position(&s->split, &s->step, s->next_index++, &valid);
    return pen__order_at(&s->order, position);
}

static int see_next(PenSchedule *s, PenError *reterr)
{
    uint64_t index = next_index(s);
    PenSampleSpot spot = s->plan.spot(s->plan.of, s->order.epoch, index);
    PenBlockNeeds *b = find_or_add(s, spot.block);
    PenNeed *need = need_at(s, s->seen);
    if (!b) {
        s->next_index--;
        return pen__fail_memory(reterr, WHERE, "block");
    }
    *need = (PenNeed){.of = b, .sample = spot.sample, .n_samples = spot.n_samples};
    if (b->resident) {
        need->part = b->resident;
        need->part->uses_ahead++;
        if (need->part->list == &s->finished)
            enlist(&s->later, need->part);
    } else {
        add_need(s, b, s->seen);
    }
    s->seen++;
    return PEN_OK;
}

static int compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* The list of a block's needs in the order of its samples: sample, then number & mask. */
static uint64_t sort_needs(const PenSchedule *s, const PenBlockNeeds *b, uint64_t *ret_different)
{
    uint64_t n = 0;
    for (uint64_t i = b->first; i != NONE; i = need_at(s, i)->next)
        s->sorted[n++] = (uint64_t)need_at(s, i)->sample << 32 | (i & s->needs_mask);
    qsort(s->sorted, n, sizeof *s->sorted, compare);
    *ret_different = 1;
    for (uint64_t i = 1; i < n; i++)
        *ret_different += s->sorted[i] >> 32 != s->sorted[i - 1] >> 32;
    return n;
}

static void use_part(PenSchedule *s, PenBlockPart *p, uint64_t sorted)
{
    s->needs[(uint32_t)sorted].part = p;
    p->uses_ahead++;
    if (p->list == &s->finished)
        enlist(&s->later, p);
}

/* Those of the sorted needs from number `from` on are planned by the next call. */
static int fail_to_plan(PenSchedule *s, PenBlockNeeds *b, uint64_t from, uint64_t n,
                        PenError *reterr)
{
    for (uint64_t i = from; i < n; i++)
        add_need(s, b, s->cursor + (((uint32_t)s->sorted[i] - s->cursor) & s->needs_mask));
    return pen__fail_memory(reterr, WHERE, "block");
}

static int plan_block(PenSchedule *s, PenBlockNeeds *b, uint64_t n, uint32_t n_samples,
                      bool is_resident, PenError *reterr)
{
    PenBlockPart *p = add_part(s, b, 0, n_samples);
    if (!p)
        return fail_to_plan(s, b, 0, n, reterr);
    p->is_block = true;
    p->bytes = s->plan.bytes(s->plan.ctx, b->block, n_samples, true);
    p->is_resident = is_resident;
    if (is_resident) {
        b->resident = p;
        s->resident_bytes += p->bytes;
    }
    for (uint64_t i = 0; i < n; i++)
        use_part(s, p, s->sorted[i]);
    return PEN_OK;
}

static int plan_runs(PenSchedule *s, PenBlockNeeds *b, uint64_t n, PenError *reterr)
{
    for (uint64_t from = 0, end; from < n; from = end) {
        uint32_t first = (uint32_t)(s->sorted[from] >> 32), last = first;
        for (end = from + 1; end < n && s->sorted[end] >> 32 <= (uint64_t)last + 1 + GAP; end++)
            last = (uint32_t)(s->sorted[end] >> 32);
        PenBlockPart *p = add_part(s, b, first, last - first + 1);
        if (!p)
            return fail_to_plan(s, b, from, n, reterr);
        p->bytes = s->plan.bytes(s->plan.ctx, b->block, p->n, false);
        for (uint64_t i = from; i < end; i++)
            use_part(s, p, s->sorted[i]);
    }
    return PEN_OK;
}

static uint64_t horizon(const PenSchedule *s)
{
    if (s->plan.begins_apart && s->cursor < s->first_batch)
        return PEN_MIN(s->plan.horizon, s->first_batch - s->cursor);
    return s->plan.horizon;
}

/* All that is needed of a block within the horizon. */
static int plan_needs(PenSchedule *s, const PenNeed *need, PenError *reterr)
{
    PenBlockNeeds *b = need->of;
    uint32_t n_samples = need->n_samples;
    uint64_t different, n = sort_needs(s, b, &different);
    uint64_t bytes = s->plan.bytes(s->plan.ctx, b->block, n_samples, true);
    bool is_resident = s->plan.resident_bytes >= bytes &&
                       s->resident_bytes <= s->plan.resident_bytes - bytes &&
                       (!s->plan.begins_apart || s->cursor >= s->first_batch);
    b->n = 0;
    for (uint64_t i = 0; i < n && b->resident; i++)
        use_part(s, b->resident, s->sorted[i]);
    if (b->resident)
        return PEN_OK;
    if (is_resident || n_samples - different <= n_samples / MISSING)
        return plan_block(s, b, n, n_samples, is_resident, reterr);
    return plan_runs(s, b, n, reterr);
}

/* The part of the sample at the cursor. NULL: more calls are needed to know it, or samples have to
 * be taken first: planned by a part of the horizon, it would be a part of what is needed. */
static int plan_next(PenSchedule *s, int *steps, PenBlockPart **ret, PenError *reterr)
{
    uint64_t end = PEN_MIN(s->n, s->cursor + horizon(s));
    uint64_t most = PEN_MIN(end, s->taken + s->needs_mask + 1);
    int r = PEN_OK;
    *ret = NULL;
    for (; *steps > 0 && s->seen < most && r == PEN_OK; --*steps)
        r = see_next(s, reterr);
    if (r < 0 || s->seen < end || s->cursor == s->seen)
        return r;
    const PenNeed *need = need_at(s, s->cursor);
    if (!need->part)
        r = plan_needs(s, need, reterr);
    *ret = need->part;
    return r;
}

/* The sample at the cursor needs the part. */
static void advance(PenSchedule *s, PenBlockPart *p)
{
    unlist(p);
    p->uses_ahead--;
    p->uses++;
    s->cursor++;
}

static bool request(PenSchedule *s, PenBlockPart *p)
{
    if (!free_bytes(s, p->bytes))
        return false;
    p->state = PEN_FETCH_REQUESTED;
    s->bytes += p->bytes;
    s->peak_bytes = PEN_MAX(s->peak_bytes, s->bytes);
    s->requested++;
    return true;
}

/* The next part that nobody has requested; samples before it need others. NULL as from plan_next,
 * or when these were many. */
static int find_planned(PenSchedule *s, PenBlockPart **ret, PenError *reterr)
{
    int r = PEN_OK, steps = MAX_STEPS;
    *ret = NULL;
    while (steps-- > 0) {
        r = plan_next(s, &steps, ret, reterr);
        if (r < 0 || !*ret || (*ret)->state == PEN_FETCH_PLANNED)
            return r;
        advance(s, *ret);
        *ret = NULL;
    }
    return r;
}

int pen__schedule_next(PenSchedule *s, PenBlockPart **ret, PenError *reterr)
{
    PenBlockPart *p;
    *ret = NULL;
    int r = find_planned(s, &p, reterr);
    if (r < 0 || !p || !request(s, p))
        return r;
    advance(s, p);
    *ret = p;
    return PEN_OK;
}

int pen__schedule_next_adjacent(PenSchedule *s, const PenBlockPart *after, PenBlockPart **ret,
                                PenError *reterr)
{
    PenBlockPart *p;
    *ret = NULL;
    int r = find_planned(s, &p, reterr);
    if (r < 0 || !p || !after->is_block || !p->is_block || p->block != after->block + 1)
        return r;
    return pen__schedule_next(s, ret, reterr);
}

/* ---- what has come ---- */

void pen__schedule_arrived(PenSchedule *s, PenBlockPart *p, void *data, uint64_t bytes)
{
    s->bytes = s->bytes - p->bytes + bytes;
    if (p->is_resident)
        s->resident_bytes = s->resident_bytes - p->bytes + bytes;
    s->peak_bytes = PEN_MAX(s->peak_bytes, s->bytes);
    p->bytes = bytes;
    p->state = PEN_FETCH_ARRIVED;
    p->data = data;
    if (!p->uses)
        retire(s, p);
}

void pen__schedule_failed(PenSchedule *s, PenBlockPart *p)
{
    p->state = PEN_FETCH_FAILED;
    if (!p->uses)
        drop(s, p);
}

void pen__schedule_retry(PenBlockPart *p)
{
    p->state = PEN_FETCH_REQUESTED;
}

bool pen__schedule_is_full(const PenSchedule *s)
{
    return s->seen - s->taken >= s->needs_mask;
}

PenBlockPart *pen__schedule_take(PenSchedule *s)
{
    return need_at(s, s->taken++)->part;
}

void pen__schedule_sample_done(PenSchedule *s, PenBlockPart *p)
{
    s->done++;
    if (--p->uses || p->state == PEN_FETCH_REQUESTED)
        return;
    if (p->state == PEN_FETCH_FAILED)
        drop(s, p);
    else
        retire(s, p);
}
