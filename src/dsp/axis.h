/* SPDX-License-Identifier: Apache-2.0 */
/* Along one axis: which inputs make an output, and how much each counts. The weights are those of
 * torch.nn.functional.interpolate(uint8, antialias=True): made in double precision, kept as int16.
 */
#ifndef PEN_DSP_AXIS_H
#define PEN_DSP_AXIS_H

#include <stdbool.h>
#include <stdint.h>

#include <penstock/decode.h> /* PEN_FILTER_* */

struct PenDsp;

typedef struct PenAxis {
    uint32_t n;         /* outputs; entries up to the next multiple of 4 are there and harmless */
    uint32_t taps;      /* weights kept for each: even, those behind `count` are 0 */
    uint32_t precision; /* bits of the weights' fraction; 0: no weights, outputs are inputs */
    uint32_t *at;       /* the first input of an output, in samples from the origin */
    uint32_t *count;    /* inputs of an output, 1 or more */
    int16_t *weights;
    void *room;           /* for the form that kernels of a tier want; NULL: none */
    const uint32_t *from; /* that form, once it is made: see resample_avx512.c */
    const uint8_t *parts;
} PenAxis;

typedef struct PenAxisSpec {
    uint32_t size, n;    /* inputs and outputs of the whole axis, up to 2^28 */
    uint32_t from, span; /* the part of the inputs that makes the outputs, in eighths of an input;
                          * a span of 0: all of them */
    uint32_t first, len; /* the outputs that are wanted */
    int32_t filter;      /* PEN_FILTER_*; of no effect when size and n are equal */
    bool flip;           /* entries in reversed order */
    bool inside;         /* all `taps` inputs of an entry, but for one, are among those needed */
    uint32_t unit;       /* `at` counts in samples of which an input has so many */
} PenAxisSpec;

/* Are outputs something else than the inputs? */
bool pen__axis_changes(const PenAxisSpec *spec);
/* The inputs that the wanted outputs need: *ret_first up to *ret_end, never none. */
void pen__axis_needs(const PenAxisSpec *spec, uint32_t *ret_first, uint32_t *ret_end);
/* Inputs of one output at most. */
uint32_t pen__axis_reach(const PenAxisSpec *spec);
/* Room for the table, and for making it, at most; a multiple of 64. */
uint64_t pen__axis_bytes(const PenAxisSpec *spec);
uint64_t pen__axis_scratch_bytes(const PenAxisSpec *spec);
/* For the kernels of `dsp`. `at` counts from input `origin`. Both memories are aligned to 64; the
 * axis points into the first. */
void pen__axis_fill(const PenAxisSpec *spec, uint32_t origin, const struct PenDsp *dsp,
                    void *memory, void *scratch, PenAxis *ret);

/* What all outputs of an axis share. */
typedef struct PenAxisShape {
    double start, scale, support, inverse;
    uint32_t size, n;
    uint32_t reach; /* torch's limit for the inputs of one output */
} PenAxisShape;

PenAxisShape pen__axis_shape(const PenAxisSpec *spec);

#endif
