/* SPDX-License-Identifier: Apache-2.0 */
/* Runs that were interrupted, with inputs that have changed since or not, and the same commands
 * again. For the long tests; the functions that return nothing abort when something fails. */
#ifndef PEN_TESTS_LIB_RESUMED_H
#define PEN_TESTS_LIB_RESUMED_H

#include <penstock/penstock.h>

/* Makes the inputs. All packs are at `out` (kept). */
void resumed_begin(const char *out);

/* A run that ended with four of five shards in their place, three of them listed as finished. */
void interrupt_pack(void);
void interrupt_pack_for_writer(void); /* without its list of broken inputs */
/* The same; then an input of the last shard is replaced: the first three can be copied. */
void interrupt_pack_and_mend(void);
/* The same; then the first input is replaced: no shard can be kept. */
void interrupt_pack_and_change(void);
int resume_pack(PenError *reterr);

/* A pack with a short last block, without and with an interrupted run that adds to it. */
void pack_first(void);
void interrupt_append(void);
int resume_append(PenError *reterr);

void interrupt_task(void);
int resume_task(PenError *reterr);
/* Both tasks are done; then the first input is replaced. */
void run_tasks_and_change(void);
int plan_again(PenError *reterr);

/* Both tasks of a list with masks, of a tar, of folders of frames. */
void run_list_tasks(void);
void run_tar_tasks(void);
void run_frames_tasks(void);

#endif
