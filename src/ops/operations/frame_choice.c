/* SPDX-License-Identifier: Apache-2.0 */
/* Places are frames or, by time, nanoseconds from the first frame; both are counted as whole
 * numbers, so that all machines choose alike. Built without fused multiply-add (meson.build). */
#include "ops/operations/frame_choice.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>

#include "base/attr.h"

static const char where[] = "ops/clip";

enum { NS = 1000000000 };
#define LONGEST_NS 8640000000000000ll /* 100 days: exact as a double, and sums of them fit */

/* The clip as a line of places. */
typedef struct Line {
    const PenClipRule *rule;
    const PenClipFrames *frames;
    bool by_time;
    uint64_t length; /* places before its end */
    PenError *reterr;
} Line;

/* From the first place of a clip to its k-th. */
static uint64_t step(const Line *line, uint32_t k)
{
    const PenClipRule *r = line->rule;
    if (!line->by_time)
        return (uint64_t)k * r->stride;
    double ns = (double)k * NS * r->seconds / r->parts;
    return (uint64_t)(ns + 0.5);
}

/* How far the beginning can be moved with the clip still inside. */
static uint64_t room(const Line *line)
{
    uint32_t n = line->rule->frames;
    uint64_t span = line->by_time ? step(line, n) : step(line, n - 1) + 1;
    return span < line->length ? line->length - span : 0;
}

/* Several clips in the middle are in the middles of equal parts; several at a given place come one
 * after another. */
static uint64_t begin(const Line *line, uint32_t clip, PenDraw *draw)
{
    const PenClipRule *r = line->rule;
    if (r->offset == PEN_OFFSET_RANDOM)
        return pen__draw_below(draw, room(line) + 1);
    if (r->offset == PEN_OFFSET_CENTER)
        return room(line) * (2 * clip + 1) / (2 * r->n);
    double at = line->by_time ? r->at * NS + 0.5 : r->at;
    return (uint64_t)at + clip * step(line, r->frames);
}

static uint64_t time_of(const PenClipFrames *f, uint32_t frame)
{
    return (uint64_t)(f->times_ns[frame] - f->times_ns[0]);
}

/* The first frame not before that time; f->n when all are. */
static uint32_t first_from(const PenClipFrames *f, uint64_t time)
{
    uint32_t low = 0, high = f->n;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (time_of(f, middle) < time)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The frame nearest in time; of two the earlier, of several at one time the first. */
static uint32_t nearest(const PenClipFrames *f, uint64_t time)
{
    uint32_t behind = first_from(f, time);
    if (behind == 0)
        return 0;
    uint64_t before = time_of(f, behind - 1);
    if (behind < f->n && time_of(f, behind) - time < time - before)
        return behind;
    return first_from(f, before);
}

static int too_short(const Line *line, uint64_t place)
{
    const PenClipRule *r = line->rule;
    if (line->by_time)
        return pen__fail(line->reterr, PEN_E_INVALID, where,
                         "clip: a frame %.3f s after the start was requested, but the clip has "
                         "%.3f s (%u frames), and pad is none; use pad=last or pad=loop, or leave "
                         "the sample out with a subset",
                         (double)place / NS, (double)line->length / NS, line->frames->n);
    char how[60] = "";
    if (!r->n_indices)
        snprintf(how, sizeof how, " (%u frames, stride %u)", r->frames, r->stride);
    return pen__fail(line->reterr, PEN_E_INVALID, where,
                     "clip: frame %" PRIu64
                     " requested%s, but the clip has %u, and pad is none; use pad=last or "
                     "pad=loop, or leave the sample out with a subset",
                     place, how, line->frames->n);
}

static int frame_at(const Line *line, uint64_t place, uint32_t *ret)
{
    int pad = line->rule->pad;
    if (place >= line->length) {
        if (pad == PEN_PAD_NONE || !line->length)
            return too_short(line, place);
        place = pad == PEN_PAD_LAST ? line->length - 1 : place % line->length;
    }
    *ret = line->by_time ? nearest(line->frames, place) : (uint32_t)place;
    return PEN_OK;
}

/* Every frame is shown until the next one, the last for as long as the others on average. */
static int measure(Line *line)
{
    const PenClipFrames *f = line->frames;
    int64_t all = 0;
    bool rises = f->n > 1;
    for (uint32_t i = 1; i < f->n; i++)
        rises = rises && f->times_ns[i] >= f->times_ns[i - 1];
    if (!rises || __builtin_sub_overflow(f->times_ns[f->n - 1], f->times_ns[0], &all) || all <= 0)
        return pen__fail(line->reterr, PEN_E_INVALID, where,
                         "clip: fps and seconds need increasing timestamps, found %u frames "
                         "without them; use stride",
                         f->n);
    if (all > LONGEST_NS)
        return pen__fail(line->reterr, PEN_E_LIMIT, where,
                         "clip: expected timestamps of at most 100 days, found %.0f s; use stride",
                         (double)all / NS);
    line->length = (uint64_t)all + (uint64_t)all / (f->n - 1);
    return PEN_OK;
}

static int choose_list(const Line *line, uint32_t *ret)
{
    int r = PEN_OK;
    for (uint32_t i = 0; r == PEN_OK && i < line->rule->n_indices; i++)
        r = frame_at(line, line->rule->indices[i], &ret[i]);
    return r;
}

int64_t pen__window_place(uint32_t frame, int64_t at, uint32_t stride, uint32_t k)
{
    return (int64_t)frame + at + (int64_t)k * stride;
}

static int choose_window(const PenClipRule *rule, const PenClipFrames *frames, uint32_t *ret,
                         PenError *reterr)
{
    if (frames->frame >= frames->n)
        return pen__fail(reterr, PEN_E_INVALID, where,
                         "clip: the sample is frame %u, but the clip has %u; pass the number of "
                         "frames of each sample to frames",
                         frames->frame, frames->n);
    for (uint32_t k = 0; k < rule->frames; k++) {
        int64_t place = pen__window_place(frames->frame, (int64_t)rule->at, rule->stride, k);
        ret[k] = (uint32_t)PEN_MAX(PEN_MIN(place, (int64_t)frames->n - 1), 0);
    }
    return PEN_OK;
}

int pen__clip_choose(const PenClipRule *rule, const PenClipFrames *frames, PenDraw *draw,
                     uint32_t *ret, PenError *reterr)
{
    Line line = {.rule = rule,
                 .frames = frames,
                 .by_time = rule->seconds > 0 && !rule->n_indices,
                 .length = frames->n,
                 .reterr = reterr};
    if (frames->n == 0)
        return pen__fail(reterr, PEN_E_NOT_FOUND, where,
                         "clip: no frames; leave the sample out with a subset");
    if (rule->offset == PEN_OFFSET_FRAME)
        return choose_window(rule, frames, ret, reterr);
    int r = line.by_time ? measure(&line) : PEN_OK;
    if (r == PEN_OK && rule->n_indices)
        return choose_list(&line, ret);
    for (uint32_t clip = 0; r == PEN_OK && clip < rule->n; clip++) {
        uint64_t from = begin(&line, clip, draw);
        for (uint32_t k = 0; r == PEN_OK && k < rule->frames; k++)
            r = frame_at(&line, from + step(&line, k), ret++);
    }
    return r;
}
