/* SPDX-License-Identifier: Apache-2.0 */
/* Where the blocks of a scan begin, found in several places of it at once.
 *
 * What limits the reading of a scan is that a token has to be known before the next one can be
 * looked at. So several lanes read the same scan, the first from its beginning, the others from
 * places further on, as if an MCU began there. That is wrong at first, but Huffman codes
 * synchronize: after some blocks a lane that began in the middle of something is where a lane from
 * the beginning would be. When the lane before it has come so far, both have an MCU that begins at
 * the same bit, and from there on they are the same. A lane that is never met is dropped, and the
 * lane before it reads on: what is found does not depend on the guesses. */
#ifndef PEN_CODEC_JPEG_DECODER_SCAN_IMPL_H
#define PEN_CODEC_JPEG_DECODER_SCAN_IMPL_H

#include "codec/jpeg/decoder/decoder_impl.h"

enum {
    PEN_SCAN_LANES = 4,
    PEN_SCAN_TOKENS = 4, /* of each lane before anything is checked */
    PEN_SCAN_PERIOD = 6, /* blocks, at most, after which the order of tables repeats */
    /* The end of a block before the first, and blocks that begin before a check. */
    PEN_SCAN_SLOTS = 1 + PEN_SCAN_PERIOD + PEN_SCAN_TOKENS,
    PEN_SCAN_LIST = 8192, /* blocks of a lane */
    PEN_SCAN_LIST_SLACK = 2 * PEN_SCAN_SLOTS
};

/* An entry of `fast`: bits of the token; what is or-ed to the place, 127 for DC and for the end of
 * a block; what is added to it. 0: there is no such token, or a lookup does not see all of it. */
enum { PEN_SCAN_LENGTH = 0, PEN_SCAN_TO_END = 8, PEN_SCAN_SKIP = 16 };

/* Tables of AC in which an entry is two tokens where a lookup sees the codes of both. */
typedef struct PenScanPairs {
    uint32_t entries[2][PEN_OWN_ENTRIES]; /* luma, chroma */
    PenHuffTable made_of[2];
    /* What makes a pair of a token: e & keep + add, by the bits that the first token leaves. */
    uint32_t keep[PEN_OWN_ENTRIES], add[PEN_OWN_ENTRIES];
} PenScanPairs;

/* Places are as in PenOwnStep: 128 for each block, of which the first ends before the scan begins.
 * Behind 63 and 127 follows the DC token of the next block; 64 to 126 are runs over the end. */
typedef struct PenScanSteps {
    const uint32_t *table[PEN_SCAN_SLOTS * PEN_OWN_STEP_BLOCK]; /* of the next token */
    uint32_t mcu_blocks, period;                                /* blocks */
    const PenOwnTables *tables;
    const PenScanPairs *pairs;
    const uint8_t *data; /* without stuffed bytes; PEN_OWN_PAD follow */
    uint64_t end;        /* its bits */
} PenScanSteps;

typedef struct PenScanLane {
    uint64_t bit, at; /* of the next token; its place */
    int64_t stop;     /* the bit at which the lane is checked */
    uint32_t *list;   /* block i from here on begins at bit list[i] */
    uint32_t *first, *limit;
    bool is_sure; /* what it has read is the scan; else it may begin again */
    bool is_over; /* no token follows */
} PenScanLane;

/* What is compiled for a tier. */
typedef struct PenScanKernels {
    /* Reads with lanes that are before their ends until one has come to its end. */
    void (*run)(const PenScanSteps *steps, PenScanLane *const *lanes, uint32_t n);
    /* Bytes that are 0xFF. */
    size_t (*count)(const uint8_t *data, size_t bytes);
    const PenOwnEntropy *entropy; /* which unstuffs */
} PenScanKernels;

extern const PenScanKernels pen__scan_c, pen__scan_avx2;

/* A token that a lookup does not have. */
void pen__scan_slowly(const PenScanSteps *steps, PenScanLane *lane);

/* Takes blocks that begin at these bits, which follow those of the call before. */
typedef void PenScanTake(void *ctx, const uint32_t *starts, uint32_t n);

typedef struct PenScanBlocks {
    PenScanPairs pairs;
    PenScanSteps steps;
    PenScanLane lanes[PEN_SCAN_LANES];
    uint32_t lists[PEN_SCAN_LANES][PEN_SCAN_LIST + PEN_SCAN_LIST_SLACK];
    uint64_t bit;   /* read so far: where an MCU begins */
    uint64_t left;  /* blocks */
    uint32_t dense; /* bits of a block, about */
    const PenScanKernels *kernels;
    PenScanTake *take;
    void *ctx;
} PenScanBlocks;

extern const PenOwnLayout pen__scan_layout;

/* Sets the order of tables for the files of a head. */
void pen__scan_steps(PenScanBlocks *scan, const PenOwnTables *tables, const PenOwnHead *head);

/* Reads `left` blocks, all of whole MCUs; `steps` has the data. False if it is not what libjpeg
 * would read without a word. scan->bit is where the last one ends. */
bool pen__scan_blocks(PenScanBlocks *scan, uint64_t n);

#endif
