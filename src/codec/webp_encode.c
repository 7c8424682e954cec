/* SPDX-License-Identifier: Apache-2.0 */
/* Lossy WebP through libwebp. */
#include <string.h>

#include <webp/encode.h>

#include "base/bytes.h"
#include "codec/codec_impl.h"

static const char where[] = "codec/webp";

/* Bytes a pixel that libwebp takes at most: its planes, and what it has found out about them. */
enum { BYTES_PER_PIXEL = 5 };

typedef struct Target {
    PenBuf *out;
    bool full; /* there is no memory for more */
} Target;

static int take_bytes(const uint8_t *data, size_t bytes, const WebPPicture *picture)
{
    Target *target = picture->custom_ptr;
    if (pen__buf_add(target->out, data, bytes) < 0)
        target->full = true;
    return !target->full;
}

static int fail_encode(const WebPPicture *picture, const Target *target, PenError *reterr)
{
    switch (picture->error_code) {
    case VP8_ENC_ERROR_OUT_OF_MEMORY:
    case VP8_ENC_ERROR_BITSTREAM_OUT_OF_MEMORY:
        return pen__fail_memory(reterr, where, "webp encoder");
    default:
        if (target->full)
            return pen__fail_memory(reterr, where, "encoded image");
        return pen__fail(reterr, PEN_E_UNSUPPORTED, where, "webp: libwebp: error %d of the encoder",
                         (int)picture->error_code);
    }
}

/* WebP has no gray. */
static int import_gray(WebPPicture *picture, const PenPixels *pixels, PenError *reterr)
{
    size_t n = (size_t)pixels->width * pixels->height;
    uint8_t *rgb = pen__alloc(3 * n);
    if (!rgb)
        return pen__fail_memory(reterr, where, "webp encoder");
    for (size_t i = 0; i < n; i++)
        memset(rgb + 3 * i, pixels->data[i], 3);
    int ok = WebPPictureImportRGB(picture, rgb, 3 * (int)pixels->width);
    pen__free(rgb);
    return ok ? PEN_OK : pen__fail_memory(reterr, where, "webp encoder");
}

static int import(WebPPicture *picture, const PenPixels *pixels, PenError *reterr)
{
    picture->width = (int)pixels->width;
    picture->height = (int)pixels->height;
    if (pixels->channels == 1)
        return import_gray(picture, pixels, reterr);
    return WebPPictureImportRGB(picture, pixels->data, 3 * (int)pixels->width)
               ? PEN_OK
               : pen__fail_memory(reterr, where, "webp encoder");
}

/* The modes of all macroblocks together have at most 512 KiB in a file: a large image with many
 * details gets simpler ones. */
static int encode(WebPConfig *config, WebPPicture *picture, Target *target, PenError *reterr)
{
    static const int limits[] = {0, 70, 100};
    size_t start = target->out->bytes;
    int ok = 0;
    for (size_t i = 0; !ok && i < PEN_LEN(limits); i++) {
        target->out->bytes = start;
        picture->error_code = VP8_ENC_OK;
        config->partition_limit = limits[i];
        ok = WebPEncode(config, picture);
        if (!ok && picture->error_code != VP8_ENC_ERROR_PARTITION0_OVERFLOW)
            break;
    }
    if (ok)
        return PEN_OK;
    target->out->bytes = start;
    return fail_encode(picture, target, reterr);
}

static int check_pixels(const PenPixels *pixels, int quality, const PenLimits *limits,
                        PenError *reterr)
{
    if ((pixels->channels != 1 && pixels->channels != 3) || quality < 1 || quality > 100)
        return pen__fail(reterr, PEN_E_INVALID, where,
                         "encode: expected 1 or 3 channels and quality 1-100, found %u and %d",
                         pixels->channels, quality);
    int r = pen__limits_check(limits, pixels->width, pixels->height, where, reterr);
    if (r < 0)
        return r;
    if (PEN_MAX(pixels->width, pixels->height) > WEBP_MAX_DIMENSION)
        return pen__fail(reterr, PEN_E_LIMIT, where,
                         "webp: a side may have at most %d pixels, but the image has %u x %u; "
                         "choose a smaller --max-side, or --codec jpeg",
                         WEBP_MAX_DIMENSION, pixels->width, pixels->height);
    uint64_t need = (uint64_t)pixels->width * pixels->height * BYTES_PER_PIXEL;
    if (need > limits->max_memory_bytes)
        return pen__fail(reterr, PEN_E_LIMIT, where,
                         "webp: encoding may use at most %llu bytes of memory, but needs %llu",
                         (unsigned long long)limits->max_memory_bytes, (unsigned long long)need);
    return PEN_OK;
}

int pen__webp_encode(const PenPixels *pixels, int quality, const PenLimits *limits, PenBuf *out,
                     PenError *reterr)
{
    WebPConfig config;
    WebPPicture picture;
    Target target = {.out = out};
    int r = check_pixels(pixels, quality, limits, reterr);
    if (r < 0)
        return r;
    if (!WebPConfigPreset(&config, WEBP_PRESET_DEFAULT, (float)quality) ||
        !WebPPictureInit(&picture))
        return pen__fail(reterr, PEN_E_UNSUPPORTED, where,
                         "webp: another libwebp than the one that this was built with");
    picture.writer = take_bytes;
    picture.custom_ptr = &target;
    r = import(&picture, pixels, reterr);
    if (r == PEN_OK)
        r = encode(&config, &picture, &target, reterr);
    WebPPictureFree(&picture);
    return r;
}
