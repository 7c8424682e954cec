/* SPDX-License-Identifier: Apache-2.0 */
/* Entropy decoding of six segments at once, in scalar code: one file for each tier includes it and
 * is compiled for it. What limits the decoding of one segment is that a token has to be known
 * before the next can be looked at; six of them side by side keep the CPU busy. There is no branch
 * in the common case: a token is one lookup, and what it does is addition. */
#ifndef PEN_CODEC_JPEG_DECODER_STREAMS_H
#define PEN_CODEC_JPEG_DECODER_STREAMS_H

#ifdef __AVX2__
#include <immintrin.h>
#endif

#include "base/bytes.h"
#include "codec/jpeg/decoder/decoder_impl.h"

enum { STREAMS = 6 };

/* The lowest byte is or-ed to the place: DC and the end of a block go to the end of one. */
enum {
    TO_END = PEN_OWN_STEP_BLOCK - 1,
    UNFINISHED = 128,
    SKIP_AT = 8,
    LENGTH_AT = 16,
    VALUE_AT = 22
};

static const PenOwnLayout streams_layout = {.length = LENGTH_AT,
                                            .skip = SKIP_AT,
                                            .value = VALUE_AT,
                                            .value_bits = 32 - VALUE_AT,
                                            .dc = TO_END,
                                            .end_of_block = TO_END,
                                            .unfinished = UNFINISHED};

/* ---- stuffed bytes ---- */

/* Copies up to a byte 0xFF, or as far as can be looked at at once. Returns how many bytes, and
 * whether the last of them is 0xFF. */
#ifdef __AVX2__
enum { AT_ONCE = 32 };

static inline size_t copy_plain(const uint8_t *data, uint8_t *to, bool *ret_ff)
{
    __m256i v = _mm256_loadu_si256((const void *)data);
    uint32_t ff = (uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(v, _mm256_set1_epi8(-1)));
    _mm256_storeu_si256((void *)to, v);
    *ret_ff = ff != 0;
    return ff ? (size_t)__builtin_ctz(ff) + 1 : AT_ONCE;
}
#else
enum { AT_ONCE = 8 };

static inline size_t copy_plain(const uint8_t *data, uint8_t *to, bool *ret_ff)
{
    uint64_t v = pen__load64(data), ff = (~v - 0x0101010101010101u) & v & 0x8080808080808080u;
    pen__store64(to, v);
    *ret_ff = ff != 0;
    return ff ? (size_t)__builtin_ctzll(ff) / 8 + 1 : AT_ONCE;
}
#endif

static bool unstuff(const uint8_t *data, size_t bytes, uint8_t *to, size_t *ret_bytes)
{
    const uint8_t *end = data + bytes, *start = to;
    bool ff;
    while (end - data > AT_ONCE) {
        size_t n = copy_plain(data, to, &ff);
        if (ff && data[n] != 0)
            return false;
        to += n;
        data += n + ff;
    }
    while (data < end) {
        *to++ = *data;
        if (*data++ == 0xFF && (data == end || *data++ != 0))
            return false;
    }
    memset(to, 0, PEN_OWN_PAD);
    *ret_bytes = (size_t)(to - start);
    return true;
}

/* ---- bits ---- */

static inline void refill(uint64_t *bits, const uint8_t **next)
{
    uint32_t used = (uint32_t)__builtin_ctzll(*bits);
    *next += used / 8;
    *bits = (__builtin_bswap64(pen__load64(*next)) | 1) << used % 8;
}

static uint64_t bits_used(const PenOwnStream *s)
{
    return (uint64_t)(s->next - s->data) * 8 + (uint32_t)__builtin_ctzll(s->bits);
}

/* A token that the lookup does not have whole. */
static __attribute__((noinline, cold)) void slow_token(const PenOwnTables *t, PenOwnStream *s,
                                                       const PenOwnStep *steps)
{
    PenOwnToken token;
    refill(&s->bits, &s->next);
    uint32_t first = steps[s->at].table;
    uint32_t more = t->more[first + (s->bits >> (64 - PEN_OWN_BITS))];
    if (more)
        token =
            (PenOwnToken){more & 255, more >> PEN_OWN_MORE_SIZE & 255, more >> PEN_OWN_MORE_SKIP};
    else
        pen__own_long_token(t, first / PEN_OWN_ENTRIES, s->bits, &token);
    if (!token.length) {
        s->bad = 1;
        s->at = PEN_MAX(s->at, s->end);
        return;
    }
    bool dc = !(first / PEN_OWN_ENTRIES % 2);
    s->at = (s->at | (dc || !token.skip ? TO_END : 0)) + token.skip;
    s->bits <<= token.length;
    s->out[steps[s->at].place] = (int16_t)pen__own_value(s->bits, token.size);
    s->bits <<= token.size;
    refill(&s->bits, &s->next);
}

static inline __attribute__((always_inline)) void take_token(const PenOwnTables *t, PenOwnStream *s,
                                                             const PenOwnStep *steps,
                                                             uint64_t *bits, uint64_t *at)
{
    uint32_t e = t->fast[steps[*at].table + (*bits >> (64 - PEN_OWN_BITS))];
    if (PEN_UNLIKELY(e & UNFINISHED)) {
        s->bits = *bits;
        s->at = *at;
        slow_token(t, s, steps);
        *bits = s->bits;
        *at = s->at;
        return;
    }
    *bits <<= e >> LENGTH_AT & 63;
    *at |= e & 255;
    *at += e >> SKIP_AT & 255;
    s->out[steps[*at].place] = (int16_t)((int32_t)e >> VALUE_AT);
}

