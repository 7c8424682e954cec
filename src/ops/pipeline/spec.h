/* SPDX-License-Identifier: Apache-2.0 */
/* The text of a pipeline, read against the table of operations. */
#ifndef PEN_OPS_PIPELINE_SPEC_H
#define PEN_OPS_PIPELINE_SPEC_H

#include <stdbool.h>

#include "ops/language/value.h"

enum {
    PEN_MAX_OPS = 32,     /* of one field */
    PEN_MAX_TEXT = 16384, /* bytes */
    PEN_MAX_SPEC_FIELDS = 64,
    PEN_MAX_NESTING = 4 /* brackets inside each other */
};

typedef struct PenSpecOp {
    const PenOp *op;
    uint32_t column;  /* of its name in the text, from 1 */
    uint32_t inside;  /* so many of the operations that follow it are in its brackets */
    uint32_t bracket; /* which of the brackets around it, of the same composition; from 0 */
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
/* Of one operation with what is in its brackets, appended. */
int pen__spec_write_op(const PenSpecOp *op, PenBuf *out);

/* Compositions draw which of the operations in their brackets run, or in which order. These follow
 * them in the list, and may be compositions too. */
bool pen__is_composition(const PenOp *op);
/* Its brackets and weights, and that all in it keeps the size of the image. */
int pen__compose_check(const PenSpecOp *op, PenError *reterr);
/* The most steps of a sample plan that the operation, with what is in its brackets, adds. */
uint32_t pen__compose_steps(const PenSpecOp *op);
/* Does it, or an operation in its brackets, move pixels? */
bool pen__compose_moves(const PenSpecOp *op);
/* Does all of it change colours alone? */
bool pen__compose_is_colour(const PenSpecOp *op);

#endif
