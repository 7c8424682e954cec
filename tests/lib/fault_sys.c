/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/fault_sys.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/attr.h"
#include "base/sys.h"

static FaultPlan plan;
static atomic_uint_fast64_t calls, by_kind[FAULT_KINDS], n_failed, first_kind;
static atomic_int_fast64_t memory, files;

const char *fault_name(FaultKind kind)
{
    static const char *const names[] = {"alloc", "open",    "close",  "read",   "write", "sync",
                                        "stat",  "rename",  "mkdir",  "unlink", "rmdir", "lock",
                                        "list",  "random",  "thread", "range",  "room",  "memory",
                                        "name",  "resolve", "spawn",  "send",   "map"};
    return names[kind];
}

static bool fails(FaultKind kind)
{
    uint64_t n = atomic_fetch_add(&calls, 1) + 1;
    atomic_fetch_add(&by_kind[kind], 1);
    if (!plan.at || n < plan.at || (n > plan.at && !plan.for_ever))
        return false;
    if (atomic_fetch_add(&n_failed, 1) == 0)
        atomic_store(&first_kind, kind);
    return true;
}

/* What the call may say: the usual, or something else. */
static int reason(int usual, int other)
{
    return plan.other ? -other : -usual;
}

static void *fault_alloc(size_t bytes)
{
    void *p = fails(FAULT_ALLOC) ? NULL : malloc(bytes);
    atomic_fetch_add(&memory, p != NULL);
    return p;
}

static void *fault_resize(void *old, size_t bytes)
{
    void *p = fails(FAULT_ALLOC) ? NULL : realloc(old, bytes);
    atomic_fetch_add(&memory, p && !old);
    return p;
}

static void fault_release(void *p)
{
    atomic_fetch_sub(&memory, 1);
    free(p);
}

static int fault_open(const char *path, int how)
{
    if (fails(FAULT_OPEN))
        return how == PEN_OPEN_CREATE || how == PEN_OPEN_NEW ? reason(ENOSPC, EACCES)
                                                             : reason(EMFILE, EIO);
    int fd = pen__sys_real.open(path, how);
    atomic_fetch_add(&files, fd >= 0);
    return fd;
}

static int fault_open_at(int dir, const char *name, int how)
{
    if (fails(FAULT_OPEN))
        return how == PEN_OPEN_CREATE ? reason(ENOSPC, EACCES) : reason(EMFILE, EIO);
    int fd = pen__sys_real.open_at(dir, name, how);
    atomic_fetch_add(&files, fd >= 0);
    return fd;
}

/* A failing close has closed all the same. */
static int fault_close(int fd)
{
    bool fail = fails(FAULT_CLOSE);
    atomic_fetch_sub(&files, 1);
    int r = pen__sys_real.close(fd);
    return fail ? reason(EIO, ENOSPC) : r;
}

static int64_t fault_pread(int fd, void *buf, size_t bytes, uint64_t offset)
{
    if (fails(FAULT_PREAD))
        return reason(EIO, ESTALE);
    return pen__sys_real.pread(fd, buf, plan.trickle ? 1 : bytes, offset);
}

static int64_t fault_preadv(int fd, const struct iovec *iov, int n, uint64_t offset)
{
    struct iovec one = {iov->iov_base, PEN_MIN(iov->iov_len, 1u)};
    if (fails(FAULT_PREAD))
        return reason(EIO, ESTALE);
    return pen__sys_real.preadv(fd, plan.trickle ? &one : iov, plan.trickle ? 1 : n, offset);
}

static int64_t fault_pwritev(int fd, const struct iovec *iov, int n, uint64_t offset)
{
    struct iovec one = {iov->iov_base, 1};
    if (fails(FAULT_PWRITEV))
        return reason(ENOSPC, EIO);
    return pen__sys_real.pwritev(fd, plan.trickle ? &one : iov, plan.trickle ? 1 : n, offset);
}

static int fault_fsync(int fd)
{
    return fails(FAULT_FSYNC) ? reason(EIO, ENOSPC) : pen__sys_real.fsync(fd);
}

