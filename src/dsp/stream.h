/* SPDX-License-Identifier: Apache-2.0 */
/* Resizing of rows as they come: horizontally into a small ring of rows, then vertically, bit for
 * bit what torch.nn.functional.interpolate gives on uint8 with antialias=True ("nearest" without;
 * box is not in torch, and made the same way). No whole image is held. */
#ifndef PEN_DSP_STREAM_H
#define PEN_DSP_STREAM_H

#include <stddef.h>
#include <stdint.h>

#include <penstock/decode.h>

#include "base/error.h"

typedef struct PenResize {
    uint32_t src_width, src_height; /* of the image, or crop, that is resized */
    uint32_t width, height;         /* of the whole result */
    PenBox window;                  /* the part of the result that is wanted */
    uint32_t channels;              /* 1 to 4 */
    int32_t filter;                 /* PEN_FILTER_*; of no effect where sizes are equal */
    int32_t flip_x, flip_y;         /* the window is mirrored after all else */
    /* The part of the source that becomes the result, in eighths of a pixel; a width of 0: all of
     * it. It touches every row and column of the source, and the filter is not "nearest". */
    PenBox part;
} PenResize;

/* Sizes of 1 to PEN_RESIZE_SIDE, a window inside of the result, 1-4 channels, a known filter: the
 * calls below take no other. */
enum { PEN_RESIZE_SIDE = 1 << 28 };
int pen__resize_check(const PenResize *what, PenError *reterr);

/* Which pixels of the source the window needs. Never empty. */
void pen__resize_needs(const PenResize *what, PenBox *ret);
/* The most memory a stream holds for it. */
uint64_t pen__resize_memory(const PenResize *what);

/* Row `y` of the window, mirrored or not as asked for: window.w * channels bytes and PEN_SLACK
 * readable ones. Rows come from the top, or with flip_y from the bottom. */
typedef int (*PenRowFn)(void *ctx, uint32_t y, const uint8_t *row, PenError *reterr);

/* Working memory for one thread at a time; tables and rows are kept for the next image. */
typedef struct PenStream PenStream;

int pen__stream_new(PenStream **ret, PenError *reterr);
void pen__stream_free(PenStream **s); /* accepts NULL */
/* Gives back what is above `bytes`; between images. */
void pen__stream_trim(PenStream *s, uint64_t bytes);

/* Checks `what`. A stream may be started anew at any time; the image before is given up. */
int pen__stream_start(PenStream *s, const PenResize *what, PenRowFn row, void *ctx,
                      PenError *reterr);
/* `n` rows of the box of pen__resize_needs, the next ones from its top; PEN_SLACK readable bytes
 * follow every row. After its last row every row of the window has been given out. What `row`
 * answers below 0 is returned at once, and the stream has to be started anew. */
int pen__stream_push(PenStream *s, const uint8_t *rows, size_t stride, uint32_t n,
                     PenError *reterr);

#endif
