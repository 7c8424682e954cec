/* SPDX-License-Identifier: Apache-2.0 */
#include "load/diagnosis/advice.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/attr.h"

/* A smaller gain is not worth a change. */
#define LEAST_GAIN 1.05
/* The share of the free memory that a pack may take. */
#define MEMORY_SHARE 0.8
#define MIB (UINT64_C(1) << 20)

/* What a change leaves as it is, and what still limits the speed then. */
enum { KEEP_CPU = 1, KEEP_SUPPLY = 2, KEEP_CONSUMER = 4 };

static double least(double a, double b)
{
    return a <= 0 || (b > 0 && b < a) ? b : a;
}

/* The rate if `rate` (0: unlimited) and everything that is kept limit it. */
static double limited(const PenAdviceCase *k, double rate, int keep)
{
    const PenCeilings *c = k->ceilings;
    if (keep & KEEP_CPU)
        rate = least(rate, c->cpu);
    if (keep & KEEP_SUPPLY)
        rate = least(rate, c->supply);
    if (keep & KEEP_CONSUMER)
        rate = least(rate, c->consumer);
    return rate;
}

PEN_PRINTF(4, 5)
static void add(PenDiagnosis *v, const char *change, double rate, const char *format, ...)
{
    va_list args;
    if (v->n_advices == PEN_DIAGNOSIS_ADVICES || v->per_second <= 0 || rate <= 0)
        return;
    PenAdvice *a = &v->advices[v->n_advices++];
    *a = (PenAdvice){.change = change, .per_second = rate, .gain = rate / v->per_second};
    va_start(args, format);
    vsnprintf(a->text, sizeof a->text, format, args);
    va_end(args);
}

static void add_gain(PenDiagnosis *v, const char *change, double rate, const char *text)
{
    if (rate >= LEAST_GAIN * v->per_second)
        add(v, change, rate, "%s", text);
}

/* ---- too much to compute ---- */

static void advise_threads(const PenAdviceCase *k, PenDiagnosis *ret)
{
    uint32_t threads = k->stats->threads, ranks = PEN_MAX(k->stats->node_ranks, 1u);
    uint32_t cores = k->facts->cores / ranks;
    double cpu = k->facts->cpu_seconds, rate = 0;
    if (!threads || threads >= cores)
        return;
    rate = k->busy->per_second * cores / threads;
    if (cpu > 0) /* reading and the caller need cores, too */
        rate = least(rate, k->busy->samples * k->facts->cores / cpu);
    rate = limited(k, rate, KEEP_SUPPLY | KEEP_CONSUMER);
    if (rate >= LEAST_GAIN * ret->per_second)
        add(ret, "threads", rate, "Use threads=%u instead of %u: this process has %u cores.", cores,
            threads, cores);
}

/* Seconds of all decoding threads together for one sample. */
typedef struct Cost {
    double read, decode, resample, store;
} Cost;

/* Readers copy from the page cache and compute checksums, on the same cores. What they read over a
 * network, they wait for. */
static double read_cost(const PenAdviceCase *k, double verify)
{
    const PenLoaderStats *s = k->stats;
    const PenMeasured *m = k->facts->measured;
    if (k->facts->is_remote || !m || m->read <= 0)
        return verify;
    return (double)s->io_threads / PEN_MAX(s->threads, 1u) / m->read;
}

static Cost cost_of(const PenAdviceCase *k)
{
    const PenBusy *b = k->busy;
    const double *stage = b->stage_seconds;
    double each = 1 / (PEN_MAX(b->samples, 1.0) * PEN_MAX(k->stats->threads, 1u));
    return (Cost){.read = read_cost(k, stage[PEN_LOAD_STAGE_VERIFY] * each),
                  .decode = stage[PEN_LOAD_STAGE_DECODE] * each,
                  .resample = stage[PEN_LOAD_STAGE_RESAMPLE] * each,
                  .store = stage[PEN_LOAD_STAGE_STORE] * each};
}

