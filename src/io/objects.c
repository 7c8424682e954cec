/* SPDX-License-Identifier: Apache-2.0 */
#include "io/objects.h"

#include <pthread.h>
#include <string.h>

#include "base/attr.h"
#include "io/remote_source.h"
#include "net/address/address.h"
#include "net/address/uri.h"

#define WHERE "io/objects"

enum { PATH_CAP = PEN_OUTSIDE_PATH_BYTES, FULL_CAP = 2 * PATH_CAP, CELLS = 1024 };

/* Paths that begin with `from` lie in a place. */
typedef struct Rule {
    char *from;
    PenRemote *remote; /* NULL: in a directory */
} Rule;

/* An object that was read, with the ETag that was seen first. */
typedef struct Cell {
    uint64_t owner;
    uint32_t number, refs;
    PenSource *source; /* NULL: free */
    char *failure;     /* of the last read; NULL: none */
} Cell;

struct PenObjects {
    char *pack, *dir;
    PenRemote *home; /* of dir; NULL: it is a directory, or not open */
    Rule *rules;
    uint32_t n_rules;
    pthread_mutex_t mutex; /* of all below */
    Cell cells[CELLS];     /* by owner and number; one that is needed takes the place of another */
};

/* ---- paths ----------------------------------------------------------------------------------- */

/* The bytes of the scheme that it begins with; 0: it is a path. */
static size_t scheme_bytes(const char *path, size_t bytes)
{
    static const char *const schemes[] = {"s3://", "https://", "http://"};
    for (size_t i = 0; i < PEN_LEN(schemes); i++) {
        size_t n = strlen(schemes[i]);
        if (bytes >= n && memcmp(path, schemes[i], n) == 0)
            return n;
    }
    return 0;
}

bool pen__outside_is_address(const char *path, size_t bytes)
{
    return scheme_bytes(path, bytes) != 0;
}

/* What follows the scheme. Whether an object can be requested by it is seen when it is read. */
static bool address_ok(const char *rest, size_t bytes)
{
    const char *slash = memchr(rest, '/', bytes);
    if (!slash || memchr(rest, '@', (size_t)(slash - rest)))
        return false;
    for (size_t i = 0; i < bytes; i++)
        if ((uint8_t)rest[i] < 0x20 || rest[i] == 0x7F || rest[i] == '?' || rest[i] == '#')
            return false;
    return true;
}

bool pen__outside_path_ok(const char *path, size_t bytes)
{
    if (!bytes || bytes >= PATH_CAP || memchr(path, 0, bytes))
        return false;
    size_t scheme = scheme_bytes(path, bytes);
    if (scheme && !address_ok(path + scheme, bytes - scheme))
        return false;
    size_t at = scheme ? scheme : path[0] == '/';
    for (;;) {
        const char *slash = memchr(path + at, '/', bytes - at);
        size_t n = slash ? (size_t)(slash - path) - at : bytes - at;
        if (!n || (path[at] == '.' && (n == 1 || (n == 2 && path[at + 1] == '.'))))
            return false;
        if (!slash)
            return true;
        at += n + 1;
    }
}

const char *pen__outside_below(const char *dir, const char *path)
{
    size_t n = strlen(dir);
    while (n && dir[n - 1] == '/') /* "/" has nothing left, and every absolute path is below it */
        n--;
    if (strncmp(path, dir, n) != 0 || path[n] != '/')
        return NULL;
    path += n;
    return path + strspn(path, "/");
}

static int fail_address(const char *pack, PenError *reterr)
{
    return pen__fail(reterr, PEN_E_CORRUPT, WHERE,
                     "%.300s: refers to an object by an address that is not valid", pack);
}

static size_t count_slashes(const char *text)
{
    size_t n = 0;
    for (; *text; text++)
        n += *text == '/';
    return n;
}

