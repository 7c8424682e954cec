/* SPDX-License-Identifier: Apache-2.0 */
/* The system interface: memory, files, clock, threads, randomness, programs.
 * Nothing else in the library calls the operating system for these, so a test can count the calls,
 * make the n-th fail, record every write, or turn the clock. Calls return -errno on failure. */
#ifndef PEN_BASE_SYS_H
#define PEN_BASE_SYS_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "base/spawn/spawn.h"

typedef struct PenFileStat {
    uint64_t bytes;      /* apparent size */
    uint64_t disk_bytes; /* what it takes on disk */
    int is_dir;
    int is_file;
    uint32_t uid;     /* whose it is */
    uint32_t mode;    /* permissions */
    const char *what; /* for messages: "a file", "a FIFO", "a symbolic link" ... */
    int64_t mtime_ns, ctime_ns;
    uint64_t inode;
} PenFileStat;

typedef struct PenDiskSpace { /* of a file system */
    uint64_t bytes, free_bytes;
} PenDiskSpace;

enum { PEN_RANGE_FREE = 0, PEN_RANGE_SHARED = 1, PEN_RANGE_ALONE = 2 };

enum {
    /* None of them waits for a FIFO's other end or a device: check by stat_fd what was opened. */
    PEN_OPEN_READ = 0,
    PEN_OPEN_CREATE = 1, /* write; -EEXIST when the name is there, as a link too */
    PEN_OPEN_DIR = 2,
    /* Never through a symbolic link in the last place: */
    PEN_OPEN_PLAIN = 3,  /* read */
    PEN_OPEN_UPDATE = 4, /* read and write */
    PEN_OPEN_NEW = 5,    /* read and write, for this user alone; -EEXIST when the name is there */
    PEN_OPEN_MEMORY = 6, /* read and write what another process has open: "/proc/7/fd/3" */
    PEN_OPEN_INNER_DIR = 7, /* a directory; -ENOTDIR when it is a link to one */
    PEN_OPEN_PATH_DIR = 8   /* the same, to open names in it alone: it need not be readable */
};

/* In place of a directory's descriptor: names count from the working directory. */
enum { PEN_AT_CWD = -100 };

typedef struct PenExit {
    int code;   /* -1 when a signal ended it */
    int signal; /* 0 when it ended by itself */
    int lost;   /* the program around us took it (SIGCHLD ignored, another wait): nothing known */
} PenExit;

struct pollfd;

typedef struct PenSys {
    void *(*alloc)(size_t bytes);
    void *(*resize)(void *p, size_t bytes);
    void (*release)(void *p);

    int (*open)(const char *path, int how); /* fd or -errno */
    /* The same of a name in an open directory. */
    int (*open_at)(int dir, const char *name, int how);
    int (*close)(int fd);
    int64_t (*pread)(int fd, void *buf, size_t bytes, uint64_t offset);
    int64_t (*preadv)(int fd, const struct iovec *iov, int n, uint64_t offset);
    /* Drops a range of a file from the page cache: 1, or 0 if it is still there (tmpfs, a page that
     * somebody has mapped); -errno when the system cannot tell. */
    int (*cache_drop)(int fd, uint64_t offset, uint64_t bytes);
    int64_t (*pwritev)(int fd, const struct iovec *iov, int n, uint64_t offset);
    int (*fsync)(int fd);
    int (*stat_fd)(int fd, PenFileStat *ret);
    int (*stat_path)(const char *path, PenFileStat *ret);
    int (*stat_at)(int dir, const char *name, PenFileStat *ret); /* of a symbolic link itself */
    /* Absolute and without links: its length, or -errno, -ERANGE when it does not fit. */
    int (*real_path)(const char *path, char *ret, size_t cap);
    int (*disk_space)(int fd, PenDiskSpace *ret);
    int (*rename)(int from_dir, const char *from, int to_dir, const char *to);
    int (*mkdir)(int dir, const char *name);
    int (*mkdir_own)(const char *path); /* for this user alone */
    int (*unlink)(int dir, const char *name);
    int (*rmdir)(int dir, const char *name);
    int (*lock)(int fd, int exclusive); /* never waits; dies with the process */
    /* One byte, which need not be there: PEN_RANGE_*. Belongs to what was opened, not to the
     * process: two that opened the file keep each other out. Never waits: -EAGAIN. */
    int (*lock_byte)(int fd, int how, uint64_t offset);
    /* Calls `each` for every entry but . and ..; stops when it returns non-zero and returns that.
     */
    int (*list)(const char *path, int (*each)(void *ctx, const char *name), void *ctx);
    /* The same of an open directory, which stays open. */
    int (*list_fd)(int dir, int (*each)(void *ctx, const char *name), void *ctx);

    uint64_t (*now_ns)(void);    /* monotonic */
    uint64_t (*unix_ns)(void);   /* wall clock, since 1970: for signatures and expiry alone */
    uint64_t (*thread_ns)(void); /* CPU time of this thread */
    int (*random)(void *buf, size_t bytes);
    int (*thread_start)(pthread_t *ret, void *(*run)(void *), void *arg);

    const char *(*environment)(const char *name); /* NULL when not set */

    /* Memory for secrets: whole pages of its own, cleared, kept out of core dumps. */
    void *(*pages_take)(size_t bytes);
    void (*pages_give)(void *p, size_t bytes);

    int (*spawn)(const PenSpawn *what, PenSpawned *ret);
    int64_t (*read)(int fd, void *buf, size_t bytes); /* of a pipe; -EAGAIN: nothing there yet */
    /* To a socket: -EAGAIN when it is full; -EPIPE, and no signal, when its other end is closed. */
    int64_t (*send)(int fd, const void *buf, size_t bytes);
    int (*poll)(struct pollfd *fds, unsigned n, int timeout_ms);
    /* Has it ended? 1 with how, 0 when not. It stays in the process table until it is reaped, so
     * that its number and its group's stay its own. Neither waits. */
    int (*process_ended)(int pid, PenExit *ret);
    void (*process_kill)(int pid); /* all of its group */
    void (*process_reap)(int pid);

    /* Memory as a file without a name, of a size that nobody can change. */
    int (*memory_make)(const char *name, uint64_t bytes);
    int (*memory_seal)(int fd);      /* from now on nobody can write to it, ever */
    int (*memory_is_sealed)(int fd); /* 1, 0; -EINVAL: not such memory */
    /* To read what others write to such memory; NULL when there are no addresses left. */
    const void *(*memory_map)(int fd, uint64_t bytes);
    void (*memory_unmap)(const void *p, uint64_t bytes);
    /* Takes a name of this machine's (network namespace's), which no file has: an fd that holds it,
     * or -EADDRINUSE. /proc/net/unix lists them. */
    int (*name_take)(const char *name);
} PenSys;

extern const PenSys pen__sys_real;

/* What the library uses. Only tests set it, before any other call. */
extern const PenSys *pen__sys;

#endif
