/* SPDX-License-Identifier: Apache-2.0 */
#include "io/inner.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <string.h>

#include "base/mem.h"
#include "base/sys.h"

#define WHERE "io/inner"
#define WORK "/.work" /* PEN_WORK_NAME of the format, behind a slash */

size_t pen__inner_parent(const char *path)
{
    size_t n = strlen(path);
    while (n > 1 && path[n - 1] == '/')
        n--;
    while (n > 0 && path[n - 1] != '/')
        n--;
    return n;
}

size_t pen__inner_root(const char *path)
{
    const size_t n = sizeof WORK - 1;
    for (size_t at = strlen(path); at-- > 0;)
        if (strncmp(path + at, WORK, n) == 0 && (path[at + n] == '/' || !path[at + n]))
            return at + 1;
    return pen__inner_parent(path);
}

static int open_root(const char *path, size_t bytes, PenError *reterr)
{
    char *root = bytes ? pen__strndup(path, bytes) : pen__strdup(".");
    if (!root)
        return pen__fail_memory(reterr, WHERE, path);
    int fd = pen__sys->open(root, PEN_OPEN_DIR);
    if (fd < 0)
        fd = pen__fail_os(reterr, -fd, WHERE, "%s: cannot open directory", root);
    pen__free(root);
    return fd;
}

static int fail_dir(int dir, const char *name, const char *path, size_t bytes, int e,
                    PenError *reterr)
{
    PenFileStat st;
    if (pen__sys->stat_at(dir, name, &st) == 0 && !st.is_dir)
        return pen__fail(reterr, PEN_E_EXISTS, WHERE,
                         "%.*s: expected a directory, found %s; penstock does not follow it to "
                         "write or remove files: move it away",
                         (int)bytes, path, st.what);
    return pen__fail_os(reterr, e, WHERE, "%.*s: cannot open directory", (int)bytes, path);
}

/* The directory path[from..to) in `dir`; of `dir` itself when that is empty. Closes `dir`. */
static int enter(int dir, const char *path, size_t from, size_t to, PenError *reterr)
{
    char name[NAME_MAX + 1];
    int next = -ENAMETOOLONG;
    if (to - from <= NAME_MAX) {
        memcpy(name, path + from, to - from);
        name[to - from] = 0;
        next = pen__sys->open_at(dir, name, PEN_OPEN_INNER_DIR);
    } else {
        name[0] = 0;
    }
    if (next < 0)
        next = fail_dir(dir, name, path, to, -next, reterr);
    pen__sys->close(dir);
    return next;
}

int pen__inner_find(const char *path, size_t root_bytes, PenInner *ret, PenError *reterr)
{
    int dir = open_root(path, root_bytes, reterr);
    size_t at = root_bytes;
    while (dir >= 0) {
        at += strspn(path + at, "/");
        size_t n = strcspn(path + at, "/");
        if (!path[at + n]) {
            *ret = (PenInner){dir, path + at};
            return PEN_OK;
        }
        dir = enter(dir, path, at, at + n, reterr);
        at += n;
    }
    return dir;
}

void pen__inner_close(PenInner *inner)
{
    if (inner->dir >= 0)
        pen__sys->close(inner->dir);
    inner->dir = -1;
}

int pen__inner_open_dir(const char *path, size_t root_bytes, int *ret_fd, PenError *reterr)
{
    PenInner inner;
    int r = pen__inner_find(path, root_bytes, &inner, reterr);
    if (r < 0)
        return r;
    size_t from = (size_t)(inner.name - path);
    int fd = enter(inner.dir, path, from, from + strlen(inner.name), reterr);
    if (fd >= 0)
        *ret_fd = fd;
    return fd < 0 ? fd : PEN_OK;
}

static int sync_dir(const PenInner *inner, const char *path, PenError *reterr)
{
    int r = pen__sys->fsync(inner->dir);
    return r < 0 ? pen__fail_os(reterr, -r, WHERE, "%s: cannot sync its directory", path) : PEN_OK;
}

int pen__inner_make(const char *path, size_t root_bytes, PenError *reterr)
{
    PenInner inner;
    PenFileStat st = {.is_dir = 1};
    int r = pen__inner_find(path, root_bytes, &inner, reterr);
    if (r < 0)
        return r;
    int made = pen__sys->mkdir(inner.dir, inner.name);
    if (made == -EEXIST)
        made = pen__sys->stat_at(inner.dir, inner.name, &st);
    if (made < 0)
        r = pen__fail_os(reterr, -made, WHERE, "%s: cannot create directory", path);
    else if (!st.is_dir)
        r = fail_dir(inner.dir, inner.name, path, strlen(path), ENOTDIR, reterr);
    else
        r = sync_dir(&inner, path, reterr);
    pen__inner_close(&inner);
    return r;
}

static int take_away(const char *path, size_t root_bytes, bool is_dir, PenError *reterr)
{
    PenInner inner;
    int r = pen__inner_find(path, root_bytes, &inner, reterr);
    if (r < 0)
        return pen__error_accept(r, PEN_E_NOT_FOUND, reterr);
    r = is_dir ? pen__sys->rmdir(inner.dir, inner.name) : pen__sys->unlink(inner.dir, inner.name);
    pen__inner_close(&inner);
    if (r == 0 || r == -ENOENT)
        return PEN_OK;
    return pen__fail_os(reterr, -r, WHERE, "%s: cannot remove%s", path, is_dir ? " directory" : "");
}

int pen__inner_remove(const char *path, size_t root_bytes, PenError *reterr)
{
    return take_away(path, root_bytes, false, reterr);
}

int pen__inner_remove_dir(const char *path, size_t root_bytes, PenError *reterr)
{
    return take_away(path, root_bytes, true, reterr);
}

int pen__inner_sync(const char *path, size_t root_bytes, PenError *reterr)
{
    PenInner inner;
    int r = pen__inner_find(path, root_bytes, &inner, reterr);
    if (r < 0)
        return r;
    r = sync_dir(&inner, path, reterr);
    pen__inner_close(&inner);
    return r;
}
