/* SPDX-License-Identifier: Apache-2.0 */
/* The public calls: passes, batches, state. */
#include "load/loader.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/machine/cores.h"
#include "base/machine/memory.h"
#include "base/sys.h"
#include "base/thread.h"
#include "load/delivery.h"
#include "load/engine.h"
#include "load/figures.h"
#include "load/plan/builder.h"
#include "load/status/writer.h"
#include "tools.h"
#include "trace/trace.h"

#define WHERE "load/loader"
#define SLICE_NS 1000000000u

struct PenLoader {
    PenLoadEngine *engine;
    pid_t pid;
    uint64_t epoch;
    uint64_t position;   /* samples delivered of it, over all ranks */
    uint64_t step;       /* steps delivered of it; of a token budget */
    uint64_t waiting_ns; /* since when the next batch is waited for; 0 = it is not */
    bool begun;          /* a pass of this epoch was begun */
    bool named;          /* the epoch was set by name */
    PenBatch *peeked;    /* left the ring, but not delivered; NULL = none */
    PenStatusWriter status;
};

static int check_alive(const PenLoader *l, PenError *reterr)
{
    if (l->pid == getpid())
        return PEN_OK;
    return pen__fail(reterr, PEN_E_CLOSED, WHERE,
                     "this loader was opened by process %d; open another in process %d",
                     (int)l->pid, (int)getpid());
}

static int open_loader(PenPack *pack, const PenMixSettings *mix, const PenLoaderSettings *settings,
                       PenLoader **ret_loader, PenError *reterr)
{
    PenLoader *l = pen__zalloc(sizeof *l);
    if (!l)
        return pen__fail_memory(reterr, WHERE, "loader");
    int r = pen__load_engine_new(pack, mix, settings, &l->engine, reterr);
    if (r < 0) {
        pen__free(l);
        return r;
    }
    l->pid = getpid();
    pen__status_show(&l->status, l->engine, l->epoch); /* who waits elsewhere is seen as well */
    *ret_loader = l;
    return PEN_OK;
}

int pen_loader_open(PenPack *pack, const PenLoaderSettings *settings, PenLoader **ret_loader,
                    PenError *reterr)
{
    return open_loader(pack, NULL, settings, ret_loader, reterr);
}

int pen_loader_open_mix(const PenMixSettings *mix, const PenLoaderSettings *settings,
                        PenLoader **ret_loader, PenError *reterr)
{
    if (!mix)
        return pen__fail(reterr, PEN_E_INVALID, WHERE,
                         "mix: expected a PenMixSettings, found NULL");
    return open_loader(NULL, mix, settings, ret_loader, reterr);
}

void pen__loader_skip_decoding(PenLoader *loader)
{
    loader->engine->plan.no_decode = true;
}

void pen_loader_close(PenLoader **loader)
{
    if (!loader || !*loader)
        return;
    /* The threads of a parent are not in its child: there is nobody to stop, and locks may be held.
     */
    if ((*loader)->pid == getpid()) {
        pen_batch_unref(&(*loader)->peeked);
        pen__status_close(&(*loader)->status);
        pen__load_engine_close((*loader)->engine);
    }
    pen__free(*loader);
    *loader = NULL;
}

/* ---- what it is ---- */

static PenSplit split_at(const PenLoader *l, uint64_t epoch)
{
    return pen__load_plan_split(&l->engine->plan, epoch, 0, 0);
}

uint64_t pen_loader_len(const PenLoader *loader)
{
    PenSplit s = split_at(loader, pen_loader_epoch(loader));
    return pen__split_steps(&s);
}

uint64_t pen_loader_dropped(const PenLoader *loader)
{
    const PenLoadPlan *p = &loader->engine->plan;
    PenSplit s = split_at(loader, pen_loader_epoch(loader));
    uint64_t places = pen__split_places(&s, pen__split_steps(&s)) * p->set.world;
    return p->set.last_batch == PEN_LAST_DROP ? p->state.order.n - places : 0;
}

int pen_loader_last_batch(const PenLoader *loader)
{
    return loader->engine->plan.set.last_batch;
}

uint64_t pen_loader_samples(const PenLoader *loader)
{
    return loader->engine->plan.state.order.n;
}

static bool is_complete(const PenLoader *l)
{
    uint64_t all = split_at(l, l->epoch).n;
    return all && l->position >= all;
}

/* A restored place at the very end belongs to the next epoch, unless the caller insists. */
static bool at_end(const PenLoader *l)
{
    return !l->named && is_complete(l);
}

uint64_t pen_loader_epoch(const PenLoader *loader)
{
    return loader->epoch + (at_end(loader) ? 1 : 0);
}

const char *pen_loader_pipeline(const PenLoader *loader)
{
    return loader->engine->plan.text;
}

