/* SPDX-License-Identifier: Apache-2.0 */
#include "load/read/video.h"

#include <stdlib.h>

#define WHERE "load/read"

static int list_packets(const PenVideoTable *video, PenTaskClip *clip, PenError *reterr)
{
    const PenClipFrame *frames = (const PenClipFrame *)(const void *)clip->frames.data;
    uint32_t n = (uint32_t)(clip->frames.bytes / sizeof *frames);
    clip->numbers.bytes = 0;
    for (uint32_t i = 0; i < n; i++)
        if (pen__buf_add(&clip->numbers, &frames[i].number, sizeof frames[i].number) < 0)
            return pen__fail_memory(reterr, WHERE, "frames of a clip");
    return pen__frame_packets_list(video, (const uint32_t *)(const void *)clip->numbers.data, n,
                                   &clip->video, reterr);
}

static int by_number(const void *a, const void *b)
{
    uint32_t x = ((const PenClipFrame *)a)->number, y = ((const PenClipFrame *)b)->number;
    return x < y ? -1 : x > y;
}

static void set_times(const PenVideoTable *video, PenTaskClip *clip)
{
    PenClipFrame *frames = (PenClipFrame *)(void *)clip->frames.data;
    const PenVideoNeeds *needs = &clip->video.needs;
    for (uint32_t i = 0; i < needs->n_frames; i++) {
        PenClipFrame wanted = {.number = needs->frames[i].frame};
        PenClipFrame *found = bsearch(&wanted, frames, clip->frames.bytes / sizeof *frames,
                                      sizeof *frames, by_number);
        found->time = needs->frames[i].time;
        found->time_ns = pen__video_ns(video, found->time);
    }
}

/* All pictures of a video have the size of its table, so that one plan per view is enough. */
static int make_plans(const PenLoadPlan *plan, const PenTask *task, const PenOutField *f,
                      PenTaskClip *clip, PenError *reterr)
{
    const PenVideoStream *s = &clip->video.stream;
    PenImageShape size = {.width = s->width, .height = s->height, .orientation = s->orientation};
    PenDrawKey key = pen__task_key(plan, task, f);
    PenClipShape shape;
    int r = PEN_OK;
    pen__program_clip(f->program, &shape);
    clip->plans.bytes = 0;
    if (pen__buf_reserve(&clip->plans, shape.views * sizeof(PenSamplePlan)) < 0)
        return pen__fail_memory(reterr, WHERE, "plans of a clip");
    clip->plans.bytes = shape.views * sizeof(PenSamplePlan);
    PenSamplePlan *plans = (PenSamplePlan *)(void *)clip->plans.data;
    for (uint32_t i = 0; i < shape.views && r == PEN_OK; i++)
        r = pen__sample_plan_make_view(f->program, &size, key, task->to.sample, i, &plans[i],
                                       reterr);
    return r;
}

int pen__clip_video_locate(const PenLoadPlan *plan, PenTask *task, const PenOutField *f,
                           const PenVideoTable *video, PenLocation *at, PenError *reterr)
{
    PenTaskClip *clip = &task->clips[f->image];
    int r = list_packets(video, clip, reterr);
    if (r == PEN_OK)
        r = make_plans(plan, task, f, clip, reterr);
    if (r < 0)
        return r;
    set_times(video, clip);
    clip->bytes = clip->video.data_bytes;
    at->bytes += pen__frame_packets_memory(&clip->video) + clip->frames.bytes + clip->chosen.bytes +
                 clip->times.bytes + clip->numbers.bytes + clip->plans.bytes;
    return PEN_OK;
}

int pen__clip_video_read(PenTask *task, const PenOutField *f, const PenLocation *at,
                         PenError *reterr)
{
    PenSpot spot = {.block = at->block,
                    .sample = at->in_block,
                    .field = f->field,
                    .clock = pen__task_clock(task)};
    return pen__frame_packets_read(&spot, &task->clips[f->image].video, reterr);
}
