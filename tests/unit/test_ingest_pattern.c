/* SPDX-License-Identifier: Apache-2.0 */
#include <locale.h>

#include "base/text/utf8.h"
#include "fault_sweep.h"
#include "ingest_help.h"

/* The names, joined by spaces. */
static int expand(const char *pattern, char *out, size_t cap, PenError *err)
{
    PenNames names = {0};
    size_t used = 0;
    out[0] = 0;
    int r = pen__pattern_expand(pattern, &names, err);
    for (uint64_t i = 0; i < names.n && used < cap; i++)
        used += (size_t)snprintf(out + used, cap - used, "%s%s", i ? " " : "", names.names[i]);
    pen__names_free(&names);
    return r;
}

#define CHECK_NAMES(pattern, expected)                                                             \
    do {                                                                                           \
        char names[512];                                                                           \
        CHECK_GOES(expand(pattern, names, sizeof names, &err));                                    \
        CHECK_STR(names, expected);                                                                \
    } while (0)

#define CHECK_BAD(pattern, status, message)                                                        \
    do {                                                                                           \
        char names[512];                                                                           \
        CHECK_FAILS(expand(pattern, names, sizeof names, &err), status, message);                  \
    } while (0)

TEST(ranges)
{
    CHECK_NAMES("a.tar", "a.tar");
    CHECK_NAMES("a-{008..011}.tar", "a-008.tar a-009.tar a-010.tar a-011.tar");
    CHECK_NAMES("{8..11}", "8 9 10 11");
    CHECK_NAMES("{0..2}", "0 1 2");
    CHECK_NAMES("{2..0}", "2 1 0");
    CHECK_NAMES("{7..7}x", "7x");
    CHECK_NAMES("{9..012}", "009 010 011 012");
    CHECK_NAMES("{999999999999999998..999999999999999999}",
                "999999999999999998 999999999999999999");
}

TEST(choices)
{
    CHECK_NAMES("{train,val}.tar", "train.tar val.tar");
    CHECK_NAMES("x{,.bak}", "x x.bak");
    CHECK_NAMES("{a,b}-{1..3}", "a-1 a-2 a-3 b-1 b-2 b-3");
    CHECK_NAMES("{a..c,d}", "a..c d");
    CHECK_NAMES("a}b", "a}b");
}

TEST(bad_patterns)
{
    CHECK_BAD("a-{000..", PEN_E_INVALID, "expected a }");
    CHECK_BAD("a-{}", PEN_E_INVALID, "expected {000..017} or {a,b}");
    CHECK_BAD("a-{x..y}", PEN_E_INVALID, "expected {000..017} or {a,b}");
    CHECK_BAD("a-{1..}", PEN_E_INVALID, "expected {000..017} or {a,b}");
    CHECK_BAD("a-{1..1000000000000000000}", PEN_E_INVALID, "expected {000..017}");
    CHECK_BAD("{a,{b,c}}", PEN_E_INVALID, "expected no nested braces");
    CHECK_BAD(
        "{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}",
        PEN_E_INVALID, "16 groups");
    CHECK_BAD("{0..1000000}", PEN_E_LIMIT, "at most 1000000 names");
    CHECK_BAD("{1..999999}{1..999999}{1..999999}{1..999999}", PEN_E_LIMIT, "1000000 names");
    CHECK_BAD("{1..999999999999999999}{1..999999999999999999}", PEN_E_LIMIT, "1000000 names");
}

TEST(long_names)
{
    char pattern[5000], out[8];
    memset(pattern, 'x', sizeof pattern);
    memcpy(pattern + 4090, "{1..3}", 7);
    CHECK_GOES(expand(pattern, out, sizeof out, &err));
    memset(pattern, 'x', sizeof pattern);
    memcpy(pattern + 4095, "{1..3}", 7);
    CHECK_FAILS(expand(pattern, out, sizeof out, &err), PEN_E_LIMIT, "4095 bytes");
    memset(pattern, 'x', sizeof pattern);
    pattern[4096] = 0;
    CHECK_FAILS(expand(pattern, out, sizeof out, &err), PEN_E_LIMIT, "4095 bytes");
}

TEST(limit_counts_all_patterns)
{
    PenNames names = {0};
    PenError none;
    CHECK_INT(pen__pattern_expand("{1..1000000}", &names, &none), 0);
    CHECK_FAILS(pen__pattern_expand("x", &names, &err), PEN_E_LIMIT, "1000000");
    CHECK_INT(names.n, 1000000);
    names.n -= 2;
    pen__free(names.names[names.n]);
    pen__free(names.names[names.n + 1]);
    CHECK_FAILS(pen__pattern_expand("{1..3}", &names, &err), PEN_E_LIMIT, "1000000");
    CHECK_INT(pen__pattern_expand("{999999..1000000}", &names, &none), 0);
    CHECK_STR(names.names[999999], "1000000");
    pen__names_free(&names);
}

