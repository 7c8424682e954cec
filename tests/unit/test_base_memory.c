/* SPDX-License-Identifier: Apache-2.0 */
/* How much memory there is, by what the kernel's files say. */
#include <errno.h>
#include <stdlib.h>

#include "base/attr.h"
#include "base/machine/memory.h"
#include "base/sys.h"
#include "test.h"

typedef struct File {
    const char *path, *text;
} File;

static const File *files; /* ends without a path */

/* Their numbers stand for open files. */
static int fake_open(const char *path, int how)
{
    (void)how;
    for (int i = 0; files[i].path; i++)
        if (strcmp(files[i].path, path) == 0)
            return i;
    return -ENOENT;
}

static int fake_close(int fd)
{
    (void)fd;
    return 0;
}

static int64_t fake_pread(int fd, void *buf, size_t bytes, uint64_t offset)
{
    const char *text = files[fd].text;
    if (!text)
        return -EIO;
    size_t n = strlen(text) - offset;
    n = n < bytes ? n : bytes;
    memcpy(buf, text + offset, n);
    return (int64_t)n;
}

static PenAvailable ask(const File *these, PenAvailable (*question)(void))
{
    static PenSys sys;
    sys = pen__sys_real;
    sys.open = fake_open;
    sys.close = fake_close;
    sys.pread = fake_pread;
    files = these;
    pen__sys = &sys;
    PenAvailable a = question();
    pen__sys = &pen__sys_real;
    return a;
}

static PenAvailable with(const File *these)
{
    return ask(these, pen__memory_available);
}

static const char meminfo[] = "MemTotal:  16000 kB\nMemFree: 1 kB\nMemAvailable:    8000 kB\n";

TEST(the_machine)
{
    PenAvailable a = with((const File[]){{"/proc/meminfo", meminfo}, {0}});
    CHECK_INT(a.bytes, 8000 * 1024);
    CHECK(!a.is_by_group);
    a = with((const File[]){{"/proc/meminfo", "MemTotal: 5 kB\n"}, {0}});
    CHECK(a.bytes == UINT64_MAX);
    a = with((const File[]){{"/proc/meminfo", NULL}, {"/proc/self/cgroup", NULL}, {0}});
    CHECK(a.bytes == UINT64_MAX);
    a = with((const File[]){{0}});
    CHECK(a.bytes == UINT64_MAX);
}

/* The job's own limit is wide, that of what contains it is not. */
TEST(version_2)
{
    PenAvailable a = with((const File[]){
        {"/proc/meminfo", meminfo},
        {"/proc/self/cgroup", "0::/user/job\n"},
        {"/sys/fs/cgroup/user/job/memory.max", "max\n"},
        {"/sys/fs/cgroup/user/job/memory.current", "100\n"},
        {"/sys/fs/cgroup/user/memory.max", "5000000\n"},
        {"/sys/fs/cgroup/user/memory.current", "3000000\n"},
        {"/sys/fs/cgroup/user/memory.stat", "anon 7\ninactive_file 200000\nactive_file 300000\n"},
        {0}});
    CHECK_INT(a.bytes, 5000000 - 3000000 + 500000);
    CHECK(a.is_by_group);
    a = with((const File[]){{"/proc/self/cgroup", "0::/\n"},
                            {"/sys/fs/cgroup/memory.max", "1000\n"},
                            {"/sys/fs/cgroup/memory.current", "3000\n"},
                            {0}});
    CHECK_INT(a.bytes, 0);
    CHECK(a.is_by_group);
}

TEST(version_1)
{
    PenAvailable a = with(
        (const File[]){{"/proc/meminfo", meminfo},
                       {"/proc/self/cgroup", "5:cpu,cpuacct:/x\n4:memory:/job\n"},
                       {"/sys/fs/cgroup/memory/job/memory.limit_in_bytes", "4000000\n"},
                       {"/sys/fs/cgroup/memory/job/memory.usage_in_bytes", "1000000\n"},
                       {"/sys/fs/cgroup/memory/job/memory.stat",
                        "inactive_file 9\ntotal_inactive_file 50000\ntotal_active_file 1\n"},
                       {"/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"},
                       {"/sys/fs/cgroup/memory/memory.usage_in_bytes", "1\n"},
                       {0}});
    CHECK_INT(a.bytes, 3000000 + 50001);
    CHECK(a.is_by_group);
}

/* What is in use does not count. */
TEST(limits)
{
    PenAvailable a = ask((const File[]){{"/proc/meminfo", meminfo}, {0}}, pen__memory_limit);
    CHECK_INT(a.bytes, 16000 * 1024);
    CHECK(!a.is_by_group);
    a = ask((const File[]){{"/proc/meminfo", meminfo},
                           {"/proc/self/cgroup", "0::/user/job\n"},
                           {"/sys/fs/cgroup/user/job/memory.max", "max\n"},
                           {"/sys/fs/cgroup/user/memory.max", "5000000\n"},
                           {"/sys/fs/cgroup/user/memory.current", "3000000\n"},
                           {0}},
            pen__memory_limit);
    CHECK_INT(a.bytes, 5000000);
    CHECK(a.is_by_group);
    a = ask((const File[]){{0}}, pen__memory_limit);
    CHECK(a.bytes == UINT64_MAX);
}

TEST(this_machine_says_something)
{
    PenAvailable limit = pen__memory_limit();
    CHECK(limit.bytes > 0 && limit.bytes < UINT64_MAX);
    PenAvailable a = pen__memory_available();
    CHECK(a.bytes > 0 && a.bytes < UINT64_MAX);
}

int main(int argc, char **argv)
{
    TEST_START(argc, argv);
    RUN(the_machine);
    RUN(version_2);
    RUN(version_1);
    RUN(limits);
    RUN(this_machine_says_something);
    return TEST_END();
}
