/* SPDX-License-Identifier: Apache-2.0 */
#include "manage/work_home.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/sha256.h"
#include "base/sys.h"
#include "io/dir.h"
#include "manage/work.h"
#include "net/remote/remote.h"

#define WHERE "ingest/home"

/* "BASE/penstock/0123456789abcdef" for an address, and "-PART" behind it for a part. */
static char *in_cache(const char *base, const char *below, const char *out, const char *part)
{
    uint8_t hash[32];
    char name[128];
    size_t at = (size_t)snprintf(name, sizeof name, "%s", below);
    size_t n = strlen(out);
    while (n > 1 && out[n - 1] == '/') /* means the same place */
        n--;
    pen__sha256(out, n, hash);
    for (int i = 0; i < 8; i++)
        at += (size_t)snprintf(name + at, sizeof name - at, "%02x", hash[i]);
    if (part)
        snprintf(name + at, sizeof name - at, "-%s", part);
    return pen__path_join(base, name);
}

static int find(const char *out, const char *work, const char *part, char **ret, PenError *reterr)
{
    char *home = NULL;
    if (!pen_is_remote(out)) {
        home = pen__strdup(out);
    } else if (work) {
        home = part ? pen__path_join(work, part) : pen__strdup(work);
    } else {
        const char *cache = pen__sys->environment("XDG_CACHE_HOME");
        const char *user = pen__sys->environment("HOME");
        if (cache && *cache)
            home = in_cache(cache, "penstock/", out, part);
        else if (user && *user)
            home = in_cache(user, ".cache/penstock/", out, part);
        else
            return pen__fail(reterr, PEN_E_INVALID, WHERE,
                             "%s: no directory for the work files: neither HOME nor "
                             "XDG_CACHE_HOME is set; pass one with --work",
                             out);
    }
    if (!home)
        return pen__fail_memory(reterr, WHERE, out);
    *ret = home;
    return PEN_OK;
}

int pen__home_find(const char *out, const char *work, char **ret, PenError *reterr)
{
    return find(out, work, NULL, ret, reterr);
}

int pen__home_find_part(const char *out, const char *work, const char *part, char **ret,
                        PenError *reterr)
{
    return find(out, work, part, ret, reterr);
}

/* The directories above it, when they are not there. */
static int make_above(char *path, PenError *reterr)
{
    int r = PEN_OK;
    for (char *c = path + 1; *c && r >= 0; c++)
        if (*c == '/') {
            *c = 0;
            if (pen__file_exists(path, NULL) == 0)
                r = pen__dir_make(path, reterr);
            *c = '/';
        }
    return r;
}

int pen__home_make(const char *out, const char *home, PenError *reterr)
{
    int r = PEN_OK;
    if (pen_is_remote(out)) {
        char *path = pen__strdup(home);
        r = path ? make_above(path, reterr) : pen__fail_memory(reterr, WHERE, home);
        pen__free(path);
    }
    return r < 0 ? r : pen__work_make(home, reterr);
}

static int is_same(const PenLock *lock, const char *home)
{
    PenFileStat locked, there;
    return pen__sys->stat_fd(lock->fd, &locked) == 0 && pen__sys->stat_path(home, &there) == 0 &&
           locked.inode == there.inode;
}

int pen__home_lock(const char *out, const char *home, int exclusive, PenLock *ret, PenError *reterr)
{
    int r = pen__home_make(out, home, reterr);
    if (r == PEN_OK)
        r = pen__dir_lock(home, exclusive, ret, reterr);
    if (r == PEN_OK && is_same(ret, home))
        r = pen__home_make(out, home, reterr); /* .work in it, which may be gone as well */
    else if (r == PEN_OK || r == PEN_E_NOT_FOUND)
        r = pen__fail(reterr, PEN_E_BUSY, WHERE,
                      "%s: another process removed this directory; run the same command again",
                      home);
    if (r < 0)
        pen__dir_unlock(ret);
    return r;
}

static void leave_part(const char *top, const char *name)
{
    PenLock lock = PEN_LOCK_NONE;
    char *home = pen__path_join(top, name);
    if (home && pen__dir_lock(home, 1, &lock, NULL) == PEN_OK)
        pen__home_leave(home);
    pen__dir_unlock(&lock);
    pen__free(home);
}

static int is_part(const char *name)
{
    uint32_t task, n_tasks;
    return strcmp(name, "plan") == 0 || strcmp(name, "finalise") == 0 ||
           pen__work_task(name, &task, &n_tasks);
}

void pen__home_leave_parts(const char *out, const char *work)
{
    PenNames names = {0};
    char *all = NULL;
    if (pen__home_find_part(out, work, "", &all, NULL) < 0)
        return;
    /* "DIR/" of --work; else "CACHE/0123456789abcdef-", which the names begin with. */
    char *slash = strrchr(all, '/');
    size_t n = slash ? strlen(slash + 1) : 0;
    char *prefix = slash ? pen__strdup(slash + 1) : NULL;
    if (slash)
        *slash = 0;
    if (prefix && pen__dir_list(all, &names, NULL) == PEN_OK)
        for (uint64_t i = 0; i < names.n; i++)
            if (strncmp(names.names[i], prefix, n) == 0 && is_part(names.names[i] + n))
                leave_part(all, names.names[i]);
    pen__names_free(&names);
    pen__free(prefix);
    pen__free(all);
}

void pen__home_leave(const char *home)
{
    pen__work_remove(home, NULL, NULL, NULL);
    pen__dir_remove(home, NULL); /* only when it is empty */
}
