/* SPDX-License-Identifier: Apache-2.0 */
#include "pack/mapped/gather.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "base/iov.h"
#include "base/team.h"
#include "base/thread.h"

#define WHERE "pack/mapped"
#define LOOK_NS 100000000u /* between two looks whether somebody interrupts */

/* A request takes long, and bytes come fast: as much is read over, and one request brings so much.
 * The number of places bounds the work for each piece that arrives. */
enum { GAP_BYTES = 64 << 10, REQUEST_BYTES = 16 << 20, REQUEST_PLACES = 2048, HELPERS = 15 };

/* A range of a file, and which of the places it goes to. */
typedef struct Request {
    uint32_t file;
    int n;
    bool is_bad; /* its file is missing or another one by now */
    size_t first;
    uint64_t source, end;
} Request;

typedef struct Gather {
    const PenGatherFrom *from;
    PenBuf stored;      /* places of stored bytes, which lie side by side in the shard's file */
    uint64_t stored_at; /* where these begin */
    PenBuf places;      /* of the requests; without an address: bytes between two payloads */
    PenBuf requests;
    PenArrival arrival; /* of all requests: no more is sent or waited for when `stop` is set */
    atomic_bool stop;
    bool is_alone;         /* all of it is part of one payload */
    atomic_size_t next;    /* to be sent: parts of the stored bytes, then requests */
    pthread_mutex_t mutex; /* of the errors */
    PenError error;        /* the first one; status 0: none */
    PenError bad;          /* why the first bad request is */
} Gather;

/* ---- what is needed -------------------------------------------------------------------------- */

/* A range of the shard on its way to memory. */
typedef struct Want {
    uint8_t *to;
    uint64_t offset, bytes;
    uint64_t extent; /* the first one that ends behind the offset */
} Want;

static int add_place(PenBuf *places, uint8_t *to, uint64_t bytes)
{
    struct iovec v = {to, (size_t)bytes};
    return pen__buf_add(places, &v, sizeof v);
}

static Request *last_request(const Gather *g)
{
    return g->requests.bytes ? (Request *)(void *)(g->requests.data + g->requests.bytes) - 1 : NULL;
}

static bool request_joins(const Request *q, uint32_t file, uint64_t source)
{
    return q && q->file == file && source >= q->end && source - q->end <= GAP_BYTES &&
           source - q->source < REQUEST_BYTES && q->n + 2 <= REQUEST_PLACES;
}

static int add_request(Gather *g, uint32_t file, uint64_t source)
{
    Request fresh = {.file = file,
                     .first = g->places.bytes / sizeof(struct iovec),
                     .source = source,
                     .end = source};
    return pen__buf_add(&g->requests, &fresh, sizeof fresh);
}

static int add_range(Gather *g, uint8_t *to, uint64_t bytes, uint32_t file, uint64_t source)
{
    int r = PEN_OK;
    while (bytes && r == PEN_OK) {
        if (!request_joins(last_request(g), file, source))
            r = add_request(g, file, source);
        if (r < 0)
            break;
        Request *q = last_request(g);
        uint64_t gap = source - q->end, n = PEN_MIN(bytes, REQUEST_BYTES - (source - q->source));
        if (gap)
            r = add_place(&g->places, NULL, gap);
        if (r == PEN_OK)
            r = add_place(&g->places, to, n);
        q->n += 1 + (gap != 0);
        q->end = source + n;
        to += n;
        source += n;
        bytes -= n;
    }
    return r;
}

static int gather(Gather *g, Want *w)
{
    const PenMap *m = g->from->map;
    int r = PEN_OK;
    while (w->bytes && r == PEN_OK) {
        bool last = w->extent == m->n_extents;
        PenExtent e = pen__map_extent(m, last ? w->extent - 1 : w->extent);
        uint64_t skip = w->offset - e.offset, n;
        if (!last && e.offset <= w->offset) {
            n = PEN_MIN(e.bytes - skip, w->bytes);
            r = add_range(g, w->to, n, e.file, e.source + skip);
            w->extent += skip + n == e.bytes;
        } else {
            uint64_t at = w->offset - e.skipped - (last ? e.bytes : 0);
            n = last ? w->bytes : PEN_MIN(w->bytes, e.offset - w->offset);
            g->stored_at = g->stored.bytes ? g->stored_at : at;
            r = add_place(&g->stored, w->to, n);
        }
        w->to += n;
        w->offset += n;
        w->bytes -= n;
    }
    return r;
}