static double total(const Cost *c)
{
    return c->read + c->decode + c->resample + c->store;
}

/* To copy the bytes of a sample in memory; 0 = not known. */
static double copy_cost(const PenAdviceCase *k)
{
    const PenMeasured *m = k->facts->measured;
    if (!m || m->copy_bytes <= 0 || k->busy->samples <= 0)
        return 0;
    return k->busy->bytes / k->busy->samples / m->copy_bytes;
}

/* The cost of reading `ratio` times as many bytes. A part of it belongs to the sample, and the rest
 * to its bytes, which are copied and checked. */
static double read_more(const PenAdviceCase *k, double read, double ratio)
{
    const PenBusy *b = k->busy;
    double copy = copy_cost(k), threads = PEN_MAX(k->stats->threads, 1u);
    if (copy <= 0)
        return read * ratio;
    double verify = b->stage_seconds[PEN_LOAD_STAGE_VERIFY] / (b->samples * threads);
    return read + (ratio - 1) * PEN_MIN(copy + verify, read);
}

/* The rate with another cost per sample and `bytes` times as many bytes to read. */
static double with_cost(const PenAdviceCase *k, const Cost *old, const Cost *new, double bytes)
{
    double rate = total(new) > 0 ? k->busy->per_second * total(old) / total(new) : 0;
    const PenRunFacts *f = k->facts;
    double supply = k->ceilings->supply;
    int is_cached =
        f->memory_bytes && (double)f->pack_bytes * bytes <= MEMORY_SHARE * (double)f->memory_bytes;
    if (!is_cached && k->ceilings->read_cold > 0)
        supply = k->ceilings->read_cold;
    if (bytes > 0)
        rate = least(rate, supply / bytes);
    return limited(k, rate, KEEP_CONSUMER);
}

static void advise_raw(const PenAdviceCase *k, PenDiagnosis *ret)
{
    const PenMeasured *m = k->facts->measured;
    Cost old = cost_of(k), new = old;
    double bytes = m ? m->raw_ratio : 0;
    if (k->facts->is_remote || old.decode < 0.05 * total(&old) || (m && bytes <= 1))
        return; /* a network seldom has room for pixels; raw images are not decoded */
    /* Decoded rows are in the processor's cache, raw ones in memory. A copy reads and writes. */
    new.decode = bytes *copy_cost(k) / 2;
    new.read = read_more(k, old.read, bytes);
    double rate = with_cost(k, &old, &new, bytes);
    if (rate < LEAST_GAIN * ret->per_second)
        return;
    if (bytes > 0)
        add(ret, "raw-pack", rate,
            "Pack the source again with 'penstock pack SRC -o NEW.pen --mode raw', so that nothing "
            "is decoded. The pack is larger, and the loader reads %.0f times as many bytes.",
            bytes);
    else
        add(ret, "raw-pack", rate,
            "Pack the source again with 'penstock pack SRC -o NEW.pen --mode raw', so that nothing "
            "is decoded. The pack is then much larger.");
}

static void advise_smaller(const PenAdviceCase *k, PenDiagnosis *ret)
{
    const PenMeasured *m = k->facts->measured;
    if (!m || !m->short_side || m->area_ratio <= 0 || m->area_ratio >= 1)
        return;
    double area = m->area_ratio;
    Cost old = cost_of(k), new = old;
    new.read = read_more(k, old.read, area);
    new.decode *= area;
    new.resample *= area;
    int is_raw = m->raw_ratio > 0 && m->raw_ratio <= 1;
    double rate = k->busy->bottleneck >= PEN_LOAD_STAGE_DECODE
                      ? with_cost(k, &old, &new, area)
                      : limited(k, k->busy->per_second / area, KEEP_CPU | KEEP_CONSUMER);
    if (rate >= LEAST_GAIN * ret->per_second)
        add(ret, "smaller-images", rate,
            "Pack smaller images with 'penstock pack SRC -o NEW.pen --mode %s --short-side %u'. "
            "%sSmall crops then have less detail.",
            is_raw ? "raw" : "encode", m->short_side,
            is_raw ? "" : "The images are encoded as JPEG again. ");
}

