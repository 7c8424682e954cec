/* SPDX-License-Identifier: Apache-2.0 */
#include "io/outside.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <string.h>

#include "base/sha256.h"
#include "base/sys.h"
#include "net/address/address.h"

#define WHERE "io/outside"

enum { OPEN_FILES = 64, MOST_HELPERS = 128, PATH_CAP = PEN_OUTSIDE_PATH_BYTES };

typedef struct OpenFile {
    uint64_t owner, used; /* used: the time of its last use, by a counter */
    uint32_t number;
    uint32_t refs;
    PenSource *source; /* NULL: free */
} OpenFile;

/* Paths that begin with `from` are opened below `to`. */
typedef struct Root {
    char *from, *to;
    int fd; /* of `to`, as it was when it was named */
} Root;

struct PenOutside {
    char *pack;
    /* The directory that holds the pack, as it was when the pack was opened: whoever puts another
     * directory or a link in its place later moves nothing. */
    char dir[PATH_CAP]; /* for messages, and to compare with what the user names */
    int dir_fd;
    Root *roots;
    uint32_t n_roots;
    PenObjects *objects;
    PenHelpers helpers;    /* of reads of several objects */
    pthread_mutex_t mutex; /* of all below */
    OpenFile files[OPEN_FILES];
    uint64_t owners, clock;
};

/* ---- paths ----------------------------------------------------------------------------------- */

static int fail_long(const char *path, PenError *reterr)
{
    return pen__fail(reterr, PEN_E_LIMIT, WHERE, "%.300s: expected a path of at most %d bytes",
                     path, PATH_CAP - 1);
}

static int real_path(const char *path, char ret[PATH_CAP], PenError *reterr)
{
    int n = pen__sys->real_path(path, ret, PATH_CAP);
    if (n >= 0)
        return PEN_OK;
    return n == -ERANGE ? fail_long(path, reterr)
                        : pen__fail_os(reterr, -n, WHERE, "%.300s: cannot open", path);
}

/* Where the directory ends that holds what has this real path: "/" has itself. */
static char *last_slash(char *path)
{
    char *slash = strrchr(path, '/');
    return slash + (slash == path);
}

/* The prefix that holds a pack in a store; "": it is all of a bucket or server. */
static int holding_prefix(const char *pack, char ret[PATH_CAP], PenError *reterr)
{
    size_t n = strlen(pack);
    const char *name = strstr(pack, "://") + 3;
    while (n && pack[n - 1] == '/')
        n--;
    while (n && pack[n - 1] != '/')
        n--;
    if (n >= PATH_CAP)
        return fail_long(pack, reterr);
    n = pack + n > name ? n - 1 : 0;
    memcpy(ret, pack, n);
    ret[n] = 0;
    return PEN_OK;
}

int pen__outside_name(const char *pack, const char *path, char ret[PEN_OUTSIDE_PATH_BYTES],
                      PenFileStat *ret_stat, PenError *reterr)
{
    char dir[PATH_CAP];
    int r = real_path(pack, dir, reterr);
    if (r == PEN_OK)
        r = real_path(path, ret, reterr);
    if (r < 0)
        return r;
    *last_slash(dir) = 0;
    int s = pen__sys->stat_path(ret, ret_stat);
    if (s < 0)
        return pen__fail_os(reterr, -s, WHERE, "%.300s: cannot stat", ret);
    const char *rest = pen__outside_below(dir, ret);
    if (rest)
        memmove(ret, rest, strlen(rest) + 1);
    return PEN_OK;
}

/* ---- where files may be ---------------------------------------------------------------------- */

static void close_fd(int fd)
{
    if (fd >= 0)
        pen__sys->close(fd);
}

static int load_mark(int fd, const char *name, uint64_t bytes, PenBuf *ret, PenError *reterr)
{
    PenSource *source = NULL;
    PenFileStat st;
    int e = pen__sys->stat_fd(fd, &st);
    if (e < 0 || !st.is_file || st.bytes != bytes) {
        pen__sys->close(fd);
        return e < 0 ? pen__fail_os(reterr, -e, WHERE, "%s: cannot stat", name) : PEN_E_CHANGED;
    }
    int r = pen__source_open_fd(fd, name, bytes, &source, reterr);
    if (r == PEN_OK && pen__buf_reserve(ret, (size_t)bytes) < 0)
        r = pen__fail_memory(reterr, WHERE, name);
    if (r == PEN_OK)
        r = pen__source_read(source, ret->data, (size_t)bytes, 0, reterr);
    pen__source_close(&source);
    return r;
}

