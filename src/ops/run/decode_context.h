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
    PenScratch images[2];  /* between steps */
    PenScratch upright;    /* a region turned by its orientation */
    PenScratch row;        /* with a border */
    PenScratch shared_box; /* pixels for several plans */
    PenStageClock *clock;  /* of the sample; NULL: it is not timed */
};

/* Holds at least so many bytes then; what was in it is lost. */
int pen__scratch_hold(PenScratch *s, uint64_t bytes, PenError *reterr);

#endif
