/* SPDX-License-Identifier: Apache-2.0 */
#include "io/dir.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/mem.h"
#include "base/sys.h"
#include "io/inner.h"

char *pen__path_join(const char *dir, const char *name)
{
    size_t a = strlen(dir);
    size_t b = strlen(name);
    while (a > 1 && dir[a - 1] == '/')
        a--;
    char *p = pen__alloc(a + b + 2);
    if (!p)
        return NULL;
    memcpy(p, dir, a);
    p[a] = '/';
    memcpy(p + a + 1, name, b + 1);
    return p;
}

char *pen__path_add(const char *path, const char *suffix)
{
    size_t a = strlen(path), b = strlen(suffix);
    char *p = pen__alloc(a + b + 1);
    if (!p)
        return NULL;
    memcpy(p, path, a);
    memcpy(p + a, suffix, b + 1);
    return p;
}

int pen__dir_sync(const char *path, PenError *reterr)
{
    int fd = pen__sys->open(path, PEN_OPEN_DIR);
    if (fd < 0)
        return pen__fail_os(reterr, -fd, "io/dir", "%s: cannot open directory", path);
    int r = pen__sys->fsync(fd);
    pen__sys->close(fd);
    return r < 0 ? pen__fail_os(reterr, -r, "io/dir", "%s: cannot sync directory", path) : PEN_OK;
}

int pen__dir_make(const char *path, PenError *reterr)
{
    PenFileStat st;
    int r = pen__sys->mkdir(PEN_AT_CWD, path);
    if (r < 0 && r != -EEXIST)
        return pen__fail_os(reterr, -r, "io/dir", "%s: cannot create directory", path);
    if (r == -EEXIST && pen__sys->stat_path(path, &st) == 0 && !st.is_dir)
        return pen__fail(reterr, PEN_E_EXISTS, "io/dir",
                         "%s: expected a directory, found %s; choose another name", path, st.what);
    return pen__inner_sync(path, pen__inner_parent(path), reterr);
}

int pen__file_exists(const char *path, PenError *reterr)
{
    PenFileStat st;
    int r = pen__sys->stat_path(path, &st);
    if (r == -ENOENT || r == -ENOTDIR)
        return 0;
    return r < 0 ? pen__fail_os(reterr, -r, "io/dir", "%s: cannot stat", path) : 1;
}

int pen__file_remove(const char *path, PenError *reterr)
{
    return pen__inner_remove(path, pen__inner_root(path), reterr);
}

int pen__dir_remove(const char *path, PenError *reterr)
{
    return pen__inner_remove_dir(path, pen__inner_root(path), reterr);
}

int pen__names_add(PenNames *names, const char *name)
{
    if (names->n == names->cap) {
        uint64_t cap = names->cap ? names->cap * 2 : 64;
        char **grown = pen__resize(names->names, (size_t)cap * sizeof *grown);
        if (!grown)
            return -ENOMEM;
        names->names = grown;
        names->cap = cap;
    }
    char *copy = pen__strdup(name);
    if (!copy)
        return -ENOMEM;
    names->names[names->n++] = copy;
    return 0;
}

static int add_name(void *ctx, const char *name)
{
    return pen__names_add(ctx, name);
}

static int by_bytes(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static int end_list(int r, const char *path, PenNames *names, PenNames *ret, PenError *reterr)
{
    if (r < 0) {
        pen__names_free(names);
        return pen__fail_os(reterr, -r, "io/dir", "%s: cannot list", path);
    }
    if (names->n)
        qsort(names->names, (size_t)names->n, sizeof *names->names, by_bytes);
    *ret = *names;
    return PEN_OK;
}

int pen__dir_list(const char *path, PenNames *ret, PenError *reterr)
{
    PenNames names = {0};
    int r = pen__sys->list(path, add_name, &names);
    return end_list(r, path, &names, ret, reterr);
}

int pen__dir_list_fd(int dir, const char *path, PenNames *ret, PenError *reterr)
{
    PenNames names = {0};
    int r = pen__sys->list_fd(dir, add_name, &names);
    return end_list(r, path, &names, ret, reterr);
}

void pen__names_free(PenNames *names)
{
    for (uint64_t i = 0; i < names->n; i++)
        pen__free(names->names[i]);
    pen__free(names->names);
    *names = (PenNames){0};
}

/* Takes `fd`, and closes it when it fails. */
static int lock_fd(int fd, const char *path, int exclusive, PenLock *ret, PenError *reterr)
{
    int r = pen__sys->lock(fd, exclusive);
    if (r < 0) {
        pen__sys->close(fd);
        if (r == -EWOULDBLOCK)
            return pen__fail(reterr, PEN_E_BUSY, "io/dir",
                             "%s: another process is writing here; wait until it ends", path);
        return pen__fail_os(reterr, -r, "io/dir", "%s: cannot lock", path);
    }
    ret->fd = fd;
    return PEN_OK;
}

int pen__dir_lock(const char *path, int exclusive, PenLock *ret, PenError *reterr)
{
    int fd = pen__sys->open(path, PEN_OPEN_DIR);
    if (fd < 0)
        return pen__fail_os(reterr, -fd, "io/dir", "%s: cannot open directory", path);
    return lock_fd(fd, path, exclusive, ret, reterr);
}

int pen__inner_lock(const char *path, PenLock *ret, PenError *reterr)
{
    int fd = -1, r = pen__inner_open_dir(path, pen__inner_root(path), &fd, reterr);
    return r < 0 ? r : lock_fd(fd, path, 1, ret, reterr);
}

void pen__dir_unlock(PenLock *lock)
{
    if (lock->fd >= 0)
        pen__sys->close(lock->fd);
    lock->fd = -1;
}