/* Is the directory the one that the pack was read from? */
static int check_mark(int pack_fd, const char *pack, const PenOutsideMark *mark, PenError *reterr)
{
    PenBuf data = {0};
    uint8_t hash[32];
    int fd = pen__sys->open_at(pack_fd, mark->name, PEN_OPEN_READ);
    if (fd < 0 && fd != -ENOENT)
        return pen__fail_os(reterr, -fd, WHERE, "%.300s: cannot open %s", pack, mark->name);
    int r = fd < 0 ? PEN_E_CHANGED : load_mark(fd, mark->name, mark->bytes, &data, reterr);
    if (r == PEN_OK) {
        pen__sha256(data.data, (size_t)mark->bytes, hash);
        r = memcmp(hash, mark->id, sizeof mark->id) == 0 ? PEN_OK : PEN_E_CHANGED;
    }
    pen__buf_free(&data);
    return r == PEN_E_CHANGED
               ? pen__fail(reterr, r, WHERE, "%s: has changed while it was opened; open it again",
                           pack)
               : r;
}

/* By "..", which no link leads elsewhere. */
static int open_holding_dir(PenOutside *o, const PenOutsideMark *mark, PenError *reterr)
{
    char real[PATH_CAP];
    int r = real_path(o->pack, real, reterr);
    if (r < 0)
        return r;
    int fd = pen__sys->open(real, PEN_OPEN_PATH_DIR);
    if (fd < 0)
        return pen__fail_os(reterr, -fd, WHERE, "%.300s: cannot open", real);
    o->dir_fd = pen__sys->open_at(fd, "..", PEN_OPEN_PATH_DIR);
    if (o->dir_fd < 0)
        r = pen__fail_os(reterr, -o->dir_fd, WHERE, "%.300s: cannot open the directory that has it",
                         real);
    else if (mark)
        r = check_mark(fd, o->pack, mark, reterr);
    pen__sys->close(fd);
    memcpy(o->dir, real, strlen(real) + 1);
    *last_slash(o->dir) = 0;
    return r;
}

int pen__outside_new(const char *pack, const PenOutsideMark *mark, PenOutside **ret,
                     PenError *reterr)
{
    PenOutside *o = pen__zalloc(sizeof *o);
    char *copy = pen__strdup(pack);
    if (!o || !copy || pen__helpers_init(&o->helpers, MOST_HELPERS, NULL) < 0) {
        pen__free(o);
        pen__free(copy);
        return pen__fail_memory(reterr, WHERE, pack);
    }
    o->pack = copy;
    o->dir_fd = -1;
    pthread_mutex_init(&o->mutex, NULL);
    int r = pen__address_is_remote(pack) ? holding_prefix(pack, o->dir, reterr)
                                         : open_holding_dir(o, mark, reterr);
    if (r == PEN_OK)
        r = pen__objects_new(pack, o->dir, &o->objects, reterr);
    if (r < 0)
        pen__outside_close(&o);
    else
        *ret = o;
    return r;
}

int pen__outside_open_home(PenOutside *o, PenRemote *of, PenError *reterr)
{
    return pen__objects_open_home(o->objects, of, reterr);
}

static void free_roots(PenOutside *o)
{
    for (uint32_t i = 0; i < o->n_roots; i++) {
        close_fd(o->roots[i].fd);
        pen__free(o->roots[i].from);
        pen__free(o->roots[i].to);
    }
    pen__free(o->roots);
    o->roots = NULL;
    o->n_roots = 0;
}

static int fail_no_path(const PenOutside *o, PenError *reterr)
{
    return pen__fail(reterr, PEN_E_INVALID, WHERE,
                     "%s: directories of files: expected a path, found none", o->pack);
}

