/* SPDX-License-Identifier: Apache-2.0 */
/* Tokens become a file: its head with optimal Huffman tables, and its scan. */
#include <string.h>

#include "base/bytes.h"
#include "codec/jpeg/huffman.h"
#include "codec/jpeg/markers.h"
#include "codec/jpeg/transcode/tokens.h"

static const char where[] = "codec/jpeg";

enum {
    /* SOI, JFIF, 3 DQT, SOF, 4 DHT, SOS at their largest are 1,600 bytes. */
    HEAD_BYTES = 2048,
    /* A token has at most 16 + 11 bits, and every byte may get a zero behind it. */
    TOKEN_BYTES = 8,
    /* At most 31 bits that are left, padding, the marker; zeros behind all but that. */
    CLOSING_BYTES = 16,
    CHUNK_TOKENS = 4096 /* there is room for so many at a time */
};

/* ---- the head ---- */

static void put8(PenBuf *b, unsigned v)
{
    b->data[b->bytes++] = (uint8_t)v;
}

static void put16(PenBuf *b, unsigned v)
{
    put8(b, v >> 8);
    put8(b, v & 255);
}

static void put_marker(PenBuf *b, uint8_t code, unsigned body_bytes)
{
    put8(b, 0xFF);
    put8(b, code);
    put16(b, body_bytes + 2);
}

static void put_jfif(PenBuf *b, const PenJpegFrame *f)
{
    bool known = f->has_jfif && (f->jfif_version[0] == 1 || f->jfif_version[0] == 2);
    put_marker(b, PEN_MARKER_APP0, 14);
    memcpy(b->data + b->bytes, "JFIF", 5);
    b->bytes += 5;
    put8(b, known ? f->jfif_version[0] : 1);
    put8(b, known ? f->jfif_version[1] : 1);
    put8(b, f->has_jfif ? f->density_unit : 0);
    put16(b, f->has_jfif ? f->density[0] : 1);
    put16(b, f->has_jfif ? f->density[1] : 1);
    put16(b, 0); /* no thumbnail */
}

static void put_quant(PenBuf *b, const PenJpegFrame *f)
{
    unsigned done = 0;
    for (size_t i = 0; i < f->n_planes; i++) {
        const PenJpegPlane *p = &f->planes[i];
        if (done >> p->quant_slot & 1)
            continue;
        done |= 1u << p->quant_slot;
        put_marker(b, PEN_MARKER_DQT, 65);
        put8(b, p->quant_slot);
        for (size_t k = 0; k < 64; k++)
            put8(b, p->quant[pen__zigzag[k]]);
    }
}

static void put_frame(PenBuf *b, const PenBaselinePlan *plan)
{
    const PenJpegFrame *f = plan->frame;
    put_marker(b, PEN_MARKER_SOF0, 6 + 3u * f->n_planes);
    put8(b, 8);
    put16(b, f->height);
    put16(b, f->width);
    put8(b, f->n_planes);
    for (size_t i = 0; i < f->n_planes; i++) {
        put8(b, f->planes[i].id);
        put8(b, i ? 0x11 : (unsigned)plan->h_samp << 4 | plan->v_samp);
        put8(b, f->planes[i].quant_slot);
    }
}

/* Table t of the tokens is class t % 2 (0 = DC), slot t / 2. */
static void put_huff(PenBuf *b, const PenHuffTable *table, unsigned t)
{
    put_marker(b, PEN_MARKER_DHT, 17 + table->n_symbols);
    put8(b, t % 2 << 4 | t / 2);
    memcpy(b->data + b->bytes, table->n_codes + 1, 16);
    memcpy(b->data + b->bytes + 16, table->symbols, table->n_symbols);
    b->bytes += 16 + table->n_symbols;
}

static void put_scan(PenBuf *b, const PenBaselinePlan *plan)
{
    const PenJpegFrame *f = plan->frame;
    put_marker(b, PEN_MARKER_SOS, 4 + 2u * f->n_planes);
    put8(b, f->n_planes);
    for (size_t i = 0; i < f->n_planes; i++) {
        put8(b, f->planes[i].id);
        put8(b, i ? 0x11 : 0);
    }
    put8(b, 0);
    put8(b, 63);
    put8(b, 0);
}

/* ---- the scan ---- */

