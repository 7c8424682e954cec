/* SPDX-License-Identifier: Apache-2.0 */
#include "load/diagnosis/busy.h"

#include <stdbool.h>
#include <stddef.h>

#include "base/attr.h"
#include "tools.h"

/* From this share of its time on, a part is as busy as it can be. */
#define SATURATED 0.85
/* Below this one, nothing that is counted was the bottleneck. */
#define HALF 0.5
/* A second candidate that is at least this busy, compared with the first one, is named too. */
#define CLOSE 0.9
/* The share of their time that readers wait for memory if it is too small. */
#define MEMORY_WAIT 0.25
/* Slots of the ring that batches in advance take. With fewer, memory is too small. */
enum { FEW_SLOTS = 4 };

static const char *const names[PEN_LIMIT_NONE] = {
    [PEN_LOAD_STAGE_FETCH] = "fetch",       [PEN_LOAD_STAGE_READ] = "read",
    [PEN_LOAD_STAGE_VERIFY] = "verify",     [PEN_LOAD_STAGE_DECODE] = "decode",
    [PEN_LOAD_STAGE_RESAMPLE] = "resample", [PEN_LOAD_STAGE_STORE] = "store",
    [PEN_LIMIT_CONSUMER] = "consumer",      [PEN_LIMIT_TRANSFORM] = "transform",
    [PEN_LIMIT_MEMORY] = "memory",          [PEN_LIMIT_UNKNOWN] = "unknown",
};

const char *pen__limit_name(int limit)
{
    return limit < PEN_LIMIT_NONE ? names[limit] : NULL;
}

double pen__busy_share(const PenBusyGroup *g)
{
    return g->all > 0 ? g->busy / g->all : 0;
}

const PenBusyGroup *pen__busy_group(const PenBusy *b, int stage)
{
    return stage == PEN_LOAD_STAGE_FETCH   ? &b->fetch
           : stage < PEN_LOAD_STAGE_DECODE ? &b->read
                                           : &b->decode;
}

/* ---- counters ---- */

static double seconds(uint64_t now, uint64_t before)
{
    return now > before ? (double)(now - before) * 1e-9 : 0;
}

static void fill_group(PenBusy *b, PenBusyGroup *g, int first, int last, double idle)
{
    *g = (PenBusyGroup){.first = first, .last = last, .largest = first, .all = idle};
    for (int i = first; i <= last; i++) {
        g->busy += b->stage_seconds[i];
        if (b->stage_seconds[i] > b->stage_seconds[g->largest])
            g->largest = i;
    }
    g->all += g->busy;
}

/* Returns how long readers waited for memory. */
static double fill(PenBusy *b, const PenLoaderStats *s, const PenLoaderStats *from)
{
    double wait = seconds(s->ns_wait, from->ns_wait);
    double memory = seconds(s->ns_memory_wait, from->ns_memory_wait);
    b->seconds = seconds(s->ns_elapsed, from->ns_elapsed);
    b->samples = s->samples > from->samples ? (double)(s->samples - from->samples) : 0;
    b->bytes = s->bytes_read > from->bytes_read ? (double)(s->bytes_read - from->bytes_read) : 0;
    if (b->seconds > 0) {
        b->per_second = b->samples / b->seconds;
        b->consumer = PEN_MAX(0.0, 1 - wait / b->seconds);
    }
    for (int i = 0; i < PEN_LOAD_STAGE_COUNT; i++)
        b->stage_seconds[i] = seconds(s->stage_ns[i], from->stage_ns[i]);
    b->decode_cpu = seconds(s->ns_decode_cpu, from->ns_decode_cpu);
    fill_group(b, &b->fetch, PEN_LOAD_STAGE_FETCH, PEN_LOAD_STAGE_FETCH,
               seconds(s->ns_fetch_idle, from->ns_fetch_idle));
    fill_group(b, &b->read, PEN_LOAD_STAGE_READ, PEN_LOAD_STAGE_VERIFY,
               seconds(s->ns_read_idle, from->ns_read_idle) + memory);
    fill_group(b, &b->decode, PEN_LOAD_STAGE_DECODE, PEN_LOAD_STAGE_STORE,
               seconds(s->ns_decode_idle, from->ns_decode_idle));
    return memory;
}

