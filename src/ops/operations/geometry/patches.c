/* SPDX-License-Identifier: Apache-2.0 */
/* Images as sequences of patches: as large as so many patches allow, with the rule of SigLIP 2
 * (get_image_size_for_max_num_patches), number by number. */
#include "ops/language/lex.h"
#include "ops/operations/op.h"

enum { SIDE, LENGTH, FILTER };

const PenParam pen__params_patches[3] = {
    {"side", PEN_PARAM_INT, 1, PEN_PATCH_SIDE, NULL, NULL,
     "height and width of a patch, in pixels"},
    {"length", PEN_PARAM_INT, 1, PEN_PATCHES_MOST, PEN_TOKENS_WORD, PEN_TOKENS_WORD,
     "most patches of an image, which a shorter sequence is padded to; tokens: the length of the "
     "step, of the loader's lengths"},
    {"filter", PEN_PARAM_WORD, 0, 0, "bilinear", PEN_FILTER_WORDS, "interpolation filter"},
};

bool pen__patches_by_step(const PenOp *op, const PenParamValue *values)
{
    return pen__op_number(op) == PEN_OP_patches && !values[LENGTH].n;
}

void pen__patches_set_length(PenParamValue *values, uint32_t length)
{
    values[LENGTH] = (PenParamValue){.n = 1, .v = {length}};
}

PenPatches pen__patches_of(const PenParamValue *values)
{
    return (PenPatches){.side = (uint32_t)values[SIDE].v[0],
                        .length = (uint32_t)values[LENGTH].v[0]};
}

/* Of a side, at least 1: rounded up. These operations on doubles are exact on every machine. */
static uint64_t count(uint32_t pixels, double scale, uint32_t side)
{
    double n = pixels * scale / side;
    uint64_t whole = (uint64_t)n;
    return PEN_MAX(whole + ((double)whole < n), 1u);
}

/* In patches. */
static PenSize scaled(PenSize from, double scale, uint32_t side)
{
    return (PenSize){.width = (uint32_t)count(from.width, scale, side),
                     .height = (uint32_t)count(from.height, scale, side)};
}

static bool fits(PenSize in_patches, const PenPatches *p)
{
    uint32_t longest = PEN_SIZE_LIMIT / p->side;
    return (uint64_t)in_patches.width * in_patches.height <= p->length &&
           in_patches.width <= longest && in_patches.height <= longest;
}

/* The largest scale that fits, as far as bisecting finds it: one patch always does. */
static PenSize largest(PenSize from, const PenPatches *p)
{
    static const double eps = 1e-5;
    double low = eps / 10, high = 100;
    while (high - low >= eps) {
        double scale = (low + high) / 2;
        *(fits(scaled(from, scale, p->side), p) ? &low : &high) = scale;
    }
    return scaled(from, low, p->side);
}

void pen__size_patches(const PenParamValue *values, PenSize *size)
{
    PenPatches p = pen__patches_of(values);
    uint32_t longest = PEN_SIZE_LIMIT / p.side, root = 0;
    while ((uint64_t)(root + 1) * (root + 1) <= p.length)
        root++;
    *size = (PenSize){.most_short = PEN_MIN(root, longest) * p.side,
                      .most_long = PEN_MIN(p.length, longest) * p.side};
}

int pen__draft_patches(PenSampleDraft *d, const PenParamValue *values, PenDraw *draw,
                       PenError *reterr)
{
    PenPatches p = pen__patches_of(values);
    PenSize to = largest((PenSize){.width = d->width, .height = d->height}, &p);
    (void)draw;
    return pen__draft_resize_to(d, to.width * p.side, to.height * p.side, (int)values[FILTER].word,
                                reterr);
}
