/* SPDX-License-Identifier: Apache-2.0 */
/* The reference. Sums are of integers, so that any order of adding gives the same pixels; the
 * weights are made in double precision with torch's own sequence of operations. */
#include "dsp/resample.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "base/bytes.h"
#include "base/mem.h"

static const char where[] = "dsp/resample";

enum {
    MAX_PRECISION = 22,
    CHUNK = 256 /* samples of a row that are summed up at a time */
};

/* Along one axis: which input samples make an output sample, and how much each counts. */
typedef struct Axis {
    uint32_t n, taps; /* outputs; weights kept for each */
    uint32_t precision;
    uint32_t *first, *count;
    int16_t *weights;
} Axis;

static void free_axis(Axis *a)
{
    pen__free(a->first);
    pen__free(a->count);
    pen__free(a->weights);
}

static double triangle(double x)
{
    x = x < 0 ? -x : x;
    return x < 1.0 ? 1.0 - x : 0.0;
}

/* The weights of output `i` of an axis that has `size` inputs, of sum 1; returns the largest. */
static double weigh(Axis *a, uint32_t i, uint32_t size, double *weights)
{
    double scale = (double)size / a->n, support = scale >= 1.0 ? scale : 1.0;
    double center = scale * (i + 0.5), total = 0, largest = 0;
    double inverse = scale >= 1.0 ? 1.0 / scale : 1.0;
    int64_t first = PEN_MAX((int64_t)(center - support + 0.5), (int64_t)0);
    int64_t count = PEN_MIN((int64_t)(center + support + 0.5), (int64_t)size) - first;
    count = PEN_MAX(PEN_MIN(count, (int64_t)a->taps), (int64_t)0);
    for (int64_t j = 0; j < count; j++) {
        weights[j] = triangle(((double)(j + first) - center + 0.5) * inverse);
        total += weights[j];
    }
    for (int64_t j = 0; j < count && total != 0.0; j++) {
        weights[j] /= total;
        largest = PEN_MAX(largest, weights[j]);
    }
    a->first[i] = (uint32_t)first;
    a->count[i] = (uint32_t)count;
    return largest;
}

/* As many bits as let the largest weight stay below 2^15. */
static uint32_t precision_for(double largest)
{
    uint32_t p = 0;
    while (p < MAX_PRECISION && (int)(0.5 + largest * (1 << (p + 1))) < 1 << 15)
        p++;
    return p;
}

static void fill_axis(Axis *a, uint32_t size, double *exact)
{
    double largest = 0;
    for (uint32_t i = 0; i < a->n; i++) {
        double w = weigh(a, i, size, exact + (size_t)i * a->taps);
        largest = PEN_MAX(largest, w);
    }
    a->precision = precision_for(largest);
    for (size_t i = 0; i < (size_t)a->n * a->taps; i++)
        a->weights[i] = (int16_t)(0.5 + exact[i] * (1 << a->precision));
}

static int make_axis(uint32_t size, uint32_t n, Axis *ret, PenError *reterr)
{
    uint32_t reach = (uint32_t)(((uint64_t)size + n - 1) / n); /* of the filter, to either side */
    Axis a = {.n = n, .taps = reach * 2 + 1};
    uint64_t total = (uint64_t)n * a.taps;
    double *exact = pen__alloc_array(total, sizeof *exact);
    a.first = pen__alloc_array(n, sizeof *a.first);
    a.count = pen__alloc_array(n, sizeof *a.count);
    a.weights = pen__alloc_array(total, sizeof *a.weights);
    if (!exact || !a.first || !a.count || !a.weights) {
        pen__free(exact);
        free_axis(&a);
        return pen__fail_memory(reterr, where, "weights");
    }
    memset(exact, 0, (size_t)total * sizeof *exact);
    fill_axis(&a, size, exact);
    pen__free(exact);
    *ret = a;
    return PEN_OK;
}

static uint8_t finish(int32_t sum, uint32_t precision)
{
    int32_t v = sum >> precision;
    return (uint8_t)(v < 0 ? 0 : v > 255 ? 255 : v);
}

/* `channels` is a constant wherever this is inlined, so that the sums stay in registers. */
static inline void across_row(const uint8_t *src, uint8_t *dst, const Axis *a, size_t channels)
{
    const int32_t half = 1 << (a->precision - 1);
    for (size_t x = 0; x < a->n; x++, dst += channels) {
        const uint8_t *p = src + a->first[x] * channels;
        const int16_t *w = a->weights + x * a->taps, *end = w + a->count[x];
        int32_t sum0 = half, sum1 = half, sum2 = half, sum3 = half;
        for (; w < end; w++, p += channels) {
            sum0 += p[0] * *w;
            if (channels > 1)
                sum1 += p[1] * *w;
            if (channels > 2)
                sum2 += p[2] * *w;
            if (channels > 3)
                sum3 += p[3] * *w;
        }
        dst[0] = finish(sum0, a->precision);
        if (channels > 1)
            dst[1] = finish(sum1, a->precision);
        if (channels > 2)
            dst[2] = finish(sum2, a->precision);
        if (channels > 3)
            dst[3] = finish(sum3, a->precision);
    }
}

