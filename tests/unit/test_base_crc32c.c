/* SPDX-License-Identifier: Apache-2.0 */
#include "base/crc32c.h"

#include "test.h"

#include "base/sys.h"

static void fill(uint8_t *p, size_t bytes)
{
    uint32_t x = 12345;
    for (size_t i = 0; i < bytes; i++) {
        x = x * 1664525u + 1013904223u;
        p[i] = (uint8_t)(x >> 24);
    }
}

/* One bit at a time, as the polynomial says. */
static uint32_t by_bits(uint32_t crc, const uint8_t *p, size_t bytes)
{
    crc = ~crc;
    while (bytes--) {
        crc ^= *p++;
        for (int i = 0; i < 8; i++)
            crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78u : 0);
    }
    return ~crc;
}

/* RFC 3720 section B.4; the RFC prints the bytes in the order they travel. */
TEST(known_answers)
{
    uint8_t b[48];
    memset(b, 0, 32);
    CHECK_INT(pen__crc32c(0, b, 32), 0x8a9136aau);
    memset(b, 0xff, 32);
    CHECK_INT(pen__crc32c(0, b, 32), 0x62a8ab43u);
    for (unsigned i = 0; i < 32; i++)
        b[i] = (uint8_t)i;
    CHECK_INT(pen__crc32c(0, b, 32), 0x46dd794eu);
    for (unsigned i = 0; i < 32; i++)
        b[i] = (uint8_t)(31 - i);
    CHECK_INT(pen__crc32c(0, b, 32), 0x113fdb5cu);
    static const uint8_t read10[48] = {
        0x01, 0xc0, [16] = 0x14, [22] = 0x04, [27] = 0x14, [31] = 0x18, [32] = 0x28, [40] = 0x02};
    CHECK_INT(pen__crc32c(0, read10, 48), 0xd9963a56u);
    CHECK_INT(pen__crc32c(0, "123456789", 9), 0xe3069283u);
    CHECK_INT(pen__crc32c_soft(0, "123456789", 9), 0xe3069283u);
    CHECK_INT(pen__crc32c(0, NULL, 0), 0);
}

TEST(all_lengths_and_alignments)
{
    static uint8_t data[1100];
    fill(data, sizeof data);
    for (size_t at = 0; at < 17; at++) {
        for (size_t n = 0; n <= 1000; n++) {
            uint32_t expected = by_bits(0, data + at, n);
            CHECK_INT(pen__crc32c_soft(0, data + at, n), expected);
            CHECK_INT(pen__crc32c(0, data + at, n), expected);
        }
    }
}

/* The wide lanes only start at four thousand bytes. */
TEST(long_buffers)
{
    static uint8_t data[70000];
    fill(data, sizeof data);
    for (size_t n = 3900; n < sizeof data - 8; n += 211) {
        uint32_t expected = pen__crc32c_soft(0x1234567u, data + n % 8, n);
        CHECK_INT(pen__crc32c(0x1234567u, data + n % 8, n), expected);
    }
    CHECK_INT(pen__crc32c(7, data, 65536), by_bits(7, data, 65536));
}

TEST(continues)
{
    static uint8_t data[9000];
    fill(data, sizeof data);
    uint32_t whole = pen__crc32c(0, data, sizeof data);
    for (size_t cut = 0; cut <= sizeof data; cut += 37) {
        uint32_t c = pen__crc32c(0, data, cut);
        CHECK_INT(pen__crc32c(c, data + cut, sizeof data - cut), whole);
    }
}

TEST(joins)
{
    static uint8_t data[70000];
    fill(data, sizeof data);
    for (size_t n = 0; n <= sizeof data; n = n * 3 + 1)
        for (size_t cut = 0; cut <= n; cut += 1 + n / 7) {
            uint32_t next = pen__crc32c(0, data + cut, n - cut);
            CHECK_INT(pen__crc32c_join(pen__crc32c(0, data, cut), next, n - cut),
                      pen__crc32c(0, data, n));
        }
}

TEST(joins_the_longest_payload)
{
    static const uint8_t zeros[1 << 20];
    uint32_t first = pen__crc32c(0, "place", 5), next = 0, all = first;
    for (int i = 0; i < 256; i++) {
        next = pen__crc32c(next, zeros, sizeof zeros);
        all = pen__crc32c(all, zeros, sizeof zeros);
    }
    CHECK_INT(pen__crc32c_join(first, next, UINT64_C(1) << 28), all);
}

/* Not a check: prints what this machine reaches, and only when an argument asks for it. */
TEST(speed)
{
    static uint8_t data[1 << 20];
    fill(data, sizeof data);
    for (size_t n = 64; n <= sizeof data; n *= 4) {
        uint64_t start = pen__sys->now_ns(), spent = 0, total = 0;
        uint32_t c = 0;
        for (; spent < 100000000u; spent = pen__sys->now_ns() - start) {
            for (size_t i = 0; i < 64; i++)
                c = pen__crc32c(c, data, n);
            total += 64 * n;
        }
        printf("%8zu bytes: %5.1f GB/s (%08x)\n", n, (double)total / (double)spent, c);
    }
}

int main(int argc, char **argv)
{
    TEST_START(argc, argv);
    RUN(known_answers);
    RUN(all_lengths_and_alignments);
    RUN(long_buffers);
    RUN(continues);
    RUN(joins);
    RUN(joins_the_longest_payload);
    if (argc > 1)
        RUN(speed);
    return TEST_END();
}