int pen__outside_decode(const char *pack, const char *rest, char *ret, size_t cap, PenError *reterr)
{
    PenBuf name = {0};
    if (pen__path_decode(&name, rest, strlen(rest)) < 0 || pen__buf_add(&name, "", 1) < 0) {
        pen__buf_free(&name);
        return pen__fail_memory(reterr, WHERE, pack);
    }
    const char *text = (const char *)name.data;
    bool ok = name.bytes <= cap && strlen(text) + 1 == name.bytes &&
              pen__outside_path_ok(text, name.bytes - 1) &&
              !pen__outside_is_address(text, name.bytes - 1) &&
              count_slashes(text) == count_slashes(rest);
    if (ok)
        memcpy(ret, text, name.bytes);
    pen__buf_free(&name);
    return ok ? PEN_OK : fail_address(pack, reterr);
}

/* ---- places ---------------------------------------------------------------------------------- */

/* A prefix or an address as maps have it: the host in lower case, no port that is the usual one. */
static int make_prefix(const char *text, char **ret, PenError *reterr)
{
    PenAddress address = {0};
    PenBuf buf = {0};
    int r = PEN_OK;
    bool is_remote = pen__address_is_remote(text) != 0;
    if (is_remote)
        r = pen__address_parse(text, &address, reterr);
    if (r < 0)
        return r;
    if (is_remote && pen__address_text(&address, &buf) == PEN_OK)
        text = (const char *)buf.data;
    *ret = is_remote && !buf.data ? NULL : pen__strdup(text);
    pen__buf_free(&buf);
    pen__address_free(&address);
    return *ret ? PEN_OK : pen__fail_memory(reterr, WHERE, "prefix");
}

int pen__outside_address(const char *address, char ret[PEN_OUTSIDE_PATH_BYTES], PenError *reterr)
{
    char *text = NULL;
    int r = make_prefix(address, &text, reterr);
    if (r < 0)
        return r;
    if (pen__outside_path_ok(text, strlen(text)))
        memcpy(ret, text, strlen(text) + 1);
    else
        r = pen__fail(reterr, PEN_E_UNSUPPORTED, WHERE,
                      "%.300s: expected an address of at most %d bytes without empty parts, as an "
                      "in-place pack can name, found another; rename the object",
                      address, PATH_CAP - 1);
    pen__free(text);
    return r;
}

int pen__objects_new(const char *pack, const char *dir, PenObjects **ret, PenError *reterr)
{
    PenObjects *o = pen__zalloc(sizeof *o);
    if (!o)
        return pen__fail_memory(reterr, WHERE, pack);
    pthread_mutex_init(&o->mutex, NULL);
    o->pack = pen__strdup(pack);
    int r = o->pack ? make_prefix(dir, &o->dir, reterr) : pen__fail_memory(reterr, WHERE, pack);
    if (r < 0)
        pen__objects_close(&o);
    else
        *ret = o;
    return r;
}

int pen__objects_open_home(PenObjects *o, PenRemote *of, PenError *reterr)
{
    return *o->dir ? pen__remote_open_beside(of, o->dir, &o->home, reterr) : PEN_OK;
}

static void free_rules(PenObjects *o)
{
    for (uint32_t i = 0; i < o->n_rules; i++) {
        pen__remote_close(&o->rules[i].remote);
        pen__free(o->rules[i].from);
    }
    pen__free(o->rules);
    o->rules = NULL;
    o->n_rules = 0;
}

static int open_place(const PenObjects *o, const char *address, const PenRemoteSettings *settings,
                      PenRemote **ret, PenError *reterr)
{
    PenRemote *beside = o->home;
    if (beside && !pen__remote_is_beside(beside, address, settings))
        beside = NULL;
    for (uint32_t i = 0; i < o->n_rules && !beside; i++) {
        PenRemote *other = o->rules[i].remote;
        if (other && pen__remote_is_beside(other, address, settings))
            beside = other;
    }
    return beside ? pen__remote_open_beside(beside, address, ret, reterr)
                  : pen__remote_open(address, settings, ret, reterr);
}

