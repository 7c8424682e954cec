/* SPDX-License-Identifier: Apache-2.0 */
#include "cache/share.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"

#define WHERE "cache/share"
#define CLAIMS "claims"

enum {
    TRUSTED_MOST = 256,
    UNKNOWN_USER = 65534, /* in a user namespace, files of all users that it does not have */
    OTHERS_WRITE = 022,
    STICKY_SETGID = 03000,
    USER_NAME = 24,
    PATH_MOST = 4096
};

struct PenCacheShare {
    int dir;    /* DIR */
    int claims; /* of ours; -1: there is none */
    uint32_t n_trusted;
    uint32_t trusted[]; /* without us */
};
typedef PenCacheShare Share;

static void user_name(uint32_t uid, char ret[USER_NAME])
{
    snprintf(ret, USER_NAME, "user-%" PRIu32, uid);
}

/* ---- only what belongs to one user ----------------------------------------------------------- */

/* What is open is what is checked: nobody can change it for something else in between. */
static int check_owner(int fd, uint32_t uid, bool is_dir, PenFileStat *ret)
{
    int r = pen__sys->stat_fd(fd, ret);
    if (r < 0)
        return r;
    bool is_right = is_dir ? ret->is_dir : ret->is_file;
    return is_right && ret->uid == uid && !(ret->mode & OTHERS_WRITE) ? 0 : -EPERM;
}

static int open_checked(int dir, const char *name, int how, uint32_t uid, PenFileStat *ret)
{
    int fd = pen__sys->open_at(dir, name, how);
    if (fd < 0)
        return fd == -ELOOP || fd == -ENOTDIR || fd == -ENXIO ? -EPERM : fd;
    int r = check_owner(fd, uid, how == PEN_OPEN_PATH_DIR, ret);
    if (r == 0)
        return fd;
    (void)pen__sys->close(fd);
    return r;
}

/* The file behind these names, each in the one before, below the directory of a user. */
static int open_below(const Share *s, uint32_t uid, const char *const *names, unsigned n,
                      PenFileStat *ret)
{
    char user[USER_NAME];
    user_name(uid, user);
    int dir = open_checked(s->dir, user, PEN_OPEN_PATH_DIR, uid, ret);
    for (unsigned i = 0; i < n && dir >= 0; i++) {
        int next =
            open_checked(dir, names[i], i + 1 < n ? PEN_OPEN_PATH_DIR : PEN_OPEN_PLAIN, uid, ret);
        (void)pen__sys->close(dir);
        dir = next;
    }
    return dir;
}

int pen__share_open_to_group(const char *path)
{
    PenFileStat st;
    int fd = pen__sys->open(path, PEN_OPEN_INNER_DIR);
    if (fd < 0)
        return fd == -ELOOP ? -ENOTDIR : fd;
    int r = pen__sys->stat_fd(fd, &st);
    if (r == 0 && st.uid != geteuid())
        r = -ENOTDIR;
    if (r == 0 && (st.mode & 0777) != (PEN_SHARE_DIR & 0777))
        r = pen__sys->set_mode(fd, PEN_SHARE_DIR);
    (void)pen__sys->close(fd);
    return r;
}

/* ---- opening --------------------------------------------------------------------------------- */

static bool is_trusted(const Share *s, uint32_t uid)
{
    for (uint32_t i = 0; i < s->n_trusted; i++)
        if (s->trusted[i] == uid)
            return true;
    return uid == geteuid();
}

/* The rest is safe only if nobody can put another directory in the place of ours. */
static int check_dir(const Share *s, const char *dir, PenError *reterr)
{
    PenFileStat st;
    int r = pen__sys->stat_fd(s->dir, &st);
    if (r < 0)
        return pen__fail_os(reterr, -r, WHERE, "%s: cannot use as a shared cache", dir);
    if (st.mode & 0002)
        return pen__fail(reterr, PEN_E_ACCESS, WHERE,
                         "%s: cannot use as a shared cache: every user may write to it (mode "
                         "%04o). Run 'chmod 3770' on it",
                         dir, st.mode);
    if (st.mode & 0020 && (st.mode & STICKY_SETGID) != STICKY_SETGID)
        return pen__fail(
            reterr, PEN_E_ACCESS, WHERE,
            "%s: cannot use as a shared cache: expected the setgid and the sticky bit, "
            "found mode %04o. Run 'chmod 3770' on it",
            dir, st.mode);
    if (st.uid != 0 && !is_trusted(s, st.uid))
        return pen__fail(reterr, PEN_E_ACCESS, WHERE,
                         "%s: cannot use as a shared cache: it belongs to user %u, who is not "
                         "trusted. It must belong to root, to you or to a trusted user",
                         dir, st.uid);
    return PEN_OK;
}

static int open_dir(Share *s, const char *dir, PenError *reterr)
{
    int fd = pen__sys->open(dir, PEN_OPEN_DIR);
    if (fd == -ENOENT)
        return pen__fail(reterr, PEN_E_NOT_FOUND, WHERE,
                         "%s: does not exist. Create the directory of a shared cache with 'install "
                         "-d -m 3770 -g GROUP'",
                         dir);
    if (fd < 0)
        return pen__fail_os(reterr, -fd, WHERE, "%s: cannot use as a shared cache", dir);
    s->dir = fd;
    return check_dir(s, dir, reterr);
}

