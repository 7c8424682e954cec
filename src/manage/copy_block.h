/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks that are larger than the memory: those with videos. */
#ifndef PEN_MANAGE_COPY_BLOCK_H
#define PEN_MANAGE_COPY_BLOCK_H

#include "io/sink.h"
#include "pack/reader/shard_check.h"

/* As pen__shard_part_read and a write, but never with more than a payload or some runs of a video
 * in `buf`. The sink gets bytes that were checked. */
int pen__copy_part_by_payloads(PenShardRef *ref, const PenSchema *schema, const PenShardPart *part,
                               PenSink *sink, PenBuf *buf, PenError *reterr);

#endif
