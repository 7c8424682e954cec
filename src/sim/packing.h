/* SPDX-License-Identifier: Apache-2.0 */
/* A job that packs by tasks: what the parts of its simulation share. */
#ifndef PEN_SIM_PACKING_H
#define PEN_SIM_PACKING_H

#include "sim/phase.h"
#include "sim/store.h"
#include "sim/task.h"

enum { PEN_SIM_PLAN_ENTRY_BYTES = 100 }; /* of the plan, for an input, without its key */

typedef struct PenSimPacking {
    PenSimPackingSettings s;
    PenSimSettings job;
    PenSimPack pack;
    PenSimStore sources, store;
    PenSimNet *net;
    PenSimFault fault;
    PenSimTaskPlan plan;
    uint64_t task_samples; /* of the largest task */
    uint64_t simulated;    /* of them */
    uint32_t followed;     /* nodes that are simulated */
    double weight;         /* for so many each of them stands */
    PenSimNode *nodes;
    PenSimTask *tasks;
    uint32_t n_tasks, n_built; /* on those nodes */
} PenSimPacking;

/* A network with nothing on it; the store counts each request `weight` times. */
int pen__sim_packing_open_net(PenSimPacking *p, double weight, PenError *reterr);
int pen__sim_packing_open_node(const PenSimPacking *p, PenSimNode *ret, PenError *reterr);
void pen__sim_packing_close_net(PenSimPacking *p);

/* What the tasks did, for the entire job; before the network is closed. */
int pen__sim_packing_tasks(PenSimPacking *p, PenSimPackingResult *ret, PenError *reterr);
/* The plan and finalise, on a network of their own. */
int pen__sim_packing_phases(PenSimPacking *p, PenSimPackingResult *ret, PenError *reterr);

#endif
