/* SPDX-License-Identifier: Apache-2.0 */
#include "base/spawn/confine.h"

#include <errno.h>
#include <linux/capability.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/attr.h"
#include "base/spawn/confine_impl.h"

enum { MAX_FILES = 128, PAGE = 4096 };

/* ---- the path -------------------------------------------------------------------------------- */

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

/* Far from where kernels put programs, heaps, libraries and stacks; the second is for the address
 * sanitizer, which has the first for itself. */
static const uint64_t windows[] = {UINT64_C(0x10) << 32, UINT64_C(0x3000) << 32};

/* Several threads may be here at once, so each takes a page that is free. */
static char *map_free_page(void)
{
    enum { N_PAGES = 4096 };
    for (size_t w = 0; w < PEN_LEN(windows); w++)
        for (uint64_t i = 0; i < N_PAGES; i++) {
            void *want = (void *)(uintptr_t)(windows[w] + i * PAGE); /* NOLINT(performance-*) */
            void *p = mmap(want, PAGE, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
            if (p == want)
                return p;
            if (p != MAP_FAILED)
                munmap(p, PAGE);
            else if (errno != EEXIST)
                break;
        }
    return NULL;
}

int pen__exec_path_map(const char *program, PenExecPath *ret)
{
    size_t bytes = strlen(program) + 1;
    if (bytes > PAGE)
        return -ENAMETOOLONG;
    char *page = map_free_page();
    if (!page)
        return -ENOMEM;
    memcpy(page, program, bytes);
    ret->at = page;
    return 0;
}

void pen__exec_path_unmap(PenExecPath *path)
{
    if (path->at)
        munmap(path->at, PAGE);
    path->at = NULL;
}

/* ---- rights ---------------------------------------------------------------------------------- */

/* Of the capabilities of root only that to read all files stays: videos may belong to others. A
 * process with fewer capabilities than ours cannot read our memory or environment either. */
static int drop_capabilities(void)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[2] = {{0}};
    for (unsigned long cap = 0; cap < 64; cap++)
        if (cap != CAP_DAC_READ_SEARCH)
            (void)prctl(PR_CAPBSET_DROP, cap, 0, 0, 0); /* not allowed, or not known: no matter */
    if (syscall(SYS_capget, &head, data) < 0)
        return -errno;
    data[0].permitted &= 1u << CAP_DAC_READ_SEARCH;
    data[0].effective = data[0].permitted;
    data[1].permitted = data[1].effective = 0;
    data[0].inheritable = data[1].inheritable = 0;
    return syscall(SYS_capset, &head, data) < 0 ? -errno : 0;
}

static int set_limits(uint64_t memory_bytes)
{
    const struct {
        int what;
        rlim_t most;
    } limits[] = {{RLIMIT_CORE, 0},
                  {RLIMIT_FSIZE, 0},
                  {RLIMIT_MEMLOCK, 0},
                  {RLIMIT_NOFILE, MAX_FILES},
                  {RLIMIT_AS, memory_bytes}};
    for (size_t i = 0; i < PEN_LEN(limits); i++) {
        struct rlimit limit;
        if (getrlimit((__rlimit_resource_t)limits[i].what, &limit) < 0)
            return -errno;
        limit.rlim_max = PEN_MIN(limit.rlim_max, limits[i].most); /* it may be lower already */
        limit.rlim_cur = limit.rlim_max;
        if (setrlimit((__rlimit_resource_t)limits[i].what, &limit) < 0)
            return -errno;
    }
    return 0;
}

/* Before the limit of memory is set all of the stack that is needed has been touched: the memory is
 * our parent's, which may have more than that, and the stack could not grow any more. */
int pen__confine(const PenConfine *confine, const PenExecPath *path, uint64_t memory_bytes)
{
    PenFilter filter;
    pen__filter_build(&filter, path);
    int r = drop_capabilities();
    if (r == 0 && prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0)
        r = -errno;
    if (r == 0 && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        r = -errno;
    if (r == 0)
        r = pen__confine_files(confine);
    if (r == 0)
        r = set_limits(memory_bytes);
    if (r == 0 && pen__filter_install(&filter) < 0)
        r = -ENOSYS; /* a kernel without filters; what else fails keeps its own error */
    return r;
}
