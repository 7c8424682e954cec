/* SPDX-License-Identifier: Apache-2.0 */
#include "load/decode/sample.h"

#include "load/decode/clip.h"

static int decode_image(const PenImageDecoder *decoder, const PenOutField *f, PenTask *t)
{
    PenTaskImage *im = &t->images[f->image];
    return pen__image_decoder_run(decoder, f->program, &im->sample_plan, &im->encoded,
                                  pen__task_place(t, f), &t->error);
}

int pen__sample_decode(const PenLoadPlan *plan, const PenImageDecoder *decoder, PenTask *task)
{
    int r = PEN_OK;
    for (uint32_t i = 0; i < plan->n_fields && r == PEN_OK; i++) {
        const PenOutField *f = &plan->fields[i];
        if (f->kind == PEN_KIND_CLIP)
            r = pen__clip_decode(plan, decoder, f, task);
        else if (pen__field_is_image(f))
            r = decode_image(decoder, f, task);
    }
    return r;
}
