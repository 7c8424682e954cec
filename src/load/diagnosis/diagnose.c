/* SPDX-License-Identifier: Apache-2.0 */
#include "load/diagnosis/advice.h"
#include "tools.h"

/* More memory would allow more requests at a time. Where half of them are as fast, it brings
 * nothing: the network is the bottleneck, not the memory. */
static void check_requests(PenLoaderStats *s, const PenMeasured *measured)
{
    double scaling = pen__ceilings_scaling(measured);
    if (scaling > 0 && scaling < PEN_SCALES)
        s->io_threads_wanted = s->io_threads;
}

/* What to do where no change has a gain that is worth it. */
static const char *note(const PenDiagnosis *v, int bottleneck)
{
    if (v->n_advices)
        return NULL;
    if (v->per_second <= 0)
        return "No batch has been delivered yet.";
    if (bottleneck == PEN_LIMIT_UNKNOWN)
        return "No part of the loader was busy for half of the time. To see what its threads wait "
               "for, record a trace: set PENSTOCK_TRACE=run.json.gz in the environment of the job, "
               "or run 'penstock doctor NAME.pen --trace run.json.gz'.";
    return "No single change brings 5 % or more. A faster machine or a simpler pipeline would "
           "help.";
}

void pen_diagnose(const PenLoaderStats *stats, const PenRunFacts *facts, PenDiagnosis *ret)
{
    const PenRunFacts f = facts ? *facts : (PenRunFacts){0};
    PenLoaderStats s = *stats;
    PenBusy busy;
    check_requests(&s, f.measured);
    pen__busy_of(&s, f.since, f.transform_seconds, &busy);
    PenCeilings ceilings = pen__ceilings_of(&busy, f.measured);
    PenAdviceCase k = {.stats = &s, .facts = &f, .busy = &busy, .ceilings = &ceilings};
    *ret = (PenDiagnosis){.bottleneck = pen__limit_name(busy.bottleneck),
                          .second = pen__limit_name(busy.second),
                          .per_second = busy.per_second,
                          .wait_share = busy.seconds > 0 ? 1 - busy.consumer : 0};
    pen__ceilings_list(&ceilings, &busy, ret);
    pen__advice_list(&k, ret);
    ret->note = note(ret, busy.bottleneck);
}
