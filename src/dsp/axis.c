/* SPDX-License-Identifier: Apache-2.0 */
/* Every operation on a double stands as in torch, in the same order, so that the int16 weights come
 * out equal; the compiler must not join multiplications and additions here (see meson.build). */
#include "dsp/axis.h"

#include <stddef.h>
#include <string.h>

#include "base/attr.h"

enum { MAX_PRECISION = 22, GROUP = 4 };

/* What all outputs of an axis share. */
typedef struct Shape {
    double scale, support, inverse;
    uint32_t size;
    uint32_t reach; /* torch's limit for the inputs of one output */
} Shape;

static Shape shape_of(const PenAxisSpec *s)
{
    static const double half[] = {[PEN_FILTER_BILINEAR] = 1.0,
                                  [PEN_FILTER_BICUBIC] = 2.0,
                                  [PEN_FILTER_LANCZOS] = 3.0,
                                  [PEN_FILTER_BOX] = 0.5};
    Shape k = {.scale = (double)s->size / s->n, .size = s->size};
    k.support = k.scale >= 1.0 ? half[s->filter] * k.scale : half[s->filter];
    k.inverse = k.scale >= 1.0 ? 1.0 / k.scale : 1.0;
    uint64_t side = (uint64_t)k.support; /* rounded up below */
    k.reach = (uint32_t)PEN_MIN((side + ((double)side < k.support)) * 2 + 1, UINT32_MAX);
    return k;
}

static bool is_weighted(const PenAxisSpec *s)
{
    return s->size != s->n && s->filter != PEN_FILTER_NEAREST;
}

/* ---- filters -------------------------------------------------------------------------------- */

/* sinc(x) * sinc(x / 3). With t = pi x / 3 and sin 3t = sin t (3 - 4 sin^2 t) one sine is enough;
 * it is a polynomial, because libraries for mathematics differ between hosts. */
PEN_INLINE double lanczos(double x)
{
    static const double c[] = {-1.0 / 6,
                               1.0 / 120,
                               -1.0 / 5040,
                               1.0 / 362880,
                               -1.0 / 39916800,
                               1.0 / 6227020800,
                               -1.0 / 1307674368e3,
                               1.0 / 355687428096e3,
                               -1.0 / 121645100408832e3,
                               1.0 / 51090942171709440e3};
    const double third = 1.04719755119659774615; /* pi / 3 */
    double t = x * third, u = (x > 1.5 ? 3.0 - x : x) * third, v = u * u, p = c[9];
    for (int i = 8; i >= 0; i--)
        p = p * v + c[i];
    double sine = u + u * v * p, square = sine * sine;
    double value = square * (3.0 - 4.0 * square) / (3.0 * t * t);
    return x == 0.0 ? 1.0 : value;
}

/* `filter` is a constant wherever this is inlined. */
PEN_INLINE double filter_value(int filter, double x)
{
    if (filter == PEN_FILTER_BOX)
        return x > -0.5 && x <= 0.5 ? 1.0 : 0.0;
    x = x < 0 ? -x : x;
    if (filter == PEN_FILTER_BILINEAR)
        return x < 1.0 ? 1.0 - x : 0.0;
    if (filter == PEN_FILTER_LANCZOS)
        return x < 3.0 ? lanczos(x) : 0.0;
    const double a = -0.5;
    if (x < 1.0)
        return ((a + 2.0) * x - (a + 3.0)) * x * x + 1.0;
    return x < 2.0 ? ((a * x - 5.0 * a) * x + 8.0 * a) * x - 4.0 * a : 0.0;
}

/* ---- spans ---------------------------------------------------------------------------------- */

PEN_INLINE void span(const Shape *k, uint32_t i, uint32_t *ret_first, uint32_t *ret_count)
{
    double center = k->scale * (i + 0.5);
    int64_t first = PEN_MAX((int64_t)(center - k->support + 0.5), (int64_t)0);
    int64_t count = PEN_MIN((int64_t)(center + k->support + 0.5), (int64_t)k->size) - first;
    *ret_first = (uint32_t)first;
    *ret_count = (uint32_t)PEN_MAX(PEN_MIN(count, (int64_t)k->reach), (int64_t)1);
}