/* ---- runs ---- */

#define EACH1(X) X(0)
#define EACH2(X) X(0) X(1)
#define EACH4(X) EACH2(X) X(2) X(3)
#define EACH6(X) EACH4(X) X(4) X(5)

#define LOAD(i)                                                                                    \
    uint64_t bits##i = s[i].bits;                                                                  \
    uint64_t at##i = s[i].at;
#define SAVE(i)                                                                                    \
    s[i].bits = bits##i;                                                                           \
    s[i].at = at##i;
#define FILL(i)                                                                                    \
    refill(&bits##i, &s[i].next);                                                                  \
    left |= s[i].limit - s[i].next;
#define TAKE(i) take_token(t, &s[i], steps, &bits##i, &at##i);
#define LEFT(i) left |= (int64_t)(s[i].end - 1 - at##i);

/* Until one has reached its end, or has left its data. */
#define RUN(n)                                                                                     \
    static __attribute__((noinline)) void run##n(const PenOwnTables *t, PenOwnStream *s,           \
                                                 const PenOwnStep *steps)                          \
    {                                                                                              \
        int64_t left;                                                                              \
        EACH##n(LOAD) do                                                                           \
        {                                                                                          \
            left = 0;                                                                              \
            EACH##n(FILL) EACH##n(TAKE) EACH##n(TAKE) EACH##n(TAKE) EACH##n(TAKE) EACH##n(LEFT)    \
        }                                                                                          \
        while (left >= 0)                                                                          \
            ;                                                                                      \
        EACH##n(SAVE)                                                                              \
    }
RUN(1)
RUN(2)
RUN(4)
RUN(6)

static bool has_ended(const PenOwnStream *s)
{
    return s->at >= s->end || s->next > s->limit;
}

/* The active ones side by side, as many as there are code for. */
static uint32_t run(PenOwn *own, uint32_t active)
{
    const PenOwnStep *steps = own->steps[own->mcu_blocks];
    PenOwnStream s[STREAMS];
    uint32_t lanes[STREAMS], n = 0, ended = 0;
    for (uint32_t m = active; m; m &= m - 1) {
        lanes[n] = (uint32_t)__builtin_ctz(m);
        s[n] = own->streams[lanes[n]];
        n++;
    }
    uint32_t side_by_side = n == 6 ? 6 : n >= 4 ? 4 : n >= 2 ? 2 : 1;
    (n == 6 ? run6 : n >= 4 ? run4 : n >= 2 ? run2 : run1)(own->tables, s, steps);
    for (uint32_t i = 0; i < side_by_side; i++) {
        own->streams[lanes[i]] = s[i];
        ended |= (uint32_t)has_ended(&s[i]) << lanes[i];
    }
    return ended;
}

static void start(PenOwn *own, uint32_t lane, const PenOwnJob *job, uint32_t slot, size_t bytes)
{
    const uint8_t *copy = own->copies + lane * own->copy_bytes;
    /* Blocks of the largest slot that this one does not have. */
    uint32_t missing = PEN_OWN_SLOT_BLOCKS + PEN_OWN_GUARD_BLOCKS - own->slot_blocks;
    uint32_t first = missing + job->first_block, end = first + job->n_mcus * own->mcu_blocks;
    own->streams[lane] = (PenOwnStream){
        .bits = 1ull << job->from.bit, /* so many are used */
        .next = copy,
        .limit = copy + bytes,
        .at = (uint64_t)first * PEN_OWN_STEP_BLOCK + TO_END,
        .end = (uint64_t)end * PEN_OWN_STEP_BLOCK + 63,
        .out = own->coefs + ((ptrdiff_t)(slot * own->slot_blocks) - (ptrdiff_t)missing) * 64,
        .data = copy,
    };
}

/* Tokens may have been decoded behind the last one that is wanted: what they stored is taken away.
 */
static void clear_behind(const PenOwnStream *s)
{
    uint64_t first = s->end / PEN_OWN_STEP_BLOCK, last = s->at / PEN_OWN_STEP_BLOCK - 1;
    last = PEN_MIN(last, (uint64_t)PEN_OWN_SLOT_BLOCKS + PEN_OWN_GUARD_BLOCKS - 1);
    if (first <= last)
        memset(s->out + first * 64, 0, (last - first + 1) * 64 * sizeof *s->out);
}

static bool good(const PenOwn *own, uint32_t lane)
{
    const PenOwnStream *s = &own->streams[lane];
    clear_behind(s);
    return !s->bad && s->at >= s->end && bits_used(s) <= (uint64_t)(s->limit - s->data) * 8;
}

static uint64_t used(const PenOwn *own, uint32_t lane)
{
    return bits_used(&own->streams[lane]);
}

#define STREAMS_ENTROPY(name)                                                                      \
    {                                                                                              \
        .tier = name, .lanes = STREAMS, .spare = STREAMS, .order = -1, .has_steps = true,          \
        .layout = &streams_layout, .unstuff = unstuff, .start = start, .run = run, .good = good,   \
        .used = used                                                                               \
    }

#endif
