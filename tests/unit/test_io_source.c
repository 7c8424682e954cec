/* SPDX-License-Identifier: Apache-2.0 */
#include "io/source.h"

#include <errno.h>

#include "base/sys.h"
#include "ingest_help.h"

TEST(ranges_of_a_file)
{
    PenSource *s = NULL;
    char buf[16] = {0};
    help_text("file", "0123456789");
    PenError err = {0};
    CHECK_INT(pen__source_open_file(at("file"), &s, &err), PEN_OK);
    CHECK_INT(s->bytes, 10);
    CHECK_INT(pen__source_read(s, buf, 4, 3, &err), PEN_OK);
    CHECK_STR(buf, "3456");
    CHECK_INT(pen__source_read(s, buf, 0, 10, &err), PEN_OK);
    CHECK_INT(pen__source_read(s, buf, 1, 10, &err), PEN_E_CORRUPT);
    CHECK(strstr(err.message, "found only 10 in total"));
    CHECK_INT(pen__source_read(s, buf, 5, UINT64_MAX - 2, &err), PEN_E_CORRUPT);
    pen__source_close(&s);
    CHECK(!s);
    pen__source_close(&s);
}

/* A file that gets shorter while it is read is an error, not a signal or made-up bytes. */
TEST(a_file_that_is_cut_while_open)
{
    PenSource *s = NULL;
    char buf[16];
    help_text("cut", "0123456789");
    PenError err = {0};
    CHECK_INT(pen__source_open_file(at("cut"), &s, &err), PEN_OK);
    CHECK_INT(truncate(at("cut"), 5), 0);
    CHECK_INT(pen__source_read(s, buf, 10, 0, &err), PEN_E_CORRUPT);
    CHECK(strstr(err.message, "ends at offset 5"));
    pen__source_close(&s);
}

TEST(what_is_not_a_file)
{
    PenSource *s = NULL;
    PenBuf buf = {0};
    CHECK_FAILS(pen__source_open_file(at("nothing"), &s, &err), PEN_E_NOT_FOUND, "nothing");
    CHECK_FAILS(pen__source_open_file(help_root, &s, &err), PEN_E_INVALID, "found a directory");
    help_text("large", "0123456789");
    CHECK_FAILS(pen__file_load(at("large"), 9, &buf, &err), PEN_E_LIMIT, "found 10");
    PenError err = {0};
    CHECK_INT(pen__file_load(at("large"), 10, &buf, &err), PEN_OK);
    CHECK_MEM(buf.data, "0123456789", 10);
    for (int i = 0; i < PEN_SLACK; i++)
        CHECK_INT(buf.data[10 + i], 0);
    pen__buf_free(&buf);
}

TEST(ranges_of_memory)
{
    PenSource *s = NULL;
    char buf[4] = {0};
    PenError err = {0};
    CHECK_INT(pen__source_open_memory("m", "abcdef", 6, &s, &err), PEN_OK);
    CHECK_INT(pen__source_read(s, buf, 3, 3, &err), PEN_OK);
    CHECK_STR(buf, "def");
    CHECK_INT(pen__source_read(s, buf, 3, 4, &err), PEN_E_CORRUPT);
    pen__source_close(&s);
}

/* Cut into places in every way, a file gives what one read gives. */
static void check_places(PenSource *s, const char *all)
{
    for (size_t i = 0; i <= 6; i++)
        for (size_t k = i; k <= 6; k++) {
            char buf[8] = "--------";
            struct iovec v[4] = {{buf, i}, {buf + i, k - i}, {NULL, 0}, {buf + k, 6 - k}};
            CHECK_INT(pen__source_read_v(s, v, 4, 3, NULL, NULL), PEN_OK);
            CHECK_MEM(buf, all + 3, 6);
            CHECK_MEM(buf + 6, "--", 2);
        }
}

