/* SPDX-License-Identifier: Apache-2.0 */
/* A PNG or WebP file. What was decoded survives being encoded as PNG. The mutator puts the
 * checksums of PNG chunks right again. */
#include <stdlib.h>
#include <string.h>

#include "base/attr.h"
#include "codec/codec.h"
#include "help.h"

static const PenLimits limits = {
    .max_pixels = 1 << 20, .max_memory_bytes = 64 << 20, .max_scans = 20};

static void encode_again(const PenPixels *pixels)
{
    PenError err;
    PenBuf png = {0};
    PenPixels found = {0};
    MUST(pen__png_encode(pixels, &png, &err));
    uint8_t *exact = copy_of(png.data, png.bytes);
    MUST(pen__image_check(exact, png.bytes, &limits, &err));
    MUST(pen__image_decode(exact, png.bytes, &limits, &found, &err));
    REQUIRE(found.width == pixels->width && found.height == pixels->height);
    REQUIRE(found.channels == pixels->channels);
    REQUIRE(memcmp(found.data, pixels->data, (size_t)found.width * found.height * found.channels) ==
            0);
    pen__pixels_free(&found);
    pen__buf_free(&png);
    free(exact);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    PenError err;
    PenImageInfo info;
    PenPixels pixels = {0};
    if (pen__image_sniff(data, bytes) == PEN_STORED_JPEG)
        return 0;
    uint8_t *exact = copy_of(data, bytes);
    bool probed = GOES(pen__image_probe(exact, bytes, &limits, &info, &err));
    bool whole = GOES(pen__image_check(exact, bytes, &limits, &err));
    REQUIRE(probed || !whole);
    if (GOES(pen__image_decode(exact, bytes, &limits, &pixels, &err))) {
        REQUIRE(whole && info.width == pixels.width && info.height == pixels.height);
        REQUIRE(info.channels == pixels.channels);
        encode_again(&pixels);
        pen__pixels_free(&pixels);
    }
    if (GOES(pen__mask_decode(exact, bytes, &limits, &pixels, &err))) {
        REQUIRE(whole && pixels.channels == 1 && info.width == pixels.width);
        encode_again(&pixels);
        pen__pixels_free(&pixels);
    }
    free(exact);
    return 0;
}

static uint32_t load32be(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static void store32be(uint8_t *p, uint32_t v)
{
    for (int i = 0; i < 4; i++)
        p[i] = (uint8_t)(v >> (24 - 8 * i));
}

static void repair_png(uint8_t *data, size_t bytes)
{
    size_t at = 8;
    while (bytes - at >= 12) {
        size_t n = load32be(data + at);
        if (n > bytes - at - 12)
            return;
        store32be(data + at + 8 + n, crc32_of(data + at + 4, n + 4));
        at += 12 + n;
    }
}

/* Fields of chunks: the length, the type and the first bytes of the body. */
static void mutate_chunk(Dice *dice, uint8_t *data, size_t bytes)
{
    size_t at = 8;
    for (uint32_t skip = roll(dice, 5); skip && bytes - at >= 12; skip--) {
        size_t n = load32be(data + at);
        if (n > bytes - at - 12 || bytes - at - 12 - n < 12)
            break;
        at += 12 + n;
    }
    put_awkward(dice, data + at, PEN_MIN(bytes - at, 24u));
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t bytes, size_t max_bytes, unsigned seed)
{
    Dice dice = {seed};
    if (bytes < 8 || pen__image_sniff(data, bytes) != PEN_STORED_PNG)
        return LLVMFuzzerMutate(data, bytes, max_bytes);
    if (roll(&dice, 2))
        mutate_chunk(&dice, data, bytes);
    else
        bytes = LLVMFuzzerMutate(data, bytes, max_bytes);
    if (bytes >= 8 && roll(&dice, 8))
        repair_png(data, bytes);
    return bytes;
}
