/* SPDX-License-Identifier: Apache-2.0 */
/* Processes of one node share its cores, and what the node may ask for at once. */
#ifndef PEN_BASE_MACHINE_RANKS_H
#define PEN_BASE_MACHINE_RANKS_H

#include <stdint.h>

#include <penstock/error.h>

enum { PEN_NODE_RANKS_MOST = 4096 };

/* How many processes of this node there are: as given; 0: as the environment says (torchrun's
 * LOCAL_WORLD_SIZE, Slurm's SLURM_STEP_TASKS_PER_NODE and SLURM_NTASKS_PER_NODE), or 1. */
int pen__node_ranks(uint32_t given, uint32_t *ret, PenError *reterr);
/* Cores that the job has of this node, as Slurm says in one of its tasks; 0: not known. */
uint32_t pen__node_job_cores(void);
/* What one of them may have of `all`: an even share, but no fewer than four. */
uint32_t pen__node_share(uint32_t all, uint32_t ranks);
/* What one has when nothing is given: what it wants, but no more than its share of 512. */
uint32_t pen__node_usual(uint32_t want, uint32_t ranks);

#endif
