/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/log_sys.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/sys.h"
#include "lib/sweep.h"

enum { MAX_FDS = 1024 };

static Log now;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct {
    int kind; /* 0 not open or for reading, else PEN_OPEN_* */
    char *path;
    uint64_t file;
} fds[MAX_FDS];
static uint64_t n_files;

const char *log_name(LogKind kind)
{
    static const char *const names[] = {"create", "write", "sync",   "sync of directory",
                                        "rename", "mkdir", "unlink", "rmdir"};
    return names[kind];
}

static LogOp *note(LogKind kind, const char *path)
{
    if (now.n == now.cap) {
        now.cap = now.cap ? now.cap * 2 : 256;
        now.ops = realloc(now.ops, now.cap * sizeof *now.ops);
        MUST(now.ops);
    }
    LogOp *op = &now.ops[now.n++];
    *op = (LogOp){.kind = kind, .path = strdup(path)};
    MUST(op->path);
    return op;
}

/* The path of a name in an open directory; to be freed. */
static char *path_at(int dir, const char *name)
{
    char *path = NULL;
    pthread_mutex_lock(&mutex);
    if (dir == PEN_AT_CWD) {
        path = strdup(name);
    } else {
        MUST(dir < MAX_FDS && fds[dir].path);
        const char *top = fds[dir].path;
        size_t n = strlen(top);
        while (n > 1 && top[n - 1] == '/')
            n--;
        MUST(asprintf(&path, "%.*s/%s", (int)n, top, name) > 0);
    }
    pthread_mutex_unlock(&mutex);
    MUST(path);
    return path;
}

static int note_open(int fd, const char *path, int how)
{
    if (fd < 0 || how == PEN_OPEN_READ)
        return fd;
    MUST(fd < MAX_FDS);
    pthread_mutex_lock(&mutex);
    fds[fd].kind = how;
    fds[fd].path = strdup(path);
    MUST(fds[fd].path);
    if (how == PEN_OPEN_CREATE)
        note(LOG_CREATE, path)->file = fds[fd].file = n_files++;
    pthread_mutex_unlock(&mutex);
    return fd;
}

static int log_open(const char *path, int how)
{
    return note_open(pen__sys_real.open(path, how), path, how);
}

static int log_open_at(int dir, const char *name, int how)
{
    char *path = path_at(dir, name);
    int fd = note_open(pen__sys_real.open_at(dir, name, how), path, how);
    free(path);
    return fd;
}

static bool is_dir(int how)
{
    return how == PEN_OPEN_DIR || how == PEN_OPEN_INNER_DIR || how == PEN_OPEN_PATH_DIR;
}

static int log_close(int fd)
{
    pthread_mutex_lock(&mutex);
    free(fds[fd].path);
    fds[fd].path = NULL;
    fds[fd].kind = 0;
    pthread_mutex_unlock(&mutex);
    return pen__sys_real.close(fd);
}

static int64_t log_pwritev(int fd, const struct iovec *iov, int n, uint64_t offset)
{
    int64_t done = pen__sys_real.pwritev(fd, iov, n, offset);
    if (done <= 0)
        return done;
    pthread_mutex_lock(&mutex);
    LogOp *op = note(LOG_WRITE, fds[fd].path);
    op->file = fds[fd].file;
    op->offset = offset;
    op->bytes = (size_t)done;
    op->data = malloc(op->bytes);
    MUST(op->data);
    size_t at = 0;
    for (int i = 0; i < n && at < op->bytes; i++) {
        size_t part = iov[i].iov_len < op->bytes - at ? iov[i].iov_len : op->bytes - at;
        memcpy(op->data + at, iov[i].iov_base, part);
        at += part;
    }
    pthread_mutex_unlock(&mutex);
    return done;
}

static int log_fsync(int fd)
{
    int r = pen__sys_real.fsync(fd);
    if (r < 0)
        return r;
    pthread_mutex_lock(&mutex);
    MUST(fds[fd].kind);
    note(is_dir(fds[fd].kind) ? LOG_SYNC_DIR : LOG_SYNC, fds[fd].path)->file = fds[fd].file;
    pthread_mutex_unlock(&mutex);
    return r;
}

static int note_path(int r, LogKind kind, int dir, const char *name)
{
    if (r == 0) {
        char *path = path_at(dir, name);
        pthread_mutex_lock(&mutex);
        note(kind, path);
        pthread_mutex_unlock(&mutex);
        free(path);
    }
    return r;
}

static int log_rename(int from_dir, const char *from, int to_dir, const char *to)
{
    int r = pen__sys_real.rename(from_dir, from, to_dir, to);
    if (r == 0) {
        char *path = path_at(from_dir, from), *to_path = path_at(to_dir, to);
        pthread_mutex_lock(&mutex);
        note(LOG_RENAME, path)->to = to_path;
        pthread_mutex_unlock(&mutex);
        free(path);
    }
    return r;
}

static int log_mkdir(int dir, const char *name)
{
    return note_path(pen__sys_real.mkdir(dir, name), LOG_MKDIR, dir, name);
}

static int log_unlink(int dir, const char *name)
{
    return note_path(pen__sys_real.unlink(dir, name), LOG_UNLINK, dir, name);
}

static int log_rmdir(int dir, const char *name)
{
    return note_path(pen__sys_real.rmdir(dir, name), LOG_RMDIR, dir, name);
}

void log_begin(void)
{
    static PenSys sys;
    sys = pen__sys_real;
    sys.open = log_open;
    sys.open_at = log_open_at;
    sys.close = log_close;
    sys.pwritev = log_pwritev;
    sys.fsync = log_fsync;
    sys.rename = log_rename;
    sys.mkdir = log_mkdir;
    sys.unlink = log_unlink;
    sys.rmdir = log_rmdir;
    now = (Log){0};
    n_files = 0;
    pen__sys = &sys;
}

void log_end(Log *ret)
{
    pen__sys = &pen__sys_real;
    *ret = now;
    now = (Log){0};
}

void log_free(Log *log)
{
    for (size_t i = 0; i < log->n; i++) {
        free(log->ops[i].path);
        free(log->ops[i].to);
        free(log->ops[i].data);
    }
    free(log->ops);
    *log = (Log){0};
}
