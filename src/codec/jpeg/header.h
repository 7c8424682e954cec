/* SPDX-License-Identifier: Apache-2.0 */
/* The header of a JPEG file: everything before the entropy-coded data of its first scan. It is
 * parsed once; whoever decodes the file gets the result. */
#ifndef PEN_CODEC_JPEG_HEADER_H
#define PEN_CODEC_JPEG_HEADER_H

#include <stdbool.h>

#include "codec/codec.h"
#include "codec/jpeg/huffman.h"

enum { PEN_ADOBE_NONE = 0xFF };

/* The numbers alone. */
typedef struct PenJpegInfo {
    uint32_t width, height;
    uint8_t components; /* 1, 3 or 4 */
    uint8_t precision;  /* 8 or 12 */
    uint8_t sof;        /* the SOF marker's low byte: 0xC0, 0xC1, 0xC2, 0xC9, ... */
    uint8_t h_samp[4], v_samp[4];
    uint8_t scan_components;   /* of the first scan */
    uint8_t orientation;       /* 1-8 */
    uint8_t adobe_transform;   /* 0, 1, 2; PEN_ADOBE_NONE = no Adobe marker */
    uint32_t restart_interval; /* in MCUs, 0 = none; of the first scan */
    size_t lead_bytes;         /* up to the first marker that is not SOI, APPn or COM */
    size_t head_bytes;         /* up to and with the first SOS header */
} PenJpegInfo;

/* A quantisation table as in the file, in zigzag order. */
typedef struct PenQuantSpec {
    const uint8_t *values; /* NULL = the file has no such table */
    bool wide;             /* 16 bits a value, high byte first */
} PenQuantSpec;

/* Pointers are into the file. */
typedef struct PenJpegHeader {
    PenJpegInfo info;
    size_t frame_offset; /* of the SOF marker */
    const uint8_t *scan; /* what follows the length of the SOS marker */
    uint32_t scan_bytes;
    uint8_t ids[4], quant_slot[4]; /* of the components */
    PenQuantSpec quant[4];
    PenHuffSpec dc[2], ac[2]; /* NULL members where the file has none */
    bool has_jfif;
    /* Something that libjpeg alone interprets: an APP14 that is not Adobe's for YCbCr or RGB,
     * tables of 16 bits, Huffman tables that are damaged or have other numbers than 0 and 1, a
     * marker beyond APPn, COM, SOF0, SOF1, DQT, DHT and DRI, or bytes between markers. */
    bool is_unusual;
} PenJpegHeader;

int pen__jpeg_header(const uint8_t *data, size_t bytes, const PenLimits *limits, PenJpegHeader *ret,
                     PenError *reterr);

/* For those who need the numbers alone. */
int pen__jpeg_info(const uint8_t *data, size_t bytes, const PenLimits *limits, PenJpegInfo *ret,
                   PenError *reterr);

/* Walks every marker and scan to EOI without decoding. */
int pen__jpeg_check(const uint8_t *data, size_t bytes, const PenLimits *limits, PenError *reterr);

#endif
