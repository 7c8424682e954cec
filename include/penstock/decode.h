/* SPDX-License-Identifier: Apache-2.0 */
/** @file
 * Decodes JPEG, PNG and WebP files in memory. No pack is needed.
 *
 * The pixels equal those that a loader delivers: JPEGs as libjpeg-turbo decodes them, upright (the
 * EXIF orientation is applied), one byte per channel. A PNG with 16 bits per channel keeps the
 * upper 8. Any thread may call the functions here, also after fork().
 *
 * With a box, a JPEG is decoded only as far as the box needs it. Damage in other parts of the file
 * is then not noticed. */
#ifndef PENSTOCK_DECODE_H
#define PENSTOCK_DECODE_H

#include <stddef.h>
#include <stdint.h>

#include <penstock/error.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A rectangle of pixels. */
typedef struct PenBox {
    uint32_t x, y; /**< left column, top row */
    uint32_t w, h;
} PenBox;

/** Filters for resizing. All but nearest are antialiased. */
enum {
    PEN_FILTER_BILINEAR = 0,
    PEN_FILTER_NEAREST = 1,
    PEN_FILTER_BICUBIC = 2,
    PEN_FILTER_LANCZOS = 3,
    PEN_FILTER_BOX = 4
};

enum {
    PEN_DECODE_RGB = 0,  /**< 3 bytes per pixel; gray is repeated, transparency is dropped */
    PEN_DECODE_GRAY = 1, /**< 1 byte per pixel; colors are weighted as in Pillow's "L" */
    /** 1 byte per pixel, the values of a file with one channel as stored: a palette gives its
     * indices. Masks are always resized with PEN_FILTER_NEAREST. */
    PEN_DECODE_MASK = 2
};

enum { PEN_DECODE_SIDE = 16384 }; /**< largest width and height to resize to */

typedef struct PenDecodeSettings {
    int32_t mode;           /**< PEN_DECODE_*; default PEN_DECODE_RGB */
    int32_t filter;         /**< PEN_FILTER_*; default PEN_FILTER_BILINEAR */
    uint32_t width, height; /**< of the result; both 0 = the size of the box, the default */
    int32_t threads;        /**< of pen_decode_batch; 0 = the cores this process may use */
    /** Called by pen_decode_batch every now and then from the calling thread; a return value other
     * than 0 stops it with PEN_E_CANCELLED. May be NULL. */
    int (*progress)(void *ctx, uint64_t done_images, uint64_t total_images);
    void *ctx;
} PenDecodeSettings;

/** A file to decode, and memory for its pixels: row after row, without gaps. Initialize it with
 * zeros. */
typedef struct PenDecodeItem {
    const void *data; /**< the file; it must not change during the call */
    size_t bytes;
    PenBox box;       /**< the part to decode, in upright pixels; all 0 = the entire image */
    void *pixels;     /**< receives the pixels; after a failure its content is unspecified */
    size_t cap;       /**< bytes at `pixels` */
    PenError *error;  /**< of pen_decode_batch: receives the error of this image alone, or NULL */
    int32_t status;   /**< set by pen_decode_batch: PEN_OK, or why the image was not decoded */
    uint32_t size[2]; /**< set by the library: height and width of the result */
} PenDecodeItem;

PEN_API void pen_decode_settings_init(PenDecodeSettings *settings);

/** Decodes a file. With `pixels` NULL the call only reads the header and sets `size`. Fails with
 * PEN_E_DECODE if the file is damaged or is not an image, with PEN_E_UNSUPPORTED if it is of a kind
 * that penstock does not decode, with PEN_E_INVALID if the box is not inside the image, and with
 * PEN_E_LIMIT if `cap` is too small, the image has more than 64 Mi pixels, or decoding it would
 * take more than 1 GiB. `settings` may be NULL. */
PEN_NODISCARD PEN_API int pen_decode(PenDecodeItem *item, const PenDecodeSettings *settings,
                                     PenError *reterr);

/** Decodes n files in parallel. The order in which they are decoded is not specified. A file that
 * cannot be decoded does not stop the others: the call decodes all others, and returns the status
 * of the first bad one, whose number is in the message and in reterr->sample. Invalid settings fail
 * before anything is decoded; the items are unchanged then. After a call that was cancelled or
 * could not start its threads, the status of an image that was not decoded is PEN_E_CANCELLED. */
PEN_NODISCARD PEN_API int pen_decode_batch(PenDecodeItem *items, size_t n,
                                           const PenDecodeSettings *settings, PenError *reterr);

#ifdef __cplusplus
}
#endif
#endif
