/* SPDX-License-Identifier: Apache-2.0 */
#include "base/crc32c.h"

#include "base/bytes.h"
#include "base/machine/cpuid.h"

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__ARM_FEATURE_CRC32)
#include <arm_acle.h>
#endif

/* Slicing by 8: slices[k][i] is the state after byte i and k zero bytes. The state is linear in the
 * bits of i, so eight values per slice give the whole table at compile time. */
#define BITS(i, a, b, c, d, e, f, g, h)                                                            \
    ((((i)&1) ? a : 0) ^ (((i)&2) ? b : 0) ^ (((i)&4) ? c : 0) ^ (((i)&8) ? d : 0) ^               \
     (((i)&16) ? e : 0) ^ (((i)&32) ? f : 0) ^ (((i)&64) ? g : 0) ^ (((i)&128) ? h : 0))
#define ROW4(i, ...)                                                                               \
    BITS(i, __VA_ARGS__), BITS((i) + 1, __VA_ARGS__), BITS((i) + 2, __VA_ARGS__),                  \
        BITS((i) + 3, __VA_ARGS__)
#define ROW16(i, ...)                                                                              \
    ROW4(i, __VA_ARGS__), ROW4((i) + 4, __VA_ARGS__), ROW4((i) + 8, __VA_ARGS__),                  \
        ROW4((i) + 12, __VA_ARGS__)
#define ROW64(i, ...)                                                                              \
    ROW16(i, __VA_ARGS__), ROW16((i) + 16, __VA_ARGS__), ROW16((i) + 32, __VA_ARGS__),             \
        ROW16((i) + 48, __VA_ARGS__)
#define SLICE(...)                                                                                 \
    {                                                                                              \
        ROW64(0, __VA_ARGS__), ROW64(64, __VA_ARGS__), ROW64(128, __VA_ARGS__),                    \
            ROW64(192, __VA_ARGS__)                                                                \
    }

/* clang-format off */
static const uint32_t slices[8][256] = {
    SLICE(0xf26b8303u, 0xe13b70f7u, 0xc79a971fu, 0x8ad958cfu,
          0x105ec76fu, 0x20bd8edeu, 0x417b1dbcu, 0x82f63b78u),
    SLICE(0x13a29877u, 0x274530eeu, 0x4e8a61dcu, 0x9d14c3b8u,
          0x3fc5f181u, 0x7f8be302u, 0xff17c604u, 0xfbc3faf9u),
    SLICE(0xa541927eu, 0x4f6f520du, 0x9edea41au, 0x38513ec5u,
          0x70a27d8au, 0xe144fb14u, 0xc76580d9u, 0x8b277743u),
    SLICE(0xdd45aab8u, 0xbf672381u, 0x7b2231f3u, 0xf64463e6u,
          0xe964b13du, 0xd725148bu, 0xaba65fe7u, 0x52a0c93fu),
    SLICE(0x38116facu, 0x7022df58u, 0xe045beb0u, 0xc5670b91u,
          0x8f2261d3u, 0x1ba8b557u, 0x37516aaeu, 0x6ea2d55cu),
    SLICE(0xef306b19u, 0xdb8ca0c3u, 0xb2f53777u, 0x6006181fu,
          0xc00c303eu, 0x85f4168du, 0x0e045bebu, 0x1c08b7d6u),
    SLICE(0x68032cc8u, 0xd0065990u, 0xa5e0c5d1u, 0x4e2dfd53u,
          0x9c5bfaa6u, 0x3d5b83bdu, 0x7ab7077au, 0xf56e0ef4u),
    SLICE(0x493c7d27u, 0x9278fa4eu, 0x211d826du, 0x423b04dau,
          0x847609b4u, 0x0d006599u, 0x1a00cb32u, 0x34019664u),
};
/* clang-format on */

uint32_t pen__crc32c_soft(uint32_t crc, const void *data, size_t bytes)
{
    const uint8_t *p = data;
    uint32_t c = ~crc;
    for (; bytes >= 8; p += 8, bytes -= 8) {
        uint64_t v = pen__load64(p) ^ c;
        c = slices[7][v & 255] ^ slices[6][v >> 8 & 255] ^ slices[5][v >> 16 & 255] ^
            slices[4][v >> 24 & 255] ^ slices[3][v >> 32 & 255] ^ slices[2][v >> 40 & 255] ^
            slices[1][v >> 48 & 255] ^ slices[0][v >> 56];
    }
    for (; bytes; p++, bytes--)
        c = c >> 8 ^ slices[0][(c ^ *p) & 255];
    return ~c;
}

