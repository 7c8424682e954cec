/* SPDX-License-Identifier: Apache-2.0 */
#include "base/thread.h"

#include <errno.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

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
    /* The kernel waits on the real clock whatever the seam's clock says. */
    uint64_t until = pen__sys_real.now_ns() + PEN_MIN(deadline_ns - now, WAIT_SLICE_NS);
    struct timespec t = {.tv_sec = (time_t)(until / 1000000000u),
                         .tv_nsec = (long)(until % 1000000000u)};
    pthread_cond_timedwait(cond, mutex, &t);
    return PEN_OK;
}

/* The whole of a small file as text; false when it cannot be read. */
static bool read_small(const char *path, char *buf, size_t cap)
{
    int fd = pen__sys->open(path, PEN_OPEN_READ);
    if (fd < 0)
        return false;
    size_t used = 0;
    int64_t n = 1;
    while (n > 0 && used < cap - 1) {
        n = pen__sys->pread(fd, buf + used, cap - 1 - used, used);
        if (n > 0)
            used += (size_t)n;
    }
    pen__sys->close(fd);
    buf[used] = 0;
    return n >= 0;
}

/* Cores that a quota per period amounts to, rounded up; 0 for none. */
static unsigned quota_cores(long long quota, long long period)
{
    if (quota <= 0 || period <= 0)
        return 0;
    long long n = quota / period + (quota % period != 0);
    return n > 65536 ? 65536 : (unsigned)n;
}

/* "max 100000" or "150000 100000" */
static unsigned quota_v2(const char *dir)
{
    char path[640], text[64];
    snprintf(path, sizeof path, "/sys/fs/cgroup%s/cpu.max", dir);
    if (!read_small(path, text, sizeof text))
        return 0;
    char *end;
    long long quota = strtoll(text, &end, 10);
    return end == text ? 0 : quota_cores(quota, strtoll(end, NULL, 10));
}

static unsigned quota_v1(const char *dir)
{
    char path[640], quota[32], period[32];
    snprintf(path, sizeof path, "/sys/fs/cgroup/cpu%s/cpu.cfs_quota_us", dir);
    if (!read_small(path, quota, sizeof quota))
        return 0;
    snprintf(path, sizeof path, "/sys/fs/cgroup/cpu%s/cpu.cfs_period_us", dir);
    if (!read_small(path, period, sizeof period))
        return 0;
    return quota_cores(strtoll(quota, NULL, 10), strtoll(period, NULL, 10));
}

/* The least of `cores` and the quotas of `dir` and all that contain it. Inside a container the path
 * may be the host's, of which only the root is visible: the walk upwards ends there. */
static unsigned least_quota(char *dir, unsigned cores, unsigned (*quota)(const char *dir))
{
    for (;;) {
        size_t n = strlen(dir);
        if (n && dir[n - 1] == '/')
            dir[n - 1] = 0;
        unsigned q = quota(dir);
        if (q && q < cores)
            cores = q;
        char *slash = strrchr(dir, '/');
        if (!slash)
            return cores;
        *slash = 0;
    }
}

/* Is "cpu" one of the names in "cpu,cpuacct"? */
static bool has_cpu(char *names)
{
    for (char *name; (name = strsep(&names, ","));)
        if (strcmp(name, "cpu") == 0)
            return true;
    return false;
}

static unsigned affinity_cores(void)
{
    unsigned long mask[1024]; /* 65536 cores */
    memset(mask, 0, sizeof mask);
    if (sched_getaffinity(0, sizeof mask, (cpu_set_t *)(void *)mask) < 0)
        return 1;
    unsigned n = 0;
    for (size_t i = 0; i < PEN_LEN(mask); i++)
        n += (unsigned)__builtin_popcountl(mask[i]);
    return n ? n : 1;
}

unsigned pen__thread_cores(void)
{
    unsigned cores = affinity_cores();
    char text[4096];
    if (!read_small("/proc/self/cgroup", text, sizeof text))
        return cores;
    /* Lines "id:controllers:path"; version 2 has id 0 and no controllers. */
    char *rest = text;
    for (char *line; (line = strsep(&rest, "\n"));) {
        char *id = strsep(&line, ":"), *names = strsep(&line, ":");
        if (!line || line[0] != '/' || strlen(line) > 500)
            continue;
        if (strcmp(id, "0") == 0 && !*names)
            cores = least_quota(line, cores, quota_v2);
        else if (has_cpu(names))
            cores = least_quota(line, cores, quota_v1);
    }
    return cores;
}
