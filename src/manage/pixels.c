/* SPDX-License-Identifier: Apache-2.0 */
/* Images and frames as pixels, for whoever looks at single samples: the loader's way of decoding
 * with nothing done on it. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "manage/video_pixels.h"
#include "ops/run/program.h"
#include "ops/sample/orientation.h"
#include "pack/reader/reader.h"

#define WHERE "manage/pixels"

typedef struct Work {
    PenPack *pack;
    const PenPixelRange *what;
    uint32_t width, height; /* upright, of each */
    uint64_t each;          /* bytes of the pixels of one */
    bool is_video;
    PenProgram *program;
    PenDecodeContext *context;
    size_t *sizes;   /* of the stored frames */
    uint8_t *stored; /* all of them */
    PenBuf one;
    PenError *reterr;
} Work;

static uint32_t number_of(const Work *w, uint32_t i)
{
    return w->what->first + i * w->what->step;
}

static const PenField *field_of(const Work *w)
{
    return &pen_pack_info(w->pack)->fields[w->what->field];
}

static int measure_video(Work *w, const PenClipVideo *video)
{
    const PenPixelRange *q = w->what;
    uint64_t last = q->n ? q->first + (uint64_t)(q->n - 1) * q->step : 0;
    if (q->n && last >= video->n_frames)
        return pen__fail(w->reterr, PEN_E_NOT_FOUND, WHERE,
                         "sample %" PRIu64 ": frame %" PRIu64 ": expected a number below %u",
                         q->sample, last, video->n_frames);
    w->is_video = true;
    w->width = video->width;
    w->height = video->height;
    w->each = (uint64_t)w->width * w->height * q->channels;
    return PEN_OK;
}

/* All have one size, or there would be no array of them. */
static int measure(Work *w)
{
    PenClipVideo video;
    bool is_clip =
        w->what->field < pen_pack_info(w->pack)->n_fields && field_of(w)->type == PEN_TYPE_CLIP;
    int r = is_clip ? pen_pack_video(w->pack, w->what->sample, w->what->field, &video, w->reterr)
                    : PEN_OK;
    if (r < 0)
        return r;
    if (r == 1)
        return measure_video(w, &video);
    for (uint32_t i = 0; r == PEN_OK && i < w->what->n; i++) {
        PenImage im;
        r = pen_pack_image(w->pack, w->what->sample, w->what->field, number_of(w, i), &im,
                           w->reterr);
        if (r < 0)
            return r;
        if (im.codec == PEN_STORED_NONE)
            return pen__fail(w->reterr, PEN_E_NOT_FOUND, WHERE, "sample %" PRIu64 ": no image",
                             w->what->sample);
        PenImageShape shape = {im.width, im.height, im.orientation, 0};
        PenBox upright = pen__turn_upright(&shape);
        if (i && (upright.w != w->width || upright.h != w->height))
            return pen__fail(w->reterr, PEN_E_INVALID, WHERE,
                             "sample %" PRIu64 ": frame %u has %u x %u pixels, but those before it "
                             "have %u x %u; decode them one by one",
                             w->what->sample, number_of(w, i), upright.w, upright.h, w->width,
                             w->height);
        w->width = upright.w;
        w->height = upright.h;
    }
    w->each = (uint64_t)w->width * w->height * w->what->channels;
    return r;
}

static int prepare(Work *w)
{
    char text[100];
    PenSpec spec = {0};
    int mask = field_of(w)->flags & PEN_FIELD_MASK;
    PenFieldKind kind = {.kind = mask ? PEN_KIND_MASK : PEN_KIND_IMAGE};
    snprintf(text, sizeof text, "decode %s | center_crop %u,%u",
             w->what->channels == 3 ? "rgb" : "gray", w->height, w->width);
    int r = pen__spec_parse(text, &spec, w->reterr);
    if (r == PEN_OK)
        r = pen__program_new(&spec.fields[0], &kind, &w->program, w->reterr);
    if (r == PEN_OK)
        r = pen__decode_context_new(&w->context, w->reterr);
    pen__spec_free(&spec);
    return r;
}

