/* SPDX-License-Identifier: Apache-2.0 */
/* Threads that read a pack's shards into shared memory. A shard belongs to one process at a time;
 * what is in memory already is not read again. */
#include <string.h>

#include "base/attr.h"
#include "base/team.h"
#include "base/thread.h"
#include "pack/preload/preload.h"
#include "pack/reader/reader_impl.h"
#include "pack/reader/shard_walk.h"

#define WHERE "pack/preload"

#define TICK_NS 100000000u
#define LEAVE_NS 1000000000u /* after this, threads that have not ended are left behind */

/* A shard that is being filled. The walk's mutex guards `filled` and `is_damaged`. */
typedef struct Target {
    bool is_claimed;
    uint8_t *parts;  /* PEN_PRELOAD_*, as they were when it was opened */
    uint64_t filled; /* bytes */
    bool is_damaged;
} Target;

struct PenFill {
    PenPack *pack;
    PenPreload *preload;
    const PenManifest *m;
    PenShardWalk walk;
    Target targets[PEN_WALK_THREADS]; /* by the walk's slots */
    uint8_t *states; /* PEN_FILL_*: a shard's is written by the thread that opens or closes it */
    int force;
    atomic_uint refs;    /* the owner and the threads */
    uint64_t read_bytes; /* the walk's mutex guards it */
};

/* ---- one shard ------------------------------------------------------------------------------- */

static int write_record(PenFill *f, const PenWalkShard *s, uint64_t state, PenError *reterr)
{
    PenPreloadRecord record = {state, f->targets[s->slot].filled};
    return pen__shared_write(f->preload->shared, &record, sizeof record,
                             pen__preload_record_at(s->number), reterr);
}

static int read_parts(PenFill *f, const PenWalkShard *s, PenError *reterr)
{
    uint64_t n = pen__shard_pieces(&s->ref->shard);
    uint8_t *parts = pen__alloc_array(n, 1);
    f->targets[s->slot].parts = parts;
    if (!parts)
        return pen__fail_memory(reterr, WHERE, pen__pack_path(f->pack));
    return pen__shared_read(f->preload->shared, parts, (size_t)n,
                            f->preload->layout.states[s->number], reterr);
}

/* What is to be done with a shard: PEN_FILL_*, < 0. */
static int claim_shard(PenFill *f, const PenWalkShard *s, PenError *reterr)
{
    PenPreloadRecord record;
    if (f->states[s->number] != PEN_FILL_TO_DO)
        return f->states[s->number];
    int r = pen__shared_claim(f->preload->shared, s->number, reterr);
    if (r < 0)
        return r;
    f->targets[s->slot].is_claimed = r == 1;
    if (r == 0 && !f->force)
        return PEN_FILL_HELD;
    r = pen__shared_read(f->preload->shared, &record, sizeof record,
                         pen__preload_record_at(s->number), reterr);
    if (r < 0)
        return r;
    return record.state == PEN_PRELOAD_GOOD ? PEN_FILL_DONE : PEN_FILL_TO_DO;
}

static int open_shard(void *ctx, PenWalkShard *s, PenError *reterr)
{
    PenFill *f = ctx;
    int r = claim_shard(f, s, reterr);
    if (r < 0)
        return r;
    f->states[s->number] = (uint8_t)r;
    if (r != PEN_FILL_TO_DO)
        return 0;
    r = pen__pack_shard(f->pack, s->number, &s->ref, reterr);
    if (r == PEN_OK)
        r = read_parts(f, s, reterr);
    return r < 0 ? r : 1;
}

static int close_shard(void *ctx, PenWalkShard *s, PenError *reterr)
{
    PenFill *f = ctx;
    int is_damaged = f->targets[s->slot].is_damaged;
    f->states[s->number] = PEN_FILL_DONE;
    return write_record(f, s, is_damaged ? PEN_PRELOAD_DAMAGED : PEN_PRELOAD_GOOD, reterr);
}

static void release_shard(void *ctx, const PenWalkShard *s)
{
    PenFill *f = ctx;
    Target *t = &f->targets[s->slot];
    if (t->is_claimed)
        pen__shared_unclaim(f->preload->shared, s->number);
    pen__free(t->parts);
    *t = (Target){0};
}

/* ---- one part -------------------------------------------------------------------------------- */

static bool is_filled(void *ctx, const PenWalkShard *s, const PenShardPart *part)
{
    PenFill *f = ctx;
    Target *t = &f->targets[s->slot];
    if (t->parts[part->first] != PEN_PRELOAD_GOOD)
        return false;
    t->filled += part->bytes;
    return true;
}

