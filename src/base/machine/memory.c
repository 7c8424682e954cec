/* SPDX-License-Identifier: Apache-2.0 */
#include "base/machine/memory.h"

#include <stdlib.h>
#include <string.h>

#include "base/attr.h"
#include "base/machine/cgroup.h"

/* The number behind a name at the beginning of a line: "MemAvailable:  123 kB"; 0 without. */
static uint64_t number_of(const char *text, const char *name)
{
    size_t n = strlen(name);
    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, name, n) == 0 && (line[n] == ' ' || line[n] == ':'))
            return strtoull(line + n + 1, NULL, 10);
    }
    return 0;
}

/* Pages of files are given up when memory is short; memory that is shared is not among them. */
static uint64_t files_of(const char *dir, const char *active, const char *inactive)
{
    char text[8192];
    if (!pen__cgroup_text(dir, "memory.stat", text, sizeof text))
        return 0;
    return number_of(text, active) + number_of(text, inactive);
}

/* A group without a limit says "max", or in version 1 a number no machine has: false. */
static bool group_limit(int version, const char *dir, uint64_t *ret)
{
    char limit[32], *end;
    if (!pen__cgroup_text(dir, version == 2 ? "memory.max" : "memory.limit_in_bytes", limit,
                          sizeof limit))
        return false;
    *ret = strtoull(limit, &end, 10);
    return end != limit && *ret < UINT64_C(1) << 62;
}

static void least_limit(void *ctx, int version, const char *dir)
{
    PenAvailable *least = ctx;
    uint64_t most;
    if (group_limit(version, dir, &most) && most < least->bytes)
        *least = (PenAvailable){most, true};
}

static void least_room(void *ctx, int version, const char *dir)
{
    PenAvailable *least = ctx;
    char used[32];
    uint64_t most;
    bool two = version == 2;
    if (!group_limit(version, dir, &most) ||
        !pen__cgroup_text(dir, two ? "memory.current" : "memory.usage_in_bytes", used, sizeof used))
        return;
    uint64_t now = strtoull(used, NULL, 10);
    uint64_t files = two ? files_of(dir, "active_file", "inactive_file")
                         : files_of(dir, "total_active_file", "total_inactive_file");
    now -= PEN_MIN(now, files);
    uint64_t room = most - PEN_MIN(most, now);
    if (room < least->bytes)
        *least = (PenAvailable){room, true};
}

static PenAvailable least_of(const char *name,
                             void (*each)(void *ctx, int version, const char *dir))
{
    PenAvailable least = {.bytes = UINT64_MAX};
    char text[8192];
    uint64_t kib = 0;
    if (pen__small_text("/proc/meminfo", text, sizeof text))
        kib = number_of(text, name);
    if (kib && kib < UINT64_MAX / 1024)
        least.bytes = kib * 1024;
    pen__cgroup_each("memory", each, &least);
    return least;
}

PenAvailable pen__memory_available(void)
{
    return least_of("MemAvailable", least_room);
}

PenAvailable pen__memory_limit(void)
{
    return least_of("MemTotal", least_limit);
}