static int add_rule(PenObjects *o, const char *from, const char *to,
                    const PenRemoteSettings *settings, PenError *reterr)
{
    Rule rule = {0};
    int r = make_prefix(from, &rule.from, reterr);
    if (r == PEN_OK && pen__address_is_remote(to))
        r = open_place(o, to, settings, &rule.remote, reterr);
    if (r < 0)
        pen__free(rule.from);
    else
        o->rules[o->n_rules++] = rule;
    return r;
}

int pen__objects_set(PenObjects *o, const PenFileSettings *s, PenError *reterr)
{
    PenRemoteSettings own = pen__remote_settings(s->remote);
    int r = PEN_OK;
    free_rules(o);
    o->rules = pen__alloc_array(PEN_MAX((uint64_t)s->n_roots + s->n_moved, 1u), sizeof *o->rules);
    if (!o->rules)
        return pen__fail_memory(reterr, WHERE, o->pack);
    for (uint32_t i = 0; i < s->n_moved && r == PEN_OK; i++)
        if (s->moved_from[i] && s->moved_to[i])
            r = add_rule(o, s->moved_from[i], s->moved_to[i], &own, reterr);
    for (uint32_t i = 0; i < s->n_roots && r == PEN_OK; i++)
        if (s->roots[i] && pen__address_is_remote(s->roots[i]))
            r = add_rule(o, s->roots[i], s->roots[i], &own, reterr);
    return r;
}

PenRemote *pen__objects_place(const PenObjects *o)
{
    for (uint32_t i = 0; i < o->n_rules; i++)
        if (o->rules[i].remote)
            return o->rules[i].remote;
    return o->home;
}

void pen__objects_stop(const PenObjects *o, int stop)
{
    for (uint32_t i = 0; i < o->n_rules; i++)
        if (o->rules[i].remote)
            pen__remote_stop(o->rules[i].remote, stop);
    if (o->home)
        pen__remote_stop(o->home, stop);
}

/* The pack's own place, and others that share one's connections, are counted once. */
static void count(PenRemote *remote, PenPolicyCounts *sum)
{
    PenPolicyCounts n;
    if (!remote || pen__remote_was_opened_beside(remote))
        return;
    pen__remote_counts(remote, &n);
    sum->ops += n.ops;
    sum->attempts += n.attempts;
    sum->retries += n.retries;
    sum->hedges += n.hedges;
    sum->hedges_won += n.hedges_won;
    sum->throttles += n.throttles;
    sum->failures += n.failures;
    sum->in_flight += n.in_flight;
    sum->limit += n.limit;
    sum->bytes += n.bytes;
}

void pen__objects_count(const PenObjects *o, PenPolicyCounts *counts)
{
    for (uint32_t i = 0; i < o->n_rules; i++)
        count(o->rules[i].remote, counts);
}

/* ---- which object ---------------------------------------------------------------------------- */

typedef struct Place {
    PenRemote *remote;
    char name[PATH_CAP]; /* below it, not encoded */
} Place;

/* 1: it is an object. */
static int set_place(const PenObjects *o, const PenOutsideFile *file, const char *rest,
                     PenRemote *remote, Place *ret, PenError *reterr)
{
    bool is_address = pen__outside_is_address(file->path, file->path_bytes);
    ret->remote = remote;
    if (is_address && file->path[0] == 'h') { /* else the name is as it is */
        int r = pen__outside_decode(o->pack, rest, ret->name, sizeof ret->name, reterr);
        return r < 0 ? r : 1;
    }
    if (strlen(rest) >= sizeof ret->name)
        return fail_address(o->pack, reterr);
    memcpy(ret->name, rest, strlen(rest) + 1);
    return 1;
}

