/* SPDX-License-Identifier: Apache-2.0 */
#include "ingest/job/assemble.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#include "base/attr.h"
#include "base/machine/cores.h"
#include "base/sys.h"
#include "base/team.h"
#include "base/thread.h"

#define WHERE "ingest/assemble"

enum { MAX_THREADS = 256, AHEAD_PER_THREAD = 4, AHEAD = 16, MAX_AHEAD = 256 };
/* Threads that read remote inputs: as many as there are requests in flight. They wait most of the
 * time, and only as many as there are cores prepare what they have read. */
enum { REMOTE_THREADS = 64 };
#define TICK_NS 100000000u
/* What is prepared and not written yet; clips can be large. Of remote inputs also what is being
 * read. */
#define AHEAD_BYTES ((uint64_t)512 << 20)

typedef struct Slot { /* of the position that is `slot` modulo the number of slots */
    int ready;
    int status;
    PenPrepared *sample;
    uint64_t bytes;
    PenError error;
} Slot;

typedef struct Crew {
    const PenAssembly *a;
    PenPrepareSettings prepare; /* the assembly's, with our cancel in it */
    atomic_bool cancel;
    Slot *slots;
    uint64_t n_slots;
    pthread_mutex_t mutex; /* of all below, and of the slots' hand-over */
    pthread_cond_t made, taken;
    pthread_cond_t idle; /* a core is */
    unsigned n_cores, n_busy;
    bool is_remote;
    uint64_t next;      /* position to be prepared */
    uint64_t collected; /* all before it have been taken */
    uint64_t held;      /* bytes of what is prepared and not taken, or reserved for reading it */
    int stop;
    PenPartReader *stream;   /* of compressed tars: read in order, inside the lock */
    PenPartReader **readers; /* one for each thread */
} Crew;

/* Waits until there is a position to prepare that is not too far ahead. 0 = nothing more to do. */
static int next_position(Crew *c, uint64_t *ret)
{
    while (
        !c->stop && c->next < c->a->end &&
        (c->next - c->collected >= c->n_slots || (c->held > AHEAD_BYTES && c->next > c->collected)))
        pen__cond_wait(&c->taken, &c->mutex, pen__deadline_after(1000000000));
    if (c->stop || c->next >= c->a->end)
        return 0;
    *ret = c->next++;
    return 1;
}

/* ---- remote inputs -------------------------------------------------------------------------- */

/* Memory for reading a remote input, which may take long: it counts before the input is there. The
 * next one to be collected never waits, since only it makes room. */
static uint64_t reserve_input(Crew *c, uint64_t position)
{
    PenItem item;
    PenBuf scratch = {0};
    uint64_t bytes = 0;
    pthread_mutex_unlock(&c->mutex);
    if (pen__plan_item(c->a->plan, position, &item, &scratch, NULL) == PEN_OK)
        bytes = PEN_MIN(pen__item_bytes(&item), AHEAD_BYTES); /* more is refused when it is read */
    pen__buf_free(&scratch);
    pthread_mutex_lock(&c->mutex);
    while (!c->stop && position != c->collected && c->held + bytes > AHEAD_BYTES)
        pen__cond_wait(&c->taken, &c->mutex, pen__deadline_after(1000000000));
    c->held += bytes;
    return bytes;
}

static void take_core(Crew *c)
{
    pthread_mutex_lock(&c->mutex);
    while (!c->stop && c->n_busy >= c->n_cores)
        pen__cond_wait(&c->idle, &c->mutex, pen__deadline_after(1000000000));
    c->n_busy++;
    pthread_mutex_unlock(&c->mutex);
}

static void release_core(Crew *c)
{
    pthread_mutex_lock(&c->mutex);
    c->n_busy--;
    pthread_cond_signal(&c->idle);
    pthread_mutex_unlock(&c->mutex);
}

static int make(Crew *c, const PenPrepareSettings *settings, PenPrepared *p, char *name,
                PenError *e)
{
    const PenAssembly *a = c->a;
    if (c->is_remote)
        take_core(c);
    int r = pen__prepared_make(p, a->schema, settings, a->plan, name, e);
    if (c->is_remote)
        release_core(c);
    return r;
}

/* ---- preparing ------------------------------------------------------------------------------ */

