/* SPDX-License-Identifier: Apache-2.0 */
/* Finished segments: DC sums, and the blocks that are wanted on lists by their class, from which
 * they become samples, many of a kind at a time. */
#include <string.h>

#include "base/bytes.h"
#include "codec/jpeg/decoder/decoder_impl.h"

_Static_assert(offsetof(PenJpegBlock, from) == 0 && offsetof(PenJpegBlock, to) == 4,
               "a block on a list is two numbers, the lower one first");

#define INLINE static inline __attribute__((always_inline))

/* Blocks of one component that are looked at one after another. */
typedef struct Walk {
    int16_t *coefs;                       /* of the next */
    uint32_t block;                       /* its number */
    const uint8_t *classes;               /* its class */
    int32_t dc;                           /* sum up to here */
    PenJpegBlock *list[PEN_JPEG_CLASSES]; /* ends of the lists */
} Walk;

INLINE void add_dc(Walk *w, uint32_t j)
{
    int16_t *coefs = w->coefs + (size_t)j * 64;
    w->dc += coefs[0];
    coefs[0] = (int16_t)w->dc;
}

/* A block goes to the ends of all three lists, and only that of its class grows: no branch depends
 * on what is in the picture. */
INLINE void keep(Walk *w, uint32_t j, uint32_t to)
{
    uint32_t class = w->classes[j];
    /* Both numbers at once: a copy of what was just written in two parts would have to wait. */
    uint64_t both = (uint64_t)to << 32 | (w->block + j);
    add_dc(w, j);
    for (uint32_t c = 0; c < PEN_JPEG_CLASSES; c++)
        pen__store64(w->list[c], both);
    /* By class being 0, 1 or 2, in arithmetic: of comparisons the compiler makes a branch. */
    w->list[0] += (class - 1u) >> 31;
    w->list[1] += class & 1;
    w->list[2] += class >> 1;
}

INLINE void leave(Walk *w, uint32_t j)
{
    add_dc(w, j);
    memset(w->coefs + (size_t)j * 64, 0, 64 * sizeof *w->coefs);
}

INLINE void go_on(Walk *w, uint32_t blocks)
{
    w->coefs += (size_t)blocks * 64;
    w->block += blocks;
    w->classes += blocks;
}

/* MCUs that are of no interest. */
INLINE void leave_mcus(const PenOwn *own, Walk *w, uint32_t n, uint32_t per_mcu)
{
    for (uint32_t m = 0; m < n; m++, go_on(w, own->mcu_blocks))
        for (uint32_t j = 0; j < per_mcu; j++)
            leave(w, j);
}

/* MCUs side by side, from column `x` of row `y` on. */
typedef struct Strip {
    uint32_t x, y, n;
} Strip;

/* How many of them come before those that are wanted, and how many up to the last of these. */
INLINE void cut_strip(const PenOwnWanted *want, const Strip *s, uint32_t *ret_before,
                      uint32_t *ret_end)
{
    uint32_t right = want->right + 1, end = s->x < right ? PEN_MIN(s->n, right - s->x) : 0;
    uint32_t before = s->x < want->left ? want->left - s->x : 0;
    *ret_end = s->y < want->top ? 0 : end;
    *ret_before = PEN_MIN(before, *ret_end);
}

/* A component of `h` x `v` blocks an MCU, of which some at the edge are not wanted. */
INLINE void walk_strip(const PenOwn *own, uint32_t i, Walk *w, const Strip *s, const uint32_t h,
                       const uint32_t v)
{
    const PenOwnPlane *p = &own->planes[i];
    const PenOwnWanted *want = &own->wanted;
    uint32_t left = want->block_left[i], columns = want->block_right[i] - left;
    uint32_t top = want->block_top[i], rows = want->block_bottom[i] - top;
    uint32_t row = s->y % own->ring_rows * p->ring_bytes, side = p->side;
    uint32_t below = side * (uint32_t)p->stride;
    uint32_t before, end;
    cut_strip(want, s, &before, &end);
    leave_mcus(own, w, before, h * v);
    for (uint32_t m = before; m < end; m++, go_on(w, own->mcu_blocks))
        for (uint32_t j = 0; j < h * v; j++) {
            uint32_t x = (s->x + m) * h + j % h - left, y = s->y * v + j / h - top;
            if (h * v > 1 && (x > columns || y > rows))
                leave(w, j);
            else
                keep(w, j, row + j / h * below + x * side);
        }
    leave_mcus(own, w, s->n - end, h * v);
}

INLINE void walk_job(const PenOwn *own, const PenOwnJob *job, uint32_t i, Walk *w, const uint32_t h,
                     const uint32_t v)
{
    uint32_t width = own->g.mcus_x;
    Strip s = {.x = job->mcu % width, .y = job->mcu / width};
    for (uint32_t left = job->n_mcus; left; left -= s.n, s.x = 0, s.y++) {
        s.n = PEN_MIN(left, width - s.x);
        walk_strip(own, i, w, &s, h, v);
    }
}

/* Returns the predictor behind the job. */
static int32_t add_component(PenOwn *own, const PenOwnJob *job, uint32_t i, uint32_t block,
                             const uint8_t *classes)
{
    PenOwnPlane *p = &own->planes[i];
    block += p->first_block;
    Walk w = {.coefs = own->coefs + (size_t)block * 64,
              .block = block,
              .classes = classes + p->first_block,
              .dc = job->from.dc[i]};
    for (uint32_t c = 0; c < PEN_JPEG_CLASSES; c++)
        w.list[c] = p->list[c] + p->n[c];
    if (p->h * p->v == 1)
        walk_job(own, job, i, &w, 1, 1);
    else if (p->v == 1)
        walk_job(own, job, i, &w, 2, 1);
    else if (p->h == 1)
        walk_job(own, job, i, &w, 1, 2);
    else
        walk_job(own, job, i, &w, 2, 2);
    for (uint32_t c = 0; c < PEN_JPEG_CLASSES; c++)
        p->n[c] = (uint32_t)(w.list[c] - p->list[c]);
    return w.dc;
}

void pen__own_add(PenOwn *own, const PenOwnJob *job, uint32_t slot, int32_t ret_dc[3])
{
    uint8_t classes[PEN_OWN_SLOT_BLOCKS];
    uint32_t first = slot * own->slot_blocks + job->first_block;
    own->pixels->classify[own->order](own->coefs + (size_t)first * 64,
                                      job->n_mcus * own->mcu_blocks, classes);
    for (uint32_t i = 0; i < own->head.components; i++)
        ret_dc[i] = add_component(own, job, i, first, classes);
}

/* The inverse DCT of a plane's blocks of one class. */
static void transform(const PenOwn *own, uint32_t i, uint32_t class)
{
    const PenOwnPlane *p = &own->planes[i];
    const PenJpegPixels *k = own->pixels;
    uint32_t reduced = p->side == 4 ? PEN_JPEG_4X4 : p->side == 2 ? PEN_JPEG_2X2 : PEN_JPEG_1X1;
    (p->side == 8 ? k->idct[own->order][class] : k->reduced[own->order][reduced])(
        own->coefs, p->list[class], p->n[class], own->head.quant[i], p->data, p->stride);
}

void pen__own_flush(PenOwn *own)
{
    for (uint32_t i = 0; i < own->head.components; i++) {
        PenOwnPlane *p = &own->planes[i];
        for (uint32_t c = 0; c < PEN_JPEG_CLASSES; c++) {
            if (p->n[c])
                transform(own, i, c);
            p->n[c] = 0;
        }
    }
    while (own->n_used)
        own->free_slots[own->n_free++] = own->used_slots[--own->n_used];
}
