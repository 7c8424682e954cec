/* SPDX-License-Identifier: Apache-2.0 */
/* What reading a part and reading the frames of one share. */
#ifndef PEN_INGEST_PLAN_PART_IMPL_H
#define PEN_INGEST_PLAN_PART_IMPL_H

#include "ingest/plan/plan_impl.h"

/* Of a FILE, FRAMES or VIDEO; valid until the next call. */
int pen__part_path(PenPartReader *p, const PenPart *part, const char **ret, PenError *reterr);
/* Where a path of the part leads to: the path itself, or for lists that name files below a folder
 * what it is without links, checked. Valid until the next call. */
int pen__part_beneath(PenPartReader *p, const PenPart *part, const char *path, const char **ret,
                      PenError *reterr);
/* What the plan says of it. */
PenExpected pen__part_expected(const PenPartReader *p, const PenPart *part);
/* A whole file, which must be the one that is expected; NULL = any. */
int pen__part_read_path(const char *path, const PenExpected *expected, PenBuf *out,
                        PenFileStat *ret_stat, PenError *reterr);
/* Bytes of a tar or a .gulp, of the part's place alone. */
int pen__part_read_range(PenPartReader *p, const PenPart *part, PenBuf *out, PenError *reterr);

#endif
