/* SPDX-License-Identifier: Apache-2.0 */
#include "load/prefetch/blocks.h"

#include "base/mem.h"
#include "base/thread.h"
#include "load/plan/sources.h"

#define WHERE "load/blocks"

/* ---- life ---- */

PenBlockPlace pen__blocks_place(const PenLoadPlan *plan, uint64_t number)
{
    if (!plan->sources)
        return (PenBlockPlace){plan->pack, number, pen_pack_info(plan->pack)->block_samples};
    const PenMixSource *s = pen__sources_of_block(plan, number);
    return (PenBlockPlace){s->pack, number - s->first_block, s->block_samples};
}

/* A part keeps the index of its block. Of packs whose blocks are not read entirely there is only
 * that; what a cache lacks is fetched as an entire block at first. */
static uint64_t bytes_of(void *ctx, uint64_t number, uint32_t n, bool all)
{
    PenBlockPlace at = pen__blocks_place(ctx, number);
    const PenManifest *m = pen__pack_manifest(at.pack);
    const PenPackInfo *info = pen_pack_info(at.pack);
    uint64_t index = m->stats.index_bytes / PEN_MAX(m->n_blocks, 1u) + sizeof(PenBlock);
    uint64_t largest = m->shards[pen__pack_shard_of(at.pack, at.number)].largest_block;
    if (!pen__pack_is_whole(at.pack))
        return index;
    all = all || pen__pack_has_cache(at.pack);
    return pen__remote_part_bytes(largest, (double)info->total_bytes / (double)info->n_samples, n,
                                  all) +
           (all ? 0 : index);
}

static void drop_part(void *ctx, const PenBlockPart *b)
{
    if (b->state == PEN_FETCH_ARRIVED)
        pen__pack_block_put(pen__blocks_place(ctx, b->block).pack, b->data);
    else
        pen__free(b->data); /* an error */
}

static int make_tickets(PenBlocks *b, uint32_t n, PenError *reterr)
{
    b->tickets = pen__alloc_array(n, sizeof *b->tickets);
    if (!b->tickets)
        return pen__fail_memory(reterr, WHERE, "waiting samples");
    for (uint32_t i = 0; i < n; i++) {
        b->tickets[i].next = b->free_tickets;
        b->free_tickets = &b->tickets[i];
    }
    return PEN_OK;
}

static PenBlocks *new_empty(const PenLoadPlan *plan, PenLoadLock *lock, PenEpochPass *pass)
{
    PenBlocks *b = pen__zalloc(sizeof *b);
    if (!b)
        return NULL;
    *b = (PenBlocks){.lock = lock, .plan = plan, .pass = pass};
    b->arrived_end = &b->arrived;
    if (pen__cond_init(&b->fetchers) < 0) {
        pen__free(b);
        return NULL;
    }
    if (pen__turns_init(&b->turns, lock) < 0) {
        pthread_cond_destroy(&b->fetchers);
        pen__free(b);
        return NULL;
    }
    return b;
}

/* With the lock held. */
static PenSampleSpot spot_of(const void *of, uint64_t epoch, uint64_t index)
{
    const PenLoadPlan *plan = of;
    PenChosen c = plan->mixture ? pen__sources_at(plan, plan->orders, epoch, index)
                                : pen__load_plan_choose(plan, epoch, index);
    const PenPackInfo *info = pen_pack_info(c.pack);
    uint64_t k = info->block_samples, block = c.sample / k;
    return (PenSampleSpot){.block =
                               block + (plan->sources ? plan->sources[c.source].first_block : 0),
                           .sample = (uint32_t)(c.sample % k),
                           .n_samples = (uint32_t)PEN_MIN(k, info->n_samples - block * k)};
}

