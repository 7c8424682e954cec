/* SPDX-License-Identifier: Apache-2.0 */
/* To be preloaded: storage that stops answering. Reads from files whose path contains STALL_NAME
 * do not return while the file STALL_WHILE exists, and no signal ends them. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

typedef ssize_t (*Pread)(int fd, void *buf, size_t bytes, off_t offset);

static Pread next_pread;
static const char *name, *flag;

__attribute__((constructor)) static void begin(void)
{
    name = getenv("STALL_NAME");
    flag = getenv("STALL_WHILE");
    next_pread = (Pread)dlsym(RTLD_NEXT, "pread64");
}

static int is_stalled(int fd)
{
    char link[32], path[4096];
    if (!name || !flag || access(flag, F_OK) != 0)
        return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, path, sizeof path - 1);
    path[n > 0 ? n : 0] = '\0';
    return strstr(path, name) != NULL;
}

/* Has whatever name the library's own calls have: both are built with the same flags. */
ssize_t pread(int fd, void *buf, size_t bytes, off_t offset)
{
    const struct timespec moment = {.tv_nsec = 5000000};
    while (is_stalled(fd))
        nanosleep(&moment, NULL);
    return next_pread(fd, buf, bytes, offset);
}
