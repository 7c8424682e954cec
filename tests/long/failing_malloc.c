/* SPDX-License-Identifier: Apache-2.0 */
/* To be preloaded: the n-th allocation of the process fails, once or from then on, in whatever
 * library it is made. FAIL_AT=N, FAIL_EVER=1, FAIL_COUNT=FILE (gets the number of allocations),
 * FAIL_SPARE=NAME (not in the library whose file name contains that). */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void *memalign(size_t align, size_t bytes);
void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t n, size_t bytes);
void *__libc_realloc(void *p, size_t bytes);
void *__libc_memalign(size_t align, size_t bytes);

static atomic_ulong calls;
static unsigned long fail_at; /* 0 until main is near: the loader's own calls do not count */
static bool fail_ever;
static const char *spare;

__attribute__((constructor)) static void begin(void)
{
    const char *at = getenv("FAIL_AT");
    fail_ever = getenv("FAIL_EVER") != NULL;
    spare = getenv("FAIL_SPARE");
    atomic_store(&calls, 0);
    fail_at = at ? strtoul(at, NULL, 10) : 0;
}

__attribute__((destructor)) static void end(void)
{
    const char *path = getenv("FAIL_COUNT");
    char text[32];
    fail_at = 0;
    int fd = path ? open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666) : -1;
    if (fd < 0)
        return;
    int n = snprintf(text, sizeof text, "%lu", atomic_load(&calls));
    if (write(fd, text, (size_t)n) != n)
        _exit(99);
    close(fd);
}

static bool is_spared(const void *caller)
{
    Dl_info info;
    return spare && dladdr(caller, &info) && info.dli_fname && strstr(info.dli_fname, spare);
}

static bool fails(const void *caller)
{
    unsigned long n = atomic_fetch_add(&calls, 1) + 1;
    bool hit = fail_at && (n == fail_at || (fail_ever && n > fail_at)) && !is_spared(caller);
    if (hit)
        errno = ENOMEM;
    return hit;
}

void *malloc(size_t bytes)
{
    return fails(__builtin_return_address(0)) ? NULL : __libc_malloc(bytes);
}

void *calloc(size_t n, size_t bytes)
{
    return fails(__builtin_return_address(0)) ? NULL : __libc_calloc(n, bytes);
}

void *realloc(void *p, size_t bytes)
{
    return fails(__builtin_return_address(0)) ? NULL : __libc_realloc(p, bytes);
}

void *memalign(size_t align, size_t bytes)
{
    return fails(__builtin_return_address(0)) ? NULL : __libc_memalign(align, bytes);
}

void *aligned_alloc(size_t align, size_t bytes)
{
    return memalign(align, bytes);
}

int posix_memalign(void **ret, size_t align, size_t bytes)
{
    void *p = memalign(align, bytes);
    if (!p)
        return ENOMEM;
    *ret = p;
    return 0;
}
