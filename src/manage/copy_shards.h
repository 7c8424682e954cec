/* SPDX-License-Identifier: Apache-2.0 */
/* Copying the shards of a pack: threads read parts of them and check every byte; each shard is
 * written in order. */
#ifndef PEN_MANAGE_COPY_SHARDS_H
#define PEN_MANAGE_COPY_SHARDS_H

#include <penstock/copy.h>

#include "pack/reader/reader.h"

typedef struct PenCopyJob {
    const PenCopySettings *settings;
    PenPack *pack; /* that is copied */
    PenStore *to;
    const char *home; /* where parts of files lie until they are whole */
    unsigned threads;
} PenCopyJob;

/* What was copied, and what was there already, goes to `ret`. */
int pen__copy_shards(const PenCopyJob *job, PenCopyResult *ret, PenError *reterr);

#endif