/* Called with the lock, returns without it: the bytes of a compressed tar are read inside it, so
 * that they come in order. */
static int prepare(Crew *c, const PenPrepareSettings *settings, PenPartReader *reader,
                   uint64_t position, PenPrepared **ret, PenError *e)
{
    const PenAssembly *a = c->a;
    char name[PEN_INPUT_NAME_BYTES] = "";
    int in_order = pen__plan_info(a->plan)->in_order;
    if (!in_order)
        pthread_mutex_unlock(&c->mutex);
    PenPrepared *p = pen__prepared_new(a->schema->n_fields, a->schema->n_fields);
    int r = p ? PEN_OK : pen__fail_memory(e, WHERE, "a sample");
    if (r == PEN_OK)
        r = pen__prepared_read(p, a->schema, a->plan, position, in_order ? c->stream : reader, name,
                               e);
    if (in_order)
        pthread_mutex_unlock(&c->mutex);
    if (r == PEN_OK)
        r = make(c, settings, p, name, e);
    if (r == PEN_OK)
        *ret = p;
    else
        pen__prepared_free(p);
    return r;
}

/* Takes a position, prepares it, hands it over. */
static void work(void *ctx, unsigned number)
{
    Crew *c = ctx;
    PenEntryScan *scan = NULL;
    PenPrepareSettings settings = c->prepare;
    uint64_t position;
    settings.scan = &scan;
    pthread_mutex_lock(&c->mutex);
    while (next_position(c, &position)) {
        PenError e = {0};
        PenPrepared *p = NULL;
        uint64_t reserved = c->is_remote ? reserve_input(c, position) : 0;
        int r = prepare(c, &settings, c->readers[number], position, &p, &e);
        pthread_mutex_lock(&c->mutex);
        uint64_t bytes = p ? pen__prepared_memory(p) : 0;
        c->held += bytes - reserved;
        c->slots[position % c->n_slots] = (Slot){1, r, p, bytes, e};
        if (position == c->collected)
            pthread_cond_signal(&c->made);
    }
    pthread_mutex_unlock(&c->mutex);
    pen__entry_scan_free(&scan);
}

/* ---- collecting ----------------------------------------------------------------------------- */

static int take_slot(Crew *c, const Slot *s, uint64_t position, PenError *reterr)
{
    const PenAssembly *a = c->a;
    if (s->status == PEN_OK)
        return a->take(a->ctx, s->sample, reterr);
    if (pen__status_is_bad_input(s->status))
        return a->bad(a->ctx, position, &s->error, reterr);
    if (reterr)
        *reterr = s->error;
    return s->status;
}

/* The next in order, if it is there before `tick`. Workers that wait for room are woken only when
 * there is a good deal of it: to wake one for each sample costs more than a small sample itself. */
static int next_slot(Crew *c, uint64_t tick, Slot *ret)
{
    pthread_mutex_lock(&c->mutex);
    Slot *slot = &c->slots[c->collected % c->n_slots];
    if (!slot->ready)
        pen__cond_wait(&c->made, &c->mutex, tick);
    int ready = slot->ready;
    if (ready) {
        *ret = *slot;
        slot->ready = 0;
        c->collected++;
        /* A remote input waits already when it would not fit; it has at most half of the room. */
        bool was_full = c->held > (c->is_remote ? AHEAD_BYTES / 2 : AHEAD_BYTES);
        c->held -= slot->bytes;
        if (c->next - c->collected <= c->n_slots / 2 || was_full)
            pthread_cond_broadcast(&c->taken);
    }
    pthread_mutex_unlock(&c->mutex);
    return ready;
}

static int collect(Crew *c, PenError *reterr)
{
    const PenAssembly *a = c->a;
    uint64_t tick = pen__deadline_after(TICK_NS);
    uint64_t position = a->first;
    int r = PEN_OK;
    while (position < a->end && r == PEN_OK) {
        Slot s;
        if (next_slot(c, tick, &s))
            r = take_slot(c, &s, position++, reterr);
        if (r == PEN_OK && pen__sys->now_ns() >= tick) {
            r = a->tick(a->ctx, reterr);
            tick = pen__deadline_after(TICK_NS);
        }
    }
    return r;
}