const char *pen_loader_warning(const PenLoader *loader)
{
    return loader->engine->plan.warning;
}

uint32_t pen_loader_fields(const PenLoader *loader)
{
    return loader->engine->plan.n_fields;
}

const char *pen_loader_field_name(const PenLoader *loader, uint32_t field)
{
    return field < loader->engine->plan.n_fields ? loader->engine->plan.fields[field].name : NULL;
}

PenTensor pen_loader_field_tensor(const PenLoader *loader, uint32_t field)
{
    const PenLoadPlan *p = &loader->engine->plan;
    if (field >= p->n_fields)
        return (PenTensor){0};
    PenTensor t = p->fields[field].tensor;
    for (uint32_t i = 1; p->shapes && i < p->shapes->n; i++)
        for (uint32_t k = 0; k < t.n_dims; k++)
            if (p->shapes->fields[i][field].tensor.shape[k] != t.shape[k])
                t.shape[k] = -1;
    return t;
}

int pen_loader_field_list(const PenLoader *loader, uint32_t field)
{
    const PenLoadPlan *plan = &loader->engine->plan;
    return field < plan->n_fields && !plan->fields[field].mask ? plan->fields[field].list : 0;
}

uint32_t pen_loader_sources(const PenLoader *loader)
{
    return loader->engine->plan.n_sources;
}

void pen_loader_source_counts(const PenLoader *loader, uint64_t *ret)
{
    const PenLoadPlan *plan = &loader->engine->plan;
    if (plan->mixture)
        pen__mixture_counts(plan->mixture, loader->epoch * plan->state.order.n + loader->position,
                            ret);
}

/* ---- passes ---- */

static int check_epoch(const PenLoader *l, uint64_t epoch, PenError *reterr)
{
    uint64_t most = l->engine->plan.epoch_most;
    if (epoch <= most)
        return PEN_OK;
    return pen__fail(reterr, PEN_E_INVALID, WHERE,
                     "epoch: expected 0 to %" PRIu64 ", found %" PRIu64, most, epoch);
}

static void end_pass(PenLoader *l)
{
    pen_batch_unref(&l->peeked);
    pen__load_engine_end_pass(l->engine);
}

int pen_loader_set_epoch(PenLoader *loader, uint64_t epoch, PenError *reterr)
{
    int r = check_alive(loader, reterr);
    if (r == PEN_OK)
        r = check_epoch(loader, epoch, reterr);
    if (r < 0)
        return r;
    /* The place in an epoch is kept as long as nothing was taken since it was restored: some
     * callers begin the pass first and name its epoch then. */
    bool untouched = loader->begun && !loader->engine->pass.ended &&
                     loader->engine->pass.delivered == (loader->peeked != NULL);
    if (untouched && epoch == loader->epoch)
        return PEN_OK;
    if (epoch != loader->epoch || loader->begun)
        loader->position = loader->step = 0;
    end_pass(loader);
    loader->epoch = epoch;
    loader->begun = false;
    loader->named = true;
    return PEN_OK;
}

/* Waits for threads of the pass before, `ms` at most; the next call continues to wait. */
static int drain(PenLoader *l, uint32_t ms, PenError *reterr)
{
    if (!l->engine->threads.n)
        return PEN_OK;
    if (!l->waiting_ns)
        l->waiting_ns = pen__sys->now_ns();
    int r = pen__load_engine_drain(l->engine, ms, l->waiting_ns, reterr);
    if (r != PEN_E_TIMEOUT)
        l->waiting_ns = 0;
    return r;
}

static int begin_pass(PenLoader *loader, uint32_t ms, PenError *reterr)
{
    PenLoadEngine *e = loader->engine;
    pen_batch_unref(&loader->peeked);
    int r = drain(loader, ms, reterr);
    if (r < 0)
        return r;
    if (loader->begun || at_end(loader)) {
        loader->epoch++;
        loader->position = loader->step = 0;
        loader->begun = false;
    }
    PenEpochPass pass = {
        .split = pen__load_plan_split(&e->plan, loader->epoch, loader->position, loader->step)};
    PenOrderPlan order = pen__load_plan_order(&e->plan);
    r = check_epoch(loader, loader->epoch, reterr);
    if (r == PEN_OK)
        r = pen__order_init(&pass.order, &order, loader->epoch, reterr);
    if (r == PEN_OK && e->plan.buckets)
        r = pen__load_engine_order_buckets(e, &pass.order, reterr);
    if (r == PEN_OK)
        r = pen__load_engine_start(e, reterr);
    if (r < 0)
        return r;
    pen__epoch_pass_init(&pass);
    loader->begun = true;
    loader->named = false;
    pen__load_engine_begin(e, &pass);
    return PEN_OK;
}

