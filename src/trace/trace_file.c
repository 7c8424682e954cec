/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/trace_file.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <zlib.h>

#include "base/error.h"
#include "base/sys.h"

#define WHERE "trace/file"

enum { GZIP_LEVEL = 1, GZIP_WINDOW = 15 + 16, GZIP_MEMORY = 8, PACKED_BYTES = 64 << 10 };

/* ---- opening ---- */

static int fail_path(const char *path, const char *found, PenError *reterr)
{
    return pen__fail(
        reterr, PEN_E_EXISTS, WHERE,
        "trace path '%s': expected a new name or a file, found %s; choose another name", path,
        found);
}

/* Removes a file that nobody writes a trace to. */
static int remove_old(const char *path, PenError *reterr)
{
    PenFileStat st;
    int r = pen__sys->stat_at(PEN_AT_CWD, path, &st);
    if (r < 0)
        return pen__fail_os(reterr, -r, WHERE, "trace path '%s': cannot inspect it", path);
    if (!st.is_file)
        return fail_path(path, st.what, reterr);
    int fd = pen__sys->open(path, PEN_OPEN_PLAIN);
    if (fd < 0)
        return pen__fail_os(reterr, -fd, WHERE, "trace path '%s': cannot replace it", path);
    r = pen__sys->lock(fd, 1);
    if (r == 0)
        r = pen__sys->unlink(PEN_AT_CWD, path);
    (void)pen__sys->close(fd);
    if (r == -EWOULDBLOCK)
        return fail_path(path, "one that a process is writing", reterr);
    return r < 0 ? pen__fail_os(reterr, -r, WHERE, "trace path '%s': cannot replace it", path)
                 : PEN_OK;
}

static int create(const char *path, int *ret_fd, PenError *reterr)
{
    int fd = pen__sys->open(path, PEN_OPEN_CREATE);
    if (fd == -EEXIST) {
        int r = remove_old(path, reterr);
        if (r < 0)
            return r;
        fd = pen__sys->open(path, PEN_OPEN_CREATE);
    }
    if (fd < 0)
        return pen__fail_os(reterr, -fd, WHERE, "trace path '%s': cannot create it", path);
    (void)pen__sys->lock(fd, 1); /* some file systems have no locks */
    *ret_fd = fd;
    return PEN_OK;
}

static void *zlib_alloc(void *ctx, unsigned n, unsigned each)
{
    (void)ctx;
    return pen__alloc_array(n, each);
}

static void zlib_release(void *ctx, void *p)
{
    (void)ctx;
    pen__free(p);
}

static int start_gzip(PenTraceFile *f, PenError *reterr)
{
    z_stream *z = pen__zalloc(sizeof *z);
    if (z) {
        z->zalloc = zlib_alloc;
        z->zfree = zlib_release;
    }
    if (!z || pen__buf_reserve(&f->packed, PACKED_BYTES) < 0 ||
        deflateInit2(z, GZIP_LEVEL, Z_DEFLATED, GZIP_WINDOW, GZIP_MEMORY, Z_DEFAULT_STRATEGY) !=
            Z_OK) {
        pen__free(z);
        pen__buf_free(&f->packed);
        return pen__fail_memory(reterr, WHERE, "gzip");
    }
    f->gzip = z;
    return PEN_OK;
}

int pen__trace_file_open(PenTraceFile *f, const char *path, PenError *reterr)
{
    size_t n = strlen(path);
    PenTraceFile made = {.fd = -1};
    int r = PEN_OK;
    if (n >= 3 && strcmp(path + n - 3, ".gz") == 0)
        r = start_gzip(&made, reterr);
    if (r == PEN_OK)
        r = create(path, &made.fd, reterr);
    if (r < 0) {
        (void)pen__trace_file_close(&made);
        return r;
    }
    *f = made;
    return PEN_OK;
}

/* ---- writing ---- */

static int write_all(PenTraceFile *f, const uint8_t *data, size_t bytes)
{
    for (size_t done = 0; done < bytes;) {
        struct iovec iov = {(void *)(data + done), bytes - done};
        int64_t n = pen__sys->pwritev(f->fd, &iov, 1, f->bytes);
        if (n <= 0)
            return n < 0 ? (int)n : -ENOSPC;
        done += (size_t)n;
        f->bytes += (uint64_t)n;
    }
    return 0;
}

/* What a reader needs for all of `text` is in the file afterwards. */
static int write_gzip(PenTraceFile *f, const PenBuf *text, bool end)
{
    z_stream *z = f->gzip;
    int r, state;
    z->next_in = text->data;
    z->avail_in = (unsigned)text->bytes;
    do {
        z->next_out = f->packed.data;
        z->avail_out = PACKED_BYTES;
        state = deflate(z, end ? Z_FINISH : Z_SYNC_FLUSH);
        r = state == Z_STREAM_ERROR ? -EIO
                                    : write_all(f, f->packed.data, PACKED_BYTES - z->avail_out);
    } while (r == 0 && z->avail_out == 0);
    return r;
}

int pen__trace_file_write(PenTraceFile *f, const PenBuf *text, bool end)
{
    if (text->bytes > UINT_MAX)
        return -EFBIG;
    return f->gzip ? write_gzip(f, text, end) : write_all(f, text->data, text->bytes);
}

int pen__trace_file_close(PenTraceFile *f)
{
    if (f->gzip)
        (void)deflateEnd(f->gzip);
    pen__free(f->gzip);
    pen__buf_free(&f->packed);
    int r = f->fd >= 0 ? pen__sys->close(f->fd) : 0;
    *f = (PenTraceFile){.fd = -1};
    return r;
}
