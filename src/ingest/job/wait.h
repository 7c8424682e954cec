/* SPDX-License-Identifier: Apache-2.0 */
/* Waiting for another process that writes the same pack. */
#ifndef PEN_INGEST_JOB_WAIT_H
#define PEN_INGEST_JOB_WAIT_H

#include <penstock/ingest.h>

/* Takes a lock: PEN_E_BUSY when another process has it. */
typedef int (*PenLockFn)(void *ctx, PenError *reterr);

typedef struct PenLockWait {
    const PenIngestSettings *settings;
    uint64_t deadline_ns;
} PenLockWait;

/* settings->wait_seconds from now on, for all locks together. */
PenLockWait pen__lock_wait(const PenIngestSettings *settings);
/* Tries again until the lock is free, the deadline has passed (PEN_E_BUSY) or the progress callback
 * stops the run (PEN_E_CANCELLED). */
int pen__lock_in_time(const PenLockWait *wait, PenLockFn lock, void *ctx, PenError *reterr);

#endif
