/* SPDX-License-Identifier: Apache-2.0 */
/* Columns of shards. */
#ifndef PEN_PACK_READER_COLUMN_H
#define PEN_PACK_READER_COLUMN_H

#include "pack/reader/reader.h"

/* A column of all samples of a shard, read and checked: 1. 0: the shard does not have it. `what` is
 * one of PEN_COLUMN_*. */
int pen__shard_column(PenShard *s, const PenSchema *schema, uint32_t field, int what, PenBuf *ret,
                      PenError *reterr);

/* Are the columns of all shards those of their samples? */
int pen__pack_check_columns(PenPack *p, PenError *reterr);

#endif