static int fault_stat_fd(int fd, PenFileStat *ret)
{
    return fails(FAULT_STAT) ? reason(EIO, ENOMEM) : pen__sys_real.stat_fd(fd, ret);
}

static int fault_stat_path(const char *path, PenFileStat *ret)
{
    return fails(FAULT_STAT) ? reason(EIO, EACCES) : pen__sys_real.stat_path(path, ret);
}

static int fault_stat_at(int dir, const char *name, PenFileStat *ret)
{
    return fails(FAULT_STAT) ? reason(EIO, EACCES) : pen__sys_real.stat_at(dir, name, ret);
}

static int fault_real_path(const char *path, char *ret, size_t cap)
{
    return fails(FAULT_REAL_PATH) ? reason(EIO, EACCES) : pen__sys_real.real_path(path, ret, cap);
}

static int fault_disk_room(int fd, PenDiskSpace *ret)
{
    return fails(FAULT_ROOM) ? reason(EIO, ENOSYS) : pen__sys_real.disk_space(fd, ret);
}

static int fault_mkdir_own(const char *path)
{
    return fails(FAULT_MKDIR) ? reason(ENOSPC, EROFS) : pen__sys_real.mkdir_own(path);
}

static int fault_lock_byte(int fd, int how, uint64_t offset)
{
    /* What is given back, is given back. */
    if (how != PEN_RANGE_FREE && fails(FAULT_LOCK_BYTE))
        return reason(EAGAIN, ENOLCK);
    return pen__sys_real.lock_byte(fd, how, offset);
}

static int fault_rename(int from_dir, const char *from, int to_dir, const char *to)
{
    return fails(FAULT_RENAME) ? reason(EIO, ENOSPC)
                               : pen__sys_real.rename(from_dir, from, to_dir, to);
}

static int fault_mkdir(int dir, const char *name)
{
    return fails(FAULT_MKDIR) ? reason(ENOSPC, EACCES) : pen__sys_real.mkdir(dir, name);
}

static int fault_unlink(int dir, const char *name)
{
    return fails(FAULT_UNLINK) ? reason(EIO, EACCES) : pen__sys_real.unlink(dir, name);
}

static int fault_rmdir(int dir, const char *name)
{
    return fails(FAULT_RMDIR) ? reason(EIO, EACCES) : pen__sys_real.rmdir(dir, name);
}

static int fault_lock(int fd, int exclusive)
{
    return fails(FAULT_LOCK) ? reason(EWOULDBLOCK, ENOLCK) : pen__sys_real.lock(fd, exclusive);
}

static int fault_memory_make(const char *name, uint64_t bytes)
{
    if (fails(FAULT_MEMORY))
        return reason(ENOMEM, EMFILE);
    int fd = pen__sys_real.memory_make(name, bytes);
    atomic_fetch_add(&files, fd >= 0);
    return fd;
}

static int fault_memory_seal(int fd)
{
    return fails(FAULT_MEMORY) ? reason(EBUSY, EPERM) : pen__sys_real.memory_seal(fd);
}

static int fault_memory_is_sealed(int fd)
{
    return fails(FAULT_MEMORY) ? reason(EINVAL, EBADF) : pen__sys_real.memory_is_sealed(fd);
}

static int fault_name_take(const char *name)
{
    if (fails(FAULT_NAME))
        return reason(EMFILE, EAFNOSUPPORT);
    int fd = pen__sys_real.name_take(name);
    atomic_fetch_add(&files, fd >= 0);
    return fd;
}

/* A directory whose reading breaks off after the first entry. */
typedef struct Broken {
    int (*each)(void *ctx, const char *name);
    void *ctx;
} Broken;

static int only_one(void *ctx, const char *name)
{
    Broken *b = ctx;
    int r = b->each(b->ctx, name);
    return r ? r : -EIO;
}

static int fault_list(const char *path, int (*each)(void *ctx, const char *name), void *ctx)
{
    Broken b = {each, ctx};
    if (!fails(FAULT_LIST))
        return pen__sys_real.list(path, each, ctx);
    if (!plan.other)
        return -EMFILE;
    int r = pen__sys_real.list(path, only_one, &b);
    return r ? r : -EIO;
}

