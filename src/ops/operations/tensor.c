/* SPDX-License-Identifier: Apache-2.0 */
/* Both ends of a pipeline. They add no step: the program knows what they say. */
#include <penstock/loader.h>

#include "ops/operations/op.h"

const PenParam pen__params_decode[2] = {
    {"mode", PEN_PARAM_WORD, 0, 0, "rgb", "rgb gray",
     "channels of the result; a mask always has one"},
    {"shrink", PEN_PARAM_WORD, 0, 0, "off", "off auto",
     "auto: decode JPEG images at 1/2, 1/4 or 1/8 of their size if the first resize makes them "
     "smaller still; faster, with slightly different pixels"},
};

const PenParam pen__params_normalize[2] = {
    {"mean", PEN_PARAM_FLOATS, -1000, 1000, "0.485,0.456,0.406", NULL,
     "per channel, for values scaled to 0-1; default: ImageNet"},
    {"std", PEN_PARAM_FLOATS, 1e-6, 1e6, "0.229,0.224,0.225", NULL,
     "per channel, for values scaled to 0-1; default: ImageNet"},
};

/* In the order of PenDtype. */
const PenParam pen__params_tensor[2] = {
    {"dtype", PEN_PARAM_WORD, 0, 0, "auto", "auto u8 f16 bf16 f32 f64 i64",
     "auto: u8 for images, the stored type for numbers; float images are x / 255 "
     "unless normalized"},
    {"layout", PEN_PARAM_WORD, 0, 0, "nhwc", "nhwc nchw nthwc ncthw ntchw",
     "channels last (nhwc) or first (nchw); for clips, nhwc means nthwc and nchw means ncthw"},
};

const PenParam pen__params_repeat[1] = {
    {"n", PEN_PARAM_INT, 1, PEN_MAX_REPEATS, NULL, NULL,
     "results per image; they are a dimension after that of the batch"},
};

const PenParam pen__params_pad_batch[2] = {
    {"to_multiple_of", PEN_PARAM_INT, 1, PEN_SIZE_LIMIT, "1", NULL,
     "round the sides of the batch up to a multiple"},
    {"value", PEN_PARAM_FLOAT, -1e6, 1e6, "0", NULL,
     "number of the result to fill with: 0-255 for u8, any number for others"},
};

int pen__draft_normalize(PenSampleDraft *d, const PenParamValue *values, PenDraw *draw,
                         PenError *reterr)
{
    (void)values;
    (void)draw;
    (void)reterr;
    d->normalized = 1;
    return PEN_OK;
}

const char *pen_dtype_name(int dtype)
{
    static const char *const names[] = {"?", "u8", "f16", "bf16", "f32", "f64", "i64", "bool"};
    return dtype >= PEN_U8 && dtype <= PEN_BOOL ? names[dtype] : names[0];
}

size_t pen_dtype_bytes(int dtype)
{
    static const size_t bytes[] = {0, 1, 2, 2, 4, 8, 8, 1};
    return dtype >= PEN_U8 && dtype <= PEN_BOOL ? bytes[dtype] : 0;
}
