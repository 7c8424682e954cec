/* SPDX-License-Identifier: Apache-2.0 */
/* Threads that bring a pack's shards into shared memory. A shard is one process's at a time; its
 * parts are read side by side. Those that are there are not read again. */
#include <string.h>

#include "base/attr.h"
#include "base/thread.h"
#include "pack/preload/preload.h"
#include "pack/reader/reader_impl.h"
#include "pack/reader/shard_check.h"

#define WHERE "pack/preload"

/* One read is about this much: blocks until it is reached. */
enum { PART_BYTES = 8 << 20, MOST_THREADS = 64 };
#define TICK_NS 100000000u
#define LEAVE_NS 1000000000u /* after this, threads that have not ended are left behind */

/* A shard on its way. */
typedef struct Way {
    enum { WAY_FREE, WAY_OPENING, WAY_OPEN, WAY_CLOSING } state;
    uint64_t number;
    bool is_claimed;
    PenShardRef *ref;
    uint8_t *parts;     /* PEN_PRELOAD_*, as they were when it was opened */
    uint64_t next, n;   /* pieces: the first that nobody has taken, and all */
    uint64_t filled;    /* bytes */
    unsigned under_way; /* parts that are being read */
    bool is_damaged;
} Way;

struct PenFill {
    PenPack *pack;
    PenPreload *preload;
    const PenManifest *m;
    unsigned n_threads;
    pthread_mutex_t mutex; /* of all below */
    pthread_cond_t news;
    Way ways[MOST_THREADS];
    uint8_t *states; /* PEN_FILL_*; those of a pass's ends when it has ended */
    uint64_t next_shard;
    unsigned refs, running; /* who uses this; threads */
    int stop, force;
    PenError error; /* the first; status 0 when there is none */
    uint64_t read_bytes;
};

/* What a thread does next with a way: as its state says. */
typedef struct Turn {
    Way *way;
    PenShardPart part;
} Turn;

static void unlock(PenFill *f)
{
    pthread_cond_broadcast(&f->news);
    pthread_mutex_unlock(&f->mutex);
}

static void fail(PenFill *f, const PenError *e)
{
    pthread_mutex_lock(&f->mutex);
    if (f->error.status == PEN_OK)
        f->error = *e;
    f->stop = 1;
    unlock(f);
}

/* ---- who does what; with the lock ------------------------------------------------------------ */

/* The next part that is not there. */
static bool next_part(Way *w, Turn *ret)
{
    while (w->next < w->n) {
        ret->part = pen__shard_part(&w->ref->shard, w->next, PART_BYTES);
        uint8_t state = w->parts[w->next];
        w->next = ret->part.end;
        if (state != PEN_PRELOAD_GOOD)
            return true;
        w->filled += ret->part.bytes;
    }
    return false;
}

static bool take_open(PenFill *f, Turn *ret)
{
    for (unsigned i = 0; i < f->n_threads; i++) {
        Way *w = &f->ways[i];
        if (w->state != WAY_OPEN)
            continue;
        *ret = (Turn){.way = w};
        if (next_part(w, ret)) {
            w->under_way++;
            return true;
        }
        if (!w->under_way) {
            w->state = WAY_CLOSING;
            return true;
        }
    }
    return false;
}

/* There is a free way: each that is not has a thread at it, and this one is at none. */
static bool take_shard(PenFill *f, Turn *ret)
{
    while (f->next_shard < f->m->n_shards && f->states[f->next_shard] != PEN_FILL_TO_DO)
        f->next_shard++;
    if (f->next_shard == f->m->n_shards)
        return false;
    unsigned i = 0;
    while (f->ways[i].state != WAY_FREE)
        i++;
    f->ways[i] = (Way){.state = WAY_OPENING, .number = f->next_shard++};
    *ret = (Turn){.way = &f->ways[i]};
    return true;
}

static bool is_opening(const PenFill *f)
{
    for (unsigned i = 0; i < f->n_threads; i++)
        if (f->ways[i].state == WAY_OPENING)
            return true;
    return false;
}

/* Without the lock. False: there is nothing left to do. */
static bool take(PenFill *f, Turn *ret)
{
    bool got = false;
    pthread_mutex_lock(&f->mutex);
    while (!f->stop && !(got = take_open(f, ret) || take_shard(f, ret)) && is_opening(f))
        (void)pen__cond_wait(&f->news, &f->mutex, pen__deadline_after(TICK_NS));
    pthread_mutex_unlock(&f->mutex);
    return got;
}

/* ---- one shard ------------------------------------------------------------------------------- */

