/* SPDX-License-Identifier: Apache-2.0 */
/* From coefficients to pixels: the inverse DCT, upsampling and colour of baseline JPEG, as a table
 * of kernels filled tier by tier. All tiers give the same bytes: those of libjpeg-turbo's islow
 * DCT, fancy upsampling and colour conversion on this kind of machine.
 *
 *     const PenJpegPixels *p = pen__jpeg_pixels();
 *     p->classify[order](coefs, n, classes);             then sort the blocks by class
 *     p->idct[order][class](coefs, list[class], n[class], quant, plane, stride);
 *     p->rgb[sampling](&row, out);                       for every row of pixels
 *
 * Blocks. A block is 64 coefficients as the entropy coding has them (before the quantisation
 * table), aligned to 64 bytes; block i of `coefs` begins at coefs + 64 * i. Any value gives a
 * defined result. The inverse DCT leaves its blocks zeroed, ready to be filled again. A class
 * promises that coefficients outside of it are zero, and is the caller's to keep; a block of a
 * smaller class may be given to the kernel of a larger one with the same result. The two orders
 * give the same bytes; each tier is fastest with its own `order`. To sort without a branch, write
 * each block to the ends of all three lists and move on only that of its class.
 *
 * Rows. PEN_JPEG_SLACK bytes before and behind what is named of a row of samples may be read
 * (their value is of no effect). Pixels are written exactly. No alignment is asked for.
 *
 * Guards. Pixels [x, x + n) of an image with chroma of half width need the chroma samples
 * [x / 2 - 1, (x + n - 1) / 2 + 1] as far as the image has them: one guard to either side. Row y of
 * one with chroma of half height needs chroma row y / 2 (the near one) and the far one, y / 2 - 1
 * for even y and y / 2 + 1 for odd y; beyond the first and the last row the near one again. A
 * component has ceil(width / 2) columns and ceil(height / 2) rows: what is decoded beyond them (the
 * rest of the last MCU) is no neighbour. */
#ifndef PEN_CODEC_JPEG_PIXELS_PIXELS_H
#define PEN_CODEC_JPEG_PIXELS_PIXELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PEN_JPEG_SLACK = 64 };

/* What of a block may be other than zero. */
enum {
    PEN_JPEG_FULL, /* everything */
    PEN_JPEG_TOP4, /* the four coefficients to the left of each of the four rows at the top */
    PEN_JPEG_DC,   /* the first one */
    PEN_JPEG_CLASSES
};

/* Where coefficient k of the zigzag sequence lies in a block. */
enum {
    PEN_JPEG_NATURAL, /* at pen__jpeg_natural[k]: row by row */
    PEN_JPEG_ZIGZAG,  /* at k */
    PEN_JPEG_ORDERS
};

extern const uint8_t pen__jpeg_natural[64];

/* Samples of the side of a block in an image that is decoded at a part of its size. */
enum { PEN_JPEG_4X4, PEN_JPEG_2X2, PEN_JPEG_1X1, PEN_JPEG_REDUCED };

typedef struct PenJpegBlock {
    uint32_t from; /* number of the block in `coefs` */
    uint32_t to;   /* of its first sample: bytes from the start of the plane */
} PenJpegBlock;

/* How many pixels share a sample of chroma: across, down. */
enum {
    PEN_JPEG_444, /* 1 x 1 */
    PEN_JPEG_422, /* 2 x 1 */
    PEN_JPEG_440, /* 1 x 2 */
    PEN_JPEG_420, /* 2 x 2 */
    PEN_JPEG_SAMPLINGS
};

/* `n` pixels of one row of the image, from column x on. */
typedef struct PenJpegRow {
    const uint8_t *y;               /* the sample of column x */
    const uint8_t *cb, *cr;         /* of column x, or x / 2, in the near row of chroma */
    const uint8_t *cb_far, *cr_far; /* the same in the far row; 4:4:0 and 4:2:0 only */
    uint32_t n;                     /* pixels, at least 1 */
    bool odd_y;                     /* the row's number is odd: 4:4:0 rounds by it */
    bool odd_x;                     /* x is odd (4:2:2, 4:2:0) */
    bool first; /* x / 2 is the image's first column of chroma: there is no guard before it */
    bool last;  /* (x + n - 1) / 2 is the image's last: there is no guard behind it */
    bool plain; /* the image has two columns of chroma or fewer, or is decoded at 1/8, and libjpeg
                 * repeats samples: 4:2:2 and 4:2:0 take the near sample as it is */
} PenJpegRow;

typedef struct PenJpegPixels {
    const char *tier; /* "c", "avx2", "avx512", "neon" */
    int32_t order;    /* the one that is faster with this tier */
    /* The class of each of n consecutive blocks. */
    void (*classify[PEN_JPEG_ORDERS])(const int16_t *coefs, uint32_t n, uint8_t *ret_classes);
    /* Blocks to 8 x 8 samples each, `stride` bytes from row to row. `quant` is in natural order,
     * whatever the order of the coefficients. */
    void (*idct[PEN_JPEG_ORDERS][PEN_JPEG_CLASSES])(int16_t *coefs, const PenJpegBlock *blocks,
                                                    uint32_t n, const uint16_t *quant,
                                                    uint8_t *plane, size_t stride);
    /* Blocks of any class to fewer samples each, as libjpeg's jidctred.c. */
    void (*reduced[PEN_JPEG_ORDERS][PEN_JPEG_REDUCED])(int16_t *coefs, const PenJpegBlock *blocks,
                                                       uint32_t n, const uint16_t *quant,
                                                       uint8_t *plane, size_t stride);
    /* A row to 3 * n bytes. */
    void (*rgb[PEN_JPEG_SAMPLINGS])(const PenJpegRow *row, uint8_t *rgb);
    /* The same for an image of one component: each sample three times. */
    void (*grey_rgb)(const uint8_t *y, uint32_t n, uint8_t *rgb);
} PenJpegPixels;

/* The table for this CPU (and PENSTOCK_CPU). */
const PenJpegPixels *pen__jpeg_pixels(void);
/* That of one tier, or NULL when this CPU has not got it: for tests. */
const PenJpegPixels *pen__jpeg_pixels_tier(const char *tier);

#endif