static int make_own(const char *dir, char **ret, PenError *reterr)
{
    char name[USER_NAME];
    size_t cap = strlen(dir) + 1 + USER_NAME;
    char *own = pen__alloc(cap);
    if (!own)
        return pen__fail_memory(reterr, WHERE, dir);
    user_name(geteuid(), name);
    snprintf(own, cap, "%s/%s", dir, name);
    int r = pen__sys->mkdir_own(own);
    if (r == 0 || r == -EEXIST)
        r = pen__share_open_to_group(own);
    if (r == 0) {
        *ret = own;
        return PEN_OK;
    }
    r = r == -ENOTDIR
            ? pen__fail(reterr, PEN_E_ACCESS, WHERE,
                        "%s: expected a directory that belongs to this user. Ask the "
                        "administrator to remove it",
                        own)
            : pen__fail_os(reterr, -r, WHERE, "%s: cannot create the cache of this user", own);
    pen__free(own);
    return r;
}

static int check_settings(const PenCacheSettings *settings, PenError *reterr)
{
    if (settings->n_trusted > TRUSTED_MOST)
        return pen__fail(reterr, PEN_E_INVALID, WHERE,
                         "trusted: expected at most %d users, found %" PRIu32, (int)TRUSTED_MOST,
                         settings->n_trusted);
    bool is_unknown = geteuid() == UNKNOWN_USER;
    for (uint32_t i = 0; i < settings->n_trusted; i++)
        is_unknown |= settings->trusted[i] == UNKNOWN_USER;
    if (is_unknown)
        return pen__fail(reterr, PEN_E_INVALID, WHERE,
                         "trusted: user %d (nobody) cannot share a cache: in a container, files of "
                         "many users seem to belong to it",
                         (int)UNKNOWN_USER);
    return settings->directory && *settings->directory
               ? PEN_OK
               : pen__fail(reterr, PEN_E_INVALID, WHERE, "cache: expected a directory");
}

void pen__share_begin(Share *s, const char *own)
{
    char path[PATH_MOST];
    PenFileStat st;
    snprintf(path, sizeof path, "%s/" CLAIMS, own);
    int fd = pen__sys->open(path, PEN_OPEN_NEW);
    if (fd == -EEXIST)
        fd = pen__sys->open(path, PEN_OPEN_UPDATE);
    if (fd < 0)
        return;
    int r = check_owner(fd, geteuid(), false, &st);
    if (r == 0 && (st.mode & 0777) != PEN_SHARE_FILE)
        r = pen__sys->set_mode(fd, PEN_SHARE_FILE);
    if (r == 0)
        s->claims = fd;
    else
        (void)pen__sys->close(fd);
}

int pen__share_open(const PenCacheSettings *settings, Share **ret, char **ret_own, PenError *reterr)
{
    int r = check_settings(settings, reterr);
    if (r < 0)
        return r;
    Share *s = pen__zalloc(sizeof *s + settings->n_trusted * sizeof *s->trusted);
    if (!s)
        return pen__fail_memory(reterr, WHERE, settings->directory);
    s->dir = s->claims = -1;
    for (uint32_t i = 0; i < settings->n_trusted; i++)
        if (!is_trusted(s, settings->trusted[i]))
            s->trusted[s->n_trusted++] = settings->trusted[i];
    r = open_dir(s, settings->directory, reterr);
    if (r == PEN_OK)
        r = make_own(settings->directory, ret_own, reterr);
    if (r < 0) {
        pen__share_close(&s);
        return r;
    }
    *ret = s;
    return PEN_OK;
}

void pen__share_close(Share **share)
{
    Share *s = *share;
    *share = NULL;
    if (!s)
        return;
    if (s->dir >= 0)
        (void)pen__sys->close(s->dir);
    if (s->claims >= 0)
        (void)pen__sys->close(s->claims);
    pen__free(s);
}

/* ---- entries and claims ---------------------------------------------------------------------- */

int pen__share_find(const Share *s, uint32_t user, const char *const names[3], PenFileStat *ret)
{
    if (user > s->n_trusted)
        return -ERANGE;
    return open_below(s, user ? s->trusted[user - 1] : geteuid(), names, 3, ret);
}

static bool has_claim(const Share *s, uint32_t uid, uint64_t range)
{
    static const char *const names[] = {CLAIMS};
    PenFileStat st;
    int fd = open_below(s, uid, names, 1, &st);
    if (fd < 0)
        return false;
    bool found = pen__sys->lock_byte(fd, PEN_RANGE_ASK, range) == -EAGAIN;
    (void)pen__sys->close(fd);
    return found;
}

/* Does one of those below `limit` have it? */
static bool is_claimed(const Share *s, uint64_t limit, uint64_t range)
{
    for (uint32_t i = 0; i < s->n_trusted; i++)
        if (s->trusted[i] < limit && has_claim(s, s->trusted[i], range))
            return true;
    return false;
}

/* Nobody can lock what others hold, so each shows what it has, and looks once more. Of two who show
 * it at once, the user with the higher number waits. A third who holds a lock on our file, for
 * which the right to read is enough, keeps us from showing it, and not from having it. */
int pen__share_claim(Share *s, uint64_t range)
{
    if (is_claimed(s, UINT64_MAX, range))
        return 0;
    if (s->claims >= 0)
        (void)pen__sys->lock_byte(s->claims, PEN_RANGE_ALONE, range);
    if (!is_claimed(s, geteuid(), range))
        return 1;
    pen__share_release(s, range);
    return 0;
}

void pen__share_release(Share *s, uint64_t range)
{
    if (s->claims >= 0)
        (void)pen__sys->lock_byte(s->claims, PEN_RANGE_FREE, range);
}
