/* SPDX-License-Identifier: Apache-2.0 */
/* Little-endian loads and stores, and the checked arithmetic that all sizes from outside go
 * through. */
#ifndef PEN_BASE_BYTES_H
#define PEN_BASE_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "the pack format is little-endian; this host needs swapping loads and stores"
#endif

#define PEN__ACCESS(bits)                                                                          \
    static inline uint##bits##_t pen__load##bits(const void *p)                                    \
    {                                                                                              \
        uint##bits##_t v;                                                                          \
        memcpy(&v, p, sizeof v);                                                                   \
        return v;                                                                                  \
    }                                                                                              \
    static inline void pen__store##bits(void *p, uint##bits##_t v)                                 \
    {                                                                                              \
        memcpy(p, &v, sizeof v);                                                                   \
    }
PEN__ACCESS(16)
PEN__ACCESS(32)
PEN__ACCESS(64)
#undef PEN__ACCESS

static inline unsigned pen__load16be(const uint8_t *p)
{
    return (unsigned)p[0] << 8 | p[1];
}

/* True when a + b or a * b overflows; *ret is then not to be used. */
static inline bool pen__add_over(uint64_t a, uint64_t b, uint64_t *ret)
{
    return __builtin_add_overflow(a, b, ret);
}

static inline bool pen__mul_over(uint64_t a, uint64_t b, uint64_t *ret)
{
    return __builtin_mul_overflow(a, b, ret);
}

/* Is [offset, offset + bytes) inside [0, total)? Written once, so that it is right everywhere. */
static inline bool pen__range_ok(uint64_t offset, uint64_t bytes, uint64_t total)
{
    return bytes <= total && offset <= total - bytes;
}

/* The next multiple of `to`. */
static inline uint64_t pen__padded(uint64_t n, uint64_t to)
{
    return (n + to - 1) / to * to;
}

/* The greatest common divisor; that of 0 and n is n. */
static inline uint64_t pen__gcd(uint64_t a, uint64_t b)
{
    while (b) {
        uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* 0 to 15, or -1 when it is no hexadecimal digit of either case. */
static inline int pen__hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = (char)(c | 32);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

#endif
