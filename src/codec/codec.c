/* SPDX-License-Identifier: Apache-2.0 */
#include "codec/codec.h"

#include <string.h>

#include "codec/codec_impl.h"

static const char where[] = "codec/image";

static const PenCodecOps raw_ops = {.codec = PEN_STORED_RAW, .name = "raw", .suffix = ".raw"};
static const PenCodecOps picture_ops = {
    .codec = PEN_STORED_PICTURE, .name = "picture", .suffix = ".yuv"};
static const PenCodecOps none_ops = {.codec = PEN_STORED_NONE, .name = "none", .suffix = ".bin"};

static const PenCodecOps *ops_of(int codec)
{
    switch (codec) {
    case PEN_STORED_JPEG:
        return &pen__jpeg_ops;
    case PEN_STORED_PNG:
        return &pen__png_ops;
    case PEN_STORED_WEBP:
        return &pen__webp_ops;
    case PEN_STORED_RAW:
        return &raw_ops;
    case PEN_STORED_PICTURE:
        return &picture_ops;
    default:
        return &none_ops;
    }
}

const char *pen__codec_name(int codec)
{
    return ops_of(codec)->name;
}

const char *pen__codec_suffix(int codec)
{
    return ops_of(codec)->suffix;
}

int pen__image_sniff(const uint8_t *data, size_t bytes)
{
    static const uint8_t jpeg[] = {0xFF, 0xD8, 0xFF};
    static const uint8_t png[] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1A, '\n'};
    if (bytes >= sizeof jpeg && memcmp(data, jpeg, sizeof jpeg) == 0)
        return PEN_STORED_JPEG;
    if (bytes >= sizeof png && memcmp(data, png, sizeof png) == 0)
        return PEN_STORED_PNG;
    if (bytes >= 12 && memcmp(data, "RIFF", 4) == 0 && memcmp(data + 8, "WEBP", 4) == 0)
        return PEN_STORED_WEBP;
    return PEN_STORED_NONE;
}

/* What people have lying about and take for an image that is packed. */
static const char *other_kind(const uint8_t *data, size_t bytes)
{
    static const struct {
        const char *name, *start;
        size_t bytes;
    } kinds[] = {{"a GIF", "GIF8", 4},        {"a BMP", "BM", 2},
                 {"a TIFF", "II*", 4},        {"a TIFF", "MM\0*", 4},
                 {"a PDF", "%PDF", 4},        {"a gzip file", "\x1F\x8B", 2},
                 {"a zip file", "PK\3\4", 4}, {"a JPEG 2000", "\0\0\0\x0CjP", 6}};
    for (size_t i = 0; i < PEN_LEN(kinds); i++)
        if (bytes >= kinds[i].bytes && memcmp(data, kinds[i].start, kinds[i].bytes) == 0)
            return kinds[i].name;
    return NULL;
}

static int sniffed(const uint8_t *data, size_t bytes, const PenCodecOps **ret, PenError *reterr)
{
    int codec = pen__image_sniff(data, bytes);
    if (codec == PEN_STORED_NONE && bytes < 4)
        return pen__fail(reterr, PEN_E_DECODE, where,
                         "image: expected a jpeg, png or webp file, found %zu bytes", bytes);
    if (codec == PEN_STORED_NONE && other_kind(data, bytes))
        return pen__fail(reterr, PEN_E_DECODE, where,
                         "image: expected a jpeg, png or webp file, found %s: convert or remove it",
                         other_kind(data, bytes));
    if (codec == PEN_STORED_NONE)
        return pen__fail(reterr, PEN_E_DECODE, where,
                         "image: expected a jpeg, png or webp file, found one that starts with "
                         "%02x %02x %02x %02x",
                         data[0], data[1], data[2], data[3]);
    *ret = ops_of(codec);
    return PEN_OK;
}

int pen__image_probe(const uint8_t *data, size_t bytes, const PenLimits *limits, PenImageInfo *ret,
                     PenError *reterr)
{
    const PenCodecOps *ops;
    int r = sniffed(data, bytes, &ops, reterr);
    return r < 0 ? r : ops->probe(data, bytes, limits, ret, reterr);
}

int pen__image_check(const uint8_t *data, size_t bytes, const PenLimits *limits, PenError *reterr)
{
    const PenCodecOps *ops;
    int r = sniffed(data, bytes, &ops, reterr);
    return r < 0 ? r : ops->check(data, bytes, limits, reterr);
}

int pen__image_decode(const uint8_t *data, size_t bytes, const PenLimits *limits, PenPixels *ret,
                      PenError *reterr)
{
    const PenCodecOps *ops;
    int r = sniffed(data, bytes, &ops, reterr);
    return r < 0 ? r : ops->decode(data, bytes, limits, ret, reterr);
}

int pen__mask_decode(const uint8_t *data, size_t bytes, const PenLimits *limits, PenPixels *ret,
                     PenError *reterr)
{
    const PenCodecOps *ops;
    int r = sniffed(data, bytes, &ops, reterr);
    return r < 0 ? r : ops->mask(data, bytes, limits, ret, reterr);
}
