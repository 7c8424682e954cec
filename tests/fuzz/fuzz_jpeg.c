/* SPDX-License-Identifier: Apache-2.0 */
/* A JPEG file: header, marker chain, metadata, segments of tiles. What can be transcoded to
 * baseline has to keep its pixels. */
#include <stdlib.h>
#include <string.h>

#include "codec/exif.h"
#include "codec/jpeg/markers.h"
#include "codec/jpeg/metadata.h"
#include "codec/jpeg/quality.h"
#include "codec/jpeg/tiled.h"
#include "codec/jpeg/transcode/baseline.h"
#include "help.h"

static const PenLimits limits = {
    .max_pixels = 1 << 20, .max_memory_bytes = 64 << 20, .max_scans = 20};

static bool same_pixels(const PenPixels *a, const PenPixels *b)
{
    return a->width == b->width && a->height == b->height && a->channels == b->channels &&
           memcmp(a->data, b->data, (size_t)a->width * a->height * a->channels) == 0;
}

/* Baseline has no larger numbers than these. */
static void require_baseline(const PenBuf *jpeg)
{
    enum { DC_BITS = 11, AC_BITS = 10 };
    PenError err;
    PenJpegInfo info;
    PenJpegWalk walk;
    PenJpegMarker m;
    MUST(pen__jpeg_info(jpeg->data, jpeg->bytes, &limits, &info, &err));
    MUST(pen__jpeg_walk_start(&walk, jpeg->data, info.head_bytes, &err));
    do {
        MUST(pen__jpeg_walk_next(&walk, &m, &err));
        const uint8_t *p = m.body, *end = p + m.body_bytes;
        while (m.code == PEN_MARKER_DHT && p < end) {
            uint32_t n = 0;
            bool is_ac = *p >> 4;
            for (int i = 1; i <= 16; i++)
                n += p[i];
            for (p += 17; n; n--, p++)
                REQUIRE(is_ac ? (*p & 15) <= AC_BITS : *p <= DC_BITS);
        }
    } while (m.code != PEN_MARKER_SOS);
    REQUIRE(info.sof == PEN_MARKER_SOF0 && info.precision == 8 && !info.restart_interval);
}

/* The metadata set aside and put back again. */
static void require_whole(const uint8_t *data, size_t bytes, const PenBuf *jpeg,
                          const PenPixels *pixels)
{
    PenError err;
    PenBuf meta = {0}, whole = {0}, again = {0};
    PenPixels found = {0};
    MUST(pen__jpeg_metadata(data, bytes, &meta, &err));
    MUST(pen__jpeg_with_metadata(jpeg->data, jpeg->bytes, meta.data, meta.bytes, &whole, &err));
    MUST(pen__jpeg_check(whole.data, whole.bytes, &limits, &err));
    MUST(pen__jpeg_metadata(whole.data, whole.bytes, &again, &err));
    REQUIRE(again.bytes == meta.bytes &&
            (!meta.bytes || memcmp(again.data, meta.data, meta.bytes) == 0));
    MUST(pen__image_decode(whole.data, whole.bytes, &limits, &found, &err));
    REQUIRE(same_pixels(&found, pixels));
    pen__pixels_free(&found);
    pen__buf_free(&meta);
    pen__buf_free(&whole);
    pen__buf_free(&again);
}

/* A baseline file with the same pixels, and again the same one if it is made of that. */
static void try_baseline(const uint8_t *data, size_t bytes)
{
    PenError err;
    PenBuf b = {0}, again = {0};
    PenPixels source = {0}, made = {0};
    const char *why = NULL;
    int r = CALL(pen__jpeg_baseline(data, bytes, &limits, &b, &why, &err));
    /* What does not begin like a JPEG is not decoded, though a JPEG may follow. */
    if (r == PEN_OK && pen__image_sniff(data, bytes) == PEN_STORED_JPEG) {
        uint8_t *exact = copy_of(b.data, b.bytes);
        MUST(pen__image_decode(data, bytes, &limits, &source, &err));
        MUST(pen__image_decode(exact, b.bytes, &limits, &made, &err));
        MUST(pen__jpeg_check(exact, b.bytes, &limits, &err));
        REQUIRE(same_pixels(&source, &made));
        require_baseline(&b);
        require_whole(data, bytes, &b, &source);
        MUST(pen__jpeg_baseline(exact, b.bytes, &limits, &again, &why, &err));
        REQUIRE(again.bytes == b.bytes && memcmp(again.data, b.data, b.bytes) == 0);
        free(exact);
    } else if (r > 0) {
        REQUIRE(r == PEN_END && why && *why);
    }
    pen__pixels_free(&source);
    pen__pixels_free(&made);
    pen__buf_free(&b);
    pen__buf_free(&again);
}

static void try_decode(const uint8_t *data, size_t bytes)
{
    PenError err;
    PenImageInfo info;
    PenPixels pixels = {0};
    bool probed = GOES(pen__image_probe(data, bytes, &limits, &info, &err));
    if (!GOES(pen__image_decode(data, bytes, &limits, &pixels, &err)))
        return;
    REQUIRE(probed && info.width == pixels.width && info.height == pixels.height);
    REQUIRE(info.channels == pixels.channels && info.orientation >= 1 && info.orientation <= 8);
    pen__pixels_free(&pixels);
    if (GOES(pen__mask_decode(data, bytes, &limits, &pixels, &err)))
        REQUIRE(pixels.channels == 1);
    pen__pixels_free(&pixels);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    PenError err;
    PenJpegHeader header;
    PenBuf meta = {0};
    uint32_t head, n, *lengths = NULL;
    uint8_t *exact = copy_of(data, bytes);
    bool known = GOES(pen__jpeg_header(exact, bytes, &limits, &header, &err));
    if (known)
        REQUIRE(header.info.head_bytes <= bytes && pen__jpeg_quality(&header) <= 100);
    if (GOES(pen__jpeg_check(exact, bytes, &limits, &err)))
        REQUIRE(known);
    if (GOES(pen__jpeg_segments(exact, bytes, &limits, &head, &lengths, &n, &err)))
        REQUIRE(known && n && head == header.info.head_bytes);
    pen__free(lengths);
    (void)CALL(pen__jpeg_metadata(exact, bytes, &meta, &err));
    pen__buf_free(&meta);
    REQUIRE(pen__exif_orientation(exact, bytes) >= 1 && pen__exif_orientation(exact, bytes) <= 8);
    try_decode(exact, bytes);
    try_baseline(exact, bytes);
    free(exact);
    return 0;
}