/* torch's "nearest": rounded down, in single precision but where the factor is 1 or 2. */
static uint32_t nearest_index(uint32_t i, uint32_t size, uint32_t n)
{
    if (n == size)
        return i;
    if (n == 2 * (uint64_t)size)
        return i / 2;
    float scale = (float)size / (float)n;
    uint32_t at = (uint32_t)((float)i * scale);
    return PEN_MIN(at, size - 1);
}

void pen__axis_needs(const PenAxisSpec *s, uint32_t *ret_first, uint32_t *ret_end)
{
    uint32_t last = s->first + s->len - 1, count = 1;
    if (is_weighted(s)) {
        Shape k = shape_of(s);
        span(&k, s->first, ret_first, &count);
        span(&k, last, &last, &count);
    } else {
        *ret_first = nearest_index(s->first, s->size, s->n);
        last = nearest_index(last, s->size, s->n);
    }
    *ret_end = last + count;
}

uint32_t pen__axis_reach(const PenAxisSpec *s)
{
    return is_weighted(s) ? PEN_MIN(shape_of(s).reach, s->size) : 1;
}

/* ---- tables --------------------------------------------------------------------------------- */

static uint64_t padded(uint64_t n, uint64_t to)
{
    return (n + to - 1) / to * to;
}

uint64_t pen__axis_bytes(const PenAxisSpec *s)
{
    uint64_t n = padded(s->len, GROUP);
    uint64_t weights = is_weighted(s) ? n * padded(pen__axis_reach(s), 2) : 0;
    return padded(n * 2 * sizeof(uint32_t) + weights * sizeof(int16_t), 64);
}

/* A row more than the table has, and as long as any: for outputs that are not wanted. */
uint64_t pen__axis_scratch_bytes(const PenAxisSpec *s)
{
    if (!is_weighted(s))
        return 0;
    return padded(((uint64_t)s->len + 1) * padded(pen__axis_reach(s), 2) * sizeof(double), 64);
}

/* The weights of output `i`, of sum 1; returns the largest. */
PEN_INLINE double weigh(const Shape *k, int filter, uint32_t i, uint32_t first, uint32_t count,
                        double *w)
{
    double center = k->scale * (i + 0.5), total = 0, largest = 0;
    for (uint32_t j = 0; j < count; j++)
        w[j] = filter_value(filter, ((double)(int32_t)(j + first) - center + 0.5) * k->inverse);
    for (uint32_t j = 0; j < count; j++)
        total += w[j];
    if (total == 0.0)
        return 0;
    for (uint32_t j = 0; j < count; j++) {
        w[j] /= total;
        largest = PEN_MAX(largest, w[j]);
    }
    return largest;
}

/* All outputs count for the largest weight, because it decides the precision of the whole axis. */
PEN_INLINE double weigh_all(const PenAxisSpec *s, const Shape *k, int filter, PenAxis *a,
                            double *exact)
{
    double largest = 0, *spare = exact + (size_t)s->len * a->taps;
    for (uint32_t i = 0; i < s->n; i++) {
        uint32_t e = i - s->first, first, count;
        double *w = spare;
        if (e < s->len) {
            e = s->flip ? s->len - 1 - e : e;
            first = a->at[e];
            count = a->count[e];
            w = exact + (size_t)e * a->taps;
            for (uint32_t j = count; j < a->taps; j++)
                w[j] = 0;
        } else {
            span(k, i, &first, &count);
        }
        double v = weigh(k, filter, i, first, count, w);
        largest = PEN_MAX(largest, v);
    }
    return largest;
}

static double weigh_by_filter(const PenAxisSpec *s, const Shape *k, PenAxis *a, double *exact)
{
    switch (s->filter) {
    case PEN_FILTER_BICUBIC:
        return weigh_all(s, k, PEN_FILTER_BICUBIC, a, exact);
    case PEN_FILTER_LANCZOS:
        return weigh_all(s, k, PEN_FILTER_LANCZOS, a, exact);
    case PEN_FILTER_BOX:
        return weigh_all(s, k, PEN_FILTER_BOX, a, exact);
    default:
        return weigh_all(s, k, PEN_FILTER_BILINEAR, a, exact);
    }
}

