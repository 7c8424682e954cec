/* SPDX-License-Identifier: Apache-2.0 */
/* Helpers go to reads in the order in which these came, all that a read wants at once. */
#include <stdatomic.h>

#include "base/team.h"
#include "base/thread.h"
#include "io/helpers.h"
#include "test.h"

enum { ALL = 8, THREADS = 6, TURNS = 300 };

static int look(PenHelpers *h, PenHelpersWait *w)
{
    return pen__helpers_wait(h, w, 0);
}

static void test_first_come_first_served(void)
{
    PenHelpers h;
    PenHelpersWait a = {.n = 5}, b = {.n = 5}, c = {.n = 1};
    CHECK_INT(pen__helpers_init(&h, ALL, NULL), PEN_OK);
    pen__helpers_queue(&h, &a);
    pen__helpers_queue(&h, &b);
    pen__helpers_queue(&h, &c);
    CHECK_INT(look(&h, &b), PEN_E_TIMEOUT);
    CHECK_INT(look(&h, &a), PEN_OK);
    CHECK_INT(look(&h, &b), PEN_E_TIMEOUT); /* three are free */
    CHECK_INT(look(&h, &c), PEN_E_TIMEOUT); /* one would do, but b came before it */
    pen__helpers_put(&h, a.n);
    CHECK_INT(look(&h, &b), PEN_OK);
    CHECK_INT(look(&h, &c), PEN_OK);
    pen__helpers_put(&h, b.n + c.n);
    CHECK_INT(h.free, ALL);
    pen__helpers_fini(&h);
}

static void test_who_leaves_lets_the_next_one_in(void)
{
    PenHelpers h;
    PenHelpersWait a = {.n = ALL}, b = {.n = ALL}, c = {.n = ALL};
    CHECK_INT(pen__helpers_init(&h, ALL, NULL), PEN_OK);
    pen__helpers_queue(&h, &a);
    CHECK_INT(look(&h, &a), PEN_OK);
    pen__helpers_queue(&h, &b);
    pen__helpers_queue(&h, &c);
    pen__helpers_put(&h, a.n);
    pen__helpers_leave(&h, &b);
    CHECK_INT(look(&h, &c), PEN_OK);
    CHECK(!h.first);
    pen__helpers_fini(&h);
}

typedef struct Crowd {
    PenHelpers helpers;
    atomic_uint used;
    atomic_bool too_many;
} Crowd;

static void take_turns(void *ctx, unsigned number)
{
    Crowd *c = ctx;
    for (unsigned i = 0; i < TURNS; i++) {
        PenHelpersWait w = {.n = 1 + (number + i) % ALL};
        pen__helpers_queue(&c->helpers, &w);
        while (pen__helpers_wait(&c->helpers, &w, pen__deadline_after(1000000)) < 0)
            continue;
        if (atomic_fetch_add(&c->used, w.n) + w.n > ALL)
            atomic_store(&c->too_many, true);
        atomic_fetch_sub(&c->used, w.n);
        pen__helpers_put(&c->helpers, w.n);
    }
}

static void test_a_crowd_never_has_more(void)
{
    Crowd c = {0};
    CHECK_INT(pen__helpers_init(&c.helpers, ALL, NULL), PEN_OK);
    CHECK_INT(
        pen__team_run(&(PenTeamWork){.name = "crowd", .run = take_turns, .ctx = &c}, THREADS, NULL),
        PEN_OK);
    CHECK(!c.too_many);
    CHECK_INT(c.helpers.free, ALL);
    pen__helpers_fini(&c.helpers);
}

int main(void)
{
    RUN(first_come_first_served);
    RUN(who_leaves_lets_the_next_one_in);
    RUN(a_crowd_never_has_more);
    return TEST_END();
}
