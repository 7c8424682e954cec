/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/task.h"

#include "base/attr.h"
#include "base/error.h"
#include "base/mem.h"
#include "sim/store.h"

#define WHERE "sim/task"

/* See ingest/job/assemble.c. */
enum { AHEAD_PER_THREAD = 4, AHEAD = 16, MAX_AHEAD = 256 };
#define AHEAD_BYTES ((uint64_t)512 << 20)
enum { LIST_BYTES = 250000 }; /* of a page of a listing */
enum { SMALL_BYTES = 512 };   /* of a response that has nothing to say */

typedef struct PenSimRead {
    PenSimTask *task;
    uint64_t position;
} Read;

static uint64_t now(const PenSimTask *t)
{
    return t->clock->class_->now_ns(t->clock);
}

static PenSimCaller *caller_of(PenSimTask *t, PenSimKind kind)
{
    return &t->process.callers[pen__sim_caller_of(kind)];
}

static void advance(PenSimTask *t); /* after any change */

/* ---- steps ----------------------------------------------------------------------------------- */

static void add_step(PenSimTask *t, PenSimTaskStep step)
{
    if (step.left)
        t->steps[(t->first_step + t->n_steps++) % PEN_LEN(t->steps)] = step;
}

static void ask(PenSimTask *t, PenSimKind kind, unsigned prefix, uint64_t bytes)
{
    add_step(t, (PenSimTaskStep){.what = PEN_SIM_ASK, .request = {kind, prefix, bytes}, .left = 1});
}

static void send_parts(PenSimTask *t, uint64_t n, uint64_t bytes)
{
    add_step(t, (PenSimTaskStep){
                    .what = PEN_SIM_SEND, .request = {PEN_SIM_PUT, t->prefix, bytes}, .left = n});
}

static void add_opening(PenSimTask *t)
{
    ask(t, PEN_SIM_HEAD, PEN_SIM_MANIFEST, SMALL_BYTES);
    ask(t, PEN_SIM_HEAD, PEN_SIM_MANIFEST, SMALL_BYTES); /* is the pack complete already? */
    ask(t, PEN_SIM_POST, PEN_SIM_MANIFEST, SMALL_BYTES); /* may it write here? */
    ask(t, PEN_SIM_DELETE, PEN_SIM_MANIFEST, SMALL_BYTES);
    ask(t, PEN_SIM_GET, PEN_SIM_MANIFEST, SMALL_BYTES);       /* the address of the plan */
    ask(t, PEN_SIM_GET, PEN_SIM_MANIFEST, PEN_SIM_END_BYTES); /* its end */
    add_step(t, (PenSimTaskStep){.request = {PEN_SIM_LIST, PEN_SIM_MANIFEST, LIST_BYTES},
                                 .left = t->plan->list_pages}); /* records of other tasks */
    add_step(t, (PenSimTaskStep){.request = {PEN_SIM_GET, PEN_SIM_MANIFEST, PEN_SIM_PAGE_BYTES},
                                 .left = t->plan->split_pages});
    ask(t, PEN_SIM_GET, PEN_SIM_MANIFEST, SMALL_BYTES); /* its own record */
}

static void begin_shard(PenSimTask *t)
{
    t->in_shard = true;
    t->blocks = t->part_bytes = 0;
    t->prefix = (unsigned)pen__sim_net_draw(t->plan->net, t->plan->prefixes);
    ask(t, PEN_SIM_POST, t->prefix, SMALL_BYTES);
}

/* Parts are sent when they are full. */
static void add_bytes(PenSimTask *t, uint64_t bytes)
{
    t->part_bytes += bytes;
    send_parts(t, t->part_bytes / PEN_SIM_PART_BYTES, PEN_SIM_PART_BYTES);
    t->part_bytes %= PEN_SIM_PART_BYTES;
}

/* It is joined, checked, and its end is read back. */
static void end_shard(PenSimTask *t)
{
    t->in_shard = false;
    send_parts(t, t->part_bytes > 0, t->part_bytes);
    add_step(t, (PenSimTaskStep){.what = PEN_SIM_SENT, .left = 1});
    ask(t, PEN_SIM_POST, t->prefix, SMALL_BYTES);
    ask(t, PEN_SIM_HEAD, t->prefix, SMALL_BYTES);
    ask(t, PEN_SIM_GET, t->prefix, PEN_SIM_END_BYTES);
}

static void end_block(PenSimTask *t)
{
    if (!t->in_shard)
        begin_shard(t);
    add_bytes(t, t->held * t->plan->sample_bytes);
    t->held = 0;
    if (++t->blocks == t->plan->shard_blocks)
        end_shard(t);
}

