/* SPDX-License-Identifier: Apache-2.0 */
#include "pack/reader/shard_walk.h"

#include "base/attr.h"
#include "base/error.h"
#include "base/thread.h"

/* One request reads about this much: blocks until it is reached. */
enum { PART_BYTES = 8 << 20 };
#define WAIT_NS 100000000u

static void unlock(PenShardWalk *w)
{
    pthread_cond_broadcast(&w->news);
    pthread_mutex_unlock(&w->mutex);
}

static void wait_for_news(PenShardWalk *w)
{
    (void)pen__cond_wait(&w->news, &w->mutex, pen__deadline_after(WAIT_NS));
}

/* ---- what a thread does next; with the mutex held -------------------------------------------- */

static bool next_part(PenShardWalk *w, PenWalkShard *s, PenWalkPart *ret)
{
    while (s->next < s->n) {
        PenShardPart part = pen__shard_part(&s->ref->shard, s->next, PART_BYTES);
        s->next = part.end;
        if (w->calls->skip && w->calls->skip(w->ctx, s, &part))
            continue;
        *ret = (PenWalkPart){.shard = s, .part = part, .number = s->taken++};
        return true;
    }
    return false;
}

/* A part of an open shard, or the closing of one whose parts are done. */
static bool take_open(PenShardWalk *w, PenWalkPart *ret)
{
    for (unsigned i = 0; i < w->n_threads; i++) {
        PenWalkShard *s = &w->shards[i];
        if (s->state != PEN_WALK_OPEN)
            continue;
        if (next_part(w, s, ret))
            return true;
        if (s->taken == s->done) {
            s->state = PEN_WALK_CLOSING;
            *ret = (PenWalkPart){.shard = s};
            return true;
        }
    }
    return false;
}

/* There is a free slot: a thread is at work on each other one, and this thread is on none. */
static bool take_shard(PenShardWalk *w, PenWalkPart *ret)
{
    if (w->next_shard == pen__pack_manifest(w->pack)->n_shards)
        return false;
    unsigned i = 0;
    while (w->shards[i].state != PEN_WALK_FREE)
        i++;
    w->shards[i] = (PenWalkShard){.state = PEN_WALK_OPENING, .slot = i, .number = w->next_shard++};
    *ret = (PenWalkPart){.shard = &w->shards[i]};
    return true;
}

static bool is_opening(const PenShardWalk *w)
{
    for (unsigned i = 0; i < w->n_threads; i++)
        if (w->shards[i].state == PEN_WALK_OPENING)
            return true;
    return false;
}

/* Takes the mutex itself. False: there is nothing left to do. */
static bool take(PenShardWalk *w, PenWalkPart *ret)
{
    bool got = false;
    pthread_mutex_lock(&w->mutex);
    while (!w->is_stopped && !(got = take_open(w, ret) || take_shard(w, ret)) && is_opening(w))
        wait_for_news(w);
    pthread_mutex_unlock(&w->mutex);
    return got;
}

/* ---- doing it -------------------------------------------------------------------------------- */

static void free_shard(PenShardWalk *w, PenWalkShard *s)
{
    w->calls->release(w->ctx, s);
    if (s->ref)
        pen__pack_shard_put(w->pack, s->ref);
    pthread_mutex_lock(&w->mutex);
    *s = (PenWalkShard){.state = PEN_WALK_FREE};
    unlock(w);
}

static int open_shard(PenShardWalk *w, PenWalkShard *s, PenError *reterr)
{
    int r = w->calls->open(w->ctx, s, reterr);
    if (r == 0)
        free_shard(w, s);
    if (r <= 0)
        return r;
    pthread_mutex_lock(&w->mutex);
    s->n = pen__shard_pieces(&s->ref->shard);
    s->state = PEN_WALK_OPEN;
    unlock(w);
    return PEN_OK;
}

static int close_shard(PenShardWalk *w, PenWalkShard *s, PenError *reterr)
{
    int r = w->calls->close(w->ctx, s, reterr);
    if (r == PEN_OK)
        free_shard(w, s);
    return r;
}

static int do_part(PenShardWalk *w, const PenWalkPart *p, PenBuf *buf, PenError *reterr)
{
    int r = w->calls->part(w->ctx, p, buf, reterr);
    if (r < 0)
        return r; /* and never done: the parts behind it wait until the walk is stopped */
    PenWalkShard *s = p->shard;
    pthread_mutex_lock(&w->mutex);
    bool is_last = ++s->done == s->taken && s->next == s->n;
    if (is_last)
        s->state = PEN_WALK_CLOSING;
    unlock(w);
    /* At once: the disk or the store is busy with it while other threads read. */
    return is_last ? close_shard(w, s, reterr) : PEN_OK;
}

void pen__walk_work(PenShardWalk *w)
{
    PenBuf buf = {0};
    PenWalkPart p;
    while (take(w, &p)) {
        PenError e = {0};
        int r;
        if (p.shard->state == PEN_WALK_OPENING)
            r = open_shard(w, p.shard, &e);
        else if (p.shard->state == PEN_WALK_CLOSING)
            r = close_shard(w, p.shard, &e);
        else
            r = do_part(w, &p, &buf, &e);
        if (r < 0)
            pen__walk_stop(w, r, &e);
    }
    pen__buf_free(&buf);
}

bool pen__walk_await_turn(PenShardWalk *w, const PenWalkPart *p)
{
    pthread_mutex_lock(&w->mutex);
    while (!w->is_stopped && p->shard->done != p->number)
        wait_for_news(w);
    bool goes_on = !w->is_stopped;
    pthread_mutex_unlock(&w->mutex);
    return goes_on;
}

/* ---- all ------------------------------------------------------------------------------------- */

int pen__walk_init(PenShardWalk *w, PenPack *pack, unsigned threads, const PenWalkCalls *calls,
                   void *ctx, PenError *reterr)
{
    *w = (PenShardWalk){.calls = calls,
                        .ctx = ctx,
                        .pack = pack,
                        .n_threads = PEN_MIN(PEN_MAX(threads, 1u), (unsigned)PEN_WALK_THREADS)};
    if (pen__cond_init(&w->news) < 0)
        return pen__fail_memory(reterr, "pack/shard_walk", pen__pack_path(pack));
    pthread_mutex_init(&w->mutex, NULL);
    return PEN_OK;
}

void pen__walk_fini(PenShardWalk *w)
{
    for (unsigned i = 0; i < w->n_threads; i++)
        if (w->shards[i].state != PEN_WALK_FREE)
            free_shard(w, &w->shards[i]);
    pthread_cond_destroy(&w->news);
    pthread_mutex_destroy(&w->mutex);
}

void pen__walk_stop(PenShardWalk *w, int status, const PenError *e)
{
    pthread_mutex_lock(&w->mutex);
    if (w->error.status == PEN_OK) {
        w->error = *e;
        w->error.status = status;
    }
    w->is_stopped = true;
    unlock(w);
}

bool pen__walk_is_stopped(PenShardWalk *w)
{
    pthread_mutex_lock(&w->mutex);
    bool is_stopped = w->is_stopped;
    pthread_mutex_unlock(&w->mutex);
    return is_stopped;
}

int pen__walk_status(PenShardWalk *w, PenError *reterr)
{
    pthread_mutex_lock(&w->mutex);
    PenError e = w->error;
    pthread_mutex_unlock(&w->mutex);
    if (e.status < 0 && reterr)
        *reterr = e;
    return e.status;
}
