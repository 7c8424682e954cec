/* SPDX-License-Identifier: Apache-2.0 */
#include "codec/codec.h"

#include <string.h>

#include "base/bytes.h"
#include "codec/codec_impl.h"

static const char where[] = "codec/image";

const PenLimits pen__limits_default = {
    .max_pixels = (uint64_t)64 << 20,
    .max_memory_bytes = (uint64_t)512 << 20,
    .max_scans = 100,
};

static const PenCodecOps raw_ops = {.codec = PEN_STORED_RAW, .name = "raw", .suffix = ".raw"};
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

int pen__limits_check(const PenLimits *limits, uint64_t width, uint64_t height, const char *part,
                      PenError *reterr)
{
    uint64_t pixels;
    if (!width || !height)
        return pen__fail(reterr, PEN_E_DECODE, part,
                         "size: expected at least 1 x 1 pixels, found %llu x %llu",
                         (unsigned long long)width, (unsigned long long)height);
    if (pen__mul_over(width, height, &pixels) || pixels > limits->max_pixels)
        return pen__fail(reterr, PEN_E_LIMIT, part,
                         "size: expected at most %llu pixels, found %llu x %llu",
                         (unsigned long long)limits->max_pixels, (unsigned long long)width,
                         (unsigned long long)height);
    return PEN_OK;
}

int pen__pixels_alloc(const PenLimits *limits, uint32_t width, uint32_t height, uint32_t channels,
                      const char *part, PenPixels *ret, PenError *reterr)
{
    uint64_t bytes;
    if (pen__mul_over((uint64_t)width * channels, height, &bytes) ||
        bytes > limits->max_memory_bytes || bytes > SIZE_MAX / 2)
        return pen__fail(reterr, PEN_E_LIMIT, part,
                         "size: expected pixels of at most %llu bytes, found %u x %u of %u bytes",
                         (unsigned long long)limits->max_memory_bytes, width, height, channels);
    uint8_t *data = pen__alloc((size_t)bytes + PEN_SLACK);
    if (!data)
        return pen__fail_memory(reterr, part, "pixels");
    memset(data + bytes, 0, PEN_SLACK);
    *ret = (PenPixels){.data = data, .width = width, .height = height, .channels = channels};
    return PEN_OK;
}

void pen__pixels_free(PenPixels *p)
{
    pen__free_large(p->data, (size_t)p->width * p->height * p->channels);
    *p = (PenPixels){0};
}