/* Samples that do not fill a block are a shard of their own, the rest. */
static void finish(PenSimTask *t)
{
    t->finished = true;
    t->last_ns = now(t);
    if (t->in_shard)
        end_shard(t);
    if (t->held) {
        begin_shard(t);
        add_bytes(t, t->held * t->plan->sample_bytes);
        end_shard(t);
    }
    ask(t, PEN_SIM_PUT, PEN_SIM_MANIFEST, t->plan->record_bytes);
}

static void next_step(PenSimTask *t)
{
    PenSimTaskStep *step = &t->steps[t->first_step];
    if (--step->left)
        return;
    t->first_step = (t->first_step + 1) % PEN_LEN(t->steps);
    t->n_steps--;
}

static void step_done(void *ctx)
{
    PenSimTask *t = ctx;
    t->asking = false;
    next_step(t);
    advance(t);
}

static void part_done(void *ctx)
{
    PenSimTask *t = ctx;
    t->sending--;
    advance(t);
}

/* False: it has to wait, or there is none. */
static bool run_step(PenSimTask *t)
{
    const PenSimTaskStep *step = &t->steps[t->first_step];
    if (t->asking || !t->n_steps)
        return false;
    if (step->what == PEN_SIM_ASK) {
        t->asking = true;
        pen__sim_call(caller_of(t, step->request.kind), &step->request, step_done, t);
        return false;
    }
    if (step->what == PEN_SIM_SEND && t->sending < PEN_SIM_PARTS_AT_ONCE) {
        t->sending++;
        pen__sim_call(caller_of(t, PEN_SIM_PUT), &step->request, part_done, t);
    } else if (step->what == PEN_SIM_SEND || t->sending) {
        return false;
    }
    next_step(t);
    return true;
}

/* ---- reading --------------------------------------------------------------------------------- */

static void pump(PenSimTask *t);

/* All samples take the same time, so that they are done in the order in which they came. */
static void arrange_prepare(PenSimTask *t);

static void on_prepared(void *ctx)
{
    PenSimTask *t = ctx;
    for (; t->made < t->queued && t->done_ns[t->made % t->n_slots] <= now(t); t->made++) {
        t->ready[t->queue[t->made % t->n_slots] % t->n_slots] = 1;
        t->readers--;
    }
    arrange_prepare(t);
    pump(t);
    advance(t);
}

static void arrange_prepare(PenSimTask *t)
{
    if (t->made < t->queued && !t->prepare.set)
        t->clock->class_->timer_set(t->clock, &t->prepare, t->done_ns[t->made % t->n_slots],
                                    on_prepared, t);
}

/* The core that is free first is the one that was taken first. */
static void on_read(void *ctx)
{
    const Read *read = ctx;
    PenSimTask *t = read->task;
    uint64_t i = t->queued++, from = now(t), cores = PEN_MIN(t->plan->threads, t->n_slots);
    if (i >= cores)
        from = PEN_MAX(from, t->done_ns[(i - cores) % t->n_slots]);
    t->queue[i % t->n_slots] = read->position;
    t->done_ns[i % t->n_slots] = from + t->plan->sample_ns;
    arrange_prepare(t);
}

static void on_page(void *ctx)
{
    PenSimTask *t = ctx;
    t->paging = false;
    t->paged += t->plan->page_samples;
    pump(t);
}

/* Has the plan come as far as the next position? */
static bool is_planned(PenSimTask *t)
{
    PenSimRequest page = {PEN_SIM_GET, PEN_SIM_MANIFEST, PEN_SIM_PAGE_BYTES};
    if (t->next < t->paged)
        return true;
    if (!t->paging)
        pen__sim_call(caller_of(t, PEN_SIM_GET), &page, on_page, t);
    t->paging = true;
    return false;
}

static void pump(PenSimTask *t)
{
    while (t->opened && t->next < t->n && t->readers < PEN_SIM_READERS &&
           t->next - t->collected < t->n_slots && t->plan->fault->r == PEN_OK && is_planned(t)) {
        Read *read = &t->reads[t->next % t->n_slots];
        PenSimRequest request = {
            PEN_SIM_SOURCE, (unsigned)pen__sim_net_draw(t->plan->net, t->plan->source_prefixes),
            t->plan->sample_bytes};
        *read = (Read){t, t->next++};
        t->readers++;
        pen__sim_call(caller_of(t, PEN_SIM_SOURCE), &request, on_read, read);
    }
}

/* ---- writing --------------------------------------------------------------------------------- */

static void on_written(void *ctx)
{
    PenSimTask *t = ctx;
    t->writing = false;
    t->ready[t->collected++ % t->n_slots] = 0;
    if (t->collected == t->plan->warm)
        t->warm_ns = now(t);
    if (++t->held == t->plan->block_samples)
        end_block(t);
    if (t->collected == t->n)
        finish(t);
    pump(t);
    advance(t);
}

static void write_next(PenSimTask *t)
{
    if (t->writing || t->collected == t->n || !t->ready[t->collected % t->n_slots])
        return;
    t->writing = true;
    t->clock->class_->timer_set(t->clock, &t->write, now(t) + t->plan->write_ns, on_written, t);
}