/* As many bits as let the largest weight stay below 2^15. */
static uint32_t precision_for(double largest)
{
    uint32_t p = 0;
    while (p < MAX_PRECISION && (int)(0.5 + largest * (1 << (p + 1))) < 1 << 15)
        p++;
    return p;
}

static void round_weights(const double *exact, int16_t *weights, size_t n, uint32_t precision)
{
    double one = 1 << precision;
    for (size_t i = 0; i < n; i++) {
        double v = exact[i] * one;
        weights[i] = (int16_t)(v < 0 ? v - 0.5 : v + 0.5);
    }
}

/* Equal weights make values that lie in the very middle, and rounding errors decide where those go:
 * after both axes it could be by 2 somewhere else than in Pillow. So a weight errs to the side that
 * Pillow's does, which has 22 bits. It stays below 2^15: 1/n is far from that where it is not 1. */
static void round_box_weights(const double *exact, int16_t *weights, size_t n, uint32_t precision)
{
    double one = 1 << precision, fine = 1 << MAX_PRECISION;
    for (size_t i = 0; i < n; i++) {
        double v = exact[i] * one, f = exact[i] * fine;
        int16_t low = (int16_t)v;
        weights[i] = (int16_t)(low + (low < v && (int32_t)(f + 0.5) > f));
    }
}

static void fill_weights(const PenAxisSpec *s, PenAxis *a, double *exact)
{
    Shape k = shape_of(s);
    uint32_t most = 0;
    for (uint32_t i = 0; i < s->len; i++) {
        uint32_t e = s->flip ? s->len - 1 - i : i;
        span(&k, s->first + i, &a->at[e], &a->count[e]);
        most = PEN_MAX(most, a->count[e]);
    }
    a->taps = (uint32_t)padded(most, 2);
    a->precision = precision_for(weigh_by_filter(s, &k, a, exact));
    size_t n = (size_t)s->len * a->taps, all = (size_t)padded(s->len, GROUP) * a->taps;
    if (s->filter == PEN_FILTER_BOX)
        round_box_weights(exact, a->weights, n, a->precision);
    else
        round_weights(exact, a->weights, n, a->precision);
    memset(a->weights + n, 0, (all - n) * sizeof *a->weights);
}

/* Entries near the end get weights of 0 in front instead of behind, and begin earlier. */
static void move_inside(PenAxis *a, uint32_t origin, uint32_t end)
{
    for (uint32_t i = 0; i < a->n; i++) {
        if (a->at[i] + a->taps <= end)
            continue;
        uint32_t by = PEN_MIN(a->at[i] + a->taps - end, a->at[i] - origin);
        int16_t *w = a->weights + (size_t)i * a->taps;
        memmove(w + by, w, (a->taps - by) * sizeof *w);
        memset(w, 0, by * sizeof *w);
        a->at[i] -= by;
        a->count[i] += by;
    }
}

void pen__axis_fill(const PenAxisSpec *s, uint32_t origin, void *memory, void *scratch,
                    PenAxis *ret)
{
    size_t entries = (size_t)padded(s->len, GROUP);
    PenAxis a = {.n = s->len, .taps = 0, .at = memory};
    a.count = a.at + entries;
    a.weights = (int16_t *)(a.count + entries);
    if (is_weighted(s)) {
        uint32_t first, end;
        pen__axis_needs(s, &first, &end);
        fill_weights(s, &a, scratch);
        if (s->inside)
            move_inside(&a, first, end);
    } else {
        for (uint32_t i = 0; i < s->len; i++) {
            uint32_t e = s->flip ? s->len - 1 - i : i;
            a.at[e] = nearest_index(s->first + i, s->size, s->n);
            a.count[e] = 1;
        }
    }
    for (uint32_t i = 0; i < s->len; i++)
        a.at[i] = (a.at[i] - origin) * s->unit;
    for (size_t i = s->len; i < entries; i++)
        a.at[i] = a.count[i] = 0;
    *ret = a;
}
