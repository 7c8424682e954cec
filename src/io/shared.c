/* SPDX-License-Identifier: Apache-2.0 */
/* Each who has the memory open also holds its name, "penstock/USER/ID/PROCESS.FILE": see
 * memory_names.h. Who looks for the memory, or makes it, holds "penstock/USER/ID" meanwhile. */
#include "io/shared.h"

#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/attr.h"
#include "base/sys.h"
#include "base/thread.h"
#include "io/memory_names.h"

#define WHERE "io/shared"

/* A name that is not given back in this time is held by one who is stopped, or means us ill: then
 * without. The worst that comes of it is the same memory twice. */
#define NAME_WAIT_NS 10000000000u
#define NAME_LOOK_MS 5

struct PenShared {
    atomic_int refs;
    int fd;
    int name_fd; /* ours in the list of names */
    char *name;  /* for messages */
};

typedef struct Search {
    const PenSharedKey *key;
    char prefix[PEN_MEMORY_NAME_BYTES]; /* of the names */
    int fd;                             /* what was found; -1 */
} Search;

/* ---- bytes ----------------------------------------------------------------------------------- */

static int read_fd(int fd, const char *name, void *buf, size_t bytes, uint64_t offset,
                   PenError *reterr)
{
    uint8_t *to = buf;
    while (bytes) {
        int64_t n = pen__sys->pread(fd, to, bytes, offset);
        if (n <= 0)
            return pen__fail_os(reterr, n ? (int)-n : EIO, WHERE,
                                "%s: cannot read %zu bytes at offset %" PRIu64 " of shared memory",
                                name, bytes, offset);
        to += n;
        bytes -= (size_t)n;
        offset += (uint64_t)n;
    }
    return PEN_OK;
}

static int write_fd(int fd, const char *name, const void *data, size_t bytes, uint64_t offset,
                    PenError *reterr)
{
    const uint8_t *from = data;
    while (bytes) {
        struct iovec iov = {(void *)from, bytes};
        int64_t n = pen__sys->pwritev(fd, &iov, 1, offset);
        if (n == -EPERM && pen__sys->memory_is_sealed(fd) == 1)
            return PEN_OK;
        if (n == -ENOSPC || n == -ENOMEM)
            return pen__fail(reterr, PEN_E_NO_MEMORY, WHERE,
                             "%s: out of memory at byte %" PRIu64
                             " of the shared memory; open it without preload",
                             name, offset);
        if (n <= 0)
            return pen__fail_os(reterr, n ? (int)-n : EIO, WHERE,
                                "%s: cannot write %zu bytes at offset %" PRIu64 " of shared memory",
                                name, bytes, offset);
        from += n;
        bytes -= (size_t)n;
        offset += (uint64_t)n;
    }
    return PEN_OK;
}

int pen__shared_read(PenShared *s, void *buf, size_t bytes, uint64_t offset, PenError *reterr)
{
    return read_fd(s->fd, s->name, buf, bytes, offset, reterr);
}

int pen__shared_write(PenShared *s, const void *data, size_t bytes, uint64_t offset,
                      PenError *reterr)
{
    return write_fd(s->fd, s->name, data, bytes, offset, reterr);
}

/* ---- finding --------------------------------------------------------------------------------- */

/* Does it begin as it should? */
static bool is_it(const PenSharedKey *key, int fd)
{
    uint8_t head[PEN_SHARED_HEAD_BYTES];
    return read_fd(fd, key->name, head, sizeof head, 0, NULL) == PEN_OK &&
           memcmp(head, key->head, sizeof head) == 0;
}

/* 1: found. */
static int try_place(void *ctx, const PenMemoryPlace *place)
{
    Search *s = ctx;
    int fd = pen__memory_place_open(place, s->key->bytes, PEN_OPEN_MEMORY);
    if (fd < 0)
        return 0;
    if (is_it(s->key, fd)) {
        s->fd = fd;
        return 1;
    }
    pen__sys->close(fd);
    return 0;
}

static int find(Search *s, PenError *reterr)
{
    int r = pen__memory_names_each(s->prefix, try_place, s);
    if (r == -ENOMEM)
        return pen__fail_memory(reterr, WHERE, s->key->name);
    return r < 0 ? pen__fail_os(reterr, -r, WHERE, "%s: cannot search for shared memory in %s",
                                s->key->name, pen__memory_names_list)
                 : PEN_OK;
}

/* ---- making ---------------------------------------------------------------------------------- */

static int make(Search *s, PenError *reterr)
{
    int fd = pen__sys->memory_make("penstock", s->key->bytes);
    if (fd < 0)
        return pen__fail_os(reterr, -fd, WHERE,
                            "%s: cannot allocate %" PRIu64 " bytes of shared memory", s->key->name,
                            s->key->bytes);
    int r = write_fd(fd, s->key->name, s->key->head, PEN_SHARED_HEAD_BYTES, 0, reterr);
    if (r < 0)
        pen__sys->close(fd);
    else
        s->fd = fd;
    return r;
}

static int fail_name(int e, const PenSharedKey *key, PenError *reterr)
{
    return pen__fail_os(reterr, e, WHERE, "%s: cannot reserve a name for shared memory", key->name);
}

