/* SPDX-License-Identifier: Apache-2.0 */
/* The public calls: passes, batches, state. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/abi.h"
#include "base/bytes.h"
#include "base/sys.h"
#include "base/thread.h"
#include "load/core.h"

#define WHERE "load/loader"

enum { KEPT_BAD = 1000 };

struct PenLoader {
    PenCore *core;
    pid_t pid;
    uint64_t epoch;
    uint64_t position;   /* samples delivered of it, over all ranks */
    uint64_t waiting_ns; /* since when the next batch is waited for; 0 = it is not */
    bool begun;          /* a pass of this epoch was begun */
    bool named;          /* the epoch was set by name */
};

static int check_alive(const PenLoader *l, PenError *reterr)
{
    if (l->pid == getpid())
        return PEN_OK;
    return pen__fail(reterr, PEN_E_CLOSED, WHERE,
                     "this loader was opened by process %d; open another in process %d",
                     (int)l->pid, (int)getpid());
}

int pen_loader_open(PenPack *pack, const PenLoaderSettings *settings, PenLoader **ret_loader,
                    PenError *reterr)
{
    PenLoader *l = pen__zalloc(sizeof *l);
    if (!l)
        return pen__fail_memory(reterr, WHERE, "loader");
    int r = pen__core_new(pack, settings, &l->core, reterr);
    if (r < 0) {
        pen__free(l);
        return r;
    }
    l->pid = getpid();
    *ret_loader = l;
    return PEN_OK;
}

void pen_loader_close(PenLoader **loader)
{
    if (!loader || !*loader)
        return;
    /* The threads of a parent are not in its child: there is nobody to stop, and locks may be held.
     */
    if ((*loader)->pid == getpid())
        pen__core_stop((*loader)->core);
    pen__free(*loader);
    *loader = NULL;
}

/* ---- what it is ---- */

static PenSplit split_at(const PenLoader *l, uint64_t start)
{
    const PenLoadPlan *p = &l->core->plan;
    return (PenSplit){.n = p->state.order.n,
                      .start = start,
                      .batch = p->set.batch_size,
                      .rank = p->set.rank,
                      .world = p->set.world,
                      .drop_last = p->set.drop_last};
}

uint64_t pen_loader_len(const PenLoader *loader)
{
    PenSplit s = split_at(loader, 0);
    return pen__split_steps(&s);
}

uint64_t pen_loader_samples(const PenLoader *loader)
{
    return loader->core->plan.state.order.n;
}

/* A restored place at the very end belongs to the next epoch, unless the caller insists. */
static bool at_end(const PenLoader *l)
{
    return l->position >= l->core->plan.state.order.n && !l->named;
}

uint64_t pen_loader_epoch(const PenLoader *loader)
{
    return loader->epoch + (at_end(loader) ? 1 : 0);
}

const char *pen_loader_pipeline(const PenLoader *loader)
{
    return loader->core->plan.text;
}

const char *pen_loader_warning(const PenLoader *loader)
{
    return loader->core->plan.warning;
}

uint32_t pen_loader_fields(const PenLoader *loader)
{
    return loader->core->plan.n_fields;
}

const char *pen_loader_field_name(const PenLoader *loader, uint32_t field)
{
    return field < loader->core->plan.n_fields ? loader->core->plan.fields[field].name : NULL;
}

PenTensor pen_loader_field_tensor(const PenLoader *loader, uint32_t field)
{
    return field < loader->core->plan.n_fields ? loader->core->plan.fields[field].tensor
                                               : (PenTensor){0};
}

/* ---- passes ---- */

/* What is under way stays until the next one begins. */
static void end_pass(PenCore *c)
{
    pthread_mutex_lock(&c->mutex);
    c->pass.ended = true;
    pthread_mutex_unlock(&c->mutex);
}

int pen_loader_set_epoch(PenLoader *loader, uint64_t epoch, PenError *reterr)
{
    int r = check_alive(loader, reterr);
    if (r < 0)
        return r;
    if (epoch > PEN_EPOCH_MOST)
        return pen__fail(reterr, PEN_E_INVALID, WHERE,
                         "epoch: expected 0 to %" PRIu64 ", found %" PRIu64, PEN_EPOCH_MOST, epoch);
    /* The place in an epoch is kept as long as nothing was taken since it was restored: some
     * callers begin the pass first and name its epoch then. */
    bool untouched = loader->begun && !loader->core->pass.ended && !loader->core->pass.next_batch;
    if (untouched && epoch == loader->epoch)
        return PEN_OK;
    if (epoch != loader->epoch || loader->begun)
        loader->position = 0;
    end_pass(loader->core);
    loader->epoch = epoch;
    loader->begun = false;
    loader->named = true;
    return PEN_OK;
}

