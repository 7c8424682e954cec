/* SPDX-License-Identifier: Apache-2.0 */
#include "base/error.h"

#include <errno.h>

#include "test.h"

TEST(fail_fills)
{
    PenError e = {.sample = 5};
    CHECK_INT(pen__fail(&e, PEN_E_CORRUPT, "pack/block", "block %d: bad", 7), PEN_E_CORRUPT);
    CHECK_INT(e.status, PEN_E_CORRUPT);
    CHECK_INT(e.os_errno, 0);
    CHECK_INT(e.sample, -1);
    CHECK_STR(e.where, "pack/block");
    CHECK_STR(e.message, "block 7: bad");
    CHECK_INT(pen__fail(NULL, PEN_E_IO, "x", "y"), PEN_E_IO);
}

TEST(fail_os_names_the_reason)
{
    PenError e;
    CHECK_INT(pen__fail_os(&e, ENOENT, "io/file", "%s: open", "a.pen"), PEN_E_NOT_FOUND);
    CHECK_INT(e.os_errno, ENOENT);
    CHECK_STR(e.message, "a.pen: open: No such file or directory");
    CHECK_INT(pen__fail_os(NULL, EACCES, "x", "y"), PEN_E_ACCESS);
    CHECK_INT(pen__fail_os(NULL, ENOMEM, "x", "y"), PEN_E_NO_MEMORY);
    CHECK_INT(pen__fail_os(NULL, EEXIST, "x", "y"), PEN_E_EXISTS);
    CHECK_INT(pen__fail_os(NULL, EWOULDBLOCK, "x", "y"), PEN_E_BUSY);
    CHECK_INT(pen__fail_os(NULL, EINVAL, "x", "y"), PEN_E_INVALID);
    CHECK_INT(pen__fail_os(NULL, ENOSPC, "x", "y"), PEN_E_IO);
}

/* Whatever the lengths, the message ends inside its room. */
TEST(long_texts_are_cut)
{
    char text[2000];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = 0;
    PenError e;
    pen__fail(&e, PEN_E_IO, text, "%s", text);
    CHECK_INT(strlen(e.where), sizeof e.where - 1);
    CHECK_INT(strlen(e.message), sizeof e.message - 1);
    pen__fail_os(&e, EIO, "w", "%s", text);
    CHECK_INT(strlen(e.message), sizeof e.message - 1);
    pen__error_prefix(&e, "%s", text);
    CHECK_INT(strlen(e.message), sizeof e.message - 1);
    pen__error_prefix(&e, "short");
    CHECK_INT(strlen(e.message), sizeof e.message - 1);
    CHECK_MEM(e.message, "short: xxx", 10);
}

TEST(prefix)
{
    PenError e;
    pen__fail_memory(&e, "w", "block");
    pen__error_prefix(&e, "shard %d", 3);
    CHECK_STR(e.message, "shard 3: block: out of memory");
    CHECK_INT(e.status, PEN_E_NO_MEMORY);
    pen__error_prefix(NULL, "x");
}

TEST(an_accepted_failure_leaves_no_error)
{
    PenError e = {0};
    PenError none = {0};
    int r = pen__fail(&e, PEN_E_NOT_FOUND, "here", "gone");
    CHECK_INT(pen__error_accept(r, PEN_E_CORRUPT, &e), PEN_E_NOT_FOUND);
    CHECK_STR(e.message, "gone");
    CHECK_INT(pen__error_accept(r, PEN_E_NOT_FOUND, &e), 0);
    CHECK(memcmp(&e, &none, sizeof e) == 0);
    CHECK_INT(pen__error_accept(r, PEN_E_NOT_FOUND, NULL), 0);
    CHECK_INT(pen__error_accept(1, PEN_E_NOT_FOUND, &e), 1);
}

TEST(every_status_has_a_text)
{
    for (int i = PEN_E_CANCELLED; i <= PEN_END; i++)
        CHECK(strcmp(pen_strerror(i), "unknown status") != 0);
    CHECK_STR(pen_strerror(-1000), "unknown status");
    CHECK_STR(pen_strerror(PEN_OK), "success");
}

int main(int argc, char **argv)
{
    TEST_START(argc, argv);
    RUN(fail_fills);
    RUN(fail_os_names_the_reason);
    RUN(long_texts_are_cut);
    RUN(prefix);
    RUN(an_accepted_failure_leaves_no_error);
    RUN(every_status_has_a_text);
    return TEST_END();
}
