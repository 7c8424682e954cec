/* SPDX-License-Identifier: Apache-2.0 */
#include "base/sha256.h"

#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "base/machine/cpuid.h"

typedef void (*BlocksFn)(uint32_t state[8], const uint8_t *p, size_t n_blocks);

/* The first 32 bits of the fractional parts of the cube roots of the first 64 primes. */
/* clang-format off */
static const uint32_t k[64] __attribute__((aligned(16))) = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};
/* clang-format on */

static uint32_t load32be(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static void store32be(uint8_t *p, uint32_t v)
{
    p[0] = (uint8_t)(v >> 24);
    p[1] = (uint8_t)(v >> 16);
    p[2] = (uint8_t)(v >> 8);
    p[3] = (uint8_t)v;
}

static uint32_t rotr(uint32_t x, int n)
{
    return x >> n | x << (32 - n);
}

static void schedule(uint32_t w[64], const uint8_t *p)
{
    for (int i = 0; i < 16; i++)
        w[i] = load32be(p + 4 * i);
    for (int i = 16; i < 64; i++) {
        uint32_t a = w[i - 15], b = w[i - 2];
        uint32_t s0 = rotr(a, 7) ^ rotr(a, 18) ^ a >> 3;
        uint32_t s1 = rotr(b, 17) ^ rotr(b, 19) ^ b >> 10;
        w[i] = w[i - 16] + s0 + w[i - 7] + s1;
    }
}

/* Round j of eight. The names a to h move on by one word each round: a is s[-j], h is s[7 - j]. */
static inline void mix(uint32_t s[8], int j, uint32_t word)
{
    uint32_t a = s[-j & 7], b = s[(1 - j) & 7], c = s[(2 - j) & 7];
    uint32_t e = s[(4 - j) & 7], f = s[(5 - j) & 7], g = s[(6 - j) & 7];
    uint32_t *d = &s[(3 - j) & 7], *h = &s[(7 - j) & 7];
    uint32_t s1 = rotr(e, 6) ^ rotr(e, 11) ^ rotr(e, 25), choice = (e & f) ^ (~e & g);
    uint32_t s0 = rotr(a, 2) ^ rotr(a, 13) ^ rotr(a, 22), majority = (a & b) ^ (a & c) ^ (b & c);
    uint32_t t1 = *h + s1 + choice + word;
    *d += t1;
    *h = t1 + s0 + majority;
}

static void blocks_soft(uint32_t state[8], const uint8_t *p, size_t n_blocks)
{
    for (; n_blocks; n_blocks--, p += 64) {
        uint32_t w[64], s[8];
        schedule(w, p);
        memcpy(s, state, sizeof s);
        for (int i = 0; i < 64; i += 8) {
#pragma GCC unroll 8
            for (int j = 0; j < 8; j++)
                mix(s, j, k[i + j] + w[i + j]);
        }
        for (int i = 0; i < 8; i++)
            state[i] += s[i];
    }
}

#if defined(__x86_64__)

/* The instructions want the state as (a b e f) and (c d g h), highest word first. */
static __attribute__((target("sha,sse4.1"))) void blocks_sha_ni(uint32_t state[8], const uint8_t *p,
                                                                size_t n_blocks)
{
    const __m128i swap = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
    __m128i abcd = _mm_loadu_si128((const __m128i *)(const void *)state);
    __m128i efgh = _mm_loadu_si128((const __m128i *)(const void *)(state + 4));
    __m128i badc = _mm_shuffle_epi32(abcd, 0xb1), hgfe = _mm_shuffle_epi32(efgh, 0x1b);
    __m128i abef = _mm_alignr_epi8(badc, hgfe, 8), cdgh = _mm_blend_epi16(hgfe, badc, 0xf0);
    for (; n_blocks; n_blocks--, p += 64) {
        __m128i abef0 = abef, cdgh0 = cdgh, m[4];
#pragma GCC unroll 16
        for (int i = 0; i < 16; i++) {
            if (i < 4) {
                __m128i v = _mm_loadu_si128((const __m128i *)(const void *)(p + 16 * i));
                m[i] = _mm_shuffle_epi8(v, swap);
            } else {
                __m128i w1 = m[(i + 1) & 3], w2 = m[(i + 2) & 3], w3 = m[(i + 3) & 3];
                __m128i v = _mm_sha256msg1_epu32(m[i & 3], w1);
                v = _mm_add_epi32(v, _mm_alignr_epi8(w3, w2, 4));
                m[i & 3] = _mm_sha256msg2_epu32(v, w3);
            }
            __m128i ki = _mm_load_si128((const __m128i *)(const void *)(k + 4 * i));
            __m128i wk = _mm_add_epi32(m[i & 3], ki);
            cdgh = _mm_sha256rnds2_epu32(cdgh, abef, wk);
            abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(wk, 0x0e));
        }
        abef = _mm_add_epi32(abef, abef0);
        cdgh = _mm_add_epi32(cdgh, cdgh0);
    }
    __m128i feba = _mm_shuffle_epi32(abef, 0x1b), dchg = _mm_shuffle_epi32(cdgh, 0xb1);
    _mm_storeu_si128((__m128i *)(void *)state, _mm_blend_epi16(feba, dchg, 0xf0));
    _mm_storeu_si128((__m128i *)(void *)(state + 4), _mm_alignr_epi8(dchg, feba, 8));
}

#endif

static BlocksFn best(void)
{
#if defined(__x86_64__)
    if (pen__cpuid() & PEN_CPUID_SHA)
        return blocks_sha_ni;
#endif
    return blocks_soft;
}

void pen__sha256_init(PenSha256 *s)
{
    static const uint32_t start[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                      0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    memcpy(s->state, start, sizeof start);
    s->bytes = 0;
}

static void update(PenSha256 *s, const void *data, size_t bytes, BlocksFn blocks)
{
    const uint8_t *p = data;
    size_t held = s->bytes % 64;
    s->bytes += bytes;
    if (held) {
        size_t n = bytes < 64 - held ? bytes : 64 - held;
        if (n)
            memcpy(s->block + held, p, n);
        if (held + n < 64)
            return;
        blocks(s->state, s->block, 1);
        p += n;
        bytes -= n;
    }
    if (bytes >= 64)
        blocks(s->state, p, bytes / 64);
    if (bytes % 64)
        memcpy(s->block, p + bytes / 64 * 64, bytes % 64);
}

static void final(PenSha256 *s, uint8_t ret[32], BlocksFn blocks)
{
    uint8_t end[72] = {0x80};
    uint64_t bits = s->bytes * 8;
    size_t zeros = (119 - s->bytes % 64) % 64; /* up to the last eight bytes of a block */
    store32be(end + 1 + zeros, (uint32_t)(bits >> 32));
    store32be(end + 5 + zeros, (uint32_t)bits);
    update(s, end, zeros + 9, blocks);
    for (int i = 0; i < 8; i++)
        store32be(ret + 4 * i, s->state[i]);
}

void pen__sha256_update(PenSha256 *s, const void *data, size_t bytes)
{
    update(s, data, bytes, best());
}

void pen__sha256_final(PenSha256 *s, uint8_t ret[32])
{
    final(s, ret, best());
}

void pen__sha256(const void *data, size_t bytes, uint8_t ret[32])
{
    PenSha256 s;
    pen__sha256_init(&s);
    update(&s, data, bytes, best());
    final(&s, ret, best());
}

void pen__sha256_soft(const void *data, size_t bytes, uint8_t ret[32])
{
    PenSha256 s;
    pen__sha256_init(&s);
    update(&s, data, bytes, blocks_soft);
    final(&s, ret, blocks_soft);
}
