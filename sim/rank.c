/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/rank.h"

#include "base/attr.h"
#include "base/error.h"
#include "base/mem.h"
#include "pack/reader/reader.h"

#define WHERE "sim/rank"

enum { TAIL_BYTES = 65536 };

/* WAIT: for another's request for the same index. TURN: for those that are needed before. */
typedef enum Stage { MANIFEST, MANIFEST_REST, TAIL, WAIT, TURN, INDEX, PART } Stage;

typedef struct PenSimFetch {
    PenSimRank *rank;
    PenBlockPart *part;
    PenSimCost cost;
    PenOperation *op;
    Stage stage;
    unsigned prefix;
    uint64_t shard, bytes;
    struct PenSimFetch *prev, *next; /* of the rank */
} Fetch;

static void give_up(PenSimRank *k, int r, const PenError *err)
{
    if (k->job->r < 0)
        return;
    k->job->r = r;
    k->job->err = *err;
}

static void turn(PenSimRank *k); /* after any change */

/* ---- requests -------------------------------------------------------------------------------- */

static int fetch_prepare(void *ctx, unsigned attempt, PenHttpRequest *ret, PenError *reterr)
{
    const Fetch *f = ctx;
    (void)reterr;
    f->rank->tails += !attempt && f->stage == TAIL;
    f->rank->block_indexes += !attempt && f->stage == INDEX;
    f->rank->blocks += !attempt && f->stage == PART;
    ret->method = "GET";
    ret->url = pen__sim_store_url(f->prefix);
    ret->into_bytes = (size_t)f->bytes;
    return PEN_OK;
}

static PenVerdict fetch_classify(void *ctx, const PenHttpReply *reply, unsigned *cause,
                                 PenError *err)
{
    (void)ctx;
    (void)cause;
    return pen__policy_classify("simulated", reply, err);
}

static void fetch_end(Fetch *f)
{
    *(f->prev ? &f->prev->next : &f->rank->fetches) = f->next;
    *(f->next ? &f->next->prev : &f->rank->last_fetch) = f->prev;
    f->rank->fetching--;
    pen__free(f);
}

static void fetch_done(void *ctx, int r, const PenError *err);

static void fetch_ask(Fetch *f, Stage stage, uint64_t bytes)
{
    PenOperationSpec spec = {.prepare = fetch_prepare,
                             .classify = fetch_classify,
                             .done = fetch_done,
                             .ctx = f,
                             .name = "simulated",
                             .bytes = bytes,
                             .may_hedge = 1};
    PenError err = {0};
    f->stage = stage;
    f->bytes = bytes;
    int r = pen__policy_start(f->rank->policy, &spec, &f->op, &err);
    if (r < 0)
        give_up(f->rank, r, &err);
}

static Fetch *fetch_new(PenSimRank *k)
{
    Fetch *f = pen__zalloc(sizeof *f);
    if (!f) {
        PenError err = {0};
        give_up(k, pen__fail_memory(&err, WHERE, "fetch"), &err);
        return NULL;
    }
    f->rank = k;
    f->prev = k->last_fetch;
    *(f->prev ? &f->prev->next : &k->fetches) = f;
    k->last_fetch = f;
    k->fetching++;
    return f;
}

/* No more than is asked for anyway, but for a shard of thousands of blocks. */
static uint64_t tail_of(const PenSimPack *p, uint64_t shard)
{
    const PenManifest *m = p->pack ? pen__pack_manifest(p->pack) : NULL;
    return m ? PEN_MAX(m->shards[shard].tail_bytes, (uint64_t)TAIL_BYTES) : TAIL_BYTES;
}

static void begin_epoch(PenSimRank *k)
{
    const PenSimJob *job = k->job;
    PenSplit split = pen__sim_split(&job->order, job->s->batch, job->world, k->rank);
    pen__schedule_begin(&k->schedule, &job->order, &split, job->steps);
    k->opened = true;
}

/* Those whose shard's index is here are sent; until the first batch has its parts, in the order of
 * need. */
static void take_turns(PenSimRank *k)
{
    for (Fetch *f = k->fetches; f; f = f->next) {
        if (!k->warm && (f->stage == TAIL || f->stage == WAIT))
            return;
        if (f->stage == TURN)
            fetch_ask(f, f->cost.index ? INDEX : PART,
                      f->cost.index ? f->cost.index : f->cost.part);
    }
}

/* The index of a shard is here, for all that wait for it. */
static void have_tail(PenSimRank *k, uint64_t shard)
{
    k->shards[shard % PEN_SIM_SHARDS] = (uint32_t)shard + 1;
    for (Fetch *f = k->fetches; f; f = f->next)
        if ((f->stage == TAIL || f->stage == WAIT) && f->shard == shard)
            f->stage = TURN;
    take_turns(k);
}

/* Has the first batch its parts? */
static void count_landed(PenSimRank *k)
{
    k->landed++;
    if (!k->first_blocks && k->schedule.cursor >= k->job->s->batch)
        k->first_blocks = k->schedule.requested;
    if (!k->warm && k->first_blocks && k->landed >= k->first_blocks) {
        k->warm = true;
        take_turns(k);
    }
}

static bool is_coming(const PenSimRank *k, uint64_t shard)
{
    for (const Fetch *f = k->fetches; f; f = f->next)
        if (f->stage == TAIL && f->shard == shard)
            return true;
    return false;
}

