/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/run/decode_file.h"

#include "base/bytes.h"
#include "ops/run/program_impl.h"
#include "ops/sample/draft.h"
#include "ops/sample/orientation.h"

/* For one image: tables of a resize can take more than the pixels. */
#define MOST_MEMORY (UINT64_C(1) << 30)
/* Stays allocated for the next image of the batch. */
#define KEPT_MEMORY (UINT64_C(64) << 20)

static const char where[] = "ops/decode";

/* What the header and the settings say of a file. */
typedef struct File {
    PenEncoded image;
    PenImageHeader header; /* of it */
    PenImageShape shape;
    PenBox upright, box; /* the entire upright image, and the box of it */
    uint32_t width, height, channels;
    uint64_t bytes; /* of the result */
} File;

static int read_header(const PenDecodeItem *item, File *f, PenError *reterr)
{
    uint8_t orientation;
    f->image = (PenEncoded){.data = (uint8_t *)(uintptr_t)item->data, /* it is only read */
                            .bytes = item->bytes};
    int r = pen__file_header(&f->image, &pen__limits_default, &f->header, &orientation, reterr);
    if (r < 0)
        return r;
    f->shape = (PenImageShape){
        .width = f->image.width, .height = f->image.height, .orientation = orientation};
    f->upright = pen__turn_upright(&f->shape);
    return PEN_OK;
}

static int choose_box(const PenDecodeItem *item, File *f, PenError *reterr)
{
    const PenBox *b = &item->box;
    bool is_entire = !b->x && !b->y && !b->w && !b->h;
    uint32_t width = f->upright.w, height = f->upright.h;
    f->box = is_entire ? f->upright : *b;
    if (is_entire)
        return PEN_OK;
    if (!b->w || !b->h || !pen__range_ok(b->x, b->w, width) || !pen__range_ok(b->y, b->h, height))
        return pen__fail(reterr, PEN_E_INVALID, where,
                         "box: expected a box inside the image of %u x %u pixels, found %u x %u at "
                         "column %u, row %u",
                         width, height, b->w, b->h, b->x, b->y);
    return PEN_OK;
}

static void choose_size(const PenDecodeSettings *s, File *f)
{
    f->width = s->width ? s->width : f->box.w;
    f->height = s->height ? s->height : f->box.h;
    f->channels = s->mode == PEN_DECODE_RGB ? 3 : 1;
    f->bytes = (uint64_t)f->width * f->height * f->channels;
}

/* What the pipeline "crop, resize" would plan. */
static int make_plan(const PenDecodeSettings *s, const File *f, PenSamplePlan *ret,
                     PenError *reterr)
{
    PenSampleDraft draft = {.sample_plan = ret,
                            .width = f->upright.w,
                            .height = f->upright.h,
                            .nearest = s->mode == PEN_DECODE_MASK};
    ret->shape = f->shape;
    ret->n_steps = ret->n_erase = ret->shrink = 0;
    ret->width = f->width;
    ret->height = f->height;
    int r = pen__draft_crop_to(&draft, f->box.x, f->box.y, f->box, 0, reterr);
    if (r == PEN_OK)
        r = pen__draft_resize_to(&draft, f->width, f->height, s->filter, reterr);
    if (r == PEN_OK)
        r = pen__draft_end(&draft, reterr);
    if (r == PEN_OK)
        ret->region = pen__turn_box(&f->shape, pen__pass_needs(&ret->steps[0].u.pass, f->channels));
    return r;
}

static int run_program(PenDecodeContext *k, const File *f, const PenProgram *program,
                       const PenSamplePlan *plan, void *pixels, PenError *reterr)
{
    uint64_t need = pen__sample_plan_memory(program, plan, &f->header);
    if (need > MOST_MEMORY)
        return pen__fail(reterr, PEN_E_LIMIT, where,
                         "%u x %u pixels to %u x %u: expected at most %u MiB of memory for the "
                         "decoding, found %u MiB",
                         f->box.w, f->box.h, f->width, f->height, (unsigned)(MOST_MEMORY >> 20),
                         (unsigned)(need >> 20));
    int r =
        pen__sample_run_parsed(k, program, plan, &f->header, &pen__limits_default, pixels, reterr);
    if (need > KEPT_MEMORY)
        pen__decode_context_trim(k, KEPT_MEMORY);
    return r;
}

static int run(PenDecodeContext *k, const File *f, const PenDecodeSettings *s, void *pixels,
               PenError *reterr)
{
    static const int32_t colours[] = {[PEN_DECODE_RGB] = PEN_COLOUR_RGB,
                                      [PEN_DECODE_GRAY] = PEN_COLOUR_GREY,
                                      [PEN_DECODE_MASK] = PEN_COLOUR_MASK};
    PenProgram program = {
        .kind.kind = s->mode == PEN_DECODE_MASK ? PEN_KIND_MASK : PEN_KIND_IMAGE,
        .colour = colours[s->mode],
        .width = f->width,
        .height = f->height,
        .channels = f->channels,
        .tensor.dtype = PEN_U8,
    };
    PenSamplePlan plan;
    int r = make_plan(s, f, &plan, reterr);
    return r < 0 ? r : run_program(k, f, &program, &plan, pixels, reterr);
}

int pen__decode_file(PenDecodeContext *k, PenDecodeItem *item, const PenDecodeSettings *settings,
                     PenError *reterr)
{
    File f;
    int r = read_header(item, &f, reterr);
    if (r == PEN_OK)
        r = choose_box(item, &f, reterr);
    if (r < 0)
        return r;
    choose_size(settings, &f);
    if (item->pixels && f.bytes > item->cap)
        return pen__fail(reterr, PEN_E_LIMIT, where,
                         "pixels: expected memory for %u x %u pixels of %u bytes, found %zu bytes",
                         f.width, f.height, f.channels, item->cap);
    if (item->pixels)
        r = run(k, &f, settings, item->pixels, reterr);
    if (r == PEN_OK) {
        item->size[0] = f.height;
        item->size[1] = f.width;
    }
    return r;
}
