/* SPDX-License-Identifier: Apache-2.0 */
#include "load/decode/video.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/attr.h"

#define WHERE "load/decode"

typedef struct Playing {
    const PenTaskClip *clip;
    PenClipShape shape;
    const PenSamplePlan *plans; /* of all views */
    uint32_t next; /* of the clip's frames, the first one that has not come, or that failed */
    PenShownFn show;
    void *ctx;
} Playing;

static const PenClipFrame *frames_of(const PenTaskClip *clip, uint32_t *ret_n)
{
    *ret_n = (uint32_t)(clip->frames.bytes / sizeof(PenClipFrame));
    return (const PenClipFrame *)(const void *)clip->frames.data;
}

/* ---- pictures ---- */

static int by_time(const void *a, const void *b)
{
    int64_t x = ((const PenClipFrame *)a)->time, y = ((const PenClipFrame *)b)->time;
    return x < y ? -1 : x > y;
}

static int show_picture(const Playing *p, uint32_t which, const PenEncoded *image, PenError *reterr)
{
    const uint32_t *chosen = (const uint32_t *)(const void *)p->clip->chosen.data;
    int r = PEN_OK;
    for (uint32_t view = 0; view < p->shape.views && r == PEN_OK; view++) {
        const uint32_t *of_view = chosen + (size_t)(view / p->shape.crops) * p->shape.frames;
        uint32_t i = 0;
        while (i < p->shape.frames && of_view[i] != which)
            i++;
        if (i == p->shape.frames)
            continue;
        PenShownFrame shown = {.image = image,
                               .sample_plan = &p->plans[view],
                               .view = view,
                               .frame = i,
                               .same = of_view};
        r = p->show(p->ctx, &shown, reterr);
    }
    return r;
}

static int take_picture(void *ctx, const PenVideoPicture *picture, PenError *reterr)
{
    Playing *p = ctx;
    uint32_t n;
    const PenClipFrame *frames = frames_of(p->clip, &n);
    PenClipFrame wanted = {.time = picture->time};
    const PenClipFrame *frame = bsearch(&wanted, frames, n, sizeof *frames, by_time);
    if (!frame)
        return pen__fail(reterr, PEN_E_DECODE, WHERE,
                         "video: expected pictures of wanted packets, found another one");
    PenEncoded image = {.width = picture->width,
                        .height = picture->height,
                        .codec = PEN_STORED_PICTURE,
                        .channels = picture->n_planes == 1 ? 1 : 3,
                        .picture = picture};
    uint32_t which = (uint32_t)(frame - frames);
    int r = show_picture(p, which, &image, reterr);
    if (r < 0)
        p->next = which;
    else if (which == p->next)
        p->next++;
    return r;
}

static void name_frame(const Playing *p, PenError *reterr)
{
    uint32_t n;
    const PenClipFrame *frames = frames_of(p->clip, &n);
    uint32_t i = PEN_MIN(p->next, n - 1); /* all may have come, and a later picture is damaged */
    pen__error_prefix(reterr, "%sframe %" PRIu32 " at %.3f s", p->next < n ? "" : "after ",
                      frames[i].number, (double)frames[i].time_ns / 1e9);
}

int pen__clip_play(PenFrameDecoder *decoder, const PenOutField *f, const PenTask *task,
                   PenShownFn show, void *ctx, PenError *reterr)
{
    const PenTaskClip *clip = &task->clips[f->image];
    Playing p = {.clip = clip,
                 .plans = (const PenSamplePlan *)(const void *)clip->plans.data,
                 .show = show,
                 .ctx = ctx};
    pen__program_clip(f->program, &p.shape);
    PenPlayList list = pen__frame_packets_play(&clip->video);
    int r = pen__video_play(decoder, &list, take_picture, &p, reterr);
    if (r < 0)
        name_frame(&p, reterr);
    return r;
}

/* ---- into the batch ---- */

typedef struct Storing {
    const PenImageDecoder *decoder;
    const PenProgram *program;
    uint32_t n_frames; /* of a view */
    uint8_t *out;      /* of the sample */
} Storing;

static int store_frame(void *ctx, const PenShownFrame *shown, PenError *reterr)
{
    const Storing *s = ctx;
    uint8_t *to = s->out + pen__program_frame_at(s->program, shown->view, shown->frame);
    int r = pen__image_decoder_run(s->decoder, s->program, shown->sample_plan, shown->image, to,
                                   reterr);
    for (uint32_t i = shown->frame + 1; r == PEN_OK && i < s->n_frames; i++)
        if (shown->same[i] == shown->same[shown->frame])
            pen__program_copy_frame(s->program,
                                    s->out + pen__program_frame_at(s->program, shown->view, i), to);
    return r;
}

int pen__clip_video_decode(const PenImageDecoder *decoder, const PenOutField *f, PenTask *task)
{
    PenClipShape shape;
    pen__program_clip(f->program, &shape);
    Storing s = {.decoder = decoder,
                 .program = f->program,
                 .n_frames = shape.frames,
                 .out = pen__task_place(task, f)};
    return pen__clip_play(decoder->video, f, task, store_frame, &s, &task->error);
}