static int fault_list_fd(int dir, int (*each)(void *ctx, const char *name), void *ctx)
{
    Broken b = {each, ctx};
    if (!fails(FAULT_LIST))
        return pen__sys_real.list_fd(dir, each, ctx);
    if (!plan.other)
        return -EMFILE;
    int r = pen__sys_real.list_fd(dir, only_one, &b);
    return r ? r : -EIO;
}

static int fault_random(void *buf, size_t bytes)
{
    return fails(FAULT_RANDOM) ? -EIO : pen__sys_real.random(buf, bytes);
}

static int fault_thread_start(pthread_t *ret, void *(*run)(void *), void *arg)
{
    return fails(FAULT_THREAD) ? reason(EAGAIN, ENOMEM) : pen__sys_real.thread_start(ret, run, arg);
}

static int fault_spawn(const PenSpawn *what, PenSpawned *ret)
{
    int r = fails(FAULT_SPAWN) ? reason(EAGAIN, ENOMEM) : pen__sys_real.spawn(what, ret);
    if (r == 0)
        atomic_fetch_add(&files, 2 + (ret->side_fd >= 0));
    return r;
}

static int64_t fault_send(int fd, const void *buf, size_t bytes)
{
    return fails(FAULT_SEND) ? reason(ENOBUFS, EPIPE) : pen__sys_real.send(fd, buf, bytes);
}

static const void *fault_memory_map(int fd, uint64_t bytes)
{
    const void *p = fails(FAULT_MAP) ? NULL : pen__sys_real.memory_map(fd, bytes);
    atomic_fetch_add(&memory, p != NULL);
    return p;
}

static void fault_memory_unmap(const void *p, uint64_t bytes)
{
    atomic_fetch_sub(&memory, 1);
    pen__sys_real.memory_unmap(p, bytes);
}

void fault_begin(const FaultPlan *p)
{
    static PenSys sys;
    sys = pen__sys_real;
    sys.alloc = fault_alloc;
    sys.resize = fault_resize;
    sys.release = fault_release;
    sys.open = fault_open;
    sys.open_at = fault_open_at;
    sys.close = fault_close;
    sys.pread = fault_pread;
    sys.preadv = fault_preadv;
    sys.pwritev = fault_pwritev;
    sys.fsync = fault_fsync;
    sys.stat_fd = fault_stat_fd;
    sys.stat_path = fault_stat_path;
    sys.stat_at = fault_stat_at;
    sys.disk_space = fault_disk_room;
    sys.real_path = fault_real_path;
    sys.rename = fault_rename;
    sys.mkdir = fault_mkdir;
    sys.mkdir_own = fault_mkdir_own;
    sys.unlink = fault_unlink;
    sys.rmdir = fault_rmdir;
    sys.lock = fault_lock;
    sys.lock_byte = fault_lock_byte;
    sys.list = fault_list;
    sys.list_fd = fault_list_fd;
    sys.random = fault_random;
    sys.thread_start = fault_thread_start;
    sys.memory_make = fault_memory_make;
    sys.memory_seal = fault_memory_seal;
    sys.memory_is_sealed = fault_memory_is_sealed;
    sys.name_take = fault_name_take;
    sys.spawn = fault_spawn;
    sys.send = fault_send;
    sys.memory_map = fault_memory_map;
    sys.memory_unmap = fault_memory_unmap;
    plan = *p;
    atomic_store(&calls, 0);
    atomic_store(&n_failed, 0);
    atomic_store(&memory, 0);
    atomic_store(&files, 0);
    for (int i = 0; i < FAULT_KINDS; i++)
        atomic_store(&by_kind[i], 0);
    pen__sys = &sys;
}

bool fault_is_for_ever(void)
{
    return plan.for_ever;
}

FaultSeen fault_end(void)
{
    pen__sys = &pen__sys_real;
    FaultSeen seen = {.calls = atomic_load(&calls),
                      .failed = atomic_load(&n_failed),
                      .first = (FaultKind)atomic_load(&first_kind),
                      .memory = atomic_load(&memory),
                      .files = atomic_load(&files)};
    for (int i = 0; i < FAULT_KINDS; i++)
        seen.by_kind[i] = atomic_load(&by_kind[i]);
    return seen;
}
