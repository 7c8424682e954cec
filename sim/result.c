/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/result.h"

#include <stdlib.h>

#include "base/attr.h"
#include "base/error.h"
#include "base/mem.h"
#include "sim/rank.h"

#define WHERE "sim/result"

/* S3 Standard, GET, us-east-1: $0.0004 for 1,000 requests. */
#define DOLLARS_PER_MILLION 0.4

static int by_size(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static void describe(const PenSimJob *job, PenSimResult *ret)
{
    const PenSimPack *p = &job->pack;
    ret->n_samples = p->n_samples;
    ret->n_blocks = p->n_blocks;
    ret->n_shards = p->n_shards;
    ret->block_samples = p->block_samples;
    ret->pack_bytes = p->pack_bytes;
    ret->block_bytes = p->block_bytes;
    ret->shuffle_buffer = job->order.streams ? job->order.streams * p->block_samples : p->n_samples;
    ret->fetch_unit = (uint32_t)job->fetch.unit;
    ret->memory_wanted_bytes = job->fetch.memory_wanted;
    ret->ranks = job->n_ranks;
    ret->followed = job->followed;
    ret->memory_room = job->shares.blocks;
}

/* The job's time ends with its last batch when the epoch was over before. */
static uint64_t end_of(const PenSimJob *job)
{
    uint64_t last = 0;
    for (uint64_t i = 0; i < job->n_ranks; i++) {
        const PenSimRank *k = &job->ranks[i];
        if (k->batches < job->steps || k->computing)
            return pen__sim_net_now(job->net);
        last = PEN_MAX(last, k->wait_from_ns);
    }
    return last;
}

static void add_waits(const PenSimRank *k, uint64_t end, PenSimResult *ret)
{
    uint64_t waiting = k->waiting_ns, longest = k->longest_ns;
    uint64_t until = k->batches < k->job->steps ? end : k->last_ns;
    if (!k->computing && k->batches < k->job->steps) {
        uint64_t now = end - k->wait_from_ns;
        waiting += now;
        longest = PEN_MAX(longest, now);
    }
    double share = until > k->first_ns ? (double)waiting / (double)(until - k->first_ns) : 0;
    ret->stall_share += share;
    ret->stall_share_worst = PEN_MAX(ret->stall_share_worst, share);
    ret->longest_stall_s = PEN_MAX(ret->longest_stall_s, (double)longest / 1e9);
}

static void add_rank(PenSimRank *k, uint64_t end, PenSimResult *ret)
{
    PenPolicyCounts c;
    pen__policy_counts(k->policy, &c);
    ret->retries += c.retries;
    ret->hedges += c.hedges;
    ret->hedges_won += c.hedges_won;
    ret->throttles += c.throttles;
    ret->failures += c.failures;
    ret->tails += k->tails;
    ret->block_requests += k->blocks;
    ret->index_requests += k->block_indexes;
    ret->hits += k->hits;
    ret->memory_bytes = PEN_MAX(ret->memory_bytes, k->schedule.peak_bytes);
    ret->batches += k->batches;
    if (!k->batches)
        return;
    add_waits(k, end, ret);
    if (k->last_ns > k->first_ns)
        ret->samples_per_s += (double)(k->batches - 1) * k->job->s->batch /
                              ((double)(k->last_ns - k->first_ns) / 1e9);
}

static int first_batches(const PenSimJob *job, PenSimResult *ret, PenError *reterr)
{
    uint64_t *list = pen__alloc_array(job->n_ranks, sizeof *list), n = 0;
    if (!list)
        return pen__fail_memory(reterr, WHERE, "first batches");
    for (uint64_t i = 0; i < job->n_ranks; i++)
        if (job->ranks[i].batches)
            list[n++] = job->ranks[i].first_ns - job->start_ns;
    qsort(list, (size_t)n, sizeof *list, by_size);
    uint64_t middle = n / 2;
    ret->late = job->n_ranks - n;
    if (n) {
        ret->first_batch_p50_s = (double)list[middle] / 1e9;
        ret->first_batch_max_s = (double)list[n - 1] / 1e9;
        ret->stall_share /= (double)n;
    }
    pen__free(list);
    return PEN_OK;
}

static void add_nodes(const PenSimJob *job, PenSimResult *ret)
{
    double bytes = 0;
    for (uint32_t i = 0; i < job->followed; i++) {
        PenSimLinkCounts c;
        pen__sim_link_counts(job->links[i], &c);
        bytes += (double)c.bytes;
        ret->node_peak_bytes_per_s = PEN_MAX(ret->node_peak_bytes_per_s, (double)c.most_in_a_s);
    }
    ret->node_bytes_per_s = bytes / job->followed / ret->seconds;
}

/* Indexes of shards, repeated requests, and blocks that a cache has, are as frequent as in what was
 * simulated. */
static void add_cost(const PenSimJob *job, PenSimResult *ret)
{
    double parts = (double)ret->block_requests, hits = (double)ret->hits, more = 1;
    double asked = parts + hits > 0 ? parts / (parts + hits) : 1;
    double once = parts + (double)(ret->index_requests + ret->tails);
    if (once > 0)
        more = (once + (double)(ret->retries + ret->hedges)) / once;
    double tails = parts > 0 ? (double)ret->tails / parts : 0;
    double all = (double)(ret->block_fetches + ret->part_fetches) * (1 + tails);
    all += (double)ret->index_fetches;
    if (job->s->epoch)
        all *= asked;
    ret->requests_per_epoch = all * more + job->world; /* each opens the pack */
    ret->dollars_per_million = DOLLARS_PER_MILLION;
    ret->dollars_per_epoch = ret->requests_per_epoch / 1e6 * DOLLARS_PER_MILLION;
}

int pen__sim_result(PenSimJob *job, PenSimResult *ret, PenError *reterr)
{
    uint64_t end = end_of(job);
    describe(job, ret);
    ret->seconds = (double)(end - job->start_ns) / 1e9;
    for (uint64_t i = 0; i < job->n_ranks; i++)
        add_rank(&job->ranks[i], end, ret);
    ret->samples = ret->batches * job->s->batch;
    ret->samples_per_s *= job->weight;
    ret->requests = job->store.requests;
    ret->prefix_per_s = (double)ret->requests * job->weight / job->s->prefixes / ret->seconds;
    ret->prefix_peak_per_s = job->store.most_in_a_s;
    ret->manifest_peak_per_s = job->store.most_of_manifest;
    add_nodes(job, ret);
    add_cost(job, ret);
    return first_batches(job, ret, reterr);
}
