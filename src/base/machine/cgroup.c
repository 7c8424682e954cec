/* SPDX-License-Identifier: Apache-2.0 */
#include "base/machine/cgroup.h"

#include <stdio.h>
#include <string.h>

#include "base/sys.h"

bool pen__small_text(const char *path, char *ret, size_t cap)
{
    int fd = pen__sys->open(path, PEN_OPEN_READ);
    if (fd < 0)
        return false;
    size_t used = 0;
    int64_t n = 1;
    while (n > 0 && used < cap - 1) {
        n = pen__sys->pread(fd, ret + used, cap - 1 - used, used);
        if (n > 0)
            used += (size_t)n;
    }
    pen__sys->close(fd);
    ret[used] = 0;
    return n >= 0;
}

bool pen__cgroup_text(const char *dir, const char *name, char *ret, size_t cap)
{
    char path[640];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    return pen__small_text(path, ret, cap);
}

/* `path` in the hierarchy that is mounted at `mount`, and all above it. */
__attribute__((nonnull(1, 2))) static void walk_up(const char *mount, char *path, int version,
                                                   void (*each)(void *ctx, int version,
                                                                const char *dir),
                                                   void *ctx)
{
    for (;;) {
        char dir[600];
        size_t n = strlen(path);
        if (n && path[n - 1] == '/')
            path[n - 1] = 0;
        snprintf(dir, sizeof dir, "%s%s", mount, path);
        each(ctx, version, dir);
        char *slash = strrchr(path, '/');
        if (!slash)
            return;
        *slash = 0;
    }
}

/* Is "cpu" one of the names in "cpu,cpuacct"? */
static bool has_name(char *names, const char *wanted)
{
    for (char *name; (name = strsep(&names, ","));)
        if (strcmp(name, wanted) == 0)
            return true;
    return false;
}

void pen__cgroup_each(const char *controller, void (*each)(void *ctx, int version, const char *dir),
                      void *ctx)
{
    char text[4096], mount[64];
    if (!pen__small_text("/proc/self/cgroup", text, sizeof text))
        return;
    snprintf(mount, sizeof mount, "/sys/fs/cgroup/%s", controller);
    /* Lines "id:controllers:path"; version 2 has id 0 and no controllers. */
    char *rest = text;
    for (char *line; (line = strsep(&rest, "\n"));) {
        char *id = strsep(&line, ":"), *names = strsep(&line, ":");
        if (!line || line[0] != '/' || strlen(line) > 500)
            continue;
        if (strcmp(id, "0") == 0 && !*names)
            walk_up("/sys/fs/cgroup", line, 2, each, ctx);
        else if (has_name(names, controller))
            walk_up(mount, line, 1, each, ctx);
    }
}
