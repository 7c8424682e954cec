/* SPDX-License-Identifier: Apache-2.0 */
#include "load/diagnosis/ceilings.h"

/* A caller that was busy for less of the time does nothing with batches. */
#define IDLE_CONSUMER 0.02

static double divide(double a, double b)
{
    return a > 0 && b > 0 ? a / b : 0;
}

/* The smaller one of two rates, each of which may be unknown. */
static double least(double a, double b)
{
    return a <= 0 || (b > 0 && b < a) ? b : a;
}

static PenCeilings from_counters(const PenBusy *b)
{
    PenCeilings c = {0};
    for (int i = 0; i < PEN_LOAD_STAGE_COUNT; i++)
        c.stage[i] = divide(b->per_second * pen__busy_group(b, i)->all, b->stage_seconds[i]);
    c.supply = least(divide(b->per_second, pen__busy_share(&b->fetch)),
                     divide(b->per_second, pen__busy_share(&b->read)));
    c.cpu = divide(b->per_second, pen__busy_share(&b->decode));
    if (b->consumer >= IDLE_CONSUMER)
        c.consumer = b->per_second / b->consumer;
    return c;
}

/* Resampling and storing are measured together; the counters tell how the time divides. */
static void divide_pixels(PenCeilings *c, const PenBusy *b, double rate)
{
    double resample = b->stage_seconds[PEN_LOAD_STAGE_RESAMPLE];
    double store = b->stage_seconds[PEN_LOAD_STAGE_STORE];
    if (rate > 0 && resample + store > 0) {
        c->stage[PEN_LOAD_STAGE_RESAMPLE] = divide(rate * (resample + store), resample);
        c->stage[PEN_LOAD_STAGE_STORE] = divide(rate * (resample + store), store);
    }
}

static void take_measured(PenCeilings *c, const PenBusy *b, const double *rate)
{
    double verify = rate[PEN_STAGE_VERIFY], all = rate[PEN_STAGE_ALL];
    int supply = b->fetch.all > 0 ? PEN_LOAD_STAGE_FETCH : PEN_LOAD_STAGE_READ;
    if (rate[PEN_STAGE_READ] > 0)
        c->stage[supply] = c->supply = rate[PEN_STAGE_READ];
    if (verify > 0)
        c->stage[PEN_LOAD_STAGE_VERIFY] = verify;
    if (rate[PEN_STAGE_DECODE] > 0)
        c->stage[PEN_LOAD_STAGE_DECODE] = rate[PEN_STAGE_DECODE];
    divide_pixels(c, b, rate[PEN_STAGE_PIXELS]);
    if (verify > 0 && all > 0)
        c->cpu = 1 / (1 / verify + 1 / all);
    c->read_cold = rate[PEN_STAGE_READ_COLD];
}

PenCeilings pen__ceilings_of(const PenBusy *b, const PenStages *stages)
{
    PenCeilings c = from_counters(b);
    if (stages)
        take_measured(&c, b, stages->per_second);
    return c;
}

double pen__ceilings_scaling(const PenStages *stages)
{
    const double *rate = stages ? stages->per_second : NULL;
    if (!rate)
        return 0;
    return divide(rate[PEN_STAGE_READ_COLD] > 0 ? rate[PEN_STAGE_READ_COLD] : rate[PEN_STAGE_READ],
                  rate[PEN_STAGE_READ_HALF]);
}

/* ---- the list ---- */

static void add(PenDiagnosis *v, const char *name, double rate, double bottleneck)
{
    if (rate > 0)
        v->stages[v->n_stages++] =
            (PenDiagnosisStage){.name = name, .per_second = rate, .ratio = rate / bottleneck};
}

void pen__ceilings_list(const PenCeilings *c, const PenBusy *b, PenDiagnosis *ret)
{
    double base = 0;
    if (b->bottleneck < PEN_LOAD_STAGE_COUNT)
        base = c->stage[b->bottleneck];
    else if (b->bottleneck == PEN_LIMIT_CONSUMER || b->bottleneck == PEN_LIMIT_TRANSFORM)
        base = c->consumer;
    if (base <= 0)
        base = b->per_second;
    if (base <= 0)
        return;
    for (int i = 0; i < PEN_LOAD_STAGE_COUNT; i++) {
        add(ret, pen__limit_name(i), c->stage[i], base);
        if (i == PEN_LOAD_STAGE_READ)
            add(ret, "read_cold", c->read_cold, base);
    }
    add(ret, pen__limit_name(PEN_LIMIT_CONSUMER), c->consumer, base);
}
