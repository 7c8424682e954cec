/* SPDX-License-Identifier: Apache-2.0 */
/* An image between two entropy codings: Huffman symbols with their extra bits, in the order of the
 * new file and not yet given codes. Collecting them gives the counts that optimal tables need,
 * and the coefficients have to be visited only once. */
#ifndef PEN_CODEC_JPEG_TRANSCODE_TOKENS_H
#define PEN_CODEC_JPEG_TRANSCODE_TOKENS_H

#include "codec/jpeg/tiled.h"
#include "codec/jpeg/turbo/turbo.h"

/* A token: bits 0-7 symbol, 8-9 table, 16-26 the extra bits. */
enum {
    PEN_TOKEN_DC = 0, /* table: twice the class, plus 1 for AC */
    PEN_TOKEN_AC = 0x100,
    PEN_TOKEN_CHROMA = 0x200,
    PEN_TOKEN_INDEX = 0x3FF,
    PEN_TOKEN_SHIFT = 16,
    PEN_TOKEN_TABLES = 4,
    PEN_MCU_TOKENS = 6 * 64, /* at most: 6 blocks of DC and 63 AC, or fewer AC and an end */
    PEN_EOB = 0x00,
    PEN_ZRL = 0xF0,
    PEN_DC_BITS = 11, /* what baseline allows */
    PEN_AC_BITS = 10
};

/* Place in the row-by-row block of the k-th coefficient in zigzag order. */
extern const uint8_t pen__zigzag[64];

/* The frame of the file to be. */
typedef struct PenBaselinePlan {
    const PenJpegFrame *frame;
    uint8_t h_samp, v_samp; /* of luma; chroma is 1 x 1 */
    PenTileGeometry geometry;
} PenBaselinePlan;

typedef struct PenTokens {
    PenBuf *buf; /* of uint32_t */
    uint32_t counts[PEN_TOKEN_TABLES * 256];
} PenTokens;

/* The number of bits in |v|. */
static inline uint32_t pen__bit_size(int v)
{
    unsigned magnitude = (unsigned)(v < 0 ? -v : v);
    return 31 - (uint32_t)__builtin_clz(magnitude << 1 | 1);
}

/* `index` is table and symbol. Returns the place of the next token. */
static inline uint32_t *pen__token_put(PenTokens *t, uint32_t *at, uint32_t index, uint32_t extra)
{
    t->counts[index]++;
    *at = index | extra << PEN_TOKEN_SHIFT;
    return at + 1;
}

/* A coefficient of `size` bits: negative ones are stored less one, without the sign. */
static inline uint32_t *pen__token_value(PenTokens *t, uint32_t *at, uint32_t index, int v,
                                         uint32_t size)
{
    return pen__token_put(t, at, index + size, (unsigned)(v + (v >> 31)) & ((1u << size) - 1));
}

/* All blocks of a frame. PEN_END when a coefficient is too large for baseline. */
int pen__tokens_of_blocks(PenTokens *t, const PenBaselinePlan *plan, PenError *reterr);

/* Tokens to a file, which replaces what `b` holds. The bytes are those that libjpeg would write. */
int pen__baseline_write(const PenTokens *t, const PenBaselinePlan *plan, PenBuf *b,
                        PenError *reterr);

#endif
