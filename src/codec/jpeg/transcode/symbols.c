/* SPDX-License-Identifier: Apache-2.0 */
/* Tokens straight from the symbols of a sequential Huffman scan.
 * Extra bits mean the same in the old file and in the new one, so that only DC differences change,
 * and those only where a segment starts. A scan with anything unusual is left to libjpeg. */
#include <stdbool.h>
#include <string.h>

#include "base/bytes.h"
#include "codec/jpeg/markers.h"
#include "codec/jpeg/transcode/tokens.h"

static const char where[] = "codec/jpeg";

enum {
    LOOK_BITS = 11,
    /* What an MCU can read beyond the end before it is noticed: 6 blocks of 64 symbols, 31 bits
     * each.
     */
    PAD_BYTES = 2048
};

/* Entry: bits 0-7 symbol, 8-15 length of the code, 16-23 that and the extra bits; 0 = look on. */
typedef struct Decoder {
    uint32_t look[1 << LOOK_BITS];
    uint32_t end[17];   /* first code value beyond those of a length, left-aligned to 16 bits */
    int32_t offset[17]; /* index of a symbol less its code */
    const uint8_t *symbols;
    bool ac;
} Decoder;

typedef struct Bits {
    const uint8_t *start, *at;
    uint64_t acc; /* the next bits, from the top */
    uint32_t n;   /* how many of them are there */
    uint64_t total;
} Bits;

typedef struct Reader {
    PenTokens *tokens;
    const PenTilePlan *plan;
    Decoder decoders[PEN_TOKEN_TABLES]; /* as the tables of tokens */
    Bits bits;
    int in_dc[3], out_dc[3];
    const uint8_t *data;
    size_t bytes, next; /* where the next interval starts in `data` */
    PenBuf *scratch;
} Reader;

static uint32_t entry_of(const Decoder *d, uint8_t symbol, uint32_t length)
{
    uint32_t size = symbol & 15;
    bool usual = d->ac
                     ? (size >= 1 && size <= PEN_AC_BITS) || symbol == PEN_EOB || symbol == PEN_ZRL
                     : symbol <= PEN_DC_BITS;
    return usual ? symbol | length << 8 | (length + size) << 16 : 0;
}

/* False when libjpeg would refuse the table: too many codes, a code of all ones, DC of more than 15
 * bits. */
static bool build_decoder(Decoder *d, const PenHuffSpec *spec, bool ac)
{
    uint32_t code = 0, n = 0;
    if (!spec->n_codes)
        return false;
    memset(d->look, 0, sizeof d->look);
    d->symbols = spec->symbols;
    d->ac = ac;
    for (uint32_t length = 1; length <= 16; length++) {
        uint32_t unit = 1u << (16 - length);
        d->offset[length] = (int32_t)n - (int32_t)(code >> (16 - length));
        for (uint32_t i = 0; i < spec->n_codes[length]; i++, n++, code += unit) {
            if (n == 256 || code + unit >= 0x10000 || (!ac && spec->symbols[n] > 15))
                return false;
            uint32_t entry = entry_of(d, spec->symbols[n], length);
            if (length <= LOOK_BITS)
                for (uint32_t j = 0; j < unit >> (16 - LOOK_BITS); j++)
                    d->look[(code >> (16 - LOOK_BITS)) + j] = entry;
        }
        d->end[length] = code;
    }
    return true;
}

/* Codes too long for the first look; 0 when there is no such code or it is unusual. */
static uint32_t look_on(const Decoder *d, uint64_t acc)
{
    uint32_t code = (uint32_t)(acc >> 48), length = 1;
    while (length <= 16 && code >= d->end[length])
        length++;
    if (length > 16)
        return 0;
    int32_t at = (int32_t)(code >> (16 - length)) + d->offset[length];
    return entry_of(d, d->symbols[at], length);
}

static inline void refill(Bits *b)
{
    b->acc |= __builtin_bswap64(pen__load64(b->at)) >> b->n;
    b->at += (63 - b->n) >> 3;
    b->n |= 56;
}

/* One symbol and its extra bits; 0 when it is unusual. At most 27 bits, so that two can be taken
 * between refills. */
static inline uint32_t next_symbol(Bits *b, const Decoder *d, uint32_t *ret_extra)
{
    uint32_t entry = d->look[b->acc >> (64 - LOOK_BITS)];
    if (PEN_UNLIKELY(!entry)) {
        entry = look_on(d, b->acc);
        if (!entry)
            return 0;
    }
    uint32_t total = entry >> 16;
    *ret_extra = (uint32_t)(b->acc >> (64 - total)) & ((1u << (entry & 15)) - 1);
    b->acc <<= total;
    b->n -= total;
    return entry;
}

