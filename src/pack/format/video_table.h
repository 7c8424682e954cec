/* SPDX-License-Identifier: Apache-2.0 */
/* A video that is stored as its file: what is known of its video stream, and its packets. ingest
 * fills these in (ffprobe lists packets); see "video table" in docs/explanation/format.md. */
#ifndef PEN_PACK_FORMAT_VIDEO_TABLE_H
#define PEN_PACK_FORMAT_VIDEO_TABLE_H

#include <stdbool.h>
#include <stdint.h>

enum { /* codecs, as stored in a video table */
       PEN_CODED_H264 = 1,
       PEN_CODED_HEVC = 2,
       PEN_CODED_VP9 = 3,
       PEN_CODED_AV1 = 4,
       PEN_CODED_MPEG4 = 5, /* part 2 */
       PEN_CODED_MJPEG = 6,
       PEN_CODED_VP8 = 7,
       PEN_CODED_LAST = PEN_CODED_VP8
};

enum {                         /* containers, as stored in a video table */
       PEN_CONTAINER_PART = 0, /* the payload is a part of a file, and no file itself */
       PEN_CONTAINER_MP4 = 1,
       PEN_CONTAINER_MOV = 2,
       PEN_CONTAINER_MATROSKA = 3,
       PEN_CONTAINER_WEBM = 4,
       PEN_CONTAINER_LAST = PEN_CONTAINER_WEBM
};

#define PEN_MAX_VIDEO_BYTES (UINT64_C(1) << 40) /* of a payload */
#define PEN_MAX_VIDEO_PACKETS (1u << 24)
#define PEN_MAX_VIDEO_TABLE (UINT64_C(1) << 27) /* bytes */
#define PEN_MAX_VIDEO_EXTRA (1u << 20)          /* bytes of the codec's configuration */
#define PEN_MAX_PACKET_BYTES 0x7FFFFFFFu
#define PEN_MAX_VIDEO_SIDE 16384u

/* The video stream of a file. */
typedef struct PenVideoStream {
    uint32_t width, height; /* of decoded pictures, before the orientation is applied */
    uint8_t codec;          /* PEN_CODED_* */
    uint8_t container;      /* PEN_CONTAINER_* */
    uint8_t orientation;    /* as EXIF, 1 to 8 */
    uint8_t range;          /* 0 not known, 1 limited, 2 full */
    uint8_t matrix;         /* H.273 MatrixCoefficients; 2 not known */
    uint8_t depth;          /* bits per component: 8, 10, 12 */
    uint32_t tick_num;      /* one tick of packet times is tick_num / tick_den seconds: the time */
    uint32_t tick_den;      /* base of the stream. Need not be in lowest terms. */
    const uint8_t *extra;   /* the codec's configuration ("extradata"); not owned */
    uint32_t extra_bytes;
} PenVideoStream;

/* Packets are listed in decode order. */
typedef struct PenVideoPacket {
    uint64_t offset; /* in the payload */
    int64_t time;    /* when its frame is shown, in ticks */
    uint32_t bytes;  /* 1 to PEN_MAX_PACKET_BYTES */
    bool is_key;
    bool is_hidden; /* decoded, but its frame is not one of the video's */
} PenVideoPacket;

#endif
