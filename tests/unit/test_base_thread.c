/* SPDX-License-Identifier: Apache-2.0 */
#include "base/thread.h"

#include <errno.h>
#include <sched.h>

#include "test.h"

#include "base/attr.h"
#include "base/sys.h"

/* A file system of a few files: a descriptor is the place in this list. */
typedef struct FakeFile {
    const char *path, *text;
} FakeFile;

static const FakeFile *files;
static int n_files, n_open;

static int fake_open(const char *path, int how)
{
    (void)how;
    for (int i = 0; i < n_files; i++) {
        if (strcmp(files[i].path, path) == 0) {
            n_open++;
            return i;
        }
    }
    return -ENOENT;
}

static int fake_close(int fd)
{
    (void)fd;
    n_open--;
    return 0;
}

/* Gives at most three bytes at a time, as a file system may; fails at a '!'. */
static int64_t fake_pread(int fd, void *buf, size_t bytes, uint64_t offset)
{
    const char *text = files[fd].text;
    if (!text)
        return -EIO;
    size_t n = strlen(text) - PEN_MIN(strlen(text), offset);
    n = PEN_MIN(PEN_MIN(n, bytes), 3);
    memcpy(buf, text + offset, n);
    if (n && memchr(buf, '!', n))
        return -EIO;
    return (int64_t)n;
}

static unsigned cores_with(const FakeFile *list, int n)
{
    PenSys sys = pen__sys_real;
    sys.open = fake_open;
    sys.close = fake_close;
    sys.pread = fake_pread;
    files = list;
    n_files = n;
    pen__sys = &sys;
    unsigned cores = pen__thread_cores();
    pen__sys = &pen__sys_real;
    return cores;
}

#define CORES(...) cores_with((const FakeFile[]){__VA_ARGS__}, PEN_LEN(((FakeFile[]){__VA_ARGS__})))

static unsigned all_cores(void)
{
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) == 0 ? (unsigned)CPU_COUNT(&set) : 1;
}

TEST(affinity)
{
    cpu_set_t old, one;
    CHECK_INT(sched_getaffinity(0, sizeof old, &old), 0);
    CHECK_INT(cores_with(NULL, 0), CPU_COUNT(&old));
    size_t first = 0;
    while (!CPU_ISSET(first, &old))
        first++;
    CPU_ZERO(&one);
    CPU_SET(first, &one);
    CHECK_INT(sched_setaffinity(0, sizeof one, &one), 0);
    unsigned cores = cores_with(NULL, 0);
    sched_setaffinity(0, sizeof old, &old);
    CHECK_INT(cores, 1);
}

/* The machine's own answer is between 1 and its cores. */
TEST(real)
{
    unsigned cores = pen__thread_cores();
    CHECK(cores >= 1 && cores <= all_cores());
}

TEST(quota_v2)
{
    unsigned all = all_cores();
    CHECK_INT(CORES({"/proc/self/cgroup", "0::/\n"}, {"/sys/fs/cgroup/cpu.max", "50000 100000\n"}),
              1);
    CHECK_INT(
        CORES({"/proc/self/cgroup", "0::/a/b\n"}, {"/sys/fs/cgroup/a/b/cpu.max", "max 100000\n"}),
        all);
    CHECK_INT(CORES({"/proc/self/cgroup", "0::/a/b\n"},
                    {"/sys/fs/cgroup/a/b/cpu.max", "max 100000\n"},
                    {"/sys/fs/cgroup/a/cpu.max", "1000 100000\n"}),
              1);
    /* Rounded up: 1.0001 cores are two. */
    CHECK_INT(
        CORES({"/proc/self/cgroup", "0::/a\n"}, {"/sys/fs/cgroup/a/cpu.max", "100010 100000"}),
        PEN_MIN(2, all));
    /* The path of the host, where only the root is visible. */
    CHECK_INT(CORES({"/proc/self/cgroup", "0::/docker/0123\n"},
                    {"/sys/fs/cgroup/cpu.max", "100000 100000\n"}),
              1);
    CHECK_INT(n_open, 0);
}