/* `to` has no links. */
static int add_root(PenOutside *o, const char *from, const char *to, PenError *reterr)
{
    Root root = {pen__strdup(from), pen__strdup(to), -1};
    int r = PEN_OK;
    if (!root.from || !root.to)
        r = pen__fail_memory(reterr, WHERE, o->pack);
    else if ((root.fd = pen__sys->open(to, PEN_OPEN_PATH_DIR)) < 0)
        r = pen__fail_os(reterr, -root.fd, WHERE, "%.300s: cannot open the directory", to);
    if (r < 0) {
        pen__free(root.from);
        pen__free(root.to);
        return r;
    }
    o->roots[o->n_roots++] = root;
    return PEN_OK;
}

static int add_moved(PenOutside *o, const char *from, const char *to, PenError *reterr)
{
    char real[PATH_CAP];
    if (!from || from[0] == 0 || !to || to[0] == 0)
        return fail_no_path(o, reterr);
    int r = real_path(to, real, reterr);
    return r < 0 ? r : add_root(o, from, real, reterr);
}

/* Paths in packs are real, so a root that is a link also stands for where it leads. */
static int add_given_root(PenOutside *o, const char *root, PenError *reterr)
{
    char real[PATH_CAP];
    if (!root || root[0] == 0)
        return fail_no_path(o, reterr);
    int r = real_path(root, real, reterr);
    if (r == PEN_OK)
        r = add_root(o, real, real, reterr);
    if (r == PEN_OK && root[0] == '/' && strcmp(root, real) != 0)
        r = add_root(o, root, real, reterr);
    return r;
}

static bool is_prefix(const char *root)
{
    return root && pen__address_is_remote(root);
}

int pen__outside_set(PenOutside *o, const PenFileSettings *s, PenError *reterr)
{
    uint64_t n = 2ull * s->n_roots + s->n_moved;
    free_roots(o);
    o->roots = pen__alloc_array(PEN_MAX(n, 1u), sizeof *o->roots);
    if (!o->roots)
        return pen__fail_memory(reterr, WHERE, o->pack);
    int r = PEN_OK;
    for (uint32_t i = 0; i < s->n_moved && r == PEN_OK; i++)
        if (!is_prefix(s->moved_to[i]))
            r = add_moved(o, s->moved_from[i], s->moved_to[i], reterr);
        else if (!s->moved_from[i] || !s->moved_from[i][0]) /* every absolute path is below "" */
            r = fail_no_path(o, reterr);
    for (uint32_t i = 0; i < s->n_roots && r == PEN_OK; i++)
        if (!is_prefix(s->roots[i]))
            r = add_given_root(o, s->roots[i], reterr);
    return r < 0 ? r : pen__objects_set(o->objects, s, reterr);
}

/* ---- opening --------------------------------------------------------------------------------- */

enum { FULL_CAP = 2 * PATH_CAP }; /* a directory and what is below it */

/* A path of the pack, and where it is. */
typedef struct Place {
    char path[FULL_CAP];  /* as the pack has it, or what of it is below the directory */
    int dir_fd;           /* of the directory that the user has named, or that holds the pack */
    char shown[FULL_CAP]; /* both, for messages */
} Place;

static int set_place(Place *p, const char *dir, int dir_fd, const char *rest, PenError *reterr)
{
    size_t n = strlen(dir), m = strlen(rest);
    if (n + m + 2 > sizeof p->shown)
        return fail_long(dir, reterr);
    while (n && dir[n - 1] == '/')
        n--;
    memcpy(p->shown, dir, n);
    p->shown[n] = '/';
    memcpy(p->shown + n + 1, rest, m + 1);
    memmove(p->path, rest, m + 1);
    p->dir_fd = dir_fd;
    return PEN_OK;
}

/* 1: below a directory that the user has named. */
static int find_root(const PenOutside *o, Place *p, const char *path, PenError *reterr)
{
    for (uint32_t i = 0; i < o->n_roots; i++) {
        const Root *root = &o->roots[i];
        const char *rest = pen__outside_below(root->from, path);
        if (!rest || !*rest)
            continue;
        int r = set_place(p, root->to, root->fd, rest, reterr);
        return r < 0 ? r : 1;
    }
    return 0;
}

