/* SPDX-License-Identifier: Apache-2.0 */
/* What the counters of a run do not tell: how fast samples are read alone, how fast memory is
 * copied, and what other packs of the same images would need. */
#include "base/machine/cores.h"
#include "base/machine/cpu.h"
#include "base/sys.h"
#include "load/measure/copies.h"
#include "load/measure/reading.h"
#include "load/plan/builder.h"
#include "load/read/sample.h"
#include "load/task.h"
#include "tools.h"

#define WHERE "load/measure"

enum { MAX_SAMPLES = 100 };

const char *pen_cpu_tier(void)
{
    return pen__cpu_name(pen__cpu());
}

unsigned pen_cpu_cores(void)
{
    return pen__thread_cores();
}

/* ---- what other packs of the same images would need ---- */

typedef struct Sizes {
    double stored, raw; /* bytes to read */
    double area;        /* of the images with short_side, divided by what they have */
} Sizes;

/* A little more than the result, as 256 for 224: crops still vary. */
static uint32_t short_side(const PenOutField *f)
{
    const int64_t *size = f->tensor.shape + (f->tensor.channels_last ? 1 : 2);
    int64_t side = PEN_MIN(size[0], size[1]);
    return f->kind == PEN_KIND_IMAGE && f->tensor.n_dims == 4 && side > 0 && side < 10000
               ? (uint32_t)(side * 8 / 7)
               : 0;
}

static void add_image(const PenTaskImage *im, uint32_t shorter, Sizes *sizes)
{
    const PenEncoded *e = &im->encoded;
    double side = PEN_MAX(PEN_MIN(e->width, e->height), 1u);
    double shrunk = PEN_MIN((double)shorter / side, 1.0);
    sizes->stored += (double)e->bytes;
    sizes->raw +=
        (double)e->width * (im->sample_plan.region.h << im->sample_plan.shrink) * e->channels;
    sizes->area += shrunk * shrunk;
}

/* The sample at a place of the first epoch, as a loader reads it. */
static int read_sample(const PenLoadPlan *plan, const PenOrder *order, uint64_t i, uint8_t *sink,
                       uint32_t shorter, Sizes *sizes, PenError *reterr)
{
    PenTask *t = NULL;
    PenLocation place = {0};
    PenChosen chosen = pen__load_plan_choose(plan, 0, pen__order_at(order, i));
    int r = pen__task_new(plan, &t, reterr);
    if (r < 0)
        return r;
    t->to.sample = chosen.sample;
    t->to.ordinal = chosen.ordinal;
    t->to.memory = sink;
    t->to.pack = plan->pack;
    t->to.fields = plan->fields;
    r = pen__sample_locate(plan, t, &place, reterr);
    if (r == PEN_OK)
        r = pen__sample_read(plan, t, &place, reterr);
    if (r == PEN_OK)
        add_image(&t->images[plan->fields[plan->first_image].image], shorter, sizes);
    pen__location_release(plan->pack, &place);
    pen__task_free(plan, &t);
    return r;
}

/* Of the first image field. From far away, each sample can take a second: no more of them than
 * `seconds` allow. */
static int compare_packs(const PenLoadPlan *plan, double seconds, PenMeasured *ret,
                         PenError *reterr)
{
    PenOrder order;
    Sizes sizes = {0};
    uint64_t i = 0, end = pen__sys->now_ns() + (uint64_t)(seconds * 1e9);
    if (plan->first_image < 0)
        return PEN_OK;
    uint32_t shorter = short_side(&plan->fields[plan->first_image]);
    uint8_t *sink = pen__zalloc((size_t)plan->slot_bytes);
    int r = pen__order_init(&order, &plan->state.order, 0, reterr);
    if (r == PEN_OK && !sink)
        r = pen__fail_memory(reterr, WHERE, "samples");
    for (; r == PEN_OK && i < PEN_MIN(plan->state.order.n, (uint64_t)MAX_SAMPLES); i++) {
        if (i && pen__sys->now_ns() >= end)
            break;
        r = read_sample(plan, &order, i, sink, shorter, &sizes, reterr);
    }
    pen__free(sink);
    ret->short_side = shorter;
    ret->raw_ratio = sizes.stored > 0 ? sizes.raw / sizes.stored : 0;
    ret->area_ratio = i ? sizes.area / (double)i : 0;
    return r;
}

int pen_measure(PenPack *pack, const PenLoaderSettings *settings, double seconds, PenMeasured *ret,
                PenError *reterr)
{
    PenLoadPlan plan;
    PenMeasured measured = {0};
    PenReadingRates rates = {0};
    int r = pen__load_plan_build(&plan, pack, settings, reterr);
    if (r < 0)
        return r;
    r = compare_packs(&plan, seconds, &measured, reterr);
    if (r == PEN_OK)
        r = pen__copies_measure(plan.threads, plan.shares.total, seconds, &measured.copy_bytes,
                                reterr);
    if (r == PEN_OK)
        r = pen__reading_measure(&plan, seconds, &rates, reterr);
    measured.read = rates.warm;
    measured.read_cold = rates.cold;
    measured.read_half = rates.half;
    pen__load_plan_fini(&plan);
    if (r == PEN_OK)
        *ret = measured;
    return r;
}
