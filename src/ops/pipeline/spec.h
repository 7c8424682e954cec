/* SPDX-License-Identifier: Apache-2.0 */
/* The text of a pipeline, read against the table of operations. */
#ifndef PEN_OPS_PIPELINE_SPEC_H
#define PEN_OPS_PIPELINE_SPEC_H

#include "ops/language/value.h"

enum {
    PEN_MAX_OPS = 32,     /* of one field */
    PEN_MAX_TEXT = 16384, /* bytes */
    PEN_MAX_SPEC_FIELDS = 64
};

typedef struct PenSpecOp {
    const PenOp *op;
    uint32_t column;                      /* of its name in the text, from 1 */
    PenParamValue values[PEN_MAX_PARAMS]; /* by the table's order, defaults filled in */
} PenSpecOp;

typedef struct PenSpecField {
    char *name;   /* NULL: the text names none */
    char *source; /* the field of the pack that this is a view of; NULL: the one of its name */
    char *of;     /* the field of the batch whose geometry and draws a mask has; NULL: none */
    uint32_t column, source_column, of_column;
    uint32_t n_ops;
    PenSpecOp *ops;
} PenSpecField;

typedef struct PenSpec {
    uint32_t n_fields;
    PenSpecField *fields;
} PenSpec;

int pen__spec_parse(const char *text, PenSpec *ret, PenError *reterr);
void pen__spec_free(PenSpec *s); /* a zeroed one is fine */
/* The full form, appended: every parameter by name. Parsing it gives the same spec. */
int pen__spec_write(const PenSpec *s, PenBuf *out);
int pen__spec_write_op(const PenSpecOp *op, PenBuf *out); /* of one operation, appended */

#endif
