/* SPDX-License-Identifier: Apache-2.0 */
#include "io/memory_names.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"

enum { LIST_BYTES = 64 << 10 };

const char pen__memory_names_list[] = "/proc/net/unix";

typedef struct NameSearch {
    const char *prefix;
    int (*each)(void *ctx, const PenMemoryPlace *place);
    void *ctx;
} NameSearch;

void pen__memory_names_prefix(const char *what, char ret[PEN_MEMORY_NAME_BYTES])
{
    snprintf(ret, PEN_MEMORY_NAME_BYTES, "penstock/%u/%s", (unsigned)geteuid(), what);
}

int pen__memory_name_take(const char *prefix, int fd)
{
    char name[PEN_MEMORY_NAME_BYTES + 32];
    snprintf(name, sizeof name, "%s/%d.%d", prefix, (int)getpid(), fd);
    return pen__sys->name_take(name);
}

/* "1234.5", and no other spelling of these numbers. */
static bool parse_place(const char *text, PenMemoryPlace *ret)
{
    char *end, again[32];
    long pid = strtol(text, &end, 10);
    if (pid <= 0 || pid > INT32_MAX || *end != '.')
        return false;
    long file = strtol(end + 1, &end, 10);
    if (file < 0 || file > INT32_MAX || *end)
        return false;
    snprintf(again, sizeof again, "%ld.%ld", pid, file);
    if (strcmp(again, text) != 0)
        return false;
    ret->process = (int32_t)pid;
    snprintf(ret->path, sizeof ret->path, "/proc/%ld/fd/%ld", pid, file);
    return true;
}

/* A line of the list: "0000: 00000002 00000000 00000000 0002 01 12345 @penstock/0/..." */
static int try_line(const NameSearch *s, const char *line)
{
    PenMemoryPlace place;
    const char *name = strchr(line, '@');
    size_t n = strlen(s->prefix);
    if (!name || strncmp(name + 1, s->prefix, n) != 0 || name[1 + n] != '/')
        return 0;
    return parse_place(name + n + 2, &place) ? s->each(s->ctx, &place) : 0;
}

/* Sets *ret_done to the number of bytes that were searched: complete lines. */
static int try_lines(const NameSearch *s, char *text, size_t bytes, size_t *ret_done)
{
    size_t at = 0;
    int r = 0;
    for (char *end; r == 0 && (end = memchr(text + at, '\n', bytes - at));) {
        *end = 0;
        r = try_line(s, text + at);
        at = (size_t)(end - text) + 1;
    }
    *ret_done = at;
    return r;
}

static int search(const NameSearch *s, int fd, char *text)
{
    size_t used = 0, done;
    for (;;) {
        int64_t n = pen__sys->read(fd, text + used, LIST_BYTES - used);
        if (n <= 0)
            return (int)n;
        used += (size_t)n;
        int r = try_lines(s, text, used, &done);
        if (r != 0)
            return r;
        if (!done && used == LIST_BYTES)
            done = used; /* no name is so long */
        memmove(text, text + done, used - done);
        used -= done;
    }
}

int pen__memory_names_each(const char *prefix, int (*each)(void *ctx, const PenMemoryPlace *place),
                           void *ctx)
{
    const NameSearch s = {prefix, each, ctx};
    char *text = pen__alloc(LIST_BYTES);
    if (!text)
        return -ENOMEM;
    int fd = pen__sys->open(pen__memory_names_list, PEN_OPEN_READ);
    int r = fd < 0 ? fd : search(&s, fd, text);
    if (fd >= 0)
        pen__sys->close(fd);
    pen__free(text);
    return r;
}

static bool is_file_of_ours(const PenFileStat *st, uint64_t bytes)
{
    return st->is_file && st->uid == geteuid() && st->bytes == bytes;
}

int pen__memory_place_open(const PenMemoryPlace *place, uint64_t bytes, int how)
{
    PenFileStat st;
    /* Checked first: to open a device or a pipe can have an effect. */
    if (pen__sys->stat_path(place->path, &st) < 0 || !is_file_of_ours(&st, bytes))
        return -1;
    int fd = pen__sys->open(place->path, how);
    if (fd < 0)
        return -1;
    if (pen__sys->stat_fd(fd, &st) == 0 && is_file_of_ours(&st, bytes) &&
        pen__sys->memory_is_sealed(fd) >= 0)
        return fd;
    pen__sys->close(fd);
    return -1;
}