/* ---- requests -------------------------------------------------------------------------------- */

static void note_bad(Gather *g, Request *q, const uint8_t *gap, const PenError *e)
{
    struct iovec *v = (struct iovec *)(void *)g->places.data + q->first;
    for (int i = 0; i < q->n; i++)
        if (v[i].iov_base == gap)
            v[i].iov_base = NULL;
    q->is_bad = true;
    pthread_mutex_lock(&g->mutex);
    if (g->bad.status == PEN_OK)
        g->bad = *e;
    pthread_mutex_unlock(&g->mutex);
}

/* If nothing of several files could be read, then their directory or prefix is wrong, and not each
 * of them. */
static bool all_are_bad(const Request *q, size_t n)
{
    bool is_one_file = true, are_bad = true;
    for (size_t i = 0; i < n; i++) {
        is_one_file &= q[i].file == q[0].file;
        are_bad &= q[i].is_bad;
    }
    return are_bad && !is_one_file;
}

static void fill_zeros(Gather *g)
{
    const Request *q = (const Request *)(const void *)g->requests.data;
    size_t n = g->requests.bytes / sizeof *q;
    if (all_are_bad(q, n)) {
        g->error = g->bad;
        return;
    }
    for (size_t i = 0; i < n; i++) {
        const struct iovec *v = (const struct iovec *)(const void *)g->places.data + q[i].first;
        for (int k = 0; q[i].is_bad && k < q[i].n; k++)
            if (v[k].iov_base)
                memset(v[k].iov_base, 0, v[k].iov_len);
    }
}

static int send_request(Gather *g, size_t i, uint8_t **gap, PenError *reterr)
{
    Request *q = (Request *)(void *)g->requests.data + i;
    struct iovec *v = (struct iovec *)(void *)g->places.data + q->first;
    for (int k = 0; k < q->n; k++) {
        if (v[k].iov_base)
            continue;
        if (!*gap)
            *gap = pen__alloc(GAP_BYTES);
        if (!*gap)
            return pen__fail_memory(reterr, WHERE, g->from->name);
        v[k].iov_base = *gap;
    }
    int r = g->from->read(g->from->ctx, q->file, v, q->n, q->source, &g->arrival, reterr);
    if (r != PEN_E_CORRUPT || g->is_alone)
        return r;
    note_bad(g, q, *gap, reterr);
    return PEN_OK;
}

static size_t count_stored_parts(const Gather *g)
{
    return (g->stored.bytes / sizeof(struct iovec) + REQUEST_PLACES - 1) / REQUEST_PLACES;
}

static int send_stored(const Gather *g, size_t part, PenError *reterr)
{
    const struct iovec *v = (const struct iovec *)(const void *)g->stored.data;
    size_t first = part * REQUEST_PLACES, all = g->stored.bytes / sizeof *v;
    uint64_t offset = g->stored_at + pen__iov_bytes(v, (int)first);
    return pen__source_read_v(g->from->file, v + first,
                              (int)PEN_MIN(all - first, (size_t)REQUEST_PLACES), offset,
                              &g->arrival, reterr);
}

/* Ends all requests. */
static void fail(Gather *g, const PenError *e)
{
    pthread_mutex_lock(&g->mutex);
    if (g->error.status == PEN_OK)
        g->error = *e;
    pthread_mutex_unlock(&g->mutex);
    atomic_store(&g->stop, true);
}

