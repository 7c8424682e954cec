/* SPDX-License-Identifier: Apache-2.0 */
/* A whole pack in memory that processes share. See
 * docs/explanation/adr/0013-a-pack-in-shared-memory.md. */
#include "pack/preload/preload.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/attr.h"
#include "base/machine/cores.h"
#include "base/machine/memory.h"
#include "base/sys.h"
#include "base/thread.h"
#include "io/dir.h"
#include "pack/reader/reader_impl.h"

#define WHERE "pack/preload"

enum { NEAR_THREADS = 4, REMOTE_THREADS = 16, LOOK_MS = 20 };
#define REPORT_NS 100000000u
/* A process that is at a shard and brings nothing in this time is stopped, or hangs: then without
 * it. Both write the same bytes. */
#define STALL_NS 60000000000u
/* What has to be left for everything else. */
#define SPARE_BYTES (256ull << 20)

typedef struct Preloading {
    PenPack *pack;
    const PenPreloadSettings *settings;
    PenPreload *preload;
    PenFill *fill;
    PenPreloadRecord *records;
    uint64_t report_at;        /* when progress is next reported */
    uint64_t seen, stalled_at; /* what all had done, and when that is too long ago */
} Preloading;

static const PenPreloadSettings DEFAULTS = {0};

void pen_preload_settings_init(PenPreloadSettings *settings)
{
    *settings = DEFAULTS;
}

/* ---- what is there --------------------------------------------------------------------------- */

static int read_records(Preloading *x, PenError *reterr)
{
    uint64_t n = x->pack->m.n_shards;
    return pen__shared_read(x->preload->shared, x->records, (size_t)n * sizeof *x->records,
                            pen__preload_record_at(0), reterr);
}

static uint64_t bytes_there(const Preloading *x)
{
    const PenManifest *m = &x->pack->m;
    uint64_t sum = 0;
    for (uint64_t i = 0; i < m->n_shards; i++) {
        const PenPreloadRecord *r = &x->records[i];
        uint64_t all = m->shards[i].file_bytes;
        sum += r->state == PEN_PRELOAD_EMPTY ? PEN_MIN(r->filled, all) : all;
    }
    return sum;
}

/* Now and then: what all have done is reported, and checked. */
static int tick(void *ctx, PenError *reterr)
{
    Preloading *x = ctx;
    const PenPreloadSettings *s = x->settings;
    uint64_t now = pen__sys->now_ns();
    if (now < x->report_at)
        return PEN_OK;
    x->report_at = pen__deadline_after(REPORT_NS);
    int r = read_records(x, reterr);
    if (r < 0)
        return r;
    uint64_t there = bytes_there(x);
    if (there != x->seen) {
        x->seen = there;
        x->stalled_at = pen__deadline_after(STALL_NS);
    }
    if (s->progress && s->progress(s->ctx, there, x->preload->layout.shard_bytes))
        return pen__fail(reterr, PEN_E_CANCELLED, WHERE, "%s: preload was stopped", x->pack->path);
    return PEN_OK;
}

/* ---- filling --------------------------------------------------------------------------------- */

/* How many shards are left for this process to see to, by it or another. */
static uint64_t count_left(Preloading *x)
{
    uint8_t *states = pen__fill_states(x->fill);
    uint64_t left = 0;
    for (uint64_t i = 0; i < x->pack->m.n_shards; i++) {
        if (x->records[i].state == PEN_PRELOAD_GOOD)
            states[i] = PEN_FILL_DONE;
        if (states[i] == PEN_FILL_HELD)
            states[i] = PEN_FILL_TO_DO;
        left += states[i] == PEN_FILL_TO_DO;
    }
    return left;
}

/* Is nobody at one of those that are left? 1, 0, < 0. */
static int is_one_free(Preloading *x, PenError *reterr)
{
    const uint8_t *states = pen__fill_states(x->fill);
    int r = 0;
    for (uint64_t i = 0; i < x->pack->m.n_shards && r == PEN_OK; i++) {
        if (states[i] != PEN_FILL_TO_DO)
            continue;
        r = pen__shared_claim(x->preload->shared, i, reterr);
        if (r == 1)
            pen__shared_unclaim(x->preload->shared, i);
    }
    return r;
}

static int fill_or_wait(Preloading *x, PenError *reterr)
{
    int force = pen__sys->now_ns() >= x->stalled_at;
    int r = force ? 1 : is_one_free(x, reterr);
    if (r == 1) {
        r = pen__fill_pass(x->fill, force, tick, x, reterr);
    } else if (r == PEN_OK) {
        (void)pen__sys->poll(NULL, 0, LOOK_MS);
        r = tick(x, reterr);
    }
    return r;
}

/* 1: all of it is as it should be; 0: some of it is damaged where it lies. */
static int fill_all(Preloading *x, PenError *reterr)
{
    for (;;) {
        if (pen__shared_is_sealed(x->preload->shared))
            return 1;
        int r = read_records(x, reterr);
        if (r == PEN_OK && count_left(x) == 0)
            break;
        if (r == PEN_OK)
            r = fill_or_wait(x, reterr);
        if (r < 0)
            return r;
    }
    for (uint64_t i = 0; i < x->pack->m.n_shards; i++)
        if (x->records[i].state != PEN_PRELOAD_GOOD)
            return 0;
    int r = pen__shared_seal(x->preload->shared, reterr);
    return r < 0 ? r : 1;
}

