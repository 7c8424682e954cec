/* SPDX-License-Identifier: Apache-2.0 */
#include "io/source.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/bytes.h"
#include "base/iov.h"
#include "base/sys.h"

typedef struct FileSource {
    PenSource base;
    int fd;
} FileSource;

typedef struct MemorySource {
    PenSource base;
    const uint8_t *data;
} MemorySource;

/* What a read gave that did not give all: an error, or the end. */
static int file_failed(const PenSource *s, int64_t n, uint64_t bytes, uint64_t offset,
                       PenError *reterr)
{
    if (n < 0)
        return pen__fail_os(reterr, (int)-n, "io/file",
                            "%s: cannot read %" PRIu64 " bytes at offset %" PRIu64, s->name, bytes,
                            offset);
    return pen__fail(reterr, PEN_E_CORRUPT, "io/file",
                     "%s: ends at offset %" PRIu64 ", expected %" PRIu64
                     " bytes: it was truncated while in use",
                     s->name, offset, s->bytes);
}

static int file_read(PenSource *s, void *buf, size_t bytes, uint64_t offset, PEN_UNUSED int again,
                     PenError *reterr)
{
    FileSource *f = (FileSource *)s;
    uint8_t *to = buf;
    while (bytes) {
        int64_t n = pen__sys->pread(f->fd, to, bytes, offset);
        if (n <= 0)
            return file_failed(s, n, bytes, offset, reterr);
        to += n;
        bytes -= (size_t)n;
        offset += (uint64_t)n;
    }
    return PEN_OK;
}

/* Takes so many bytes off the front. Returns how many places are left. */
static int skip(struct iovec *v, int n, uint64_t bytes)
{
    int done = 0;
    while (done < n && bytes >= v[done].iov_len)
        bytes -= v[done++].iov_len;
    memmove(v, v + done, (size_t)(n - done) * sizeof *v);
    if (n > done) {
        v->iov_base = (uint8_t *)v->iov_base + bytes;
        v->iov_len -= (size_t)bytes;
    }
    return n - done;
}

static int file_read_some(PenSource *s, const struct iovec *v, int n, uint64_t offset,
                          PenError *reterr)
{
    FileSource *f = (FileSource *)s;
    struct iovec left[PEN_SOURCE_PLACES];
    memcpy(left, v, (size_t)n * sizeof *v);
    n = skip(left, n, 0);
    while (n) {
        int64_t got = pen__sys->preadv(f->fd, left, n, offset);
        if (got <= 0)
            return file_failed(s, got, pen__iov_bytes(left, n), offset, reterr);
        n = skip(left, n, (uint64_t)got);
        offset += (uint64_t)got;
    }
    return PEN_OK;
}

static int file_read_v(PenSource *s, const struct iovec *v, int n, uint64_t offset,
                       const PenArrival *arrival, PenError *reterr)
{
    (void)arrival;
    int r = PEN_OK;
    for (int i = 0; i < n && r == PEN_OK; i += PEN_SOURCE_PLACES) {
        int some = PEN_MIN(n - i, (int)PEN_SOURCE_PLACES);
        r = file_read_some(s, v + i, some, offset, reterr);
        offset += pen__iov_bytes(v + i, some);
    }
    return r;
}

static void file_close(PenSource *s)
{
    pen__sys->close(((FileSource *)s)->fd);
    pen__free((char *)s->name);
    pen__free(s);
}

static int file_drop(PenSource *s, uint64_t bytes, uint64_t offset)
{
    return pen__sys->cache_drop(((FileSource *)s)->fd, offset, bytes);
}

static const PenSourceClass file_class = {
    .read = file_read, .close = file_close, .read_v = file_read_v, .drop = file_drop};

static int fail_kind(const char *path, const PenFileStat *st, PenError *reterr)
{
    return pen__fail(reterr, PEN_E_INVALID, "io/file", "%s: expected a file, found %s", path,
                     st->what);
}

int pen__file_open(const char *path, int *ret_fd, PenFileStat *ret_st, PenError *reterr)
{
    int fd = pen__sys->open(path, PEN_OPEN_READ);
    if (fd == -ENXIO && pen__sys->stat_path(path, ret_st) == 0 && !ret_st->is_file)
        return fail_kind(path, ret_st, reterr); /* a socket, a device without a driver */
    if (fd < 0)
        return pen__fail_os(reterr, -fd, "io/file", "%s: cannot open", path);
    int r = pen__sys->stat_fd(fd, ret_st);
    if (r < 0)
        r = pen__fail_os(reterr, -r, "io/file", "%s: cannot stat", path);
    else if (!ret_st->is_file)
        r = fail_kind(path, ret_st, reterr);
    if (r < 0)
        pen__sys->close(fd);
    else
        *ret_fd = fd;
    return r;
}

int pen__source_open_fd(int fd, const char *path, uint64_t bytes, PenSource **ret, PenError *reterr)
{
    FileSource *f = pen__zalloc(sizeof *f);
    char *name = pen__strdup(path);
    if (!f || !name) {
        pen__free(name);
        pen__free(f);
        pen__sys->close(fd);
        return pen__fail_memory(reterr, "io/file", path);
    }
    f->base = (PenSource){.class_ = &file_class, .name = name, .bytes = bytes};
    f->fd = fd;
    *ret = &f->base;
    return PEN_OK;
}