static void across(const uint8_t *src, uint32_t width, uint32_t height, uint32_t channels,
                   uint8_t *dst, const Axis *a)
{
    size_t src_stride = (size_t)width * channels, dst_stride = (size_t)a->n * channels;
    for (uint32_t y = 0; y < height; y++, src += src_stride, dst += dst_stride) {
        switch (channels) {
        case 1:
            across_row(src, dst, a, 1);
            break;
        case 2:
            across_row(src, dst, a, 2);
            break;
        case 3:
            across_row(src, dst, a, 3);
            break;
        default:
            across_row(src, dst, a, 4);
            break;
        }
    }
}

/* Up to CHUNK samples of output row `y`; `src` points into the first input row. Always inlined:
 * with a constant n it is made of vectors. */
__attribute__((always_inline)) static inline void down_chunk(const Axis *a, size_t y,
                                                             const uint8_t *src, size_t stride,
                                                             uint8_t *dst, size_t n)
{
    int32_t sum[CHUNK];
    const int16_t *w = a->weights + y * a->taps, *end = w + a->count[y];
    src += a->first[y] * stride;
    for (size_t i = 0; i < n; i++)
        sum[i] = 1 << (a->precision - 1);
    for (; w < end; w++, src += stride)
        for (size_t i = 0; i < n; i++)
            sum[i] += src[i] * *w;
    for (size_t i = 0; i < n; i++)
        dst[i] = finish(sum[i], a->precision);
}

static void down(const uint8_t *src, size_t stride, uint8_t *dst, const Axis *a)
{
    for (size_t y = 0; y < a->n; y++, dst += stride) {
        size_t x = 0;
        for (; x + CHUNK <= stride; x += CHUNK)
            down_chunk(a, y, src + x, stride, dst + x, CHUNK);
        down_chunk(a, y, src + x, stride, dst + x, stride - x);
    }
}

/* A pass along an axis that keeps its size would change nothing, and torch leaves it out. */
static int bilinear(const PenRaster *src, const PenRaster *dst, PenError *reterr)
{
    Axis x = {0}, y = {0};
    uint8_t *between = NULL;
    const uint8_t *rows = src->data;
    bool wide = src->width != dst->width, tall = src->height != dst->height;
    size_t stride = (size_t)dst->width * src->channels;
    int r = PEN_OK;
    if (wide) {
        uint8_t *to = dst->data;
        r = make_axis(src->width, dst->width, &x, reterr);
        if (r < 0)
            goto out;
        if (tall) {
            to = between = pen__alloc_array(src->height, stride);
            if (!between) {
                r = pen__fail_memory(reterr, where, "rows");
                goto out;
            }
        }
        across(src->data, src->width, src->height, src->channels, to, &x);
        rows = to;
    }
    if (tall) {
        r = make_axis(src->height, dst->height, &y, reterr);
        if (r < 0)
            goto out;
        down(rows, stride, dst->data, &y);
    }
    if (!wide && !tall)
        memcpy(dst->data, src->data, stride * dst->height);
out:
    free_axis(&x);
    free_axis(&y);
    pen__free(between);
    return r;
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

static int nearest(const PenRaster *src, const PenRaster *dst, PenError *reterr)
{
    size_t c = src->channels, src_stride = src->width * c, dst_stride = dst->width * c;
    uint32_t *columns = pen__alloc_array(dst->width, sizeof *columns);
    if (!columns)
        return pen__fail_memory(reterr, where, "columns");
    for (uint32_t x = 0; x < dst->width; x++)
        columns[x] = nearest_index(x, src->width, dst->width);
    for (uint32_t y = 0; y < dst->height; y++) {
        const uint8_t *from = src->data + nearest_index(y, src->height, dst->height) * src_stride;
        uint8_t *to = dst->data + y * dst_stride;
        for (uint32_t x = 0; x < dst->width; x++)
            for (size_t i = 0; i < c; i++)
                to[x * c + i] = from[columns[x] * c + i];
    }
    pen__free(columns);
    return PEN_OK;
}

int pen__raster_resample(const PenRaster *src, const PenRaster *dst, int filter, PenError *reterr)
{
    if (!src->width || !src->height || !dst->width || !dst->height || src->channels < 1 ||
        src->channels > 4 || dst->channels != src->channels)
        return pen__fail(reterr, PEN_E_INVALID, where,
                         "resample: expected sizes of 1 or more and 1-4 channels, found %u x %u of "
                         "%u to %u x %u of %u",
                         src->width, src->height, src->channels, dst->width, dst->height,
                         dst->channels);
    switch (filter) {
    case PEN_FILTER_BILINEAR:
        return bilinear(src, dst, reterr);
    case PEN_FILTER_NEAREST:
        return nearest(src, dst, reterr);
    default:
        return pen__fail(reterr, PEN_E_INVALID, where, "resample: expected filter 0 or 1, found %d",
                         filter);
    }
}
