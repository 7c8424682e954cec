/* SPDX-License-Identifier: Apache-2.0 */
#include "load/remote/shares.h"

#include <penstock/loader.h>

#include "base/attr.h"
#include "base/bytes.h"
#include "pack/reader/reader.h"

/* Batches that memory is kept for. */
enum { REMOTE_SLOTS = 8 };
/* Where all samples are mixed at once, a rank of so many keeps the blocks that fit; of more, each
 * needs too few samples of a block. */
enum { RESIDENT_WORLD = 8 };
/* Requests for entire blocks at once: of smaller ones more are needed for the same bytes. */
enum { BLOCKS_AT_ONCE = 64 };
#define HORIZON_MOST (UINT64_C(1) << 20)
#define IN_USE 0.9        /* of the memory for what is fetched; the rest is for reading ahead */
#define BEGIN_BYTES 128e6 /* that the first batch may wait for */

/* ---- shares ---- */

uint64_t pen__remote_ring(const PenRemoteNeeds *needs)
{
    return PEN_MAX(PEN_MIN(needs->slot, UINT64_MAX / REMOTE_SLOTS) * REMOTE_SLOTS, needs->ring);
}

/* What is fetched of a remote pack stays in memory until its samples are read: five eighths of what
 * the ring does not need are for that and for indexes of blocks, a quarter is scratch memory. Any
 * block has to fit, and one for each worker that replaces a broken sample. */
uint64_t pen__remote_shares(const PenRemoteNeeds *needs, PenShares *s)
{
    uint64_t block, need, all, m = s->total, beside = needs->blocks_beside;
    if (pen__add_over(needs->largest_block, sizeof(PenBlock), &block) ||
        pen__mul_over(block, beside + 1, &need) || pen__add_over(need, need / 7 + 1, &need) ||
        pen__add_over(need, needs->ring, &all) || pen__add_over(all, needs->rest, &all))
        return UINT64_MAX;
    if (m < all)
        return all;
    uint64_t ring = PEN_MIN(PEN_MIN(pen__remote_ring(needs), m / 2), m - needs->rest - need);
    s->ring = PEN_MAX(needs->ring, ring);
    uint64_t left = m - s->ring;
    s->index = PEN_MAX(PEN_MIN(left / 8 * 5, left - needs->rest), need);
    s->keep = PEN_MIN(s->index / 8, needs->indexes);
    s->blocks = s->index - s->keep - beside * block;
    s->scratch = (left - s->index) / 3 * 2;
    s->read = left - s->index - s->scratch;
    return 0;
}

/* ---- what one request has ---- */

static double sample_bytes(const PenRemoteJob *job)
{
    return (double)job->total_bytes / (double)job->n_samples + 1;
}

/* The memory with which so much is for what is prefetched, beside the indexes that are kept: five
 * eighths of what is not for the ring. */
static uint64_t memory_for(const PenRemoteJob *job, double bytes)
{
    double index = bytes * 8 / 7 * 1.01;
    double rest = PEN_MAX(index * 3 / 5, (double)job->rest_bytes);
    return job->ring_bytes + (uint64_t)(index + rest);
}

/* A block stays from its first sample to its last, so all streams hold one. A part of a block,
 * which is half of it, a quarter, and so on, stays as much shorter. */
static uint64_t samples_of_part(const PenRemoteJob *job)
{
    double blocks = PEN_MAX(job->streams, 2.0);
    double room = (double)job->limit_bytes / sample_bytes(job);
    uint64_t n = job->block_samples;
    while (n > 1 && blocks * (double)n > room * IN_USE)
        n /= 2;
    return n;
}

static void follow_streams(const PenRemoteJob *job, PenFetchPlan *f)
{
    uint64_t n = samples_of_part(job);
    bool all = n == job->block_samples;
    double apart = PEN_MAX(job->streams, 1.0); /* samples from one of a stream to its next one */
    f->horizon = (uint64_t)(apart * (double)n) + (all ? f->horizon : 0) + job->batch;
    if (n == 1)
        f->horizon = 1;
    f->unit = all ? PEN_FETCH_BLOCKS : n > 1 ? PEN_FETCH_RUNS : PEN_FETCH_SAMPLES;
    if (!all)
        f->memory_wanted = memory_for(job, PEN_MAX(job->streams, 2.0) * (double)job->block_samples *
                                               sample_bytes(job) / IN_USE);
}

/* All samples are mixed at once, so blocks that do not stay for the epoch are of no use. */
static void keep_what_fits(const PenRemoteJob *job, PenFetchPlan *f)
{
    f->horizon = 1;
    f->unit = PEN_FETCH_SAMPLES;
    if (job->world > RESIDENT_WORLD)
        return;
    f->resident_bytes = job->limit_bytes / 4 * 3;
    f->memory_wanted = memory_for(job, (double)job->total_bytes * 4 / 3);
}

/* At the beginning every pair of streams needs a part of a block, and the first batch would wait
 * for all of them. Single samples cost a second request for each of these blocks. */
static bool begins_apart(const PenRemoteJob *job, const PenFetchPlan *f)
{
    double first = job->streams / 2 * (double)samples_of_part(job) * sample_bytes(job);
    if (job->streams <= 0 && f->unit == PEN_FETCH_SAMPLES)
        first = (double)f->resident_bytes;
    return first > BEGIN_BYTES && !job->has_cache;
}

void pen__remote_choose(const PenRemoteJob *job, PenFetchPlan *f)
{
    bool fits = job->total_bytes + job->n_blocks * sizeof(PenBlock) <= job->limit_bytes / 8 * 7;
    f->horizon = 2 * job->block_samples;
    if (fits && job->world <= RESIDENT_WORLD) {
        f->resident_bytes = job->limit_bytes;
        f->unit = PEN_FETCH_BLOCKS;
    } else if (job->streams > 0 || job->order == PEN_ORDER_SEQUENTIAL) {
        follow_streams(job, f);
    } else {
        keep_what_fits(job, f);
    }
    f->horizon = PEN_MIN(f->horizon, PEN_MIN(HORIZON_MOST, job->limit_bytes / 1024 + 1));
    f->begins_apart = begins_apart(job, f);
    if (f->unit == PEN_FETCH_BLOCKS && !job->is_set)
        f->fetchers = PEN_MIN(f->fetchers, (uint32_t)BLOCKS_AT_ONCE);
    /* With a cache, what is not there is fetched as an entire block at first. */
    double each = sample_bytes(job) * (job->has_cache ? (double)job->block_samples : 2);
    f->fetchers =
        (uint32_t)PEN_MIN((double)f->fetchers, PEN_MAX((double)job->limit_bytes / each, 2.0));
    if (!job->is_set)
        f->fetchers_wanted = PEN_MAX(f->fetchers, (uint32_t)BLOCKS_AT_ONCE);
}

uint64_t pen__remote_part_bytes(uint64_t largest_block, double sample, uint32_t n, bool all)
{
    uint64_t bytes = largest_block;
    if (!all) /* half as much again as their mean */
        bytes = PEN_MIN(bytes, (uint64_t)(sample * n * 3 / 2));
    return bytes + sizeof(PenBlock) + PEN_SLACK;
}
