/* SPDX-License-Identifier: Apache-2.0 */
/* One entry: found, read, claimed, stored, dropped. Written beside its place and renamed: what has
 * its name is whole, unless the power went out or somebody changed it, which its reader notices. */
#include <errno.h>
#include <limits.h>

#include "base/attr.h"
#include "base/thread.h"
#include "cache/cache_impl.h"

#define FULL_NS 10000000000u  /* after which a full cache is looked at again */
#define ERROR_NS 30000000000u /* and one whose disk fails */
#define KEEP_FREE (1ull << 30)

/* ---- reading -------------------------------------------------------------------------------- */

int pen__cache_find(PenCache *c, PenCacheKey key, PenCacheEntry *ret)
{
    char path[PEN_CACHE_PATH];
    PenFileStat st;
    pen__cache_dir_entry(c, key, path);
    int fd = pen__sys->open(path, PEN_OPEN_PLAIN);
    if (fd < 0)
        return 0;
    if (pen__sys->stat_fd(fd, &st) < 0 || !st.is_file) {
        (void)pen__sys->close(fd);
        return 0;
    }
    *ret = (PenCacheEntry){.fd = fd, .bytes = st.bytes};
    return 1;
}

void pen__cache_leave(PenCacheEntry *entry)
{
    (void)pen__sys->close(entry->fd);
    entry->fd = -1;
}

int pen__cache_read_part(PenCacheEntry *entry, uint64_t offset, uint64_t bytes, void *buf)
{
    uint64_t done = 0;
    while (done < bytes) {
        int64_t n =
            pen__sys->pread(entry->fd, (char *)buf + done, (size_t)(bytes - done), offset + done);
        if (n <= 0)
            break;
        done += (uint64_t)n;
    }
    pen__cache_leave(entry);
    return done == bytes;
}

int pen__cache_read(PenCacheEntry *entry, void *buf)
{
    return pen__cache_read_part(entry, 0, entry->bytes, buf);
}

int pen__cache_claim(PenCache *c, PenCacheKey key)
{
    int r = pen__range_lock(c, PEN_RANGE_ALONE, pen__range_entry(c->id, key), 0);
    return r == 0 ? 1 : r == -EAGAIN ? 0 : r;
}

void pen__cache_release(PenCache *c, PenCacheKey key)
{
    pen__range_free(c, pen__range_entry(c->id, key));
}

/* ---- whether to store ----------------------------------------------------------------------- */

static void be_quiet(PenCache *c, int why, uint64_t ns)
{
    atomic_store(&c->quiet_why, why);
    atomic_store(&c->quiet_until_ns, pen__deadline_after(ns));
}

int pen__cache_wants(PenCache *c, uint64_t bytes)
{
    int why = PEN_COUNT_FULL;
    if (bytes <= c->limit) {
        uint64_t until = atomic_load(&c->quiet_until_ns);
        if (!until || pen__sys->now_ns() >= until)
            return 1;
        why = atomic_load(&c->quiet_why);
    }
    pen__cache_count(c, why, 1);
    return 0;
}

static bool is_full(int r)
{
    return r == -ENOSPC || r == -EDQUOT;
}

/* Something else has the entry's name: that is no failure of the disk. */
static bool is_in_the_way(int r)
{
    return r == -EISDIR || r == -ENOTDIR || r == -ENOTEMPTY || r == -EEXIST || r == -ELOOP;
}

static void note_failure(PenCache *c, int r)
{
    int why = is_full(r) ? PEN_COUNT_DISK : r == -EAGAIN ? PEN_COUNT_BUSY : PEN_COUNT_ERROR;
    pen__cache_count(c, why, 1);
    if (why != PEN_COUNT_BUSY && !is_in_the_way(r))
        be_quiet(c, why, ERROR_NS);
}

/* The smaller of 1 % and 1 GiB stays free on the disk. What cannot be known does not hinder. */
static uint64_t missing_on_disk(PenCache *c, uint64_t bytes)
{
    PenDiskSpace disk;
    if (pen__sys->disk_space(c->fd, &disk) < 0)
        return 0;
    uint64_t need = PEN_MIN(disk.bytes / 100, KEEP_FREE) + bytes;
    return need > disk.free_bytes ? need - disk.free_bytes : 0;
}

