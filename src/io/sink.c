/* SPDX-License-Identifier: Apache-2.0 */
#include "io/sink.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <string.h>

#include "base/mem.h"
#include "base/sys.h"
#include "io/inner.h"

struct PenSink {
    int fd;
    char *part_path;
    PenInner part;     /* where it lies */
    PenUpload *upload; /* NULL: a file */
    uint64_t bytes;
};

/* What the kernel takes in one call (IOV_MAX is 1,024 on Linux), and what it takes well: beyond a
 * megabyte it looks for huge pages for its cache, which took four times as long on virtual machines
 * that give free memory back to their host. */
#define MAX_PIECES 512
#define MAX_WRITE (512u * 1024)

/* What has that name goes, whatever it is and wherever it leads: nobody's file is written to. */
static int create(const PenInner *part)
{
    int fd = pen__sys->open_at(part->dir, part->name, PEN_OPEN_CREATE);
    if (fd != -EEXIST)
        return fd;
    int r = pen__sys->unlink(part->dir, part->name);
    return r < 0 ? r : pen__sys->open_at(part->dir, part->name, PEN_OPEN_CREATE);
}

static int open_part(PenSink *s, PenError *reterr)
{
    int r = pen__inner_find(s->part_path, pen__inner_root(s->part_path), &s->part, reterr);
    if (r < 0)
        return r;
    s->fd = create(&s->part);
    if (s->fd >= 0)
        return PEN_OK;
    r = pen__fail_os(reterr, -s->fd, "io/sink", "%s: cannot create", s->part_path);
    pen__inner_close(&s->part);
    return r;
}

int pen__sink_open(const char *part_path, PenSink **ret, PenError *reterr)
{
    PenSink *s = pen__zalloc(sizeof *s);
    char *path = pen__strdup(part_path);
    int r = PEN_OK;
    if (s && path) {
        *s = (PenSink){.fd = -1, .part_path = path, .part = PEN_INNER_NONE};
        r = open_part(s, reterr);
    } else {
        r = pen__fail_memory(reterr, "io/sink", part_path);
    }
    if (r < 0) {
        pen__free(s);
        pen__free(path);
    } else {
        *ret = s;
    }
    return r;
}

int pen__sink_open_remote(PenRemote *remote, const char *name, PenSink **ret, PenError *reterr)
{
    PenSink *s = pen__zalloc(sizeof *s);
    if (!s)
        return pen__fail_memory(reterr, "io/sink", name);
    s->fd = -1;
    s->part = PEN_INNER_NONE;
    int r = pen__upload_begin(remote, name, &s->upload, reterr);
    if (r < 0)
        pen__free(s);
    else
        *ret = s;
    return r;
}

/* One call for the pieces at the front, the last of them cut when there is too much. */
static int64_t write_some(PenSink *s, struct iovec *iov, int n)
{
    size_t left = MAX_WRITE;
    int taken = 0;
    while (taken < PEN_MIN(n, MAX_PIECES) && iov[taken].iov_len < left)
        left -= iov[taken++].iov_len;
    if (taken == PEN_MIN(n, MAX_PIECES))
        return pen__sys->pwritev(s->fd, iov, taken, s->bytes);
    size_t whole = iov[taken].iov_len;
    iov[taken].iov_len = left;
    int64_t done = pen__sys->pwritev(s->fd, iov, taken + 1, s->bytes);
    iov[taken].iov_len = whole;
    return done;
}

static int upload_pieces(PenSink *s, const struct iovec *iov, int n, PenError *reterr)
{
    int r = pen__upload_add(s->upload, iov, n, reterr);
    for (int i = 0; i < n && r == PEN_OK; i++)
        s->bytes += iov[i].iov_len;
    return r;
}

