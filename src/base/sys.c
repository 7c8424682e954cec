/* SPDX-License-Identifier: Apache-2.0 */
#include "base/sys.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/attr.h"
#include "base/spawn/spawn.h"

static int real_open_at(int dir, const char *name, int how)
{
    static const int ways[] = {
        [PEN_OPEN_READ] = O_RDONLY | O_NONBLOCK | O_NOCTTY,
        [PEN_OPEN_CREATE] = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW,
        [PEN_OPEN_DIR] = O_RDONLY | O_DIRECTORY,
        [PEN_OPEN_PLAIN] = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY,
        [PEN_OPEN_UPDATE] = O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY,
        [PEN_OPEN_NEW] = O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW,
        [PEN_OPEN_MEMORY] = O_RDWR | O_NONBLOCK | O_NOCTTY,
        [PEN_OPEN_INNER_DIR] = O_RDONLY | O_DIRECTORY | O_NOFOLLOW,
        [PEN_OPEN_PATH_DIR] = O_PATH | O_DIRECTORY | O_NOFOLLOW,
    };
    int fd;
    do
        fd = openat(dir, name, ways[how] | O_CLOEXEC, how == PEN_OPEN_NEW ? 0600 : 0666);
    while (fd < 0 && errno == EINTR);
    return fd < 0 ? -errno : fd;
}

static int real_open(const char *path, int how)
{
    return real_open_at(AT_FDCWD, path, how);
}

static int real_close(int fd)
{
    /* Linux has closed the descriptor even when it says EINTR. */
    return close(fd) < 0 && errno != EINTR ? -errno : 0;
}

static int64_t real_pread(int fd, void *buf, size_t bytes, uint64_t offset)
{
    ssize_t n;
    do
        n = pread(fd, buf, bytes, (off_t)offset);
    while (n < 0 && errno == EINTR);
    return n < 0 ? -errno : n;
}

static int64_t real_preadv(int fd, const struct iovec *iov, int n_iov, uint64_t offset)
{
    ssize_t n;
    do
        n = preadv(fd, iov, n_iov, (off_t)offset);
    while (n < 0 && errno == EINTR);
    return n < 0 ? -errno : n;
}

static int real_cache_drop(int fd, uint64_t offset, uint64_t bytes)
{
    char byte;
    struct iovec one = {.iov_base = &byte, .iov_len = 1};
    int r = posix_fadvise(fd, (off_t)offset, (off_t)bytes, POSIX_FADV_DONTNEED);
    if (r != 0)
        return -r;
    /* The middle: a page at the edge stays if the range has only a part of it. */
    if (preadv2(fd, &one, 1, (off_t)(offset + bytes / 2), RWF_NOWAIT) >= 0)
        return 0;
    return errno == EAGAIN ? 1 : -errno;
}

/* Asks the disk to begin with what is complete, so that fsync at the end has little left to wait
 * for. Only a hint: what it returns says nothing about the data, fsync does. */
static void start_writing(int fd, uint64_t from, uint64_t to)
{
    const uint64_t step = 16u << 20;
    if (from / step != to / step)
        sync_file_range(fd, (off_t)(from / step * step),
                        (off_t)(to / step * step - from / step * step), SYNC_FILE_RANGE_WRITE);
}

static int64_t real_pwritev(int fd, const struct iovec *iov, int n_iov, uint64_t offset)
{
    ssize_t n;
    do
        n = pwritev(fd, iov, n_iov, (off_t)offset);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return -errno;
    start_writing(fd, offset, offset + (uint64_t)n);
    return n;
}

static int real_fsync(int fd)
{
    /* Never tried again: after a failed fsync the kernel may have dropped the pages. */
    return fsync(fd) < 0 ? -errno : 0;
}

static const char *what_is(mode_t mode)
{
    switch (mode & S_IFMT) {
    case S_IFREG:
        return "a file";
    case S_IFDIR:
        return "a directory";
    case S_IFLNK:
        return "a symbolic link";
    case S_IFIFO:
        return "a FIFO";
    case S_IFSOCK:
        return "a socket";
    default:
        return "a device";
    }
}

static void stat_out(const struct stat *st, PenFileStat *ret)
{
    ret->bytes = (uint64_t)st->st_size;
    ret->disk_bytes = (uint64_t)st->st_blocks * 512;
    ret->is_dir = S_ISDIR(st->st_mode);
    ret->is_file = S_ISREG(st->st_mode);
    ret->uid = st->st_uid;
    ret->mode = st->st_mode & 07777;
    ret->what = what_is(st->st_mode);
    ret->mtime_ns = (int64_t)st->st_mtim.tv_sec * 1000000000 + st->st_mtim.tv_nsec;
    ret->ctime_ns = (int64_t)st->st_ctim.tv_sec * 1000000000 + st->st_ctim.tv_nsec;
    ret->inode = st->st_ino;
}