/* Does the thread that writes wait for uploads? */
static void note_wait(PenSimTask *t)
{
    if (t->n_steps && !t->wait_from_ns)
        t->wait_from_ns = now(t);
    if (t->n_steps || !t->wait_from_ns)
        return;
    if (t->opened && !t->finished)
        t->waited_ns += now(t) - t->wait_from_ns;
    t->wait_from_ns = 0;
}

static void advance(PenSimTask *t)
{
    while (run_step(t))
        ;
    note_wait(t);
    if (t->n_steps || t->plan->fault->r < 0)
        return;
    if (!t->opened) {
        t->opened = true;
        t->open_ns = now(t);
        pump(t);
    }
    if (t->finished)
        t->end_ns = now(t);
    else
        write_next(t);
}

/* ---- life ------------------------------------------------------------------------------------ */

static uint32_t slots(const PenSimTaskPlan *plan)
{
    uint64_t n = PEN_MAX(plan->threads, (uint32_t)PEN_SIM_READERS);
    n = PEN_MAX(n * AHEAD_PER_THREAD + AHEAD,
                PEN_MIN(2 * plan->block_samples, (uint64_t)MAX_AHEAD));
    uint64_t fit = AHEAD_BYTES / plan->sample_bytes;
    return (uint32_t)PEN_MAX(PEN_MIN(n, fit), 1u);
}

int pen__sim_task_init(PenSimTask *t, const PenSimTaskPlan *plan, uint64_t n,
                       const PenSimNode *node, PenError *reterr)
{
    *t = (PenSimTask){.plan = plan, .n = n, .n_slots = slots(plan)};
    t->ready = pen__zalloc(t->n_slots);
    t->queue = pen__alloc_array(t->n_slots, sizeof *t->queue);
    t->done_ns = pen__alloc_array(t->n_slots, sizeof *t->done_ns);
    t->reads = pen__alloc_array(t->n_slots, sizeof *t->reads);
    if (!t->ready || !t->queue || !t->done_ns || !t->reads)
        return pen__fail_memory(reterr, WHERE, "task");
    int r =
        pen__sim_process_init(&t->process, plan->net, node, plan->in_flight, plan->fault, reterr);
    t->clock = t->process.callers[0].t;
    return r;
}

static void on_start(void *ctx)
{
    PenSimTask *t = ctx;
    t->start_ns = now(t);
    add_opening(t);
    advance(t);
}

void pen__sim_task_start(PenSimTask *t, uint64_t at_ns)
{
    t->clock->class_->timer_set(t->clock, &t->write, at_ns, on_start, t);
}

void pen__sim_task_fini(PenSimTask *t)
{
    pen__sim_process_fini(&t->process);
    pen__free(t->ready);
    pen__free(t->queue);
    pen__free(t->done_ns);
    pen__free(t->reads);
}

/* ---- counting -------------------------------------------------------------------------------- */

uint64_t pen__sim_task_shards(const PenSimTaskPlan *plan, uint64_t n)
{
    uint64_t blocks = n / plan->block_samples;
    return blocks / plan->shard_blocks + (blocks % plan->shard_blocks > 0);
}

static double parts(uint64_t bytes)
{
    uint64_t whole = bytes / PEN_SIM_PART_BYTES;
    return (double)(whole + (bytes % PEN_SIM_PART_BYTES > 0));
}

static void count_shards(double n, uint64_t bytes, double ret[PEN_SIM_KINDS])
{
    ret[PEN_SIM_POST] += 2 * n;
    ret[PEN_SIM_PUT] += n * parts(bytes);
    ret[PEN_SIM_HEAD] += n;
    ret[PEN_SIM_GET] += n;
}

void pen__sim_task_count(const PenSimTaskPlan *plan, uint64_t n, double ret[PEN_SIM_KINDS])
{
    uint64_t block = plan->block_samples * plan->sample_bytes, blocks = n / plan->block_samples;
    uint64_t shards = blocks / plan->shard_blocks, last = blocks % plan->shard_blocks;
    uint64_t rest = n % plan->block_samples, pages = (n - 1) / plan->page_samples + 1;
    ret[PEN_SIM_SOURCE] += (double)n;
    ret[PEN_SIM_HEAD] += 2;
    ret[PEN_SIM_POST] += 1;
    ret[PEN_SIM_DELETE] += 1;
    ret[PEN_SIM_LIST] += (double)plan->list_pages;
    ret[PEN_SIM_GET] += 3 + (double)(plan->split_pages + pages);
    ret[PEN_SIM_PUT] += 1; /* its record */
    count_shards((double)shards, plan->shard_blocks * block, ret);
    count_shards(last > 0, last * block, ret);
    count_shards(rest > 0, rest * plan->sample_bytes, ret);
}
