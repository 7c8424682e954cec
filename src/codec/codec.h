/* SPDX-License-Identifier: Apache-2.0 */
/* Still images: what a file is, whether it is whole, and its pixels.
 * What a file is comes from its bytes. Every input is hostile: sizes are checked against the limits
 * on the header, before anything is allocated for them. All calls are thread-safe. */
#ifndef PEN_CODEC_CODEC_H
#define PEN_CODEC_CODEC_H

#include <stddef.h>
#include <stdint.h>

#include <penstock/pack.h> /* PEN_STORED_*: the numbers of the codecs */

#include "base/error.h"
#include "base/mem.h"

/* Beside the PEN_STORED_* of files: the image is a decoded picture in memory, as
 * PenEncoded.picture describes it. No pack has it. */
enum { PEN_STORED_PICTURE = 255 };

typedef struct PenLimits {
    uint64_t max_pixels;       /* 64 Mi */
    uint64_t max_memory_bytes; /* of one decoder: 512 MiB */
    uint32_t max_scans;        /* of a JPEG: 100 */
} PenLimits;

extern const PenLimits pen__limits_default;

typedef struct PenImageInfo {
    uint32_t width, height;
    uint8_t codec;       /* PEN_STORED_* */
    uint8_t channels;    /* as pen__image_decode gives them: 1, 3 or 4 */
    uint8_t orientation; /* EXIF, 1-8; 1 when there is none */
    uint8_t is_16_bit;   /* a PNG of 16 bits a channel, of which decoding keeps the upper 8 */
} PenImageInfo;

/* Rows of 8-bit samples, interleaved, without gaps. `data` is the caller's to pen__free, and
 * PEN_SLACK readable bytes follow the last row. */
typedef struct PenPixels {
    uint8_t *data;
    uint32_t width, height, channels;
} PenPixels;

void pen__pixels_free(PenPixels *p);

/* PEN_STORED_JPEG, _PNG, _WEBP, or _NONE for anything else, from the first bytes alone. */
int pen__image_sniff(const uint8_t *data, size_t bytes);
const char *pen__codec_name(int codec);   /* "jpeg" */
const char *pen__codec_suffix(int codec); /* ".jpg" */

/* Reads the header only. PEN_E_DECODE when it is not an image that can be read, PEN_E_LIMIT when it
 * is over a limit; messages say what was expected and found, the caller adds the file's name. */
int pen__image_probe(const uint8_t *data, size_t bytes, const PenLimits *limits, PenImageInfo *ret,
                     PenError *reterr);

/* Is it whole as far as can be told without decoding: header, chain of markers or chunks, end? */
int pen__image_check(const uint8_t *data, size_t bytes, const PenLimits *limits, PenError *reterr);

/* Decodes to grey (1), RGB (3) or RGBA (4): grey stays grey, palettes become what they stand for,
 * 16 bits become 8, CMYK becomes RGB (as Pillow does it). The stored orientation is not applied.
 * A truncated or damaged file is PEN_E_DECODE, never grey pixels. */
int pen__image_decode(const uint8_t *data, size_t bytes, const PenLimits *limits, PenPixels *ret,
                      PenError *reterr);

/* The same for an image that is a mask: values as stored, one channel; a palette PNG gives its
 * indices, not its colours. PEN_E_DECODE when it has more than one channel. */
int pen__mask_decode(const uint8_t *data, size_t bytes, const PenLimits *limits, PenPixels *ret,
                     PenError *reterr);

/* Lossless PNG of 1, 3 or 4 channels, appended to `out`. Same pixels, same bytes, always. */
int pen__png_encode(const PenPixels *pixels, PenBuf *out, PenError *reterr);

/* Lossy WebP of quality 1-100, appended to `out`: 3 channels, or 1, which becomes 3. Same pixels,
 * same bytes. PEN_E_LIMIT for a side of more than 16,383 pixels. */
int pen__webp_encode(const PenPixels *pixels, int quality, const PenLimits *limits, PenBuf *out,
                     PenError *reterr);

#endif
