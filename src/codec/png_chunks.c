/* SPDX-License-Identifier: Apache-2.0 */
#include "codec/png_chunks.h"

#include <string.h>

#include "base/bytes.h"
#include "codec/codec_impl.h"
#include "codec/exif.h"

static const char where[] = "codec/png";

typedef struct Chunk {
    const uint8_t *type, *data;
    uint32_t bytes;
    uint32_t crc;
    size_t offset; /* of the chunk in the file */
} Chunk;

static uint32_t load32be(const uint8_t *p)
{
    return __builtin_bswap32(pen__load32(p));
}

static bool is_type(const Chunk *c, const char *type)
{
    return memcmp(c->type, type, 4) == 0;
}

static int next_chunk(const uint8_t *data, size_t bytes, size_t *at, Chunk *ret, PenError *reterr)
{
    if (!pen__range_ok(*at, 12, bytes))
        return pen__fail(reterr, PEN_E_DECODE, where,
                         "png: truncated: expected a chunk at byte %zu, found the end of the file "
                         "at %zu",
                         *at, bytes);
    Chunk c = {.bytes = load32be(data + *at),
               .type = data + *at + 4,
               .data = data + *at + 8,
               .offset = *at};
    if (!pen__range_ok(*at + 12, c.bytes, bytes))
        return pen__fail(reterr, PEN_E_DECODE, where,
                         "png: truncated: expected a chunk of %u bytes at byte %zu, found the end "
                         "of the file at %zu",
                         c.bytes, *at, bytes);
    c.crc = load32be(c.data + c.bytes);
    *at += 12 + (size_t)c.bytes;
    *ret = c;
    return PEN_OK;
}

static bool depth_fits(uint8_t colour, uint8_t depth)
{
    switch (colour) {
    case PEN_PNG_GREY:
        return depth == 1 || depth == 2 || depth == 4 || depth == 8 || depth == 16;
    case PEN_PNG_PALETTE:
        return depth == 1 || depth == 2 || depth == 4 || depth == 8;
    case PEN_PNG_RGB:
    case PEN_PNG_GREY_ALPHA:
    case PEN_PNG_RGBA:
        return depth == 8 || depth == 16;
    default:
        return false;
    }
}

static int read_ihdr(const Chunk *c, const PenLimits *limits, PenPngHead *ret, PenError *reterr)
{
    if (!is_type(c, "IHDR") || c->bytes != 13)
        return pen__fail(reterr, PEN_E_DECODE, where,
                         "png: expected an IHDR chunk of 13 bytes first, found another chunk");
    *ret = (PenPngHead){
        .width = load32be(c->data),
        .height = load32be(c->data + 4),
        .depth = c->data[8],
        .colour = c->data[9],
        .orientation = 1,
    };
    if (!depth_fits(ret->colour, ret->depth))
        return pen__fail(reterr, PEN_E_DECODE, where,
                         "png: expected a valid color type, found type %u with %u bits",
                         ret->colour, ret->depth);
    return pen__limits_check(limits, ret->width, ret->height, where, reterr);
}

static const uint8_t signature[8] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1A, '\n'};

int pen__png_head(const uint8_t *data, size_t bytes, const PenLimits *limits, PenPngHead *ret,
                  PenError *reterr)
{
    PenPngHead head;
    Chunk c = {0};
    size_t at = sizeof signature;
    if (bytes < at || memcmp(data, signature, at) != 0)
        return pen__fail(reterr, PEN_E_DECODE, where,
                         "png: expected the PNG signature, found other bytes");
    int r = next_chunk(data, bytes, &at, &c, reterr);
    if (r >= 0)
        r = read_ihdr(&c, limits, &head, reterr);
    while (r >= 0) {
        r = next_chunk(data, bytes, &at, &c, reterr);
        if (r < 0 || is_type(&c, "IDAT"))
            break;
        if (is_type(&c, "IEND"))
            return pen__fail(reterr, PEN_E_DECODE, where,
                             "png: expected pixels (IDAT), found the end of the image at byte %zu",
                             c.offset);
        head.has_trns |= is_type(&c, "tRNS");
        head.has_packed |= is_type(&c, "iCCP") || is_type(&c, "zTXt") || is_type(&c, "iTXt");
        if (is_type(&c, "eXIf"))
            head.orientation = (uint8_t)pen__exif_orientation(c.data, c.bytes);
    }
    if (r >= 0)
        *ret = head;
    return r;
}

/* ---- checksums ---- */

typedef struct CrcTable {
    uint32_t of[8][256]; /* of[k]: a byte with k bytes of zeros behind it */
} CrcTable;

static void make_crc_table(CrcTable *t)
{
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t v = i;
        for (int bit = 0; bit < 8; bit++)
            v = v >> 1 ^ (0xEDB88320u & -(v & 1));
        t->of[0][i] = v;
    }
    for (size_t k = 1; k < 8; k++)
        for (size_t i = 0; i < 256; i++)
            t->of[k][i] = t->of[k - 1][i] >> 8 ^ t->of[0][t->of[k - 1][i] & 255];
}

static uint32_t crc32_of(const CrcTable *t, const uint8_t *p, size_t n)
{
    uint32_t crc = 0xFFFFFFFF;
    for (; n >= 8; n -= 8, p += 8) {
        uint64_t v = pen__load64(p) ^ crc;
        crc = 0;
        for (size_t k = 0; k < 8; k++)
            crc ^= t->of[7 - k][v >> (8 * k) & 255];
    }
    for (; n; n--, p++)
        crc = crc >> 8 ^ t->of[0][(crc ^ *p) & 255];
    return ~crc;
}

int pen__png_check(const uint8_t *data, size_t bytes, const PenLimits *limits, PenError *reterr)
{
    PenPngHead head;
    CrcTable table;
    Chunk c = {0};
    size_t at = sizeof signature;
    int r = pen__png_head(data, bytes, limits, &head, reterr);
    if (r < 0)
        return r;
    make_crc_table(&table);
    do {
        r = next_chunk(data, bytes, &at, &c, reterr);
        if (r < 0)
            return r;
        uint32_t crc = crc32_of(&table, c.type, (size_t)c.bytes + 4);
        if (crc != c.crc)
            return pen__fail(reterr, PEN_E_DECODE, where,
                             "png: chunk %.4s at byte %zu: expected checksum %08x, found %08x",
                             (const char *)c.type, c.offset, c.crc, crc);
    } while (!is_type(&c, "IEND"));
    return PEN_OK;
}
