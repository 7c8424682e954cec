/* SPDX-License-Identifier: Apache-2.0 */
#include "base/machine/cores.h"

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

static unsigned share_with(const FakeFile *list, int n, unsigned processes, unsigned job)
{
    PenSys sys = pen__sys_real;
    sys.open = fake_open;
    sys.close = fake_close;
    sys.pread = fake_pread;
    files = list;
    n_files = n;
    pen__sys = &sys;
    unsigned cores = pen__cores_share(processes, job);
    pen__sys = &pen__sys_real;
    return cores;
}

#define SHARE(processes, job, ...)                                                                 \
    share_with((const FakeFile[]){__VA_ARGS__}, PEN_LEN(((FakeFile[]){__VA_ARGS__})), processes,   \
               job)
#define ONLINE "/sys/devices/system/cpu/online"

/* "0-N", so that the machine has as many cores as the process may use. */
static const char *as_many(void)
{
    static char text[32];
    snprintf(text, sizeof text, "0-%u\n", all_cores() - 1);
    return text;
}

TEST(shares_of_a_machine)
{
    unsigned all = all_cores();
    const char *list = as_many();
    CHECK_INT(SHARE(1, 0, {ONLINE, list}), all);
    CHECK_INT(SHARE(2, 0, {ONLINE, list}), PEN_MAX(all / 2, 1));
    CHECK_INT(SHARE(1000, 0, {ONLINE, list}), 1);
    CHECK_INT(SHARE(2, 0, {ONLINE, NULL}), PEN_MAX(all / 2, 1));
    CHECK_INT(SHARE(2, 0, {ONLINE, "nonsense"}), PEN_MAX(all / 2, 1));
    /* The machine has many more: somebody has bound this process already. */
    CHECK_INT(SHARE(2, 0, {ONLINE, "0-9999\n"}), all);
    CHECK_INT(SHARE(2, 0, {ONLINE, "0-3,9,5000-9999\n"}), all);
    CHECK_INT(SHARE(2, 0, {ONLINE, "0-70000\n"}), PEN_MAX(all / 2, 1));
    /* Bound to half of it, which eight of them share: a socket of two. */
    char twice[32];
    snprintf(twice, sizeof twice, "0-%u\n", 2 * all - 1);
    CHECK_INT(SHARE(2, 0, {ONLINE, twice}), all);
    CHECK_INT(SHARE(4, 0, {ONLINE, twice}), PEN_MAX(all / 2, 1));
    CHECK_INT(SHARE(8, 0, {ONLINE, twice}), PEN_MAX(all / 4, 1));
    CHECK_INT(n_open, 0);
}

/* The container has no more than the process: nobody has divided it. */
TEST(shares_of_a_container)
{
    unsigned all = all_cores();
    const char *list = as_many();
    CHECK_INT(SHARE(2, 0, {ONLINE, "0-9999\n"}, {"/proc/self/cgroup", "0::/\n"},
                    {"/sys/fs/cgroup/cpuset.cpus.effective", list}),
              PEN_MAX(all / 2, 1));
    CHECK_INT(SHARE(2, 0, {ONLINE, "0-9999\n"}, {"/proc/self/cgroup", "3:cpuset:/docker/1\n"},
                    {"/sys/fs/cgroup/cpuset/cpuset.effective_cpus", list}),
              PEN_MAX(all / 2, 1));
    /* A group inside of it is this process's alone, or it would not be narrower. */
    CHECK_INT(SHARE(2, 0, {ONLINE, "0-9999\n"}, {"/proc/self/cgroup", "0::/job/task\n"},
                    {"/sys/fs/cgroup/job/task/cpuset.cpus.effective", list},
                    {"/sys/fs/cgroup/job/cpuset.cpus.effective", "0-9999\n"}),
              all);
}

/* The cores of the job, as Slurm has them. */
TEST(shares_of_a_job)
{
    unsigned all = all_cores();
    CHECK_INT(SHARE(2, all, {ONLINE, "0-9999\n"}), PEN_MAX(all / 2, 1));
    CHECK_INT(SHARE(2, 2 * all, {ONLINE, "0-9999\n"}), all);
    CHECK_INT(SHARE(2, 1, {ONLINE, "0-9999\n"}), 1);
    CHECK_INT(SHARE(1, 1, {ONLINE, as_many()}), 1);
    CHECK_INT(SHARE(2, all, {ONLINE, NULL}), PEN_MAX(all / 2, 1));
}

/* A quota is one of all processes, whether they are bound or not. */
TEST(shares_of_a_quota)
{
    CHECK_INT(SHARE(2, 0, {ONLINE, "0-9999\n"}, {"/proc/self/cgroup", "0::/\n"},
                    {"/sys/fs/cgroup/cpu.max", "200000 100000\n"}),
              1);
    CHECK_INT(SHARE(1, 0, {ONLINE, as_many()}, {"/proc/self/cgroup", "0::/\n"},
                    {"/sys/fs/cgroup/cpu.max", "100000 100000\n"}),
              1);
}

int main(int argc, char **argv)
{
    TEST_START(argc, argv);
    RUN(affinity);
    RUN(real);
    RUN(quota_v2);
    RUN(quota_v1);
    RUN(nonsense_is_ignored);
    RUN(shares_of_a_machine);
    RUN(shares_of_a_container);
    RUN(shares_of_a_job);
    RUN(shares_of_a_quota);
    return TEST_END();
}
