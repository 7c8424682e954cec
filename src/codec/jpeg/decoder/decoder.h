/* SPDX-License-Identifier: Apache-2.0 */
/* Our own decoder of tiled JPEGs. It decodes only the segments that touch the box, several at a
 * time, and gives what libjpeg-turbo gives. Wherever it meets something that libjpeg could take in
 * another way than it does (an unusual head, a code that does not exist, a run beyond the end of a
 * block, a segment that ends early) it stops with PEN_END, and libjpeg decodes the rows that are
 * left: so there is one judge of what is damaged, and no pixel that depends on who decoded it. */
#ifndef PEN_CODEC_JPEG_DECODER_DECODER_H
#define PEN_CODEC_JPEG_DECODER_DECODER_H

#include "codec/region/region_impl.h"

/* PEN_OK: all rows are given. PEN_END: *ret_given are, and the rest is libjpeg's to do. `info` is
 * that of the head. */
int pen__own_region(PenDecoder *d, const PenEncoded *image, const PenJpegInfo *info,
                    const PenRegion *region, uint32_t *ret_given, PenError *reterr);

/* Memory of the own decoder for a box of a tiled image, with what it keeps from images before; that
 * alone when `image` is NULL. */
uint64_t pen__own_memory(const PenEncoded *image, const PenJpegInfo *info, const PenBox *box);

/* For tests and benchmarks: makes a decoder use the kernels of one tier ("c", "avx2", ...) or
 * libjpeg ("turbo"). PEN_E_UNSUPPORTED when this CPU has not got them. */
int pen__own_use(PenDecoder *d, const char *tier, PenError *reterr);

void pen__own_free(PenDecoder *d);

#endif
