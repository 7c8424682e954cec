/* SPDX-License-Identifier: Apache-2.0 */
/* The picture in a packet, from the first bits of its headers: how many frames a decoder returns
 * for the packet, and whether decoding can start there. */
#ifndef PEN_INGEST_VIDEO_PICTURE_H
#define PEN_INGEST_VIDEO_PICTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct PenPicture {
    uint32_t shown;         /* frames */
    bool is_key;            /* decoding can start here, if the container says so too */
    bool may_have_leading;  /* of a key: pictures follow that need the ones before it */
    uint32_t width, height; /* as coded, with what is cropped; 0: the packet does not say */
} PenPicture;

/* What earlier packets and the codec's configuration say. */
typedef struct PenPictureParser {
    uint8_t codec;          /* PEN_VIDEO_* */
    uint32_t width, height; /* of all pictures; 0: not known yet */
    uint8_t length_bytes;   /* H.264, HEVC: before each NAL unit; 0: start codes */
    struct {                /* H.264: sequence parameter sets */
        bool is_known, has_fields, has_planes;
        uint8_t number_bits;
        uint32_t width, height;
    } sequences[32];
    uint8_t sequence_of[256]; /* H.264: of each picture parameter set */
    bool is_broken;           /* HEVC: the next key picture starts a sequence */
    bool is_skipping;         /* HEVC: the last key picture has started one */
    bool is_started;          /* HEVC: there was a key picture */
    uint8_t time_bits;        /* MPEG-4: of a time; 0: not known */
    bool is_still;            /* AV1: reduced_still_picture_header */
} PenPictureParser;

/* NULL, or what it is that cannot be stored as it is. */
const char *pen__picture_start(PenPictureParser *p, uint8_t codec, const uint8_t *extra,
                               size_t bytes);
const char *pen__picture_parse(PenPictureParser *p, const uint8_t *data, size_t bytes,
                               PenPicture *ret);

/* By codec; `ret` is zero before. */
const char *pen__h264_start(PenPictureParser *p, const uint8_t *extra, size_t bytes);
const char *pen__h264_parse(PenPictureParser *p, const uint8_t *data, size_t bytes,
                            PenPicture *ret);
const char *pen__hevc_start(PenPictureParser *p, const uint8_t *extra, size_t bytes,
                            PenPicture *ret);
const char *pen__hevc_parse(PenPictureParser *p, const uint8_t *data, size_t bytes,
                            PenPicture *ret);
const char *pen__vp9_parse(const uint8_t *data, size_t bytes, PenPicture *ret);
const char *pen__av1_parse(PenPictureParser *p, const uint8_t *data, size_t bytes, PenPicture *ret);
/* Of a packet or the configuration. */
const char *pen__mpeg4_parse(PenPictureParser *p, const uint8_t *data, size_t bytes,
                             PenPicture *ret);

#endif
