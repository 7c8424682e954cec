/* SPDX-License-Identifier: Apache-2.0 */
/* Escapes by way of other processes: the parent's secrets, and programs of its own. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include "escape.h"

/* ---- the parent ------------------------------------------------------------------------------ */

static int open_proc(const char *name, int flags)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/%s", escape_parent, name);
    return open(path, flags);
}
static long parent_environment(void)
{
    char data[64];
    int fd = open_proc("environ", O_RDONLY);
    return fd < 0 ? -1 : read(fd, data, sizeof data) > 0 ? 0 : -1;
}
static long parent_memory_read(void)
{
    char data[8];
    int fd = open_proc("mem", O_RDONLY);
    return fd < 0 ? -1 : pread(fd, data, sizeof data, (off_t)escape_address);
}
static long parent_memory_write(void)
{
    int fd = open_proc("mem", O_RDWR);
    return fd < 0 ? -1 : pwrite(fd, "overrun!", 8, (off_t)escape_address);
}
static long parent_vm(long call)
{
    char data[8] = "overrun!";
    struct iovec here = {data, 8}, there = {(void *)escape_address, 8};
    return syscall(call, escape_parent, &here, 1, &there, 1, 0);
}
static long parent_vm_read(void)
{
    return parent_vm(SYS_process_vm_readv);
}
static long parent_vm_write(void)
{
    return parent_vm(SYS_process_vm_writev);
}
static long parent_ptrace(void)
{
    return ptrace(PTRACE_SEIZE, escape_parent, NULL, NULL);
}
static long parent_kill(void)
{
    return kill(escape_parent, 0);
}
static long parent_tgkill(void)
{
    return syscall(SYS_tgkill, escape_parent, escape_parent, 0);
}
static long parent_tkill(void)
{
    return syscall(SYS_tkill, escape_parent, 0);
}
static long parent_sigqueue(void)
{
    union sigval none = {0};
    return sigqueue(escape_parent, 0, none);
}
static long parent_setown(void)
{
    return fcntl(1, F_SETOWN, escape_parent);
}
static long parent_pidfd(void)
{
    return syscall(434, escape_parent, 0);
}
static long parent_pidfd_getfd(void)
{
    return syscall(438, syscall(434, escape_parent, 0), 0, 0);
}
static long parent_priority(void)
{
    return setpriority(PRIO_PROCESS, (id_t)escape_parent,
                       getpriority(PRIO_PROCESS, (id_t)escape_parent));
}
static long parent_scheduler(void)
{
    struct sched_param param = {0};
    return sched_setscheduler(escape_parent, SCHED_OTHER, &param);
}
static long parent_affinity(void)
{
    cpu_set_t set;
    (void)sched_getaffinity(0, sizeof set, &set);
    return sched_setaffinity(escape_parent, sizeof set, &set);
}
static long parent_limit(void)
{
    struct rlimit limit;
    (void)getrlimit(RLIMIT_CORE, &limit);
    limit.rlim_cur = 0;
    return syscall(SYS_prlimit64, escape_parent, RLIMIT_CORE, &limit, NULL);
}
static long parent_ioprio(void)
{
    return syscall(SYS_ioprio_set, 1, escape_parent, 2 << 13 | 4);
}

/* ---- programs -------------------------------------------------------------------------------- */

static char *const true_argv[] = {"true", NULL};
static char *const no_env[] = {NULL};

static long end_child(long pid)
{
    if (pid == 0)
        _exit(0);
    if (pid > 0)
        waitpid((pid_t)pid, NULL, 0);
    return pid;
}
static long start_fork(void)
{
    return end_child(fork());
}
static long start_clone(void)
{
    return end_child(syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0));
}
static long start_clone3(void)
{
    uint64_t how[8] = {[4] = SIGCHLD};
    return end_child(syscall(435, how, sizeof how));
}
static long start_namespace(void) /* a thread with a namespace of its own */
{
    return end_child(syscall(SYS_clone, SIGCHLD | CLONE_NEWUSER, 0, 0, 0, 0));
}
static long start_exec(void)
{
    return execve("/bin/true", true_argv, no_env);
}
static long start_execveat(void)
{
    return syscall(SYS_execveat, AT_FDCWD, "/bin/true", true_argv, no_env, 0);
}
static long start_fexecve(void)
{
    int fd = open("/bin/true", O_RDONLY | O_CLOEXEC);
    return syscall(SYS_execveat, fd, "", true_argv, no_env, AT_EMPTY_PATH);
}
static long start_self(void)
{
    return execve("/proc/self/exe", (char *const[]){"escape", "list", NULL}, no_env);
}
/* By the loader, which may be executed as far as Landlock goes. */
static long start_by_loader(void)
{
    const char *loader = access("/lib64/ld-linux-x86-64.so.2", F_OK) == 0
                             ? "/lib64/ld-linux-x86-64.so.2"
                             : "/lib/ld-linux-aarch64.so.1";
    return execve(loader, (char *const[]){"ld.so", "/bin/true", NULL}, no_env);
}

