/* SPDX-License-Identifier: Apache-2.0 */
/* Several plans of one image: each row is decoded once, and goes into the first pass of every plan
 * that needs it while it is in the cache. */
#include "base/attr.h"
#include "ops/run/run.h"

typedef struct View {
    PenPlanRun run;
    PenPassRun pass;
    PenTurning turning;
    bool turns;
} View;

typedef struct Together {
    const PenRegion *region;
    View *views;
    uint32_t n;
    uint32_t y; /* the next row of the box */
} Together;

/* The part of some rows of the box that is of a view. */
static int give(View *v, const Together *t, const uint8_t *rows, size_t stride, uint32_t n,
                PenError *reterr)
{
    const PenBox *region = &v->run.sample_plan->region, *box = &t->region->box;
    uint32_t first = region->y - box->y, end = first + region->h;
    uint32_t from = PEN_MAX(t->y, first), to = PEN_MIN(t->y + n, end);
    if (from >= to || !v->pass.is_seen)
        return PEN_OK;
    rows += (from - t->y) * stride + (size_t)(region->x - box->x) * v->run.p->channels;
    if (!v->turns)
        return pen__run_push_rows(v->run.k, rows, stride, to - from, reterr);
    pen__run_turn_rows(&v->turning, rows, stride, to - from);
    return PEN_OK;
}

static int give_all(void *ctx, const uint8_t *rows, size_t stride, uint32_t n, PenError *reterr)
{
    Together *t = ctx;
    int r = PEN_OK;
    for (uint32_t i = 0; r == PEN_OK && i < t->n; i++)
        r = give(&t->views[i], t, rows, stride, n, reterr);
    t->y += n;
    return r;
}

static int begin(View *v)
{
    const PenSamplePlan *plan = v->run.sample_plan;
    int r = pen__run_check(&v->run);
    v->turns = pen__turn_needed(plan->shape.orientation);
    if (r == PEN_OK)
        r = pen__run_begin_pass(&v->run, &plan->steps[0].u.pass, plan->n_steps == 1, &v->pass);
    return r == PEN_OK && v->turns ? pen__run_begin_turn(&v->run, &v->turning) : r;
}

static int end(View *v)
{
    int r = PEN_OK;
    if (v->turns && v->pass.is_seen)
        r = pen__run_push_turned(&v->run, &v->turning);
    pen__run_end_pass(&v->run, &v->pass);
    return r == PEN_OK ? pen__run_steps(&v->run, 1) : r;
}

int pen__sample_run_together(PenDecodeContext *k, const PenSampleRun *runs, uint32_t n,
                             const PenImageHeader *header, const PenBox *box,
                             const PenLimits *limits, PenError *reterr)
{
    View views[PEN_MAX_TOGETHER];
    PenRegion region = {.box = *box,
                        .colour = runs[0].program->colour,
                        .shrink = runs[0].sample_plan->shrink,
                        .limits = limits,
                        .rows = give_all};
    Together together = {.region = &region, .views = views, .n = n};
    int r = PEN_OK;
    region.ctx = &together;
    for (uint32_t i = 0; r == PEN_OK && i < n; i++) {
        views[i].run = (PenPlanRun){.p = runs[i].program,
                                    .sample_plan = runs[i].sample_plan,
                                    .header = header,
                                    .limits = limits,
                                    .dst = runs[i].dst,
                                    .reterr = reterr};
        r = pen__decode_context_part(k, i, &views[i].run.k, reterr);
        if (r == PEN_OK)
            r = begin(&views[i]);
    }
    if (r == PEN_OK)
        r = pen__region_rows(k->decoder, header, &region, reterr);
    for (uint32_t i = 0; r == PEN_OK && i < n; i++)
        r = end(&views[i]);
    return r;
}

uint64_t pen__sample_memory_together(const PenSampleRun *runs, uint32_t n,
                                     const PenImageHeader *header, const PenBox *box)
{
    uint64_t bytes = pen__region_memory(header, box, runs[0].sample_plan->shrink);
    for (uint32_t i = 0; i < n; i++)
        bytes += pen__sample_plan_steps_memory(runs[i].program, runs[i].sample_plan);
    return bytes;
}
