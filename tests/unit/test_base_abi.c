/* SPDX-License-Identifier: Apache-2.0 */
/* Settings and results of programs that have an older or a newer header. */
#include <string.h>

#include "base/abi.h"
#include "test.h"

typedef struct Old {
    uint32_t struct_size;
    uint32_t a;
    uint64_t b;
} Old;

typedef struct Own {
    uint32_t struct_size;
    uint32_t a;
    uint64_t b;
    uint64_t c, d;
} Own;

typedef struct New {
    Own own;
    uint64_t e;
} New;

static const Own defaults = {sizeof defaults, 1, 2, 3, 4};

static int take(Own *own, const void *given, PenError *err)
{
    *own = defaults;
    return pen__settings_copy(own, sizeof *own, given, "pen_own_settings_init", err);
}

static void check_own(const Own *own, uint32_t a, uint64_t b, uint64_t c, uint64_t d)
{
    CHECK_INT(own->struct_size, sizeof *own);
    CHECK_INT(own->a, a);
    CHECK_INT(own->b, b);
    CHECK_INT(own->c, c);
    CHECK_INT(own->d, d);
}

TEST(defaults_of_every_size)
{
    struct {
        Old old;
        uint8_t guard[8];
    } x;
    New newer;
    memset(&x, 0xaa, sizeof x);
    memset(&newer, 0xaa, sizeof newer);
    pen__settings_default(&x.old, sizeof x.old, &defaults, sizeof defaults);
    CHECK_INT(x.old.struct_size, sizeof x.old);
    CHECK_INT(x.old.b, 2);
    for (int i = 0; i < 8; i++)
        CHECK_INT(x.guard[i], 0xaa);
    pen__settings_default(&newer, sizeof newer, &defaults, sizeof defaults);
    CHECK_INT(newer.own.struct_size, sizeof newer);
    CHECK_INT(newer.own.d, 4);
    CHECK_INT(newer.e, 0);
}

TEST(settings_of_an_older_program_keep_the_defaults_of_the_rest)
{
    Own own;
    Old old = {sizeof old, 10, 20};
    CHECK_INT(take(&own, &old, NULL), PEN_OK);
    check_own(&own, 10, 20, 3, 4);
    CHECK_INT(take(&own, NULL, NULL), PEN_OK);
    check_own(&own, 1, 2, 3, 4);
}

TEST(settings_of_a_newer_program_are_taken_when_the_rest_is_zero)
{
    Own own;
    PenError err = {0};
    New newer = {{sizeof newer, 10, 20, 30, 40}, 0};
    CHECK_INT(take(&own, &newer, &err), PEN_OK);
    check_own(&own, 10, 20, 30, 40);
    newer.e = (uint64_t)1 << 56;
    CHECK_INT(take(&own, &newer, &err), PEN_E_UNSUPPORTED);
    CHECK(
        strstr(err.message, "settings of 40 bytes: expected 0 beyond byte 32, found 1 at byte 39"));
    check_own(&own, 1, 2, 3, 4);
}

TEST(sizes_that_no_init_function_sets)
{
    static const uint32_t sizes[] = {0, 4, 7, 12, 20, 31, 33, 4100, UINT32_MAX};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        Own own, given = defaults;
        PenError err = {0};
        given.struct_size = sizes[i];
        CHECK_INT(take(&own, &given, &err), PEN_E_INVALID);
        CHECK(strstr(err.message, "call pen_own_settings_init first"));
    }
}

TEST(results_of_every_size)
{
    Own result = {0, 10, 20, 30, 40};
    struct {
        Old old;
        uint8_t guard[8];
    } x;
    New newer;
    memset(&x, 0xaa, sizeof x);
    memset(&newer, 0xaa, sizeof newer);
    pen__result_copy(&x.old, sizeof x.old, &result, sizeof result);
    CHECK_INT(x.old.struct_size, sizeof x.old);
    CHECK_INT(x.old.a, 10);
    CHECK_INT(x.old.b, 20);
    for (int i = 0; i < 8; i++)
        CHECK_INT(x.guard[i], 0xaa);
    pen__result_copy(&newer, sizeof newer, &result, sizeof result);
    CHECK_INT(newer.own.struct_size, sizeof result);
    CHECK_INT(newer.own.d, 40);
    CHECK_INT(newer.e, 0);
    pen__result_copy(NULL, sizeof newer, &result, sizeof result);
}

int main(int argc, char **argv)
{
    TEST_START(argc, argv);
    RUN(defaults_of_every_size);
    RUN(settings_of_an_older_program_keep_the_defaults_of_the_rest);
    RUN(settings_of_a_newer_program_are_taken_when_the_rest_is_zero);
    RUN(sizes_that_no_init_function_sets);
    RUN(results_of_every_size);
    return TEST_END();
}
