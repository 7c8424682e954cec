/* SPDX-License-Identifier: Apache-2.0 */
/* Locating and reading a sample, within the budget for its bytes.
 *
 * Lock rule: called without the lock, which it takes for the reservation. */
#ifndef PEN_LOAD_READ_FETCH_H
#define PEN_LOAD_READ_FETCH_H

#include "load/tasks.h"
#include "load/threads.h"

/* For a reader. It waits until its bytes fit into the budget. */
int pen__fetch_for_reader(PenTasks *tasks, PenThread *me, PenTask *task);
/* For a worker that needs another sample, or more of its own: what the task has reserved is
 * released first. Workers release the bytes that readers have reserved, so it must not wait for
 * them: one at a time exceeds the budget instead. */
int pen__fetch_for_worker(PenTasks *tasks, PenTask *task);

#endif
