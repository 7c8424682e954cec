/* SPDX-License-Identifier: Apache-2.0 */
/* What is inside of a program; for this folder alone. */
#ifndef PEN_OPS_RUN_PROGRAM_IMPL_H
#define PEN_OPS_RUN_PROGRAM_IMPL_H

#include "dsp/dsp.h"
#include "ops/operations/op.h"
#include "ops/run/program.h"

typedef struct PenProgramOp {
    const PenOp *op;
    uint32_t draw_id;         /* PEN_DRAW_ID_* */
    uint32_t occurrence;      /* operations with this draw_id before it */
    uint32_t inside, bracket; /* as in PenSpecOp */
    PenParamValue values[PEN_MAX_PARAMS];
} PenProgramOp;

typedef struct PenClasses {
    uint32_t n;       /* 0: numbers are stored as they are */
    uint32_t on, off; /* elements of the result for the class and for all others */
    const char *of;   /* in the program's operations; NULL: the only image that is mixed */
} PenClasses;

struct PenProgram {
    PenFieldKind kind;
    int32_t colour;
    uint32_t channels;      /* of the result; of images and masks */
    uint32_t width, height; /* of the result; 0: of the sample plan, and then */
    PenSize most;           /* its bounds */
    uint32_t pads;          /* results are padded to a multiple of this; 0: they are not */
    uint64_t pad_value;     /* as an element of their type */
    PenPatches patches;     /* results are sequences of these; a side of 0: they are not */
    int shrinks;            /* images may be decoded at a smaller size */
    uint32_t planes;        /* 1: each channel in a plane of its own */
    uint64_t plane;         /* elements from one to the next; 0: those of the result */
    PenClipRule clip;       /* of clips */
    PenClipShape clip_shape;
    uint64_t frame_step, view_step; /* elements from one to the next */
    PenTensor tensor;
    uint64_t bytes, elements;
    uint32_t repeats;    /* results of one image, in a dimension of their own; 0: one, without it */
    PenStoreTable table; /* of images */
    PenMixRule mix;      /* of images and clips */
    PenClasses classes;  /* of numbers */
    /* What random_erasing writes into the result, as elements of its type. */
    uint32_t erase_value[PEN_MAX_ERASE][4];
    uint32_t n_ops;
    PenProgramOp ops[];
};

/* program_clip.c */
int pen__program_set_clip(PenProgram *p, const PenSpecOp *op, PenError *reterr);
/* Sets the steps too; shape of one sample, without its type. `layout` is the word of tensor. */
PenTensor pen__program_clip_tensor(PenProgram *p, uint32_t layout);

/* program_mix.c */
int pen__program_set_mix(PenProgram *p, const PenSpecOp *op, PenError *reterr);
void pen__program_set_classes(PenProgram *p, const PenSpecOp *op); /* behind its tensor */
int pen__program_store_class(const PenProgram *p, const uint8_t *number, void *dst,
                             PenError *reterr);

#endif