int pen__sink_writev(PenSink *s, struct iovec *iov, int n, PenError *reterr)
{
    if (s->upload)
        return upload_pieces(s, iov, n, reterr);
    while (n > 0) {
        if (iov->iov_len == 0) {
            iov++;
            n--;
            continue;
        }
        int64_t done = write_some(s, iov, n);
        if (done <= 0)
            return pen__fail_os(reterr, done < 0 ? (int)-done : ENOSPC, "io/sink",
                                "%s: cannot write at offset %" PRIu64, s->part_path, s->bytes);
        s->bytes += (uint64_t)done;
        size_t left = (size_t)done;
        while (n > 0 && left >= iov->iov_len) {
            left -= iov->iov_len;
            iov++;
            n--;
        }
        if (n > 0) {
            iov->iov_base = (char *)iov->iov_base + left;
            iov->iov_len -= left;
        }
    }
    return PEN_OK;
}

int pen__sink_write(PenSink *s, const void *data, size_t bytes, PenError *reterr)
{
    struct iovec iov = {(void *)data, bytes};
    return pen__sink_writev(s, &iov, 1, reterr);
}

uint64_t pen__sink_bytes(const PenSink *s)
{
    return s->bytes;
}

static int finish_upload(PenSink **sink, PenError *reterr)
{
    int r = pen__upload_finish(&(*sink)->upload, NULL, reterr);
    pen__free(*sink);
    *sink = NULL;
    return r;
}

static void free_sink(PenSink **sink)
{
    PenSink *s = *sink;
    if (s->fd >= 0)
        pen__sys->close(s->fd);
    pen__inner_close(&s->part);
    pen__free(s->part_path);
    pen__free(s);
    *sink = NULL;
}

static int sync_close(PenSink *s, PenError *reterr)
{
    int r = pen__sys->fsync(s->fd);
    if (r < 0)
        return pen__fail_os(reterr, -r, "io/sink", "%s: cannot sync", s->part_path);
    r = pen__sys->close(s->fd);
    s->fd = -1;
    return r < 0 ? pen__fail_os(reterr, -r, "io/sink", "%s: cannot close", s->part_path) : PEN_OK;
}

int pen__sink_commit_in(PenSink **sink, const char *path, size_t root_bytes, PenError *reterr)
{
    PenSink *s = *sink;
    PenInner to = PEN_INNER_NONE;
    if (s->upload)
        return finish_upload(sink, reterr);
    int r = sync_close(s, reterr);
    if (r == PEN_OK)
        r = pen__inner_find(path, root_bytes, &to, reterr);
    int renamed = r == PEN_OK ? pen__sys->rename(s->part.dir, s->part.name, to.dir, to.name) : 0;
    if (renamed < 0)
        r = pen__fail_os(reterr, -renamed, "io/sink", "%s: cannot rename to %s", s->part_path,
                         path);
    if (r < 0) {
        pen__sink_abort(sink);
    } else {
        free_sink(sink);
        r = pen__sys->fsync(to.dir);
        if (r < 0)
            r = pen__fail_os(reterr, -r, "io/sink", "%s: cannot sync its directory", path);
    }
    pen__inner_close(&to);
    return r;
}

int pen__sink_commit(PenSink **sink, const char *path, PenError *reterr)
{
    return pen__sink_commit_in(sink, path, pen__inner_root(path), reterr);
}

void pen__sink_abort(PenSink **sink)
{
    if (!sink || !*sink)
        return;
    PenSink *s = *sink;
    pen__upload_abort(&s->upload);
    if (s->part_path)
        pen__sys->unlink(s->part.dir, s->part.name);
    free_sink(sink);
}

int pen__file_store_in(const char *part_path, const char *path, size_t root_bytes, const void *data,
                       size_t bytes, PenError *reterr)
{
    PenSink *s = NULL;
    int r = pen__sink_open(part_path, &s, reterr);
    if (r < 0)
        return r;
    r = pen__sink_write(s, data, bytes, reterr);
    if (r < 0) {
        pen__sink_abort(&s);
        return r;
    }
    return pen__sink_commit_in(&s, path, root_bytes, reterr);
}

int pen__file_store(const char *part_path, const char *path, const void *data, size_t bytes,
                    PenError *reterr)
{
    return pen__file_store_in(part_path, path, pen__inner_root(path), data, bytes, reterr);
}
