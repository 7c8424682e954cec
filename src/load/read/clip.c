/* SPDX-License-Identifier: Apache-2.0 */
#include "load/read/clip.h"

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "load/read/video.h"
#include "load/read/window.h"

#define WHERE "load/read"

/* Two clips of a sample with no more than this between them are read together. */
enum { JOIN_BYTES = 64 << 10 };

/* Empties a buffer and gives it n items. */
static void *resize_to(PenBuf *b, size_t n, size_t each, PenError *reterr)
{
    uint64_t bytes;
    b->bytes = 0;
    if (pen__mul_over(n, each, &bytes) || bytes > SIZE_MAX / 2 || pen__buf_reserve(b, bytes) < 0) {
        pen__fail_memory(reterr, WHERE, "frames of a clip");
        return NULL;
    }
    b->bytes = bytes;
    return b->data;
}

static PenImageEntry entry_of(const PenOutField *f, const PenLocation *at, uint32_t frame)
{
    return pen__block_image(&at->block->view, at->in_block, f->field, frame);
}

/* ---- which frames ---- */

static int list_times(const PenOutField *f, const PenLocation *at, const PenVideoTable *video,
                      PenTaskClip *clip, PenClipFrames *frames, PenError *reterr)
{
    int64_t *times = resize_to(&clip->times, frames->n, sizeof *times, reterr);
    if (!times)
        return PEN_E_NO_MEMORY;
    frames->times_ns = times;
    if (clip->is_video)
        return pen__video_all_ns(video, &clip->video.needs, times, reterr);
    for (uint32_t i = 0; i < frames->n; i++)
        times[i] = entry_of(f, at, i).timestamp_ns;
    return PEN_OK;
}

static int choose(const PenLoadPlan *plan, const PenTask *task, const PenOutField *f,
                  const PenLocation *at, const PenVideoTable *video, PenTaskClip *clip,
                  PenError *reterr)
{
    const PenClipRule *rule = pen__program_clip(f->program, NULL);
    PenClipEntry entry = pen__block_clip(&at->block->view, at->in_block, f->field);
    PenClipFrames frames = {.n = entry.n_frames, .frame = task->to.ordinal};
    int r = PEN_OK;
    if (rule->seconds > 0 && frames.n)
        r = list_times(f, at, video, clip, &frames, reterr);
    if (r < 0)
        return r;
    uint32_t *chosen = resize_to(&clip->chosen, (size_t)rule->n * rule->frames, 4, reterr);
    if (!chosen)
        return PEN_E_NO_MEMORY;
    if (f->inside)
        pen__window_mask(task, f, (int64_t)rule->at, rule->stride, rule->frames, frames.n);
    PenDrawKey key = pen__task_key(plan, task, f);
    return pen__program_choose(f->program, &frames, key, task->to.sample, chosen, reterr);
}

static int by_number(const void *a, const void *b)
{
    uint32_t x = ((const PenClipFrame *)a)->number, y = ((const PenClipFrame *)b)->number;
    return x < y ? -1 : x > y;
}

/* Every frame that was chosen once, by its number; `chosen` becomes their places in that list. */
static int list_frames(PenTaskClip *clip, PenError *reterr)
{
    uint32_t *chosen = (uint32_t *)(void *)clip->chosen.data, n = (uint32_t)clip->chosen.bytes / 4;
    PenClipFrame *frames = resize_to(&clip->frames, n, sizeof *frames, reterr), *last = frames;
    if (!frames)
        return PEN_E_NO_MEMORY;
    memset(frames, 0, n * sizeof *frames);
    bool sorted = true;
    for (uint32_t i = 0; i < n; i++) {
        frames[i].number = chosen[i];
        sorted = sorted && (!i || chosen[i] >= chosen[i - 1]);
    }
    if (!sorted)
        qsort(frames, n, sizeof *frames, by_number);
    for (uint32_t i = 1; i < n; i++)
        if (frames[i].number != last->number)
            *++last = frames[i];
    size_t left = (size_t)(last - frames) + 1;
    clip->frames.bytes = left * sizeof *frames;
    for (uint32_t i = 0; i < n; i++) {
        PenClipFrame wanted = {.number = chosen[i]};
        const PenClipFrame *found = bsearch(&wanted, frames, left, sizeof *frames, by_number);
        chosen[i] = (uint32_t)(found - frames);
    }
    return PEN_OK;
}

/* ---- where they lie ---- */

/* The last frame (by its place in the list) of clips that begin at or before that one. */
static uint32_t reach(const PenTaskClip *clip, const PenClipRule *rule, uint32_t from)
{
    const uint32_t *chosen = (const uint32_t *)(const void *)clip->chosen.data;
    uint32_t far = from;
    for (uint32_t k = 0; k < rule->n; k++) {
        uint32_t low = UINT32_MAX, high = 0;
        for (uint32_t i = 0; i < rule->frames; i++, chosen++) {
            low = PEN_MIN(low, *chosen);
            high = PEN_MAX(high, *chosen);
        }
        if (low <= from)
            far = PEN_MAX(far, high);
    }
    return far;
}

