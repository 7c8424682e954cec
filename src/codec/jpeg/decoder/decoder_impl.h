/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of the own decoder share:
 *
 *     header    which heads are decoded here, and their tables
 *     tables    Huffman tables as lookup tables of entire tokens
 *     streams   entropy decoding of several segments at once, scalar; entropy_* by tier
 *     jobs      which segments are to be decoded, and how far
 *     intervals the same for files with an entry index
 *     blocks    finished segments: DC sums, classes, inverse DCT
 *     rows      finished rows of MCUs: upsampling, colour
 *     setup     memory and geometry of an image; kernels: the tiers
 *     decode    the loop around them
 */
#ifndef PEN_CODEC_JPEG_DECODER_DECODER_IMPL_H
#define PEN_CODEC_JPEG_DECODER_DECODER_IMPL_H

#include "base/attr.h"
#include "codec/jpeg/decoder/decoder.h"
#include "codec/jpeg/entries.h"
#include "codec/jpeg/pixels/pixels.h"

enum {
    PEN_OWN_BITS = 12, /* of the code and the value that one lookup sees */
    PEN_OWN_ENTRIES = 1 << PEN_OWN_BITS,
    PEN_OWN_LANES = 32,     /* segments in flight, at most */
    PEN_OWN_SPARE = 8,      /* more slots for those that wait for the inverse DCT, at most */
    PEN_OWN_MCU_BLOCKS = 6, /* at most */
    PEN_OWN_SLOT_BLOCKS = PEN_OWN_MCU_BLOCKS * PEN_TILE_MCUS, /* of a segment, at most */
    PEN_OWN_PAD = 64, /* bytes behind the copy of a segment that may be read */
    /* 48 blocks of 64 tokens of 16 + 11 bits, all bytes stuffed: what is longer is no baseline
     * segment, or has something else behind it. */
    PEN_OWN_MAX_SEGMENT_BYTES = PEN_OWN_SLOT_BLOCKS * 64 * 27 / 8 * 2
};

/* ---- header ---- */

/* Tables by what they are for. */
enum { PEN_OWN_DC_LUMA, PEN_OWN_AC_LUMA, PEN_OWN_DC_CHROMA, PEN_OWN_AC_CHROMA, PEN_OWN_TABLES };

typedef struct PenOwnHead {
    uint8_t components;    /* 1 or 3 */
    uint8_t h, v;          /* sampling of luma; that of chroma is 1 */
    uint16_t quant[3][64]; /* in natural order */
    PenHuffSpec huff[PEN_OWN_TABLES];
} PenOwnHead;

/* How a component is brought to the size of the image. As in libjpeg, chroma that is smaller in
 * both directions loses less by the inverse DCT instead of being upsampled. */
typedef struct PenOwnScale {
    uint32_t side; /* samples of a block's */
    uint32_t h, v; /* pixels that share a sample of chroma: across, down */
} PenOwnScale;

static inline PenOwnScale pen__own_scale(const PenOwnHead *head, uint32_t i, uint32_t shrink)
{
    bool finer = i && shrink && head->h == 2 && head->v == 2;
    return (PenOwnScale){.side = (8u >> shrink) << finer,
                         .h = i && !finer ? head->h : 1,
                         .v = i && !finer ? head->v : 1};
}

/* Does libjpeg take the three components of a file as YCbCr? */
bool pen__own_is_ycc(const PenJpegHeader *header);

/* PEN_END: left to libjpeg. It never fails. */
int pen__own_head(const PenJpegHeader *header, PenOwnHead *ret);

/* ---- tables ---- */

/* A token is a Huffman code and the bits of a value behind it. What it does: it goes on by `skip`
 * coefficients and stores the value there; or the block ends. Runs over the end of a block do what
 * they do in libjpeg: the value becomes the last coefficient, and the block ends. */

/* Where an entry of `fast` has what; each kernel has its own. */
typedef struct PenOwnLayout {
    uint8_t length, skip, value; /* shifts */
    uint8_t value_bits;          /* 0: entries have no value; `more` has the codes too */
    uint32_t dc;                 /* more in entries of DC tokens */
    uint32_t end_of_block;       /* all but the length of such a token */
    uint32_t unfinished;         /* the entry of what is no whole token: `more` has it */
} PenOwnLayout;

/* Canonical codes, for those longer than a lookup. */
typedef struct PenOwnCodes {
    uint32_t limit[18]; /* first code, as 16 bits, that is longer than i bits */
    int32_t first[18];  /* what to add to a code of i bits to get its symbol's place */
    uint8_t symbols[256];
} PenOwnCodes;

/* An entry of `more`: 0 for a code longer than a lookup, or none at all. */
enum { PEN_OWN_MORE_LENGTH = 0, PEN_OWN_MORE_SIZE = 8, PEN_OWN_MORE_SKIP = 16 };