TEST(quota_v1)
{
    unsigned all = all_cores();
    const char *cgroup = "12:memory:/x\n5:cpu,cpuacct:/x\n1:name=systemd:/\n";
    CHECK_INT(CORES({"/proc/self/cgroup", cgroup},
                    {"/sys/fs/cgroup/cpu/x/cpu.cfs_quota_us", "90000\n"},
                    {"/sys/fs/cgroup/cpu/x/cpu.cfs_period_us", "100000\n"}),
              1);
    CHECK_INT(CORES({"/proc/self/cgroup", cgroup},
                    {"/sys/fs/cgroup/cpu/x/cpu.cfs_quota_us", "-1\n"},
                    {"/sys/fs/cgroup/cpu/x/cpu.cfs_period_us", "100000\n"}),
              all);
    /* A quota of another controller is not ours. */
    CHECK_INT(CORES({"/proc/self/cgroup", "5:cpuset:/x\n"},
                    {"/sys/fs/cgroup/cpu/x/cpu.cfs_quota_us", "90000\n"},
                    {"/sys/fs/cgroup/cpu/x/cpu.cfs_period_us", "100000\n"}),
              all);
    CHECK_INT(n_open, 0);
}

TEST(nonsense_is_ignored)
{
    unsigned all = all_cores();
    CHECK_INT(CORES({"/proc/self/cgroup", ""}), all);
    CHECK_INT(CORES({"/proc/self/cgroup", NULL}), all);
    CHECK_INT(CORES({"/proc/self/cgroup", "0\n0:\n::\n0::x\n"}), all);
    CHECK_INT(CORES({"/proc/self/cgroup", "0::/\n"}, {"/sys/fs/cgroup/cpu.max", "words\n"}), all);
    CHECK_INT(CORES({"/proc/self/cgroup", "0::/\n"}, {"/sys/fs/cgroup/cpu.max", "100 0\n"}), all);
    CHECK_INT(CORES({"/proc/self/cgroup", "0::/\n"}, {"/sys/fs/cgroup/cpu.max", NULL}), all);
    CHECK_INT(CORES({"/proc/self/cgroup", "0::/\n"}, {"/sys/fs/cgroup/cpu.max", "1 99   !"}), all);
    CHECK_INT(n_open, 0);
}

TEST(deadline_saturates)
{
    CHECK_INT(pen__deadline_after(UINT64_MAX), UINT64_MAX);
    uint64_t now = pen__sys->now_ns();
    CHECK(pen__deadline_after(5) >= now + 5);
}

static int refusing_start(pthread_t *ret, void *(*run)(void *), void *arg)
{
    (void)ret, (void)run, (void)arg;
    return -EAGAIN;
}

static void *store_seven(void *arg)
{
    *(int *)arg = 7;
    return NULL;
}

TEST(start_and_refusal)
{
    pthread_t t;
    int seven = 0;
    CHECK_INT(pen__thread_start(&t, store_seven, &seven, NULL), PEN_OK);
    pen__thread_join(t);
    CHECK_INT(seven, 7);
    PenSys sys = pen__sys_real;
    sys.thread_start = refusing_start;
    PenError err = {0};
    pen__sys = &sys;
    int r = pen__thread_start(&t, store_seven, &seven, &err);
    pen__sys = &pen__sys_real;
    CHECK_INT(r, PEN_E_LIMIT);
    CHECK_INT(err.os_errno, EAGAIN);
}

static void *tell_name(void *arg)
{
    pen__thread_name("pen-decode");
    return pthread_getname_np(pthread_self(), arg, 16) == 0 ? arg : NULL;
}

TEST(a_name_of_its_own)
{
    char before[16] = "", name[16] = "", after[16] = "";
    pthread_t t;
    pthread_getname_np(pthread_self(), before, sizeof before);
    CHECK_INT(pen__thread_start(&t, tell_name, name, NULL), PEN_OK);
    pen__thread_join(t);
    pthread_getname_np(pthread_self(), after, sizeof after);
    CHECK_STR(name, "pen-decode");
    CHECK_STR(after, before);
}

int main(int argc, char **argv)
{
    TEST_START(argc, argv);
    RUN(affinity);
    RUN(real);
    RUN(quota_v2);
    RUN(quota_v1);
    RUN(nonsense_is_ignored);
    RUN(deadline_saturates);
    RUN(start_and_refusal);
    RUN(a_name_of_its_own);
    return TEST_END();
}