/* The filter knows one address as that of a path. Another one is put there by all means. */
static long exec_at(uintptr_t path)
{
    return execve((const char *)path, true_argv, no_env);
}
static void *map_around(uintptr_t from, size_t bytes, int flags)
{
    return mmap((void *)from, bytes, PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | flags, -1, 0);
}
static long start_forged(void)
{
    static const uintptr_t windows[] = {(uintptr_t)0x10 << 32, (uintptr_t)0x3000 << 32};
    long r = -1;
    for (int i = 0; i < 2; i++) {
        uintptr_t at = windows[i];
        map_around(at, 4096, MAP_FIXED);
        map_around(at, 4096, 0);
        map_around(at - 4096, 8192, MAP_FIXED);
        map_around(at - ((size_t)2 << 30), (size_t)3 << 30, MAP_FIXED);
        map_around(at + ((size_t)3 << 30), 4096, MAP_FIXED | MAP_GROWSDOWN);
        void *page = map_around(0, 4096, 0);
        (void)!mremap(page, 4096, 4096, MREMAP_MAYMOVE | MREMAP_FIXED, (void *)at);
        int pipe_end = open(escape_path("input"), O_RDONLY);
        if (pread(pipe_end, (void *)at, 9, 0) >= 0) { /* it is mapped */
            memcpy((void *)at, "/bin/true", 10);
            r = exec_at(at);
        } else if (exec_at(at) >= 0 || errno != EFAULT)
            r = errno == EACCES ? r : 0; /* EFAULT: the filter's address, with nothing there */
    }
    return r;
}

/* Neither there nor in the 4 GiB before and behind: one of the two windows is the filter's. */
static long map_window(void)
{
    for (int i = -1; i <= 1; i++) {
        uintptr_t a = (uintptr_t)(0x10 + i) << 32, b = (uintptr_t)(0x3000 + i) << 32;
        if (map_around(a, 4096, MAP_FIXED) != MAP_FAILED &&
            map_around(b, 4096, MAP_FIXED) != MAP_FAILED)
            return 0;
    }
    return -1;
}

/* ---- what must go ---------------------------------------------------------------------------- */

static void *start(void *arg)
{
    *(int *)arg = 1;
    return NULL;
}
static long can_use_threads(void)
{
    int ran = 0;
    pthread_t t;
    int e = pthread_create(&t, NULL, start, &ran);
    if (e || pthread_join(t, NULL))
        return -1;
    return ran ? 0 : -1;
}
static long can_read_input(void)
{
    char data[8];
    int fd = open(escape_path("input"), O_RDONLY);
    return fd >= 0 && read(fd, data, 5) == 5 && lseek(fd, 0, SEEK_SET) == 0 ? 0 : -1;
}
static long can_take_memory(void)
{
    char *p = malloc((size_t)64 << 20);
    if (!p)
        return -1;
    p = realloc(memset(p, 1, (size_t)64 << 20), (size_t)128 << 20);
    return p && p[5] == 1 ? 0 : -1;
}
static long can_abort(void)
{
    abort();
}

const Escape escapes_of_parent[] = {
    {"parent_environment", parent_environment},
    {"parent_memory_read", parent_memory_read},
    {"parent_memory_write", parent_memory_write},
    {"parent_vm_read", parent_vm_read},
    {"parent_vm_write", parent_vm_write},
    {"parent_ptrace", parent_ptrace},
    {"parent_kill", parent_kill},
    {"parent_tgkill", parent_tgkill},
    {"parent_tkill", parent_tkill},
    {"parent_sigqueue", parent_sigqueue},
    {"parent_setown", parent_setown},
    {"parent_pidfd", parent_pidfd},
    {"parent_pidfd_getfd", parent_pidfd_getfd},
    {"parent_priority", parent_priority},
    {"parent_scheduler", parent_scheduler},
    {"parent_affinity", parent_affinity},
    {"parent_limit", parent_limit},
    {"parent_ioprio", parent_ioprio},
    {"start_fork", start_fork},
    {"start_clone", start_clone},
    {"start_clone3", start_clone3},
    {"start_namespace", start_namespace},
    {"start_exec", start_exec},
    {"start_execveat", start_execveat},
    {"start_fexecve", start_fexecve},
    {"start_self", start_self},
    {"start_by_loader", start_by_loader},
    {"start_forged", start_forged},
    {"map_window", map_window},
    {"can_use_threads", can_use_threads},
    {"can_read_input", can_read_input},
    {"can_take_memory", can_take_memory},
    {"can_abort", can_abort},
    {NULL, NULL},
};
