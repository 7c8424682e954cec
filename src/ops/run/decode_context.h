/* SPDX-License-Identifier: Apache-2.0 */
/* What a thread keeps from image to image. */
#ifndef PEN_OPS_RUN_DECODE_CONTEXT_H
#define PEN_OPS_RUN_DECODE_CONTEXT_H

#include "dsp/stream.h"
#include "ops/run/program.h"

typedef struct PenScratch {
    uint8_t *data;
    size_t bytes; /* PEN_SLACK more are readable */
} PenScratch;

struct PenDecodeContext {
    PenDecoder *decoder;
    PenStream *stream;
    PenScratch images[2]; /* between steps */
    PenScratch upright;   /* a region turned by its orientation */
    PenScratch row;       /* with a border */
    PenScratch blend;     /* from PEN_STEP_BLEND_BEGIN to _END */
    PenScratch filter;    /* rows around the one that a filter makes */
    PenStageClock *clock; /* of the sample; NULL: it is not timed */
    /* For plans that run together: contexts without a decoder; NULL: there was no need of it. */
    PenDecodeContext *parts[PEN_MAX_TOGETHER];
};

/* Holds at least so many bytes then; what was in it is lost. */
int pen__scratch_hold(PenScratch *s, uint64_t bytes, PenError *reterr);
/* Number i of `parts`, made if need be. */
int pen__decode_context_part(PenDecodeContext *k, uint32_t i, PenDecodeContext **ret,
                             PenError *reterr);

#endif
