/* SPDX-License-Identifier: Apache-2.0 */
/* torchvision's GaussianBlur: a normalised kernel of exp(-x^2 / (2 sigma^2)), and an image that is
 * mirrored at its edges (its outermost pixels once). Fixed point, first across, then down, with a
 * ring of as many rows as the kernel has; weights that are 0 in fixed point are left out. */
#include <string.h>

#include "dsp/dsp.h"
#include "dsp/real.h"
#include "ops/pixels/pixels.h"

enum { MOST_RADIUS = 127, UNIT = 1 << 15, MOST_ROWS = 2 * MOST_RADIUS + 1 };

typedef struct Kernel {
    uint32_t radius;
    int16_t weights[MOST_RADIUS + 1];
} Kernel;

static double density(uint32_t x, double sigma)
{
    double d = x / sigma, exponent = -0.5 * d * d;
    return exponent < -600 ? 0 : pen__real_exp(exponent);
}

/* From the outside in, what rounding leaves goes to the next weight, and at last to the one in the
 * middle. A weight of 1 does not fit: 32767 / 32768 makes the same of every value. */
static Kernel make_kernel(uint32_t size, double sigma)
{
    Kernel k = {.radius = 0};
    double sum = 1, outside = 0;
    int32_t given = 0;
    for (uint32_t i = 1; i <= size / 2; i++)
        sum += 2 * density(i, sigma);
    for (uint32_t i = size / 2; i > 0; i--) {
        outside += density(i, sigma) / sum * UNIT;
        k.weights[i] = (int16_t)((int32_t)(outside + 0.5) - given);
        given += k.weights[i];
        if (given && !k.radius)
            k.radius = i;
    }
    k.weights[0] = (int16_t)PEN_MIN(UNIT - 2 * given, UNIT - 1);
    return k;
}

/* Which of n pixels is seen at i, mirrored as often as it takes: mostly not at all, or once. */
static uint32_t mirror(int64_t i, uint32_t n)
{
    int64_t period = 2 * ((int64_t)n - 1);
    if (n == 1)
        return 0;
    i = i < 0 ? -i : i;
    if (i > period)
        i %= period;
    return (uint32_t)(i < n ? i : period - i);
}

typedef struct Blur {
    const PenPixels *image;
    Kernel across, down;
    size_t stride;    /* values of a row */
    int16_t *widened; /* one row with what is seen beside it */
    int16_t *ring;    /* rows blurred across */
    uint32_t n_ring;
} Blur;

static int16_t *ring_row(const Blur *b, uint32_t y)
{
    return b->ring + y % b->n_ring * (b->stride + PEN_SLACK / 2);
}

static void widen_pixel(const Blur *b, const uint8_t *row, int64_t x)
{
    uint32_t c = b->image->channels, from = mirror(x, b->image->width);
    for (uint32_t i = 0; i < c; i++)
        b->widened[(x + b->across.radius) * c + i] = (int16_t)(row[from * c + i] << PEN_BLUR_BITS);
}

static void blur_across(const Blur *b, uint32_t y)
{
    const uint8_t *row = b->image->data + y * b->stride;
    int64_t radius = b->across.radius, width = b->image->width;
    int16_t *middle = b->widened + (size_t)radius * b->image->channels;
    pen__dsp()->widen(row, middle, b->stride);
    for (int64_t x = 1; x <= radius; x++) {
        widen_pixel(b, row, -x);
        widen_pixel(b, row, width - 1 + x);
    }
    pen__dsp()->blur_across(b->widened, ring_row(b, y), b->stride, b->image->channels,
                            b->across.weights, b->across.radius);
}

static uint32_t ring_rows(uint32_t radius, uint32_t height)
{
    return PEN_MIN(2 * radius + 1, height);
}

/* A row is overwritten when all rows that need it have been blurred across. */
void pen__pixels_blur(const PenPixels *image, const PenStep *step, void *scratch)
{
    Blur b = {.image = image,
              .across = make_kernel(step->u.blur.width, step->u.blur.sigma),
              .down = make_kernel(step->u.blur.height, step->u.blur.sigma),
              .stride = (size_t)image->width * image->channels,
              .widened = scratch};
    uint32_t done = 0, radius = b.down.radius;
    if (!b.across.radius && !radius)
        return;
    b.n_ring = ring_rows(radius, image->height);
    b.ring = b.widened + b.stride + 2 * (size_t)b.across.radius * image->channels + PEN_SLACK / 2;
    for (uint32_t y = 0; y < image->height; y++) {
        const int16_t *rows[MOST_ROWS];
        for (; done < image->height && done <= y + radius; done++)
            blur_across(&b, done);
        for (uint32_t i = 0; i <= 2 * radius; i++)
            rows[i] = ring_row(&b, mirror((int64_t)y + i - radius, image->height));
        pen__dsp()->blur_down(rows, image->data + y * b.stride, b.stride, b.down.weights, radius);
    }
}

uint64_t pen__blur_scratch(const PenStep *step, uint32_t width, uint32_t height, uint32_t channels)
{
    uint64_t stride = (uint64_t)width * channels, beside = (uint64_t)step->u.blur.width * channels;
    uint64_t rows = ring_rows(step->u.blur.height / 2, height);
    return 2 * (stride + beside + PEN_SLACK / 2 + rows * (stride + PEN_SLACK / 2));
}
