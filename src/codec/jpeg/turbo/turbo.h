/* SPDX-License-Identifier: Apache-2.0 */
/* libjpeg-turbo behind calls that return: its long jumps never leave the body that session.c
 * guards. Data that are lost make a call fail where libjpeg would only warn and make up grey
 * pixels. */
#ifndef PEN_CODEC_JPEG_TURBO_TURBO_H
#define PEN_CODEC_JPEG_TURBO_TURBO_H

#include <stdbool.h>

#include "codec/codec.h"

int pen__turbo_decode(const uint8_t *data, size_t bytes, const PenLimits *limits, PenPixels *ret,
                      PenError *reterr);

/* Appends a baseline JPEG: 1 channel as grey, 3 as 4:2:0, optimal Huffman tables. */
int pen__turbo_encode(const PenPixels *pixels, int quality, const PenLimits *limits, PenBuf *out,
                      PenError *reterr);

/* The loss of a baseline JPEG, in place: 1 channel as grey, 3 as 4:2:0, quality 1-100. */
int pen__turbo_degrade(const PenPixels *image, int quality, const PenLimits *limits, void *scratch,
                       PenError *reterr);
/* Bytes of `scratch`, and what libjpeg allocates beside it at most. */
uint64_t pen__turbo_degrade_bytes(uint32_t width, uint32_t height, uint32_t channels);
uint64_t pen__turbo_degrade_memory(uint32_t width, uint32_t channels);

typedef int16_t PenBlock[64]; /* quantised coefficients, row by row */

enum { PEN_JPEG_GREY, PEN_JPEG_YCC, PEN_JPEG_RGB, PEN_JPEG_CMYK };

typedef struct PenJpegPlane {
    uint8_t id, h_samp, v_samp, quant_slot;
    uint32_t blocks_x, blocks_y; /* that hold pixels; padding to whole MCUs is not counted */
    const uint16_t *quant;       /* 64 values, row by row; NULL when the file gives none */
    PenBlock **rows;
} PenJpegPlane;

/* A frame as libjpeg understood it. */
typedef struct PenJpegFrame {
    uint32_t width, height;
    uint8_t n_planes;
    uint8_t colour; /* PEN_JPEG_*, from the markers and the component ids */
    bool arithmetic;
    bool progressive;
    bool incomplete; /* scans are missing; a decoder shows an approximation of its own making */
    bool has_jfif;
    uint8_t jfif_version[2], density_unit;
    uint16_t density[2];
    PenJpegPlane planes[4];
} PenJpegFrame;

typedef struct PenTurboUser {
    /* All blocks have been read without damage; they are gone when it returns. */
    int (*blocks)(void *ctx, const PenJpegFrame *frame, PenError *reterr);
    void *ctx;
} PenTurboUser;

/* Reads a file for a user of its coefficients; returns what the user's call returned. */
int pen__turbo_read(const uint8_t *data, size_t bytes, const PenLimits *limits,
                    const PenTurboUser *user, PenError *reterr);

#endif
