/* SPDX-License-Identifier: Apache-2.0 */
/* What is done to an input before it is stored: checked, indexed, encoded, resized, as the mode
 * says. */
#ifndef PEN_INGEST_PREPARE_PREPARE_H
#define PEN_INGEST_PREPARE_PREPARE_H

#include <penstock/ingest.h>

#include "codec/codec.h"
#include "codec/jpeg/decoder/scan.h"
#include "codec/jpeg/transcode/baseline.h"
#include "ingest/video/lists.h"
#include "net/remote/remote.h"
#include "pack/format/stored.h"

typedef struct PenPrepareSettings {
    int mode; /* a PenMode */
    int quality;
    uint32_t max_side, short_side;
    double raw_share;
    int codec;                /* a PenEncoding */
    uint64_t smart_threshold; /* smart: bytes of the largest image that is stored raw */
    int check_decode;
    int index;                     /* JPEGs that are kept or encoded get an entry index */
    int progressive;               /* a PenProgressive */
    int sixteen_bit;               /* a PenSixteenBit */
    int in_place;                  /* images stay in their files */
    int keep_videos;               /* videos are stored as they are, */
    PenVideoLists *lists;          /* and their packets are listed here; */
    struct PenVideoCopies *copies; /* in place: of those that are objects */
    PenVideoSettings video;        /* of clips; its rate also applies to folders of frames */
    PenLimits limits;
    /* Working memory of a thread, made when it is needed; NULL: each image has its own. */
    PenEntryScan **scan;
} PenPrepareSettings;

/* PEN_E_INVALID when a value is out of range or two settings exclude each other. */
int pen__prepare_settings_check(const PenPrepareSettings *settings, PenError *reterr);

/* An image ready to be stored, and what it points to. Zero-initialised is empty. */
typedef struct PenPreparedImage {
    PenStoredImage image;
    PenBuf source;    /* the input's bytes */
    PenBuf encoded;   /* a file that is not the source */
    PenBuf index;     /* entries of the JPEG, coded */
    PenPixels pixels; /* raw */
    PenBuf meta;
    PenBuf origin;        /* the path of the file that has it, in an in-place pack */
    PenObject object;     /* that it was read from, if it is remote */
    bool is_known;        /* `image` and `index` are from a summary; the file is not at hand */
    const char *no_index; /* why a JPEG has no entry index; NULL: it has, or need not */
} PenPreparedImage;

/* Prepares the image whose bytes are in p->source (with PEN_SLACK readable bytes behind). `mask`:
 * see PEN_FIELD_MASK. The key decides on raw or not in a mixed pack. PEN_E_DECODE, PEN_E_LIMIT and
 * PEN_E_UNSUPPORTED say that the input is bad. */
int pen__prepare_image(const PenPrepareSettings *settings, const uint8_t *key, size_t key_bytes,
                       int mask, PenPreparedImage *p, PenError *reterr);
/* The same for pixels, RGB, which stay the caller's: raw, or encoded. */
int pen__prepare_pixels(const PenPrepareSettings *settings, const uint8_t *key, size_t key_bytes,
                        const PenPixels *pixels, PenPreparedImage *p, PenError *reterr);
void pen__prepared_image_free(PenPreparedImage *p);

/* Not there (a line of a list that names no file), or not to be decoded; not a failed read. */
static inline int pen__status_is_bad_input(int status)
{
    return status == PEN_E_DECODE || status == PEN_E_LIMIT || status == PEN_E_UNSUPPORTED ||
           status == PEN_E_NOT_FOUND;
}

#endif