static int write_part(PenFill *f, const PenWalkPart *p, const PenBuf *buf, uint8_t state,
                      PenError *reterr)
{
    const PenPreloadLayout *l = &f->preload->layout;
    PenShared *shared = f->preload->shared;
    uint64_t number = p->shard->number;
    int r = pen__shared_write(shared, buf->data, buf->bytes, l->shards[number] + p->part.offset,
                              reterr);
    if (r == PEN_OK)
        r = pen__shared_write(shared, &state, 1, l->states[number] + p->part.first, reterr);
    return r;
}

/* A part that is damaged in the pack is damaged in memory as well: its readers get the same error.
 */
static int fill_part(void *ctx, const PenWalkPart *p, PenBuf *buf, PenError *reterr)
{
    PenFill *f = ctx;
    Target *t = &f->targets[p->shard->slot];
    int r = pen__shard_part_read(p->shard->ref, &f->m->schema, &p->part, buf, reterr);
    bool is_damaged = r == PEN_E_CORRUPT && buf->bytes;
    if (r == PEN_OK || is_damaged)
        r = write_part(f, p, buf, is_damaged ? PEN_PRELOAD_DAMAGED : PEN_PRELOAD_GOOD, reterr);
    if (r < 0)
        return r;
    pthread_mutex_lock(&f->walk.mutex);
    t->filled += p->part.bytes;
    t->is_damaged |= is_damaged;
    f->read_bytes += p->part.bytes;
    /* The other processes see that this one makes progress. */
    r = write_record(f, p->shard, PEN_PRELOAD_EMPTY, reterr);
    pthread_mutex_unlock(&f->walk.mutex);
    return r;
}

/* ---- threads --------------------------------------------------------------------------------- */

static void release(PenFill *f, unsigned refs)
{
    if (atomic_fetch_sub(&f->refs, refs) != refs)
        return;
    pen__walk_fini(&f->walk);
    pen_pack_close(&f->pack);
    pen__preload_close(&f->preload);
    pen__free(f->states);
    pen__free(f);
}

static void run(void *ctx, unsigned number)
{
    PenFill *f = ctx;
    (void)number;
    pen__walk_work(&f->walk);
    release(f, 1);
}

/* Ends waits for a server; those for a file system may not end. */
static void stop_reads(PenFill *f, int stop)
{
    pen__pack_stop(f->pack, stop);
}

/* Returns when all threads have ended, or when those that hang are to be left behind. */
static void watch(PenFill *f, PenTeam *team, int (*tick)(void *ctx, PenError *reterr), void *ctx)
{
    uint64_t leave_at = UINT64_MAX;
    int r;
    do {
        PenError e = {0};
        bool is_stopped = pen__walk_is_stopped(&f->walk);
        if (is_stopped && leave_at == UINT64_MAX) {
            leave_at = pen__deadline_after(LEAVE_NS);
            stop_reads(f, 1);
        }
        int ticked = is_stopped ? PEN_OK : tick(ctx, &e);
        if (ticked != PEN_OK)
            pen__walk_stop(&f->walk, ticked, &e);
        r = pen__team_wait(team, PEN_MIN(pen__deadline_after(TICK_NS), leave_at));
    } while (r == PEN_E_TIMEOUT && pen__deadline_after(0) < leave_at);
    if (leave_at != UINT64_MAX)
        stop_reads(f, 0);
}

/* ---- all ------------------------------------------------------------------------------------- */

static const PenWalkCalls walk_calls = {.open = open_shard,
                                        .skip = is_filled,
                                        .part = fill_part,
                                        .close = close_shard,
                                        .release = release_shard};

int pen__fill_open(PenPack *pack, PenPreload *preload, unsigned threads, PenFill **ret,
                   PenError *reterr)
{
    const PenManifest *m = pen__pack_manifest(pack);
    PenFill *f = pen__zalloc(sizeof *f);
    uint8_t *states = pen__alloc_array(m->n_shards + 1, 1);
    int r = f && states ? pen__walk_init(&f->walk, pack, threads, &walk_calls, f, reterr)
                        : pen__fail_memory(reterr, WHERE, pen__pack_path(pack));
    if (r < 0) {
        pen__free(f);
        pen__free(states);
        return r;
    }
    memset(states, PEN_FILL_TO_DO, (size_t)m->n_shards);
    f->states = states;
    f->m = m;
    atomic_init(&f->refs, 1);
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
    PenTeamWork work = {.name = "pen-preload", .run = run, .ctx = f};
    PenTeam *team = NULL;
    unsigned n = f->walk.n_threads;
    f->force = force;
    f->walk.next_shard = 0;
    atomic_fetch_add(&f->refs, n);
    int r = pen__team_start(&work, n, &team, reterr);
    if (r < 0) {
        release(f, n);
        return r;
    }
    watch(f, team, tick, ctx);
    pen__team_leave(&team);
    return pen__walk_status(&f->walk, reterr);
}

void pen__fill_close(PenFill **f)
{
    if (*f)
        release(*f, 1);
    *f = NULL;
}
