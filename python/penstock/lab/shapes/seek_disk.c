/* SPDX-License-Identifier: Apache-2.0 */
/* Simulates a disk that has to seek: a FUSE file system that shows a folder, for benchmarks.
 *
 *     seek_disk SOURCE SEEK_MICROSECONDS MOUNTPOINT -f [-o OPTION]...
 *
 * It is read only. Opening a file costs one seek, and so does a read that does not begin where the
 * previous one through the same handle ended (the first: at 0). Seeks wait for each other, as there
 * is one arm; bytes cost nothing. Pages are not cached (direct_io). The file /.counts holds, as
 * text, the number of opens, reads, seeks and bytes; reading it costs and counts nothing. The
 * program ends, and unmounts, when the process that started it ends.
 */
#define FUSE_USE_VERSION 31
#include <errno.h>
#include <fcntl.h>
#include <fuse.h>
#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <dirent.h>

static const char counts_name[] = "/.counts";
enum { COUNTS_BYTES = 128 };

static int source_fd;
static int64_t seek_ns;
static pthread_mutex_t arm = PTHREAD_MUTEX_INITIALIZER;
static int64_t arm_free_ns; /* when the arm has done all seeks so far; CLOCK_MONOTONIC */
static atomic_uint_fast64_t opens, reads, seeks, read_bytes;

typedef struct Handle {
    int fd; /* -1: the counts */
    atomic_int_fast64_t next;
    char counts[COUNTS_BYTES];
} Handle;

static const char *below(const char *path)
{
    return path[1] ? path + 1 : ".";
}

/* A seek starts when the arm is free. A late wake-up does not delay the seeks behind it. */
static void seek_once(void)
{
    struct timespec t;
    atomic_fetch_add(&seeks, 1);
    if (!seek_ns)
        return;
    pthread_mutex_lock(&arm);
    clock_gettime(CLOCK_MONOTONIC, &t);
    int64_t now = t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
    int64_t end = (arm_free_ns > now ? arm_free_ns : now) + seek_ns;
    arm_free_ns = end;
    pthread_mutex_unlock(&arm);
    t = (struct timespec){end / 1000000000, end % 1000000000};
    prctl(PR_SET_TIMERSLACK, 1); /* of this thread */
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR)
        ;
}

static void *slow_init(struct fuse_conn_info *conn, struct fuse_config *cfg)
{
    (void)conn;
    cfg->direct_io = 1;
    cfg->entry_timeout = cfg->attr_timeout = 3600;
    return NULL;
}

static int slow_getattr(const char *path, struct stat *st, struct fuse_file_info *fi)
{
    (void)fi;
    if (!strcmp(path, counts_name)) {
        *st = (struct stat){.st_mode = S_IFREG | 0444, .st_nlink = 1, .st_size = COUNTS_BYTES};
        return 0;
    }
    return fstatat(source_fd, below(path), st, AT_SYMLINK_NOFOLLOW) < 0 ? -errno : 0;
}

static int slow_readlink(const char *path, char *buf, size_t bytes)
{
    ssize_t n = readlinkat(source_fd, below(path), buf, bytes - 1);
    if (n < 0)
        return -errno;
    buf[n] = 0;
    return 0;
}

static int slow_readdir(const char *path, void *buf, fuse_fill_dir_t fill, off_t offset,
                        struct fuse_file_info *fi, enum fuse_readdir_flags flags)
{
    (void)offset, (void)fi, (void)flags;
    int fd = openat(source_fd, below(path), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    if (!dir) {
        int error = errno;
        if (fd >= 0)
            close(fd);
        return -error;
    }
    for (struct dirent *e; (e = readdir(dir));)
        if (fill(buf, e->d_name, NULL, 0, 0))
            break;
    closedir(dir);
    return 0;
}

static int slow_open(const char *path, struct fuse_file_info *fi)
{
    if ((fi->flags & O_ACCMODE) != O_RDONLY)
        return -EROFS;
    Handle *h = calloc(1, sizeof *h);
    if (!h)
        return -ENOMEM;
    if (!strcmp(path, counts_name)) {
        h->fd = -1;
        snprintf(h->counts, sizeof h->counts,
                 "opens %" PRIu64 " reads %" PRIu64 " seeks %" PRIu64 " bytes %" PRIu64 "\n",
                 (uint64_t)opens, (uint64_t)reads, (uint64_t)seeks, (uint64_t)read_bytes);
    } else {
        h->fd = openat(source_fd, below(path), O_RDONLY | O_CLOEXEC);
        if (h->fd < 0) {
            int error = errno;
            free(h);
            return -error;
        }
        atomic_fetch_add(&opens, 1);
        seek_once();
    }
    fi->fh = (uint64_t)(uintptr_t)h;
    return 0;
}

static int read_counts(const Handle *h, char *buf, size_t bytes, off_t offset)
{
    size_t all = strlen(h->counts), from = (size_t)offset;
    if (from >= all)
        return 0;
    bytes = bytes < all - from ? bytes : all - from;
    memcpy(buf, h->counts + from, bytes);
    return (int)bytes;
}

static int slow_read(const char *path, char *buf, size_t bytes, off_t offset,
                     struct fuse_file_info *fi)
{
    (void)path;
    Handle *h = (Handle *)(uintptr_t)fi->fh;
    if (h->fd < 0)
        return read_counts(h, buf, bytes, offset);
    ssize_t n = pread(h->fd, buf, bytes, offset);
    if (n < 0)
        return -errno;
    if (!n) /* The end of a file: nothing to go to. */
        return 0;
    atomic_fetch_add(&reads, 1);
    atomic_fetch_add(&read_bytes, (uint64_t)n);
    if (atomic_exchange(&h->next, offset + n) != offset)
        seek_once();
    return (int)n;
}

static int slow_release(const char *path, struct fuse_file_info *fi)
{
    (void)path;
    Handle *h = (Handle *)(uintptr_t)fi->fh;
    if (h->fd >= 0)
        close(h->fd);
    free(h);
    return 0;
}

static const struct fuse_operations operations = {
    .init = slow_init,
    .getattr = slow_getattr,
    .readlink = slow_readlink,
    .readdir = slow_readdir,
    .open = slow_open,
    .read = slow_read,
    .release = slow_release,
};

int main(int argc, char **argv)
{
    if (argc < 4) {
        fprintf(stderr, "usage: seek_disk SOURCE SEEK_MICROSECONDS MOUNTPOINT -f [-o OPTION]...\n");
        return 2;
    }
    char *end;
    long us = strtol(argv[2], &end, 10);
    if (*end || us < 0 || us > 1000000) {
        fprintf(stderr, "seek_disk: %s: expected microseconds, at most 1000000\n", argv[2]);
        return 2;
    }
    seek_ns = us * INT64_C(1000);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    source_fd = open(argv[1], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (source_fd < 0) {
        fprintf(stderr, "seek_disk: %s: %s\n", argv[1], strerror(errno));
        return 1;
    }
    argv[2] = argv[0];
    return fuse_main(argc - 2, argv + 2, &operations, NULL);
}
