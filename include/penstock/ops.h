/* SPDX-License-Identifier: Apache-2.0 */
/** @file
 * Operations and pipelines. Any thread may call the functions here.
 *
 * A pipeline is one line of text: operations with their parameters, separated by '|':
 *
 *     decode | random_resized_crop 224 scale=0.08,1 | hflip | tensor u8 nhwc
 *
 * A number without a name is the next parameter in the order of the table; a word selects its
 * parameter by itself. A pipeline for several fields names each field and separates them by ';'.
 * Names with spaces or signs are in double quotes:
 *
 *     image: decode | center_crop 224 | tensor f32; label: tensor i64; caption: text; id: key
 *
 * A field can be used several times, under names of their own, and a mask can follow such a view:
 *
 *     a = image: decode | random_crop 64; b = image: decode | random_crop 64 | repeat 8;
 *     m = mask of=a: decode | random_crop 64
 *
 * random_apply, random_choice and random_order have operations in brackets, and these may have
 * brackets of their own:
 *
 *     decode | random_crop 64 | random_apply p=0.8 [color_jitter 0.4 | random_choice [hflip]
 * [vflip]]
 *
 * Without a field name the pipeline is for the first image field (with the operation `clip`, for
 * the first clip field), and the field `label` comes with it as it is stored, if the pack has one.
 * Batches have no other field of the pack. */
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
    PEN_PARAM_SIZE = 3,   /**< height,width; one number is both */
    PEN_PARAM_RANGE = 4,  /**< low,high */
    PEN_PARAM_WORD = 5,   /**< one of `words` */
    PEN_PARAM_FLOATS = 6, /**< one number, or one for each channel */
    PEN_PARAM_FACTOR = 7, /**< low,high; one number x is 1-x,1+x (if min < 0: -x,x) */
    PEN_PARAM_SIDES = 8,  /**< height,width; one number is the shorter side and keeps the aspect */
    PEN_PARAM_INTS = 9,   /**< a list of integers */
    PEN_PARAM_NAME = 10,  /**< the name of a field of the pipeline */
    PEN_PARAM_DRAWN = 11, /**< low,high, between which a number is drawn; one number is both */
    PEN_PARAM_WEIGHTS = 12, /**< one number for each of the brackets */
    PEN_PARAM_OPS = 13,     /**< operations in brackets; min and max are the number of brackets */
    PEN_PARAM_NUMBERS = 14  /**< a list of numbers */
} PenParamType;

typedef struct PenParam {
    const char *name;
    int32_t type;        /**< a PenParamType */
    double min, max;     /**< limits of every number */
    const char *initial; /**< default as text; NULL = the parameter is required */
    const char *words;   /**< allowed words, separated by spaces; with types other than
                            PEN_PARAM_WORD, words that may replace the numbers or the name */
    const char *help;    /**< one line */
} PenParam;

typedef struct PenOp {
    const char *name;
    const char *help; /**< one line */
    uint32_t n_params;
    const PenParam *params;
} PenOp;

/** Returns the table of all operations, *ret_n of them. The table is static. */
PEN_API const PenOp *pen_ops(uint32_t *ret_n);

/** Checks the text of a pipeline without a pack, and writes its full form: every parameter with
 * name and value, in the order of the table. At most `cap` bytes, with the NUL, are written to
 * `buf`; *ret_bytes receives the length without the NUL. With `buf` NULL the call only checks. The
 * error for a wrong word contains its position and the most similar valid word. */
PEN_NODISCARD PEN_API int pen_pipeline_check(const char *text, char *buf, size_t cap,
                                             size_t *ret_bytes, PenError *reterr);

#ifdef __cplusplus
}
#endif
#endif
