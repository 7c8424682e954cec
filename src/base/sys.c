/* SPDX-License-Identifier: Apache-2.0 */
#include "base/sys.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static int real_open(const char *path, int how)
{
    int flags = O_CLOEXEC;
    if (how == PEN_OPEN_CREATE)
        flags |= O_WRONLY | O_CREAT | O_TRUNC;
    else if (how == PEN_OPEN_DIR)
        flags |= O_RDONLY | O_DIRECTORY;
    else
        flags |= O_RDONLY;
    int fd;
    do
        fd = open(path, flags, 0666);
    while (fd < 0 && errno == EINTR);
    return fd < 0 ? -errno : fd;
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

static void stat_out(const struct stat *st, PenFileStat *ret)
{
    ret->bytes = (uint64_t)st->st_size;
    ret->disk_bytes = (uint64_t)st->st_blocks * 512;
    ret->is_dir = S_ISDIR(st->st_mode);
    ret->is_file = S_ISREG(st->st_mode);
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

static int real_rename(const char *from, const char *to)
{
    return rename(from, to) < 0 ? -errno : 0;
}

static int real_mkdir(const char *path)
{
    return mkdir(path, 0777) < 0 ? -errno : 0;
}

static int real_unlink(const char *path)
{
    return unlink(path) < 0 ? -errno : 0;
}

static int real_rmdir(const char *path)
{
    return rmdir(path) < 0 ? -errno : 0;
}

static int real_lock(int fd, int exclusive)
{
    return flock(fd, (exclusive ? LOCK_EX : LOCK_SH) | LOCK_NB) < 0 ? -errno : 0;
}

static int real_list(const char *path, int (*each)(void *ctx, const char *name), void *ctx)
{
    DIR *dir = opendir(path);
    if (!dir)
        return -errno;
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

static uint64_t real_now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
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
    /* Signals belong to the program: our threads take none. */
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    int e = pthread_create(ret, NULL, run, arg);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return -e;
}

const PenSys pen__sys_real = {
    .alloc = malloc,
    .resize = realloc,
    .release = free,
    .open = real_open,
    .close = real_close,
    .pread = real_pread,
    .pwritev = real_pwritev,
    .fsync = real_fsync,
    .stat_fd = real_stat_fd,
    .stat_path = real_stat_path,
    .rename = real_rename,
    .mkdir = real_mkdir,
    .unlink = real_unlink,
    .rmdir = real_rmdir,
    .lock = real_lock,
    .list = real_list,
    .now_ns = real_now_ns,
    .random = real_random,
    .thread_start = real_thread_start,
};

const PenSys *pen__sys = &pen__sys_real;