int pen_loader_begin(PenLoader *loader, PenError *reterr)
{
    int r = check_alive(loader, reterr);
    return r < 0 ? r : begin_pass(loader, loader->engine->plan.set.stall_ms, reterr);
}

/* ---- trace ---- */

int pen_loader_trace(PenLoader *loader, PenTrace *trace, PenError *reterr)
{
    const PenLoadPlan *plan = &loader->engine->plan;
    char path[1024], args[160];
    PenSpanRing *spans = NULL;
    int r = check_alive(loader, reterr);
    if (r == PEN_OK && trace) {
        pen__figures_path(plan, path, sizeof path);
        snprintf(args, sizeof args,
                 "\"batch_size\":%" PRIu32 ",\"samples\":%" PRIu64 ",\"threads\":%" PRIu32
                 ",\"rank\":%" PRIu32 ",\"world\":%" PRIu32,
                 plan->set.batch_size, plan->state.order.n, (uint32_t)plan->threads, plan->set.rank,
                 plan->set.world);
        r = pen__trace_join(trace, path, args, &spans, reterr);
    }
    if (r == PEN_OK)
        pen__load_engine_trace(loader->engine, spans);
    return r;
}

/* ---- figures ---- */

static void read_stats(const PenLoader *loader, bool epoch, PenLoaderStats *ret)
{
    *ret = (PenLoaderStats){0};
    if (loader->pid == getpid())
        pen__figures_read(loader->engine, epoch, ret);
}

void pen_loader_stats(const PenLoader *loader, PenLoaderStats *ret)
{
    read_stats(loader, false, ret);
}

void pen_loader_epoch_stats(const PenLoader *loader, PenLoaderStats *ret)
{
    read_stats(loader, true, ret);
}

/* Of a mixture: one of its packs is remote; one has a cache, and all that are remote; all are
 * preloaded; the throttles of the pack with the most. */
static void find_places(const PenLoadPlan *plan, PenRunFacts *f)
{
    bool with_cache = false, without_cache = false;
    f->is_preloaded = 1;
    for (uint32_t i = 0; i < PEN_MAX(plan->n_sources, 1u); i++) {
        const PenPack *pack = plan->sources ? plan->sources[i].pack : plan->pack;
        PenRemoteStats remote;
        pen_pack_remote_stats(pack, &remote);
        f->throttles = PEN_MAX(f->throttles, remote.throttles);
        f->is_remote |= pen__pack_is_remote(pack);
        f->is_preloaded &= pen__pack_is_preloaded(pack);
        with_cache |= pen__pack_has_cache(pack);
        without_cache |= pen__pack_is_remote(pack) && !pen__pack_has_cache(pack);
    }
    f->has_cache = with_cache && !without_cache;
}

void pen_run_facts_of(const PenLoader *loader, PenRunFacts *ret)
{
    const PenLoadPlan *plan = &loader->engine->plan;
    PenAvailable memory = pen__memory_available();
    *ret = (PenRunFacts){.cores = pen__thread_cores(),
                         .pack_bytes = plan->packs.total_bytes,
                         .memory_bytes = memory.bytes == UINT64_MAX ? 0 : memory.bytes};
    find_places(plan, ret);
}

int pen_loader_bad_sample(const PenLoader *loader, uint64_t i, PenBadSample *ret)
{
    const PenBadSample *bad = pen__bad_samples_at(&loader->engine->bad, i);
    if (!bad)
        return PEN_END;
    *ret = *bad;
    return PEN_OK;
}

/* ---- batches ---- */

static int finish_pass(PenLoader *l)
{
    pen__load_engine_end_pass(l->engine);
    l->position = l->step = 0;
    l->epoch++;
    l->begun = false;
    return PEN_END;
}

/* Waits in slices, so that other processes see a status of now. */
static int deliver(PenLoader *l, PenBatchWait *wait, PenBatch **ret_batch, PenError *reterr)
{
    uint64_t deadline_ns = wait->deadline_ns;
    for (;;) {
        wait->deadline_ns = PEN_MIN(deadline_ns, wait->start_ns + SLICE_NS);
        int r = pen__delivery_next(l->engine, wait, ret_batch, reterr);
        if (pen__status_is_due(&l->status, wait->start_ns))
            pen__status_show(&l->status, l->engine, l->epoch);
        if (!wait->since_ns || wait->deadline_ns == deadline_ns)
            return r;
        wait->start_ns = pen__sys->now_ns();
    }
}

/* The position is behind the batch that left the ring last. */
static void settle(PenLoader *l)
{
    const PenEpochPass *pass = &l->engine->pass;
    l->position = pen__epoch_pass_position(pass);
    l->step = pass->split.step + pass->delivered;
}