/* Waits for threads of the pass before, `ms` at most; a call that is made again goes on waiting. */
static int quiet(PenLoader *l, uint32_t ms, PenError *reterr)
{
    if (!l->core->n_threads)
        return PEN_OK;
    if (!l->waiting_ns)
        l->waiting_ns = pen__sys->now_ns();
    int r = pen__core_quiet(l->core, ms, l->waiting_ns, reterr);
    if (r != PEN_E_TIMEOUT)
        l->waiting_ns = 0;
    return r;
}

static int begin_pass(PenLoader *loader, uint32_t ms, PenError *reterr)
{
    PenCore *c = loader->core;
    int r = quiet(loader, ms, reterr);
    if (r < 0)
        return r;
    if (loader->begun || at_end(loader)) {
        loader->epoch++;
        loader->position = 0;
        loader->begun = false;
    }
    PenPassState pass = {.split = split_at(loader, loader->position)};
    r = pen__order_init(&pass.order, &c->plan.state.order, loader->epoch, reterr);
    if (r == PEN_OK)
        r = pen__core_start(c, reterr);
    if (r < 0)
        return r;
    pass.steps = loader->position >= pass.split.n ? 0 : pen__split_steps(&pass.split);
    loader->begun = true;
    loader->named = false;
    pthread_mutex_lock(&c->mutex);
    c->pass = pass;
    c->pass_status = PEN_OK;
    if (c->window)
        pen__window_begin(c);
    pthread_cond_broadcast(&c->for_io);
    pthread_mutex_unlock(&c->mutex);
    return PEN_OK;
}

int pen_loader_begin(PenLoader *loader, PenError *reterr)
{
    int r = check_alive(loader, reterr);
    return r < 0 ? r : begin_pass(loader, loader->core->plan.set.stall_ms, reterr);
}

/* ---- batches ---- */

/* Every slot is out, and there is no memory for another; with the lock held. */
static bool all_held(const PenCore *c)
{
    return !c->n_under_way && !c->free_slots && !pen__ring_can_grow(c);
}

static int held_error(const PenCore *c, PenError *reterr)
{
    return pen__fail(
        reterr, PEN_E_LIMIT, WHERE,
        "all %u batches that memory=%" PRIu64
        " has room for are held by the caller; let go of batches (a list of them? copy what "
        "is to be kept), or give more memory",
        c->n_leased, c->plan.shares.total);
}

static int by_index(const void *a, const void *b)
{
    const PenSwap *x = a, *y = b;
    return (x->index > y->index) - (x->index < y->index);
}

/* Substitutions are counted in the order of delivery, so that the limit is reached at the same
 * batch whatever the threads did. */
static int count_swaps(PenCore *c, PenSlot *s, PenError *reterr)
{
    size_t n = s->swaps.bytes / sizeof(PenSwap);
    PenSwap *swaps = (PenSwap *)(void *)s->swaps.data;
    s->batch.n_substituted = (uint32_t)n;
    if (!n)
        return PEN_OK;
    qsort(swaps, n, sizeof *swaps, by_index);
    for (size_t i = 0; i < n; i++) {
        if (c->bad.bytes < KEPT_BAD * sizeof(PenBadSample) &&
            pen__buf_add(&c->bad, &swaps[i].bad, sizeof(PenBadSample)) < 0)
            break; /* the count is still right */
    }
    c->stats.substituted += n;
    c->pass.substituted += n;
    if (c->pass.substituted <= c->plan.set.max_bad)
        return PEN_OK;
    return pen__fail(reterr, PEN_E_CORRUPT, WHERE,
                     "%" PRIu64 " samples of this epoch are broken, expected %" PRIu64
                     " at most (max_bad); the last: %.200s",
                     c->pass.substituted, c->plan.set.max_bad, swaps[n - 1].bad.message);
}

/* Takes the batch whose turn it is out of the list; with the lock held. */
static int hand_out(PenLoader *l, PenBatch **ret, PenError *reterr)
{
    PenCore *c = l->core;
    PenSlot *s = c->under_way;
    c->under_way = s->next;
    if (!c->under_way)
        c->under_way_end = &c->under_way;
    c->n_under_way--;
    c->stats.slots_ready--;
    c->pass.next_batch++;
    const PenSplit *split = &c->pass.split;
    bool last = c->pass.next_batch == c->pass.steps;
    l->position =
        last ? split->n : split->start + c->pass.next_batch * split->batch * (uint64_t)split->world;
    int r = s->status;
    if (r < 0 && reterr)
        *reterr = s->error;
    if (r == PEN_OK)
        r = count_swaps(c, s, reterr);
    if (r < 0) {
        pen__ring_recycle(c, s);
        return r;
    }
    atomic_store(&s->refs, 1);
    c->n_leased++;
    c->refs++;
    c->stats.batches++;
    c->stats.samples += s->batch.n_valid;
    pthread_cond_broadcast(&c->for_io);
    *ret = &s->batch;
    return PEN_OK;
}

