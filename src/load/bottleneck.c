/* SPDX-License-Identifier: Apache-2.0 */
/* The stage that the counters of a loader point to. docs/reference/counters.md has the rules. */
#include <stdbool.h>
#include <string.h>

#include <penstock/loader.h>

#include "base/attr.h"

static const char *const stage_names[PEN_LOAD_STAGE_COUNT] = {
    [PEN_LOAD_STAGE_FETCH] = "fetch",       [PEN_LOAD_STAGE_READ] = "read",
    [PEN_LOAD_STAGE_VERIFY] = "verify",     [PEN_LOAD_STAGE_DECODE] = "decode",
    [PEN_LOAD_STAGE_RESAMPLE] = "resample", [PEN_LOAD_STAGE_STORE] = "store",
};

/* The time of threads that share a queue. */
typedef struct Group {
    double busy, idle;
    int largest; /* of its stages */
} Group;

static Group group_of(const PenLoaderStats *s, int first, int last, uint64_t idle_ns)
{
    Group g = {.idle = (double)idle_ns, .largest = first};
    for (int i = first; i <= last; i++) {
        g.busy += (double)s->stage_ns[i];
        if (s->stage_ns[i] > s->stage_ns[g.largest])
            g.largest = i;
    }
    return g;
}

static bool is_busy(const Group *g)
{
    return g->busy > 0 && g->busy >= 0.85 * (g->busy + g->idle);
}

const char *pen_loader_bottleneck(const PenLoaderStats *stats)
{
    PenLoaderStats s = {0};
    memcpy(&s, stats, PEN_MIN(stats->struct_size, sizeof s)); /* it may be of an older library */
    double memory = (double)s.ns_memory_wait;
    Group fetch = group_of(&s, PEN_LOAD_STAGE_FETCH, PEN_LOAD_STAGE_FETCH, s.ns_fetch_idle);
    Group read = group_of(&s, PEN_LOAD_STAGE_READ, PEN_LOAD_STAGE_VERIFY, s.ns_read_idle);
    Group decode = group_of(&s, PEN_LOAD_STAGE_DECODE, PEN_LOAD_STAGE_STORE, s.ns_decode_idle);
    read.idle += memory;
    if (!s.ns_elapsed || (!s.batches && !s.ns_wait)) /* no batch was requested */
        return "unknown";
    if ((double)s.ns_wait < 0.02 * (double)s.ns_elapsed)
        return "consumer";
    if (is_busy(&decode))
        return stage_names[decode.largest];
    if (memory > 0 && memory >= 0.25 * (read.busy + read.idle))
        return "memory";
    if (is_busy(&fetch))
        return stage_names[fetch.largest];
    return is_busy(&read) ? stage_names[read.largest] : "unknown";
}