static void fetch_done(void *ctx, int r, const PenError *err)
{
    Fetch *f = ctx;
    PenSimRank *k = f->rank;
    const PenSimPack *p = &k->job->pack;
    f->op = NULL;
    if (r < 0) {
        give_up(k, r, err);
        return;
    }
    if (f->stage == MANIFEST && p->manifest_bytes > TAIL_BYTES) {
        fetch_ask(f, MANIFEST_REST, p->manifest_bytes - TAIL_BYTES);
        return;
    }
    if (f->stage == TAIL) {
        have_tail(k, f->shard);
        return;
    }
    if (f->stage == INDEX) {
        fetch_ask(f, PART, f->cost.part);
        return;
    }
    if (f->stage == PART) {
        count_landed(k);
        pen__schedule_arrived(&k->schedule, f->part, NULL, f->cost.memory);
        pen__sim_batch_arrived(k, f->part);
    } else {
        begin_epoch(k);
    }
    fetch_end(f);
    turn(k);
}

static void fetch_part(PenSimRank *k, PenBlockPart *part)
{
    const PenSimPack *p = &k->job->pack;
    uint64_t shard = pen__sim_pack_shard(p, part->block);
    PenSimCost cost = pen__sim_fetch(p, &k->indexes, k->cache, part);
    if (!cost.part) {
        k->hits++;
        k->landed++;
        pen__schedule_arrived(&k->schedule, part, NULL, cost.memory);
        return;
    }
    bool coming = is_coming(k, shard);
    Fetch *f = fetch_new(k);
    if (!f)
        return;
    f->part = part;
    f->cost = cost;
    f->shard = shard;
    f->prefix = pen__sim_pack_prefix(p, shard);
    if (k->shards[shard % PEN_SIM_SHARDS] == (uint32_t)shard + 1) {
        f->stage = TURN;
        take_turns(k);
    } else if (coming) {
        f->stage = WAIT;
    } else {
        fetch_ask(f, TAIL, tail_of(p, shard));
    }
}

/* Asks for what the schedule wants, as much at once as the loader does. */
static void pump(PenSimRank *k)
{
    while (k->opened && k->fetching < k->job->fetch.fetchers && k->job->r == PEN_OK) {
        uint64_t before = pen__schedule_progress(&k->schedule);
        PenBlockPart *part = NULL;
        PenError err = {0};
        int r = pen__schedule_next(&k->schedule, &part, &err);
        if (r < 0)
            give_up(k, r, &err);
        if (part)
            fetch_part(k, part);
        else if (before == pen__schedule_progress(&k->schedule))
            break;
    }
}

/* ---- batches ----------------------------------------------------------------------------------
 */

static void on_computed(void *ctx)
{
    PenSimRank *k = ctx;
    k->computing = false;
    k->released++;
    k->wait_from_ns = pen__sim_rank_now(k);
    turn(k);
}

static void take(PenSimRank *k, uint64_t now)
{
    if (!k->batches) {
        k->first_ns = now;
    } else {
        k->waiting_ns += now - k->wait_from_ns;
        k->longest_ns = PEN_MAX(k->longest_ns, now - k->wait_from_ns);
    }
    k->last_ns = now;
    k->batches++;
    k->computing = true;
    k->t->class_->timer_set(k->t, &k->compute, now + (uint64_t)(k->job->s->step_ms * 1e6),
                            on_computed, k);
}

static void on_made(void *ctx)
{
    turn(ctx);
}

/* The next batch, when it is made and nobody computes. */
static void deliver(PenSimRank *k)
{
    const PenSimSlot *slot = &k->slots[k->batches % k->n_slots];
    uint64_t now = pen__sim_rank_now(k);
    if (k->computing || k->given < (k->batches + 1) * k->job->s->batch || slot->left)
        return;
    if (slot->made_ns <= now)
        take(k, now);
    else if (!k->make.set)
        k->t->class_->timer_set(k->t, &k->make, slot->made_ns, on_made, k);
}

static void turn(PenSimRank *k)
{
    if (!k->opened || k->job->r < 0)
        return;
    do
        pump(k);
    while (pen__sim_batch_place(k));
    deliver(k);
}

/* ---- life ------------------------------------------------------------------------------------ */

int pen__sim_rank_init(PenSimRank *k, PenSimJob *job, uint32_t rank, PenSimLink *link,
                       PenSimCache *cache, PenError *reterr)
{
    PenPolicySettings settings;
    pen__policy_settings_init(&settings);
    *k = (PenSimRank){.job = job, .rank = rank, .cache = cache};
    settings.in_flight = job->in_flight;
    PenSchedulePlan plan = pen__sim_schedule(&job->pack, &job->fetch, job->shares.blocks);
    k->t = pen__sim_net_client(job->net, link);
    if (!k->t)
        return pen__fail_memory(reterr, WHERE, "client");
    int r = pen__policy_new(k->t, &settings, &k->policy, reterr);
    if (r == PEN_OK)
        r = pen__schedule_init(&k->schedule, &plan, reterr);
    if (r == PEN_OK)
        r = pen__sim_indexes_init(&k->indexes, &job->pack, job->shares.keep, reterr);
    return r < 0 ? r : pen__sim_batch_init(k, reterr);
}

static void on_start(void *ctx)
{
    PenSimRank *k = ctx;
    if (k->job->s->opened) {
        begin_epoch(k);
        turn(k);
        return;
    }
    Fetch *f = fetch_new(k);
    if (!f)
        return;
    f->prefix = PEN_SIM_MANIFEST;
    fetch_ask(f, MANIFEST, PEN_MIN(k->job->pack.manifest_bytes, (uint64_t)TAIL_BYTES));
}

void pen__sim_rank_start(PenSimRank *k, uint64_t at_ns)
{
    k->t->class_->timer_set(k->t, &k->compute, at_ns, on_start, k);
}

void pen__sim_rank_fini(PenSimRank *k)
{
    pen__policy_free(&k->policy);
    while (k->fetches)
        fetch_end(k->fetches);
    pen__schedule_fini(&k->schedule);
    pen__sim_indexes_fini(&k->indexes);
    pen__sim_batch_fini(k);
}