int pen__source_open_file(const char *path, PenSource **ret, PenError *reterr)
{
    PenFileStat st;
    int fd = -1;
    int r = pen__file_open(path, &fd, &st, reterr);
    return r < 0 ? r : pen__source_open_fd(fd, path, st.bytes, ret, reterr);
}

static int memory_read(PenSource *s, void *buf, size_t bytes, uint64_t offset, PEN_UNUSED int again,
                       PEN_UNUSED PenError *reterr)
{
    memcpy(buf, ((MemorySource *)s)->data + offset, bytes);
    return PEN_OK;
}

static void memory_close(PenSource *s)
{
    pen__free((char *)s->name);
    pen__free(s);
}

static const PenSourceClass memory_class = {.read = memory_read, .close = memory_close};

int pen__source_open_memory(const char *name, const void *data, uint64_t bytes, PenSource **ret,
                            PenError *reterr)
{
    MemorySource *m = pen__zalloc(sizeof *m);
    char *copy = pen__strdup(name);
    if (!m || !copy) {
        pen__free(m);
        pen__free(copy);
        return pen__fail_memory(reterr, "io/memory", name);
    }
    m->base = (PenSource){.class_ = &memory_class, .name = copy, .bytes = bytes};
    m->data = data;
    *ret = &m->base;
    return PEN_OK;
}

static int check_range(const PenSource *s, uint64_t bytes, uint64_t offset, PenError *reterr)
{
    if (pen__range_ok(offset, bytes, s->bytes))
        return PEN_OK;
    return pen__fail(reterr, PEN_E_CORRUPT, "io/source",
                     "%s: expected %" PRIu64 " bytes at offset %" PRIu64 ", found only %" PRIu64
                     " in total",
                     s->name, bytes, offset, s->bytes);
}

static int read_range(PenSource *s, void *buf, size_t bytes, uint64_t offset, int again,
                      PenError *reterr)
{
    int r = check_range(s, bytes, offset, reterr);
    return r == PEN_OK && bytes ? s->class_->read(s, buf, bytes, offset, again, reterr) : r;
}

int pen__source_read(PenSource *s, void *buf, size_t bytes, uint64_t offset, PenError *reterr)
{
    return read_range(s, buf, bytes, offset, 0, reterr);
}

int pen__source_read_again(PenSource *s, void *buf, size_t bytes, uint64_t offset, PenError *reterr)
{
    return read_range(s, buf, bytes, offset, 1, reterr);
}

int pen__source_read_v(PenSource *s, const struct iovec *v, int n, uint64_t offset,
                       const PenArrival *arrival, PenError *reterr)
{
    uint64_t bytes = pen__iov_bytes(v, n);
    int r = check_range(s, bytes, offset, reterr);
    if (r < 0 || !bytes)
        return r;
    if (s->class_->read_v)
        return s->class_->read_v(s, v, n, offset, arrival, reterr);
    for (int i = 0; i < n && r == PEN_OK; i++) {
        r = read_range(s, v[i].iov_base, v[i].iov_len, offset, pen__arrival_is_again(arrival),
                       reterr);
        offset += v[i].iov_len;
    }
    return r;
}

bool pen__source_drop(PenSource *s, uint64_t bytes, uint64_t offset)
{
    return s->class_->drop && s->class_->drop(s, bytes, offset) == 1;
}

void pen__source_forget(PenSource *s, uint64_t bytes, uint64_t offset)
{
    if (s->class_->forget)
        s->class_->forget(s, bytes, offset);
}

int pen__source_origin(PenSource *s, uint64_t offset, PenOrigin *ret, PenError *reterr)
{
    int r = s->class_->origin ? s->class_->origin(s, offset, ret, reterr) : 0;
    return r == 1 || r == PEN_E_CORRUPT ? r : 0;
}

void pen__source_close(PenSource **s)
{
    if (!s || !*s)
        return;
    (*s)->class_->close(*s);
    *s = NULL;
}

int pen__file_load(const char *path, uint64_t limit, PenBuf *ret, PenError *reterr)
{
    PenSource *s = NULL;
    int r = pen__source_open_file(path, &s, reterr);
    if (r < 0)
        return r;
    if (s->bytes > limit) {
        r = pen__fail(reterr, PEN_E_LIMIT, "io/file",
                      "%s: expected at most %" PRIu64 " bytes, found %" PRIu64, path, limit,
                      s->bytes);
        goto out;
    }
    ret->bytes = 0;
    r = pen__buf_reserve(ret, (size_t)s->bytes + PEN_SLACK);
    if (r < 0) {
        pen__fail_memory(reterr, "io/file", path);
        goto out;
    }
    r = pen__source_read(s, ret->data, (size_t)s->bytes, 0, reterr);
    if (r < 0)
        goto out;
    ret->bytes = (size_t)s->bytes;
    memset(ret->data + ret->bytes, 0, PEN_SLACK);
out:
    pen__source_close(&s);
    return r;
}