static int real_stat_fd(int fd, PenFileStat *ret)
{
    struct stat st;
    if (fstat(fd, &st) < 0)
        return -errno;
    stat_out(&st, ret);
    return 0;
}

static int real_stat_path(const char *path, PenFileStat *ret)
{
    struct stat st;
    if (stat(path, &st) < 0)
        return -errno;
    stat_out(&st, ret);
    return 0;
}

static int real_stat_at(int dir, const char *name, PenFileStat *ret)
{
    struct stat st;
    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return -errno;
    stat_out(&st, ret);
    return 0;
}

static int real_real_path(const char *path, char *ret, size_t cap)
{
    char *found = realpath(path, NULL);
    if (!found)
        return -errno;
    size_t n = strlen(found);
    if (n < cap)
        memcpy(ret, found, n + 1);
    free(found);
    return n < cap ? (int)n : -ERANGE;
}

static int real_disk_room(int fd, PenDiskSpace *ret)
{
    struct statvfs st;
    if (fstatvfs(fd, &st) < 0)
        return -errno;
    *ret = (PenDiskSpace){(uint64_t)st.f_blocks * st.f_frsize, (uint64_t)st.f_bavail * st.f_frsize};
    return 0;
}

static int real_rename(int from_dir, const char *from, int to_dir, const char *to)
{
    return renameat(from_dir, from, to_dir, to) < 0 ? -errno : 0;
}

static int real_mkdir(int dir, const char *name)
{
    return mkdirat(dir, name, 0777) < 0 ? -errno : 0;
}

static int real_mkdir_own(const char *path)
{
    return mkdir(path, 0700) < 0 ? -errno : 0;
}

static int real_unlink(int dir, const char *name)
{
    return unlinkat(dir, name, 0) < 0 ? -errno : 0;
}

static int real_rmdir(int dir, const char *name)
{
    return unlinkat(dir, name, AT_REMOVEDIR) < 0 ? -errno : 0;
}

static int real_lock(int fd, int exclusive)
{
    return flock(fd, (exclusive ? LOCK_EX : LOCK_SH) | LOCK_NB) < 0 ? -errno : 0;
}

static int real_lock_byte(int fd, int how, uint64_t offset)
{
    struct flock range = {.l_type = how == PEN_RANGE_ALONE    ? F_WRLCK
                                    : how == PEN_RANGE_SHARED ? F_RDLCK
                                                              : F_UNLCK,
                          .l_whence = SEEK_SET,
                          .l_start = (off_t)offset,
                          .l_len = 1};
    if (fcntl(fd, F_OFD_SETLK, &range) == 0)
        return 0;
    return errno == EACCES ? -EAGAIN : -errno;
}

/* Closes `dir`. */
static int list_entries(DIR *dir, int (*each)(void *ctx, const char *name), void *ctx)
{
    int r = 0;
    while (!r) {
        errno = 0;
        struct dirent *d = readdir(dir);
        if (!d) {
            r = -errno;
            break;
        }
        if (strcmp(d->d_name, ".") != 0 && strcmp(d->d_name, "..") != 0)
            r = each(ctx, d->d_name);
    }
    closedir(dir);
    return r;
}

static int real_list(const char *path, int (*each)(void *ctx, const char *name), void *ctx)
{
    DIR *dir = opendir(path);
    return dir ? list_entries(dir, each, ctx) : -errno;
}

static int real_list_fd(int fd, int (*each)(void *ctx, const char *name), void *ctx)
{
    int own = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = own < 0 ? NULL : fdopendir(own);
    if (dir)
        return list_entries(dir, each, ctx);
    int e = errno;
    if (own >= 0)
        close(own);
    return -e;
}

