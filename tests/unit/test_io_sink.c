/* SPDX-License-Identifier: Apache-2.0 */
#include "io/sink.h"

#include "ingest_help.h"
#include "io/dir.h"
#include "io/source.h"
#include "io/store.h"

static size_t largest_write = SIZE_MAX;

static int64_t short_pwritev(int fd, const struct iovec *iov, int n, uint64_t offset)
{
    (void)n;
    struct iovec one = {iov->iov_base, iov->iov_len < largest_write ? iov->iov_len : largest_write};
    return pen__sys_real.pwritev(fd, &one, 1, offset);
}

static int failing_fsync(int fd)
{
    (void)fd;
    return -EIO;
}

static void check_content(const char *name, const char *text)
{
    PenBuf buf = {0};
    PenError err = {0};
    CHECK_INT(pen__file_load(at(name), 1000000, &buf, &err), PEN_OK);
    CHECK_INT(buf.bytes, strlen(text));
    CHECK_MEM(buf.data, text, buf.bytes);
    pen__buf_free(&buf);
}

TEST(a_file_appears_whole)
{
    PenSink *s = NULL;
    PenError err = {0};
    CHECK_INT(pen__sink_open(at("a.part"), &s, &err), PEN_OK);
    CHECK_INT(pen__sink_write(s, "hello ", 6, &err), PEN_OK);
    struct iovec iov[] = {{"wor", 3}, {NULL, 0}, {"ld", 2}};
    CHECK_INT(pen__sink_writev(s, iov, 3, &err), PEN_OK);
    CHECK_INT(pen__sink_bytes(s), 11);
    CHECK_INT(pen__file_exists(at("a"), &err), 0);
    CHECK_INT(pen__sink_commit(&s, at("a"), &err), PEN_OK);
    CHECK(!s);
    check_content("a", "hello world");
    CHECK_INT(pen__file_exists(at("a.part"), &err), 0);
}

TEST(short_writes_are_continued)
{
    static PenSys sys;
    sys = pen__sys_real;
    sys.pwritev = short_pwritev;
    for (largest_write = 1; largest_write < 6; largest_write++) {
        PenSink *s = NULL;
        PenError err = {0};
        struct iovec iov[] = {{"abc", 3}, {"d", 1}, {"efghij", 6}};
        pen__sys = &sys;
        int r = pen__sink_open(at("s.part"), &s, &err);
        if (r == PEN_OK)
            r = pen__sink_writev(s, iov, 3, &err);
        if (r == PEN_OK)
            r = pen__sink_commit(&s, at("s"), &err);
        pen__sys = &pen__sys_real;
        CHECK_INT(r, PEN_OK);
        check_content("s", "abcdefghij");
    }
}

TEST(more_pieces_than_the_kernel_takes)
{
    enum { N = 3000 };
    static struct iovec iov[N];
    static char expected[N + 1];
    PenSink *s = NULL;
    PenError err = {0};
    for (int i = 0; i < N; i++) {
        expected[i] = (char)('a' + i % 26);
        iov[i] = (struct iovec){&expected[i], 1};
    }
    CHECK_INT(pen__sink_open(at("m.part"), &s, &err), PEN_OK);
    CHECK_INT(pen__sink_writev(s, iov, N, &err), PEN_OK);
    CHECK_INT(pen__sink_commit(&s, at("m"), &err), PEN_OK);
    check_content("m", expected);
}

/* After a failed sync nobody knows what is on the disk: the file is given up. */
static size_t most_at_once;

static int64_t watched_pwritev(int fd, const struct iovec *iov, int n, uint64_t offset)
{
    size_t total = 0;
    for (int i = 0; i < n; i++)
        total += iov[i].iov_len;
    most_at_once = total > most_at_once ? total : most_at_once;
    return pen__sys_real.pwritev(fd, iov, n, offset);
}

TEST(large_pieces_are_cut)
{
    enum { LARGE = 1500000, N = 3 };
    static PenSys sys;
    static uint8_t pieces[N][LARGE];
    struct iovec iov[N];
    PenBuf buf = {0};
    PenSink *s = NULL;
    for (size_t k = 0; k < N; k++) {
        for (size_t i = 0; i < LARGE; i++)
            pieces[k][i] = (uint8_t)(i * 7 + (i >> 12) + k);
        iov[k] = (struct iovec){pieces[k], LARGE - k};
    }
    sys = pen__sys_real;
    sys.pwritev = watched_pwritev;
    pen__sys = &sys;
    int r = pen__sink_open(at("l.part"), &s, NULL);
    if (r == PEN_OK)
        r = pen__sink_writev(s, iov, N, NULL);
    if (r == PEN_OK)
        r = pen__sink_commit(&s, at("l"), NULL);
    pen__sys = &pen__sys_real;
    CHECK_INT(r, PEN_OK);
    CHECK(most_at_once > 0 && most_at_once <= 1 << 20);
    CHECK_INT(pen__file_load(at("l"), N * LARGE, &buf, NULL), PEN_OK);
    CHECK_INT(buf.bytes, N * LARGE - 3);
    CHECK_MEM(buf.data, pieces[0], LARGE);
    CHECK_MEM(buf.data + LARGE, pieces[1], LARGE - 1);
    CHECK_MEM(buf.data + 2 * LARGE - 1, pieces[2], LARGE - 2);
    pen__buf_free(&buf);
}

