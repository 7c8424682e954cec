/* SPDX-License-Identifier: Apache-2.0 */
#include "manage/copy_shards.h"

#include <stdatomic.h>
#include <stdio.h>

#include "base/team.h"
#include "manage/copy_block.h"
#include "manage/work.h"
#include "pack/reader/shard_walk.h"

#define WHERE "manage/copy"

/* A shard that is being copied. */
typedef struct Target {
    char name[PEN_SHARD_NAME_BYTES];
    PenSink *sink;
} Target;

typedef struct Copy {
    const PenCopyJob *job;
    const PenManifest *m;
    PenShardWalk walk;
    Target targets[PEN_WALK_THREADS]; /* by the walk's slots */
    PenCopyResult result;             /* the walk's mutex guards it */
    atomic_uint_fast64_t done_bytes;
} Copy;

/* ---- one shard ------------------------------------------------------------------------------- */

/* Files and objects appear complete. Size and digest tell whether one that exists is this shard. */
static int is_there(Copy *c, const char *name, const PenShardEntry *e, PenError *reterr)
{
    PenSource *source = NULL;
    PenShard shard;
    int r = pen__store_source_end(c->job->to, name, e->tail_bytes, &source, reterr);
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

static int open_sink(Copy *c, unsigned slot, PenError *reterr)
{
    Target *t = &c->targets[slot];
    char name[32];
    snprintf(name, sizeof name, "copy-%u.part", slot);
    char *part = pen__work_path(c->job->home, name);
    int r = part ? pen__store_sink(c->job->to, part, t->name, &t->sink, reterr)
                 : pen__fail_memory(reterr, WHERE, t->name);
    pen__free(part);
    return r;
}

static void count_known(Copy *c, uint64_t bytes)
{
    atomic_fetch_add(&c->done_bytes, bytes);
    pthread_mutex_lock(&c->walk.mutex);
    c->result.known_shards++;
    c->result.known_bytes += bytes;
    pthread_mutex_unlock(&c->walk.mutex);
}

static int open_shard(void *ctx, PenWalkShard *s, PenError *reterr)
{
    Copy *c = ctx;
    const PenShardEntry *e = &c->m->shards[s->number];
    char *name = c->targets[s->slot].name;
    pen__shard_name(e->id, name);
    int r = is_there(c, name, e, reterr);
    if (r == 1) {
        count_known(c, e->file_bytes);
        return 0;
    }
    if (r == PEN_OK)
        r = pen__pack_shard(c->job->pack, s->number, &s->ref, reterr);
    if (r == PEN_OK)
        r = open_sink(c, s->slot, reterr);
    return r < 0 ? r : 1;
}

enum { LARGE_BYTES = 64 << 20 }; /* parts with videos up to this are read as others are */

static int copy_part(void *ctx, const PenWalkPart *p, PenBuf *buf, PenError *reterr)
{
    Copy *c = ctx;
    PenSink *sink = c->targets[p->shard->slot].sink;
    bool is_large = c->m->schema.has_videos && p->part.bytes > LARGE_BYTES;
    int r = is_large ? PEN_OK
                     : pen__shard_part_read(p->shard->ref, &c->m->schema, &p->part, buf, reterr);
    if (r < 0 || !pen__walk_await_turn(&c->walk, p))
        return r;
    r = is_large
            ? pen__copy_part_by_payloads(p->shard->ref, &c->m->schema, &p->part, sink, buf, reterr)
            : pen__sink_write(sink, buf->data, (size_t)p->part.bytes, reterr);
    if (r == PEN_OK)
        atomic_fetch_add(&c->done_bytes, p->part.bytes);
    return r;
}

static int close_shard(void *ctx, PenWalkShard *s, PenError *reterr)
{
    Copy *c = ctx;
    Target *t = &c->targets[s->slot];
    int r = pen__store_commit(c->job->to, &t->sink, t->name, reterr);
    if (r < 0)
        return r;
    pthread_mutex_lock(&c->walk.mutex);
    c->result.shards++;
    c->result.bytes += c->m->shards[s->number].file_bytes;
    pthread_mutex_unlock(&c->walk.mutex);
    return PEN_OK;
}

static void release_shard(void *ctx, const PenWalkShard *s)
{
    Copy *c = ctx;
    pen__sink_abort(&c->targets[s->slot].sink);
}

/* ---- all ------------------------------------------------------------------------------------- */

static void run(void *ctx, unsigned number)
{
    Copy *c = ctx;
    (void)number;
    pen__walk_work(&c->walk);
}

static void show_progress(void *ctx)
{
    Copy *c = ctx;
    const PenCopySettings *s = c->job->settings;
    uint64_t total = pen_pack_info(c->job->pack)->total_bytes;
    PenError e = {0};
    if (!s->progress || pen__walk_is_stopped(&c->walk) ||
        !s->progress(s->ctx, atomic_load(&c->done_bytes), total))
        return;
    pen__fail(&e, PEN_E_CANCELLED, WHERE,
              "%s: stopped; run the same command again to continue from here", s->to);
    pen__walk_stop(&c->walk, PEN_E_CANCELLED, &e);
}

static int copy(Copy *c, PenError *reterr)
{
    static const PenWalkCalls calls = {
        .open = open_shard, .part = copy_part, .close = close_shard, .release = release_shard};
    PenTeamWork work = {"pen-copy", run, show_progress, c};
    int r = pen__walk_init(&c->walk, c->job->pack, c->job->threads, &calls, c, reterr);
    if (r < 0)
        return r;
    r = pen__team_run(&work, c->walk.n_threads, reterr);
    if (r == PEN_OK)
        r = pen__walk_status(&c->walk, reterr);
    pen__walk_fini(&c->walk);
    return r;
}

int pen__copy_shards(const PenCopyJob *job, PenCopyResult *ret, PenError *reterr)
{
    Copy *c = pen__zalloc(sizeof *c);
    if (!c)
        return pen__fail_memory(reterr, WHERE, pen__store_name(job->to));
    c->job = job;
    c->m = pen__pack_manifest(job->pack);
    c->result = *ret;
    int r = copy(c, reterr);
    if (r == PEN_OK)
        *ret = c->result;
    pen__free(c);
    return r;
}