TEST(several_places)
{
    char one[64];
    struct iovec v[PEN_SOURCE_PLACES + 1], huge[2] = {{one, SIZE_MAX}, {one, 2}};
    help_text("places", "0123456789abcdef");
    for (int kind = 0; kind < 2; kind++) {
        PenSource *s = NULL;
        CHECK_INT(kind ? pen__source_open_memory("m", "0123456789abcdef", 16, &s, NULL)
                       : pen__source_open_file(at("places"), &s, NULL),
                  PEN_OK);
        check_places(s, "0123456789abcdef");
        for (int i = 0; i <= PEN_SOURCE_PLACES; i++)
            v[i] = (struct iovec){one + i, 1};
        CHECK_INT(pen__source_read_v(s, v, PEN_SOURCE_PLACES, 0, NULL, NULL), PEN_OK);
        CHECK_MEM(one, "0123456789abcdef", 16);
        CHECK_INT(pen__source_read_v(s, v, 0, 16, NULL, NULL), PEN_OK);
        v[0].iov_len = 0; /* more than one read takes */
        CHECK_INT(pen__source_read_v(s, v, PEN_SOURCE_PLACES + 1, 0, NULL, NULL), PEN_OK);
        CHECK_MEM(one + 1, "0123456789abcdef", 16);
        v[0].iov_len = 1;
        CHECK_FAILS(pen__source_read_v(s, v, PEN_SOURCE_PLACES + 1, 0, NULL, &err), PEN_E_CORRUPT,
                    "found only 16 in total");
        CHECK_FAILS(pen__source_read_v(s, v, 2, 15, NULL, &err), PEN_E_CORRUPT,
                    "found only 16 in total");
        CHECK_FAILS(pen__source_read_v(s, huge, 2, 0, NULL, &err), PEN_E_CORRUPT,
                    "found only 16 in total");
        pen__source_close(&s);
    }
}

static int calls, call_fails;

/* One byte at a time, which is no failure; the call of that number is one. */
static int64_t odd_preadv(int fd, const struct iovec *iov, int n, uint64_t offset)
{
    struct iovec one = {iov->iov_base, 1};
    if (n < 1 || !iov->iov_len)
        return -EINVAL;
    return ++calls == call_fails ? -EIO : pen__sys_real.preadv(fd, &one, 1, offset);
}

/* Every call that reads may give a single byte, or fail, or find the file cut. */
TEST(several_places_of_a_file_that_fails)
{
    PenSource *s = NULL;
    char buf[8];
    struct iovec v[2] = {{buf, 3}, {buf + 3, 4}};
    help_text("fails", "0123456789");
    CHECK_INT(pen__source_open_file(at("fails"), &s, NULL), PEN_OK);
    PenSys odd = pen__sys_real;
    odd.preadv = odd_preadv;
    pen__sys = &odd;
    check_places(s, "0123456789");
    for (call_fails = 1; call_fails <= 7; call_fails++) {
        calls = 0;
        CHECK_FAILS(pen__source_read_v(s, v, 2, 2, NULL, &err), PEN_E_IO, "fails: cannot read ");
    }
    pen__sys = &pen__sys_real;
    CHECK_INT(truncate(at("fails"), 5), 0);
    CHECK_FAILS(pen__source_read_v(s, v, 2, 2, NULL, &err), PEN_E_CORRUPT, "ends at offset 5");
    pen__source_close(&s);
}

static int drop_result;

static int odd_drop(int fd, uint64_t offset, uint64_t bytes)
{
    return fd >= 0 && offset == 2 && bytes == 5 ? drop_result : -EINVAL;
}

TEST(dropped_pages_are_those_that_the_kernel_has_dropped)
{
    PenSource *s = NULL;
    PenSys odd = pen__sys_real;
    odd.cache_drop = odd_drop;
    CHECK_INT(pen__source_open_memory("memory", "0123456789", 10, &s, NULL), PEN_OK);
    CHECK(!pen__source_drop(s, 5, 2));
    pen__source_close(&s);
    help_text("drops", "0123456789");
    CHECK_INT(pen__source_open_file(at("drops"), &s, NULL), PEN_OK);
    pen__sys = &odd;
    for (drop_result = -2; drop_result <= 1; drop_result++)
        CHECK_INT(pen__source_drop(s, 5, 2), drop_result == 1);
    pen__sys = &pen__sys_real;
    pen__source_close(&s);
}

int main(int argc, char **argv)
{
    TEST_START(argc, argv);
    help_begin();
    RUN(ranges_of_a_file);
    RUN(a_file_that_is_cut_while_open);
    RUN(what_is_not_a_file);
    RUN(ranges_of_memory);
    RUN(several_places);
    RUN(several_places_of_a_file_that_fails);
    RUN(dropped_pages_are_those_that_the_kernel_has_dropped);
    help_end();
    return TEST_END();
}
