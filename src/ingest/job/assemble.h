/* SPDX-License-Identifier: Apache-2.0 */
/* Many threads prepare, one takes what they have made, in the plan's order: so the result does not
 * depend on how many there are. */
#ifndef PEN_INGEST_JOB_ASSEMBLE_H
#define PEN_INGEST_JOB_ASSEMBLE_H

#include "ingest/prepare/prepared.h"
#include "io/places.h"

typedef struct PenAssembly {
    const PenPlan *plan;
    PenPlaces *places; /* that the plan is connected to: their requests end with the work */
    const PenSchema *schema;
    const PenPrepareSettings *prepare;
    int threads;         /* 0 = the cores this process may use */
    uint64_t first, end; /* positions of the plan */
    /* All three are called from the calling thread. `take` owns the sample, also on failure. `bad`
     * gets what is wrong with the input at a position, and says whether to go on. */
    int (*take)(void *ctx, PenPrepared *sample, PenError *reterr);
    int (*bad)(void *ctx, uint64_t position, const PenError *error, PenError *reterr);
    int (*tick)(void *ctx, PenError *reterr); /* about ten times a second */
    void *ctx;
} PenAssembly;

int pen__assemble(const PenAssembly *assembly, PenError *reterr);

#endif
