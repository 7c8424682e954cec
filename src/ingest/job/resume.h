/* SPDX-License-Identifier: Apache-2.0 */
/* Continuing an interrupted run: which of its shards hold. */
#ifndef PEN_INGEST_JOB_RESUME_H
#define PEN_INGEST_JOB_RESUME_H

#include "ingest/job/finished.h"
#include "ingest/job/job.h"
#include "pack/format/shard_read.h"
#include "pack/write/copy.h"

typedef struct PenResume {
    PenJob *job;
    PenFinishedList list;
    uint64_t n_same; /* so many of the list, from its start, are whole and of the same inputs */
    uint64_t moving; /* while shards are copied: those below keep their place in the list */
    /* The block that is being copied, and the one before it, which the roll may not have written
     * yet; their samples are not for others to free. */
    PenCopied copied, last;
} PenResume;

/* Loads the list of the job's folder and removes the shards from the first on that is damaged or
 * whose inputs are no longer the same. In a directory every byte of them is read. */
int pen__resume_open(PenResume *re, PenJob *job, PenError *reterr);
void pen__resume_close(PenResume *re);

/* For the roll: see PenRollSettings. */
int pen__resume_may(const PenResume *re, uint64_t ordinal, const PenShardEntry *entry,
                    uint64_t end);
int pen__resume_note(PenResume *re, uint64_t ordinal, const PenShardEntry *entry, uint64_t end,
                     PenError *reterr);

/* After the roll has resumed: copies the shards that follow and were finished by another plan, and
 * moves *position behind them. */
int pen__resume_copy(PenResume *re, PenRoll *roll, uint64_t *position, PenError *reterr);

#endif
