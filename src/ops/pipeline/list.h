/* SPDX-License-Identifier: Apache-2.0 */
/* Fields whose values have any length: text, JSON, bytes, rows of numbers, and the key of the
 * sample. */
#ifndef PEN_OPS_PIPELINE_LIST_H
#define PEN_OPS_PIPELINE_LIST_H

#include <stdbool.h>

#include "ops/pipeline/spec.h"

/* The PEN_LIST_* of its first operation; 0: it is of another kind. */
int pen__list_kind(const PenSpecField *spec);
/* The list's operation has to be the only one. `holds` is what the field is, for messages. */
int pen__list_check(const PenSpecField *spec, const char *holds, uint64_t *ret_max_bytes,
                    PenError *reterr);

typedef struct PenRaggedRule {
    uint32_t max_rows;
    bool pads; /* with `pad` */
    double pad;
    bool is_window; /* max_rows rows, from `at` on, counted from the frame of the sample */
    int64_t at;
    uint32_t stride;
} PenRaggedRule;

/* The same for the operation of a ragged field. */
int pen__ragged_rule(const PenSpecField *spec, PenRaggedRule *ret, PenError *reterr);

#endif