/* ---- the decision ---- */

typedef struct Candidate {
    int limit;
    double share;
    const PenBusyGroup *group; /* NULL: the consumer */
} Candidate;

/* The most and the second most busy one. Of equal ones, the one that is nearer to the consumer. */
static void find_busiest(const PenBusy *b, Candidate ret[2])
{
    const Candidate all[] = {
        {PEN_LIMIT_CONSUMER, b->consumer, NULL},
        {b->decode.largest, pen__busy_share(&b->decode), &b->decode},
        {b->read.largest, pen__busy_share(&b->read), &b->read},
        {b->fetch.largest, pen__busy_share(&b->fetch), &b->fetch},
    };
    ret[0] = ret[1] = (Candidate){.limit = PEN_LIMIT_NONE};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        if (all[i].share > ret[0].share) {
            ret[1] = ret[0];
            ret[0] = all[i];
        } else if (all[i].share > ret[1].share) {
            ret[1] = all[i];
        }
    }
}

/* Of the stages that the same threads run: one that takes almost as long as the largest. */
static int rival(const PenBusy *b, const PenBusyGroup *g)
{
    int found = PEN_LIMIT_NONE;
    double least = CLOSE * b->stage_seconds[g->largest];
    for (int i = g->first; i <= g->last; i++)
        if (i != g->largest && b->stage_seconds[i] >= least) {
            least = b->stage_seconds[i];
            found = i;
        }
    return found;
}

static bool lacks_memory(const PenBusy *b, const PenLoaderStats *s, const Candidate *first,
                         double memory)
{
    if (first->limit == PEN_LOAD_STAGE_FETCH && first->share >= HALF &&
        s->io_threads < s->io_threads_wanted)
        return true; /* fewer requests at a time than the loader would make */
    return first->share < SATURATED && ((b->read.all > 0 && memory >= MEMORY_WAIT * b->read.all) ||
                                        (s->slots_limit > 0 && s->slots_limit < FEW_SLOTS));
}

/* A slow request holds up the batches that need its block. The blocks that follow fill the memory,
 * and most of the threads that fetch wait, while at least one request is under way. */
static bool holds_up(const PenBusy *b)
{
    return b->fetch.busy >= SATURATED * b->seconds;
}

static void decide(PenBusy *b, const PenLoaderStats *s, double memory)
{
    Candidate most[2];
    find_busiest(b, most);
    b->second = PEN_LIMIT_NONE;
    if (lacks_memory(b, s, &most[0], memory)) {
        b->bottleneck = PEN_LIMIT_MEMORY;
        return;
    }
    if (most[0].share < HALF) {
        b->bottleneck = holds_up(b) ? PEN_LOAD_STAGE_FETCH : PEN_LIMIT_UNKNOWN;
        return;
    }
    b->bottleneck = most[0].limit;
    if (most[1].share >= CLOSE * most[0].share)
        b->second = most[1].limit;
    else if (most[0].group)
        b->second = rival(b, most[0].group);
    if (b->bottleneck == PEN_LIMIT_CONSUMER &&
        b->transform_seconds >= HALF * b->consumer * b->seconds)
        b->bottleneck = PEN_LIMIT_TRANSFORM;
}

void pen__busy_of(const PenLoaderStats *stats, const PenLoaderStats *since,
                  double transform_seconds, PenBusy *ret)
{
    const PenLoaderStats from = since ? *since : (PenLoaderStats){0};
    *ret = (PenBusy){.bottleneck = PEN_LIMIT_UNKNOWN,
                     .second = PEN_LIMIT_NONE,
                     .transform_seconds = transform_seconds};
    double memory = fill(ret, stats, &from);
    if (ret->seconds > 0 && (stats->batches > from.batches || stats->ns_wait > from.ns_wait))
        decide(ret, stats, memory);
}

const char *pen_loader_bottleneck(const PenLoaderStats *stats)
{
    PenBusy b;
    pen__busy_of(stats, NULL, 0, &b);
    return pen__limit_name(b.bottleneck);
}