typedef struct PenOwnTables {
    /* The last stands behind the end of a segment: tokens of no bits, each a DC value of 0. */
    uint32_t fast[(PEN_OWN_TABLES + 1) * PEN_OWN_ENTRIES];
    uint32_t more[PEN_OWN_TABLES * PEN_OWN_ENTRIES]; /* only where `fast` has no value */
    PenOwnCodes codes[PEN_OWN_TABLES];
    PenHuffTable built[PEN_OWN_TABLES]; /* what they were made from */
    const PenOwnLayout *layout;
} PenOwnTables;

/* PEN_END when libjpeg refuses the tables. */
int pen__own_tables(PenOwnTables *t, const PenOwnLayout *layout, const PenOwnHead *head);

/* ---- jobs ---- */

/* What follows a job, and so where its bits have to end. */
typedef enum PenOwnEnd {
    PEN_OWN_END_OPEN,   /* MCUs that are not wanted, or a marker of a tiled file */
    PEN_OWN_END_PADDED, /* a restart marker or the end of the scan: less than 8 bits are left */
    PEN_OWN_END_ENTRY   /* an entry: at its bit, with its predictors */
} PenOwnEnd;

/* A segment of a tiled file, an interval of an entry index, or a part of one between markers. */
typedef struct PenOwnJob {
    const uint8_t *data; /* without the marker at its end */
    uint32_t bytes;
    PenEntry from; /* bit: in the first byte */
    PenOwnEnd end;
    uint32_t spare;               /* bits of the last byte that belong to the entry */
    int16_t dc_end[3];            /* predictors of the entry */
    uint32_t mcu;                 /* its first */
    uint32_t n_mcus;              /* to decode: up to the last one that is wanted */
    uint32_t first_block;         /* a short segment is put at the end of its slot */
    uint32_t first_row, last_row; /* of MCUs that are wanted */
} PenOwnJob;

/* What is wanted: MCUs of some rows and columns, both ends counted. */
typedef struct PenOwnWanted {
    uint32_t left, right, top, bottom;
    /* blocks of each component */
    uint32_t block_left[3], block_right[3], block_top[3], block_bottom[3];
} PenOwnWanted;

typedef struct PenOwnJobs {
    const PenEncoded *image;
    const PenOwnWanted *wanted;
    const PenTileGeometry *g;
    uint32_t mcu_blocks;
    uint32_t segment; /* the next, and where in the data it begins */
    uint64_t at;
    uint32_t mcu; /* with an entry index: the next MCU, which begins at byte `at` of the scan if it
                     follows a restart marker that is no entry */
    bool over;
} PenOwnJobs;

/* `width` and `height` are those of the file. */
void pen__own_want(const PenTileGeometry *g, const PenOwnHead *head, const PenOwnBox *at,
                   uint32_t width, uint32_t height, PenOwnWanted *ret);

/* PEN_OK; PEN_OWN_NO_JOB behind the last; PEN_END for libjpeg. */
enum { PEN_OWN_NO_JOB = PEN_END + 1 };
int pen__own_next_job(PenOwnJobs *jobs, PenOwnJob *ret);
int pen__own_next_interval(PenOwnJobs *jobs, PenOwnJob *ret);

/* The first MCU from `mcu` on that is wanted; the bottom row is the caller's to look at. */
uint32_t pen__own_first_wanted(const PenOwnJobs *jobs, uint32_t mcu);
/* The last one up to `mcu`; there is one in the segment. */
uint32_t pen__own_last_wanted(const PenOwnJobs *jobs, uint32_t mcu);

/* ---- entropy decoding ---- */

/* A segment in flight, scalar. The bits to come stand at the top of `bits`, and below them a one
 * that tells how many have been used since `next`. */
typedef struct PenOwnStream {
    uint64_t bits;
    const uint8_t *next, *limit; /* beyond the limit only the pad is read, and it is given up */
    uint64_t at, end;            /* place of the last coefficient; where to stop */
    int16_t *out;
    const uint8_t *data;
    uint32_t bad;
} PenOwnStream;

/* Places of the largest slot, 128 for each block: k for coefficient k, up to 78 for runs over the
 * end, 127 for the end. There is one block before the first, for its end, and behind the last come
 * some for tokens that are decoded before the end is noticed. Smaller slots are its end: blocks of
 * all kinds of MCUs divide its number of blocks. */
enum { PEN_OWN_STEP_BLOCK = 128, PEN_OWN_STEP_GUARDS = 4 };

typedef struct PenOwnStep {
    uint16_t place; /* in the slot, where the coefficient is stored */
    uint16_t table; /* of the next token: where it begins in `fast` */
} PenOwnStep;

/* Segments in flight, one in each lane of vectors. */
typedef struct PenOwnLanes {
    int32_t bit[PEN_OWN_LANES], limit[PEN_OWN_LANES]; /* in the copies; where it ends */
    int32_t k[PEN_OWN_LANES];                         /* last coefficient of the block */
    int32_t block[PEN_OWN_LANES], end[PEN_OWN_LANES]; /* its first coefficient in all slots */
    int32_t state[PEN_OWN_LANES];
    uint32_t bad; /* a bit for each */
} PenOwnLanes;

