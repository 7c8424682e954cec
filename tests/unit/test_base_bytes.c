/* SPDX-License-Identifier: Apache-2.0 */
#include "base/bytes.h"

#include "test.h"

TEST(little_endian)
{
    uint8_t b[9] = {0xff, 1, 2, 3, 4, 5, 6, 7, 8};
    CHECK_INT(pen__load16(b + 1), 0x0201);
    CHECK_INT(pen__load32(b + 1), 0x04030201);
    CHECK_INT(pen__load64(b + 1), 0x0807060504030201);
    CHECK_INT(pen__load16be(b + 1), 0x0102);
    uint8_t c[9] = {0xff};
    pen__store64(c + 1, 0x0807060504030201);
    CHECK_MEM(c, b, 9);
    pen__store16(c + 1, 0xaabb);
    pen__store32(c + 3, 0xccddeeff);
    CHECK_MEM(c, "\xff\xbb\xaa\xff\xee\xdd\xcc\x07\x08", 9);
}

TEST(overflow_is_seen)
{
    uint64_t v;
    CHECK(!pen__add_over(UINT64_MAX - 1, 1, &v));
    CHECK_INT(v, UINT64_MAX);
    CHECK(pen__add_over(UINT64_MAX, 1, &v));
    CHECK(!pen__mul_over(UINT64_MAX / 3, 3, &v));
    CHECK_INT(v, UINT64_MAX);
    CHECK(pen__mul_over((uint64_t)1 << 32, (uint64_t)1 << 32, &v));
}

TEST(ranges)
{
    CHECK(pen__range_ok(0, 0, 0));
    CHECK(pen__range_ok(3, 7, 10));
    CHECK(pen__range_ok(10, 0, 10));
    CHECK(!pen__range_ok(11, 0, 10));
    CHECK(!pen__range_ok(4, 7, 10));
    CHECK(!pen__range_ok(UINT64_MAX, 2, 10));
    CHECK(!pen__range_ok(2, UINT64_MAX, 10));
    CHECK(pen__range_ok(1, UINT64_MAX - 1, UINT64_MAX));
}

int main(int argc, char **argv)
{
    TEST_START(argc, argv);
    RUN(little_endian);
    RUN(overflow_is_seen);
    RUN(ranges);
    return TEST_END();
}