/* ---- memory ---------------------------------------------------------------------------------- */

static void size_text(uint64_t bytes, char ret[32])
{
    double mib = (double)bytes / (1 << 20);
    if (mib >= 1024)
        snprintf(ret, 32, "%.1f GiB", mib / 1024);
    else
        snprintf(ret, 32, "%.1f MiB", mib);
}

/* Better reported now than by the kernel, which would end some process. */
static int check_memory(Preloading *x, PenError *reterr)
{
    char need_text[32], available_text[32], spare_text[32];
    PenAvailable available = pen__memory_available(); /* before what is there: others go on */
    int r = read_records(x, reterr);
    if (r < 0)
        return r;
    uint64_t all = x->preload->layout.shard_bytes, there = bytes_there(x);
    uint64_t need = all - PEN_MIN(all, there);
    if (need == 0 || available.bytes == UINT64_MAX ||
        (available.bytes >= SPARE_BYTES && need <= available.bytes - SPARE_BYTES))
        return PEN_OK;
    size_text(need, need_text);
    size_text(available.bytes, available_text);
    size_text(SPARE_BYTES, spare_text);
    return pen__fail(reterr, PEN_E_NO_MEMORY, WHERE,
                     "%s: preload needs %s of memory and %s of reserve, but only %s is available "
                     "%s; open it without "
                     "preload, or free memory",
                     x->pack->path, need_text, spare_text, available_text,
                     available.is_by_group ? "within the cgroup limit of this process"
                                           : "on this machine");
}

/* ---- all ------------------------------------------------------------------------------------- */

static int check_use(PenPack *p, const PenPreloadSettings *s, PenError *reterr)
{
    int r = pen__pack_alive(p, reterr);
    if (r < 0)
        return r;
    if (s->threads < 0)
        return pen__fail(reterr, PEN_E_INVALID, WHERE,
                         "threads: expected a number, 0 or more, found %d", (int)s->threads);
    pthread_mutex_lock(&p->mutex);
    int users = p->refs;
    pthread_mutex_unlock(&p->mutex);
    if (p->cache)
        return pen__fail(
            reterr, PEN_E_INVALID, WHERE,
            "%s: cannot preload a pack that has a cache; open it with either preload or a cache",
            p->path);
    if (users > 1 && !p->preload)
        return pen__fail(
            reterr, PEN_E_INVALID, WHERE,
            "%s: cannot preload a pack that a loader uses; preload it right after opening",
            p->path);
    return PEN_OK;
}

static unsigned count_threads(const Preloading *x)
{
    if (x->settings->threads > 0)
        return (unsigned)x->settings->threads;
    return x->pack->is_remote ? REMOTE_THREADS
                              : PEN_MIN(pen__thread_cores(), (unsigned)NEAR_THREADS);
}

/* Finds or makes the memory: 1, 0. */
static int open_memory(Preloading *x, PenError *reterr)
{
    PenPack *p = x->pack;
    x->preload = pen__zalloc(sizeof *x->preload);
    if (x->preload)
        atomic_init(&x->preload->refs, 1);
    x->records = pen__alloc_array(p->m.n_shards + 1, sizeof *x->records);
    if (!x->preload || !x->records)
        return pen__fail_memory(reterr, WHERE, p->path);
    int r = pen__preload_layout(&x->preload->layout, &p->m, p->path, reterr);
    if (r < 0)
        return r;
    const PenPreloadLayout *l = &x->preload->layout;
    PenSharedKey key = {p->m.id, l->head, l->bytes, p->path};
    return pen__shared_open(&key, &x->preload->shared, reterr);
}

static int preload(Preloading *x, PenPreloadResult *result, PenError *reterr)
{
    int was_there = open_memory(x, reterr);
    if (was_there < 0)
        return was_there;
    int r = pen__shared_is_sealed(x->preload->shared) ? PEN_OK : check_memory(x, reterr);
    if (r == PEN_OK)
        r = pen__fill_open(x->pack, x->preload, count_threads(x), &x->fill, reterr);
    if (r < 0)
        return r;
    x->seen = UINT64_MAX;
    x->stalled_at = pen__deadline_after(STALL_NS);
    r = fill_all(x, reterr);
    if (r < 0)
        return r;
    *result = (PenPreloadResult){.bytes = x->preload->layout.bytes,
                                 .read_bytes = pen__fill_read_bytes(x->fill),
                                 .was_there = was_there,
                                 .is_sealed = r};
    pen__fill_close(&x->fill);
    r = pen__pack_move(x->pack, x->preload, reterr);
    if (r == PEN_OK)
        x->preload = NULL;
    return r;
}

int pen_pack_preload(PenPack *pack, const PenPreloadSettings *settings, PenPreloadResult *ret,
                     PenError *reterr)
{
    PenPreloadSettings own = settings ? *settings : DEFAULTS;
    PenPreloadResult result = {0};
    Preloading x = {.pack = pack, .settings = &own};
    int r = check_use(pack, &own, reterr);
    if (r < 0)
        return r;
    if (pack->preload) {
        result = (PenPreloadResult){.bytes = pack->preload->layout.bytes,
                                    .was_there = 1,
                                    .is_sealed = pen__shared_is_sealed(pack->preload->shared)};
    } else {
        r = preload(&x, &result, reterr);
        pen__fill_close(&x.fill);
        pen__preload_close(&x.preload);
        pen__free(x.records);
    }
    if (r == PEN_OK && ret)
        *ret = result;
    return r;
}