/* It may be anybody's object, and requests may carry the user's credentials. */
static int refuse_object(const PenOutside *o, const char *address, PenError *reterr)
{
    int prefix = (int)PEN_MIN((size_t)(strrchr(address, '/') - address), 140u);
    return pen__fail(reterr, PEN_E_INVALID, WHERE,
                     "%.100s: refers to %.140s, which is below no root; if this is one of your "
                     "objects, pass its prefix with --root, in Python open(..., roots=[\"%.*s\"])",
                     o->pack, address, prefix, address);
}

static int locate(const PenOutside *o, const PenOutsideFile *file, Place *p, PenError *reterr)
{
    if (!pen__outside_path_ok(file->path, file->path_bytes))
        return pen__fail(reterr, PEN_E_CORRUPT, WHERE,
                         "%s: refers to a file by a path that is not valid", o->pack);
    memcpy(p->path, file->path, file->path_bytes);
    p->path[file->path_bytes] = 0;
    int r = find_root(o, p, p->path, reterr);
    if (r)
        return r < 0 ? r : PEN_OK;
    if (pen__outside_is_address(p->path, file->path_bytes))
        return refuse_object(o, p->path, reterr);
    const char *dir = o->dir;
    char full[FULL_CAP];
    if (p->path[0] == '/' || dir[0] != '/')
        return pen__fail(reterr, PEN_E_INVALID, WHERE,
                         "%s: refers to %.300s, which is not below %.300s; if this is one of your "
                         "files, allow its directory: --root DIR, in Python open(..., roots=[DIR])",
                         o->pack, p->path, dir);
    size_t n = strlen(dir);
    memcpy(full, dir, n);
    full[n] = '/';
    n += dir[1] != 0; /* that of "/" has its slash */
    memcpy(full + n, p->path, (size_t)file->path_bytes + 1);
    r = find_root(o, p, full, reterr); /* moved from where it was beside the pack */
    return r < 0 ? r : r ? PEN_OK : set_place(p, dir, o->dir_fd, p->path, reterr);
}

static int fail_open(const PenOutside *o, const Place *p, int e, PenError *reterr)
{
    if (e == ENOENT)
        return pen__fail(reterr, PEN_E_CORRUPT, WHERE,
                         "%.400s: no such file; '%.300s' refers to it. If it was moved, pass "
                         "--relocate OLD=NEW, in Python relocate={OLD: NEW}",
                         p->shown, o->pack);
    if (e == ENOTDIR || e == ELOOP)
        return pen__fail(reterr, PEN_E_CORRUPT, WHERE,
                         "%.400s: expected a file, found a symbolic link or a file in place of a "
                         "directory; links are not followed",
                         p->shown);
    return pen__fail_os(reterr, e, WHERE, "%.400s: cannot open", p->shown);
}

/* Part by part, from the directory on: fd or -errno. */
static int open_below(const Place *p)
{
    char rest[FULL_CAP];
    memcpy(rest, p->path, strlen(p->path) + 1);
    for (int dir = p->dir_fd;;) {
        char *slash = strchr(rest, '/');
        if (slash)
            *slash = 0;
        int fd = pen__sys->open_at(dir, rest, slash ? PEN_OPEN_PATH_DIR : PEN_OPEN_PLAIN);
        if (dir != p->dir_fd)
            pen__sys->close(dir);
        if (fd < 0 || !slash)
            return fd;
        memmove(rest, slash + 1, strlen(slash + 1) + 1);
        dir = fd;
    }
}

/* Closes the file that was used least recently, of those that are not in use; false: there is none.
 */
static bool close_idle(PenOutside *o)
{
    PenSource *source = NULL;
    OpenFile *idle = NULL;
    pthread_mutex_lock(&o->mutex);
    for (OpenFile *f = o->files; f < o->files + OPEN_FILES; f++)
        if (f->source && !f->refs && (!idle || f->used < idle->used))
            idle = f;
    if (idle) {
        source = idle->source;
        idle->source = NULL;
    }
    pthread_mutex_unlock(&o->mutex);
    pen__source_close(&source);
    return idle != NULL;
}

