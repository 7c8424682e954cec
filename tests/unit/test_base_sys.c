/* SPDX-License-Identifier: Apache-2.0 */
#include "base/sys.h"

#include <errno.h>
#include <stdlib.h>

#include "test.h"

static char dir[64];
static char path_a[96], path_b[96];

static int count_names(void *ctx, const char *name)
{
    (*(int *)ctx)++;
    return name[0] == 'z' ? 9 : 0;
}

TEST(files)
{
    int fd = pen__sys->open(path_a, PEN_OPEN_CREATE);
    CHECK(fd >= 0);
    struct iovec iov[2] = {{"hello ", 6}, {"world", 5}};
    CHECK_INT(pen__sys->pwritev(fd, iov, 2, 0), 11);
    CHECK_INT(pen__sys->fsync(fd), 0);
    PenFileStat st;
    CHECK_INT(pen__sys->stat_fd(fd, &st), 0);
    CHECK_INT(st.bytes, 11);
    CHECK(st.is_file && !st.is_dir);
    CHECK_INT(pen__sys->close(fd), 0);
    CHECK_INT(pen__sys->rename(PEN_AT_CWD, path_a, PEN_AT_CWD, path_b), 0);
    fd = pen__sys->open(path_b, PEN_OPEN_READ);
    CHECK(fd >= 0);
    char text[16] = {0};
    CHECK_INT(pen__sys->pread(fd, text, sizeof text, 6), 5);
    CHECK_STR(text, "world");
    CHECK_INT(pen__sys->pread(fd, text, sizeof text, 11), 0);
    CHECK_INT(pen__sys->close(fd), 0);
    CHECK_INT(pen__sys->unlink(PEN_AT_CWD, path_b), 0);
}

TEST(failures_are_negative_errno)
{
    PenFileStat st;
    char c;
    struct iovec iov = {&c, 1};
    CHECK_INT(pen__sys->open(path_a, PEN_OPEN_READ), -ENOENT);
    CHECK_INT(pen__sys->open("/dev/null", PEN_OPEN_DIR), -ENOTDIR);
    CHECK_INT(pen__sys->stat_path(path_a, &st), -ENOENT);
    CHECK_INT(pen__sys->stat_fd(-1, &st), -EBADF);
    CHECK_INT(pen__sys->pread(-1, &c, 1, 0), -EBADF);
    CHECK_INT(pen__sys->pwritev(-1, &iov, 1, 0), -EBADF);
    CHECK_INT(pen__sys->fsync(-1), -EBADF);
    CHECK_INT(pen__sys->close(-1), -EBADF);
    CHECK_INT(pen__sys->rename(PEN_AT_CWD, path_a, PEN_AT_CWD, path_b), -ENOENT);
    CHECK_INT(pen__sys->unlink(PEN_AT_CWD, path_a), -ENOENT);
    CHECK_INT(pen__sys->rmdir(PEN_AT_CWD, path_a), -ENOENT);
    CHECK_INT(pen__sys->mkdir(PEN_AT_CWD, dir), -EEXIST);
    CHECK_INT(pen__sys->list(path_a, count_names, NULL), -ENOENT);
}

TEST(list_gives_each_name_once)
{
    int n = 0;
    CHECK_INT(pen__sys->list(dir, count_names, &n), 0);
    CHECK_INT(n, 0);
    CHECK_INT(pen__sys->mkdir(PEN_AT_CWD, path_a), 0);
    CHECK_INT(pen__sys->list(dir, count_names, &n), 0);
    CHECK_INT(n, 1);
    CHECK_INT(pen__sys->mkdir(PEN_AT_CWD, path_b), 0); /* z: stops there */
    CHECK_INT(pen__sys->list(dir, count_names, &n), 9);
    CHECK_INT(pen__sys->rmdir(PEN_AT_CWD, path_a), 0);
    CHECK_INT(pen__sys->rmdir(PEN_AT_CWD, path_b), 0);
}

TEST(locks)
{
    int a = pen__sys->open(dir, PEN_OPEN_DIR), b = pen__sys->open(dir, PEN_OPEN_DIR);
    CHECK(a >= 0 && b >= 0);
    CHECK_INT(pen__sys->lock(a, 1), 0);
    CHECK_INT(pen__sys->lock(b, 1), -EWOULDBLOCK);
    CHECK_INT(pen__sys->lock(b, 0), -EWOULDBLOCK);
    pen__sys->close(a);
    CHECK_INT(pen__sys->lock(b, 1), 0);
    pen__sys->close(b);
}

TEST(clock_and_random)
{
    uint64_t now = pen__sys->now_ns();
    CHECK(pen__sys->now_ns() >= now);
    uint8_t a[32] = {0}, b[32] = {0};
    CHECK_INT(pen__sys->random(a, sizeof a), 0);
    CHECK_INT(pen__sys->random(b, sizeof b), 0);
    CHECK(memcmp(a, b, sizeof a) != 0);
}

int main(int argc, char **argv)
{
    TEST_START(argc, argv);
    const char *tmp = getenv("TMPDIR");
    snprintf(dir, sizeof dir, "%.40s/pen-sys-XXXXXX", tmp ? tmp : "/tmp");
    if (!mkdtemp(dir))
        return 1;
    snprintf(path_a, sizeof path_a, "%s/a", dir);
    snprintf(path_b, sizeof path_b, "%s/z", dir);
    RUN(files);
    RUN(failures_are_negative_errno);
    RUN(list_gives_each_name_once);
    RUN(locks);
    RUN(clock_and_random);
    pen__sys->rmdir(PEN_AT_CWD, dir);
    return TEST_END();
}
