/* SPDX-License-Identifier: Apache-2.0 */
#include "load/window.h"

#include "base/mem.h"
#include "base/sys.h"
#include "base/thread.h"
#include "load/core.h"

#define WHERE "load/window"

enum { JOIN_BYTES = 8 << 20 }; /* of one request for blocks side by side */

/* ---- life ---- */

static uint64_t block_bytes(void *ctx, uint64_t number)
{
    const PenPack *p = ctx;
    uint64_t shard = pen__pack_shard_of(p, number);
    return pen__pack_manifest(p)->shards[shard].largest_block + sizeof(PenBlock) + PEN_SLACK;
}

static void drop_block(void *ctx, const PenAheadBlock *b)
{
    if (b->state == PEN_AHEAD_HERE)
        pen__pack_block_put(ctx, b->data);
    else
        pen__free(b->data); /* an error */
}

static int make_tickets(PenWindow *w, uint32_t n, PenError *reterr)
{
    w->tickets = pen__alloc_array(n, sizeof *w->tickets);
    if (!w->tickets)
        return pen__fail_memory(reterr, WHERE, "samples ahead");
    for (uint32_t i = 0; i < n; i++) {
        w->tickets[i].next = w->free_tickets;
        w->free_tickets = &w->tickets[i];
    }
    return PEN_OK;
}

static int init_conds(PenWindow *w)
{
    if (pen__cond_init(&w->for_blocks) < 0)
        return -1;
    if (pen__cond_init(&w->for_turn) < 0) {
        pthread_cond_destroy(&w->for_blocks);
        return -1;
    }
    return 0;
}

int pen__window_new(PenCore *c, PenWindow **ret, PenError *reterr)
{
    const PenLoadPlan *plan = &c->plan;
    const PenPackInfo *info = pen_pack_info(plan->pack);
    PenAheadPlan ahead = {.block_samples = info->block_samples,
                          .n_samples = info->n_samples,
                          .first = plan->set.first,
                          .subset = plan->subset,
                          .room = plan->shares.room,
                          .keeps = info->total_bytes <= plan->shares.room,
                          .block_bytes = block_bytes,
                          .drop = drop_block,
                          .ctx = plan->pack};
    PenWindow *w = pen__zalloc(sizeof *w);
    if (!w || init_conds(w) < 0) {
        pen__free(w);
        return pen__fail_memory(reterr, WHERE, "window");
    }
    w->arrived_end = &w->arrived;
    int r = pen__ahead_init(&w->ahead, &ahead, reterr);
    if (r == PEN_OK)
        r = make_tickets(w, plan->tickets, reterr);
    if (r < 0)
        pen__window_free(&w);
    else
        *ret = w;
    return r;
}

void pen__window_free(PenWindow **window)
{
    PenWindow *w = *window;
    if (!w)
        return;
    *window = NULL;
    pen__ahead_fini(&w->ahead);
    pthread_cond_destroy(&w->for_blocks);
    pthread_cond_destroy(&w->for_turn);
    pen__free(w->tickets);
    pen__free(w);
}

void pen__window_begin(PenCore *c)
{
    PenWindow *w = c->window;
    pen__ahead_begin(&w->ahead, &c->pass.order, &c->pass.split, c->pass.steps);
    w->first = w->landed = 0;
    w->turns_before = w->turns; /* some of these may wait still */
    w->warm = false;
    pthread_cond_broadcast(&w->for_blocks);
}

void pen__window_stop(PenWindow *w)
{
    if (!w)
        return;
    pthread_cond_broadcast(&w->for_blocks);
    pthread_cond_broadcast(&w->for_turn);
}

/* ---- tickets ---- */

static void free_ticket(PenWindow *w, PenTicket *t)
{
    t->next = w->free_tickets;
    w->free_tickets = t;
}

static void free_row(PenWindow *w, PenTicket *row)
{
    for (PenTicket *next; row; row = next) {
        next = row->next;
        free_ticket(w, row);
    }
}

void pen__window_quiet(PenCore *c)
{
    PenWindow *w = c->window;
    free_row(w, w->arrived);
    w->arrived = NULL;
    w->arrived_end = &w->arrived;
    for (uint64_t i = 0; i <= w->ahead.mask; i++)
        for (PenAheadBlock *b = w->ahead.table[i]; b; b = b->chain) {
            free_row(w, b->waiting);
            b->waiting = NULL;
        }
}

static void wait_for(PenAheadBlock *b, PenTicket *t)
{
    t->next = b->waiting;
    b->waiting = t;
}