/* At the limit of the process, files that are not in use are closed for this one. */
static int open_place(PenOutside *o, const Place *p, PenError *reterr)
{
    int fd = open_below(p);
    for (int i = 0; i < OPEN_FILES && (fd == -EMFILE || fd == -ENFILE) && close_idle(o); i++)
        fd = open_below(p);
    return fd < 0 ? fail_open(o, p, -fd, reterr) : fd;
}

static int check_file(const PenOutside *o, const PenOutsideFile *file, const Place *p, int fd,
                      PenFileStat *ret, PenError *reterr)
{
    int r = pen__sys->stat_fd(fd, ret);
    if (r < 0)
        return pen__fail_os(reterr, -r, WHERE, "%.400s: cannot stat", p->shown);
    if (!ret->is_file)
        return pen__fail(reterr, PEN_E_CORRUPT, WHERE, "%.400s: expected a file, found %s",
                         p->shown, ret->what);
    if (ret->bytes != file->bytes)
        return pen__fail(reterr, PEN_E_CORRUPT, WHERE,
                         "%.400s: expected %" PRIu64 " bytes, found %" PRIu64
                         ": the file has changed since '%.300s' was made; run 'penstock index' "
                         "again",
                         p->shown, file->bytes, ret->bytes, o->pack);
    return PEN_OK;
}

/* The file's descriptor. */
static int open_checked(PenOutside *o, const PenOutsideFile *file, Place *p, PenFileStat *ret,
                        PenError *reterr)
{
    int r = locate(o, file, p, reterr);
    if (r == PEN_OK && pen__outside_is_address(file->path, file->path_bytes) &&
        file->path[0] == 'h') /* a URL that has moved to a directory */
        r = pen__outside_decode(o->pack, p->path, p->path, sizeof p->path, reterr);
    if (r < 0)
        return r;
    int fd = open_place(o, p, reterr);
    if (fd < 0)
        return fd;
    r = check_file(o, file, p, fd, ret, reterr);
    if (r < 0) {
        pen__sys->close(fd);
        return r;
    }
    return fd;
}

static int open_file(PenOutside *o, const PenOutsideFile *file, PenSource **ret, PenError *reterr)
{
    Place p;
    PenFileStat st;
    int fd = open_checked(o, file, &p, &st, reterr);
    return fd < 0 ? fd : pen__source_open_fd(fd, p.shown, file->bytes, ret, reterr);
}

int pen__outside_stat(PenOutside *o, const PenOutsideFile *file, PenFileStat *ret, PenError *reterr)
{
    Place p;
    int r = pen__objects_failure(o->objects, file, reterr);
    *ret = (PenFileStat){0};
    if (r != 1)
        return r;
    int fd = open_checked(o, file, &p, ret, reterr);
    close_fd(fd);
    return PEN_MIN(fd, PEN_OK);
}

/* ---- files in use ---------------------------------------------------------------------------- */

/* The slot at which the search for a file begins: it is usually the right one. */
static uint32_t first_slot(const PenOutsideFile *file)
{
    return (uint32_t)((file->owner * 7 + file->number) % OPEN_FILES);
}

/* With the lock: the slot of the file; -1: it is not open. */
static int find_open(const PenOutside *o, const PenOutsideFile *file)
{
    uint32_t first = first_slot(file);
    for (uint32_t i = 0; i < OPEN_FILES; i++) {
        const OpenFile *f = &o->files[(first + i) % OPEN_FILES];
        if (f->source && f->owner == file->owner && f->number == file->number)
            return (int)((first + i) % OPEN_FILES);
    }
    return -1;
}

/* With the lock: a slot that is free, or whose file was used least recently; -1: all are in use. */
static int find_slot(const PenOutside *o, const PenOutsideFile *file)
{
    uint32_t first = first_slot(file);
    int best = -1;
    for (uint32_t i = 0; i < OPEN_FILES; i++) {
        int slot = (int)((first + i) % OPEN_FILES);
        const OpenFile *f = &o->files[slot];
        if (!f->source)
            return slot;
        if (!f->refs && (best < 0 || f->used < o->files[best].used))
            best = slot;
    }
    return best;
}

