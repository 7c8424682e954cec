/* SPDX-License-Identifier: Apache-2.0 */
#include "base/sha256.h"

#include "test.h"

static const char *hex(const uint8_t digest[32])
{
    static char text[65];
    for (int i = 0; i < 32; i++)
        snprintf(text + 2 * i, 3, "%02x", digest[i]);
    return text;
}

static const char *hash(const void *data, size_t bytes)
{
    uint8_t out[32];
    pen__sha256(data, bytes, out);
    return hex(out);
}

/* FIPS 180-4 examples and the NIST byte-oriented short messages. */
TEST(known_answers)
{
    CHECK_STR(hash("", 0), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    CHECK_STR(hash("abc", 3), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    CHECK_STR(hash("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 56),
              "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    CHECK_STR(hash("\xd3", 1), "28969cdfa74a12c82f3bad960b0b000aca2ac329deea5c2328ebc6f2ba9802c1");
    CHECK_STR(hash("\x11\xaf", 2),
              "5ca7133fa735326081558ac312c620eeca9970d1e70a4b95533d956f072d1f98");
}

TEST(million_a_in_pieces)
{
    uint8_t chunk[997], out[32];
    memset(chunk, 'a', sizeof chunk);
    PenSha256 s;
    pen__sha256_init(&s);
    size_t left = 1000000;
    for (size_t n = 0; left; left -= n) {
        n = (left * 7 + 3) % sizeof chunk + 1;
        n = n < left ? n : left;
        pen__sha256_update(&s, chunk, n);
    }
    pen__sha256_final(&s, out);
    CHECK_STR(hex(out), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(both_paths_agree)
{
    static uint8_t data[1100];
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (uint8_t)(i * i * 31 + i * 7);
    for (size_t n = 0; n <= 1000; n++) {
        uint8_t a[32], b[32];
        pen__sha256(data + n % 19, n, a);
        pen__sha256_soft(data + n % 19, n, b);
        CHECK_MEM(a, b, 32);
    }
}

TEST(any_cut)
{
    static uint8_t data[300];
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (uint8_t)(i * 11);
    uint8_t whole[32], out[32];
    pen__sha256(data, sizeof data, whole);
    for (size_t cut = 0; cut <= sizeof data; cut++) {
        PenSha256 s;
        pen__sha256_init(&s);
        pen__sha256_update(&s, data, cut);
        pen__sha256_update(&s, data + cut, sizeof data - cut);
        pen__sha256_final(&s, out);
        CHECK_MEM(out, whole, 32);
    }
}

/* The length takes 64 bits. Messages that long are not hashed here: one state is told it has seen
 * 512 MiB, the other gets the padded block that must follow. */
TEST(long_lengths)
{
    uint8_t block[64] = {'a', 'b', 'c', 0x80, [59] = 1, [63] = 24}, found[32];
    PenSha256 a, b;
    pen__sha256_init(&a);
    a.bytes = (uint64_t)1 << 29;
    pen__sha256_update(&a, "abc", 3);
    pen__sha256_final(&a, found);
    pen__sha256_init(&b);
    pen__sha256_update(&b, block, 64);
    for (int i = 0; i < 8; i++)
        CHECK_INT((uint32_t)found[4 * i] << 24 | (uint32_t)found[4 * i + 1] << 16 |
                      (uint32_t)found[4 * i + 2] << 8 | found[4 * i + 3],
                  b.state[i]);
}

int main(int argc, char **argv)
{
    TEST_START(argc, argv);
    RUN(known_answers);
    RUN(million_a_in_pieces);
    RUN(both_paths_agree);
    RUN(any_cut);
    RUN(long_lengths);
    return TEST_END();
}