static int check_address(const PenObjects *o, const char *path, PenError *reterr)
{
    PenAddress address;
    if (!pen__outside_is_address(path, strlen(path)))
        return PEN_OK;
    if (pen__address_parse(path, &address, NULL) < 0)
        return fail_address(o->pack, reterr);
    pen__address_free(&address);
    return PEN_OK;
}

/* 1: by a rule it is an object, 0: by a rule it is a file, -1: there is none. */
static int find_rule(const PenObjects *o, const char *path, const Rule **ret, const char **ret_rest)
{
    for (uint32_t i = 0; i < o->n_rules; i++) {
        const char *rest = pen__outside_below(o->rules[i].from, path);
        if (!rest || !*rest)
            continue;
        *ret = &o->rules[i];
        *ret_rest = rest;
        return o->rules[i].remote != NULL;
    }
    return -1;
}

static bool path_is_relative(const PenOutsideFile *file)
{
    return file->path[0] != '/' && !pen__outside_is_address(file->path, file->path_bytes);
}

/* 1: it is an object, 0: it is a file, or nobody knows it. */
static int find(const PenObjects *o, const PenOutsideFile *file, Place *ret, PenError *reterr)
{
    char path[FULL_CAP];
    const Rule *rule = NULL;
    const char *rest = NULL;
    size_t n = strlen(o->dir);
    if (!pen__outside_path_ok(file->path, file->path_bytes) || n >= PATH_CAP)
        return fail_address(o->pack, reterr);
    bool is_relative = path_is_relative(file);
    memcpy(path, file->path, file->path_bytes);
    path[file->path_bytes] = 0;
    int r = check_address(o, path, reterr);
    if (r < 0)
        return r;
    int found = find_rule(o, path, &rule, &rest);
    if (found < 0 && is_relative && n) {
        n -= o->dir[n - 1] == '/'; /* that of "/" */
        memmove(path + n + 1, path, (size_t)file->path_bytes + 1);
        memcpy(path, o->dir, n);
        path[n] = '/';
        found = find_rule(o, path, &rule, &rest);
    }
    if (found > 0)
        return set_place(o, file, rest, rule->remote, ret, reterr);
    rest = found < 0 && o->home ? pen__outside_below(o->dir, path) : NULL;
    return rest ? set_place(o, file, rest, o->home, ret, reterr) : 0;
}

/* ---- reading --------------------------------------------------------------------------------- */

static Cell *cell_of(PenObjects *o, const PenOutsideFile *file)
{
    return &o->cells[(file->owner * 0x9E3779B97F4A7C15u + file->number) % CELLS];
}

static bool is_same(const Cell *c, const PenOutsideFile *file)
{
    return c->source && c->owner == file->owner && c->number == file->number;
}

static void close_cell(Cell *c)
{
    pen__source_close(&c->source);
    pen__free(c->failure);
    c->failure = NULL;
}

/* *ret_cell is NULL when another object is in use in its cell: then it is closed after use. */
static int take(PenObjects *o, const PenOutsideFile *file, const Place *place, PenSource **ret,
                Cell **ret_cell, PenError *reterr)
{
    Cell *c = cell_of(o, file);
    PenSource *fresh = NULL;
    Cell old = {0};
    pthread_mutex_lock(&o->mutex);
    bool known = is_same(c, file);
    c->refs += known;
    *ret = c->source;
    pthread_mutex_unlock(&o->mutex);
    *ret_cell = known ? c : NULL;
    if (known)
        return PEN_OK;
    int r = pen__source_open_object(place->remote, place->name, file->bytes, &fresh, reterr);
    if (r < 0)
        return r;
    pthread_mutex_lock(&o->mutex);
    if (!c->source || !c->refs) {
        old = *c;
        *c = (Cell){file->owner, file->number, 1, fresh, NULL};
        *ret_cell = c;
    }
    pthread_mutex_unlock(&o->mutex);
    close_cell(&old);
    *ret = fresh;
    return PEN_OK;
}

