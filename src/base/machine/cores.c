/* SPDX-License-Identifier: Apache-2.0 */
#include "base/machine/cores.h"

#include <limits.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "base/attr.h"
#include "base/machine/cgroup.h"

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
    char text[64];
    if (!pen__cgroup_text(dir, "cpu.max", text, sizeof text))
        return 0;
    char *end;
    long long quota = strtoll(text, &end, 10);
    return end == text ? 0 : quota_cores(quota, strtoll(end, NULL, 10));
}

static unsigned quota_v1(const char *dir)
{
    char quota[32], period[32];
    if (!pen__cgroup_text(dir, "cpu.cfs_quota_us", quota, sizeof quota) ||
        !pen__cgroup_text(dir, "cpu.cfs_period_us", period, sizeof period))
        return 0;
    return quota_cores(strtoll(quota, NULL, 10), strtoll(period, NULL, 10));
}

static void least_cores(void *ctx, int version, const char *dir)
{
    unsigned *cores = ctx, quota = version == 2 ? quota_v2(dir) : quota_v1(dir);
    if (quota && quota < *cores)
        *cores = quota;
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
    pen__cgroup_each("cpu", least_cores, &cores);
    return cores;
}

/* ---- what processes of one machine share ---- */

/* How many numbers "0-3,8,10-11" has; 0 for anything else. */
static unsigned list_cores(const char *text)
{
    unsigned long n = 0;
    while (*text >= '0' && *text <= '9') {
        char *end;
        unsigned long first = strtoul(text, &end, 10), last = first;
        if (*end == '-')
            last = strtoul(end + 1, &end, 10);
        if (last < first || last >= 65536)
            return 0;
        n += last - first + 1;
        text = end + (*end == ',');
    }
    return *text && *text != '\n' ? 0 : (unsigned)PEN_MIN(n, 65536ul);
}

/* The widest of the groups: a container's own one, or the machine's. */
static void most_cores(void *ctx, int version, const char *dir)
{
    unsigned *most = ctx, n;
    char text[4096];
    const char *name = version == 2 ? "cpuset.cpus.effective" : "cpuset.effective_cpus";
    if (!pen__cgroup_text(dir, name, text, sizeof text))
        return;
    n = list_cores(text);
    *most = PEN_MAX(*most, n);
}

/* Cores of the machine, or of the container; 0 when nobody says. */
static unsigned machine_cores(void)
{
    char text[4096];
    unsigned online = 0, group = 0;
    if (pen__small_text("/sys/devices/system/cpu/online", text, sizeof text))
        online = list_cores(text);
    pen__cgroup_each("cpuset", most_cores, &group);
    return group && (!online || group < online) ? group : online;
}

unsigned pen__cores_share(unsigned processes, unsigned job)
{
    unsigned own = affinity_cores(), all = machine_cores(), quota = UINT_MAX;
    if (job && (!all || job < all))
        all = job;
    pen__cgroup_each("cpu", least_cores, &quota);
    /* Bound to cores of its own, or to some that others share: a socket, all but one core. */
    unsigned even = (all ? all : own) / processes;
    unsigned cores = (unsigned long long)own * processes <= all ? own : PEN_MIN(own, even);
    return PEN_MAX(PEN_MIN(cores, quota / processes), 1u);
}