static void send_all(void *ctx, unsigned number)
{
    Gather *g = ctx;
    uint8_t *gap = NULL;
    size_t stored = count_stored_parts(g), n = stored + g->requests.bytes / sizeof(Request);
    (void)number;
    while (!atomic_load(&g->stop)) {
        PenError e = {0};
        size_t i = atomic_fetch_add(&g->next, 1);
        if (i >= n)
            break;
        int r = i < stored ? send_stored(g, i, &e) : send_request(g, i - stored, &gap, &e);
        if (r < 0)
            fail(g, &e);
    }
    pen__free(gap);
}

static void look_for_interruption(Gather *g)
{
    const PenRemote *place = pen__outside_place(g->from->outside);
    PenError e = {0};
    if (atomic_load(&g->stop) || !place || !pen__remote_interrupted(place))
        return;
    pen__fail(&e, PEN_E_CANCELLED, WHERE, "%.300s: interrupted", g->from->name);
    fail(g, &e);
}

/* How many: `most`, or none when the wait for them was interrupted. */
static unsigned take_helpers(Gather *g, unsigned most)
{
    PenHelpers *h = pen__outside_helpers(g->from->outside);
    PenHelpersWait w = {.n = most};
    pen__helpers_queue(h, &w);
    while (pen__helpers_wait(h, &w, pen__deadline_after(LOOK_NS)) < 0) {
        look_for_interruption(g);
        if (!atomic_load(&g->stop))
            continue;
        pen__helpers_leave(h, &w);
        return 0;
    }
    return most;
}

/* Only the thread that reads is interrupted by its user: the helpers are ended by it. */
static void wait_for_helpers(Gather *g, PenTeam *team)
{
    while (team && pen__team_wait(team, pen__deadline_after(LOOK_NS)) == PEN_E_TIMEOUT)
        look_for_interruption(g);
}

/* By several threads, when there is more than one request: they only wait. */
static int send_by_team(Gather *g, PenError *reterr)
{
    PenTeamWork work = {.name = "pen-gather", .run = send_all, .ctx = g};
    PenOutside *outside = g->from->outside;
    PenTeam *team = NULL;
    size_t n = g->requests.bytes / sizeof(Request) +
               (g->from->file->is_remote ? count_stored_parts(g) : 0);
    unsigned most = (unsigned)PEN_MIN(n ? n - 1 : 0, (size_t)HELPERS), helpers = 0;
    if (most && outside)
        helpers = take_helpers(g, most);
    if (helpers) /* without one it only takes longer */
        (void)pen__team_start(&work, helpers, &team, NULL);
    send_all(g, 0);
    wait_for_helpers(g, team);
    pen__team_join(&team);
    if (helpers)
        pen__helpers_put(pen__outside_helpers(outside), helpers);
    if (g->error.status == PEN_OK && g->bad.status < 0)
        fill_zeros(g);
    if (g->error.status < 0 && reterr)
        *reterr = g->error;
    return g->error.status;
}

static uint64_t extent_end(const PenMap *m, uint64_t i)
{
    PenExtent e = pen__map_extent(m, i);
    return e.offset + e.bytes;
}

int pen__gather(const PenGatherFrom *from, const struct iovec *v, int n, uint64_t offset,
                PenError *reterr)
{
    Gather g = {.from = from, .mutex = PTHREAD_MUTEX_INITIALIZER};
    uint64_t first = pen__map_find(from->map, offset);
    int r = PEN_OK;
    atomic_init(&g.next, 0);
    atomic_init(&g.stop, false);
    g.arrival = (PenArrival){.stop = &g.stop, .is_again = from->is_again};
    for (int i = 0; i < n && r == PEN_OK; i++) {
        Want w = {v[i].iov_base, offset, v[i].iov_len, pen__map_find(from->map, offset)};
        offset += w.bytes;
        r = gather(&g, &w);
    }
    g.is_alone =
        !g.stored.bytes && first < from->map->n_extents && offset <= extent_end(from->map, first);
    r = r < 0 ? pen__fail_memory(reterr, WHERE, from->name) : send_by_team(&g, reterr);
    pen__buf_free(&g.stored);
    pen__buf_free(&g.places);
    pen__buf_free(&g.requests);
    pthread_mutex_destroy(&g.mutex);
    return r;
}
