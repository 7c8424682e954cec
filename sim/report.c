/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/report.h"

#include <stdbool.h>

#include <jansson.h>

#include <penstock/loader.h>

#include "base/attr.h"
#include "base/error.h"

#define WHERE "sim/report"

enum { DIGITS = 6 }; /* of numbers that are not counts */

#define I(count) (json_int_t)(count)

static json_t *job(const PenSimSettings *s, const PenSimResult *r)
{
    bool is_cut = r->seconds < s->seconds && r->batches < r->ranks * r->steps;
    return json_pack("{sI sI sI sI sf ss* ss*}", "nodes", I(s->nodes), "nodes_simulated",
                     I(r->followed), "ranks", I(s->ranks), "epoch", I(s->epoch), "seconds",
                     r->seconds, "pack", s->pack, "note",
                     is_cut ? "fewer seconds than requested; see effort" : NULL);
}

static const char *fetch_unit(uint32_t unit)
{
    return unit == PEN_FETCH_BLOCKS ? "blocks" : unit == PEN_FETCH_RUNS ? "runs" : "samples";
}

static json_t *order(const PenSimResult *r)
{
    json_t *wanted = r->memory_wanted_bytes ? json_integer(I(r->memory_wanted_bytes)) : NULL;
    json_t *second = r->second_epoch >= 0 ? json_real(r->second_epoch) : NULL;
    return json_pack(
        "{sI sI sI sI sI sI sI ss so* sI sI sI sf sf so* sb}", "samples", I(r->n_samples),
        "samples_per_block", I(r->block_samples), "blocks", I(r->n_blocks), "shards",
        I(r->n_shards), "pack_bytes", I(r->pack_bytes), "shuffle_buffer", I(r->shuffle_buffer),
        "batches_per_rank", I(r->steps), "fetch_unit", fetch_unit(r->fetch_unit),
        "memory_for_entire_blocks_bytes", wanted, "blocks_fetched_per_epoch", I(r->block_fetches),
        "parts_fetched_per_epoch", I(r->part_fetches), "block_indexes_fetched_per_epoch",
        I(r->index_fetches), "requests_per_block", r->requests_per_block, "fetched_over_pack",
        r->amplification, "fetched_over_pack_second_epoch", second, "is_exact", r->is_exact);
}

static json_t *training(const PenSimSettings *s, const PenSimResult *r)
{
    double step = PEN_MAX(s->step_ms, s->decode_ms) / 1e3;
    return json_pack("{sf sf sf sf sI sf sf sf}", "samples_per_second", r->samples_per_s,
                     "samples_per_second_without_waiting",
                     (double)s->nodes * s->ranks * s->batch / step, "first_batch_median_seconds",
                     r->first_batch_p50_s, "first_batch_last_rank_seconds", r->first_batch_max_s,
                     "ranks_without_a_batch", I(r->late), "waiting_percent", r->stall_share * 100,
                     "waiting_worst_rank_percent", r->stall_share_worst * 100,
                     "longest_wait_seconds", r->longest_stall_s);
}

static json_t *bandwidth(const PenSimResult *r)
{
    return json_pack("{sf sf}", "mean_gbit_per_second", r->node_bytes_per_s / 1e9 * 8,
                     "busiest_second_gbit_per_second", r->node_peak_bytes_per_s / 1e9 * 8);
}

static json_t *memory(const PenSimResult *r)
{
    return json_pack("{sI sI}", "peak_block_bytes", I(r->memory_bytes), "available_bytes",
                     I(r->memory_room));
}

static json_t *rates(const PenSimSettings *s, const PenSimResult *r)
{
    return json_pack("{sf sf sI sf}", "mean", r->prefix_per_s, "busiest", r->prefix_peak_per_s,
                     "limit", I(s->prefix_per_s), "busiest_for_the_manifest",
                     r->manifest_peak_per_s);
}

static json_t *requests(const PenSimResult *r)
{
    return json_pack("{sI sI sI sI sI sI sI sI sI}", "made", I(r->requests), "for_blocks",
                     I(r->block_requests), "for_block_indexes", I(r->index_requests),
                     "for_shard_indexes", I(r->tails), "cache_hits", I(r->hits), "retries",
                     I(r->retries), "hedges", I(r->hedges), "hedges_that_won", I(r->hedges_won),
                     "throttled", I(r->throttles));
}

static json_t *cost(const PenSimResult *r)
{
    return json_pack("{sf sf sf}", "requests", r->requests_per_epoch, "dollars",
                     r->dollars_per_epoch, "dollars_per_million_requests", r->dollars_per_million);
}

static json_t *constants(const PenSimSettings *s)
{
    return json_pack("{sI sf sf sI sI sI sI sb sf sf sf sf sf sf sI sf sf sb sI}", "batch",
                     I(s->batch), "step_ms", s->step_ms, "decode_ms", s->decode_ms, "memory_bytes",
                     I(s->memory_bytes), "prefetch", I(s->prefetch), "in_flight", I(s->in_flight),
                     "cache_bytes", I(s->cache_bytes), "sticky", (int)s->sticky, "latency_ms",
                     s->latency_ms, "latency_p99_ms", s->latency_p99_ms, "connect_ms",
                     s->connect_ms, "connection_mb_per_second",
                     (double)s->connection_bytes_per_s / 1e6, "node_gbit_per_second",
                     (double)s->node_bytes_per_s * 8 / 1e9, "store_gbit_per_second",
                     (double)s->store_bytes_per_s * 8 / 1e9, "prefixes", I(s->prefixes),
                     "failures_per_1000_requests", s->failures, "spread_seconds", s->spread_s,
                     "opened", (int)s->opened, "seed", I(s->seed));
}

int pen__sim_print(const PenSimSettings *s, const PenSimResult *r, FILE *to, PenError *reterr)
{
    json_t *all = job(s, r);
    int failed = json_object_set_new(all, "order", order(r)) ||
                 json_object_set_new(all, "training", training(s, r)) ||
                 json_object_set_new(all, "bandwidth_of_a_node", bandwidth(r)) ||
                 json_object_set_new(all, "memory_of_a_rank", memory(r)) ||
                 json_object_set_new(all, "requests_per_second_and_prefix", rates(s, r)) ||
                 json_object_set_new(all, "requests_simulated", requests(r)) ||
                 json_object_set_new(all, "cost_per_epoch", cost(r)) ||
                 json_object_set_new(all, "constants", constants(s));
    if (failed) {
        json_decref(all);
        return pen__fail_memory(reterr, WHERE, "the result");
    }
    failed = json_dumpf(all, to, JSON_INDENT(2) | JSON_REAL_PRECISION(DIGITS)) < 0 ||
             fputc('\n', to) == EOF || fflush(to) != 0;
    json_decref(all);
    return failed ? pen__fail(reterr, PEN_E_IO, WHERE, "cannot write the result") : PEN_OK;
}
