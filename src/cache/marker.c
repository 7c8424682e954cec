/* SPDX-License-Identifier: Apache-2.0 */
/* The file that makes a directory a cache. Without it nothing is ever written to or removed from a
 * directory that has something in it. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "cache/cache_impl.h"

#define WHERE "cache/open"

static int make_dir(PenCache *c, PenError *reterr)
{
    int r = pen__sys->mkdir_own(c->dir);
    if (r == -ENOENT)
        return pen__fail(reterr, PEN_E_NOT_FOUND, WHERE,
                         "%s: cannot create the cache: the parent directory does not exist",
                         c->dir);
    return r < 0 && r != -EEXIST
               ? pen__fail_os(reterr, -r, WHERE, "%s: cannot create the cache", c->dir)
               : PEN_OK;
}

static int check_dir(PenCache *c, PenError *reterr)
{
    PenFileStat st;
    int r = pen__sys->stat_path(c->dir, &st);
    if (r < 0)
        return pen__fail_os(reterr, -r, WHERE, "%s: cannot use as a cache", c->dir);
    if (!st.is_dir)
        return pen__fail(reterr, PEN_E_INVALID, WHERE,
                         "%s: cannot use as a cache: expected a directory, found a file", c->dir);
    if (st.mode & 0002)
        return pen__fail(reterr, PEN_E_ACCESS, WHERE,
                         "%s: cannot use as a cache: every user may write to it (mode %04o); name "
                         "a subdirectory, which is then created",
                         c->dir, st.mode);
    return PEN_OK;
}

typedef struct Names {
    bool has_marker;
    char other[64]; /* one of them, or "" */
} Names;

static int see_name(void *ctx, const char *name)
{
    Names *names = ctx;
    if (strcmp(name, PEN_CACHE_MARKER) == 0)
        names->has_marker = true;
    else
        snprintf(names->other, sizeof names->other, "%s", name);
    return 0;
}

static int list_names(PenCache *c, Names *ret, PenError *reterr)
{
    *ret = (Names){0};
    int r = pen__sys->list(c->dir, see_name, ret);
    return r < 0 ? pen__fail_os(reterr, -r, WHERE, "%s: cannot list", c->dir) : PEN_OK;
}

static int not_empty(PenCache *c, const Names *names, PenError *reterr)
{
    return pen__fail(reterr, PEN_E_EXISTS, WHERE,
                     "%s: not a cache: it has no file %s and is not empty (it contains '%s'); name "
                     "an empty or a new directory",
                     c->dir, PEN_CACHE_MARKER, names->other);
}

enum { AGAIN = 1 };

/* There is no marker: makes one in an empty directory, or says to look once more. */
static int make_file(PenCache *c, const char *path, bool last, PenError *reterr)
{
    Names names;
    int r = list_names(c, &names, reterr);
    if (r < 0)
        return r;
    /* Another process may be making it, and has gone on to make more meanwhile. */
    if (names.has_marker || (names.other[0] && !last))
        return AGAIN;
    if (names.other[0])
        return not_empty(c, &names, reterr);
    int fd = pen__sys->open(path, PEN_OPEN_NEW);
    if (fd < 0 && fd != -EEXIST)
        return pen__fail_os(reterr, -fd, WHERE, "%s: cannot create", path);
    c->fd = fd < 0 ? -1 : fd;
    return fd < 0 ? AGAIN : PEN_OK;
}

