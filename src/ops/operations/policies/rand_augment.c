/* SPDX-License-Identifier: Apache-2.0 */
/* RandAugment (Cubuk et al., 2019) and TrivialAugment Wide (Müller and Hutter, 2021). */
#include "ops/language/lex.h"
#include "ops/operations/policies/augment.h"

enum { KINDS = PEN_AUGMENT_EQUALIZE + 1, MOST_OPS = 16, MOST_BINS = 1000 };
enum { RAND_OPS, RAND_MAGNITUDE, RAND_BINS, RAND_FILTER, RAND_FILL };
enum { TRIVIAL_BINS, TRIVIAL_FILTER, TRIVIAL_FILL };

#define BINS_HELP "number of magnitudes"

const PenParam pen__params_rand_augment[5] = {
    {"num_ops", PEN_PARAM_INT, 1, MOST_OPS, "2", NULL, "operations that are applied"},
    {"magnitude", PEN_PARAM_INT, 0, MOST_BINS - 1, "9", NULL,
     "strength of all operations, from 0 to num_magnitude_bins - 1"},
    {"num_magnitude_bins", PEN_PARAM_INT, 2, MOST_BINS, "31", NULL, BINS_HELP},
    PEN_AUGMENT_FILTER("nearest"),
    PEN_AUGMENT_FILL,
};

const PenParam pen__params_trivial_augment[3] = {
    {"num_magnitude_bins", PEN_PARAM_INT, 2, MOST_BINS, "31", NULL, BINS_HELP},
    PEN_AUGMENT_FILTER("nearest"),
    PEN_AUGMENT_FILL,
};

int pen__check_rand_augment(const PenParamValue *values, uint32_t column, PenError *reterr)
{
    int magnitude = (int)values[RAND_MAGNITUDE].v[0], bins = (int)values[RAND_BINS].v[0];
    if (magnitude < bins)
        return PEN_OK;
    return pen__spec_fail(
        reterr, column,
        "rand_augment: magnitude: expected at most %d with num_magnitude_bins=%d, "
        "found %d",
        bins - 1, bins, magnitude);
}

typedef struct Drawn {
    PenAugment kind;
    uint32_t bin;
    bool is_negative;
} Drawn;

/* All are drawn whether they matter or not. One bin is no choice. */
static Drawn draw_one(PenDraw *draw, uint32_t bins)
{
    Drawn one;
    one.kind = (PenAugment)pen__draw_below(draw, KINDS);
    one.bin = bins > 1 ? (uint32_t)pen__draw_below(draw, bins) : 0;
    one.is_negative = pen__draw_below(draw, 2) != 0 && pen__augment_is_signed(one.kind);
    return one;
}

static int draft_one(PenSampleDraft *d, const PenAugmentSpace *space, const Drawn *one,
                     const PenWarp *how, PenError *reterr)
{
    double magnitude = pen__augment_magnitude(space, one->kind, one->bin);
    return pen__draft_augment(d, one->kind, one->is_negative ? -magnitude : magnitude, how, reterr);
}

int pen__draft_rand_augment(PenSampleDraft *d, const PenParamValue *values, PenDraw *draw,
                            PenError *reterr)
{
    PenAugmentSpace space = {.bins = (uint32_t)values[RAND_BINS].v[0],
                             .shear = 0.3,
                             .translate_x = 150.0 / 331.0 * d->width,
                             .translate_y = 150.0 / 331.0 * d->height,
                             .rotate = 30,
                             .factor = 0.9,
                             .bits = 8,
                             .fewer_bits = 4};
    PenWarp how = pen__warp_with(&values[RAND_FILTER], &values[RAND_FILL]);
    int r = PEN_OK;
    for (uint32_t i = 0; r == PEN_OK && i < (uint32_t)values[RAND_OPS].v[0]; i++) {
        Drawn one = draw_one(draw, 1);
        one.bin = (uint32_t)values[RAND_MAGNITUDE].v[0];
        r = draft_one(d, &space, &one, &how, reterr);
    }
    return r;
}

int pen__draft_trivial_augment(PenSampleDraft *d, const PenParamValue *values, PenDraw *draw,
                               PenError *reterr)
{
    PenAugmentSpace space = {.bins = (uint32_t)values[TRIVIAL_BINS].v[0],
                             .shear = 0.99,
                             .translate_x = 32,
                             .translate_y = 32,
                             .rotate = 135,
                             .factor = 0.99,
                             .bits = 8,
                             .fewer_bits = 6};
    PenWarp how = pen__warp_with(&values[TRIVIAL_FILTER], &values[TRIVIAL_FILL]);
    Drawn one = draw_one(draw, space.bins);
    return draft_one(d, &space, &one, &how, reterr);
}
