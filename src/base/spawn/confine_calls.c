/* SPDX-License-Identifier: Apache-2.0 */
/* The seccomp filter: system calls that a program needs to load its libraries, to read files, to
 * compute with threads and to write to its pipes. All others say ENOSYS, as an older kernel would.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/attr.h"
#include "base/spawn/confine_impl.h"

#if defined(__x86_64__)
#define ARCH AUDIT_ARCH_X86_64
#define CALL_RSEQ 334 /* headers may be older than libraries */
#elif defined(__aarch64__)
#define ARCH AUDIT_ARCH_AARCH64
#define CALL_RSEQ 293
#endif

#ifdef ARCH

/* By how often they come: the filter is read from its beginning. */
/* clang-format off: a list is easier to read than a column */
static const int allowed[] = {
    SYS_read,
    SYS_write,
    SYS_futex,
    SYS_lseek,
    SYS_munmap,
    SYS_mprotect,
    SYS_brk,
    SYS_madvise,
    SYS_close,
    SYS_fstat,
    SYS_newfstatat,
    SYS_pread64,
    SYS_readv,
    SYS_preadv,
    SYS_writev,
    /* files, without opening them */
    SYS_statx,
    SYS_faccessat,
    439 /* faccessat2 */,
    SYS_readlinkat,
    SYS_getcwd,
    SYS_dup,
    SYS_dup3,
    SYS_fadvise64,
    436 /* close_range */,
    /* threads and signals of its own */
    SYS_set_robust_list,
    SYS_set_tid_address,
    SYS_gettid,
    SYS_sched_yield,
    SYS_sched_getaffinity,
    SYS_membarrier,
    CALL_RSEQ,
    SYS_rt_sigaction,
    SYS_rt_sigprocmask,
    SYS_rt_sigreturn,
    SYS_sigaltstack,
    SYS_exit,
    SYS_exit_group,
    SYS_restart_syscall,
    /* time, and waiting */
    SYS_clock_gettime,
    SYS_clock_getres,
    SYS_clock_nanosleep,
    SYS_nanosleep,
    SYS_gettimeofday,
    SYS_ppoll,
    SYS_pselect6,
    SYS_times,
    SYS_getrusage,
    SYS_getcpu,
    /* who and where it is */
    SYS_getpid,
    SYS_getppid,
    SYS_getuid,
    SYS_geteuid,
    SYS_getgid,
    SYS_getegid,
    SYS_uname,
    SYS_sysinfo,
    SYS_getrandom,
#ifdef __x86_64__ /* other architectures have only the newer ones */
    SYS_stat,
    SYS_lstat,
    SYS_access,
    SYS_readlink,
    SYS_dup2,
    SYS_poll,
    SYS_select,
    SYS_time,
    SYS_getrlimit,
#endif
};
/* clang-format on */

#define WRITING (O_ACCMODE | O_CREAT | O_TRUNC | (O_TMPFILE & ~O_DIRECTORY))
#define ALL_BITS 0xffffffffu
/* As pthread_create has them: a thread, never a process or a namespace. */
#define THREAD_FLAGS 0x3d0f00u
#define CLONE_OLD_FLAG 0x400000u /* means nothing; musl sets it */

enum { N_VALUES = 5 };

/* Allowed when the low half of an argument, which is all of an int, has one of these values. */
typedef struct Rule {
    int call, argument;
    uint32_t mask;
    unsigned n_values;
    uint32_t values[N_VALUES];
} Rule;

static const Rule rules[] = {
    {SYS_openat, 2, WRITING, 1, {0}},
#ifdef __x86_64__
    {SYS_open, 1, WRITING, 1, {0}},
    {SYS_arch_prctl, 0, ALL_BITS, 1, {0x1002 /* ARCH_SET_FS */}},
#endif
    {SYS_clone, 0, ~CLONE_OLD_FLAG, 1, {THREAD_FLAGS}},
    {SYS_mremap, 3, MREMAP_FIXED, 1, {0}},
    {SYS_fcntl, 1, ALL_BITS, 5, {F_GETFD, F_SETFD, F_GETFL, F_DUPFD, F_DUPFD_CLOEXEC}},
    {SYS_ioctl, 1, ALL_BITS, 3, {0x5401 /* TCGETS */, TIOCGWINSZ, FIONREAD}},
    {SYS_prctl, 0, ALL_BITS, 3, {PR_SET_NAME, PR_GET_NAME, PR_CAPBSET_READ}},
};

