/* SPDX-License-Identifier: Apache-2.0 */
#include "base/thread.h"

#include <errno.h>
#include <sched.h>
#include <unistd.h>

#include "test.h"

#include "base/attr.h"
#include "base/sys.h"

TEST(deadline_saturates)
{
    CHECK_INT(pen__deadline_after(UINT64_MAX), UINT64_MAX);
    uint64_t now = pen__sys->now_ns();
    CHECK(pen__deadline_after(5) >= now + 5);
}

static int refusing_start(pthread_t *ret, void *(*run)(void *), void *arg)
{
    (void)ret, (void)run, (void)arg;
    return -EAGAIN;
}

static void *store_seven(void *arg)
{
    *(int *)arg = 7;
    return NULL;
}

TEST(start_and_refusal)
{
    pthread_t t;
    int seven = 0;
    CHECK_INT(pen__thread_start(&t, store_seven, &seven, NULL), PEN_OK);
    pen__thread_join(t);
    CHECK_INT(seven, 7);
    PenSys sys = pen__sys_real;
    sys.thread_start = refusing_start;
    PenError err = {0};
    pen__sys = &sys;
    int r = pen__thread_start(&t, store_seven, &seven, &err);
    pen__sys = &pen__sys_real;
    CHECK_INT(r, PEN_E_LIMIT);
    CHECK_INT(err.os_errno, EAGAIN);
}

static void *tell_name(void *arg)
{
    pen__thread_name("pen-decode");
    return pthread_getname_np(pthread_self(), arg, 16) == 0 ? arg : NULL;
}

TEST(a_name_of_its_own)
{
    char before[16] = "", name[16] = "", after[16] = "";
    pthread_t t;
    pthread_getname_np(pthread_self(), before, sizeof before);
    CHECK_INT(pen__thread_start(&t, tell_name, name, NULL), PEN_OK);
    pen__thread_join(t);
    pthread_getname_np(pthread_self(), after, sizeof after);
    CHECK_STR(name, "pen-decode");
    CHECK_STR(after, before);
}

static void *tell_id(void *arg)
{
    *(uint32_t *)arg = pen__thread_id();
    return NULL;
}

TEST(an_id_of_its_own)
{
    uint32_t other = 0;
    pthread_t t;
    CHECK_INT(pen__thread_start(&t, tell_id, &other, NULL), PEN_OK);
    pen__thread_join(t);
    CHECK_INT(pen__thread_id(), getpid()); /* that of the first thread */
    CHECK(other != 0 && other != pen__thread_id());
}

int main(int argc, char **argv)
{
    TEST_START(argc, argv);
    RUN(deadline_saturates);
    RUN(start_and_refusal);
    RUN(a_name_of_its_own);
    RUN(an_id_of_its_own);
    return TEST_END();
}
