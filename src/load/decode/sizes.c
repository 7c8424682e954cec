/* SPDX-License-Identifier: Apache-2.0 */
#include "load/decode/sizes.h"

#include <string.h>

/* Pairs of height and width. */
static const int64_t *sizes_of(const PenSlot *s, uint32_t field)
{
    const PenOutField *sizes = &s->fields[s->fields[field].sizes];
    return (const int64_t *)(const void *)((const uint8_t *)s->batch.memory + sizes->offset);
}

/* ---- lists ---------------------------------------------------------------------------------- */

void pen__sizes_list(PenSlot *s, uint32_t field)
{
    const PenOutField *f = &s->fields[field];
    const int64_t *sizes = sizes_of(s, field);
    uint8_t *memory = s->batch.memory;
    int64_t *offsets = (int64_t *)(void *)(memory + f->lengths);
    uint32_t n = s->batch.n_samples;
    PenSizesRule rule;
    pen__program_sizes(f->program, &rule);
    offsets[0] = 0;
    for (uint32_t i = 0; i < n; i++) {
        offsets[i] = (int64_t)(i * (f->bytes / rule.element));
        offsets[i + 1] =
            offsets[i] + sizes[(size_t)2 * i] * sizes[(size_t)2 * i + 1] * rule.channels;
    }
    memset(memory + f->validity, 0xff, n / 8);
    memory[f->validity + n / 8] = (uint8_t)((1u << n % 8) - 1);
}

/* ---- padded --------------------------------------------------------------------------------- */

typedef struct Grid {       /* of elements of an image, or of an image with its padding */
    size_t planes;          /* one after another */
    size_t rows, row_bytes; /* of each */
} Grid;

static Grid grid_of(const PenSizesRule *rule, uint64_t height, uint64_t width)
{
    return (Grid){.planes = rule->planes ? rule->channels : 1,
                  .rows = height,
                  .row_bytes = width * rule->element * (rule->planes ? 1 : rule->channels)};
}

static size_t grid_bytes(const Grid *g)
{
    return g->planes * g->rows * g->row_bytes;
}

/* Each copy has twice the length of the one before. A call for every element would be slow. */
static void repeat(uint8_t *to, size_t bytes, const void *element, size_t element_bytes)
{
    memcpy(to, element, element_bytes);
    for (size_t done = element_bytes; done < bytes; done *= 2)
        memcpy(to + done, to, PEN_MIN(done, bytes - done));
}

static void fill(const PenSizesRule *rule, uint8_t *to, size_t bytes)
{
    if (rule->element == 1)
        memset(to, (int)rule->pad_value, bytes);
    else if (!rule->pad_value)
        memset(to, 0, bytes);
    else if (bytes)
        repeat(to, bytes, &rule->pad_value, rule->element);
}

/* From an image at `from` to a padded one at `to`, which may overlap it. What is left of the image
 * always lies at the end of what is left of the place, or behind it: a row is never overwritten
 * before it has moved. */
static void pad_image(const PenSizesRule *rule, const Grid *image, const Grid *place, uint8_t *from,
                      uint8_t *to)
{
    uint8_t *end = to + grid_bytes(place);
    if (from < end - grid_bytes(image)) {
        memmove(end - grid_bytes(image), from, grid_bytes(image));
        from = end - grid_bytes(image);
    }
    for (size_t plane = 0; plane < image->planes; plane++) {
        for (size_t y = 0; y < image->rows; y++) {
            memmove(to, from, image->row_bytes);
            fill(rule, to + image->row_bytes, place->row_bytes - image->row_bytes);
            from += image->row_bytes;
            to += place->row_bytes;
        }
        size_t below = (place->rows - image->rows) * place->row_bytes;
        fill(rule, to, below);
        to += below;
    }
}

static uint64_t largest_side(const int64_t *sizes, uint32_t n, uint32_t unit)
{
    uint64_t most = 0;
    for (uint32_t i = 0; i < n; i++)
        most = PEN_MAX(most, (uint64_t)sizes[(size_t)2 * i]);
    return (most + unit - 1) / unit * unit;
}

void pen__sizes_pad(PenSlot *s, uint32_t field)
{
    const PenOutField *f = &s->fields[field];
    const int64_t *sizes = sizes_of(s, field);
    uint32_t n = s->batch.n_samples;
    PenSizesRule rule;
    pen__program_sizes(f->program, &rule);
    uint64_t height = largest_side(sizes, n, rule.pads), width;
    width = largest_side(sizes + 1, n, rule.pads);
    Grid place = grid_of(&rule, height, width);
    uint8_t *data = (uint8_t *)s->batch.memory + f->offset;
    for (uint32_t i = 0; i < n; i++) {
        Grid image = grid_of(&rule, (uint64_t)sizes[2 * i], (uint64_t)sizes[2 * i + 1]);
        pad_image(&rule, &image, &place, data + i * f->bytes, data + i * grid_bytes(&place));
    }
    PenTensor *t = &s->tensors[field];
    t->shape[rule.planes ? 2 : 1] = (int64_t)height;
    t->shape[rule.planes ? 3 : 2] = (int64_t)width;
}
