/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/sample/orientation.h"

#include <stdbool.h>
#include <string.h>

/* From the upright image to the stored one: swap x and y, then mirror. */
static const struct {
    bool swap, mirror_x, mirror_y;
} ways[9] = {
    [2] = {0, 1, 0}, [3] = {0, 1, 1}, [4] = {0, 0, 1}, [5] = {1, 0, 0},
    [6] = {1, 0, 1}, [7] = {1, 1, 1}, [8] = {1, 1, 0},
};

int pen__turn_needed(uint8_t orientation)
{
    return orientation >= 2 && orientation <= 8;
}

PenBox pen__turn_upright(const PenImageShape *shape)
{
    if (pen__turn_needed(shape->orientation) && ways[shape->orientation].swap)
        return (PenBox){.w = shape->height, .h = shape->width};
    return (PenBox){.w = shape->width, .h = shape->height};
}

int pen__turn_mirrors_x(uint8_t orientation)
{
    return pen__turn_needed(orientation) &&
           (ways[orientation].swap ? ways[orientation].mirror_y : ways[orientation].mirror_x);
}

int pen__turn_mirrors_y(uint8_t orientation)
{
    return pen__turn_needed(orientation) &&
           (ways[orientation].swap ? ways[orientation].mirror_x : ways[orientation].mirror_y);
}

PenBox pen__turn_box(const PenImageShape *shape, PenBox b)
{
    if (!pen__turn_needed(shape->orientation))
        return b;
    if (ways[shape->orientation].swap)
        b = (PenBox){.x = b.y, .y = b.x, .w = b.h, .h = b.w};
    if (ways[shape->orientation].mirror_x)
        b.x = shape->width - b.x - b.w;
    if (ways[shape->orientation].mirror_y)
        b.y = shape->height - b.y - b.h;
    return b;
}

void pen__turn_row(const PenTurn *t, uint32_t y, const uint8_t *row)
{
    bool swap = ways[t->orientation].swap;
    size_t c = t->channels, width = swap ? t->h : t->w;
    /* Bytes from one stored pixel to the next, and the place of the row's first. */
    ptrdiff_t step = (ptrdiff_t)(swap ? width * c : c);
    size_t along = ways[t->orientation].mirror_y ? t->h - 1 - y : y;
    uint8_t *to = t->upright + along * (swap ? c : width * c);
    if (ways[t->orientation].mirror_x) {
        to += (ptrdiff_t)(t->w - 1) * step;
        step = -step;
    }
    for (uint32_t x = 0; x < t->w; x++, to += step, row += c)
        memcpy(to, row, c);
}
