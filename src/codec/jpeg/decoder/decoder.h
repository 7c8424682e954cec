/* SPDX-License-Identifier: Apache-2.0 */
/* Our own decoder of tiled JPEGs. It decodes only the segments that touch the box, several at a
 * time, and returns the same pixels as libjpeg-turbo. Wherever libjpeg might interpret something in
 * another way (an unusual head, a code that does not exist, a run beyond the end of a block, a
 * segment that ends early), it stops with PEN_END, and libjpeg decodes the remaining rows. So only
 * libjpeg decides what is damaged, and no pixel depends on which of them decoded it. */
#ifndef PEN_CODEC_JPEG_DECODER_DECODER_H
#define PEN_CODEC_JPEG_DECODER_DECODER_H

#include <penstock/decode.h>

#include "codec/encoded.h"
#include "codec/jpeg/entries.h"
#include "codec/jpeg/tiled.h"

/* Working memory for one thread at a time, kept from image to image. */
typedef struct PenOwn PenOwn;

int pen__own_new(PenOwn **ret, PenError *reterr);
void pen__own_free(PenOwn **own); /* accepts NULL */

/* Is it used? Else libjpeg decodes everything. */
bool pen__own_is_on(void);

/* The same of one decoder: see pen__own_use. */
bool pen__own_decodes(const PenOwn *own);

/* Are its planes and slots made for files of these components and sampling factors? */
bool pen__own_takes(const PenJpegInfo *info);

/* For tests and benchmarks: uses the kernels of one tier ("c", "avx2", ...) or leaves everything to
 * libjpeg ("turbo"). PEN_E_UNSUPPORTED if this CPU does not have them. */
int pen__own_use(PenOwn *own, const char *tier, PenError *reterr);

/* A box, in pixels of the image at 1 / 2^shrink of its size, rounded up. */
typedef struct PenOwnBox {
    PenBox box;
    uint32_t shrink; /* 0 to 3 */
} PenOwnBox;

/* A box of a tiled image, whose header has been checked. */
typedef struct PenOwnRequest {
    const PenEncoded *image;
    const PenJpegHeader *header;
    PenOwnBox at;
    bool grey_as_rgb; /* rows of grey images are delivered as RGB */
    const PenLimits *limits;
    /* The next rows from the top of the box. < 0 stops and is returned. */
    int (*rows)(void *ctx, const PenRowSpan *span, PenError *reterr);
    void *ctx;
} PenOwnRequest;

/* PEN_OK: all rows are delivered. PEN_END: *ret_given are, and the rest is left to libjpeg. */
int pen__own_decode(PenOwn *own, const PenOwnRequest *request, uint32_t *ret_given,
                    PenError *reterr);

/* Which bytes [*ret_from, *ret_end) of the scan of a file with an entry index a box needs. Of
 * `info` it takes size, components and sampling. */
void pen__own_scan_bytes(const PenJpegInfo *info, const PenJpegEntries *entries,
                         const PenOwnBox *box, uint64_t *ret_from, uint64_t *ret_end);

/* The last MCU that libjpeg reads for a box: it reads entire rows, one more where it upsamples
 * rows, and several at once of one component with a vertical factor. Of `info` it takes size,
 * components and sampling. */
uint32_t pen__own_last_mcu(const PenJpegInfo *info, const PenOwnBox *box);

/* Memory of the decoder for a box of a tiled image, with what it keeps from earlier images; without
 * an image (NULL) only the latter. A box outside of the image counts as none. */
uint64_t pen__own_memory(const PenEncoded *image, const PenJpegInfo *info, const PenOwnBox *at);

#endif