/* ---- too much to read ---- */

static double more_requests(const PenAdviceCase *k)
{
    double scaling = pen__ceilings_scaling(k->facts->measured);
    if (scaling < PEN_SCALES)
        return 0;
    return limited(k, k->busy->per_second * PEN_MIN(scaling, 2.0), KEEP_CPU | KEEP_CONSUMER);
}

static void advise_requests(const PenAdviceCase *k, PenDiagnosis *ret)
{
    double rate = more_requests(k);
    uint32_t now = k->stats->io_threads;
    if (rate < LEAST_GAIN * ret->per_second)
        return;
    if (k->facts->is_remote)
        add(ret, "more-requests", rate,
            "Make more requests at a time: io_threads=%u instead of %u, and in_flight=%u in "
            "storage_options.",
            2 * now, now, 2 * now);
    else
        add(ret, "more-requests", rate, "Read with more threads: io_threads=%u instead of %u.",
            2 * now, now);
}

static int fits_in_memory(const PenRunFacts *f)
{
    return f->pack_bytes && (double)f->pack_bytes <= MEMORY_SHARE * (double)f->memory_bytes;
}

static void advise_disk(const PenAdviceCase *k, PenDiagnosis *ret)
{
    double rate = limited(k, 0, KEEP_CPU | KEEP_CONSUMER);
    if (k->facts->is_preloaded)
        return; /* there is nothing faster than memory */
    if (fits_in_memory(k->facts))
        add_gain(ret, "preload", rate, "Load the pack into memory first: preload=True.");
    add_gain(ret, "faster-disk", rate,
             "Copy the pack to a faster disk with 'penstock copy NAME.pen DIR/NAME.pen', or use a "
             "cache on one (cache=DIR).");
    advise_requests(k, ret);
}

/* Each request has some samples of a block, and there are many, because blocks do not fit. */
static void advise_entire_blocks(const PenAdviceCase *k, PenDiagnosis *ret)
{
    const PenLoaderStats *s = k->stats;
    double rate = limited(k, 0, KEEP_CPU | KEEP_CONSUMER);
    unsigned long long wanted = s->memory_wanted_bytes;
    if (wanted)
        add(ret, "memory", PEN_MAX(rate, k->busy->per_second),
            "Give the loader more memory: memory=\"%lluMiB\". It then requests entire blocks "
            "instead of %s.",
            (wanted - 1) / MIB + 1,
            s->fetch_unit == PEN_FETCH_SAMPLES ? "single samples" : "a few samples each");
}

static void advise_network(const PenAdviceCase *k, PenDiagnosis *ret)
{
    double rate = limited(k, 0, KEEP_CPU | KEEP_CONSUMER);
    advise_entire_blocks(k, ret);
    if (!k->facts->has_cache)
        add_gain(ret, "cache", rate,
                 "Add a cache on a fast local disk (cache=DIR). It helps from the second epoch on, "
                 "if the disk is fast enough.");
    if (fits_in_memory(k->facts))
        add_gain(ret, "preload", rate, "Load the pack into memory first: preload=True.");
    advise_requests(k, ret);
    add_gain(ret, "faster-network", rate, "Use a faster network, or a store that is nearer.");
    if (k->facts->throttles)
        add(ret, "throttled", ret->per_second,
            "The store asked %llu times to slow down. Use fewer requests at a time, or spread the "
            "load over more key prefixes.",
            (unsigned long long)k->facts->throttles);
}

/* ---- the rest ---- */

/* The rate of threads that fetch or read all the time, instead of waiting for memory. */
static double unhindered(const PenBusy *b)
{
    double share = pen__busy_share(b->fetch.all > 0 ? &b->fetch : &b->read);
    return share > 0 ? b->per_second / share : 0;
}