/* Others wait while we look and make. *ret is -1 when it took too long. */
static int begin_search(const Search *s, int *ret, PenError *reterr)
{
    uint64_t deadline = pen__deadline_after(NAME_WAIT_NS);
    int fd = pen__sys->name_take(s->prefix);
    while (fd == -EADDRINUSE && pen__sys->now_ns() < deadline) {
        (void)pen__sys->poll(NULL, 0, NAME_LOOK_MS);
        fd = pen__sys->name_take(s->prefix);
    }
    if (fd < 0 && fd != -EADDRINUSE)
        return fail_name(-fd, s->key, reterr);
    *ret = fd < 0 ? -1 : fd;
    return PEN_OK;
}

static int take_our_name(const Search *s, PenShared *shared, PenError *reterr)
{
    int fd = pen__memory_name_take(s->prefix, s->fd);
    if (fd == -EADDRINUSE) /* by a child, from a time before: it says the right thing still */
        return PEN_OK;
    if (fd < 0)
        return fail_name(-fd, s->key, reterr);
    shared->name_fd = fd;
    return PEN_OK;
}

/* 1 found, 0 made. */
static int find_or_make(Search *s, PenShared *shared, PenError *reterr)
{
    int found = 0, r = find(s, reterr);
    if (r == PEN_OK) {
        found = s->fd >= 0;
        r = found ? PEN_OK : make(s, reterr);
    }
    if (r == PEN_OK) {
        shared->fd = s->fd;
        r = take_our_name(s, shared, reterr);
    }
    return r < 0 ? r : found;
}

static void free_shared(PenShared *s)
{
    if (s->name_fd >= 0)
        pen__sys->close(s->name_fd);
    if (s->fd >= 0)
        pen__sys->close(s->fd);
    pen__free(s->name);
    pen__free(s);
}

int pen__shared_open(const PenSharedKey *key, PenShared **ret, PenError *reterr)
{
    Search s = {.key = key, .fd = -1};
    char id[2 * PEN_SHARED_ID_BYTES + 1];
    int lock = -1;
    for (int i = 0; i < PEN_SHARED_ID_BYTES; i++)
        snprintf(id + 2 * i, 3, "%02x", key->id[i]);
    pen__memory_names_prefix(id, s.prefix);
    PenShared *shared = pen__zalloc(sizeof *shared);
    char *name = pen__strdup(key->name);
    if (!shared || !name) {
        pen__free(shared);
        pen__free(name);
        return pen__fail_memory(reterr, WHERE, key->name);
    }
    *shared = (PenShared){.refs = 1, .fd = -1, .name_fd = -1, .name = name};
    int r = begin_search(&s, &lock, reterr);
    if (r == PEN_OK)
        r = find_or_make(&s, shared, reterr);
    if (lock >= 0)
        pen__sys->close(lock);
    if (r < 0)
        free_shared(shared);
    else
        *ret = shared;
    return r;
}

PenShared *pen__shared_ref(PenShared *s)
{
    atomic_fetch_add(&s->refs, 1);
    return s;
}

void pen__shared_close(PenShared **s)
{
    if (*s && atomic_fetch_sub(&(*s)->refs, 1) == 1)
        free_shared(*s);
    *s = NULL;
}

/* ---- who does what --------------------------------------------------------------------------- */

int pen__shared_claim(PenShared *s, uint64_t number, PenError *reterr)
{
    int r = pen__sys->lock_byte(s->fd, PEN_RANGE_ALONE, number);
    if (r < 0 && r != -EAGAIN)
        return pen__fail_os(reterr, -r, WHERE, "%s: cannot lock shared memory", s->name);
    return r == 0;
}

void pen__shared_unclaim(PenShared *s, uint64_t number)
{
    (void)pen__sys->lock_byte(s->fd, PEN_RANGE_FREE, number);
}

int pen__shared_seal(PenShared *s, PenError *reterr)
{
    int r = pen__sys->memory_seal(s->fd);
    if (r == 0 || pen__shared_is_sealed(s))
        return PEN_OK; /* or another was quicker */
    return pen__fail_os(reterr, -r, WHERE, "%s: cannot seal shared memory", s->name);
}

int pen__shared_is_sealed(const PenShared *s)
{
    return pen__sys->memory_is_sealed(s->fd) == 1;
}

/* ---- as a source ----------------------------------------------------------------------------- */

typedef struct SharedSource {
    PenSource base;
    PenShared *shared;
    uint64_t offset;
} SharedSource;

static int source_read(PenSource *source, void *buf, size_t bytes, uint64_t offset,
                       PEN_UNUSED int again, PenError *reterr)
{
    SharedSource *s = (SharedSource *)source;
    return read_fd(s->shared->fd, source->name, buf, bytes, s->offset + offset, reterr);
}

static void source_close(PenSource *source)
{
    SharedSource *s = (SharedSource *)source;
    pen__shared_close(&s->shared);
    pen__free((char *)source->name);
    pen__free(s);
}

int pen__source_open_shared(PenShared *shared, const char *name, uint64_t offset, uint64_t bytes,
                            PenSource **ret, PenError *reterr)
{
    static const PenSourceClass shared_class = {.read = source_read, .close = source_close};
    SharedSource *s = pen__zalloc(sizeof *s);
    char *copy = pen__strdup(name);
    if (!s || !copy) {
        pen__free(s);
        pen__free(copy);
        return pen__fail_memory(reterr, WHERE, name);
    }
    s->base = (PenSource){.class_ = &shared_class, .name = copy, .bytes = bytes};
    s->shared = pen__shared_ref(shared);
    s->offset = offset;
    *ret = &s->base;
    return PEN_OK;
}