/* What a token becomes: its code, shifted to make room for the extra bits, and both their length.
 */
typedef struct Code {
    uint32_t bits, length;
} Code;

typedef struct Bits {
    uint8_t *at;
    uint64_t acc; /* the last n bits are still to be written */
    uint32_t n;
} Bits;

static void make_codes(const PenHuffTable *table, Code codes[256])
{
    uint32_t code = 0, at = 0;
    for (uint32_t length = 1; length <= 16; length++, code <<= 1)
        for (uint32_t i = 0; i < table->n_codes[length]; i++, code++, at++) {
            uint32_t symbol = table->symbols[at], size = symbol & 15;
            codes[symbol] = (Code){.bits = code << size, .length = length + size};
        }
}

static void put_byte(Bits *b, uint8_t byte)
{
    *b->at++ = byte;
    if (byte == 0xFF)
        *b->at++ = 0;
}

static inline void flush32(Bits *b)
{
    b->n -= 32;
    uint32_t word = (uint32_t)(b->acc >> b->n);
    /* Is any byte 0xFF? */
    if (PEN_UNLIKELY((~word - 0x01010101u) & word & 0x80808080u)) {
        for (int shift = 24; shift >= 0; shift -= 8)
            put_byte(b, (uint8_t)(word >> shift));
    } else {
        pen__store32(b->at, __builtin_bswap32(word));
        b->at += 4;
    }
}

static Bits put_tokens(Bits b, const uint32_t *tokens, size_t n, const Code *codes)
{
    for (size_t i = 0; i < n; i++) {
        Code c = codes[tokens[i] & PEN_TOKEN_INDEX];
        b.acc = b.acc << c.length | c.bits | tokens[i] >> PEN_TOKEN_SHIFT;
        b.n += c.length;
        if (b.n >= 32)
            flush32(&b);
    }
    return b;
}

static void put_end(Bits *b)
{
    uint32_t pad = -b->n & 7; /* with ones, to a whole byte */
    b->acc = b->acc << pad | ((1u << pad) - 1);
    for (b->n += pad; b->n;) {
        b->n -= 8;
        put_byte(b, (uint8_t)(b->acc >> b->n));
    }
    *b->at++ = 0xFF;
    *b->at++ = PEN_MARKER_EOI;
}

static int put_data(const PenTokens *t, const Code *codes, PenBuf *b)
{
    const uint32_t *tokens = (const uint32_t *)(const void *)t->buf->data;
    size_t n_tokens = t->buf->bytes / sizeof *tokens;
    Bits bits = {0};
    for (size_t i = 0; i < n_tokens; i += CHUNK_TOKENS) {
        size_t n = PEN_MIN(n_tokens - i, (size_t)CHUNK_TOKENS);
        size_t need = n * TOKEN_BYTES + CLOSING_BYTES;
        if (b->cap - b->bytes < need && pen__buf_reserve(b, need) < 0)
            return PEN_E_NO_MEMORY;
        bits.at = b->data + b->bytes;
        bits = put_tokens(bits, tokens + i, n, codes);
        if (i + n == n_tokens)
            put_end(&bits);
        b->bytes = (size_t)(bits.at - b->data);
    }
    return PEN_OK;
}

int pen__baseline_write(const PenTokens *t, const PenBaselinePlan *plan, PenBuf *b,
                        PenError *reterr)
{
    Code codes[PEN_TOKEN_TABLES * 256];
    b->bytes = 0;
    if (pen__buf_reserve(b, HEAD_BYTES) < 0)
        return pen__fail_memory(reterr, where, "baseline file");
    put8(b, 0xFF);
    put8(b, PEN_MARKER_SOI);
    put_jfif(b, plan->frame);
    put_quant(b, plan->frame);
    put_frame(b, plan);
    for (unsigned i = 0; i < (plan->frame->n_planes == 1 ? 2 : PEN_TOKEN_TABLES); i++) {
        PenHuffTable table;
        pen__huff_optimal(t->counts + (size_t)i * 256, &table);
        put_huff(b, &table, i);
        make_codes(&table, codes + (size_t)i * 256);
    }
    put_scan(b, plan);
    if (put_data(t, codes, b) < 0)
        return pen__fail_memory(reterr, where, "baseline file");
    return PEN_OK;
}