TEST(a_failed_sync_is_final)
{
    static PenSys sys;
    sys = pen__sys_real;
    sys.fsync = failing_fsync;
    PenSink *s = NULL;
    PenError err = {0};
    CHECK_INT(pen__sink_open(at("f.part"), &s, &err), PEN_OK);
    CHECK_INT(pen__sink_write(s, "x", 1, &err), PEN_OK);
    pen__sys = &sys;
    int r = pen__sink_commit(&s, at("f"), &err);
    pen__sys = &pen__sys_real;
    CHECK_INT(r, PEN_E_IO);
    CHECK(strstr(err.message, "cannot sync"));
    CHECK(!s);
    CHECK_INT(pen__file_exists(at("f"), &err), 0);
    CHECK_INT(pen__file_exists(at("f.part"), &err), 0);
}

TEST(a_lock_keeps_others_out)
{
    PenError err = {0};
    PenLock a = PEN_LOCK_NONE;
    PenLock b = PEN_LOCK_NONE;
    CHECK_INT(pen__dir_lock(help_root, 1, &a, &err), PEN_OK);
    CHECK_INT(pen__dir_lock(help_root, 0, &b, &err), PEN_E_BUSY);
    CHECK(strstr(err.message, "another process"));
    pen__dir_unlock(&a);
    CHECK_INT(pen__dir_lock(help_root, 0, &a, &err), PEN_OK);
    CHECK_INT(pen__dir_lock(help_root, 0, &b, &err), PEN_OK);
    pen__dir_unlock(&a);
    pen__dir_unlock(&b);
    pen__dir_unlock(&b);
}

TEST(directories)
{
    PenNames names = {0};
    help_text("d/b", "");
    help_text("d/a", "");
    help_text("d/.c", "");
    CHECK_GOES(pen__dir_list(at("d"), &names, &err));
    CHECK_INT(names.n, 3);
    CHECK_STR(names.names[0], ".c");
    CHECK_STR(names.names[2], "b");
    pen__names_free(&names);
    CHECK_GOES(pen__dir_make(at("d"), &err));
    CHECK_FAILS(pen__dir_make(at("d/a"), &err), PEN_E_EXISTS, "found a file");
    CHECK_FAILS(pen__dir_make(at("no/where"), &err), PEN_E_NOT_FOUND, "cannot create directory");
    CHECK_FAILS(pen__dir_list(at("no"), &names, &err), PEN_E_NOT_FOUND, "cannot list");
    CHECK_FAILS(pen__dir_remove(at("d"), &err), PEN_E_IO, "cannot remove directory");
    CHECK_GOES(pen__file_remove(at("d/never"), &err));
    char *path = pen__path_join("a//", "b");
    CHECK_STR(path, "a/b");
    pen__free(path);
    path = pen__path_join("/", "b");
    CHECK_STR(path, "//b");
    pen__free(path);
}

TEST(a_store_whose_directory_cannot_be_synced)
{
    PenError err = {0};
    PenStore *store = NULL;
    PenSys sys = pen__sys_real;
    CHECK_INT(pen__dir_make(at("store"), &err), PEN_OK);
    CHECK_INT(pen__store_open(at("store"), NULL, &store, &err), PEN_OK);
    CHECK_INT(pen__store_sync(store, NULL, &err), PEN_OK);
    CHECK_INT(pen__store_sync(store, "manifest", &err), PEN_OK);
    sys.fsync = failing_fsync;
    pen__sys = &sys;
    int top = pen__store_sync(store, NULL, &err), file = pen__store_sync(store, "manifest", &err);
    pen__sys = &pen__sys_real;
    CHECK_INT(top, PEN_E_IO);
    CHECK_INT(file, PEN_E_IO);
    CHECK(strstr(err.message, "sync"));
    CHECK_INT(pen__store_remove(store, "none", &err), PEN_OK);
    pen__store_close(&store);
}

int main(int argc, char **argv)
{
    TEST_START(argc, argv);
    help_begin();
    RUN(a_file_appears_whole);
    RUN(short_writes_are_continued);
    RUN(more_pieces_than_the_kernel_takes);
    RUN(large_pieces_are_cut);
    RUN(a_failed_sync_is_final);
    RUN(a_lock_keeps_others_out);
    RUN(directories);
    RUN(a_store_whose_directory_cannot_be_synced);
    help_end();
    return TEST_END();
}
