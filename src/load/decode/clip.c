/* SPDX-License-Identifier: Apache-2.0 */
#include "load/decode/clip.h"

#include <string.h>

#include "load/decode/video.h"

#define WHERE "load/decode"

typedef struct Decoding {
    const PenImageDecoder *decoder;
    const PenOutField *field;
    PenTask *task;
    PenTaskClip *clip;
    PenDrawKey key;
    uint8_t *out; /* of the sample */
    uint32_t view;
    bool has_sample_plan; /* for frames of sample_plan.shape in this view */
} Decoding;

/* Frames of one clip are as large as each other, but for those of strange origin. */
static int make_sample_plan(Decoding *d, const PenClipFrame *frame)
{
    PenSamplePlan *sample_plan = &d->clip->sample_plan;
    PenImageShape shape = {frame->encoded.width, frame->encoded.height, frame->orientation,
                           frame->encoded.codec == PEN_STORED_JPEG};
    if (d->has_sample_plan && shape.width == sample_plan->shape.width &&
        shape.height == sample_plan->shape.height &&
        shape.orientation == sample_plan->shape.orientation &&
        shape.shrinks == sample_plan->shape.shrinks)
        return PEN_OK;
    int r = pen__sample_plan_make_view(d->field->program, &shape, d->key, d->task->to.sample,
                                       d->view, sample_plan, &d->task->error);
    d->has_sample_plan = r == PEN_OK;
    return r;
}

/* The decoder may change the bytes, and they may be needed again; and what it may look at behind
 * them is here none of another frame. */
static int copy_bytes(Decoding *d, PenEncoded *image)
{
    PenBuf *one = &d->clip->one;
    one->bytes = 0;
    if (pen__buf_reserve(one, image->bytes + PEN_SLACK) < 0)
        return pen__fail_memory(&d->task->error, WHERE, "a frame");
    memcpy(one->data, image->data, image->bytes);
    memset(one->data + image->bytes, 0, PEN_SLACK);
    image->data = one->data;
    return PEN_OK;
}

static int decode_frame(Decoding *d, uint32_t i, uint8_t *to)
{
    const PenClipFrame *frame = (const PenClipFrame *)(const void *)d->clip->frames.data + i;
    PenEncoded image = pen__task_frame(d->clip, i);
    int r = make_sample_plan(d, frame);
    if (r == PEN_OK)
        r = copy_bytes(d, &image);
    if (r == PEN_OK)
        r = pen__image_decoder_run(d->decoder, d->field->program, &d->clip->sample_plan, &image, to,
                                   &d->task->error);
    if (r < 0)
        pen__error_prefix(&d->task->error, "frame %u", frame->number);
    return r;
}

/* A frame that is there twice was padded, or asked for so: it is decoded once. */
static int decode_view(Decoding *d, const PenClipShape *shape)
{
    const PenProgram *p = d->field->program;
    const uint32_t *chosen = (const uint32_t *)(const void *)d->clip->chosen.data +
                             (size_t)(d->view / shape->crops) * shape->frames;
    int r = PEN_OK;
    d->has_sample_plan = false;
    for (uint32_t i = 0; r == PEN_OK && i < shape->frames; i++) {
        uint8_t *to = d->out + pen__program_frame_at(p, d->view, i);
        uint32_t same = 0;
        while (same < i && chosen[same] != chosen[i])
            same++;
        if (same < i)
            pen__program_copy_frame(p, to, d->out + pen__program_frame_at(p, d->view, same));
        else
            r = decode_frame(d, chosen[i], to);
    }
    return r;
}

int pen__clip_decode(const PenLoadPlan *plan, const PenImageDecoder *decoder, const PenOutField *f,
                     PenTask *task)
{
    PenClipShape shape;
    if (task->clips[f->image].is_video)
        return pen__clip_video_decode(decoder, f, task);
    Decoding d = {.decoder = decoder,
                  .field = f,
                  .task = task,
                  .clip = &task->clips[f->image],
                  .key = pen__task_key(plan, task, f),
                  .out = pen__task_place(task, f)};
    pen__program_clip(f->program, &shape);
    int r = PEN_OK;
    for (; r == PEN_OK && d.view < shape.views; d.view++)
        r = decode_view(&d, &shape);
    return r;
}