static void free_way(PenFill *f, Way *w)
{
    if (w->ref)
        pen__pack_shard_put(f->pack, w->ref);
    if (w->is_claimed)
        pen__shared_unclaim(f->preload->shared, w->number);
    pen__free(w->parts);
    *w = (Way){.state = WAY_FREE};
}

static void leave_way(PenFill *f, Way *w, uint8_t state)
{
    pthread_mutex_lock(&f->mutex);
    f->states[w->number] = state;
    free_way(f, w);
    unlock(f);
}

static int write_record(PenFill *f, const Way *w, uint64_t state, PenError *reterr)
{
    PenPreloadRecord record = {state, w->filled};
    return pen__shared_write(f->preload->shared, &record, sizeof record,
                             pen__preload_record_at(w->number), reterr);
}

static int read_parts(PenFill *f, Way *w, PenError *reterr)
{
    w->n = pen__shard_pieces(&w->ref->shard);
    w->parts = pen__alloc_array(w->n, 1);
    if (!w->parts)
        return pen__fail_memory(reterr, WHERE, pen__pack_path(f->pack));
    return pen__shared_read(f->preload->shared, w->parts, (size_t)w->n,
                            f->preload->layout.states[w->number], reterr);
}

static int open_way(PenFill *f, Way *w, PenError *reterr)
{
    PenPreloadRecord record;
    int r = pen__shared_claim(f->preload->shared, w->number, reterr);
    if (r < 0)
        return r;
    w->is_claimed = r == 1;
    if (!w->is_claimed && !f->force) {
        leave_way(f, w, PEN_FILL_HELD);
        return PEN_OK;
    }
    r = pen__shared_read(f->preload->shared, &record, sizeof record,
                         pen__preload_record_at(w->number), reterr);
    if (r == PEN_OK && record.state == PEN_PRELOAD_GOOD) {
        leave_way(f, w, PEN_FILL_DONE);
        return PEN_OK;
    }
    if (r == PEN_OK)
        r = pen__pack_shard(f->pack, w->number, &w->ref, reterr);
    if (r == PEN_OK)
        r = read_parts(f, w, reterr);
    if (r < 0)
        return r;
    pthread_mutex_lock(&f->mutex);
    w->state = WAY_OPEN;
    unlock(f);
    return PEN_OK;
}

static int close_way(PenFill *f, Way *w, PenError *reterr)
{
    int r = write_record(f, w, w->is_damaged ? PEN_PRELOAD_DAMAGED : PEN_PRELOAD_GOOD, reterr);
    if (r == PEN_OK)
        leave_way(f, w, PEN_FILL_DONE);
    return r;
}

/* ---- one part -------------------------------------------------------------------------------- */

/* What is damaged where it lies is damaged in memory: whoever reads it is told, as of a disk. */
static int fill_part(PenFill *f, const Turn *t, PenBuf *buf, PenError *reterr)
{
    const PenPreloadLayout *l = &f->preload->layout;
    PenShared *shared = f->preload->shared;
    Way *w = t->way;
    uint8_t state = PEN_PRELOAD_GOOD;
    int r = pen__shard_part_read(w->ref, &f->m->schema, &t->part, buf, reterr);
    if (r == PEN_E_CORRUPT && buf->bytes) {
        state = PEN_PRELOAD_DAMAGED;
        r = PEN_OK;
    }
    if (r == PEN_OK)
        r = pen__shared_write(shared, buf->data, buf->bytes, l->shards[w->number] + t->part.offset,
                              reterr);
    if (r == PEN_OK)
        r = pen__shared_write(shared, &state, 1, l->states[w->number] + t->part.first, reterr);
    if (r < 0)
        return r;
    pthread_mutex_lock(&f->mutex);
    w->filled += t->part.bytes;
    w->is_damaged |= state == PEN_PRELOAD_DAMAGED;
    f->read_bytes += t->part.bytes;
    r = write_record(f, w, PEN_PRELOAD_EMPTY, reterr); /* the others see that it goes on */
    w->under_way--;
    unlock(f);
    return r;
}

/* ---- threads --------------------------------------------------------------------------------- */

static void let_go(PenFill *f)
{
    pthread_mutex_lock(&f->mutex);
    unsigned left = --f->refs;
    unlock(f);
    if (left)
        return;
    for (unsigned i = 0; i < f->n_threads; i++)
        free_way(f, &f->ways[i]);
    pthread_cond_destroy(&f->news);
    pthread_mutex_destroy(&f->mutex);
    pen_pack_close(&f->pack);
    pen__preload_close(&f->preload);
    pen__free(f->states);
    pen__free(f);
}

