/* SPDX-License-Identifier: Apache-2.0 */
#include "load/diagnosis/advice.h"
#include "tools.h"

/* More memory would allow more requests at a time. Where half of them are as fast, it brings
 * nothing: the network is the bottleneck, not the memory. */
static void check_requests(PenLoaderStats *s, const PenStages *stages)
{
    double scaling = pen__ceilings_scaling(stages);
    if (scaling > 0 && scaling < PEN_SCALES)
        s->io_threads_wanted = s->io_threads;
}

void pen_diagnose(const PenLoaderStats *stats, const PenRunFacts *facts, PenDiagnosis *ret)
{
    const PenRunFacts f = facts ? *facts : (PenRunFacts){0};
    PenLoaderStats s = *stats;
    PenBusy busy;
    check_requests(&s, f.stages);
    pen__busy_of(&s, f.since, f.transform_seconds, &busy);
    PenCeilings ceilings = pen__ceilings_of(&busy, f.stages);
    PenAdviceCase k = {.stats = &s, .facts = &f, .busy = &busy, .ceilings = &ceilings};
    *ret = (PenDiagnosis){.bottleneck = pen__limit_name(busy.bottleneck),
                          .second = pen__limit_name(busy.second),
                          .per_second = busy.per_second,
                          .wait_share = busy.seconds > 0 ? 1 - busy.consumer : 0};
    pen__ceilings_list(&ceilings, &busy, ret);
    pen__advice_list(&k, ret);
}
