/* SPDX-License-Identifier: Apache-2.0 */
/* AugMix (Hendrycks et al., 2019): chains of operations on copies of the image, blended with it. */
#include "ops/operations/beta.h"
#include "ops/operations/policies/augment.h"

enum { BINS = 10, MOST_CHAINS = 8, MOST_DEPTH = 8, DRAWN_DEPTH = 3 };
enum { SEVERITY, WIDTH, DEPTH, ALPHA, ALL_OPS, FILTER, FILL };

const PenParam pen__params_aug_mix[7] = {
    {"severity", PEN_PARAM_INT, 1, BINS, "3", NULL,
     "magnitudes are drawn from so many of 10, from the weakest on"},
    {"mixture_width", PEN_PARAM_INT, 1, MOST_CHAINS, "3", NULL, "chains of operations"},
    {"chain_depth", PEN_PARAM_INT, -1, MOST_DEPTH, "-1", NULL,
     "operations of a chain; -1 or 0: 1 to 3, drawn for each chain"},
    {"alpha", PEN_PARAM_FLOAT, 0.01, 1000, "1", NULL,
     "parameter of the Dirichlet and beta distributions of the weights"},
    {"all_ops", PEN_PARAM_WORD, 0, 0, "yes", "no yes",
     "with brightness, color, contrast and sharpness"},
    PEN_AUGMENT_FILTER("bilinear"),
    PEN_AUGMENT_FILL,
};

uint32_t pen__steps_aug_mix(const PenParamValue *values)
{
    uint32_t depth = values[DEPTH].v[0] > 0 ? (uint32_t)values[DEPTH].v[0] : DRAWN_DEPTH;
    return 2 + (uint32_t)values[WIDTH].v[0] * (depth + 1);
}

/* Without all_ops the first nine. */
static const PenAugment kinds[] = {
    PEN_AUGMENT_SHEAR_X,     PEN_AUGMENT_SHEAR_Y,      PEN_AUGMENT_TRANSLATE_X,
    PEN_AUGMENT_TRANSLATE_Y, PEN_AUGMENT_ROTATE,       PEN_AUGMENT_POSTERIZE,
    PEN_AUGMENT_SOLARIZE,    PEN_AUGMENT_AUTOCONTRAST, PEN_AUGMENT_EQUALIZE,
    PEN_AUGMENT_BRIGHTNESS,  PEN_AUGMENT_COLOR,        PEN_AUGMENT_CONTRAST,
    PEN_AUGMENT_SHARPNESS,
};
enum { FEW_KINDS = 9 };

/* Weights of the chains, which add up to 1; where all are too small for a number, one has all. */
static void draw_dirichlet(PenDraw *draw, double alpha, uint32_t n, double ret[MOST_CHAINS])
{
    double sum = 0;
    for (uint32_t i = 0; i < n; i++) {
        ret[i] = pen__draw_gamma(draw, alpha);
        sum += ret[i];
    }
    if (!(sum > 0)) {
        ret[pen__draw_below(draw, n)] = 1;
        sum = 1;
    }
    for (uint32_t i = 0; i < n; i++)
        ret[i] /= sum;
}

static int draft_link(PenSampleDraft *d, const PenParamValue *values, PenDraw *draw,
                      PenError *reterr)
{
    PenAugmentSpace space = {.bins = BINS,
                             .shear = 0.3,
                             .translate_x = d->width / 3.0,
                             .translate_y = d->height / 3.0,
                             .rotate = 30,
                             .factor = 0.9,
                             .bits = 4,
                             .fewer_bits = 4};
    PenWarp how = pen__warp_with(&values[FILTER], &values[FILL]);
    PenAugment kind =
        kinds[pen__draw_below(draw, values[ALL_OPS].word ? PEN_LEN(kinds) : FEW_KINDS)];
    uint32_t bin = (uint32_t)pen__draw_below(draw, (uint64_t)values[SEVERITY].v[0]);
    bool is_negative = pen__draw_below(draw, 2) != 0 && pen__augment_is_signed(kind);
    double magnitude = pen__augment_magnitude(&space, kind, bin);
    PenSamplePlan *plan = d->sample_plan;
    int r = pen__draft_augment(d, kind, is_negative ? -magnitude : magnitude, &how, reterr);
    /* Boxes do not follow what moves only a share of the colours. */
    if (r == PEN_OK && plan->steps[plan->n_steps - 1].kind == PEN_STEP_WARP)
        plan->steps[plan->n_steps - 1].kind = PEN_STEP_BLEND_WARP;
    return r;
}

static int draft_chain(PenSampleDraft *d, const PenParamValue *values, double weight, PenDraw *draw,
                       PenError *reterr)
{
    uint32_t drawn = 1 + (uint32_t)pen__draw_below(draw, DRAWN_DEPTH);
    uint32_t depth = values[DEPTH].v[0] > 0 ? (uint32_t)values[DEPTH].v[0] : drawn;
    PenStep add = {.kind = PEN_STEP_BLEND_ADD, .u.weight = (float)weight};
    int r = PEN_OK;
    for (uint32_t i = 0; r == PEN_OK && i < depth; i++)
        r = draft_link(d, values, draw, reterr);
    return r < 0 ? r : pen__draft_step(d, &add, reterr);
}

int pen__draft_aug_mix(PenSampleDraft *d, const PenParamValue *values, PenDraw *draw,
                       PenError *reterr)
{
    double alpha = values[ALPHA].v[0], weights[MOST_CHAINS];
    double share = pen__draw_beta(draw, alpha, alpha); /* of the chains */
    uint32_t n = (uint32_t)values[WIDTH].v[0];
    PenStep begin = {.kind = PEN_STEP_BLEND_BEGIN, .u.weight = (float)(1 - share)};
    PenStep end = {.kind = PEN_STEP_BLEND_END};
    draw_dirichlet(draw, alpha, n, weights);
    int r = pen__draft_step(d, &begin, reterr);
    for (uint32_t i = 0; r == PEN_OK && i < n; i++)
        r = draft_chain(d, values, weights[i] * share, draw, reterr);
    return r < 0 ? r : pen__draft_step(d, &end, reterr);
}
