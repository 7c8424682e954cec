/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"

#include <penstock/error.h>

#include "test.h"

#include "base/sys.h"

TEST(buffer_grows)
{
    PenBuf b = {0};
    for (int i = 0; i < 1000; i++)
        CHECK_INT(pen__buf_add(&b, &(uint8_t){(uint8_t)i}, 1), PEN_OK);
    CHECK_INT(b.bytes, 1000);
    CHECK(b.cap >= 1000);
    for (int i = 0; i < 1000; i++)
        CHECK_INT(b.data[i], (uint8_t)i);
    CHECK_INT(pen__buf_add(&b, NULL, 0), PEN_OK);
    pen__buf_free(&b);
    CHECK(b.data == NULL && b.bytes == 0 && b.cap == 0);
    pen__buf_free(&b);
}

static void *no_resize(void *p, size_t bytes)
{
    (void)p, (void)bytes;
    return NULL;
}

TEST(failure_leaves_the_buffer)
{
    PenBuf b = {0};
    CHECK_INT(pen__buf_add(&b, "abc", 3), PEN_OK);
    PenBuf before = b;
    CHECK_INT(pen__buf_reserve(&b, SIZE_MAX), PEN_E_NO_MEMORY);
    CHECK_INT(pen__buf_reserve(&b, SIZE_MAX / 2), PEN_E_NO_MEMORY);
    PenSys sys = pen__sys_real;
    sys.resize = no_resize;
    pen__sys = &sys;
    int r = pen__buf_add(&b, &sys, b.cap);
    pen__sys = &pen__sys_real;
    CHECK_INT(r, PEN_E_NO_MEMORY);
    CHECK(b.data == before.data && b.bytes == 3 && b.cap == before.cap);
    CHECK_MEM(b.data, "abc", 3);
    pen__buf_free(&b);
}

TEST(allocation)
{
    CHECK(pen__alloc_array(UINT64_MAX / 2, 4) == NULL);
    CHECK(pen__alloc_array((uint64_t)1 << 62, 2) == NULL);
    void *p = pen__alloc(0); /* never NULL for lack of a size */
    CHECK(p != NULL);
    pen__free(p);
    pen__free(NULL);
    uint8_t *z = pen__zalloc(100);
    CHECK(z != NULL && z[0] == 0 && memcmp(z, z + 1, 99) == 0);
    pen__free(z);
    char *s = pen__strndup("abcdef", 3);
    CHECK_STR(s, "abc");
    pen__free(s);
}

int main(int argc, char **argv)
{
    TEST_START(argc, argv);
    RUN(buffer_grows);
    RUN(failure_leaves_the_buffer);
    RUN(allocation);
    return TEST_END();
}
