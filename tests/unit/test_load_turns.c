/* SPDX-License-Identifier: Apache-2.0 */
/* The first requests of a pass: in the order of need until the first batch has its blocks. */
#include "load/prefetch/turns.h"

#include "base/thread.h"
#include "test.h"

typedef struct Waiter {
    PenTurns *turns;
    uint64_t mine;
    int *order, place; /* how many had their turn before */
} Waiter;

static void *wait_turn(void *arg)
{
    Waiter *w = arg;
    pthread_mutex_lock(&w->turns->lock->mutex);
    pen__turns_wait(w->turns, w->mine);
    w->place = (*w->order)++;
    pthread_mutex_unlock(&w->turns->lock->mutex);
    return NULL;
}

TEST(in_the_order_of_need)
{
    enum { N = 6 };
    PenLoadLock lock;
    PenTurns turns;
    Waiter waiters[N];
    pthread_t threads[N];
    int order = 0;
    CHECK_INT(pen__load_lock_init(&lock, NULL), PEN_OK);
    CHECK_INT(pen__turns_init(&turns, &lock), PEN_OK);
    pen__turns_begin(&turns);
    for (int i = 0; i < N; i++)
        waiters[i] = (Waiter){.turns = &turns, .mine = pen__turns_take(&turns), .order = &order};
    for (int i = N; i-- > 0;) /* the last one comes first */
        CHECK_INT(pen__thread_start(&threads[i], wait_turn, &waiters[i], NULL), PEN_OK);
    for (int i = 0; i < N; i++)
        pen__thread_join(threads[i]);
    for (int i = 0; i < N; i++)
        CHECK_INT(waiters[i].place, i);
    pen__turns_fini(&turns);
    pen__load_lock_fini(&lock);
}

TEST(warm_when_the_first_batch_is_here)
{
    PenLoadLock lock;
    PenTurns turns;
    CHECK_INT(pen__load_lock_init(&lock, NULL), PEN_OK);
    CHECK_INT(pen__turns_init(&turns, &lock), PEN_OK);
    for (int pass = 0; pass < 2; pass++) {
        pen__turns_begin(&turns);
        CHECK(!pen__turns_are_pending(&turns));
        for (int i = 0; i < 3; i++)
            pen__turns_take(&turns);
        CHECK(pen__turns_are_pending(&turns));
        CHECK(!pen__turns_answered(&turns, false)); /* more requests may follow */
        CHECK(!pen__turns_answered(&turns, true));
        CHECK(!turns.warm);
        CHECK(pen__turns_answered(&turns, true));
        CHECK(turns.warm && !pen__turns_are_pending(&turns));
        CHECK(!pen__turns_answered(&turns, true));
    }
    pen__turns_fini(&turns);
    pen__load_lock_fini(&lock);
}

/* All that was requested has come, but the batch needs more: fetchers are to continue. */
TEST(continues_when_all_have_come)
{
    PenLoadLock lock;
    PenTurns turns;
    CHECK_INT(pen__load_lock_init(&lock, NULL), PEN_OK);
    CHECK_INT(pen__turns_init(&turns, &lock), PEN_OK);
    pen__turns_begin(&turns);
    pen__turns_take(&turns);
    CHECK(pen__turns_answered(&turns, false));
    CHECK(!turns.warm && !pen__turns_are_pending(&turns));
    pen__turns_fini(&turns);
    pen__load_lock_fini(&lock);
}

int main(int argc, char **argv)
{
    TEST_START(argc, argv);
    RUN(in_the_order_of_need);
    RUN(warm_when_the_first_batch_is_here);
    RUN(continues_when_all_have_come);
    return TEST_END();
}
