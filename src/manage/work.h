/* SPDX-License-Identifier: Apache-2.0 */
/* NAME.pen/.work: what a run leaves for its continuation. */
#ifndef PEN_MANAGE_WORK_H
#define PEN_MANAGE_WORK_H

#include <stdint.h>

#include "base/error.h"

/* NAME.pen/.work[/name]; to be freed; NULL when out of memory. */
char *pen__work_path(const char *out, const char *name);
/* Makes NAME.pen and NAME.pen/.work. */
int pen__work_make(const char *out, PenError *reterr);
/* Is all in .work of the names we give? PEN_E_INVALID when not; no .work is fine. */
int pen__work_check(const char *out, PenError *reterr);
/* Removes .work and all in it; links in it are removed, not followed, and a .work that is a link is
 * refused. What it counts may be NULL. */
int pen__work_remove(const char *out, uint64_t *files, uint64_t *bytes, PenError *reterr);

/* Tasks of a pack in an object store share the plan and their records: objects below the pack, as
 * the files that they would share in a directory. */
#define PEN_SHARED_PLAN ".work/plan"
/* Is it such an object? By the name below the pack: ".work/plan", ".work/plan-0123...",
 * ".work/task-3-of-8". */
int pen__work_is_shared(const char *name);
/* The name of a task's folder or record: "task-3-of-8", or "task-3" of PEN_TASKS_OPEN tasks. */
enum { PEN_TASK_NAME_BYTES = 64 };
void pen__work_task_name(uint32_t task, uint32_t n_tasks, char ret[PEN_TASK_NAME_BYTES]);
/* Is it such a name? 1 yes, with its numbers. */
int pen__work_task(const char *name, uint32_t *ret_task, uint32_t *ret_n_tasks);

/* A folder in .work that 'penstock plan' makes: the plan in this directory is for tasks. */
#define PEN_WORK_TASKS "tasks"
/* Has a task been run here? 1 yes, 0 no. */
int pen__work_has_tasks(const char *out, PenError *reterr);
/* Is there a plan that tasks share? 1 yes: a task has been run, or 'penstock plan' has made it and
 * no run of one process has taken it over. */
int pen__work_is_planned(const char *out, PenError *reterr);

/* Removes a file, or a link itself, of the open directory `dir`, which lies at `path`. */
int pen__entry_remove(int dir, const char *name, const char *path, uint64_t *files, uint64_t *bytes,
                      PenError *reterr);

#endif