#if defined(__x86_64__)

#define HW __attribute__((target("sse4.2,crc32,pclmul")))

/* The crc32 instruction takes three cycles but one can start in each, so three lanes of `lane`
 * bytes run side by side. A lane's state then moves past the `lane` or 2 * `lane` bytes that follow
 * it by a carry-less multiplication with x^(8 * bytes - 33) mod P; the crc32 of the product does
 * the reduction, and supplies the x^33 (32 from the instruction, 1 from the reflected product). */
static inline __attribute__((always_inline)) HW uint64_t lanes(uint64_t c, const uint8_t **p,
                                                               size_t *bytes, size_t lane,
                                                               uint32_t past1, uint32_t past2)
{
    const __m128i k = _mm_set_epi64x(past1, past2);
    for (; *bytes >= 3 * lane; *p += 3 * lane, *bytes -= 3 * lane) {
        const uint8_t *q = *p;
        uint64_t c1 = 0, c2 = 0;
        for (size_t i = 0; i < lane; i += 8) {
            if (i % 64 == 0) { /* three streams are more than the processor guesses */
                _mm_prefetch((const char *)q + 3 * lane + i, _MM_HINT_T0);
                _mm_prefetch((const char *)q + 4 * lane + i, _MM_HINT_T0);
                _mm_prefetch((const char *)q + 5 * lane + i, _MM_HINT_T0);
            }
            c = _mm_crc32_u64(c, pen__load64(q + i));
            c1 = _mm_crc32_u64(c1, pen__load64(q + lane + i));
            c2 = _mm_crc32_u64(c2, pen__load64(q + 2 * lane + i));
        }
        __m128i a = _mm_clmulepi64_si128(_mm_cvtsi64_si128((long long)c), k, 0x00);
        __m128i b = _mm_clmulepi64_si128(_mm_cvtsi64_si128((long long)c1), k, 0x10);
        c = _mm_crc32_u64(0, (uint64_t)_mm_cvtsi128_si64(_mm_xor_si128(a, b))) ^ c2;
    }
    return c;
}

static HW uint32_t crc32c_x86(uint32_t crc, const uint8_t *p, size_t bytes)
{
    uint64_t c = (uint32_t)~crc;
    c = lanes(c, &p, &bytes, 1344, 0xc9c8b782u, 0x889774e1u);
    c = lanes(c, &p, &bytes, 256, 0xb9e02b86u, 0xdd7e3b0cu);
    c = lanes(c, &p, &bytes, 64, 0x9e4addf8u, 0x0d3b6092u);
    for (; bytes >= 8; p += 8, bytes -= 8)
        c = _mm_crc32_u64(c, pen__load64(p));
    for (; bytes; p++, bytes--)
        c = _mm_crc32_u8((uint32_t)c, *p);
    return ~(uint32_t)c;
}

#elif defined(__ARM_FEATURE_CRC32)

static uint32_t crc32c_arm(uint32_t crc, const uint8_t *p, size_t bytes)
{
    uint32_t c = ~crc;
    for (; bytes >= 8; p += 8, bytes -= 8)
        c = __crc32cd(c, pen__load64(p));
    for (; bytes; p++, bytes--)
        c = __crc32cb(c, *p);
    return ~c;
}

#endif

uint32_t pen__crc32c(uint32_t crc, const void *data, size_t bytes)
{
#if defined(__x86_64__)
    if (pen__cpuid() & PEN_CPUID_CRC32)
        return crc32c_x86(crc, data, bytes);
#elif defined(__ARM_FEATURE_CRC32)
    return crc32c_arm(crc, data, bytes);
#endif
    return pen__crc32c_soft(crc, data, bytes);
}

/* ---- joining --------------------------------------------------------------------------------- */

/* The product of two polynomials modulo that of the checksum; the highest bit is x^0. */
static uint32_t times(uint32_t a, uint32_t b)
{
    uint32_t product = 0;
    for (uint32_t bit = UINT32_C(1) << 31; bit; bit >>= 1) {
        product ^= a & bit ? b : 0;
        b = b >> 1 ^ (b & 1 ? 0x82f63b78u : 0);
    }
    return product;
}

/* Each byte that follows multiplies what is before it by x^8. */
uint32_t pen__crc32c_join(uint32_t crc, uint32_t next, uint64_t bytes)
{
    uint32_t shift = UINT32_C(1) << 23; /* x^8 */
    for (; bytes; bytes >>= 1) {
        if (bytes & 1)
            crc = times(shift, crc);
        shift = times(shift, shift);
    }
    return crc ^ next;
}