static void add_arrived(PenWindow *w, PenTicket *t)
{
    t->next = NULL;
    *w->arrived_end = t;
    w->arrived_end = &t->next;
}

/* A block that could not be had is asked for again when another sample needs it. */
static void ask_again(PenWindow *w, PenAheadBlock *b)
{
    pen__free(b->data);
    b->data = NULL;
    pen__ahead_again(b);
    b->link = w->again;
    w->again = b;
    pthread_cond_signal(&w->for_blocks);
}

bool pen__window_can_give(const PenCore *c)
{
    const PenWindow *w = c->window;
    const PenPassState *pass = &c->pass;
    return w->free_tickets &&
           pass->feed_batch * pass->split.batch + pass->feed_sample < w->ahead.cursor;
}

void pen__window_give(PenCore *c, const PenTicket *what)
{
    PenWindow *w = c->window;
    PenTicket *t = w->free_tickets;
    PenAheadBlock *b = pen__ahead_at(&w->ahead, what->sample / w->ahead.plan.block_samples);
    w->free_tickets = t->next;
    *t = *what;
    t->from = b;
    if (b->state == PEN_AHEAD_FAILED)
        ask_again(w, b);
    if (b->state == PEN_AHEAD_HERE)
        add_arrived(w, t);
    else
        wait_for(b, t);
}

bool pen__window_has_arrived(const PenWindow *w)
{
    return w->arrived;
}

bool pen__window_take(PenCore *c, PenTask *task, PenAheadBlock **ret_from)
{
    PenWindow *w = c->window;
    PenTicket *t = w->arrived;
    PenAheadBlock *b = t->from;
    w->arrived = t->next;
    if (!t->next)
        w->arrived_end = &w->arrived;
    if (b->state == PEN_AHEAD_ASKED) { /* it had failed, and another sample asked for it again */
        wait_for(b, t);
        return false;
    }
    task->slot = t->slot;
    task->index = t->index;
    task->sample = t->sample;
    task->ordinal = t->ordinal;
    task->status = PEN_OK;
    if (b->state == PEN_AHEAD_HERE) {
        task->block = b->data;
    } else if (b->data) {
        task->error = *(const PenError *)b->data;
        task->status = task->error.status;
    } else {
        task->status = pen__fail_memory(&task->error, WHERE, "error of a block");
    }
    free_ticket(w, t);
    *ret_from = b;
    return true;
}

void pen__window_used(PenCore *c, PenAheadBlock *from)
{
    PenWindow *w = c->window;
    bool last = from->uses == 1;
    pen__ahead_used(&w->ahead, from);
    if (last || pen__ahead_is_starved(&w->ahead)) /* there may be room for another */
        pthread_cond_signal(&w->for_blocks);
}

/* ---- threads that fetch ---- */

static void fail_pass(PenCore *c, int status, const PenError *err)
{
    c->pass_error = *err;
    c->pass_status = status;
    pthread_cond_broadcast(&c->for_user);
}

/* Blocks that lie in a cache come at the speed of the processor: what is not needed yet would take
 * it from the first batch. */
static bool is_first_only(const PenCore *c)
{
    const PenWindow *w = c->window;
    bool under_way = w->turns - w->turns_before > w->landed;
    return !w->warm && under_way && w->ahead.cursor >= w->ahead.split.batch &&
           !pen__pack_joins(c->plan.pack);
}

/* The next block to fetch; NULL: none now. */
static PenAheadBlock *next_block(PenCore *c)
{
    PenWindow *w = c->window;
    PenAheadBlock *b = w->again;
    if (c->paused || c->pass.ended || c->pass_status)
        return NULL;
    if (b) {
        w->again = b->link;
        return b;
    }
    while (!is_first_only(c)) {
        uint64_t before = w->ahead.cursor;
        PenError err;
        int r = pen__ahead_want(&w->ahead, &b, &err);
        if (r < 0)
            fail_pass(c, r, &err);
        if (w->ahead.cursor != before)
            pthread_cond_broadcast(&c->for_io);
        if (b || r < 0 || w->ahead.cursor == before)
            return b;
    }
    return NULL;
}

/* Those that waited for it are next. */
static void wake_tickets(PenCore *c, PenAheadBlock *b)
{
    PenTicket *t = b->waiting;
    b->waiting = NULL;
    for (PenTicket *next; t; t = next) {
        next = t->next;
        add_arrived(c->window, t);
    }
    pthread_cond_broadcast(&c->for_io);
}