int pen__blocks_new(const PenLoadPlan *plan, PenLoadLock *lock, PenEpochPass *pass, PenBlocks **ret,
                    PenError *reterr)
{
    PenSchedulePlan schedule = {.horizon = plan->fetch.horizon,
                                .begins_apart = plan->fetch.begins_apart,
                                .limit_bytes = plan->shares.blocks,
                                .resident_bytes = plan->fetch.resident_bytes,
                                .spot = spot_of,
                                .of = plan,
                                .bytes = bytes_of,
                                .drop = drop_part,
                                .ctx = (void *)(uintptr_t)plan};
    PenBlocks *b = new_empty(plan, lock, pass);
    if (!b)
        return pen__fail_memory(reterr, WHERE, "prefetched blocks");
    int r = pen__schedule_init(&b->schedule, &schedule, reterr);
    if (r == PEN_OK)
        r = make_tickets(b, plan->tickets, reterr);
    if (r < 0)
        pen__blocks_free(&b);
    else
        *ret = b;
    return r;
}

void pen__blocks_free(PenBlocks **blocks)
{
    PenBlocks *b = *blocks;
    if (!b)
        return;
    *blocks = NULL;
    pen__schedule_fini(&b->schedule);
    pen__turns_fini(&b->turns);
    pthread_cond_destroy(&b->fetchers);
    pen__free(b->tickets);
    pen__free(b);
}

void pen__blocks_end(PenBlocks *b)
{
    pen__schedule_end(&b->schedule);
}

void pen__blocks_begin(PenBlocks *b)
{
    pen__schedule_begin(&b->schedule, &b->pass->order, &b->pass->split, b->pass->steps);
    pen__turns_begin(&b->turns);
    pthread_cond_broadcast(&b->fetchers);
}

void pen__blocks_wake(PenBlocks *b)
{
    pthread_cond_broadcast(&b->fetchers);
    pen__turns_wake(&b->turns);
}

/* ---- tickets ---- */

static void free_ticket(PenBlocks *b, PenTicket *t)
{
    t->next = b->free_tickets;
    b->free_tickets = t;
}

static void free_list(PenBlocks *b, PenTicket *t)
{
    for (PenTicket *next; t; t = next) {
        next = t->next;
        free_ticket(b, t);
    }
}

void pen__blocks_clear(PenBlocks *b)
{
    free_list(b, b->arrived);
    b->arrived = NULL;
    b->arrived_end = &b->arrived;
    for (PenBlockPart *at = b->schedule.parts; at; at = at->next) {
        free_list(b, at->waiting);
        at->waiting = NULL;
    }
}

static void add_waiting(PenBlockPart *at, PenTicket *t)
{
    t->next = at->waiting;
    at->waiting = t;
}

static void add_arrived(PenBlocks *b, PenTicket *t)
{
    t->next = NULL;
    *b->arrived_end = t;
    b->arrived_end = &t->next;
}

/* A part whose fetch failed is fetched again when another sample needs it. */
static void fetch_again(PenBlocks *b, PenBlockPart *which)
{
    pen__free(which->data);
    which->data = NULL;
    pen__schedule_retry(which);
    which->link = b->failed;
    b->failed = which;
    pthread_cond_signal(&b->fetchers);
}

bool pen__blocks_can_assign(const PenBlocks *b)
{
    return b->free_tickets && b->pass->assigned < b->schedule.cursor;
}

void pen__blocks_assign(PenBlocks *b, const PenAssignment *what)
{
    PenTicket *t = b->free_tickets;
    PenBlockPart *from = pen__schedule_take(&b->schedule);
    if (pen__schedule_is_full(&b->schedule)) /* it can see another sample now */
        pthread_cond_signal(&b->fetchers);
    b->free_tickets = t->next;
    t->to = *what;
    t->from = from;
    if (from->state == PEN_FETCH_FAILED)
        fetch_again(b, from);
    if (from->state == PEN_FETCH_ARRIVED)
        add_arrived(b, t);
    else
        add_waiting(from, t);
}

bool pen__blocks_have_arrived(const PenBlocks *b)
{
    return b->arrived;
}

