/* SPDX-License-Identifier: Apache-2.0 */
/* What a program has more when its field holds clips. */
#include <string.h>

#include "ops/language/lex.h"
#include "ops/run/program_impl.h"

/* In the order of operations/clip.c. */
enum { FRAMES, STRIDE, OFFSET, PAD, N, FPS, SECONDS, INDICES, TIMES, AT };
enum { NCHW = 1, NTHWC, NCTHW, NTCHW }; /* words of the layout, behind nhwc */

#define SLOWEST_FPS 0.001 /* so that times of frames stay far from the limits of numbers */

/* What else selects frames? NULL: nothing. */
static const char *other_choice(const PenParamValue *v, const PenClipRule *rule)
{
    return v[OFFSET].n || v[OFFSET].word ? "offset"
           : rule->pad != PEN_PAD_LAST   ? "pad"
           : rule->n > 1                 ? "n"
           : rule->seconds > 0           ? "fps and seconds"
           : rule->n_indices             ? "indices"
                                         : NULL;
}

static int check_values(const PenSpecOp *op, const PenClipRule *rule, PenError *reterr)
{
    const PenParamValue *v = op->values;
    if (v[AT].n && other_choice(v, rule))
        return pen__spec_fail(reterr, op->column,
                              "clip: at selects frames by frames and stride; remove %s",
                              other_choice(v, rule));
    if (v[FPS].v[0] > 0 && v[SECONDS].v[0] > 0)
        return pen__spec_fail(reterr, op->column,
                              "clip: fps and seconds are mutually exclusive; pass one of them");
    if (v[FPS].v[0] > 0 && v[FPS].v[0] < SLOWEST_FPS)
        return pen__spec_fail(reterr, op->column,
                              "clip: fps: expected 0 or at least 0.001 (a frame in 1000 s)");
    if (rule->n_indices && rule->n > 1)
        return pen__spec_fail(reterr, op->column, "clip: indices select one clip; remove n=%u",
                              rule->n);
    if (rule->n_indices && rule->seconds > 0)
        return pen__spec_fail(reterr, op->column,
                              "clip: indices select frames by number; remove fps and seconds");
    if (v[OFFSET].n && rule->seconds == 0 && rule->at != (double)(uint64_t)rule->at)
        return pen__spec_fail(reterr, op->column,
                              "clip: offset: expected random, center or an integer (seconds "
                              "go with fps and seconds)");
    return PEN_OK;
}

int pen__program_set_clip(PenProgram *p, const PenSpecOp *op, PenError *reterr)
{
    const PenParamValue *v = op->values;
    PenClipRule *rule = &p->clip;
    *rule = (PenClipRule){.frames = (uint32_t)v[FRAMES].v[0],
                          .n = (uint32_t)v[N].v[0],
                          .stride = (uint32_t)v[STRIDE].v[0],
                          .offset = v[OFFSET].n ? PEN_OFFSET_GIVEN : (int32_t)v[OFFSET].word,
                          .at = v[OFFSET].n ? v[OFFSET].v[0] : 0,
                          .pad = (int32_t)v[PAD].word,
                          .n_indices = v[INDICES].n};
    if (v[FPS].v[0] > 0) {
        rule->seconds = 1;
        rule->parts = v[FPS].v[0];
    } else if (v[SECONDS].v[0] > 0) {
        rule->seconds = v[SECONDS].v[0];
        rule->parts = rule->frames;
    }
    for (uint32_t i = 0; i < rule->n_indices; i++)
        rule->indices[i] = (uint32_t)v[INDICES].v[i];
    if (rule->n_indices)
        rule->frames = rule->n_indices;
    p->clip_shape.want_times = v[TIMES].word != 0;
    int r = check_values(op, rule, reterr);
    if (v[AT].n) {
        rule->offset = PEN_OFFSET_FRAME;
        rule->at = v[AT].v[0];
    }
    return r;
}

PenTensor pen__program_clip_tensor(PenProgram *p, uint32_t layout)
{
    PenClipShape *s = &p->clip_shape;
    int64_t c = p->channels, t = p->clip.frames, h = p->height, w = p->width;
    PenTensor one = {.n_dims = 4};
    s->frames = p->clip.frames;
    s->crops = PEN_MAX(s->crops, 1u);
    s->views = p->clip.n * s->crops;
    p->view_step = (uint64_t)t * p->height * p->width * p->channels;
    p->planes = layout == NCHW || layout == NCTHW || layout == NTCHW;
    if (!p->planes) {
        memcpy(one.shape, (int64_t[]){t, h, w, c}, 4 * sizeof *one.shape);
        one.channels_last = 2;
        p->frame_step = (uint64_t)h * p->width * p->channels;
    } else if (layout == NTCHW) {
        memcpy(one.shape, (int64_t[]){t, c, h, w}, 4 * sizeof *one.shape);
        p->plane = (uint64_t)h * p->width;
        p->frame_step = p->plane * p->channels;
    } else {
        memcpy(one.shape, (int64_t[]){c, t, h, w}, 4 * sizeof *one.shape);
        p->frame_step = (uint64_t)h * p->width;
        p->plane = p->frame_step * p->clip.frames;
    }
    if (s->views > 1) {
        memmove(one.shape + 1, one.shape, 4 * sizeof *one.shape);
        one.shape[0] = s->views;
        one.n_dims = 5;
    }
    return one;
}

const PenClipRule *pen__program_clip(const PenProgram *p, PenClipShape *ret)
{
    if (p->kind.kind != PEN_KIND_CLIP)
        return NULL;
    if (ret)
        *ret = p->clip_shape;
    return &p->clip;
}

int pen__program_choose(const PenProgram *p, const PenClipFrames *frames, PenDrawKey key,
                        uint64_t sample, uint32_t *ret, PenError *reterr)
{
    PenDraw draw = pen__draw_start(key, sample, PEN_DRAW_ID_clip, 0);
    return pen__clip_choose(&p->clip, frames, &draw, ret, reterr);
}

uint64_t pen__program_frame_at(const PenProgram *p, uint32_t view, uint32_t frame)
{
    return (view * p->view_step + frame * p->frame_step) * pen_dtype_bytes(p->tensor.dtype);
}

void pen__program_copy_frame(const PenProgram *p, uint8_t *to, const uint8_t *from)
{
    size_t element = pen_dtype_bytes(p->tensor.dtype);
    size_t pixels = (size_t)p->width * p->height;
    if (!p->planes) {
        memcpy(to, from, pixels * p->channels * element);
        return;
    }
    for (uint32_t c = 0; c < p->channels; c++)
        memcpy(to + c * p->plane * element, from + c * p->plane * element, pixels * element);
}
