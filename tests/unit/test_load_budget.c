/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes that threads of a loader share: who has to wait, and who is woken. */
#include <string.h>
#include <time.h>

#include "test.h"

#include "base/sys.h"
#include "base/thread.h"
#include "load/core.h"

static void core_start(PenCore *c)
{
    memset(c, 0, sizeof *c);
    pthread_mutex_init(&c->mutex, NULL);
    CHECK_INT(pen__cond_init(&c->for_bytes), PEN_OK);
}

static void core_end(PenCore *c)
{
    pthread_cond_destroy(&c->for_bytes);
    pthread_mutex_destroy(&c->mutex);
}

TEST(takes_up_to_the_limit)
{
    PenCore c;
    core_start(&c);
    PenBudget b = {.limit = 100};
    PenError err;
    CHECK_INT(pen__budget_take(&c, &b, 60, NULL, "it", &err), PEN_OK);
    CHECK_INT(pen__budget_take(&c, &b, 40, NULL, "it", &err), PEN_OK);
    CHECK_INT(b.used, 100);
    pen__budget_give(&c, &b, 60);
    CHECK_INT(b.used, 40);
    CHECK_INT(b.peak, 100);
    CHECK_INT(pen__budget_take(&c, &b, 101, NULL, "it", &err), PEN_E_LIMIT);
    CHECK(strstr(err.message, "it takes 101 bytes"));
    CHECK_INT(b.used, 40);
    CHECK_INT(pen__budget_take(&c, &b, 60, NULL, "it", &err), PEN_OK);
    core_end(&c);
}

/* A worker that must not wait goes over the limit, but only one at a time. */
TEST(one_goes_over)
{
    PenCore c;
    core_start(&c);
    PenBudget b = {.limit = 100};
    bool over = false;
    CHECK_INT(pen__budget_take(&c, &b, 90, &over, "it", NULL), PEN_OK);
    CHECK(!over && !b.over);
    CHECK_INT(pen__budget_take(&c, &b, 20, &over, "it", NULL), PEN_OK);
    CHECK(over && b.over);
    CHECK_INT(b.used, 110);
    c.stop = true;
    CHECK_INT(pen__budget_take(&c, &b, 20, &over, "it", NULL), PEN_END);
    CHECK_INT(b.used, 110);
    core_end(&c);
}

typedef struct Giver {
    PenCore *core;
    PenBudget *budget;
    uint64_t at_ns;
} Giver;

static void *give_soon(void *arg)
{
    Giver *g = arg;
    struct timespec t = {.tv_nsec = 10000000};
    nanosleep(&t, NULL);
    pthread_mutex_lock(&g->core->mutex);
    g->at_ns = pen__sys->now_ns();
    pen__budget_give(g->core, g->budget, 100);
    pthread_mutex_unlock(&g->core->mutex);
    return NULL;
}

/* A waiter that nobody wakes finds out by itself, but after 50 ms in all; on a busy machine a few
 * of the 21 may be either way. */
TEST(give_wakes)
{
    int n_quick = 0;
    for (int i = 0; i < 21; i++) {
        PenCore c;
        core_start(&c);
        PenBudget b = {.limit = 100, .used = 100};
        Giver g = {.core = &c, .budget = &b};
        pthread_t t;
        CHECK_INT(pen__thread_start(&t, give_soon, &g, NULL), PEN_OK);
        pthread_mutex_lock(&c.mutex);
        int r = pen__budget_take(&c, &b, 100, NULL, "it", NULL);
        uint64_t now = pen__sys->now_ns();
        pthread_mutex_unlock(&c.mutex);
        pen__thread_join(t);
        CHECK_INT(r, PEN_OK);
        CHECK_INT(b.used, 100);
        CHECK_INT(b.waiting, 0);
        n_quick += now - g.at_ns < 20000000;
        core_end(&c);
    }
    CHECK(n_quick > 10);
}

int main(int argc, char **argv)
{
    TEST_START(argc, argv);
    RUN(takes_up_to_the_limit);
    RUN(one_goes_over);
    RUN(give_wakes);
    return TEST_END();
}