typedef struct PenOwnEntropy {
    const char *tier;
    uint32_t lanes, spare; /* segments in flight, and others that may wait for the inverse DCT */
    int32_t order;         /* of the coefficients; < 0: any */
    bool has_steps;        /* PenOwn.steps are made for it */
    const PenOwnLayout *layout;
    /* Copies a segment without stuffed bytes; false when there is a marker in it. `to` has room for
     * `bytes` and PEN_OWN_PAD; *ret_bytes are written, and then a pad. */
    bool (*unstuff)(const uint8_t *data, size_t bytes, uint8_t *to, size_t *ret_bytes);
    void (*start)(PenOwn *own, uint32_t lane, const PenOwnJob *job, uint32_t slot, size_t bytes);
    /* Decodes until one of the lanes in `active` has ended; returns those that have. */
    uint32_t (*run)(PenOwn *own, uint32_t active);
    /* Did all go well? Behind the end nothing is left in the slot. */
    bool (*good)(const PenOwn *own, uint32_t lane);
    /* Bits from the first byte of the copy on; exact where the job ends with the slot. */
    uint64_t (*used)(const PenOwn *own, uint32_t lane);
} PenOwnEntropy;

extern const PenOwnEntropy pen__own_entropy_c, pen__own_entropy_avx2, pen__own_entropy_avx512;

/* Value of the highest `size` bits as JPEG has it: the lower half is negative. */
static inline int32_t pen__own_value(uint64_t bits, uint32_t size)
{
    uint32_t v = (uint32_t)(bits >> 1 >> (63 - size));
    return (int32_t)v + (bits >> 63 ? 0 : 1 - (int32_t)(1u << size));
}

/* A token whose code is longer than a lookup, from 64 bits. */
typedef struct PenOwnToken {
    uint32_t length; /* of the code; 0: no such code */
    uint32_t size;   /* of the value */
    uint32_t skip;   /* 0: the end of the block */
} PenOwnToken;

void pen__own_long_token(const PenOwnTables *t, uint32_t table, uint64_t bits, PenOwnToken *ret);

/* ---- all of it ---- */

typedef struct PenOwnPlane {
    uint8_t *data; /* of the leftmost wanted block in the first row of the ring */
    size_t stride;
    uint32_t side;          /* samples of a block's */
    uint32_t h, v;          /* blocks of an MCU */
    uint32_t first_block;   /* of the component in an MCU */
    uint32_t ring_bytes;    /* of a row of MCUs */
    uint32_t columns, rows; /* of samples, in the image */
    PenJpegBlock *list[PEN_JPEG_CLASSES];
    uint32_t n[PEN_JPEG_CLASSES];
} PenOwnPlane;

/* Slots have one block more, for what is stored behind the end. */
enum { PEN_OWN_GUARD_BLOCKS = 1 };

struct PenOwn {
    /* kept */
    PenOwnTables *tables;
    const PenOwnEntropy *entropy; /* NULL: libjpeg does it all */
    const PenJpegPixels *pixels;
    struct PenOwnStep *steps[PEN_OWN_MCU_BLOCKS + 1]; /* by blocks of an MCU */
    bool clean;                                       /* all coefficients are zero */
    PenBuf coefs_buf, lists_buf, copies_buf, planes_buf, rows_buf;
    PenOwnHead head; /* the last image's */

    /* of an image */
    PenOwnRequest request;
    PenTileGeometry g;
    PenOwnWanted wanted;
    PenOwnJobs jobs;
    uint32_t unit; /* MCUs of a segment or interval */
    uint32_t mcu_blocks, slot_blocks;
    int32_t order;
    PenOwnPlane planes[3];
    PenOwnScale scale; /* of chroma */
    int32_t sampling;  /* PEN_JPEG_444 ... */
    int16_t *coefs;
    uint8_t *copies;
    size_t copy_bytes; /* from one copy to the next */
    uint32_t ring_rows;
    uint32_t row, given; /* of MCUs: the next to give out; of pixels: given */
    uint8_t *rows;

    /* lanes and slots */
    PenOwnJob lane_jobs[PEN_OWN_LANES];
    uint32_t lane_slots[PEN_OWN_LANES];
    size_t lane_bytes[PEN_OWN_LANES]; /* of the copies */
    uint32_t free_slots[PEN_OWN_LANES + PEN_OWN_SPARE], used_slots[PEN_OWN_LANES + PEN_OWN_SPARE];
    uint32_t n_free, n_used;
    PenOwnStream streams[8];
    PenOwnLanes lanes;
};

/* ---- setup ---- */

/* Makes everything ready for an image; PEN_END for libjpeg. */
int pen__own_begin(PenOwn *own, const PenOwnRequest *request, PenError *reterr);
void pen__own_end(PenOwn *own); /* releases large buffers */

/* ---- blocks ---- */

/* A segment is decoded: its blocks are put on the lists. `ret_dc` are the predictors behind it. */
void pen__own_add(PenOwn *own, const PenOwnJob *job, uint32_t slot, int32_t ret_dc[3]);
/* Blocks on the lists become samples. */
void pen__own_flush(PenOwn *own);

/* ---- rows ---- */

/* Delivers the rows of MCUs before `end`, which are complete. */
int pen__own_give(PenOwn *own, uint32_t end, PenError *reterr);

#endif
