/* SPDX-License-Identifier: Apache-2.0 */
/* Point steps in a row become one table for each channel, applied once. What equalize and
 * autocontrast need to know of the image before them follows from the image's counts and the table
 * so far. Contrast needs the image itself: the mean of its grey values. */
#include <string.h>

#include "dsp/dsp.h"
#include "ops/pixels/pixels.h"
#include "ops/pixels/tables.h"

typedef struct Points {
    const PenPixels *image;
    size_t n;
    bool pending; /* the tables are yet to be applied */
    bool counted; /* counts are those of the image, without the tables */
    uint8_t tables[3][256];
    uint32_t counts[3][256];
} Points;

bool pen__step_is_point(const PenStep *step)
{
    return step->kind == PEN_STEP_BRIGHTNESS || step->kind == PEN_STEP_CONTRAST ||
           (step->kind >= PEN_STEP_INVERT && step->kind <= PEN_STEP_GAMMA);
}

static void clear_tables(Points *p)
{
    for (int i = 0; i < 256; i++)
        p->tables[0][i] = p->tables[1][i] = p->tables[2][i] = (uint8_t)i;
    p->pending = false;
}

static void apply_tables(Points *p)
{
    if (p->pending)
        pen__dsp()->lookup(p->image->data, p->n, p->image->channels,
                           (const uint8_t(*)[256])p->tables);
    clear_tables(p);
    p->counted = false;
}

/* For autocontrast alone the least and the largest value are all there is to know. */
static void count_extremes(Points *p)
{
    uint8_t low[3], high[3];
    pen__dsp()->extremes(p->image->data, p->n, p->image->channels, low, high);
    memset(p->counts, 0, sizeof p->counts);
    for (uint32_t c = 0; c < p->image->channels; c++)
        p->counts[c][low[c]] = p->counts[c][high[c]] = 1;
}

static void count_values(Points *p)
{
    if (p->counted)
        return;
    memset(p->counts, 0, sizeof p->counts);
    pen__dsp()->count(p->image->data, p->n, p->image->channels, p->counts);
    p->counted = true;
}

/* Of a channel as the tables make it. */
static void count_pending(const Points *p, uint32_t channel, uint32_t ret[256])
{
    memset(ret, 0, 256 * sizeof *ret);
    for (int i = 0; i < 256; i++)
        ret[p->tables[channel][i]] += p->counts[channel][i];
}

static int32_t grey_mean(const PenPixels *image)
{
    uint64_t sum = 0, n = (uint64_t)image->width * image->height;
    if (!n)
        return 0;
    if (image->channels == 3)
        sum = pen__dsp()->grey_sum(image->data, n);
    for (size_t i = 0; image->channels == 1 && i < n; i++)
        sum += image->data[i];
    return (int32_t)((2 * sum + n) / (2 * n));
}

static void add_step(Points *p, const PenStep *step)
{
    bool counts = step->kind == PEN_STEP_EQUALIZE || step->kind == PEN_STEP_AUTOCONTRAST;
    int32_t mean = 0;
    uint32_t now[256];
    uint8_t table[256];
    if (step->kind == PEN_STEP_AUTOCONTRAST && !p->pending && !p->counted)
        count_extremes(p);
    else if (counts)
        count_values(p);
    if (step->kind == PEN_STEP_CONTRAST) {
        apply_tables(p);
        mean = grey_mean(p->image);
    }
    for (uint32_t c = 0; c < p->image->channels; c++) {
        if (counts)
            count_pending(p, c, now);
        if (counts || c == 0)
            pen__point_table(step, now, mean, table);
        for (int i = 0; i < 256; i++)
            p->tables[c][i] = table[p->tables[c][i]];
    }
    p->pending = true;
}

static void fold(const PenPixels *image, const PenStep *step)
{
    size_t bytes = (size_t)image->width * image->height * image->channels;
    int32_t from = step->kind == PEN_STEP_SOLARIZE ? step->u.value : 0;
    uint8_t mask = 255, flip = 255;
    if (step->kind == PEN_STEP_POSTERIZE) {
        mask = (uint8_t) ~(255 >> step->u.value);
        flip = 0;
    }
    if (from < 256)
        pen__dsp()->fold(image->data, bytes, mask, (uint8_t)from, flip);
}

static bool is_fold(const PenStep *step)
{
    return step->kind == PEN_STEP_INVERT || step->kind == PEN_STEP_POSTERIZE ||
           step->kind == PEN_STEP_SOLARIZE;
}

void pen__pixels_points(const PenPixels *image, const PenStep *steps, uint32_t n)
{
    Points p = {.image = image, .n = (size_t)image->width * image->height};
    bool has_kernel = steps->kind == PEN_STEP_BRIGHTNESS || steps->kind == PEN_STEP_CONTRAST;
    if (n == 1 && has_kernel && image->channels == 3) {
        pen__pixels_colour(image, steps);
        return;
    }
    if (n == 1 && is_fold(steps)) {
        fold(image, steps);
        return;
    }
    clear_tables(&p);
    for (uint32_t i = 0; i < n; i++)
        add_step(&p, &steps[i]);
    apply_tables(&p);
}
