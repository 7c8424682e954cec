/* SPDX-License-Identifier: Apache-2.0 */
#include "load/tasks.h"

int pen__tasks_init(PenTasks *t, const PenLoadPlan *plan, PenLoadLock *lock, PenError *reterr)
{
    *t = (PenTasks){.lock = lock, .plan = plan};
    t->ready_end = &t->ready;
    return pen__budget_init(&t->budget, lock, plan->shares.read / 2, plan->shares.total, reterr);
}

static void add_idle(PenTasks *t, PenTask *task)
{
    task->next = t->idle;
    t->idle = task;
    t->n_idle++;
}

int pen__tasks_make(PenTasks *t, PenError *reterr)
{
    int r = PEN_OK;
    while (t->n < t->plan->tasks && r == PEN_OK) {
        PenTask *task;
        r = pen__task_new(t->plan, &task, reterr);
        if (r == PEN_OK) {
            add_idle(t, task);
            t->n++;
        }
    }
    return r;
}

static void free_list(const PenLoadPlan *plan, PenTask *task)
{
    for (PenTask *next; task; task = next) {
        next = task->next;
        pen__task_free(plan, &task);
    }
}

void pen__tasks_fini(PenTasks *t)
{
    free_list(t->plan, t->ready);
    free_list(t->plan, t->idle);
    pen__budget_fini(&t->budget);
}

PenTask *pen__tasks_take_idle(PenTasks *t)
{
    PenTask *task = t->idle;
    t->idle = task->next;
    t->n_idle--;
    task->timed = t->until_timed == 0;
    t->until_timed = task->timed ? PEN_TIMED_EVERY - 1 : t->until_timed - 1;
    if (task->timed)
        task->clock = (PenStageClock){0};
    return task;
}

PenTask *pen__tasks_take_ready(PenTasks *t)
{
    PenTask *task = t->ready;
    t->ready = task->next;
    t->n_ready--;
    if (!t->ready)
        t->ready_end = &t->ready;
    return task;
}

void pen__tasks_push_ready(PenTasks *t, PenTask *task)
{
    task->next = NULL;
    *t->ready_end = task;
    t->ready_end = &task->next;
    t->n_ready++;
    pthread_cond_signal(&t->lock->decoders);
}

/* Waking a reader for each sample would take the processor from those who decode. While there is
 * plenty to decode, one is woken for several tasks; when there is little, all are. */
static void wake_readers(PenTasks *t)
{
    if (t->n_ready <= t->plan->threads)
        pthread_cond_broadcast(&t->lock->readers);
    else if (t->n_idle >= t->plan->tasks / 2)
        pthread_cond_signal(&t->lock->readers);
}

void pen__tasks_recycle(PenTasks *t, PenTask *task)
{
    const PenLoadPlan *plan = t->plan;
    uint64_t n_buffers = plan->n_stored + plan->n_clips + 2; /* rows_read, values */
    pen__tasks_release(t, task);
    pen__task_trim(plan, task, (size_t)(plan->shares.read / 2 / plan->tasks / n_buffers));
    add_idle(t, task);
    wake_readers(t);
}

void pen__tasks_recycle_ready(PenTasks *t)
{
    while (t->ready)
        pen__tasks_recycle(t, pen__tasks_take_ready(t));
}

bool pen__tasks_are_in_hand(const PenTasks *t)
{
    return t->n_idle + t->n_ready < t->n;
}

int pen__tasks_reserve(PenTasks *t, PenTask *task, uint64_t bytes, bool may_exceed,
                       PenError *reterr)
{
    int r =
        pen__budget_take(&t->budget, bytes, may_exceed ? &task->over : NULL, "reading it", reterr);
    if (r == PEN_OK)
        task->reserved = bytes;
    return r;
}

void pen__tasks_release(PenTasks *t, PenTask *task)
{
    pen__budget_release(&t->budget, task->reserved, task->over);
    task->reserved = 0;
    task->over = false;
}
