/* SPDX-License-Identifier: Apache-2.0 */
#include "io/source.h"

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
    CHECK(strstr(err.message, "found only 10 in all"));
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

int main(int argc, char **argv)
{
    TEST_START(argc, argv);
    help_begin();
    RUN(ranges_of_a_file);
    RUN(a_file_that_is_cut_while_open);
    RUN(what_is_not_a_file);
    RUN(ranges_of_memory);
    help_end();
    return TEST_END();
}