static int open_file(PenCache *c, bool make, PenError *reterr)
{
    enum { TRIES = 4 };
    char path[PEN_CACHE_PATH];
    pen__cache_dir_path(c, NULL, PEN_CACHE_MARKER, path);
    for (int i = 0; i < TRIES; i++) {
        int fd = pen__sys->open(path, PEN_OPEN_UPDATE);
        if (fd == -ENOENT && !make)
            return pen__fail(reterr, PEN_E_NOT_FOUND, WHERE, "%s: not a cache: it has no file %s",
                             c->dir, PEN_CACHE_MARKER);
        if (fd == -ELOOP)
            return pen__fail(reterr, PEN_E_FORMAT, WHERE, "%s: not a cache: %s is a symbolic link",
                             c->dir, PEN_CACHE_MARKER);
        if (fd < 0 && fd != -ENOENT)
            return pen__fail_os(reterr, -fd, WHERE, "%s: cannot open", path);
        if (fd >= 0) {
            c->fd = fd;
            return PEN_OK;
        }
        int r = make_file(c, path, i > 0, reterr);
        if (r != AGAIN)
            return r;
    }
    return pen__fail(
        reterr, PEN_E_BUSY, WHERE,
        "%s: repeatedly created and removed by another process; name another directory", path);
}

static int check_file(PenCache *c, PenError *reterr)
{
    PenFileStat st;
    int r = pen__sys->stat_fd(c->fd, &st);
    if (r < 0)
        return pen__fail_os(reterr, -r, WHERE, "%s: cannot stat %s", c->dir, PEN_CACHE_MARKER);
    if (!st.is_file)
        return pen__fail(reterr, PEN_E_FORMAT, WHERE, "%s: not a cache: %s is not a regular file",
                         c->dir, PEN_CACHE_MARKER);
    if (st.uid != geteuid())
        return pen__fail(reterr, PEN_E_ACCESS, WHERE,
                         "%s: the cache belongs to user %u, but this process runs as user %u; use "
                         "a separate cache for each user",
                         c->dir, st.uid, (unsigned)geteuid());
    return PEN_OK;
}

static int check_empty(PenCache *c, PenError *reterr)
{
    Names names;
    int r = list_names(c, &names, reterr);
    return r == PEN_OK && names.other[0] ? not_empty(c, &names, reterr) : r;
}

/* Takes the lock of the accounting: what cannot lock is noticed here. An empty marker is one whose
 * maker was killed, and is made ours when nothing else is there. */
static int check_accounting(PenCache *c, PenError *reterr)
{
    PenAccounting accounting;
    int r = pen__accounting_begin(c, c->wait_ns, &accounting);
    if (r == -EAGAIN)
        return pen__fail(reterr, PEN_E_BUSY, WHERE,
                         "%s: another process has held the lock of the cache for %u ms; check for "
                         "a process that hangs",
                         c->dir, (unsigned)(c->wait_ns / 1000000));
    if (r == -ENOLCK || r == -EINVAL || r == -EOPNOTSUPP || r == -ENOSYS)
        return pen__fail(reterr, PEN_E_UNSUPPORTED, WHERE,
                         "%s: this file system does not support the file locks that a shared cache "
                         "needs (errno %d); put it on a local disk",
                         c->dir, -r);
    if (r == -EPROTO)
        return pen__fail(
            reterr, PEN_E_FORMAT, WHERE,
            "%s: %s was written by another version of penstock; name another directory", c->dir,
            PEN_CACHE_MARKER);
    if (r < 0 && r != -ENODATA && r != -EBADMSG)
        return pen__fail_os(reterr, -r, WHERE, "%s: cannot read %s", c->dir, PEN_CACHE_MARKER);
    bool empty = r == -ENODATA;
    r = empty ? check_empty(c, reterr) : PEN_OK;
    int e = pen__accounting_end(c, empty && r == PEN_OK ? &accounting : NULL);
    return r == PEN_OK && e < 0
               ? pen__fail_os(reterr, -e, WHERE, "%s: cannot write %s", c->dir, PEN_CACHE_MARKER)
               : r;
}

int pen__marker_open(PenCache *c, bool make, PenError *reterr)
{
    int r = make ? make_dir(c, reterr) : PEN_OK;
    if (r == PEN_OK)
        r = check_dir(c, reterr);
    if (r == PEN_OK)
        r = open_file(c, make, reterr);
    if (r == PEN_OK)
        r = check_file(c, reterr);
    return r == PEN_OK ? check_accounting(c, reterr) : r;
}
