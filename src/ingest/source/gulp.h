/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEN_INGEST_SOURCE_GULP_H
#define PEN_INGEST_SOURCE_GULP_H

#include "ingest/source/input.h"

/* A .gmeta has about 20 bytes for each frame. */
#define PEN_GMETA_BYTES ((uint64_t)1 << 30)

/* Adds the clips that a .gmeta of this text describes, whose .gulp is `data_path`. */
int pen__scan_gmeta(PenInputs *inputs, const char *name, const void *text, size_t bytes,
                    const char *data_path, uint64_t data_bytes, PenError *reterr);

#endif