/* ---- all ------------------------------------------------------------------------------------ */

static int open_readers(Crew *c, unsigned n, PenError *reterr)
{
    int r = pen__part_reader_open(c->a->plan, &c->stream, reterr);
    for (unsigned i = 0; i < n && r == PEN_OK; i++)
        r = pen__part_reader_open(c->a->plan, &c->readers[i], reterr);
    return r;
}

static void stop(Crew *c, PenTeam **team)
{
    pthread_mutex_lock(&c->mutex);
    c->stop = 1;
    atomic_store(&c->cancel, true);
    pthread_cond_broadcast(&c->taken);
    pthread_cond_broadcast(&c->idle);
    pthread_mutex_unlock(&c->mutex);
    /* Nobody needs what is still being read. */
    pen__plan_stop(c->a->plan, 1);
    if (c->is_remote)
        pen__places_stop(c->a->places, 1);
    pen__team_join(team);
    if (c->is_remote)
        pen__places_stop(c->a->places, 0);
    pen__plan_stop(c->a->plan, 0);
}

static void free_crew(Crew *c, unsigned n)
{
    for (unsigned i = 0; c->readers && i < n; i++)
        pen__part_reader_close(&c->readers[i]);
    for (uint64_t i = 0; c->slots && i < c->n_slots; i++)
        if (c->slots[i].ready)
            pen__prepared_free(c->slots[i].sample);
    pen__part_reader_close(&c->stream);
    pen__free(c->readers);
    pen__free(c->slots);
}

static int run_crew(Crew *c, unsigned n, PenError *reterr)
{
    PenTeamWork team_work = {.name = "pen-pack", .run = work, .ctx = c};
    PenTeam *team = NULL;
    c->readers = pen__zalloc(n * sizeof *c->readers);
    c->slots = pen__zalloc((size_t)c->n_slots * sizeof *c->slots);
    int r = c->readers && c->slots ? PEN_OK : pen__fail_memory(reterr, WHERE, "threads");
    if (r == PEN_OK)
        r = open_readers(c, n, reterr);
    if (r == PEN_OK)
        r = pen__team_start(&team_work, n, &team, reterr);
    if (r == PEN_OK) {
        r = collect(c, reterr);
        stop(c, &team);
    }
    free_crew(c, n);
    return r;
}

int pen__assemble(const PenAssembly *a, PenError *reterr)
{
    unsigned n = a->threads > 0 ? (unsigned)a->threads : pen__thread_cores();
    n = PEN_MIN(n, (unsigned)MAX_THREADS);
    Crew c = {.a = a,
              .prepare = *a->prepare,
              .next = a->first,
              .collected = a->first,
              .n_cores = n,
              .is_remote = pen__plan_is_remote(a->plan) && !pen__plan_info(a->plan)->in_order};
    if (c.is_remote)
        n = PEN_MAX(n, (unsigned)REMOTE_THREADS);
    c.prepare.video.cancel = &c.cancel;
    /* Enough to go on with while a block is being written; a block is a few megabytes. */
    uint64_t blocks = PEN_MIN(2 * pen__plan_info(a->plan)->block_samples, (uint64_t)MAX_AHEAD);
    c.n_slots = PEN_MAX((uint64_t)n * AHEAD_PER_THREAD + AHEAD, blocks);
    pthread_mutex_init(&c.mutex, NULL);
    int made = pen__cond_init(&c.made);
    int taken = pen__cond_init(&c.taken);
    int idle = pen__cond_init(&c.idle);
    int r = made == PEN_OK && taken == PEN_OK && idle == PEN_OK
                ? PEN_OK
                : pen__fail_memory(reterr, WHERE, "threads");
    if (r == PEN_OK && c.prepare.keep_videos)
        r = pen__video_lists_new(&c.prepare.lists, reterr);
    if (r == PEN_OK)
        r = run_crew(&c, n, reterr);
    pen__video_lists_free(&c.prepare.lists);
    if (idle == PEN_OK)
        pthread_cond_destroy(&c.idle);
    if (taken == PEN_OK)
        pthread_cond_destroy(&c.taken);
    if (made == PEN_OK)
        pthread_cond_destroy(&c.made);
    pthread_mutex_destroy(&c.mutex);
    return r;
}
