/* SPDX-License-Identifier: Apache-2.0 */
/* The fields of a batch where the pipeline names none, and where there is no pipeline. */
#ifndef PEN_LOAD_FIELDS_UNNAMED_H
#define PEN_LOAD_FIELDS_UNNAMED_H

#include <penstock/pack.h>

#include "ops/pipeline/spec.h"

/* Parses a pipeline, which may be NULL, for the first of the packs; a mixture has several. Each
 * field of the result has a name.
 *
 * A pipeline that names its fields has these. One that names none is for the first image, or the
 * first clip, and the field 'label' comes with it. Without a pipeline these two are as stored; if
 * there is neither an image nor a clip, all numbers of one shape are. `ret` is freed by the caller,
 * also after a failure. */
int pen__fields_name(const char *pipeline, PenPack *const *packs, uint32_t n_packs, PenSpec *ret,
                     PenError *reterr);

#endif
