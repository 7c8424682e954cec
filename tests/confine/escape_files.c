/* SPDX-License-Identifier: Apache-2.0 */
/* Escapes by way of files: changing them, and reading what is not the program's. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include "escape.h"

#define VICTIM escape_path("victim")
#define NEW escape_path("new")

/* ---- changing -------------------------------------------------------------------------------- */

static long try_unlink(void)
{
    return unlink(VICTIM);
}
static long try_unlinkat(void)
{
    return unlinkat(AT_FDCWD, VICTIM, 0);
}
static long try_rmdir(void)
{
    return rmdir(escape_path("empty"));
}
static long try_rename(void)
{
    return rename(VICTIM, NEW);
}
static long try_renameat2(void)
{
    return syscall(SYS_renameat2, AT_FDCWD, VICTIM, AT_FDCWD, NEW, 0);
}
static long try_chmod(void)
{
    return chmod(VICTIM, 0777);
}
static long try_fchmod(void)
{
    return fchmod(open(escape_path("input"), O_RDONLY), 0777);
}
static long try_chown(void)
{
    return chown(VICTIM, getuid(), getgid());
}
static long try_fchownat(void)
{
    return fchownat(AT_FDCWD, VICTIM, getuid(), getgid(), 0);
}
static long try_truncate(void)
{
    return truncate(VICTIM, 0);
}
static long try_open_write(void)
{
    return open(VICTIM, O_WRONLY);
}
static long try_open_append(void)
{
    return open(VICTIM, O_WRONLY | O_APPEND);
}
static long try_open_truncate(void)
{
    return open(VICTIM, O_RDONLY | O_TRUNC);
}
static long try_open_create(void)
{
    return open(NEW, O_RDONLY | O_CREAT, 0666);
}
static long try_open_temporary(void)
{
    return open(escape_dir, O_TMPFILE | O_RDWR, 0600);
}
static long try_open_input(void)
{
    return open(escape_path("input"), O_RDWR);
}
static long try_openat2(void)
{
    struct {
        uint64_t flags, mode, resolve;
    } how = {.flags = O_RDWR};
    return syscall(437, AT_FDCWD, VICTIM, &how, sizeof how);
}
static long try_mmap_write(void)
{
    int fd = open(VICTIM, O_RDWR);
    if (fd < 0)
        return -1;
    char *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (p == MAP_FAILED)
        return -1;
    memcpy(p, "overwritten", 11);
    return msync(p, 4096, MS_SYNC);
}
static long try_mmap_input(void) /* that it may read */
{
    int fd = open(escape_path("input"), O_RDONLY);
    void *p = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
    return p == MAP_FAILED ? -1 : mprotect(p, 4096, PROT_READ | PROT_WRITE);
}
static long try_link(void)
{
    return link(VICTIM, NEW);
}
static long try_symlink(void)
{
    return symlink("/etc/passwd", NEW);
}
static long try_mkdir(void)
{
    return mkdir(NEW, 0777);
}
static long try_mknod(void)
{
    return mknod(NEW, S_IFREG | 0666, 0);
}
static long try_mkfifo(void)
{
    return mkfifo(NEW, 0666);
}
static long try_utimes(void)
{
    return utimensat(AT_FDCWD, VICTIM, NULL, 0);
}
static long try_setxattr(void)
{
    return setxattr(VICTIM, "user.x", "y", 1, 0);
}
static long try_flock(void)
{
    struct flock lock = {.l_type = F_RDLCK};
    return fcntl(open(escape_path("input"), O_RDONLY), F_SETLK, &lock);
}
static long try_memfd(void)
{
    return syscall(SYS_memfd_create, "x", 0);
}
static long try_chdir(void)
{
    return chdir("/");
}

/* ---- reading --------------------------------------------------------------------------------- */

static long read_file(const char *path)
{
    char data[64];
    int fd = open(path, O_RDONLY);
    return fd < 0 ? -1 : read(fd, data, sizeof data) > 0 ? 0 : -1;
}
static long read_passwd(void)
{
    return read_file("/etc/passwd");
}
static long read_credentials(void)
{
    return read_file(escape_path(".aws/credentials"));
}
static long read_victim(void)
{
    return read_file(VICTIM);
}
static long read_proc(void)
{
    return read_file("/proc/self/status");
}
static long read_program(void)
{
    return read_file("/bin/sh");
}
static long list_directory(void)
{
    DIR *dir = opendir(escape_dir);
    return dir && readdir(dir) ? 0 : -1;
}

/* ---- limits ---------------------------------------------------------------------------------- */

static long use_memory(void)
{
    void *p =
        mmap(NULL, (size_t)5 << 30, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return p == MAP_FAILED ? -1 : 0;
}
static long use_files(void)
{
    int fd = 0;
    for (int i = 0; i < 200 && fd >= 0; i++)
        fd = dup(0);
    return fd;
}
static long use_cpu(void)
{
    volatile unsigned spins = 0;
    while (1)
        spins++;
    return 0;
}
static long raise_limit(void)
{
    struct rlimit limit = {0, 0};
    (void)getrlimit(RLIMIT_NOFILE, &limit);
    return setrlimit(RLIMIT_NOFILE, &limit);
}
static long set_core(void)
{
    struct rlimit limit = {0, 0};
    return (long)syscall(SYS_prlimit64, 0, RLIMIT_CORE, &limit, NULL);
}
static long inherit_files(void)
{
    for (int fd = 3; fd < 1024; fd++)
        if (fcntl(fd, F_GETFD) >= 0)
            return fd;
    return -1;
}
static long inherit_environment(void)
{
    static const char *const names[] = {"PATH", "HOME", "AWS_SECRET_ACCESS_KEY", "TMPDIR"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (getenv(names[i]))
            return 0;
    return -1;
}

const Escape escapes_of_files[] = {
    {"unlink", try_unlink},
    {"unlinkat", try_unlinkat},
    {"rmdir", try_rmdir},
    {"rename", try_rename},
    {"renameat2", try_renameat2},
    {"chmod", try_chmod},
    {"fchmod", try_fchmod},
    {"chown", try_chown},
    {"fchownat", try_fchownat},
    {"truncate", try_truncate},
    {"open_write", try_open_write},
    {"open_append", try_open_append},
    {"open_truncate", try_open_truncate},
    {"open_create", try_open_create},
    {"open_temporary", try_open_temporary},
    {"open_input", try_open_input},
    {"openat2", try_openat2},
    {"mmap_write", try_mmap_write},
    {"mmap_input", try_mmap_input},
    {"link", try_link},
    {"symlink", try_symlink},
    {"mkdir", try_mkdir},
    {"mknod", try_mknod},
    {"mkfifo", try_mkfifo},
    {"utimes", try_utimes},
    {"setxattr", try_setxattr},
    {"flock", try_flock},
    {"memfd", try_memfd},
    {"chdir", try_chdir},
    {"read_passwd", read_passwd},
    {"read_credentials", read_credentials},
    {"read_victim", read_victim},
    {"read_proc", read_proc},
    {"read_program", read_program},
    {"list_directory", list_directory},
    {"use_memory", use_memory},
    {"use_files", use_files},
    {"use_cpu", use_cpu},
    {"raise_limit", raise_limit},
    {"set_core", set_core},
    {"inherit_files", inherit_files},
    {"inherit_environment", inherit_environment},
    {NULL, NULL},
};