static uint64_t bits_used(const Bits *b)
{
    return (uint64_t)(b->at - b->start) * 8 - b->n;
}

/* An end of block that follows runs of zeros makes them needless. */
static uint32_t *drop_runs(PenTokens *t, uint32_t *at, const uint32_t *start, uint32_t index)
{
    while (at > start && (at[-1] & PEN_TOKEN_INDEX) == index + PEN_ZRL) {
        t->counts[index + PEN_ZRL]--;
        at--;
    }
    return at;
}

/* Returns the place behind the block's last token, NULL when something is unusual. */
static uint32_t *read_ac(Reader *r, uint32_t *at, uint32_t index)
{
    const Decoder *d = &r->decoders[index >> 8];
    PenTokens *t = r->tokens;
    Bits b = r->bits;
    const uint32_t *start = at;
    uint32_t k = 1;
    for (bool full = false; k < 64; full = !full) {
        if (!full)
            refill(&b);
        uint32_t extra, entry = next_symbol(&b, d, &extra), symbol = entry & 255;
        if (PEN_UNLIKELY(!entry))
            return NULL;
        if (symbol == PEN_EOB) {
            at = drop_runs(t, at, start, index);
            at = pen__token_put(t, at, index + PEN_EOB, 0);
            break;
        }
        k += (symbol >> 4) + 1;
        if (PEN_UNLIKELY(k > 64 || (symbol == PEN_ZRL && k == 64)))
            return NULL;
        at = pen__token_put(t, at, index + symbol, extra);
    }
    r->bits = b;
    return at;
}

/* Adds the next difference to the source's running DC; false when something is unusual. */
static bool read_dc(Reader *r, size_t plane, uint32_t table)
{
    refill(&r->bits);
    uint32_t extra, entry = next_symbol(&r->bits, &r->decoders[table >> 8], &extra);
    if (!entry)
        return false;
    uint32_t size = entry & 15;
    /* Extra bits that start with 0 stand for a negative number. */
    int diff = size && !(extra >> (size - 1)) ? (int)extra - (int)(1u << size) + 1 : (int)extra;
    r->in_dc[plane] += diff;
    return r->in_dc[plane] >= INT16_MIN && r->in_dc[plane] <= INT16_MAX;
}

static uint32_t *read_block(Reader *r, uint32_t *at, size_t plane, uint32_t table)
{
    if (!read_dc(r, plane, table))
        return NULL;
    int diff = r->in_dc[plane] - r->out_dc[plane];
    uint32_t size = pen__bit_size(diff);
    if (size > PEN_DC_BITS)
        return NULL;
    r->out_dc[plane] = r->in_dc[plane];
    at = pen__token_value(r->tokens, at, table, diff, size);
    return read_ac(r, at, table + PEN_TOKEN_AC);
}

/* Padding to a whole MCU: what the source has there is read and forgotten. */
static uint32_t *read_padding(Reader *r, uint32_t *at, size_t plane, uint32_t table)
{
    if (!read_dc(r, plane, table))
        return NULL;
    uint32_t *end = read_ac(r, at, table + PEN_TOKEN_AC);
    if (!end)
        return NULL;
    while (end > at)
        r->tokens->counts[*--end & PEN_TOKEN_INDEX]--;
    at = pen__token_put(r->tokens, at, table + PEN_TOKEN_DC, 0);
    return pen__token_put(r->tokens, at, table + PEN_TOKEN_AC + PEN_EOB, 0);
}

static uint32_t *read_mcu(Reader *r, uint32_t *at, uint32_t mx, uint32_t my)
{
    const PenTilePlan *plan = r->plan;
    for (size_t i = 0; i < plan->frame->n_planes; i++) {
        const PenJpegPlane *p = &plan->frame->planes[i];
        uint32_t h = i ? 1 : plan->h_samp, v = i ? 1 : plan->v_samp;
        uint32_t table = i ? PEN_TOKEN_CHROMA : 0;
        for (uint32_t b = 0; b < h * v && at; b++) {
            bool real = mx * h + b % h < p->blocks_x && my * v + b / h < p->blocks_y;
            at = real ? read_block(r, at, i, table) : read_padding(r, at, i, table);
        }
    }
    return at && bits_used(&r->bits) <= r->bits.total ? at : NULL;
}

