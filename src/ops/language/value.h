/* SPDX-License-Identifier: Apache-2.0 */
/* The value of one parameter: from words of the text, and back. */
#ifndef PEN_OPS_LANGUAGE_VALUE_H
#define PEN_OPS_LANGUAGE_VALUE_H

#include <penstock/ops.h>

#include "base/error.h"
#include "base/mem.h"
#include "ops/language/lex.h"

enum {
    PEN_MAX_PARAMS = 10,  /* of an operation */
    PEN_MAX_NUMBERS = 64, /* of a list; PEN_PARAM_FLOATS has one for each channel */
    PEN_MAX_FLOATS = 4,
    PEN_MAX_NAME = 255 /* bytes, as in a pack */
};

typedef struct PenParamValue {
    uint32_t n; /* numbers; 0: it is a word, or a name */
    union {
        double v[PEN_MAX_NUMBERS];
        char name[PEN_MAX_NAME + 1]; /* of PEN_PARAM_NAME; empty: it is a word */
    };
    uint32_t word; /* which of the words */
} PenParamValue;

typedef struct PenWords { /* a,b,c */
    uint32_t n;
    PenToken token[PEN_MAX_NUMBERS];
} PenWords;

/* Reads and checks them. */
int pen__value_read(const PenOp *op, const PenParam *param, const PenWords *words,
                    PenParamValue *ret, PenError *reterr);
/* The parameter's initial value, which it has. */
int pen__value_initial(const PenOp *op, const PenParam *param, PenParamValue *ret,
                       PenError *reterr);
int pen__value_write(const PenParam *param, const PenParamValue *v, PenBuf *out);

#endif
