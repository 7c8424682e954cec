/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes that threads of a loader share: who has to wait, and who is woken. */
#include <string.h>
#include <time.h>

#include "test.h"

#include "base/sys.h"
#include "base/thread.h"
#include "load/budget.h"

typedef struct Shared {
    PenLoadLock lock;
    PenBudget budget;
} Shared;

static void shared_init(Shared *s, uint64_t used)
{
    CHECK_INT(pen__load_lock_init(&s->lock, NULL), PEN_OK);
    CHECK_INT(pen__budget_init(&s->budget, &s->lock, 100, 1000, NULL), PEN_OK);
    s->budget.used = used;
}

static void shared_fini(Shared *s)
{
    pen__budget_fini(&s->budget);
    pen__load_lock_fini(&s->lock);
}

TEST(takes_up_to_the_limit)
{
    Shared s;
    shared_init(&s, 0);
    PenBudget *b = &s.budget;
    PenError err;
    CHECK_INT(pen__budget_take(b, 60, NULL, "it", &err), PEN_OK);
    CHECK_INT(pen__budget_take(b, 40, NULL, "it", &err), PEN_OK);
    CHECK_INT(b->used, 100);
    pen__budget_release(b, 60, false);
    CHECK_INT(b->used, 40);
    CHECK_INT(b->peak, 100);
    CHECK_INT(pen__budget_take(b, 101, NULL, "it", &err), PEN_E_LIMIT);
    CHECK(strstr(err.message, "it needs 101 bytes, but of memory=1000 only 100"));
    CHECK_INT(b->used, 40);
    CHECK_INT(pen__budget_take(b, 60, NULL, "it", &err), PEN_OK);
    shared_fini(&s);
}

/* A worker that must not wait exceeds the limit, but only one at a time. */
TEST(one_exceeds_the_limit)
{
    Shared s;
    shared_init(&s, 0);
    PenBudget *b = &s.budget;
    bool over = false;
    CHECK_INT(pen__budget_take(b, 90, &over, "it", NULL), PEN_OK);
    CHECK(!over && !b->over);
    CHECK_INT(pen__budget_take(b, 20, &over, "it", NULL), PEN_OK);
    CHECK(over && b->over);
    CHECK_INT(b->used, 110);
    s.lock.stop = true;
    CHECK_INT(pen__budget_take(b, 20, &over, "it", NULL), PEN_END);
    CHECK_INT(b->used, 110);
    pen__budget_release(b, 20, over);
    CHECK(!b->over);
    CHECK_INT(b->used, 90);
    shared_fini(&s);
}

typedef struct Releaser {
    PenBudget *budget;
    uint64_t at_ns;
} Releaser;

static void *release_soon(void *arg)
{
    Releaser *r = arg;
    struct timespec t = {.tv_nsec = 10000000};
    nanosleep(&t, NULL);
    pthread_mutex_lock(&r->budget->lock->mutex);
    r->at_ns = pen__sys->now_ns();
    pen__budget_release(r->budget, 100, false);
    pthread_mutex_unlock(&r->budget->lock->mutex);
    return NULL;
}

/* A waiter that nobody wakes finds out by itself, but after 1 s; on a busy machine a few of the 21
 * may be late either way. */
TEST(release_wakes)
{
    int n_quick = 0;
    for (int i = 0; i < 21; i++) {
        Shared s;
        shared_init(&s, 100);
        Releaser releaser = {.budget = &s.budget};
        pthread_t t;
        CHECK_INT(pen__thread_start(&t, release_soon, &releaser, NULL), PEN_OK);
        pthread_mutex_lock(&s.lock.mutex);
        int r = pen__budget_take(&s.budget, 100, NULL, "it", NULL);
        uint64_t now = pen__sys->now_ns();
        pthread_mutex_unlock(&s.lock.mutex);
        pen__thread_join(t);
        CHECK_INT(r, PEN_OK);
        CHECK_INT(s.budget.used, 100);
        CHECK_INT(s.budget.waiting, 0);
        n_quick += now - releaser.at_ns < 20000000;
        shared_fini(&s);
    }
    CHECK(n_quick > 10);
}

int main(int argc, char **argv)
{
    TEST_START(argc, argv);
    RUN(takes_up_to_the_limit);
    RUN(one_exceeds_the_limit);
    RUN(release_wakes);
    return TEST_END();
}