/* Copies entropy-coded data without the zeros stuffed behind 0xFF, up to the next marker. */
static int copy_interval(Reader *r, PenError *reterr)
{
    PenBuf *b = r->scratch;
    b->bytes = 0;
    if (pen__buf_reserve(b, r->bytes - r->next + PAD_BYTES) < 0)
        return pen__fail_memory(reterr, where, "entropy-coded data");
    for (;;) {
        const uint8_t *from = r->data + r->next;
        const uint8_t *ff = memchr(from, 0xFF, r->bytes - r->next);
        if (!ff || ff + 1 == r->data + r->bytes)
            return PEN_END;
        size_t n = (size_t)(ff - from);
        memcpy(b->data + b->bytes, from, n);
        b->bytes += n;
        r->next += n;
        if (ff[1] != 0)
            break;
        b->data[b->bytes++] = 0xFF;
        r->next += 2;
    }
    memset(b->data + b->bytes, 0, PAD_BYTES);
    r->bits = (Bits){.start = b->data, .at = b->data, .total = (uint64_t)b->bytes * 8};
    memset(r->in_dc, 0, sizeof r->in_dc);
    return PEN_OK;
}

/* The bits are used up to the last byte, and the marker expected follows. */
static bool ends_with(const Reader *r, uint8_t code)
{
    return r->bits.total - bits_used(&r->bits) < 8 && r->data[r->next + 1] == code;
}

static int next_interval(Reader *r, uint32_t mcu, uint32_t interval, PenError *reterr)
{
    if (mcu > 0) {
        if (!ends_with(r, (uint8_t)(PEN_MARKER_RST0 + (mcu / interval - 1) % 8)))
            return PEN_END;
        r->next += 2;
    }
    return copy_interval(r, reterr);
}

static int read_segment(Reader *r, const PenJpegScan *scan, uint32_t first, uint32_t n,
                        PenError *reterr)
{
    const PenTileGeometry *g = &r->plan->geometry;
    uint32_t *start = pen__tokens_room(r->tokens, (size_t)n * PEN_MCU_TOKENS), *at = start;
    uint32_t interval = scan->restart_interval ? scan->restart_interval : UINT32_MAX;
    if (!start)
        return pen__fail_memory(reterr, where, "tokens");
    memset(r->out_dc, 0, sizeof r->out_dc);
    for (uint32_t i = first; i < first + n; i++) {
        if (i % interval == 0) {
            int result = next_interval(r, i, interval, reterr);
            if (result != PEN_OK)
                return result;
        }
        at = read_mcu(r, at, i % g->mcus_x, i / g->mcus_x);
        if (!at)
            return PEN_END;
    }
    r->tokens->segment_tokens[first / PEN_TILE_MCUS] = (uint32_t)(at - start);
    r->tokens->buf->bytes += (size_t)(at - start) * sizeof *at;
    return PEN_OK;
}

static bool same_spec(const PenHuffSpec *a, const PenHuffSpec *b)
{
    return a->n_codes == b->n_codes && a->symbols == b->symbols;
}

/* The tokens' tables are those of luma and of chroma: both chroma planes must share theirs. */
static bool build_decoders(Reader *r, const PenJpegScan *scan, uint8_t n_planes)
{
    if (n_planes == 3 &&
        !(same_spec(&scan->dc[1], &scan->dc[2]) && same_spec(&scan->ac[1], &scan->ac[2])))
        return false;
    for (size_t i = 0; i < 2 && i < n_planes; i++)
        if (!build_decoder(&r->decoders[2 * i], &scan->dc[i], false) ||
            !build_decoder(&r->decoders[2 * i + 1], &scan->ac[i], true))
            return false;
    return true;
}

int pen__tokens_of_scan(PenTokens *t, const PenTilePlan *plan, const PenJpegScan *scan,
                        const uint8_t *data, size_t bytes, PenBuf *scratch, PenError *reterr)
{
    uint32_t n_mcus = plan->geometry.mcus_x * plan->geometry.mcus_y;
    Reader r = {.tokens = t,
                .plan = plan,
                .data = data,
                .bytes = bytes,
                .next = scan->data_offset,
                .scratch = scratch};
    if (!build_decoders(&r, scan, plan->frame->n_planes))
        return PEN_END;
    for (uint32_t first = 0; first < n_mcus; first += PEN_TILE_MCUS) {
        uint32_t n = PEN_MIN(n_mcus - first, (uint32_t)PEN_TILE_MCUS);
        int result = read_segment(&r, scan, first, n, reterr);
        if (result != PEN_OK)
            return result;
    }
    return ends_with(&r, PEN_MARKER_EOI) ? PEN_OK : PEN_END;
}
