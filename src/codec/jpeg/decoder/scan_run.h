/* SPDX-License-Identifier: Apache-2.0 */
/* Tokens of several lanes side by side: one file for each tier includes it and is compiled for it.
 * There is no branch in the common case: a token is one lookup, and what it does is addition. */
#ifndef PEN_CODEC_JPEG_DECODER_SCAN_RUN_H
#define PEN_CODEC_JPEG_DECODER_SCAN_RUN_H

#ifdef __AVX2__
#include <immintrin.h>
#endif

#include "base/bytes.h"
#include "codec/jpeg/decoder/scan_impl.h"

#define EACH1(X) X(0)
#define EACH2(X) EACH1(X) X(1)
#define EACH3(X) EACH2(X) X(2)
#define EACH4(X) EACH3(X) X(3)

#define LOAD(i)                                                                                    \
    uint64_t bit##i = l[i]->bit, at##i = l[i]->at;                                                 \
    uint32_t *list##i = l[i]->list;
#define SAVE(i)                                                                                    \
    l[i]->bit = bit##i;                                                                            \
    l[i]->at = at##i;                                                                              \
    l[i]->list = list##i;
#define AGAIN(i)                                                                                   \
    bit##i = l[i]->bit;                                                                            \
    at##i = l[i]->at;                                                                              \
    list##i = l[i]->list;
#define TAKE(i)                                                                                    \
    {                                                                                              \
        uint64_t bits = __builtin_bswap64(pen__load64(data + (bit##i >> 3))) << (bit##i & 7);      \
        uint32_t e = s->table[at##i][bits >> (64 - PEN_OWN_BITS)];                                 \
        list##i[at##i / PEN_OWN_STEP_BLOCK] = (uint32_t)bit##i;                                    \
        if (PEN_UNLIKELY(!e)) {                                                                    \
            SAVE(i) pen__scan_slowly(s, l[i]);                                                     \
            AGAIN(i)                                                                               \
        } else {                                                                                   \
            bit##i += e & 255;                                                                     \
            at##i = (at##i | (e >> PEN_SCAN_TO_END & 255)) + (e >> PEN_SCAN_SKIP);                 \
        }                                                                                          \
    }
#define LEFT(i)                                                                                    \
    {                                                                                              \
        uint64_t over = -(uint64_t)(at##i >= period + PEN_OWN_STEP_BLOCK);                         \
        at##i -= over & period;                                                                    \
        list##i += over & s->period;                                                               \
        left |= l[i]->stop - (int64_t)bit##i;                                                      \
        left |= l[i]->limit - list##i;                                                             \
    }

#define RUN(n)                                                                                     \
    static __attribute__((noinline)) void run##n(const PenScanSteps *s, PenScanLane *const *l)     \
    {                                                                                              \
        const uint8_t *data = s->data;                                                             \
        uint64_t period = (uint64_t)s->period * PEN_OWN_STEP_BLOCK;                                \
        int64_t left;                                                                              \
        EACH##n(LOAD) do                                                                           \
        {                                                                                          \
            left = 0;                                                                              \
            EACH##n(TAKE) EACH##n(TAKE) EACH##n(TAKE) EACH##n(TAKE) EACH##n(LEFT)                  \
        }                                                                                          \
        while (left >= 0)                                                                          \
            ;                                                                                      \
        EACH##n(SAVE)                                                                              \
    }
RUN(1)
RUN(2)
RUN(3)
RUN(4)

_Static_assert(PEN_SCAN_TOKENS == 4 && PEN_SCAN_LANES == 4, "written out above");

static void run(const PenScanSteps *steps, PenScanLane *const *lanes, uint32_t n)
{
    (n == 4 ? run4 : n == 3 ? run3 : n == 2 ? run2 : run1)(steps, lanes);
}

static size_t count(const uint8_t *data, size_t bytes)
{
    size_t n = 0, i = 0;
#ifdef __AVX2__
    for (; i + 32 <= bytes; i += 32) {
        __m256i v = _mm256_loadu_si256((const void *)(data + i));
        v = _mm256_cmpeq_epi8(v, _mm256_set1_epi8(-1));
        n += (size_t)__builtin_popcount((uint32_t)_mm256_movemask_epi8(v));
    }
#endif
    for (; i < bytes; i++)
        n += data[i] == 0xFF;
    return n;
}

#endif
