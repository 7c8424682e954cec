/* SPDX-License-Identifier: Apache-2.0 */
#include "load/decode/views.h"

typedef struct Decoding {
    const PenLoadPlan *plan;
    const PenImageDecoder *decoder;
    const PenTask *task;
    const PenTaskImage *images; /* the first of n */
    const PenView *views;
    uint32_t n;
    PenImageHeader header;
    uint8_t *out; /* NULL: the batch */
    PenError *reterr;
} Decoding;

static const PenOutField *field_of(const Decoding *d, uint32_t i)
{
    return &d->task->to.fields[d->views[i].field];
}

static uint8_t *place_of(const Decoding *d, uint32_t i)
{
    const PenOutField *f = field_of(d, i);
    return d->out ? d->out
                  : pen__task_place(d->task, f) + f->bytes / f->repeats * d->views[i].repeat;
}

/* ---- which views can be decoded together ---- */

static bool is_alike(const Decoding *d, uint32_t i, uint32_t k)
{
    return d->images[i].sample_plan.shrink == d->images[k].sample_plan.shrink &&
           pen__program_colour(field_of(d, i)->program) ==
               pen__program_colour(field_of(d, k)->program);
}

static bool is_first_alike(const Decoding *d, uint32_t i)
{
    for (uint32_t k = 0; k < i; k++)
        if (is_alike(d, i, k))
            return false;
    return true;
}

static PenBox around(PenBox a, const PenBox *b)
{
    uint32_t right = PEN_MAX(a.x + a.w, b->x + b->w), below = PEN_MAX(a.y + a.h, b->y + b->h);
    uint32_t x = PEN_MIN(a.x, b->x), y = PEN_MIN(a.y, b->y);
    return (PenBox){.x = x, .y = y, .w = right - x, .h = below - y};
}

static uint64_t area(const PenBox *b)
{
    return (uint64_t)b->w * b->h;
}

/* Where decoding can begin anywhere, a region costs what its area does; elsewhere all that is
 * before it too. Raw pixels are there already. */
static bool is_worth_it(const Decoding *d, const PenSharedBox *shared, uint64_t areas)
{
    const PenEncoded *image = d->header.image;
    if (image->codec == PEN_STORED_RAW)
        return false;
    return (!image->tiled && !image->entries) ||
           area(&shared->box) + area(&shared->box) / 8 < areas;
}

/* What every thread can have at the same time. */
static uint64_t fair_bytes(const Decoding *d)
{
    return d->decoder->own_bytes + d->decoder->shared->limit / d->plan->threads;
}

/* The box for view `first` and those like it, with the memory it takes. False: they are decoded
 * one by one. */
static bool choose_box(Decoding *d, uint32_t first, PenSharedBox *ret, uint64_t *ret_need)
{
    uint64_t areas = 0, steps = 0;
    uint32_t n = 0;
    *ret = (PenSharedBox){.box = d->images[first].sample_plan.region,
                          .colour = pen__program_colour(field_of(d, first)->program),
                          .shrink = d->images[first].sample_plan.shrink};
    for (uint32_t i = first; i < d->n; i++) {
        const PenSamplePlan *sample_plan = &d->images[i].sample_plan;
        if (!is_alike(d, first, i))
            continue;
        uint64_t more = pen__sample_plan_shared_memory(field_of(d, i)->program, sample_plan);
        ret->box = around(ret->box, &sample_plan->region);
        areas += area(&sample_plan->region);
        steps = PEN_MAX(steps, more);
        n++;
    }
    *ret_need = pen__shared_box_memory(&d->header, ret) + steps;
    return n > 1 && *ret_need <= fair_bytes(d) && is_worth_it(d, ret, areas);
}

/* ---- decoding ---- */

static int run_shared(Decoding *d, uint32_t first, const PenSharedBox *shared)
{
    int r = PEN_OK;
    for (uint32_t i = first; i < d->n && r == PEN_OK; i++)
        if (is_alike(d, first, i))
            r = pen__sample_run_shared(d->decoder->context, field_of(d, i)->program,
                                       &d->images[i].sample_plan, &d->header, shared,
                                       place_of(d, i), d->reterr);
    return r;
}

/* What is damaged between two views is not of them: then each is decoded alone. */
static int decode_shared(Decoding *d, uint32_t first, const PenSharedBox *shared, uint64_t need,
                         bool *ret_failed)
{
    int r = pen__image_decoder_reserve(d->decoder, need, d->reterr);
    if (r != PEN_OK)
        return r;
    r = pen__shared_box_decode(d->decoder->context, &d->header, shared, &pen__limits_default,
                               d->reterr);
    *ret_failed = r != PEN_OK;
    r = *ret_failed ? PEN_OK : run_shared(d, first, shared);
    pen__image_decoder_release(d->decoder, need);
    return r;
}

static int decode_each(Decoding *d, uint32_t first)
{
    int r = PEN_OK;
    for (uint32_t i = first; i < d->n && r == PEN_OK; i++)
        if (is_alike(d, first, i))
            r = pen__image_decoder_run_parsed(d->decoder, field_of(d, i)->program,
                                              &d->images[i].sample_plan, &d->header, place_of(d, i),
                                              d->reterr);
    return r;
}

static int decode_alike(Decoding *d, uint32_t first)
{
    PenSharedBox shared;
    uint64_t need;
    bool failed = true;
    int r = PEN_OK;
    if (choose_box(d, first, &shared, &need))
        r = decode_shared(d, first, &shared, need, &failed);
    return r == PEN_OK && failed ? decode_each(d, first) : r;
}

int pen__views_decode(const PenLoadPlan *plan, const PenImageDecoder *decoder, const PenOutField *f,
                      const PenTask *task, uint8_t *out, PenError *reterr)
{
    Decoding d = {.plan = plan,
                  .decoder = decoder,
                  .task = task,
                  .images = &task->images[f->image],
                  .views = &plan->views[f->image],
                  .n = f->n_views,
                  .out = out,
                  .reterr = reterr};
    int r = pen__image_header(&d.images->encoded, &pen__limits_default, &d.header, reterr);
    for (uint32_t i = 0; i < d.n && r == PEN_OK; i++)
        if (is_first_alike(&d, i))
            r = decode_alike(&d, i);
    return r;
}