static int receive(PenLoader *l, int timeout_ms, PenBatch **ret_batch, PenError *reterr)
{
    PenLoadEngine *e = l->engine;
    uint32_t ms = timeout_ms < 0 ? e->plan.set.stall_ms : (uint32_t)timeout_ms;
    PenBatchWait wait = {.start_ns = pen__sys->now_ns(),
                         .deadline_ns = pen__deadline_after((uint64_t)ms * 1000000u)};
    int r = e->pass.ended ? begin_pass(l, ms, reterr) : PEN_OK;
    if (r < 0)
        return r;
    if (e->pass.delivered == e->pass.steps)
        return finish_pass(l);
    wait.since_ns = l->waiting_ns;
    r = deliver(l, &wait, ret_batch, reterr);
    l->waiting_ns = wait.since_ns;
    if (r < 0)
        settle(l); /* a batch that failed is not repeated */
    return r;
}

int pen_loader_peek(PenLoader *loader, int timeout_ms, PenBatch **ret_batch, PenError *reterr)
{
    int r = check_alive(loader, reterr);
    if (r == PEN_OK && !loader->peeked)
        r = receive(loader, timeout_ms, &loader->peeked, reterr);
    if (r == PEN_OK)
        *ret_batch = pen_batch_ref(loader->peeked);
    return r;
}

int pen_loader_next(PenLoader *loader, int timeout_ms, PenBatch **ret_batch, PenError *reterr)
{
    int r = pen_loader_peek(loader, timeout_ms, ret_batch, reterr);
    if (r != PEN_OK)
        return r;
    pen_batch_unref(&loader->peeked);
    settle(loader);
    return PEN_OK;
}

int pen_loader_get(PenLoader *loader, uint64_t epoch, uint64_t index, PenBatch **ret_batch,
                   PenError *reterr)
{
    PenLoadEngine *e = loader->engine;
    uint64_t n = e->plan.state.order.n;
    PenSlot *slot;
    int r = check_alive(loader, reterr);
    if (r < 0)
        return r;
    if (e->plan.lengths)
        return pen__fail(reterr, PEN_E_INVALID, WHERE,
                         "tokens: single samples have no step; use 'patches 16 length=256'");
    if (e->plan.set.batch_size != 1)
        return pen__fail(reterr, PEN_E_INVALID, WHERE,
                         "batch_size: expected 1 for single samples, found %" PRIu32,
                         e->plan.set.batch_size);
    if (index >= n || epoch > e->plan.epoch_most)
        return pen__fail(reterr, PEN_E_INVALID, WHERE,
                         "sample: expected a number below %" PRIu64 " and an epoch of at most "
                         "%" PRIu64 ", found %" PRIu64 " in epoch %" PRIu64,
                         n, e->plan.epoch_most, index, epoch);
    r = pen__single_load(&e->singles, epoch, index, &slot, reterr);
    if (r == PEN_OK)
        *ret_batch = &slot->batch;
    return r;
}

/* ---- state ---- */

int pen_loader_save(const PenLoader *loader, char *buf, PenError *reterr)
{
    PenState s = loader->engine->plan.state;
    s.epoch = loader->epoch;
    s.position = loader->position;
    s.step = PEN_MIN(loader->step, s.position);
    /* With buckets, places exceed the samples: all of these are delivered only at the end. */
    if (loader->engine->plan.buckets) {
        s.place = loader->position;
        s.position = is_complete(loader) ? s.order.n : PEN_MIN(s.place, s.order.n - 1);
    }
    return pen__state_write(&s, buf, reterr);
}

/* Where a state stands in the positions of its epoch. */
static uint64_t restored(const PenLoader *l, const PenState *s)
{
    uint64_t all = split_at(l, s->epoch).n;
    uint64_t group = l->engine->plan.state.global_batch;
    if (!l->engine->plan.buckets)
        return PEN_MIN(s->position, all);
    if (s->position >= s->order.n)
        return all;
    if (s->global_batch == group && !s->by_step)
        return PEN_MIN(s->place / group * group, all);
    return PEN_MIN(s->position / group * group, all); /* of a loader with other steps */
}

int pen_loader_restore(PenLoader *loader, const char *text, int strict, PenError *reterr)
{
    PenState s;
    PenLoadPlan *plan = &loader->engine->plan;
    int r = check_alive(loader, reterr);
    if (r == PEN_OK)
        r = pen__state_read(text, &s, reterr);
    if (r < 0)
        return r;
    if (strict)
        r = pen__state_match(&plan->state, &s, reterr);
    if (r == PEN_OK)
        r = check_epoch(loader, s.epoch, reterr);
    if (r == PEN_OK)
        r = drain(loader, plan->set.stall_ms, reterr);
    if (r < 0)
        return r;
    loader->epoch = s.epoch;
    loader->position = restored(loader, &s);
    loader->step = plan->lengths ? s.step : 0;
    loader->begun = loader->named = false;
    end_pass(loader);
    return PEN_OK;
}
