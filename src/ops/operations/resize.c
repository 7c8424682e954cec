/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/language/lex.h"
#include "ops/operations/op.h"

enum { SIZE, FILTER, MIN_SIDE, MAX_SIDE, MULTIPLE, ENLARGE };

const PenParam pen__params_resize[6] = {
    {"size", PEN_PARAM_SIDES, 1, PEN_SIZE_LIMIT, "none", "none",
     "length of the shorter side, or exact height,width; without min_side and max_side"},
    {"filter", PEN_PARAM_WORD, 0, 0, "bilinear", PEN_FILTER_WORDS, "interpolation filter"},
    {"min_side", PEN_PARAM_INTS, 1, PEN_SIZE_LIMIT, "none", "none",
     "length of the shorter side, unless the longer one would exceed max_side; of several "
     "numbers, one is drawn for each image"},
    {"max_side", PEN_PARAM_INT, 1, PEN_SIZE_LIMIT, "none", "none",
     "most pixels of the longer side; without min_side, its length"},
    {"to_multiple_of", PEN_PARAM_INT, 1, PEN_SIZE_LIMIT, "none", "none",
     "round both sides to the nearest multiple; down where max_side would be exceeded"},
    {"enlarge", PEN_PARAM_WORD, 0, 0, "yes", "yes no",
     "no: an image that min_side and max_side would make larger keeps its size"},
};

int pen__check_resize(const PenParamValue *values, uint32_t column, PenError *reterr)
{
    bool keeps = values[MIN_SIDE].n || values[MAX_SIDE].n;
    if (!values[SIZE].n && !keeps)
        return pen__spec_fail(reterr, column,
                              "resize needs size, or min_side and max_side: 'resize 224,224' or "
                              "'resize min_side=800 max_side=1333'");
    if (values[SIZE].n && (keeps || values[MULTIPLE].n || values[ENLARGE].word))
        return pen__spec_fail(reterr, column,
                              "resize: size excludes min_side, max_side, to_multiple_of and "
                              "enlarge; use min_side for the length of the shorter side");
    if (values[MAX_SIDE].n && values[MULTIPLE].n && values[MULTIPLE].v[0] > values[MAX_SIDE].v[0])
        return pen__spec_fail(reterr, column,
                              "resize: to_multiple_of: expected at most max_side (%u), found %u",
                              (unsigned)values[MAX_SIDE].v[0], (unsigned)values[MULTIPLE].v[0]);
    return PEN_OK;
}

static uint32_t clamped(uint64_t side)
{
    return (uint32_t)PEN_MIN(side, UINT32_MAX);
}

/* ---- sides ---------------------------------------------------------------------------------- */

static uint64_t max_side(const PenParamValue *values)
{
    return values[MAX_SIDE].n ? (uint64_t)values[MAX_SIDE].v[0] : UINT32_MAX;
}

/* The nearest multiple, of two the larger one; at least 1 times, and not more than the longest side
 * allowed. */
static uint64_t round_side(const PenParamValue *values, uint64_t side)
{
    uint64_t unit = values[MULTIPLE].n ? (uint64_t)values[MULTIPLE].v[0] : 1;
    uint64_t n = PEN_MAX((side + unit / 2) / unit, 1u);
    return PEN_MIN(n, max_side(values) / unit) * unit;
}

/* As torchvision: the shorter side is `min_side` and the longer one is rounded down; or where that
 * is too long, it is max_side, and the shorter one is rounded down. No side becomes 0. */
static PenSize bounded(const PenParamValue *values, uint64_t min_side, PenSize from)
{
    uint64_t a = PEN_MIN(from.width, from.height), b = PEN_MAX(from.width, from.height);
    uint64_t most = max_side(values), first = min_side, second = min_side * b / a;
    if (!min_side)
        first = most * a / b;
    else if (second > most)
        first = most * first / second;
    if (!min_side || second > most)
        second = most;
    if (values[ENLARGE].word && second >= b) { /* no */
        first = a;
        second = b;
    }
    first = round_side(values, PEN_MAX(first, 1u));
    second = round_side(values, second);
    bool is_tall = from.width <= from.height;
    return (PenSize){.width = clamped(is_tall ? first : second),
                     .height = clamped(is_tall ? second : first)};
}

/* The longer side is rounded down, as in torchvision. */
static PenSize resized(const PenParamValue *values, uint64_t min_side, PenSize from)
{
    const PenParamValue *size = &values[SIZE];
    if (size->n == 2)
        return (PenSize){.width = (uint32_t)size->v[1], .height = (uint32_t)size->v[0]};
    if (!size->n)
        return bounded(values, min_side, from);
    uint64_t side = (uint64_t)size->v[0];
    uint64_t w = from.width <= from.height ? side : side * from.width / from.height;
    uint64_t h = from.width <= from.height ? side * from.height / from.width : side;
    return (PenSize){.width = clamped(w), .height = clamped(h)};
}

/* ---- for the program ------------------------------------------------------------------------ */

static uint64_t largest(const PenParamValue *sides)
{
    uint64_t most = 0;
    for (uint32_t i = 0; i < sides->n; i++)
        most = PEN_MAX(most, (uint64_t)sides->v[i]);
    return most;
}

/* Of images of any size. Without max_side there is no bound. */
static PenSize bounds(const PenParamValue *values)
{
    uint64_t most = max_side(values), shorter = largest(&values[MIN_SIDE]);
    if (!values[MAX_SIDE].n)
        return (PenSize){.width = 0};
    shorter = shorter ? PEN_MIN(shorter, most) : most;
    return (PenSize){.most_short = (uint32_t)round_side(values, shorter),
                     .most_long = (uint32_t)round_side(values, most)};
}

void pen__size_resize(const PenParamValue *values, PenSize *size)
{
    bool one_side = values[MIN_SIDE].n <= 1;
    if (values[SIZE].n == 2 || (size->width && one_side))
        *size = resized(values, values[MIN_SIDE].n ? (uint64_t)values[MIN_SIDE].v[0] : 0, *size);
    else
        *size = values[SIZE].n ? (PenSize){.width = 0} : bounds(values);
}

int pen__draft_resize(PenSampleDraft *d, const PenParamValue *values, PenDraw *draw,
                      PenError *reterr)
{
    const PenParamValue *sides = &values[MIN_SIDE];
    uint64_t which = sides->n > 1 ? pen__draw_below(draw, sides->n) : 0;
    PenSize to = resized(values, sides->n ? (uint64_t)sides->v[which] : 0,
                         (PenSize){.width = d->width, .height = d->height});
    return pen__draft_resize_to(d, to.width, to.height, (int)values[FILTER].word, reterr);
}
