/* SPDX-License-Identifier: Apache-2.0 */
#include "manage/copy_shards.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>

#include "base/attr.h"
#include "base/thread.h"
#include "manage/work.h"
#include "pack/reader/shard_check.h"

#define WHERE "ingest/copy"

/* One request reads about this much: blocks until it is reached. */
enum { PART_BYTES = 8 << 20, MOST_THREADS = 64 };

/* A shard on its way. Its parts are taken in order, read at once, and written in order. */
typedef struct Way {
    enum { WAY_FREE, WAY_OPENING, WAY_OPEN } state;
    uint64_t number;
    PenShardRef *ref;
    PenSink *sink;
    char name[PEN_SHARD_NAME_BYTES];
    uint64_t next, n; /* pieces: the first that nobody has taken, and all */
    uint64_t tickets, turn;
} Way;

typedef struct Copy {
    const PenCopyJob *job;
    const PenManifest *m;
    pthread_mutex_t mutex; /* of all below */
    pthread_cond_t news;
    Way ways[MOST_THREADS];
    uint64_t next_shard;
    unsigned running;
    int stop;
    PenError error; /* the first; status 0 when there is none */
    PenCopyResult result;
    atomic_uint_fast64_t done_bytes;
} Copy;

/* A part that a thread has taken, or a shard to open when `opens`. */
typedef struct Turn {
    Way *way;
    int opens;
    PenShardPart part;
    uint64_t ticket;
} Turn;

static void lock(Copy *c)
{
    pthread_mutex_lock(&c->mutex);
}

static void unlock(Copy *c)
{
    pthread_cond_broadcast(&c->news);
    pthread_mutex_unlock(&c->mutex);
}

static void wait_for_news(Copy *c)
{
    (void)pen__cond_wait(&c->news, &c->mutex, pen__deadline_after(100000000));
}

static void fail(Copy *c, const PenError *e)
{
    lock(c);
    if (c->error.status == PEN_OK)
        c->error = *e;
    c->stop = 1;
    unlock(c);
}

/* ---- who does what --------------------------------------------------------------------------- */

static int take_part(Copy *c, Turn *ret)
{
    for (unsigned i = 0; i < c->job->threads; i++) {
        Way *w = &c->ways[i];
        if (w->state != WAY_OPEN || w->next == w->n)
            continue;
        *ret = (Turn){.way = w, .ticket = w->tickets++};
        ret->part = pen__shard_part(&w->ref->shard, w->next, PART_BYTES);
        w->next = ret->part.end;
        return 1;
    }
    return 0;
}

/* There is a free way: each that is not has a thread at it, and this one is at none. */
static int take_shard(Copy *c, Turn *ret)
{
    if (c->next_shard == c->m->n_shards)
        return 0;
    unsigned i = 0;
    while (c->ways[i].state != WAY_FREE)
        i++;
    c->ways[i] = (Way){.state = WAY_OPENING, .number = c->next_shard++};
    *ret = (Turn){.way = &c->ways[i], .opens = 1};
    return 1;
}

static int is_opening(const Copy *c)
{
    for (unsigned i = 0; i < c->job->threads; i++)
        if (c->ways[i].state == WAY_OPENING)
            return 1;
    return 0;
}

/* 0: there is nothing left to do. */
static int take(Copy *c, Turn *ret)
{
    int r = 0;
    pthread_mutex_lock(&c->mutex);
    while (!c->stop && !(r = take_part(c, ret) || take_shard(c, ret)) && is_opening(c))
        wait_for_news(c);
    pthread_mutex_unlock(&c->mutex);
    return r;
}

/* ---- one shard ------------------------------------------------------------------------------- */

/* Objects and files appear whole: of one that is there, size and digest say that it is this. */
static int is_there(Copy *c, const Way *w, PenError *reterr)
{
    const PenShardEntry *e = &c->m->shards[w->number];
    PenSource *source = NULL;
    PenShard shard;
    int r = pen__store_source_end(c->job->to, w->name, e->tail_bytes, &source, reterr);
    if (r < 0)
        return pen__error_accept(r, PEN_E_NOT_FOUND, reterr);
    r = pen__shard_open(&shard, source, e->id, e, reterr);
    if (r == PEN_OK) {
        pen__shard_close(&shard);
        return 1;
    }
    pen__source_close(&source);
    r = pen__error_accept(r, PEN_E_CORRUPT, reterr);
    return pen__error_accept(r, PEN_E_FORMAT, reterr);
}

static int open_sink(Copy *c, Way *w, PenError *reterr)
{
    char name[32];
    snprintf(name, sizeof name, "copy-%u.part", (unsigned)(w - c->ways));
    char *part = pen__work_path(c->job->home, name);
    int r = part ? pen__store_sink(c->job->to, part, w->name, &w->sink, reterr)
                 : pen__fail_memory(reterr, WHERE, w->name);
    pen__free(part);
    return r;
}

