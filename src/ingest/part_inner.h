/* SPDX-License-Identifier: Apache-2.0 */
/* What reading a part and reading the frames of one share. */
#ifndef PEN_INGEST_PART_INNER_H
#define PEN_INGEST_PART_INNER_H

#include "ingest/plan_inner.h"

#define PEN_ANY_BYTES UINT64_MAX

/* Of a FILE, FRAMES or VIDEO; valid until the next call. */
int pen__part_path(PenPartReader *p, const PenPart *part, const char **ret, PenError *reterr);
/* A whole file, which must have as many bytes as expected. */
int pen__part_read_path(const char *path, uint64_t expected, PenBuf *out, uint64_t *ret_disk_bytes,
                        PenError *reterr);
/* Bytes of a tar or a .gulp, of the part's place alone. */
int pen__part_read_range(PenPartReader *p, const PenPart *part, PenBuf *out, PenError *reterr);

#endif
