/* SPDX-License-Identifier: Apache-2.0 */
#include "base/thread.h"

#include <errno.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/attr.h"
#include "base/error.h"
#include "base/sys.h"

/* A wait is cut into pieces no longer than this, so that a clock turned by a test is noticed. */
#define WAIT_SLICE_NS 50000000u

int pen__thread_start(pthread_t *ret, void *(*run)(void *), void *arg, PenError *reterr)
{
    int e = pen__sys->thread_start(ret, run, arg);
    if (e >= 0)
        return PEN_OK;
    /* EAGAIN is the usual answer here, and would read as "in use" elsewhere. */
    int r = pen__fail(reterr, PEN_E_LIMIT, "base/thread",
                      "cannot start a thread: the system refused with errno %d; use fewer threads "
                      "or raise the limit (ulimit -u, pids.max)",
                      -e);
    if (reterr)
        reterr->os_errno = -e;
    return r;
}

void pen__thread_join(pthread_t thread)
{
    pthread_join(thread, NULL);
}

void pen__thread_name(const char *name)
{
    (void)pthread_setname_np(pthread_self(), name);
}

uint32_t pen__thread_id(void)
{
    return (uint32_t)syscall(SYS_gettid); /* system: it cannot fail */
}

uint64_t pen__deadline_after(uint64_t ns)
{
    uint64_t at;
    return __builtin_add_overflow(pen__sys->now_ns(), ns, &at) ? UINT64_MAX : at;
}

int pen__cond_init(pthread_cond_t *ret)
{
    pthread_condattr_t attr;
    if (pthread_condattr_init(&attr) != 0)
        return PEN_E_NO_MEMORY;
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    int e = pthread_cond_init(ret, &attr);
    pthread_condattr_destroy(&attr);
    if (e == ENOMEM)
        return PEN_E_NO_MEMORY;
    return e ? PEN_E_LIMIT : PEN_OK;
}

int pen__cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex, uint64_t deadline_ns)
{
    uint64_t now = pen__sys->now_ns();
    if (now >= deadline_ns)
        return PEN_E_TIMEOUT;
    /* The kernel waits on the real clock whatever the system interface's clock says. */
    uint64_t until = pen__sys_real.now_ns() + PEN_MIN(deadline_ns - now, WAIT_SLICE_NS);
    struct timespec t = {.tv_sec = (time_t)(until / 1000000000u),
                         .tv_nsec = (long)(until % 1000000000u)};
    pthread_cond_timedwait(cond, mutex, &t);
    return PEN_OK;
}