/* ---- building -------------------------------------------------------------------------------- */

#define ALLOW SECCOMP_RET_ALLOW
#define REFUSE (SECCOMP_RET_ERRNO | EACCES)
#define UNKNOWN (SECCOMP_RET_ERRNO | ENOSYS)

static void put(PenFilter *f, unsigned code, unsigned yes, unsigned no, uint32_t k)
{
    f->code[f->n++] = (struct sock_filter){(uint16_t)code, (uint8_t)yes, (uint8_t)no, k};
}

static void load(PenFilter *f, size_t offset)
{
    put(f, BPF_LD | BPF_W | BPF_ABS, 0, 0, (uint32_t)offset);
}

static void end(PenFilter *f, uint32_t verdict)
{
    put(f, BPF_RET | BPF_K, 0, 0, verdict);
}

/* Skips `yes` steps when the loaded word is `k`, `no` steps otherwise. */
static void compare(PenFilter *f, uint32_t k, unsigned yes, unsigned no)
{
    put(f, BPF_JMP | BPF_JEQ | BPF_K, yes, no, k);
}

static size_t low(int argument)
{
    return offsetof(struct seccomp_data, args) + 8 * (size_t)argument;
}

static size_t high(int argument)
{
    return low(argument) + 4; /* both architectures are little-endian */
}

static void add_rule(PenFilter *f, const Rule *rule)
{
    compare(f, (uint32_t)rule->call, 0, 3 + rule->n_values + 1);
    load(f, low(rule->argument));
    put(f, BPF_ALU | BPF_AND | BPF_K, 0, 0, rule->mask);
    for (unsigned i = 0; i < rule->n_values; i++)
        compare(f, rule->values[i], rule->n_values - i, 0);
    end(f, REFUSE);
    end(f, ALLOW);
}

/* Both halves of an argument. */
static void add_whole(PenFilter *f, int call, int argument, uint64_t value)
{
    compare(f, (uint32_t)call, 0, 6);
    load(f, low(argument));
    compare(f, (uint32_t)value, 0, 3);
    load(f, high(argument));
    compare(f, (uint32_t)(value >> 32), 0, 1);
    end(f, ALLOW);
    end(f, REFUSE);
}

/* No mapping comes to lie in the 4 GiB that have the path: none begins there or in those before and
 * behind, none is larger (PEN_CONFINE_MEMORY) though it grow, and where the kernel chooses the
 * place it is elsewhere. */
static void add_mmap(PenFilter *f, uint64_t path)
{
    uint32_t window = (uint32_t)(path >> 32);
    compare(f, SYS_mmap, 0, 6);
    load(f, high(0));
    compare(f, window - 1, 3, 0);
    compare(f, window, 2, 0);
    compare(f, window + 1, 1, 0);
    end(f, ALLOW);
    end(f, REFUSE);
}

void pen__filter_build(PenFilter *f, const PenExecPath *path)
{
    uint64_t at = (uint64_t)(uintptr_t)path->at;
    f->n = 0;
    load(f, offsetof(struct seccomp_data, arch));
    compare(f, ARCH, 1, 0); /* the calls of others have other numbers */
    end(f, UNKNOWN);
    load(f, offsetof(struct seccomp_data, nr));
    for (size_t i = 0; i < PEN_LEN(allowed); i++) {
        compare(f, (uint32_t)allowed[i], 0, 1);
        end(f, ALLOW);
    }
    add_mmap(f, at);
    for (size_t i = 0; i < PEN_LEN(rules); i++)
        add_rule(f, &rules[i]);
    Rule own_signal = {SYS_tgkill, 0, ALL_BITS, 1, {(uint32_t)getpid()}}; /* abort */
    add_rule(f, &own_signal);
    add_whole(f, SYS_prlimit64, 2, 0); /* reads limits, sets none */
    add_whole(f, SYS_execve, 0, at);
    end(f, UNKNOWN);
}

int pen__filter_install(PenFilter *f)
{
    struct sock_fprog program = {.len = f->n, .filter = f->code};
    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) < 0 ? -errno : 0;
}

#else

void pen__filter_build(PenFilter *f, const PenExecPath *path)
{
    (void)f, (void)path;
}

int pen__filter_install(PenFilter *f)
{
    (void)f;
    return -ENOSYS;
}

#endif
