/* SPDX-License-Identifier: Apache-2.0 */
/* One image, from its bytes to its place in a batch, with the scratch memory it takes.
 *
 * Lock rule: called without the lock, which it takes for a reservation. */
#ifndef PEN_LOAD_DECODE_IMAGE_H
#define PEN_LOAD_DECODE_IMAGE_H

#include "load/budget.h"
#include "ops/run/program.h"
#include "video/decoder.h"

/* What one thread decodes with. */
typedef struct PenImageDecoder {
    PenDecodeContext *context;
    uint64_t own_bytes; /* of scratch memory that the thread always has */
    PenBudget *shared;  /* a larger image takes its scratch from here */
    PenFrameDecoder *video;
} PenImageDecoder;

/* A part of a file is not enough for libjpeg, and the own decoder has stopped. */
enum { PEN_IMAGE_INCOMPLETE = PEN_END + 1 };

/* Scratch for an image that takes `need` bytes: its own, or reserved until the call below. PEN_END:
 * the loader is being closed. */
int pen__image_decoder_reserve(const PenImageDecoder *d, uint64_t need, PenError *reterr);
void pen__image_decoder_release(const PenImageDecoder *d, uint64_t need);

/* PEN_OK; PEN_IMAGE_INCOMPLETE; PEN_END: the loader is being closed. */
int pen__image_decoder_run(const PenImageDecoder *d, const PenProgram *p,
                           const PenSamplePlan *sample_plan, const PenEncoded *image, uint8_t *dst,
                           PenError *reterr);
/* The same with the header parsed already. */
int pen__image_decoder_run_parsed(const PenImageDecoder *d, const PenProgram *p,
                                  const PenSamplePlan *sample_plan, const PenImageHeader *parsed,
                                  uint8_t *dst, PenError *reterr);

#endif
