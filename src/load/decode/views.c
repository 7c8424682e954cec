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

/* Views that are decoded together. */
typedef struct Group {
    PenSampleRun runs[PEN_MAX_TOGETHER];
    uint32_t n;
    PenBox box;     /* around their regions */
    uint64_t areas; /* of these, added up */
} Group;

/* Where decoding can begin anywhere, a region costs what its area does; elsewhere all that is
 * before it too. Raw pixels are there already. */
static bool is_worth_it(const Decoding *d, const Group *g)
{
    const PenEncoded *image = d->header.image;
    if (g->n < 2 || image->codec == PEN_STORED_RAW)
        return false;
    return (!image->tiled && !image->entries) || area(&g->box) < g->areas;
}

/* What every thread can have at the same time. */
static uint64_t fair_bytes(const Decoding *d)
{
    return d->decoder->own_bytes + d->decoder->shared->limit / d->plan->threads;
}

/* View `first` and the next ones like it. Returns the first of these that has no place. */
static uint32_t choose_group(const Decoding *d, uint32_t first, Group *ret)
{
    uint32_t i = first;
    ret->n = 0;
    ret->areas = 0;
    ret->box = d->images[first].sample_plan.region;
    for (; i < d->n && ret->n < PEN_MAX_TOGETHER; i++) {
        const PenSamplePlan *sample_plan = &d->images[i].sample_plan;
        if (!is_alike(d, first, i))
            continue;
        ret->box = around(ret->box, &sample_plan->region);
        ret->areas += area(&sample_plan->region);
        ret->runs[ret->n++] = (PenSampleRun){field_of(d, i)->program, sample_plan, place_of(d, i)};
    }
    return i;
}

/* ---- decoding ---- */

/* What is damaged between two views is not of them: then each is decoded alone. */
static int decode_together(Decoding *d, const Group *g, uint64_t need, bool *ret_failed)
{
    int r = pen__image_decoder_reserve(d->decoder, need, d->reterr);
    if (r != PEN_OK)
        return r;
    r = pen__sample_run_together(d->decoder->context, g->runs, g->n, &d->header, &g->box,
                                 &pen__limits_default, d->reterr);
    *ret_failed = r != PEN_OK;
    pen__image_decoder_release(d->decoder, need);
    return PEN_OK;
}

static int decode_each(Decoding *d, const Group *g)
{
    int r = PEN_OK;
    for (uint32_t i = 0; i < g->n && r == PEN_OK; i++)
        r = pen__image_decoder_run_parsed(d->decoder, g->runs[i].program, g->runs[i].sample_plan,
                                          &d->header, g->runs[i].dst, d->reterr);
    return r;
}

static int decode_group(Decoding *d, const Group *g)
{
    bool failed = true;
    int r = PEN_OK;
    if (is_worth_it(d, g)) {
        uint64_t need = pen__sample_memory_together(g->runs, g->n, &d->header, &g->box);
        if (need <= fair_bytes(d))
            r = decode_together(d, g, need, &failed);
    }
    return r == PEN_OK && failed ? decode_each(d, g) : r;
}

static int decode_alike(Decoding *d, uint32_t first)
{
    int r = PEN_OK;
    while (r == PEN_OK && first < d->n) {
        Group g;
        uint32_t next = choose_group(d, first, &g);
        r = decode_group(d, &g);
        for (; next < d->n && !is_alike(d, first, next); next++)
            continue;
        first = next;
    }
    return r;
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
