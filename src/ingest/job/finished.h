/* SPDX-License-Identifier: Apache-2.0 */
/* The shards that a run has finished and what they were made from: .work/run/shards, and the same
 * for each task. A later run takes over only what is listed here. It lies on the machine that packs
 * also when the pack is in an object store: shards there that this machine has not written are not
 * trusted. */
#ifndef PEN_INGEST_JOB_FINISHED_H
#define PEN_INGEST_JOB_FINISHED_H

#include "ingest/plan/plan.h"
#include "manage/gc.h"
#include "pack/write/roll.h"

typedef struct PenFinished {
    uint8_t id[PEN_ID_BYTES];
    uint64_t end;       /* position behind its last sample */
    uint8_t inputs[32]; /* pen__plan_hash from the end of the shard before it to this end */
    uint8_t digest[16]; /* of its content */
    uint64_t file_bytes;
    uint64_t stored_bytes; /* of an in-place pack: the size of the shard's file; else 0 */
    uint32_t stored_crc;   /* and the checksum of that file */
} PenFinished;

typedef struct PenFinishedList {
    PenFinished *shards;
    uint64_t n, cap;
} PenFinishedList;

/* The list of the folder .work/run or .work/task-I-of-N. One that is missing or damaged is empty:
 * then the shards are written again. */
int pen__finished_load(const char *folder, PenFinishedList *ret, PenError *reterr);
int pen__finished_store(const char *folder, const PenFinishedList *list, PenError *reterr);
void pen__finished_free(PenFinishedList *list);

/* Puts it at place `i`, which is at most list->n. */
int pen__finished_set(PenFinishedList *list, uint64_t i, const PenFinished *shard,
                      PenError *reterr);
/* Removes the shards from `first` on from the store; those that the manifest names stay. */
int pen__finished_discard(const PenFinishedList *list, uint64_t first, PenStore *store,
                          PenError *reterr);

#endif