/* With the lock held. PEN_E_TIMEOUT at the deadline, without a message. */
static int wait_ready(PenCore *c, uint64_t deadline, PenError *reterr)
{
    for (;;) {
        if (c->pass_status < 0) {
            int r = c->pass_status;
            c->pass_status = PEN_OK;
            if (reterr)
                *reterr = c->pass_error;
            return r;
        }
        if (c->under_way && !c->under_way->left)
            return PEN_OK;
        if (all_held(c))
            return held_error(c, reterr);
        if (pen__cond_wait(&c->for_user, &c->mutex, deadline) < 0)
            return PEN_E_TIMEOUT;
    }
}

static int finish_pass(PenLoader *l)
{
    l->core->pass.ended = true;
    l->position = 0;
    l->epoch++;
    l->begun = false;
    return PEN_END;
}

int pen_loader_next(PenLoader *loader, int timeout_ms, PenBatch **ret_batch, PenError *reterr)
{
    PenCore *c = loader->core;
    uint32_t ms = timeout_ms < 0 ? c->plan.set.stall_ms : (uint32_t)timeout_ms;
    uint64_t start = pen__sys->now_ns();
    uint64_t deadline = pen__deadline_after((uint64_t)ms * 1000000u);
    int r = check_alive(loader, reterr);
    if (r == PEN_OK && c->pass.ended)
        r = begin_pass(loader, ms, reterr);
    if (r < 0)
        return r;
    pthread_mutex_lock(&c->mutex);
    if (c->pass.next_batch == c->pass.steps) {
        r = finish_pass(loader);
    } else {
        r = wait_ready(c, deadline, reterr);
        uint64_t now = pen__sys->now_ns();
        c->stats.ns_wait += now - start;
        if (!loader->waiting_ns)
            loader->waiting_ns = start;
        if (r == PEN_E_TIMEOUT)
            r = pen__core_stalled(c, now - loader->waiting_ns, reterr);
        else
            loader->waiting_ns = 0;
        if (r == PEN_OK)
            r = hand_out(loader, ret_batch, reterr);
    }
    pthread_mutex_unlock(&c->mutex);
    return r;
}

/* ---- state ---- */

int pen_loader_save(const PenLoader *loader, char *buf, PenError *reterr)
{
    PenState s = loader->core->plan.state;
    s.epoch = loader->epoch;
    s.position = loader->position;
    return pen__state_write(&s, buf, reterr);
}

int pen_loader_restore(PenLoader *loader, const char *text, int strict, PenError *reterr)
{
    PenState s;
    PenLoadPlan *plan = &loader->core->plan;
    int r = check_alive(loader, reterr);
    if (r == PEN_OK)
        r = pen__state_read(text, &s, reterr);
    if (r < 0)
        return r;
    PenState mine = plan->state;
    /* Lanes and window are chosen once, and the order depends on them: the state's are taken over.
     */
    if (s.order.kind == mine.order.kind && pen__order_by_block(mine.order.kind)) {
        mine.order.lanes = s.order.lanes;
        mine.order.window = s.order.window;
    }
    if (strict)
        r = pen__state_match(&mine, &s, reterr);
    if (r == PEN_OK)
        r = quiet(loader, plan->set.stall_ms, reterr);
    if (r < 0)
        return r;
    plan->state = mine;
    loader->epoch = s.epoch;
    loader->position = PEN_MIN(s.position, plan->state.order.n);
    loader->begun = loader->named = false;
    end_pass(loader->core);
    return PEN_OK;
}

/* ---- figures ---- */

static void read_stats(PenCore *c, PenLoaderStats *ret)
{
    const PenShares *shares = &c->plan.shares;
    pthread_mutex_lock(&c->mutex);
    *ret = c->stats;
    ret->threads = c->plan.threads;
    ret->node_ranks = c->plan.set.node_ranks;
    ret->io_threads = c->plan.fetchers ? c->plan.fetchers : c->plan.io_threads;
    ret->slots = c->n_slots;
    ret->slots_leased = c->n_leased;
    uint64_t own = c->plan.threads * shares->scratch_each + shares->index;
    ret->memory_bytes = c->ring_bytes + c->read.used + c->scratch.used + own;
    ret->memory_peak_bytes = c->ring_bytes + c->read.peak + c->scratch.peak + own;
    pthread_mutex_unlock(&c->mutex);
}

void pen_loader_stats_sized(const PenLoader *loader, PenLoaderStats *ret, size_t ret_bytes)
{
    PenLoaderStats stats = {0};
    if (loader->pid == getpid())
        read_stats(loader->core, &stats);
    pen__result_copy(ret, ret_bytes, &stats, sizeof stats);
}

int pen_loader_bad_sample_sized(const PenLoader *loader, uint64_t i, PenBadSample *ret,
                                size_t ret_bytes)
{
    const PenCore *c = loader->core;
    if (i >= c->bad.bytes / sizeof(PenBadSample))
        return PEN_END;
    pen__result_copy(ret, ret_bytes, c->bad.data + i * sizeof(PenBadSample), sizeof(PenBadSample));
    return PEN_OK;
}
