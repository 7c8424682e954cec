/* SPDX-License-Identifier: Apache-2.0 */
/* Bits of a video's headers, from the highest of the first byte on. Behind the end all are 0. */
#ifndef PEN_INGEST_VIDEO_BITS_H
#define PEN_INGEST_VIDEO_BITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct PenBits {
    const uint8_t *data;
    size_t bytes;
    size_t at;       /* the current byte */
    unsigned bit;    /* of that, 0 to 7 */
    unsigned zeros;  /* bytes before that, one after another */
    bool is_escaped; /* H.264, HEVC: a byte 3 after two bytes 0 is left out */
    bool is_over;    /* there were not as many */
} PenBits;

static inline PenBits pen__bits(const uint8_t *data, size_t bytes, bool is_escaped)
{
    return (PenBits){.data = data, .bytes = bytes, .is_escaped = is_escaped};
}

static inline void pen__bits_next_byte(PenBits *b)
{
    b->zeros = b->data[b->at] ? 0 : b->zeros + 1;
    b->bit = 0;
    b->at++;
    if (b->is_escaped && b->zeros >= 2 && b->at < b->bytes && b->data[b->at] == 3) {
        b->zeros = 0;
        b->at++;
    }
}

static inline unsigned pen__bit(PenBits *b)
{
    if (b->at >= b->bytes) {
        b->is_over = true;
        return 0;
    }
    unsigned v = b->data[b->at] >> (7 - b->bit) & 1;
    if (++b->bit == 8)
        pen__bits_next_byte(b);
    return v;
}

/* At most 32. */
static inline uint32_t pen__bits_take(PenBits *b, unsigned n)
{
    uint32_t v = 0;
    while (n--)
        v = v << 1 | pen__bit(b);
    return v;
}

static inline void pen__bits_skip(PenBits *b, unsigned n)
{
    while (n--)
        (void)pen__bit(b);
}

/* Exp-Golomb: ue(v). What does not fit is the largest number. */
static inline uint32_t pen__bits_golomb(PenBits *b)
{
    unsigned zeros = 0;
    while (!pen__bit(b)) {
        if (b->is_over || ++zeros == 32)
            return UINT32_MAX;
    }
    return (uint32_t)(((UINT64_C(1) << zeros) | pen__bits_take(b, zeros)) - 1);
}

/* se(v) */
static inline int64_t pen__bits_signed(PenBits *b)
{
    uint32_t v = pen__bits_golomb(b);
    int64_t half = ((int64_t)v + 1) / 2;
    return v & 1 ? half : -half;
}

#endif
