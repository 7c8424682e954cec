/* SPDX-License-Identifier: Apache-2.0 */
/* Tasks: each is idle, ready or in the hands of a thread, and releases its bytes when it is idle.
 */
#include "load/tasks.h"

#include "test.h"

enum { N = 3 };

typedef struct Rig {
    PenLoadPlan plan;
    PenLoadLock lock;
    PenTasks tasks;
} Rig;

static void rig_init(Rig *rig)
{
    *rig = (Rig){.plan = {.tasks = N, .threads = 1, .shares = {.read = 200, .total = 1000}}};
    CHECK_INT(pen__load_lock_init(&rig->lock, NULL), PEN_OK);
    CHECK_INT(pen__tasks_init(&rig->tasks, &rig->plan, &rig->lock, NULL), PEN_OK);
    CHECK_INT(pen__tasks_make(&rig->tasks, NULL), PEN_OK);
}

static void rig_fini(Rig *rig)
{
    pen__tasks_fini(&rig->tasks);
    pen__load_lock_fini(&rig->lock);
}

TEST(made_once)
{
    Rig rig;
    rig_init(&rig);
    CHECK_INT(rig.tasks.n_idle, N);
    CHECK_INT(pen__tasks_make(&rig.tasks, NULL), PEN_OK);
    CHECK_INT(rig.tasks.n, N);
    rig_fini(&rig);
}

TEST(ready_in_order)
{
    Rig rig;
    rig_init(&rig);
    PenTask *a = pen__tasks_take_idle(&rig.tasks), *b = pen__tasks_take_idle(&rig.tasks);
    CHECK(pen__tasks_are_in_hand(&rig.tasks));
    pen__tasks_push_ready(&rig.tasks, a);
    CHECK(pen__tasks_are_in_hand(&rig.tasks));
    pen__tasks_push_ready(&rig.tasks, b);
    CHECK(!pen__tasks_are_in_hand(&rig.tasks));
    CHECK(pen__tasks_take_ready(&rig.tasks) == a);
    CHECK(pen__tasks_take_ready(&rig.tasks) == b);
    CHECK(!rig.tasks.ready);
    pen__tasks_push_ready(&rig.tasks, a);
    pen__tasks_recycle(&rig.tasks, b);
    CHECK(rig.tasks.ready == a);
    rig_fini(&rig);
}

TEST(recycled_releases_bytes)
{
    Rig rig;
    PenError err;
    rig_init(&rig);
    PenTask *a = pen__tasks_take_idle(&rig.tasks), *b = pen__tasks_take_idle(&rig.tasks);
    CHECK_INT(pen__tasks_reserve(&rig.tasks, a, 80, false, &err), PEN_OK);
    CHECK_INT(pen__tasks_reserve(&rig.tasks, b, 90, true, &err), PEN_OK);
    CHECK(b->over && rig.tasks.budget.over);
    CHECK_INT(rig.tasks.budget.used, 170);
    pen__tasks_push_ready(&rig.tasks, a);
    pen__tasks_push_ready(&rig.tasks, b);
    pen__tasks_recycle_ready(&rig.tasks);
    CHECK_INT(rig.tasks.budget.used, 0);
    CHECK(!b->over && !rig.tasks.budget.over);
    CHECK_INT(rig.tasks.n_idle, N);
    CHECK_INT(rig.tasks.n_ready, 0);
    a = pen__tasks_take_idle(&rig.tasks);
    CHECK_INT(pen__tasks_reserve(&rig.tasks, a, 101, true, &err), PEN_E_LIMIT);
    pen__tasks_recycle(&rig.tasks, a);
    rig_fini(&rig);
}

int main(int argc, char **argv)
{
    TEST_START(argc, argv);
    RUN(made_once);
    RUN(ready_in_order);
    RUN(recycled_releases_bytes);
    return TEST_END();
}
