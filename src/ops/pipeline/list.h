/* SPDX-License-Identifier: Apache-2.0 */
/* Fields whose values have any length: text, JSON, bytes, and the key of the sample. */
#ifndef PEN_OPS_PIPELINE_LIST_H
#define PEN_OPS_PIPELINE_LIST_H

#include "ops/pipeline/spec.h"

/* The PEN_LIST_* of its first operation; 0: it is of another kind. */
int pen__list_kind(const PenSpecField *spec);
/* The list's operation has to be the only one. `holds` is what the field is, for messages. */
int pen__list_check(const PenSpecField *spec, const char *holds, uint64_t *ret_max_bytes,
                    PenError *reterr);

#endif