static uint64_t real_now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static uint64_t real_unix_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return t.tv_sec < 0 ? 0 : (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static uint64_t real_thread_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static int real_random(void *buf, size_t bytes)
{
    uint8_t *p = buf;
    while (bytes) {
        ssize_t n = getrandom(p, bytes, 0);
        if (n < 0 && errno != EINTR)
            return -errno;
        if (n > 0) {
            p += n;
            bytes -= (size_t)n;
        }
    }
    return 0;
}

static int real_thread_start(pthread_t *ret, void *(*run)(void *), void *arg)
{
    /* Signals belong to the program: our threads take none but those of their own faults, so that a
     * handler such as Python's faulthandler can tell where a thread was. */
    static const int own[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT};
    sigset_t all, old;
    sigfillset(&all);
    for (size_t i = 0; i < PEN_LEN(own); i++)
        sigdelset(&all, own[i]);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    int e = pthread_create(ret, NULL, run, arg);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return -e;
}

static const char *real_environment(const char *name)
{
    return getenv(name);
}

static void *real_pages_take(size_t bytes)
{
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        return NULL;
    (void)madvise(p, bytes, MADV_DONTDUMP); /* a child still sees them: it goes on using them */
    return p;
}

static void real_pages_give(void *p, size_t bytes)
{
    munmap(p, bytes);
}

static int64_t real_read(int fd, void *buf, size_t bytes)
{
    ssize_t n;
    do
        n = read(fd, buf, bytes);
    while (n < 0 && errno == EINTR);
    return n < 0 ? -errno : n;
}

static int64_t real_send(int fd, const void *buf, size_t bytes)
{
    ssize_t n;
    do
        n = send(fd, buf, bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
    while (n < 0 && errno == EINTR);
    return n < 0 ? -errno : n;
}

static int real_poll(struct pollfd *fds, unsigned n, int timeout_ms)
{
    int r = poll(fds, n, timeout_ms);
    return r < 0 ? (errno == EINTR ? 0 : -errno) : r;
}

static int real_process_ended(int pid, PenExit *ret)
{
    siginfo_t how = {.si_pid = 0};
    if (waitid(P_PID, (id_t)pid, &how, WEXITED | WNOHANG | WNOWAIT) < 0) {
        *ret = (PenExit){.code = -1, .lost = 1};
        return 1;
    }
    if (how.si_pid == 0)
        return 0;
    int by_itself = how.si_code == CLD_EXITED;
    *ret =
        (PenExit){.code = by_itself ? how.si_status : -1, .signal = by_itself ? 0 : how.si_status};
    return 1;
}

static void real_process_kill(int pid)
{
    (void)kill(-pid, SIGKILL);
}

static void real_process_reap(int pid)
{
    (void)waitpid(pid, NULL, WNOHANG);
}

static int real_memory_make(const char *name, uint64_t bytes)
{
    int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0)
        return -errno;
    if (fchmod(fd, 0600) == 0 && ftruncate(fd, (off_t)bytes) == 0 &&
        fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) == 0)
        return fd;
    int e = errno;
    close(fd);
    return -e;
}

static int real_memory_seal(int fd)
{
    return fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SEAL) < 0 ? -errno : 0;
}

static int real_memory_is_sealed(int fd)
{
    int seals = fcntl(fd, F_GET_SEALS);
    if (seals < 0)
        return -errno;
    if (!(seals & F_SEAL_SHRINK) || !(seals & F_SEAL_GROW))
        return -EINVAL;
    return (seals & F_SEAL_WRITE) != 0;
}

static const void *real_memory_map(int fd, uint64_t bytes)
{
    void *p = mmap(NULL, (size_t)bytes, PROT_READ, MAP_SHARED, fd, 0);
    return p == MAP_FAILED ? NULL : p;
}

static void real_memory_unmap(const void *p, uint64_t bytes)
{
    munmap((void *)(uintptr_t)p, (size_t)bytes);
}

static int real_name_take(const char *name)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    size_t n = strlen(name);
    if (n >= sizeof at.sun_path)
        return -ENAMETOOLONG;
    memcpy(at.sun_path + 1, name, n); /* that begins with 0: of no file */
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    socklen_t bytes = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + n);
    /* Nobody is to send us anything. */
    if (shutdown(fd, SHUT_RDWR) == 0 && bind(fd, (const struct sockaddr *)&at, bytes) == 0)
        return fd;
    int e = errno;
    close(fd);
    return -e;
}

const PenSys pen__sys_real = {
    .alloc = malloc,
    .resize = realloc,
    .release = free,
    .open = real_open,
    .open_at = real_open_at,
    .close = real_close,
    .pread = real_pread,
    .preadv = real_preadv,
    .cache_drop = real_cache_drop,
    .pwritev = real_pwritev,
    .fsync = real_fsync,
    .stat_fd = real_stat_fd,
    .stat_path = real_stat_path,
    .stat_at = real_stat_at,
    .real_path = real_real_path,
    .disk_space = real_disk_room,
    .rename = real_rename,
    .mkdir = real_mkdir,
    .mkdir_own = real_mkdir_own,
    .unlink = real_unlink,
    .rmdir = real_rmdir,
    .lock = real_lock,
    .lock_byte = real_lock_byte,
    .list = real_list,
    .list_fd = real_list_fd,
    .now_ns = real_now_ns,
    .thread_ns = real_thread_ns,
    .unix_ns = real_unix_ns,
    .random = real_random,
    .thread_start = real_thread_start,
    .environment = real_environment,
    .pages_take = real_pages_take,
    .pages_give = real_pages_give,
    .spawn = pen__spawn,
    .read = real_read,
    .send = real_send,
    .poll = real_poll,
    .process_ended = real_process_ended,
    .process_kill = real_process_kill,
    .process_reap = real_process_reap,
    .memory_make = real_memory_make,
    .memory_seal = real_memory_seal,
    .memory_is_sealed = real_memory_is_sealed,
    .memory_map = real_memory_map,
    .memory_unmap = real_memory_unmap,
    .name_take = real_name_take,
};

const PenSys *pen__sys = &pen__sys_real;
