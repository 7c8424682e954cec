/* SPDX-License-Identifier: Apache-2.0 */
/* Operations and pipelines.
 *
 * A pipeline is one line of text: operations with their parameters, divided by '|':
 *     decode | random_resized_crop 224 scale=0.08,1 | hflip | tensor u8 nhwc
 * Numbers come in the order of the table, or by name; a word finds its parameter by itself. A
 * pipeline for several fields names them (names with spaces or signs in double quotes): image:
 * decode | center_crop 224 | tensor f32; label: tensor i64 Without a name it is that of the first
 * image field (with the operation clip: of the first clip), and all numeric fields are given as
 * they are.
 */
#ifndef PENSTOCK_OPS_H
#define PENSTOCK_OPS_H

#include <stddef.h>
#include <stdint.h>

#include <penstock/error.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum PenParamType {
    PEN_PARAM_INT = 1,
    PEN_PARAM_FLOAT = 2,
    PEN_PARAM_SIZE = 3,   /* height,width; one number stands for both */
    PEN_PARAM_RANGE = 4,  /* low,high */
    PEN_PARAM_WORD = 5,   /* one of `words` */
    PEN_PARAM_FLOATS = 6, /* one number, or one for each channel */
    PEN_PARAM_FACTOR = 7, /* low,high; one number x stands for 1-x,1+x (where min < 0: -x,x) */
    PEN_PARAM_SIDES =
        8, /* height,width; one number is the shorter side, the other keeps the aspect */
    PEN_PARAM_INTS = 9 /* a list of whole numbers */
} PenParamType;

typedef struct PenParam {
    const char *name;
    int32_t type;        /* a PenParamType */
    double min, max;     /* of every number */
    const char *initial; /* as text; NULL = must be given */
    const char
        *words; /* divided by spaces; of other types than PEN_PARAM_WORD: instead of numbers */
    const char *help; /* one line */
} PenParam;

typedef struct PenOp {
    const char *name;
    const char *help; /* one line */
    uint32_t n_params;
    const PenParam *params;
} PenOp;

/* All operations; the table lives for ever. */
PEN_API const PenOp *pen_ops(uint32_t *ret_n);

/* Checks the text of a pipeline by itself, without a pack, and gives its full form: every parameter
 * by name and value, in the table's order. At most `cap` bytes with the closing zero go to `buf`;
 * *ret_bytes is the length without it. With `buf` NULL it only checks. A mistake is answered with
 * its place and the nearest right word. */
PEN_NODISCARD PEN_API int pen_pipeline_check(const char *text, char *buf, size_t cap,
                                             size_t *ret_bytes, PenError *reterr);

#ifdef __cplusplus
}
#endif
#endif