/* Is what lies between this frame and the next one of the list read too? */
static bool joins(const PenTaskClip *clip, const PenClipRule *rule, uint32_t i, uint32_t *far)
{
    const PenClipFrame *f = (const PenClipFrame *)(const void *)clip->frames.data + i;
    if (rule->n == 1 || f[1].offset - f[0].offset - f[0].encoded.bytes <= JOIN_BYTES)
        return true;
    if (*far <= i)
        *far = reach(clip, rule, i);
    return *far > i;
}

static void describe(const PenOutField *f, const PenLocation *at, PenClipFrame *frame,
                     uint64_t *ret_tables)
{
    PenImageEntry e = entry_of(f, at, frame->number);
    frame->offset = e.offset;
    frame->orientation = e.orientation ? e.orientation : 1;
    frame->encoded = (PenEncoded){.bytes = (size_t)e.bytes,
                                  .width = e.width,
                                  .height = e.height,
                                  .codec = e.codec,
                                  .channels = e.channels};
    /* Lengths of 2 bytes become 4; entries of 2 bytes or more become 16, twice. */
    *ret_tables += e.table_bytes * (pen__block_is_indexed(&at->block->view, &e) ? 16 : 2);
}

/* Gives every frame its place in the data. The lists themselves count too. */
static void lay_out(const PenOutField *f, PenTaskClip *clip, PenLocation *at)
{
    const PenClipRule *rule = pen__program_clip(f->program, NULL);
    PenClipFrame *frames = (PenClipFrame *)(void *)clip->frames.data;
    uint32_t n = (uint32_t)(clip->frames.bytes / sizeof *frames), far = 0;
    uint64_t end = 0, tables = 0, largest = 0;
    for (uint32_t i = 0; i < n; i++)
        describe(f, at, &frames[i], &tables);
    for (uint32_t i = 0; i < n; i++) {
        uint64_t bytes = frames[i].encoded.bytes;
        bool goes_on = i && joins(clip, rule, i - 1, &far);
        frames[i].at =
            goes_on ? frames[i - 1].at + (size_t)(frames[i].offset - frames[i - 1].offset) : end;
        end = frames[i].at + bytes;
        largest = PEN_MAX(largest, bytes);
    }
    clip->data.bytes = 0;
    clip->bytes = end;
    at->bytes += end + largest + 2 * PEN_SLACK + tables + clip->frames.bytes + clip->chosen.bytes +
                 clip->times.bytes;
}

static void store_times(const PenTask *task, const PenOutField *f, const PenTaskClip *clip,
                        const PenLocation *at)
{
    const PenOutField *to = &task->to.fields[f->times];
    const uint32_t *chosen = (const uint32_t *)(const void *)clip->chosen.data;
    const PenClipFrame *frames = (const PenClipFrame *)(const void *)clip->frames.data;
    PenClipShape shape;
    pen__program_clip(f->program, &shape);
    int64_t *times = (int64_t *)(void *)pen__task_place(task, to);
    for (uint32_t view = 0; view < shape.views; view++)
        for (uint32_t i = 0; i < shape.frames; i++) {
            uint32_t which = chosen[view / shape.crops * shape.frames + i];
            *times++ = clip->is_video ? frames[which].time_ns
                                      : entry_of(f, at, frames[which].number).timestamp_ns;
        }
}

int pen__clip_locate(const PenLoadPlan *plan, PenTask *task, const PenOutField *f, PenLocation *at,
                     PenError *reterr)
{
    PenTaskClip *clip = &task->clips[f->image];
    PenVideoTable video;
    clip->times.bytes = 0;
    clip->is_video = pen__block_video(&at->block->view, at->in_block, f->field, &video);
    int r = choose(plan, task, f, at, &video, clip, reterr);
    if (r == PEN_OK)
        r = list_frames(clip, reterr);
    if (r == PEN_OK && clip->is_video)
        r = pen__clip_video_locate(plan, task, f, &video, at, reterr);
    if (r < 0)
        return r;
    if (!clip->is_video)
        lay_out(f, clip, at);
    if (f->times)
        store_times(task, f, clip, at);
    return PEN_OK;
}

/* ---- their bytes ---- */