TEST(integers)
{
    int64_t v = 5;
    CHECK(pen__text_i64("9223372036854775807", &v) && v == INT64_MAX);
    CHECK(pen__text_i64("-9223372036854775808", &v) && v == INT64_MIN);
    CHECK(pen__text_i64("+007", &v) && v == 7);
    v = 5;
    static const char *const bad[] = {"",
                                      "-",
                                      "+",
                                      " 1",
                                      "1 ",
                                      "1.0",
                                      "0x1",
                                      "1e3",
                                      "--1",
                                      "9223372036854775808",
                                      "-9223372036854775809",
                                      "1\n"};
    for (size_t i = 0; i < PEN_LEN(bad); i++)
        if (pen__text_i64(bad[i], &v))
            test__fail(__FILE__, __LINE__, "taken as a number: \"%s\"", bad[i]);
    CHECK_INT(v, 5);
}

static void check_decimals(void)
{
    double v = 0;
    CHECK(pen__text_f64("1.5", &v) && v == 1.5);
    CHECK(pen__text_f64("-.5e1", &v) && v == -5);
    CHECK(pen__text_f64("2.", &v) && v == 2);
    CHECK(pen__text_f64("1e-400", &v) && v == 0);
    CHECK(pen__text_f64("0.1", &v) && v == 0.1);
    static const char *const bad[] = {"",    ".",  "-",   "e5",    "1e",    "1e+", "nan",
                                      "inf", " 1", "1,5", "0x1p3", "1e400", "1 "};
    for (size_t i = 0; i < PEN_LEN(bad); i++)
        if (pen__text_f64(bad[i], &v))
            test__fail(__FILE__, __LINE__, "taken as a number: \"%s\"", bad[i]);
}

TEST(decimals)
{
    check_decimals();
    CHECK_OK_SO_FAR();
    if (setlocale(LC_NUMERIC, "de_DE.UTF-8")) {
        check_decimals();
        setlocale(LC_NUMERIC, "C");
    }
}

TEST(utf8)
{
    CHECK(pen__text_is_utf8("", 0));
    CHECK(pen__text_is_utf8("a\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80", 10));
    CHECK(pen__text_is_utf8("\xef\xbf\xbf\xf4\x8f\xbf\xbf", 7));
    static const char mixed[] = "eight of 12 \xc3\xa4 and more than eight";
    CHECK(pen__text_is_utf8(mixed, sizeof mixed - 1));
    static const char *const bad[] = {"\x80",
                                      "\xc3",
                                      "\xc1\xbf",
                                      "\xe0\x9f\xbf",
                                      "\xed\xa0\x80",
                                      "\xf0\x8f\xbf\xbf",
                                      "\xf4\x90\x80\x80",
                                      "\xf5\x80\x80\x80",
                                      "\xe2\x82",
                                      "12345678\x80 2345678",
                                      "1234567\xc3\x28 345678",
                                      "1234567890abcde\xf0\x9f\x98"};
    for (size_t i = 0; i < PEN_LEN(bad); i++)
        if (pen__text_is_utf8(bad[i], strlen(bad[i])))
            test__fail(__FILE__, __LINE__, "taken as UTF-8: number %zu", i);
    CHECK(pen__text_ends("A.TAR.Gz", ".tar.gz"));
    CHECK(!pen__text_ends("gz", ".gz"));
}

TEST(name_set)
{
    PenNameSet set = {0};
    PenError err;
    for (uint32_t round = 0; round < 2; round++) {
        for (uint32_t i = 0; i < 5000; i++) {
            char name[16];
            uint32_t number = 0;
            bool is_new = false;
            int n = snprintf(name, sizeof name, "n%u-rest", i);
            CHECK_INT(pen__name_set_add(&set, name, (size_t)n - 5, &number, &is_new, &err), 0);
            CHECK_INT(number, i);
            CHECK_INT(is_new, round == 0);
        }
    }
    CHECK_INT(set.n, 5000);
    CHECK_STR(set.names[4999], "n4999");
    uint32_t number = 0;
    CHECK_INT(pen__name_set_add(&set, "n49", 3, &number, NULL, &err), 0);
    CHECK_INT(number, 49); /* and not n4999, found last, of which it is the beginning */
    pen__name_set_free(&set);
    char many[1001];
    memset(many, 'x', sizeof many);
    for (uint32_t n = 1000; n > 0; n--) /* each is the beginning of all before it */
        CHECK_INT(pen__name_set_add(&set, many, n, &number, NULL, &err), 0);
    CHECK_INT(set.n, 1000);
    pen__name_set_free(&set);
}

static int sweep_body(PenError *err)
{
    char out[512];
    int r = expand("{a,b}{1..20}", out, sizeof out, err);
    PenNameSet set = {0};
    for (int i = 0; r == 0 && i < 200; i++) {
        uint32_t number;
        int n = snprintf(out, sizeof out, "%d", i);
        r = pen__name_set_add(&set, out, (size_t)n, &number, NULL, err);
    }
    pen__name_set_free(&set);
    return r;
}

TEST(every_call_fails)
{
    int points = 0;
    fault_sweep(sweep_body, &points);
    CHECK_OK_SO_FAR();
    CHECK(points > 400);
}

int main(int argc, char **argv)
{
    TEST_START(argc, argv);
    RUN(ranges);
    RUN(choices);
    RUN(bad_patterns);
    RUN(long_names);
    RUN(limit_counts_all_patterns);
    RUN(integers);
    RUN(decimals);
    RUN(utf8);
    RUN(name_set);
    RUN(every_call_fails);
    return TEST_END();
}
