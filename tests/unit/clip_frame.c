/* SPDX-License-Identifier: Apache-2.0 */
#include "clip_frame.h"

#include <string.h>

#include "ops/run/program.h"

struct FrameCook {
    PenProgram *program;
    PenDecodeContext *context;
    PenBuf file;
    PenSamplePlan sample_plan;
};

FrameCook *frame_cook_new(const char *pipeline)
{
    PenSpec spec = {0};
    PenFieldKind kind = {.kind = PEN_KIND_IMAGE};
    FrameCook *cook = pen__zalloc(sizeof *cook);
    int r = cook ? pen__spec_parse(pipeline, &spec, NULL) : PEN_E_NO_MEMORY;
    if (r == PEN_OK)
        r = pen__program_new(&spec.fields[0], &kind, &cook->program, NULL);
    if (r == PEN_OK)
        r = pen__decode_context_new(&cook->context, NULL);
    pen__spec_free(&spec);
    if (r < 0)
        frame_cook_free(&cook);
    return cook;
}

void frame_cook_free(FrameCook **cook)
{
    if (!*cook)
        return;
    pen__program_free(&(*cook)->program);
    pen__decode_context_free(&(*cook)->context);
    pen__buf_free(&(*cook)->file);
    pen__free(*cook);
    *cook = NULL;
}

static int read_frame(FrameCook *cook, PenPack *pack, uint64_t sample, uint32_t frame, PenImage *im)
{
    PenFrameRange range = {.first = frame, .step = 1, .n = 1};
    int r = pen_pack_image(pack, sample, 0, frame, im, NULL);
    cook->file.bytes = 0;
    if (r == PEN_OK)
        r = pen__buf_reserve(&cook->file, im->bytes + PEN_SLACK);
    if (r < 0)
        return r;
    memset(cook->file.data, 0, im->bytes + PEN_SLACK);
    return pen_pack_read_frames(pack, sample, 0, &range, cook->file.data, im->bytes,
                                &cook->file.bytes, NULL);
}

int frame_cook(FrameCook *cook, PenPack *pack, uint64_t sample, uint32_t frame, uint64_t seed,
               uint8_t *out)
{
    PenImage im;
    int r = read_frame(cook, pack, sample, frame, &im);
    if (r < 0)
        return r;
    PenEncoded image = {.data = cook->file.data,
                        .bytes = cook->file.bytes,
                        .width = im.width,
                        .height = im.height,
                        .codec = im.codec,
                        .channels = im.channels};
    PenImageShape shape = {im.width, im.height, im.orientation ? im.orientation : 1, 0};
    r = pen__sample_plan_make(cook->program, &shape, pen__draw_key(seed, 0), sample,
                              &cook->sample_plan, NULL);
    return r < 0 ? r
                 : pen__sample_run(cook->context, cook->program, &cook->sample_plan, &image,
                                   &pen__limits_default, out, NULL);
}