/* A frame that is cut into segments is there with all of them. */
static int list_segments(const PenSpot *spot, const PenImageEntry *e, PenClipFrame *frame,
                         PenTaskClip *clip, PenError *reterr)
{
    PenSegmentTable t = pen__block_segments(&spot->block->view, e);
    PenEncoded *enc = &frame->encoded;
    enc->tiled = e->codec == PEN_STORED_JPEG;
    enc->head_bytes = t.head_bytes;
    enc->end_segment = t.n_segments;
    frame->first_length = (uint32_t)(clip->lengths.bytes / 4);
    for (uint32_t i = 0; enc->tiled && i < t.n_segments; i++) {
        uint32_t length = (uint32_t)pen__segment_bytes(&t, i);
        if (pen__buf_add(&clip->lengths, &length, sizeof length) < 0)
            return pen__fail_memory(reterr, WHERE, "segment lengths");
    }
    return PEN_OK;
}

/* Where a frame can be entered. An index that cannot be parsed is not used. Only our decoder takes
 * one. */
static int list_entries(const PenSpot *spot, const PenImageEntry *e, PenClipFrame *frame,
                        PenTaskClip *clip, PenError *reterr)
{
    PenStoredEntries t = pen__block_entries(&spot->block->view, e).stored;
    if (!pen__region_takes_parts())
        return PEN_OK;
    int r = pen__entries_parse(t.coded, t.coded_bytes, &t.plan, t.scan_bytes, &clip->parsed,
                               &frame->index, reterr);
    if (r < 0)
        return r == PEN_E_DECODE ? PEN_OK : r;
    frame->encoded.head_bytes = t.head_bytes;
    frame->first_entry = clip->entries.bytes;
    return pen__buf_add(&clip->entries, clip->parsed.data, clip->parsed.bytes) < 0
               ? pen__fail_memory(reterr, WHERE, "entries")
               : PEN_OK;
}

/* When all are listed, they stay where they are. */
static void point_to_entries(PenTaskClip *clip)
{
    PenClipFrame *frames = (PenClipFrame *)(void *)clip->frames.data;
    for (size_t i = 0; i < clip->frames.bytes / sizeof *frames; i++)
        if (frames[i].index.at)
            frames[i].index.at =
                (const PenEntry *)(const void *)(clip->entries.data + frames[i].first_entry);
}

static int check_frame(const PenOutField *f, const PenLocation *at, PenClipFrame *frame,
                       PenTask *task, PenError *reterr)
{
    PenTaskClip *clip = &task->clips[f->image];
    PenSpot spot = {at->block, at->in_block, f->field, frame->number, pen__task_clock(task)};
    PenImageEntry e = entry_of(f, at, frame->number);
    int r = pen__payload_check(&spot, &e, clip->data.data + frame->at, reterr);
    if (r < 0) {
        pen__error_prefix(reterr, "frame %u", frame->number);
        return r;
    }
    if (pen__block_is_indexed(&at->block->view, &e))
        return list_entries(&spot, &e, frame, clip, reterr);
    return e.table_bytes ? list_segments(&spot, &e, frame, clip, reterr) : PEN_OK;
}

/* Where the next read begins, in the list. */
static uint32_t end_of_read(const PenClipFrame *frames, uint32_t n, uint32_t from)
{
    uint32_t i = from + 1;
    while (i < n && frames[i].at - frames[from].at == frames[i].offset - frames[from].offset)
        i++;
    return i;
}

static int read_all(PenTask *task, const PenOutField *f, const PenLocation *at, PenError *reterr)
{
    PenTaskClip *clip = &task->clips[f->image];
    PenClipFrame *frames = (PenClipFrame *)(void *)clip->frames.data;
    uint32_t n = (uint32_t)(clip->frames.bytes / sizeof *frames);
    int r = PEN_OK;
    if (!resize_to(&clip->data, (size_t)clip->bytes + PEN_SLACK, 1, reterr))
        return PEN_E_NO_MEMORY;
    memset(clip->data.data + clip->bytes, 0, PEN_SLACK);
    clip->lengths.bytes = clip->entries.bytes = 0;
    for (uint32_t i = 0, end; r == PEN_OK && i < n; i = end) {
        end = end_of_read(frames, n, i);
        const PenClipFrame *last = &frames[end - 1];
        r = pen__block_read(at->block, frames[i].offset,
                            last->offset + last->encoded.bytes - frames[i].offset,
                            clip->data.data + frames[i].at, reterr);
    }
    for (uint32_t i = 0; r == PEN_OK && i < n; i++)
        r = check_frame(f, at, &frames[i], task, reterr);
    if (r == PEN_OK)
        point_to_entries(clip);
    return r;
}

int pen__clip_read(PenTask *task, const PenOutField *f, const PenLocation *at, PenError *reterr)
{
    int (*read_clip)(PenTask *, const PenOutField *, const PenLocation *, PenError *) =
        task->clips[f->image].is_video ? pen__clip_video_read : read_all;
    int r = read_clip(task, f, at, reterr);
    if (r == PEN_E_CORRUPT)
        r = read_clip(task, f, at, reterr);
    task->bytes_read += task->clips[f->image].bytes;
    return r;
}
