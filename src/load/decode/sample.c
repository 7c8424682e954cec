/* SPDX-License-Identifier: Apache-2.0 */
#include "load/decode/sample.h"

#include "load/decode/clip.h"
#include "load/decode/views.h"
#include "load/read/fetch.h"

/* With all its views; `f` is the field of the first one. */
static int decode_image(const PenLoadPlan *plan, const PenImageDecoder *decoder,
                        const PenOutField *f, PenTask *t)
{
    PenTaskImage *im = &t->images[f->image];
    int r = f->n_views > 1 ? pen__views_decode(plan, decoder, f, t, NULL, &t->error)
                           : pen__image_decoder_run(decoder, f->program, &im->sample_plan,
                                                    &im->encoded, pen__task_place(t, f), &t->error);
    /* A table that is not of the file can make a part look broken, or like another kind of file. */
    bool is_part = im->encoded.partial && im->encoded.entries;
    bool is_content = r == PEN_E_DECODE || r == PEN_E_UNSUPPORTED || r == PEN_E_LIMIT;
    return is_part && is_content ? PEN_IMAGE_INCOMPLETE : r;
}

static int decode_all(const PenLoadPlan *plan, const PenImageDecoder *decoder, PenTask *task)
{
    int r = PEN_OK;
    for (uint32_t i = 0; i < plan->n_fields && r == PEN_OK; i++) {
        const PenOutField *f = &task->to.fields[i];
        if (f->kind == PEN_KIND_CLIP)
            r = pen__clip_decode(plan, decoder, f, task);
        else if (f->n_views)
            r = decode_image(plan, decoder, f, task);
    }
    return r;
}

int pen__sample_decode(PenTasks *tasks, const PenImageDecoder *decoder, PenTask *task)
{
    int r = decode_all(tasks->plan, decoder, task);
    if (r != PEN_IMAGE_INCOMPLETE)
        return r;
    task->complete = true;
    r = pen__fetch_for_worker(tasks, task);
    task->complete = false;
    return r == PEN_OK ? decode_all(tasks->plan, decoder, task) : r;
}