/* The part has arrived, or its error has. */
static void fill_task(PenTask *task, const PenTicket *t)
{
    const PenBlockPart *from = t->from;
    pen__task_assign(task, &t->to);
    if (from->state == PEN_FETCH_ARRIVED) {
        task->block = from->data;
    } else if (from->data) {
        task->error = *(const PenError *)from->data;
        task->status = task->error.status;
    } else {
        task->status = pen__fail_memory(&task->error, WHERE, "error of a request");
    }
}

bool pen__blocks_take(PenBlocks *b, PenTask *task, PenBlockPart **ret_from)
{
    PenTicket *t = b->arrived;
    b->arrived = t->next;
    if (!t->next)
        b->arrived_end = &b->arrived;
    if (t->from->state == PEN_FETCH_REQUESTED) { /* it had failed, and is fetched again */
        add_waiting(t->from, t);
        return false;
    }
    fill_task(task, t);
    *ret_from = t->from;
    free_ticket(b, t);
    return true;
}

void pen__blocks_sample_done(PenBlocks *b, PenBlockPart *from)
{
    bool last = from->uses == 1;
    pen__schedule_sample_done(&b->schedule, from);
    if (last || pen__schedule_is_starved(&b->schedule)) /* another part may fit now */
        pthread_cond_signal(&b->fetchers);
}

/* ---- fetching ---- */

/* What lies in a cache comes at the speed of the processor: what is not needed yet
 * would take it from the first batch. */
static bool is_first_batch_only(const PenBlocks *b)
{
    return pen__turns_are_pending(&b->turns) && pen__schedule_has_first_batch(&b->schedule) &&
           !pen__pack_joins(b->plan->pack);
}

static void fail_pass(PenBlocks *b, int status, const PenError *err)
{
    pen__epoch_pass_fail(b->pass, status, err);
    pthread_cond_broadcast(&b->lock->caller);
}

PenBlockPart *pen__blocks_next(PenBlocks *b)
{
    PenBlockPart *next = b->failed;
    if (b->lock->paused || !pen__epoch_pass_is_running(b->pass))
        return NULL;
    if (next) {
        b->failed = next->link;
        return next;
    }
    while (!b->lock->paused && pen__epoch_pass_is_running(b->pass) && !is_first_batch_only(b)) {
        uint64_t cursor = b->schedule.cursor, before = pen__schedule_progress(&b->schedule);
        PenError err;
        int r = pen__schedule_next(&b->schedule, &next, &err);
        if (r < 0)
            fail_pass(b, r, &err);
        if (b->schedule.cursor != cursor)
            pthread_cond_broadcast(&b->lock->readers);
        if (next || r < 0 || pen__schedule_progress(&b->schedule) == before)
            return next;
        pthread_mutex_unlock(&b->lock->mutex); /* others may have waited for it */
        pthread_mutex_lock(&b->lock->mutex);
    }
    return NULL;
}

/* Samples that waited for the part are next. */
static void wake_tickets(PenBlocks *b, PenBlockPart *which)
{
    PenTicket *t = which->waiting;
    which->waiting = NULL;
    for (PenTicket *next; t; t = next) {
        next = t->next;
        add_arrived(b, t);
    }
    pthread_cond_broadcast(&b->lock->readers);
}

void pen__blocks_fetched(PenBlocks *b, PenBlockPart *which, int status, PenBlock *block,
                         const PenError *error)
{
    wake_tickets(b, which);
    if (status == PEN_OK) {
        uint64_t index = block->index ? block->index->view.index_bytes + sizeof *block : 0;
        if (!block->is_whole && !block->index)
            index = block->view.index_bytes;
        pen__schedule_arrived(&b->schedule, which, block, block->cap + sizeof *block + index);
        return;
    }
    PenError *kept = pen__alloc(sizeof *kept);
    if (kept)
        *kept = *error;
    which->data = kept;
    pen__schedule_failed(&b->schedule, which); /* drops it when no sample needs it */
}
