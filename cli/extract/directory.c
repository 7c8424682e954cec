/* SPDX-License-Identifier: Apache-2.0 */
#include "extract/directory.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "output/messages.h"

/* 1 it is, 0 not; -1 with errno. Leaves the descriptor open. */
static int is_empty(int fd)
{
    int copy = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), n = 0;
    DIR *dir = copy < 0 ? NULL : fdopendir(copy);
    if (!dir) {
        if (copy >= 0)
            close(copy);
        return -1;
    }
    errno = 0;
    for (const struct dirent *e = readdir(dir); e && !n; e = readdir(dir))
        n = strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
    int saved = errno;
    closedir(dir);
    errno = saved;
    return n ? 0 : saved ? -1 : 1;
}

int cli_directory_open(const char *path, CliDirectory *ret, PenError *reterr)
{
    if (mkdir(path, 0777) != 0 && errno != EEXIST)
        return cli_fail_os(reterr, errno, "%s: cannot create this directory", path);
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return cli_fail_os(reterr, errno, "%s: cannot open this directory", path);
    int empty = is_empty(fd), saved = errno;
    if (empty != 1)
        close(fd);
    if (empty < 0)
        return cli_fail_os(reterr, saved, "%s: cannot list this directory", path);
    if (!empty)
        return cli_fail(reterr, PEN_E_EXISTS,
                        "%s: expected a new or an empty directory, found one with files, which "
                        "was not changed; extract to another directory",
                        path);
    *ret = (CliDirectory){.fd = fd, .path = path};
    return PEN_OK;
}

void cli_directory_close(CliDirectory *directory)
{
    if (directory->fd >= 0)
        close(directory->fd);
    directory->fd = -1;
}

static int check_part(const uint8_t *part, size_t bytes, PenError *reterr)
{
    if (bytes == 0)
        return cli_fail(reterr, PEN_E_INVALID, "it has an empty part: // or a final /");
    if (bytes <= 2 && part[0] == '.' && part[bytes - 1] == '.')
        return cli_fail(reterr, PEN_E_INVALID, "it has a part that is . or ..");
    if (bytes > NAME_MAX)
        return cli_fail(reterr, PEN_E_INVALID, "it has a part of %zu bytes, at most %d are allowed",
                        bytes, NAME_MAX);
    for (size_t i = 0; i < bytes; i++)
        if (part[i] < 0x20 || part[i] == 0x7F)
            return cli_fail(reterr, PEN_E_INVALID, "it has a control character (byte 0x%02x)",
                            part[i]);
    return PEN_OK;
}

int cli_directory_check(const void *name, size_t bytes, PenError *reterr)
{
    const uint8_t *s = name;
    if (bytes > 0 && s[0] == '/')
        return cli_fail(reterr, PEN_E_INVALID, "it begins with /");
    if (bytes >= CLI_NAME_CAP)
        return cli_fail(reterr, PEN_E_INVALID, "it has %zu bytes, at most %d are allowed", bytes,
                        CLI_NAME_CAP - 1);
    for (size_t from = 0; from <= bytes;) {
        const uint8_t *slash = from < bytes ? memchr(s + from, '/', bytes - from) : NULL;
        size_t end = slash ? (size_t)(slash - s) : bytes;
        int r = check_part(s + from, end - from, reterr);
        if (r < 0)
            return r;
        from = end + 1;
    }
    return PEN_OK;
}

static int fail_at(const CliDirectory *directory, const char *name, int os_errno, PenError *reterr)
{
    if (os_errno == EEXIST)
        return cli_fail(reterr, PEN_E_EXISTS,
                        "%s/%s exists already and is not changed; extract to another directory",
                        directory->path, name);
    if (os_errno == ELOOP || os_errno == ENOTDIR)
        return cli_fail(reterr, PEN_E_EXISTS,
                        "%s/%s: a part of this is a symbolic link or a file, expected a directory; "
                        "extract to another directory",
                        directory->path, name);
    return cli_fail_os(reterr, os_errno, "%s/%s: cannot create this file", directory->path, name);
}

/* Opens the directory `part` in `fd`, creating it if needed. Returns -1 with errno. */
static int enter(int fd, const char *part)
{
    const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
    int next = openat(fd, part, flags);
    if (next < 0 && errno == ENOENT) {
        if (mkdirat(fd, part, 0777) != 0 && errno != EEXIST)
            return -1;
        next = openat(fd, part, flags);
    }
    return next;
}

/* Returns a new descriptor of the directory of `name`; `last` gets the last part of the name. */
static int enter_all(const CliDirectory *directory, const char *name, char last[NAME_MAX + 1])
{
    int fd = fcntl(directory->fd, F_DUPFD_CLOEXEC, 0);
    for (;;) {
        size_t n = strcspn(name, "/");
        if (fd < 0)
            return -1;
        if (n > NAME_MAX) {
            close(fd);
            errno = ENAMETOOLONG;
            return -1;
        }
        memcpy(last, name, n);
        last[n] = '\0';
        if (name[n] == '\0')
            return fd;
        int next = enter(fd, last);
        int saved = errno;
        close(fd);
        errno = saved;
        fd = next;
        name += n + 1;
    }
}

int cli_directory_create(const CliDirectory *directory, const char *name, int *ret_fd,
                         PenError *reterr)
{
    char last[NAME_MAX + 1];
    int dir = enter_all(directory, name, last);
    if (dir < 0)
        return fail_at(directory, name, errno, reterr);
    int fd = openat(dir, last, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    int saved = errno;
    close(dir);
    if (fd < 0)
        return fail_at(directory, name, saved, reterr);
    *ret_fd = fd;
    return PEN_OK;
}

static int write_all(int fd, const uint8_t *data, size_t bytes)
{
    while (bytes > 0) {
        ssize_t n = write(fd, data, bytes);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -1;
        data += n;
        bytes -= (size_t)n;
    }
    return 0;
}

static void remove_file(const CliDirectory *directory, const char *name)
{
    char last[NAME_MAX + 1];
    int dir = enter_all(directory, name, last);
    if (dir < 0)
        return;
    (void)unlinkat(dir, last, 0);
    close(dir);
}

int cli_directory_write_parts(const CliDirectory *directory, const char *name, CliPartFn part,
                              void *ctx, PenError *reterr)
{
    int fd, failed = 0, saved = 0;
    int r = cli_directory_create(directory, name, &fd, reterr);
    if (r < 0)
        return r;
    do {
        const void *data = NULL;
        size_t bytes = 0;
        r = part(ctx, &data, &bytes, reterr);
        if (r == 1 && write_all(fd, data, bytes) != 0) {
            failed = 1;
            saved = errno;
        }
    } while (r == 1 && !failed);
    if (close(fd) != 0 && !failed) {
        failed = 1;
        saved = errno;
    }
    if (r == 0 && !failed)
        return PEN_OK;
    remove_file(directory, name);
    return r < 0 ? r : cli_fail_os(reterr, saved, "%s/%s: cannot write", directory->path, name);
}

typedef struct Single {
    const void *data;
    size_t bytes;
} Single;

static int take_single(void *ctx, const void **ret_data, size_t *ret_bytes, PenError *reterr)
{
    Single *single = ctx;
    (void)reterr;
    *ret_data = single->data;
    *ret_bytes = single->bytes;
    single->data = NULL;
    return *ret_data != NULL;
}

int cli_directory_write(const CliDirectory *directory, const char *name, const void *data,
                        size_t bytes, PenError *reterr)
{
    Single single = {data, bytes};
    return cli_directory_write_parts(directory, name, take_single, &single, reterr);
}
