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

PenCeilings pen__ceilings_of(const PenBusy *b, const PenMeasured *measured)
{
    PenCeilings c = from_counters(b);
    int supply = b->fetch.all > 0 ? PEN_LOAD_STAGE_FETCH : PEN_LOAD_STAGE_READ;
    if (measured && measured->read > 0)
        c.stage[supply] = c.supply = measured->read;
    if (measured)
        c.read_cold = measured->read_cold;
    return c;
}

double pen__ceilings_scaling(const PenMeasured *measured)
{
    if (!measured)
        return 0;
    return divide(measured->read_cold > 0 ? measured->read_cold : measured->read,
                  measured->read_half);
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