static int open_way(Copy *c, Way *w, PenError *reterr)
{
    uint64_t bytes = c->m->shards[w->number].file_bytes;
    pen__shard_name(c->m->shards[w->number].id, w->name);
    int r = is_there(c, w, reterr);
    int known = r == 1;
    if (r == PEN_OK)
        r = pen__pack_shard(c->job->pack, w->number, &w->ref, reterr);
    if (r == PEN_OK)
        r = open_sink(c, w, reterr);
    if (r < 0)
        return r;
    if (known)
        atomic_fetch_add(&c->done_bytes, bytes);
    lock(c);
    if (known) {
        c->result.known_shards++;
        c->result.known_bytes += bytes;
        w->state = WAY_FREE;
    } else {
        w->n = pen__shard_pieces(&w->ref->shard);
        w->state = WAY_OPEN;
    }
    unlock(c);
    return PEN_OK;
}

static int close_way(Copy *c, Way *w, PenError *reterr)
{
    int r = pen__store_commit(c->job->to, &w->sink, w->name, reterr);
    if (r < 0)
        return r;
    pen__pack_shard_put(c->job->pack, w->ref);
    lock(c);
    w->ref = NULL;
    c->result.shards++;
    c->result.bytes += c->m->shards[w->number].file_bytes;
    w->state = WAY_FREE;
    unlock(c);
    return PEN_OK;
}

/* ---- one part -------------------------------------------------------------------------------- */

/* 0: the copy has been stopped. */
static int wait_for_turn(Copy *c, const Turn *t)
{
    pthread_mutex_lock(&c->mutex);
    while (!c->stop && t->way->turn != t->ticket)
        wait_for_news(c);
    int go = !c->stop;
    pthread_mutex_unlock(&c->mutex);
    return go;
}

static int copy_part(Copy *c, const Turn *t, PenBuf *buf, PenError *reterr)
{
    int r = pen__shard_part_read(t->way->ref, &c->m->schema, &t->part, buf, reterr);
    if (r < 0 || !wait_for_turn(c, t))
        return r;
    r = pen__sink_write(t->way->sink, buf->data, (size_t)t->part.bytes, reterr);
    if (r < 0)
        return r;
    atomic_fetch_add(&c->done_bytes, t->part.bytes);
    if (t->part.end == t->way->n)
        return close_way(c, t->way, reterr);
    lock(c);
    t->way->turn++;
    unlock(c);
    return PEN_OK;
}

static void *run(void *arg)
{
    Copy *c = arg;
    PenBuf buf = {0};
    Turn turn;
    pen__thread_name("pen-copy");
    while (take(c, &turn)) {
        PenError e = {0};
        int r = turn.opens ? open_way(c, turn.way, &e) : copy_part(c, &turn, &buf, &e);
        if (r < 0)
            fail(c, &e);
    }
    pen__buf_free(&buf);
    lock(c);
    c->running--;
    unlock(c);
    return NULL;
}

/* ---- all ------------------------------------------------------------------------------------- */

static void watch(Copy *c)
{
    const PenCopySettings *s = c->job->settings;
    uint64_t total = pen_pack_info(c->job->pack)->total_bytes;
    PenError e = {0};
    pthread_mutex_lock(&c->mutex);
    while (c->running) {
        (void)pen__cond_wait(&c->news, &c->mutex, pen__deadline_after(100000000));
        int stopped = c->stop;
        pthread_mutex_unlock(&c->mutex);
        if (s->progress && !stopped && s->progress(s->ctx, atomic_load(&c->done_bytes), total)) {
            pen__fail(&e, PEN_E_CANCELLED, WHERE,
                      "%s: stopped; running the same command again goes on from here", s->to);
            fail(c, &e);
        }
        pthread_mutex_lock(&c->mutex);
    }
    pthread_mutex_unlock(&c->mutex);
}

static void start_and_watch(Copy *c)
{
    pthread_t threads[MOST_THREADS];
    unsigned n = 0;
    PenError e = {0};
    int r = PEN_OK;
    while (n < c->job->threads && r == PEN_OK) {
        lock(c);
        c->running++;
        unlock(c);
        r = pen__thread_start(&threads[n], run, c, &e);
        n += r == PEN_OK;
    }
    if (r < 0) {
        fail(c, &e);
        lock(c);
        c->running--;
        unlock(c);
    }
    watch(c);
    for (unsigned i = 0; i < n; i++)
        pen__thread_join(threads[i]);
}

int pen__copy_shards(const PenCopyJob *job, PenCopyResult *ret, PenError *reterr)
{
    PenCopyJob mine = *job;
    mine.threads = PEN_MIN(PEN_MAX(mine.threads, 1u), (unsigned)MOST_THREADS);
    Copy *c = pen__zalloc(sizeof *c);
    if (!c || pen__cond_init(&c->news) < 0) {
        pen__free(c);
        return pen__fail_memory(reterr, WHERE, pen__store_name(job->to));
    }
    pthread_mutex_init(&c->mutex, NULL);
    c->job = &mine;
    c->m = pen__pack_manifest(job->pack);
    c->result = *ret;
    start_and_watch(c);
    for (unsigned i = 0; i < mine.threads; i++) {
        pen__sink_abort(&c->ways[i].sink);
        if (c->ways[i].ref)
            pen__pack_shard_put(job->pack, c->ways[i].ref);
    }
    int r = c->error.status;
    if (r < 0 && reterr)
        *reterr = c->error;
    if (r == PEN_OK)
        *ret = c->result;
    pthread_cond_destroy(&c->news);
    pthread_mutex_destroy(&c->mutex);
    pen__free(c);
    return r;
}
