/* SPDX-License-Identifier: Apache-2.0 */
/* WebP through libwebp. */
#include <string.h>

#include <webp/decode.h>

#include "base/bytes.h"
#include "codec/codec_impl.h"
#include "codec/exif.h"

static const char where[] = "codec/webp";

enum { VP8X_ANIMATION = 0x02 };

typedef struct Riff {
    const uint8_t *data;
    size_t end; /* of the file as its header says */
    size_t at;
} Riff;

typedef struct Chunk {
    const uint8_t *type, *data;
    uint32_t bytes;
} Chunk;

static int open_riff(Riff *riff, const uint8_t *data, size_t bytes, PenError *reterr)
{
    if (bytes < 12 || memcmp(data, "RIFF", 4) != 0 || memcmp(data + 8, "WEBP", 4) != 0)
        return pen__fail(reterr, PEN_E_DECODE, where,
                         "webp: expected the WebP signature, found other bytes");
    uint64_t end = (uint64_t)pen__load32(data + 4) + 8;
    if (end > bytes || end < 12)
        return pen__fail(reterr, PEN_E_DECODE, where,
                         "webp: truncated: expected %llu bytes, found the end of the file at %zu",
                         (unsigned long long)end, bytes);
    *riff = (Riff){.data = data, .end = (size_t)end, .at = 12};
    return PEN_OK;
}

/* PEN_END behind the last chunk. */
static int next_chunk(Riff *riff, Chunk *ret, PenError *reterr)
{
    if (riff->at == riff->end)
        return PEN_END;
    uint32_t length = 0;
    bool ok = pen__range_ok(riff->at, 8, riff->end);
    if (ok) {
        length = pen__load32(riff->data + riff->at + 4);
        ok = pen__range_ok(riff->at + 8, length, riff->end);
    }
    if (!ok)
        return pen__fail(
            reterr, PEN_E_DECODE, where,
            "webp: chunk at byte %zu: expected its end at byte %zu or before, found it after that",
            riff->at, riff->end);
    *ret =
        (Chunk){.type = riff->data + riff->at, .data = riff->data + riff->at + 8, .bytes = length};
    /* Chunks are padded to even lengths; the last pad byte is sometimes left out. */
    riff->at = PEN_MIN(riff->at + 8 + length + (length & 1), riff->end);
    return PEN_OK;
}

static bool is_type(const Chunk *c, const char *type)
{
    return memcmp(c->type, type, 4) == 0;
}

/* Walks all chunks: pixels must be there, and only one picture of them. */
static int check_chunks(const uint8_t *data, size_t bytes, int *ret_orientation, PenError *reterr)
{
    Riff riff;
    Chunk c = {0};
    bool has_pixels = false, animated = false;
    int r = open_riff(&riff, data, bytes, reterr);
    if (r < 0)
        return r;
    while ((r = next_chunk(&riff, &c, reterr)) == PEN_OK) {
        has_pixels |= is_type(&c, "VP8 ") || is_type(&c, "VP8L");
        animated |= is_type(&c, "ANIM") || is_type(&c, "ANMF") ||
                    (is_type(&c, "VP8X") && c.bytes && c.data[0] & VP8X_ANIMATION);
        if (is_type(&c, "EXIF"))
            *ret_orientation = pen__exif_orientation(c.data, c.bytes);
    }
    if (r < 0)
        return r;
    if (animated)
        return pen__fail(reterr, PEN_E_UNSUPPORTED, where,
                         "webp: expected a still image, found an animation; split it into frames "
                         "first");
    if (!has_pixels)
        return pen__fail(reterr, PEN_E_DECODE, where,
                         "webp: expected a chunk with pixels, found none");
    return PEN_OK;
}

static int fail_webp(VP8StatusCode code, PenError *reterr)
{
    switch (code) {
    case VP8_STATUS_OUT_OF_MEMORY:
    case VP8_STATUS_USER_ABORT: /* no user is there to abort: it did not get its memory */
        return pen__fail_memory(reterr, where, "webp decoder");
    case VP8_STATUS_UNSUPPORTED_FEATURE:
        return pen__fail(reterr, PEN_E_UNSUPPORTED, where, "webp: libwebp: unsupported feature");
    case VP8_STATUS_NOT_ENOUGH_DATA:
    case VP8_STATUS_SUSPENDED:
        return pen__fail(reterr, PEN_E_DECODE, where, "webp: truncated: libwebp: not enough data");
    default:
        return pen__fail(reterr, PEN_E_DECODE, where, "webp: damaged: libwebp: status %d",
                         (int)code);
    }
}