static int do_turn(PenFill *f, const Turn *turn, PenBuf *buf, PenError *reterr)
{
    switch (turn->way->state) {
    case WAY_OPENING:
        return open_way(f, turn->way, reterr);
    case WAY_CLOSING:
        return close_way(f, turn->way, reterr);
    default:
        return fill_part(f, turn, buf, reterr);
    }
}

static void *run(void *arg)
{
    PenFill *f = arg;
    PenBuf buf = {0};
    Turn turn;
    while (take(f, &turn)) {
        PenError e = {0};
        if (do_turn(f, &turn, &buf, &e) < 0)
            fail(f, &e);
    }
    pen__buf_free(&buf);
    pthread_mutex_lock(&f->mutex);
    f->running--;
    unlock(f);
    let_go(f);
    return NULL;
}

/* Waits for a server end; those for a file system may not. */
static void stop_reads(PenFill *f, int stop)
{
    PenStore *store = pen__pack_store(f->pack);
    PenRemote *remote = store ? pen__store_remote(store) : NULL;
    if (remote)
        pen__remote_stop(remote, stop);
}

/* True when all threads have ended. */
static bool watch(PenFill *f, int (*tick)(void *ctx, PenError *reterr), void *ctx)
{
    uint64_t leave_at = 0;
    pthread_mutex_lock(&f->mutex);
    while (f->running) {
        (void)pen__cond_wait(&f->news, &f->mutex, pen__deadline_after(TICK_NS));
        if (f->stop && !leave_at) {
            leave_at = pen__deadline_after(LEAVE_NS);
            stop_reads(f, 1);
        }
        if (f->stop && pen__deadline_after(0) >= leave_at)
            break;
        if (f->stop)
            continue;
        pthread_mutex_unlock(&f->mutex);
        PenError e = {0};
        if (tick(ctx, &e) != PEN_OK)
            fail(f, &e);
        pthread_mutex_lock(&f->mutex);
    }
    bool all = !f->running;
    pthread_mutex_unlock(&f->mutex);
    if (leave_at)
        stop_reads(f, 0);
    return all;
}

static unsigned start(PenFill *f, pthread_t threads[MOST_THREADS])
{
    PenError e = {0};
    int r = PEN_OK;
    unsigned n = 0;
    while (n < f->n_threads && r == PEN_OK) {
        pthread_mutex_lock(&f->mutex);
        f->running++;
        f->refs++;
        pthread_mutex_unlock(&f->mutex);
        r = pen__thread_start(&threads[n], run, f, &e);
        n += r == PEN_OK;
    }
    if (r < 0) {
        fail(f, &e);
        pthread_mutex_lock(&f->mutex);
        f->running--;
        f->refs--;
        unlock(f);
    }
    return n;
}

/* ---- all ------------------------------------------------------------------------------------- */

int pen__fill_open(PenPack *pack, PenPreload *preload, unsigned threads, PenFill **ret,
                   PenError *reterr)
{
    const PenManifest *m = pen__pack_manifest(pack);
    PenFill *f = pen__zalloc(sizeof *f);
    uint8_t *states = pen__alloc_array(m->n_shards + 1, 1);
    if (!f || !states || pen__cond_init(&f->news) < 0) {
        pen__free(f);
        pen__free(states);
        return pen__fail_memory(reterr, WHERE, pen__pack_path(pack));
    }
    memset(states, PEN_FILL_TO_DO, (size_t)m->n_shards);
    pthread_mutex_init(&f->mutex, NULL);
    f->states = states;
    f->m = m;
    f->n_threads = PEN_MIN(PEN_MAX(threads, 1u), (unsigned)MOST_THREADS);
    f->refs = 1;
    f->pack = pen__pack_ref(pack);
    f->preload = preload;
    atomic_fetch_add(&preload->refs, 1);
    *ret = f;
    return PEN_OK;
}

uint8_t *pen__fill_states(PenFill *f)
{
    return f->states;
}

uint64_t pen__fill_read_bytes(const PenFill *f)
{
    return f->read_bytes;
}

int pen__fill_pass(PenFill *f, int force, int (*tick)(void *ctx, PenError *reterr), void *ctx,
                   PenError *reterr)
{
    pthread_t threads[MOST_THREADS];
    f->force = force;
    f->next_shard = 0;
    unsigned n = start(f, threads);
    bool all = watch(f, tick, ctx);
    for (unsigned i = 0; i < n; i++)
        if (all)
            pen__thread_join(threads[i]);
        else
            (void)pthread_detach(threads[i]);
    pthread_mutex_lock(&f->mutex);
    PenError e = f->error;
    pthread_mutex_unlock(&f->mutex);
    if (e.status < 0 && reterr)
        *reterr = e;
    return e.status;
}

void pen__fill_close(PenFill **f)
{
    if (*f)
        let_go(*f);
    *f = NULL;
}
