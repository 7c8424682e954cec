/* SPDX-License-Identifier: Apache-2.0 */
/* The value of one parameter: from words of the text, and back. */
#ifndef PEN_OPS_LANGUAGE_VALUE_H
#define PEN_OPS_LANGUAGE_VALUE_H

#include "ops/language/lex.h"
#include "ops/language/spec.h"

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
