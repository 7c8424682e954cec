/* SPDX-License-Identifier: Apache-2.0 */
/* The loop of the own decoder: segments are taken in the order of the file, so many at a time as
 * there are lanes, and the next one is begun where one has ended. Finished ones wait in their slots
 * until there are enough of them for the inverse DCT; then rows of MCUs that are complete are given
 * out. Samples live in a ring of rows of MCUs, so a large image takes no more memory than a few of
 * its rows. */
#include "codec/jpeg/decoder/decoder_impl.h"

/* Lanes in use have a bit in `busy`. */
typedef struct Loop {
    PenOwn *own;
    uint32_t busy;
    bool has_job, no_more;
    PenOwnJob job; /* the next */
} Loop;

/* The row of MCUs before which everything has been decoded. */
static uint32_t complete_rows(const Loop *l)
{
    const PenOwn *own = l->own;
    uint32_t row = l->has_job ? l->job.first_row : own->wanted.bottom + 1;
    for (uint32_t m = l->busy; m; m &= m - 1)
        row = PEN_MIN(row, own->lane_jobs[__builtin_ctz(m)].first_row);
    return row;
}

/* What is decoded becomes samples, and rows that are complete are given out. A row whose chroma
 * looks at the row below waits for that. */
static int flush(Loop *l, PenError *reterr)
{
    PenOwn *own = l->own;
    uint32_t end = complete_rows(l);
    pen__own_flush(own);
    if (own->head.v == 2 && end <= own->wanted.bottom)
        end -= end > own->wanted.top;
    return pen__own_give(own, end, reterr);
}

/* The oldest row in the ring that is still needed. */
static bool fits_ring(const PenOwn *own, const PenOwnJob *job)
{
    uint32_t oldest = own->row - (own->head.v == 2 && own->row > own->wanted.top);
    return job->last_row < oldest + own->ring_rows;
}

static int look_ahead(Loop *l)
{
    if (l->has_job || l->no_more)
        return PEN_OK;
    PenOwnJobs *jobs = &l->own->jobs;
    int r = (jobs->image->entries ? pen__own_next_interval : pen__own_next_job)(jobs, &l->job);
    l->has_job = r == PEN_OK;
    l->no_more = r == PEN_OWN_NO_JOB;
    return r == PEN_END ? r : PEN_OK;
}

static int start_lane(Loop *l, uint32_t lane)
{
    PenOwn *own = l->own;
    size_t bytes;
    if (!own->entropy->unstuff(l->job.data, l->job.bytes, own->copies + lane * own->copy_bytes,
                               &bytes))
        return PEN_END;
    uint32_t slot = own->free_slots[--own->n_free];
    own->lane_jobs[lane] = l->job;
    own->lane_slots[lane] = slot;
    own->lane_bytes[lane] = bytes;
    own->entropy->start(own, lane, &l->job, slot, bytes);
    l->busy |= 1u << lane;
    l->has_job = false;
    return PEN_OK;
}

/* A segment for every lane that is idle, as far as there are any that may begin. */
static int feed(Loop *l, PenError *reterr)
{
    PenOwn *own = l->own;
    uint32_t all = own->entropy->lanes == 32 ? ~0u : (1u << own->entropy->lanes) - 1;
    for (uint32_t idle = all & ~l->busy; idle; idle &= idle - 1) {
        int r = look_ahead(l);
        if (r != PEN_OK || !l->has_job)
            return r;
        if (!own->n_free || !fits_ring(own, &l->job))
            r = flush(l, reterr);
        if (r < 0 || !fits_ring(own, &l->job))
            return r;
        r = start_lane(l, (uint32_t)__builtin_ctz(idle));
        if (r != PEN_OK)
            return r;
    }
    return PEN_OK;
}

/* Did the bits of an interval end where the next begins? */
static bool ends_right(const PenOwn *own, uint32_t lane)
{
    const PenOwnJob *job = &own->lane_jobs[lane];
    if (job->end == PEN_OWN_END_OPEN)
        return true;
    uint64_t all = own->lane_bytes[lane] * 8, used = own->entropy->used(own, lane);
    if (job->end == PEN_OWN_END_PADDED)
        return all - used < 8;
    return used == all - job->spare;
}

/* Are the predictors behind it those of the entry that follows? */
static bool predicts_right(const PenOwn *own, const PenOwnJob *job, const int32_t dc[3])
{
    for (uint32_t i = 0; i < own->head.components && job->end == PEN_OWN_END_ENTRY; i++)
        if (dc[i] != job->dc_end[i])
            return false;
    return true;
}

static int finish(Loop *l, uint32_t ended)
{
    PenOwn *own = l->own;
    for (; ended; ended &= ended - 1) {
        uint32_t lane = (uint32_t)__builtin_ctz(ended), slot = own->lane_slots[lane];
        const PenOwnJob *job = &own->lane_jobs[lane];
        int32_t dc[3];
        if (!own->entropy->good(own, lane) || !ends_right(own, lane))
            return PEN_END;
        pen__own_add(own, job, slot, dc);
        own->used_slots[own->n_used++] = slot;
        l->busy &= ~(1u << lane);
        if (!predicts_right(own, job, dc))
            return PEN_END;
    }
    return PEN_OK;
}

static int decode(PenOwn *own, PenError *reterr)
{
    Loop l = {.own = own};
    for (;;) {
        int r = feed(&l, reterr);
        if (r != PEN_OK)
            return r;
        if (!l.busy)
            break;
        r = finish(&l, own->entropy->run(own, l.busy));
        if (r != PEN_OK)
            return r;
    }
    return flush(&l, reterr);
}

int pen__own_decode(PenOwn *own, const PenOwnRequest *request, uint32_t *ret_given,
                    PenError *reterr)
{
    int r = pen__own_begin(own, request, reterr);
    if (r != PEN_OK)
        return r;
    r = decode(own, reterr);
    own->clean = r == PEN_OK;
    *ret_given = own->given;
    pen__own_end(own);
    return r;
}