/* One read for all of them. */
static int read_stored(Work *w)
{
    const PenPixelRange *q = w->what;
    int clip = field_of(w)->type == PEN_TYPE_CLIP;
    size_t bytes = 0;
    w->sizes = pen__alloc_array(q->n, sizeof *w->sizes);
    if (!w->sizes)
        return pen__fail_memory(w->reterr, WHERE, "frames");
    PenFrameRange range = {q->first, q->step, q->n, w->sizes};
    int r = clip ? pen_pack_read_frames(w->pack, q->sample, q->field, &range, NULL, 0, &bytes,
                                        w->reterr)
                 : pen_pack_read(w->pack, q->sample, q->field, NULL, 0, &bytes, w->reterr);
    if (r < 0)
        return r;
    w->stored = pen__alloc_array((uint64_t)bytes + 1, 1);
    if (!w->stored)
        return pen__fail_memory(w->reterr, WHERE, "frames");
    r = clip ? pen_pack_read_frames(w->pack, q->sample, q->field, &range, w->stored, bytes, &bytes,
                                    w->reterr)
             : pen_pack_read(w->pack, q->sample, q->field, w->stored, bytes, &bytes, w->reterr);
    if (!clip)
        w->sizes[0] = bytes;
    return r;
}

static int decode(Work *w, uint32_t i, const uint8_t *data, uint8_t *to)
{
    PenSamplePlan sample_plan;
    PenImage im;
    int r =
        pen_pack_image(w->pack, w->what->sample, w->what->field, number_of(w, i), &im, w->reterr);
    if (r < 0)
        return r;
    w->one.bytes = 0;
    if (pen__buf_reserve(&w->one, w->sizes[i] + PEN_SLACK) < 0)
        return pen__fail_memory(w->reterr, WHERE, "a frame");
    memcpy(w->one.data, data, w->sizes[i]);
    memset(w->one.data + w->sizes[i], 0, PEN_SLACK);
    PenEncoded image = {.data = w->one.data,
                        .bytes = w->sizes[i],
                        .width = im.width,
                        .height = im.height,
                        .codec = im.codec,
                        .channels = im.channels};
    PenImageShape shape = {im.width, im.height, im.orientation ? im.orientation : 1, 0};
    r = pen__sample_plan_make(w->program, &shape, (PenDrawKey){{0}}, 0, &sample_plan, w->reterr);
    if (r == PEN_OK)
        r = pen__sample_run(w->context, w->program, &sample_plan, &image, &pen__limits_default, to,
                            w->reterr);
    if (r < 0)
        pen__error_prefix(w->reterr, "sample %" PRIu64 ": frame %u", w->what->sample,
                          number_of(w, i));
    return r;
}

static int decode_images(Work *w, uint8_t *to)
{
    int r = read_stored(w);
    const uint8_t *data = w->stored;
    for (uint32_t i = 0; r == PEN_OK && i < w->what->n; i++) {
        r = decode(w, i, data, to + i * w->each);
        data += w->sizes[i];
    }
    return r;
}

static int decode_all(Work *w, uint8_t *to)
{
    int r = prepare(w);
    PenPixelsTo pixels = {w->program, w->context, to, w->each};
    if (r == PEN_OK)
        r = w->is_video ? pen__video_pixels(w->pack, w->what, &pixels, w->reterr)
                        : decode_images(w, to);
    pen__program_free(&w->program);
    pen__decode_context_free(&w->context);
    pen__buf_free(&w->one);
    pen__free(w->sizes);
    pen__free(w->stored);
    return r;
}

static int check(const Work *w)
{
    const PenPixelRange *q = w->what;
    const PenPackInfo *info = pen_pack_info(w->pack);
    if (q->channels != 1 && q->channels != 3)
        return pen__fail(w->reterr, PEN_E_INVALID, WHERE, "channels: expected 1 or 3, found %u",
                         q->channels);
    if (q->n > 1 && (q->step == 0 || (uint64_t)q->first + (uint64_t)(q->n - 1) * q->step > PEN_ALL))
        return pen__fail(w->reterr, PEN_E_INVALID, WHERE, "frames: expected a step of 1 or more");
    if (q->field < info->n_fields && info->fields[q->field].flags & PEN_FIELD_MASK &&
        q->channels != 1)
        return pen__fail(w->reterr, PEN_E_INVALID, WHERE, "field '%s': a mask has one channel",
                         info->fields[q->field].name);
    return PEN_OK;
}

int pen_pack_pixels(PenPack *pack, const PenPixelRange *what, void *buf, size_t cap,
                    uint32_t ret_size[2], PenError *reterr)
{
    Work w = {.pack = pack, .what = what, .reterr = reterr};
    uint64_t bytes;
    int r = check(&w);
    if (r == PEN_OK)
        r = measure(&w);
    if (r < 0)
        return r;
    if (pen__mul_over(w.each, what->n, &bytes) || (buf && bytes > cap))
        return pen__fail(reterr, PEN_E_LIMIT, WHERE,
                         "%u images of %u x %u pixels, but the buffer holds %zu bytes", what->n,
                         w.width, w.height, cap);
    if (buf && bytes)
        r = decode_all(&w, buf);
    if (r == PEN_OK) {
        ret_size[0] = w.height;
        ret_size[1] = w.width;
    }
    return r;
}
