/* SPDX-License-Identifier: Apache-2.0 */
#include "load/counters.h"

#include "base/attr.h"

void pen__counters_waited(PenLoadCounters *c, uint64_t ns, uint32_t ready)
{
    c->ready += ready;
    c->waits[pen__log_bin(ns)]++;
}

void pen__counters_add_clock(PenLoadCounters *c, const PenStageClock *clock)
{
    /* If a sample waited for a core, the stage that was interrupted seems long. Such a sample
     * counts for less than its CPU time. */
    double decode = (double)clock->ns[PEN_TIMED_DECODE], cpu = (double)clock->decode_cpu_ns;
    double scale = cpu > 0 && cpu < decode ? cpu / decode * (cpu / decode) : 1;
    for (int i = 0; i < PEN_TIMED_COUNT; i++)
        c->timed.ns[i] +=
            i < PEN_TIMED_DECODE ? clock->ns[i] : (uint64_t)((double)clock->ns[i] * scale);
    c->timed.decode_cpu_ns += clock->decode_cpu_ns;
    c->timed_decode_ns += clock->ns[PEN_TIMED_DECODE];
}

/* The struct consists of such numbers alone. */
_Static_assert(sizeof(PenLoadCounters) % sizeof(uint64_t) == 0, "only 64-bit counters");

void pen__counters_subtract(PenLoadCounters *c, const PenLoadCounters *since)
{
    uint64_t *to = (uint64_t *)c;
    const uint64_t *from = (const uint64_t *)since;
    for (size_t i = 0; i < sizeof *c / sizeof *to; i++)
        to[i] -= from[i];
}

/* ---- waits ---- */

static uint64_t count_waits(const PenLoadCounters *c)
{
    uint64_t n = 0;
    for (unsigned bin = 0; bin < PEN_LOG_BINS; bin++)
        n += c->waits[bin];
    return n;
}

/* The time that `percent` of the waits do not exceed, by their bins; 0 if there are none. */
static uint64_t percentile(const PenLoadCounters *c, uint64_t n, unsigned percent, uint64_t max_ns)
{
    uint64_t wanted = (n * percent + 99) / 100, seen = 0;
    for (unsigned bin = 0; n && bin < PEN_LOG_BINS; bin++) {
        seen += c->waits[bin];
        if (seen >= wanted)
            return PEN_MIN(pen__log_bin_end_ns(bin), max_ns);
    }
    return 0;
}

/* Waits of at most 2^i microseconds that are in no earlier bucket; the last takes the rest. */
static void fill_buckets(const PenLoadCounters *c, uint64_t ret[PEN_WAIT_BUCKETS])
{
    unsigned bucket = 0;
    for (unsigned bin = 0; bin < PEN_LOG_BINS; bin++) {
        while (bucket < PEN_WAIT_BUCKETS - 1 && pen__log_bin_end_ns(bin) > UINT64_C(1000) << bucket)
            bucket++;
        ret[bucket] += c->waits[bin];
    }
}

/* ---- stages ---- */

/* part / whole of `ns`, without overflow for years of them. */
static uint64_t share(uint64_t ns, uint64_t part, uint64_t whole)
{
    return whole ? (uint64_t)((double)ns * ((double)part / (double)whole)) : 0;
}

static uint64_t less(uint64_t a, uint64_t b)
{
    return a > b ? a - b : 0;
}

/* The time of all threads, divided as that of the timed samples is. */
static void fill_stages(const PenLoadCounters *c, uint64_t ret[PEN_LOAD_STAGE_COUNT])
{
    const uint64_t *timed = c->timed.ns;
    const uint64_t *reader = c->ns_of[PEN_ROLE_READ];
    uint64_t read = reader[PEN_ACTIVITY_LOCATING] + reader[PEN_ACTIVITY_READING];
    uint64_t verify = share(read, timed[PEN_TIMED_VERIFY], timed[PEN_TIMED_READ]);
    uint64_t decode = c->ns_of[PEN_ROLE_DECODE][PEN_ACTIVITY_DECODING];
    uint64_t rows = share(decode, timed[PEN_TIMED_ROWS], timed[PEN_TIMED_DECODE]);
    uint64_t store = share(decode, timed[PEN_TIMED_STORE], timed[PEN_TIMED_DECODE]);
    ret[PEN_LOAD_STAGE_FETCH] = c->ns_of[PEN_ROLE_FETCH][PEN_ACTIVITY_READING];
    ret[PEN_LOAD_STAGE_READ] = less(read, verify);
    ret[PEN_LOAD_STAGE_VERIFY] = verify;
    ret[PEN_LOAD_STAGE_DECODE] = less(decode, rows);
    ret[PEN_LOAD_STAGE_RESAMPLE] = less(rows, store);
    ret[PEN_LOAD_STAGE_STORE] = store;
}

void pen__counters_report(const PenLoadCounters *c, uint64_t wait_max_ns, PenLoaderStats *ret)
{
    uint64_t n = count_waits(c);
    ret->batches = c->batches;
    ret->samples = c->samples;
    ret->padded_samples = c->padded_samples;
    ret->substituted = c->substituted;
    ret->bytes_read = c->bytes_read;
    ret->ns_wait = c->ns_wait;
    ret->wait_p50_ns = percentile(c, n, 50, wait_max_ns);
    ret->wait_p95_ns = percentile(c, n, 95, wait_max_ns);
    ret->wait_p99_ns = percentile(c, n, 99, wait_max_ns);
    ret->wait_max_ns = wait_max_ns;
    ret->ready_mean = n ? (double)c->ready / (double)n : 0;
    fill_buckets(c, ret->wait_buckets);
    fill_stages(c, ret->stage_ns);
    ret->ns_decode_cpu = share(c->ns_of[PEN_ROLE_DECODE][PEN_ACTIVITY_DECODING],
                               c->timed.decode_cpu_ns, c->timed_decode_ns);
    ret->ns_fetch_idle = c->ns_of[PEN_ROLE_FETCH][PEN_ACTIVITY_IDLE];
    ret->ns_read_idle = c->ns_of[PEN_ROLE_READ][PEN_ACTIVITY_IDLE];
    ret->ns_decode_idle = c->ns_of[PEN_ROLE_DECODE][PEN_ACTIVITY_IDLE];
    ret->ns_memory_wait = c->ns_of[PEN_ROLE_READ][PEN_ACTIVITY_WAITING];
}
