/* SPDX-License-Identifier: Apache-2.0 */
#include "base/secret_memory.h"

#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "base/sys.h"

#define WHERE "net/secret"

enum { PAGE = 4096 };

int pen__secret_memory_new(size_t cap, PenSecretMemory *ret, PenError *reterr)
{
    size_t whole = (cap / PAGE + 1) * PAGE; /* at least one byte more */
    void *p = cap < SIZE_MAX / 2 ? pen__sys->pages_take(whole) : NULL;
    if (!p)
        return pen__fail_memory(reterr, WHERE, "memory for secrets");
    *ret = (PenSecretMemory){.data = p, .cap = whole};
    return PEN_OK;
}

void pen__secret_memory_free(PenSecretMemory *room)
{
    if (!room->data)
        return;
    explicit_bzero(room->data, room->cap);
    pen__sys->pages_give(room->data, room->cap);
    *room = (PenSecretMemory){0};
}

int pen__secret_memory_add(PenSecretMemory *room, const void *data, size_t bytes)
{
    if (bytes >= room->cap - room->bytes)
        return -1;
    memcpy(room->data + room->bytes, data, bytes);
    room->bytes += bytes;
    return 0;
}

/* 1: there is more of it than the room holds. */
static int read_all(int fd, const char *path, PenSecretMemory *room, PenError *reterr)
{
    for (;;) {
        size_t want = room->cap - room->bytes - 1;
        if (!want)
            return 1;
        int64_t n = pen__sys->pread(fd, room->data + room->bytes, want, room->bytes);
        if (n < 0)
            return pen__fail_os(reterr, (int)-n, WHERE, "%s: cannot read it", path);
        if (n == 0)
            return 0;
        room->bytes += (size_t)n;
    }
}

/* The size that a file says is where to begin; those of /proc say nothing. */
static int read_file(int fd, const char *path, uint64_t said, size_t limit, PenSecretMemory *room,
                     PenError *reterr)
{
    size_t cap = said < limit ? (size_t)said + 1 : limit + 1;
    int r = pen__secret_memory_new(cap, room, reterr);
    if (r == PEN_OK)
        r = read_all(fd, path, room, reterr);
    if (r == 1 && cap <= limit) {
        pen__secret_memory_free(room);
        r = pen__secret_memory_new(limit + 1, room, reterr);
        if (r == PEN_OK)
            r = read_all(fd, path, room, reterr);
    }
    if (r == 1 || (r == 0 && room->bytes > limit))
        r = pen__fail(reterr, PEN_E_LIMIT, WHERE, "%s: longer than %zu bytes", path, limit);
    return r;
}

int pen__secret_memory_read(const char *path, size_t limit, PenSecretMemory *ret, PenError *reterr)
{
    PenFileStat st;
    int e = pen__sys->stat_path(path, &st);
    if (e < 0)
        return pen__fail_os(reterr, -e, WHERE, "%s", path);
    if (!st.is_file)
        return pen__fail(reterr, PEN_E_NOT_FOUND, WHERE, "%s: expected a file, found %s", path,
                         st.what);
    int fd = pen__sys->open(path, PEN_OPEN_READ);
    if (fd < 0)
        return pen__fail_os(reterr, -fd, WHERE, "%s", path);
    PenSecretMemory room = {0};
    int r = read_file(fd, path, st.bytes, limit, &room, reterr);
    pen__sys->close(fd);
    if (r < 0)
        pen__secret_memory_free(&room);
    else
        *ret = room;
    return r;
}