/* False: it is not open. */
static bool take_open(PenOutside *o, const PenOutsideFile *file, PenOutsideUse *ret)
{
    pthread_mutex_lock(&o->mutex);
    int slot = find_open(o, file);
    if (slot >= 0) {
        OpenFile *f = &o->files[slot];
        f->refs++;
        f->used = ++o->clock;
        *ret = (PenOutsideUse){f->source, slot};
    }
    pthread_mutex_unlock(&o->mutex);
    return slot >= 0;
}

static int take_fresh(PenOutside *o, const PenOutsideFile *file, PenOutsideUse *ret,
                      PenError *reterr)
{
    PenSource *source = NULL, *old = NULL;
    int r = open_file(o, file, &source, reterr);
    if (r < 0)
        return r;
    pthread_mutex_lock(&o->mutex);
    int slot = find_slot(o, file);
    if (slot >= 0) {
        old = o->files[slot].source;
        o->files[slot] = (OpenFile){file->owner, ++o->clock, file->number, 1, source};
    }
    pthread_mutex_unlock(&o->mutex);
    pen__source_close(&old);
    *ret = (PenOutsideUse){source, slot};
    return PEN_OK;
}

int pen__outside_take(PenOutside *o, const PenOutsideFile *file, PenOutsideUse *ret,
                      PenError *reterr)
{
    return take_open(o, file, ret) ? PEN_OK : take_fresh(o, file, ret, reterr);
}

void pen__outside_put(PenOutside *o, PenOutsideUse *use)
{
    if (use->slot < 0) {
        pen__source_close(&use->source);
        return;
    }
    pthread_mutex_lock(&o->mutex);
    o->files[use->slot].refs--;
    pthread_mutex_unlock(&o->mutex);
}

int pen__outside_read(PenOutside *o, const PenOutsideFile *file, const struct iovec *v, int n,
                      uint64_t offset, const PenArrival *arrival, PenError *reterr)
{
    PenOutsideUse use;
    int r = PEN_OK;
    /* What is open is no object: to look for its place again would take longer than the lock. */
    if (!take_open(o, file, &use)) {
        r = pen__objects_read(o->objects, file, v, n, offset, arrival, reterr);
        if (r != 1)
            return r;
        r = take_fresh(o, file, &use, reterr);
    }
    if (r < 0)
        return r;
    r = pen__source_read_v(use.source, v, n, offset, arrival, reterr);
    pen__outside_put(o, &use);
    return r;
}

PenRemote *pen__outside_place(const PenOutside *o)
{
    return pen__objects_place(o->objects);
}

void pen__outside_stop(const PenOutside *o, int stop)
{
    pen__objects_stop(o->objects, stop);
}

void pen__outside_count(const PenOutside *o, PenPolicyCounts *counts)
{
    pen__objects_count(o->objects, counts);
}

PenHelpers *pen__outside_helpers(PenOutside *o)
{
    return &o->helpers;
}

uint64_t pen__outside_owner(PenOutside *o)
{
    pthread_mutex_lock(&o->mutex);
    uint64_t owner = ++o->owners;
    pthread_mutex_unlock(&o->mutex);
    return owner;
}

void pen__outside_forget(PenOutside *o, uint64_t owner)
{
    PenSource *closed[OPEN_FILES];
    int n = 0;
    pthread_mutex_lock(&o->mutex);
    for (int i = 0; i < OPEN_FILES; i++)
        if (o->files[i].source && o->files[i].owner == owner) {
            closed[n++] = o->files[i].source;
            o->files[i].source = NULL;
        }
    pthread_mutex_unlock(&o->mutex);
    while (n)
        pen__source_close(&closed[--n]);
    pen__objects_forget(o->objects, owner);
}

void pen__outside_close(PenOutside **outside)
{
    if (!outside || !*outside)
        return;
    PenOutside *o = *outside;
    *outside = NULL;
    for (int i = 0; i < OPEN_FILES; i++)
        pen__source_close(&o->files[i].source);
    pthread_mutex_destroy(&o->mutex);
    pen__helpers_fini(&o->helpers);
    pen__objects_close(&o->objects);
    free_roots(o);
    close_fd(o->dir_fd);
    pen__free(o->pack);
    pen__free(o);
}