/* `failure` says why it could not be read; NULL: it could. */
static void put(PenObjects *o, PenSource **source, Cell *cell, const char *failure)
{
    if (!cell) {
        pen__source_close(source);
        return;
    }
    char *fresh = failure ? pen__strdup(failure) : NULL;
    pthread_mutex_lock(&o->mutex);
    char *old = cell->failure;
    cell->failure = fresh;
    cell->refs--;
    pthread_mutex_unlock(&o->mutex);
    pen__free(old);
}

/* PEN_E_NOT_FOUND would mean: no such sample. Without a bucket no sample is to blame. */
static int explain(const PenObjects *o, const char *name, int r, PenError *reterr)
{
    if (!reterr)
        return r == PEN_E_NOT_FOUND || r == PEN_E_CHANGED ? PEN_E_CORRUPT : r;
    if (r == PEN_E_NOT_FOUND && strstr(reterr->message, "NoSuchBucket"))
        return reterr->status = PEN_E_INVALID;
    if (r == PEN_E_NOT_FOUND)
        return pen__fail(reterr, PEN_E_CORRUPT, WHERE,
                         "%.200s: no such object; '%.80s' refers to it. If it was moved, pass "
                         "--relocate OLD=NEW, in Python relocate={OLD: NEW}",
                         name, o->pack);
    if (r != PEN_E_CHANGED && r != PEN_E_CORRUPT)
        return r;
    PenError e = *reterr;
    return pen__fail(reterr, PEN_E_CORRUPT, WHERE,
                     "%.300s; '%.60s' refers to it: if it has changed, run 'penstock index' again",
                     e.message, o->pack);
}

int pen__objects_read(PenObjects *o, const PenOutsideFile *file, const struct iovec *v, int n,
                      uint64_t offset, const PenArrival *arrival, PenError *reterr)
{
    Place place;
    PenSource *source = NULL;
    Cell *cell = NULL;
    int r = find(o, file, &place, reterr);
    if (r <= 0)
        return r < 0 ? r : 1;
    r = take(o, file, &place, &source, &cell, reterr);
    if (r < 0)
        return r;
    r = pen__source_read_v(source, v, n, offset, arrival, reterr);
    if (r < 0)
        r = explain(o, source->name, r, reterr);
    put(o, &source, cell, r == PEN_E_CORRUPT && reterr ? reterr->message : NULL);
    return r;
}

int pen__objects_failure(PenObjects *o, const PenOutsideFile *file, PenError *reterr)
{
    Place place;
    int r = find(o, file, &place, reterr);
    if (r <= 0)
        return r < 0 ? r : 1;
    const Cell *c = cell_of(o, file);
    r = PEN_OK;
    pthread_mutex_lock(&o->mutex);
    if (is_same(c, file) && c->failure)
        r = pen__fail(reterr, PEN_E_CORRUPT, WHERE, "%s", c->failure);
    pthread_mutex_unlock(&o->mutex);
    return r;
}

void pen__objects_forget(PenObjects *o, uint64_t owner)
{
    for (int i = 0; i < CELLS; i++) {
        Cell old = {0};
        pthread_mutex_lock(&o->mutex);
        if (o->cells[i].source && o->cells[i].owner == owner) {
            old = o->cells[i];
            o->cells[i] = (Cell){0};
        }
        pthread_mutex_unlock(&o->mutex);
        close_cell(&old);
    }
}

void pen__objects_close(PenObjects **objects)
{
    if (!objects || !*objects)
        return;
    PenObjects *o = *objects;
    *objects = NULL;
    for (int i = 0; i < CELLS; i++)
        close_cell(&o->cells[i]);
    pthread_mutex_destroy(&o->mutex);
    free_rules(o);
    pen__remote_close(&o->home);
    pen__free(o->pack);
    pen__free(o->dir);
    pen__free(o);
}
