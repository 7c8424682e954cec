/* SPDX-License-Identifier: Apache-2.0 */
#include "load/task.h"

#include "base/attr.h"
#include "base/error.h"
#include "base/mem.h"

int pen__task_new(const PenLoadPlan *plan, PenTask **ret, PenError *reterr)
{
    PenTask *t = pen__zalloc(sizeof *t);
    if (t && plan->n_views)
        t->images = pen__zalloc(plan->n_views * sizeof *t->images);
    if (t && plan->n_clips)
        t->clips = pen__zalloc(plan->n_clips * sizeof *t->clips);
    if (t && plan->n_follows)
        t->rows = pen__zalloc(plan->n_follows * sizeof *t->rows);
    if (!t || (plan->n_views && !t->images) || (plan->n_clips && !t->clips) ||
        (plan->n_follows && !t->rows)) {
        if (t) {
            pen__free(t->images);
            pen__free(t->clips);
            pen__free(t->rows);
        }
        pen__free(t);
        return pen__fail_memory(reterr, "load/task", "task");
    }
    *ret = t;
    return PEN_OK;
}

static void trim_clip(PenTaskClip *clip, size_t bytes)
{
    PenBuf *all[] = {&clip->data,    &clip->frames, &clip->chosen, &clip->times,   &clip->lengths,
                     &clip->entries, &clip->parsed, &clip->one,    &clip->numbers, &clip->plans};
    for (size_t i = 0; i < PEN_LEN(all); i++)
        pen__buf_trim(all[i], bytes);
    pen__frame_packets_trim(&clip->video, bytes);
}

void pen__task_trim(const PenLoadPlan *plan, PenTask *task, size_t bytes)
{
    for (uint32_t i = 0; i < plan->n_views; i++) {
        pen__buf_trim(&task->images[i].slice.data, bytes);
        pen__buf_trim(&task->images[i].lengths, bytes);
        pen__buf_trim(&task->images[i].entries, bytes);
    }
    for (uint32_t i = 0; i < plan->n_clips; i++)
        trim_clip(&task->clips[i], bytes);
    for (uint32_t i = 0; i < plan->n_follows; i++)
        pen__buf_trim(&task->rows[i].kept, bytes);
    pen__buf_trim(&task->rows_read, bytes);
    pen__buf_trim(&task->values, bytes);
}

void pen__task_free(const PenLoadPlan *plan, PenTask **task)
{
    if (!*task)
        return;
    pen__task_trim(plan, *task, 0);
    pen__free((*task)->images);
    pen__free((*task)->clips);
    pen__free((*task)->rows);
    pen__free(*task);
    *task = NULL;
}

void pen__task_assign(PenTask *task, const PenAssignment *to)
{
    task->to = *to;
    task->status = PEN_OK;
    task->block = NULL;
    task->complete = false;
}

PenEncoded pen__task_frame(const PenTaskClip *clip, uint32_t i)
{
    const PenClipFrame *frame = (const PenClipFrame *)(const void *)clip->frames.data + i;
    PenEncoded image = frame->encoded;
    image.data = clip->data.data + frame->at;
    if (image.tiled)
        image.segment_bytes =
            (const uint32_t *)(const void *)clip->lengths.data + frame->first_length;
    if (frame->index.at)
        image.entries = &frame->index;
    return image;
}