static void land(PenCore *c, PenAheadBlock *b, int r, PenBlock *block, const PenError *err)
{
    PenWindow *w = c->window;
    if (r == PEN_OK) {
        wake_tickets(c, b);
        pen__ahead_arrived(&w->ahead, b, block, block->cap + sizeof *block);
        return;
    }
    PenError *kept = pen__alloc(sizeof *kept);
    if (kept)
        *kept = *err;
    b->data = kept;
    wake_tickets(c, b);
    pen__ahead_failed(&w->ahead, b); /* gone when nobody needs it */
}

/* Blocks behind the first one that come by the same request. */
static int join(PenCore *c, PenAheadBlock *run[])
{
    const PenPack *p = c->plan.pack;
    uint64_t most = PEN_MIN((uint64_t)JOIN_BYTES, c->window->ahead.plan.room / 4);
    uint64_t bytes = run[0]->bytes, shard = pen__pack_shard_of(p, run[0]->number);
    int n = 1;
    while (n < PEN_JOIN_MOST && pen__pack_joins(p) && bytes + run[0]->bytes <= most &&
           run[n - 1]->number + 1 < pen_pack_info(p)->n_blocks &&
           pen__pack_shard_of(p, run[n - 1]->number + 1) == shard) {
        run[n] = NULL;
        if (pen__ahead_want_next(&c->window->ahead, run[n - 1], &run[n], NULL) < 0 || !run[n])
            break;
        bytes += run[n++]->bytes;
    }
    return n;
}

/* Shards are opened in any order, and then the first ones would send all their requests before
 * the others, needed or not. */
static void wait_for_turn(PenCore *c, uint64_t number)
{
    PenWindow *w = c->window;
    uint64_t mine = w->turns++;
    PenShardRef *shard = NULL;
    pthread_mutex_unlock(&c->mutex);
    int r = pen__pack_shard(c->plan.pack, pen__pack_shard_of(c->plan.pack, number), &shard, NULL);
    pthread_mutex_lock(&c->mutex);
    while (!c->stop && !w->warm && w->turn < mine)
        (void)pen__cond_wait(&w->for_turn, &c->mutex, pen__deadline_after(1000000000u));
    w->turn = PEN_MAX(w->turn, mine + 1);
    pthread_cond_broadcast(&w->for_turn);
    if (r == PEN_OK)
        pen__pack_shard_put(c->plan.pack, shard);
}

static void count_landed(PenWindow *w)
{
    bool was_warm = w->warm;
    w->landed++;
    if (!w->first && w->ahead.cursor >= w->ahead.split.batch)
        w->first = w->turns - w->turns_before;
    w->warm = w->warm || (w->first && w->landed >= w->first);
    bool all_here = w->landed >= w->turns - w->turns_before;
    if (!was_warm && (w->warm || all_here)) {
        pthread_cond_broadcast(&w->for_turn);
        pthread_cond_broadcast(&w->for_blocks);
    }
}

static void fetch_some(PenCore *c, PenThread *me, PenAheadBlock *first)
{
    PenWindow *w = c->window;
    PenAheadBlock *run[PEN_JOIN_MOST] = {first};
    PenBlock *blocks[PEN_JOIN_MOST] = {0};
    PenError err = {0};
    uint64_t number = first->number;
    int n = join(c, run);
    pen__thread_doing(me, THREAD_READING, number * w->ahead.plan.block_samples);
    if (!w->warm)
        wait_for_turn(c, number);
    pthread_mutex_unlock(&c->mutex);
    int r = n > 1 ? pen__pack_blocks_take(c->plan.pack, number, n, blocks, &err)
                  : pen__pack_block_take(c->plan.pack, number, blocks, &err);
    pthread_mutex_lock(&c->mutex);
    pen__thread_doing(me, THREAD_IDLE, 0);
    count_landed(w);
    for (int i = 0; i < n; i++)
        land(c, run[i], r, blocks[i], &err);
}

void *pen__fetcher_run(void *thread)
{
    PenThread *me = thread;
    PenCore *c = me->core;
    pen__thread_name("pen-fetch");
    pthread_mutex_lock(&c->mutex);
    while (!c->stop) {
        PenAheadBlock *b = next_block(c);
        if (b)
            fetch_some(c, me, b);
        else
            (void)pen__cond_wait(&c->window->for_blocks, &c->mutex,
                                 pen__deadline_after(1000000000u));
    }
    c->live--;
    pthread_cond_broadcast(&c->for_user);
    pen__core_unref(c);
    return NULL;
}
