/* SPDX-License-Identifier: Apache-2.0 */
#include <penstock/diagnosis.h>

#include <string.h>

#include "base/abi.h"
#include "base/attr.h"
#include "load/diagnosis/advice.h"

static const PenRunFacts DEFAULTS = {.struct_size = sizeof DEFAULTS};

void pen_run_facts_init_sized(PenRunFacts *facts, size_t bytes)
{
    pen__settings_default(facts, bytes, &DEFAULTS, sizeof DEFAULTS);
}

/* More memory would allow more requests at a time. Where half of them are as fast, it brings
 * nothing: the network is the bottleneck, not the memory. */
static void check_requests(PenLoaderStats *s, const PenStages *stages)
{
    double scaling = pen__ceilings_scaling(stages);
    if (scaling > 0 && scaling < PEN_SCALES)
        s->io_threads_wanted = s->io_threads;
}

int pen_diagnose_sized(const PenLoaderStats *stats, const PenRunFacts *facts, PenDiagnosis *ret,
                       size_t ret_bytes, PenError *reterr)
{
    PenRunFacts f = DEFAULTS;
    PenLoaderStats s = {0};
    PenStages stages = {0};
    PenBusy busy;
    int r = pen__settings_copy(&f, sizeof f, facts, "pen_run_facts_init", reterr);
    if (r < 0)
        return r;
    memcpy(&s, stats, PEN_MIN(stats->struct_size, sizeof s)); /* each may be of an older library */
    if (f.stages)
        memcpy(&stages, f.stages, PEN_MIN(f.stages->struct_size, sizeof stages));
    f.stages = f.stages ? &stages : NULL;
    check_requests(&s, f.stages);
    pen__busy_of(&s, f.since, f.transform_seconds, &busy);
    PenCeilings ceilings = pen__ceilings_of(&busy, f.stages);
    PenAdviceCase k = {.stats = &s, .facts = &f, .busy = &busy, .ceilings = &ceilings};
    PenDiagnosis v = {.struct_size = sizeof v,
                      .bottleneck = pen__limit_name(busy.bottleneck),
                      .second = pen__limit_name(busy.second),
                      .per_second = busy.per_second,
                      .wait_share = busy.seconds > 0 ? 1 - busy.consumer : 0};
    pen__ceilings_list(&ceilings, &busy, &v);
    pen__advice_list(&k, &v);
    pen__result_copy(ret, ret_bytes, &v, sizeof v);
    return PEN_OK;
}
