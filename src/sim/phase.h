/* SPDX-License-Identifier: Apache-2.0 */
/* 'penstock plan' and 'penstock finalise', which one process runs: requests of one kind after those
 * of another. Of many requests of a kind some are simulated, and the time is multiplied. */
#ifndef PEN_SIM_PHASE_H
#define PEN_SIM_PHASE_H

#include "sim/caller.h"

typedef struct PenSimJobSize {
    double samples, tasks, shards, rests; /* rests: tasks with samples that fill no block */
    double rest_bytes;                    /* of all of them */
    uint64_t plan_bytes, manifest_bytes, key_bytes;
    uint32_t folders; /* of the sources */
    double lost;      /* runs of tasks that died: each leaves an upload */
} PenSimJobSize;

typedef struct PenSimPhase {
    PenSimNet *net;
    PenSimProcess process;
    PenSimFault fault;
    double seconds;
    double requests[PEN_SIM_KINDS]; /* without retries */
} PenSimPhase;

int pen__sim_phase_plan(PenSimPhase *p, const PenSimJobSize *size, PenError *reterr);
int pen__sim_phase_finalise(PenSimPhase *p, const PenSimJobSize *size, PenError *reterr);

#endif