/* 0: `bytes` are in the accounting. > 0: so many are missing, and why. < 0: -errno. */
static int64_t try_reserve(PenCache *c, uint64_t bytes, int *ret_why)
{
    PenAccounting b;
    int r = pen__accounting_begin(c, PEN_SHORT_NS(c), &b);
    if (r == -ENODATA || r == -EBADMSG) {
        (void)pen__accounting_end(c, NULL);
        return -EBADMSG;
    }
    if (r < 0)
        return r;
    uint64_t over = b.used > c->limit - bytes ? b.used - (c->limit - bytes) : 0;
    uint64_t low = missing_on_disk(c, bytes);
    if (!over && !low) {
        b.used += bytes;
        b.pending++;
        return pen__accounting_end(c, &b);
    }
    (void)pen__accounting_end(c, NULL);
    *ret_why = over ? PEN_COUNT_FULL : PEN_COUNT_DISK;
    return (int64_t)PEN_MIN(PEN_MAX(over, low), (uint64_t)INT64_MAX / 2);
}

static bool reserve(PenCache *c, uint64_t bytes)
{
    int why = PEN_COUNT_FULL;
    int64_t missing = try_reserve(c, bytes, &why);
    if (missing == -EBADMSG) {
        pen__accounting_recount(c, false);
        missing = try_reserve(c, bytes, &why);
    }
    if (missing > 0 && pen__cache_evict(c, (uint64_t)missing) >= (uint64_t)missing)
        missing = try_reserve(c, bytes, &why);
    if (missing < 0)
        note_failure(c, (int)missing);
    if (missing > 0) {
        pen__cache_count(c, why, 1);
        be_quiet(c, why, FULL_NS);
    }
    return missing == 0;
}

/* ---- storing -------------------------------------------------------------------------------- */

static int open_temp(PenCache *c, char path[PEN_CACHE_PATH])
{
    int r = pen__cache_dir_temp(c, path);
    if (r < 0)
        return r;
    int fd = pen__sys->open(path, PEN_OPEN_NEW);
    if (fd != -ENOENT)
        return fd;
    char folder[PEN_CACHE_PATH];
    pen__cache_dir_path(c, c->id, NULL, folder);
    r = pen__cache_dir_make(folder);
    return r < 0 ? r : pen__sys->open(path, PEN_OPEN_NEW);
}

static int write_all(int fd, const void *data, uint64_t bytes)
{
    for (uint64_t done = 0; done < bytes;) {
        struct iovec iov = {(char *)data + done, (size_t)(bytes - done)};
        int64_t n = pen__sys->pwritev(fd, &iov, 1, done);
        if (n <= 0)
            return n < 0 ? (int)n : -ENOSPC;
        done += (uint64_t)n;
    }
    return 0;
}

static int put_in_place(PenCache *c, PenCacheKey key, const char *temp)
{
    char folder[PEN_CACHE_PATH], path[PEN_CACHE_PATH];
    pen__cache_dir_folder(c, key, folder);
    int r = pen__cache_dir_make(folder);
    if (r < 0)
        return r;
    pen__cache_dir_entry(c, key, path);
    return pen__sys->rename(PEN_AT_CWD, temp, PEN_AT_CWD, path);
}

static int write_entry(PenCache *c, PenCacheKey key, const void *data, uint64_t bytes)
{
    char temp[PEN_CACHE_PATH];
    int fd = open_temp(c, temp);
    if (fd < 0)
        return fd;
    int r = write_all(fd, data, bytes);
    int closed = pen__sys->close(fd);
    if (r == 0)
        r = closed;
    if (r == 0)
        r = put_in_place(c, key, temp);
    if (r < 0)
        (void)pen__sys->unlink(PEN_AT_CWD, temp);
    return r;
}

int pen__cache_store(PenCache *c, PenCacheKey key, const void *data, uint64_t bytes)
{
    if (!pen__cache_wants(c, bytes) || !reserve(c, bytes))
        return 0;
    int r = write_entry(c, key, data, bytes);
    (void)pen__accounting_change(c, r < 0 ? -(int64_t)bytes : 0, -1);
    if (r < 0) {
        note_failure(c, r);
        return 0;
    }
    pen__cache_count(c, PEN_COUNT_STORED, 1);
    pen__cache_count(c, PEN_COUNT_STORED_BYTES, bytes);
    return 1;
}

void pen__cache_drop(PenCache *c, PenCacheKey key)
{
    char folder[PEN_CACHE_PATH], path[PEN_CACHE_PATH];
    PenFileStat st;
    pen__cache_dir_folder(c, key, folder);
    pen__cache_dir_entry(c, key, path);
    if (!pen__cache_dir_is_own(folder) || pen__sys->stat_at(PEN_AT_CWD, path, &st) < 0 || st.is_dir)
        return;
    /* What has the name of an entry is in its way, whatever it is; a link goes, not what it names.
     */
    if (pen__sys->unlink(PEN_AT_CWD, path) == 0 && st.is_file)
        (void)pen__accounting_change(c, -(int64_t)PEN_MIN(st.bytes, (uint64_t)INT64_MAX), 0);
}
