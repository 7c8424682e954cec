/* SPDX-License-Identifier: Apache-2.0 */
#include "load/read/fetch.h"

#include "load/read/sample.h"

/* `me` is a reader, or NULL. */
static int reserve(PenTasks *tasks, PenThread *me, PenTask *task, uint64_t bytes)
{
    pthread_mutex_lock(&tasks->lock->mutex);
    if (me)
        pen__thread_set(me, PEN_ACTIVITY_WAITING, task->to.sample);
    int r = pen__tasks_reserve(tasks, task, bytes, !me, &task->error);
    if (me)
        pen__thread_set(me, PEN_ACTIVITY_READING, task->to.sample);
    pthread_mutex_unlock(&tasks->lock->mutex);
    return r;
}

static int locate(const PenLoadPlan *plan, PenTask *task, PenLocation *ret)
{
    PenStageClock *clock = pen__task_clock(task);
    uint64_t begin = pen__stage_begin(clock);
    int r = pen__sample_locate(plan, task, ret, &task->error);
    if (r == PEN_E_CORRUPT) /* read once more before it counts, like the payload */
        r = pen__sample_locate(plan, task, ret, &task->error);
    pen__stage_end(clock, PEN_TIMED_READ, begin);
    return r;
}

static int fetch(PenTasks *tasks, PenThread *me, PenTask *task)
{
    const PenLoadPlan *plan = tasks->plan;
    PenLocation at;
    int r = locate(plan, task, &at);
    if (r < 0)
        return r;
    r = reserve(tasks, me, task, at.bytes);
    PenStageClock *clock = pen__task_clock(task);
    uint64_t begin = pen__stage_begin(clock);
    if (r == PEN_OK)
        r = pen__sample_read(plan, task, &at, &task->error);
    pen__stage_end(clock, PEN_TIMED_READ, begin);
    pen__location_release(task->to.pack, &at);
    return r;
}

int pen__fetch_for_reader(PenTasks *tasks, PenThread *me, PenTask *task)
{
    return fetch(tasks, me, task);
}

int pen__fetch_for_worker(PenTasks *tasks, PenTask *task)
{
    pthread_mutex_lock(&tasks->lock->mutex);
    pen__tasks_release(tasks, task);
    pthread_mutex_unlock(&tasks->lock->mutex);
    return fetch(tasks, NULL, task);
}
