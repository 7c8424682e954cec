/* SPDX-License-Identifier: Apache-2.0 */
/* Huffman tables of JPEG files: codes of at most 16 bits, none of all ones. */
#ifndef PEN_CODEC_JPEG_HUFFMAN_H
#define PEN_CODEC_JPEG_HUFFMAN_H

#include <stdint.h>

typedef struct PenHuffTable {
    uint8_t n_codes[17]; /* of each length, [1] to [16] */
    uint8_t symbols[256];
    uint32_t n_symbols;
} PenHuffTable;

/* A table as in the file: the number of codes of each length, and the symbols by code. */
typedef struct PenHuffSpec {
    const uint8_t *n_codes; /* [1] to [16] */
    const uint8_t *symbols;
} PenHuffSpec;

/* The table that ITU-T T.81 annex K.2 gives for symbols that occur this often; ties are broken as
 * libjpeg does, so that the same image gives the same file. */
void pen__huff_optimal(const uint32_t counts[256], PenHuffTable *ret);

#endif