static void advise_memory(const PenAdviceCase *k, PenDiagnosis *ret)
{
    const PenLoaderStats *s = k->stats;
    double rate = unhindered(k->busy);
    if (s->memory_wanted_bytes) {
        advise_entire_blocks(k, ret);
        return;
    }
    if (s->io_threads && s->io_threads < s->io_threads_wanted)
        rate = k->busy->per_second * s->io_threads_wanted / s->io_threads;
    rate = limited(k, rate, KEEP_CPU | KEEP_CONSUMER);
    if (rate > k->busy->per_second && s->io_threads < s->io_threads_wanted)
        add(ret, "memory", rate,
            "Give the loader more memory (memory=). It then makes %u requests at a time instead "
            "of %u.",
            s->io_threads_wanted, s->io_threads);
    else
        add(ret, "memory", PEN_MAX(rate, k->busy->per_second),
            "Give the loader more memory (memory=): it waits until memory is released.");
}

/* The rate of the decoding threads if each has a core. The function takes one from them. */
static double decode_alone(const PenAdviceCase *k)
{
    const PenBusy *b = k->busy;
    uint32_t cores = k->facts->cores / PEN_MAX(k->stats->node_ranks, 1u);
    double alone =
        b->decode_cpu > 0 ? b->samples * PEN_MIN(k->stats->threads, cores) / b->decode_cpu : 0;
    return PEN_MAX(alone, k->ceilings->cpu);
}

static void advise_transform(const PenAdviceCase *k, PenDiagnosis *ret)
{
    const PenBusy *b = k->busy;
    double rest = b->consumer * b->seconds - b->transform_seconds;
    double rate = rest > 0.02 * b->seconds ? b->samples / rest : 0;
    rate = least(rate, decode_alone(k));
    add(ret, "python-transform", limited(k, rate, KEEP_SUPPLY),
        "Replace the Python function transform= by operations of the pipeline, which run in "
        "threads. It took %.0f %% of the time.",
        100 * b->transform_seconds / b->seconds);
}

static void advise_consumer(const PenAdviceCase *k, PenDiagnosis *ret)
{
    double most = limited(k, 0, KEEP_CPU | KEEP_SUPPLY);
    if (most >= LEAST_GAIN * ret->per_second)
        add(ret, "consumer", ret->per_second,
            "Nothing to change in loading: it could deliver about %.0f samples/s.", most);
    else
        add(ret, "consumer", ret->per_second,
            "Nothing to change in loading: the training step takes longer.");
}

/* Of equal gains, the order in which they were added stays. */
static void sort(PenDiagnosis *v)
{
    for (uint32_t i = 1; i < v->n_advices; i++)
        for (uint32_t j = i; j > 0 && v->advices[j - 1].gain < v->advices[j].gain; j--) {
            PenAdvice t = v->advices[j];
            v->advices[j] = v->advices[j - 1];
            v->advices[j - 1] = t;
        }
}

void pen__advice_list(const PenAdviceCase *k, PenDiagnosis *ret)
{
    switch (k->busy->bottleneck) {
    case PEN_LOAD_STAGE_FETCH:
        advise_network(k, ret);
        advise_smaller(k, ret);
        break;
    case PEN_LOAD_STAGE_READ:
        advise_disk(k, ret);
        advise_smaller(k, ret);
        break;
    case PEN_LOAD_STAGE_VERIFY:
        advise_requests(k, ret);
        advise_smaller(k, ret);
        break;
    case PEN_LOAD_STAGE_DECODE:
    case PEN_LOAD_STAGE_RESAMPLE:
    case PEN_LOAD_STAGE_STORE:
        advise_threads(k, ret);
        advise_raw(k, ret);
        advise_smaller(k, ret);
        break;
    case PEN_LIMIT_MEMORY:
        advise_memory(k, ret);
        break;
    case PEN_LIMIT_TRANSFORM:
        advise_transform(k, ret);
        break;
    case PEN_LIMIT_CONSUMER:
        advise_consumer(k, ret);
        break;
    default:
        break;
    }
    sort(ret);
}