static int probe(const uint8_t *data, size_t bytes, const PenLimits *limits, PenImageInfo *ret,
                 PenError *reterr)
{
    int orientation = 1;
    WebPBitstreamFeatures features;
    int r = check_chunks(data, bytes, &orientation, reterr);
    if (r < 0)
        return r;
    VP8StatusCode code = WebPGetFeatures(data, bytes, &features);
    if (code != VP8_STATUS_OK)
        return fail_webp(code, reterr);
    r = pen__limits_check(limits, (uint64_t)features.width, (uint64_t)features.height, where,
                          reterr);
    if (r < 0)
        return r;
    *ret = (PenImageInfo){
        .width = (uint32_t)features.width,
        .height = (uint32_t)features.height,
        .codec = PEN_STORED_WEBP,
        .channels = features.has_alpha ? 4 : 3,
        .orientation = (uint8_t)orientation,
    };
    return PEN_OK;
}

static int check(const uint8_t *data, size_t bytes, const PenLimits *limits, PenError *reterr)
{
    PenImageInfo info;
    return probe(data, bytes, limits, &info, reterr);
}

static VP8StatusCode decode_once(const uint8_t *data, size_t bytes, PenPixels *pixels)
{
    WebPDecoderConfig config;
    if (!WebPInitDecoderConfig(&config)) /* another libwebp than this was built with */
        return VP8_STATUS_UNSUPPORTED_FEATURE;
    size_t stride = (size_t)pixels->width * pixels->channels;
    config.output.colorspace = pixels->channels == 4 ? MODE_RGBA : MODE_RGB;
    config.output.is_external_memory = 1;
    config.output.u.RGBA.rgba = pixels->data;
    config.output.u.RGBA.stride = (int)stride;
    config.output.u.RGBA.size = stride * pixels->height;
    VP8StatusCode code = WebPDecode(data, bytes, &config);
    WebPFreeDecBuffer(&config.output);
    return code;
}

static int decode_into(const uint8_t *data, size_t bytes, PenPixels *pixels, PenError *reterr)
{
    VP8StatusCode code = decode_once(data, bytes, pixels);
    /* Some allocations that fail inside libwebp look like damage. Damage is there again the next
     * time; want of memory is over by then, or is met at the first allocation and named. */
    if (code == VP8_STATUS_BITSTREAM_ERROR)
        code = decode_once(data, bytes, pixels);
    return code == VP8_STATUS_OK ? PEN_OK : fail_webp(code, reterr);
}

static int decode(const uint8_t *data, size_t bytes, const PenLimits *limits, PenPixels *ret,
                  PenError *reterr)
{
    PenImageInfo info;
    PenPixels pixels;
    int r = probe(data, bytes, limits, &info, reterr);
    if (r < 0)
        return r;
    /* libwebp itself takes up to 4 bytes a pixel beside the output. */
    uint64_t need = (uint64_t)info.width * info.height * (info.channels + 4u);
    if (need > limits->max_memory_bytes)
        return pen__fail(reterr, PEN_E_LIMIT, where,
                         "webp: decoding may use at most %llu bytes of memory, but needs %llu",
                         (unsigned long long)limits->max_memory_bytes, (unsigned long long)need);
    r = pen__pixels_alloc(limits, info.width, info.height, info.channels, where, &pixels, reterr);
    if (r < 0)
        return r;
    r = decode_into(data, bytes, &pixels, reterr);
    if (r < 0)
        pen__pixels_free(&pixels);
    else
        *ret = pixels;
    return r;
}

static int mask(const uint8_t *data, size_t bytes, const PenLimits *limits, PenPixels *ret,
                PenError *reterr)
{
    PenImageInfo info;
    (void)ret;
    int r = probe(data, bytes, limits, &info, reterr);
    if (r < 0)
        return r;
    return pen__fail(reterr, PEN_E_DECODE, where,
                     "mask: expected 1 channel (gray or palette), found a WebP of %u channels; "
                     "store masks as PNG",
                     info.channels);
}

const PenCodecOps pen__webp_ops = {
    .codec = PEN_STORED_WEBP,
    .name = "webp",
    .suffix = ".webp",
    .probe = probe,
    .check = check,
    .decode = decode,
    .mask = mask,
};
