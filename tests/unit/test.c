/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

TestNow test__now;

void test__run(const char *name, void (*body)(void))
{
    const char *filter = test__now.filter;
    bool others = filter && filter[0] == '-';
    if (filter && !strstr(name, filter + others) != others)
        return;
    test__now.name = name;
    test__now.state = TEST_PASSED;
    body();
    test__now.n[test__now.state]++;
    fflush(stdout);
}

int test__end(void)
{
    const int *n = test__now.n;
    printf("%d passed, %d failed", n[TEST_PASSED], n[TEST_FAILED]);
    if (n[TEST_SKIPPED])
        printf(", %d skipped", n[TEST_SKIPPED]);
    printf("\n");
    fflush(stdout);
    if (n[TEST_FAILED])
        return 1;
    return !n[TEST_PASSED] && n[TEST_SKIPPED] ? 77 : 0;
}

void test__fail(const char *file, int line, const char *fmt, ...)
{
    test__now.state = TEST_FAILED;
    printf("%s:%d: %s: ", file, line, test__now.name ? test__now.name : "?");
    __builtin_va_list args;
    __builtin_va_start(args, fmt);
    vprintf(fmt, args);
    __builtin_va_end(args);
    printf("\n");
    fflush(stdout);
}

const char *test__int_text(char buf[48], int64_t v, bool is_signed)
{
    if (is_signed && v < 0)
        snprintf(buf, 48, "%" PRId64, v);
    else
        snprintf(buf, 48, "%" PRIu64 " (0x%" PRIx64 ")", (uint64_t)v, (uint64_t)v);
    return buf;
}

size_t test__mem_diff(const void *a, const void *b, size_t n)
{
    const uint8_t *p = a, *q = b;
    size_t i = 0;
    while (i < n && p[i] == q[i])
        i++;
    return i;
}
