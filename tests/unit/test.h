/* SPDX-License-Identifier: Apache-2.0 */
/* The unit test harness.
 *
 *     TEST(adds)          { CHECK_INT(1 + 1, 2); }
 *     int main(int argc, char **argv)
 *     {
 *         TEST_START(argc, argv);
 *         RUN(adds);
 *         return TEST_END();
 *     }
 *
 * A failing check prints its place and both values, marks the test as failed and leaves the
 * function it stands in; helpers with checks are void functions, and CHECK_OK_SO_FAR() leaves the
 * caller too. An argument is a filter: only tests whose name contains it run, or after a '-', all
 * others. Exit 0, 1, or 77 (all skipped). */
#ifndef PEN_TESTS_UNIT_TEST_H
#define PEN_TESTS_UNIT_TEST_H

#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* Tests that compare many cases may take fewer of them under a sanitizer, which is slow and looks
 * for other defects. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define TEST_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define TEST_SANITIZED 1
#endif
#endif
#ifndef TEST_SANITIZED
#define TEST_SANITIZED 0
#endif

enum { TEST_PASSED, TEST_FAILED, TEST_SKIPPED };

typedef struct TestNow {
    const char *filter;
    const char *name; /* of the test that runs now */
    int state;
    int n[3];
} TestNow;

extern TestNow test__now;

#define TEST(name) static void test_##name(void)
#define TEST_START(argc, argv) (test__now.filter = (argc) > 1 ? (argv)[1] : NULL)
#define RUN(name) test__run(#name, test_##name)
#define TEST_END() test__end()

void test__run(const char *name, void (*body)(void));
int test__end(void);
__attribute__((format(printf, 3, 4))) void test__fail(const char *file, int line, const char *fmt,
                                                      ...);
/* The value as text, right for both signs. */
const char *test__int_text(char buf[48], int64_t v, bool is_signed);
size_t test__mem_diff(const void *a, const void *b, size_t n);
#define TEST__IS_SIGNED(x) (((__typeof__((x) + 0))-1) < 1)

#define CHECK(cond)                                                                                \
    do {                                                                                           \
        if (!(cond)) {                                                                             \
            test__fail(__FILE__, __LINE__, "not true: %s", #cond);                                 \
            return;                                                                                \
        }                                                                                          \
    } while (0)

/* Integers of any type and sign; also enums, bools and sizes. */
#define CHECK_INT(found, expected)                                                                 \
    do {                                                                                           \
        __typeof__((found) + 0) test__f = (found);                                                 \
        __typeof__((expected) + 0) test__e = (expected);                                           \
        bool test__fs = TEST__IS_SIGNED(test__f), test__es = TEST__IS_SIGNED(test__e);             \
        int64_t test__f64 = (int64_t)test__f, test__e64 = (int64_t)test__e;                        \
        /* A negative number never equals a large unsigned one of the same bits. */                \
        if (test__f64 != test__e64 || (test__f64 < 0 && test__fs != test__es)) {                   \
            char test__a[48], test__b[48];                                                         \
            test__fail(__FILE__, __LINE__, "%s: found %s, expected %s", #found,                    \
                       test__int_text(test__a, test__f64, test__fs),                               \
                       test__int_text(test__b, test__e64, test__es));                              \
            return;                                                                                \
        }                                                                                          \
    } while (0)

#define CHECK_STR(found, expected)                                                                 \
    do {                                                                                           \
        const char *test__f = (found), *test__e = (expected);                                      \
        if (!test__f || !test__e || strcmp(test__f, test__e) != 0) {                               \
            test__fail(__FILE__, __LINE__, "%s: found \"%s\", expected \"%s\"", #found,            \
                       test__f ? test__f : "(null)", test__e ? test__e : "(null)");                \
            return;                                                                                \
        }                                                                                          \
    } while (0)

#define CHECK_MEM(found, expected, bytes)                                                          \
    do {                                                                                           \
        const uint8_t *test__f = (const uint8_t *)(found);                                         \
        const uint8_t *test__e = (const uint8_t *)(expected);                                      \
        size_t test__n = (bytes), test__i = test__mem_diff(test__f, test__e, test__n);             \
        if (test__i < test__n) {                                                                   \
            test__fail(__FILE__, __LINE__, "%s: byte %zu of %zu: found 0x%02x, expected 0x%02x",   \
                       #found, test__i, test__n, test__f[test__i], test__e[test__i]);              \
            return;                                                                                \
        }                                                                                          \
    } while (0)

/* After a call of a helper that has checks of its own. */
#define CHECK_OK_SO_FAR()                                                                          \
    do {                                                                                           \
        if (test__now.state != TEST_PASSED)                                                        \
            return;                                                                                \
    } while (0)

#define SKIP(reason)                                                                               \
    do {                                                                                           \
        test__now.state = TEST_SKIPPED;                                                            \
        printf("skipped %s: %s\n", test__now.name, reason);                                        \
        return;                                                                                    \
    } while (0)

#endif
