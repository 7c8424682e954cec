/* SPDX-License-Identifier: Apache-2.0 */
#include "ingest/spill/spill.h"

#include <errno.h>
#include <inttypes.h>

#include "base/attr.h"
#include "base/sys.h"
#include "io/inner.h"

#define WHERE "ingest/spill"
#define MAX_WRITE ((size_t)512 << 10) /* as in io/sink.c */

static int make(PenSpill *s, PenError *reterr)
{
    PenInner at = PEN_INNER_NONE;
    int r = pen__inner_find(s->path, pen__inner_root(s->path), &at, reterr);
    if (r < 0)
        return r;
    int fd = pen__sys->open_at(at.dir, at.name, PEN_OPEN_NEW);
    if (fd == -EEXIST) { /* of a process that was killed between the two calls */
        fd = pen__sys->unlink(at.dir, at.name);
        fd = fd < 0 ? fd : pen__sys->open_at(at.dir, at.name, PEN_OPEN_NEW);
    }
    r = fd < 0 || s->is_named ? PEN_MIN(fd, 0) : pen__sys->unlink(at.dir, at.name);
    if (r < 0) {
        r = pen__fail_os(reterr, -r, WHERE, "%s: cannot create a temporary file", s->path);
        if (fd >= 0)
            pen__sys->close(fd);
    } else {
        s->fd = fd;
        s->is_open = s->is_made = true;
    }
    pen__inner_close(&at);
    return r;
}

int pen__spill_write(PenSpill *s, const void *data, size_t bytes, PenError *reterr)
{
    int r = s->is_open ? PEN_OK : make(s, reterr);
    if (r == PEN_OK)
        r = pen__spill_put(s, data, bytes, s->bytes, reterr);
    if (r == PEN_OK)
        s->bytes += bytes;
    return r;
}

int pen__spill_put(const PenSpill *s, const void *data, size_t bytes, uint64_t offset,
                   PenError *reterr)
{
    const uint8_t *p = data;
    while (bytes) {
        struct iovec piece = {(void *)p, PEN_MIN(bytes, MAX_WRITE)};
        int64_t done = pen__sys->pwritev(s->fd, &piece, 1, offset);
        if (done <= 0)
            return pen__fail_os(reterr, done < 0 ? (int)-done : ENOSPC, WHERE,
                                "%s: cannot write to a temporary file at offset %" PRIu64, s->path,
                                offset);
        p += done;
        bytes -= (size_t)done;
        offset += (uint64_t)done;
    }
    return PEN_OK;
}

int pen__spill_read(const PenSpill *s, void *to, size_t bytes, uint64_t offset, PenError *reterr)
{
    uint8_t *p = to;
    while (bytes) {
        int64_t done = pen__sys->pread(s->fd, p, bytes, offset);
        if (done <= 0)
            return pen__fail_os(reterr, done < 0 ? (int)-done : EIO, WHERE,
                                "%s: cannot read a temporary file at offset %" PRIu64, s->path,
                                offset);
        p += done;
        bytes -= (size_t)done;
        offset += (uint64_t)done;
    }
    return PEN_OK;
}

void pen__spill_finish(PenSpill *s)
{
    if (s->is_open)
        pen__sys->close(s->fd);
    s->is_open = false;
}

void pen__spill_close(PenSpill *s)
{
    pen__spill_finish(s);
    if (s->is_named && s->is_made) /* what cannot be removed goes with its folder */
        (void)pen__inner_remove(s->path, pen__inner_root(s->path), NULL);
    *s = (PenSpill){.path = s->path, .is_named = s->is_named};
}
