/* SPDX-License-Identifier: Apache-2.0 */
/* A video that is stored as its file: what is known of its video stream, and its packets. ingest
 * fills these in (ffprobe lists packets); see "video table" in docs/explanation/format.md. */
#ifndef PEN_PACK_FORMAT_VIDEO_TABLE_H
#define PEN_PACK_FORMAT_VIDEO_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include <penstock/video.h>

#include "base/error.h"
#include "base/mem.h"
#include "pack/format/place.h"

/* A table has the codec as PEN_VIDEO_* of <penstock/video.h>. */
enum { PEN_VIDEO_LAST_CODEC = PEN_VIDEO_VP8 };

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
#define PEN_MAX_VIDEO_TICKS (INT64_C(1) << 61) /* of a time before or after the first frame */
#define PEN_VIDEO_RUN_BYTES 65536u             /* of the payload, under one checksum */

enum {
    PEN_VIDEO_TABLE_VERSION = 1,
    PEN_VIDEO_HEADER_BYTES = 48,
    PEN_VIDEO_GROUP_BYTES = 32,
    PEN_VIDEO_GROUP_PACKETS = 32, /* at least, but in the last one */
    PEN_PACKET_KEY = 1,           /* flags of a coded packet */
    PEN_PACKET_HIDDEN = 2,
    PEN_PACKET_GAP = 4
};

/* The video stream of a file. */
typedef struct PenVideoStream {
    uint32_t width, height; /* of decoded pictures, before the orientation is applied */
    uint8_t codec;          /* PEN_VIDEO_* */
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

/* ---- writing --------------------------------------------------------------------------------- */

/* Appends the table of a video, with zeros for the checksums of its runs: those depend on its place
 * in the pack. Frames that are shown before the first key packet become hidden, and key packets at
 * which decoding cannot start become ordinary ones. *ret_frames is the number of its frames.
 * PEN_E_DECODE or PEN_E_LIMIT: there can be no table of this video. */
int pen__video_table_write(const PenVideoStream *stream, const PenVideoPacket *packets, uint32_t n,
                           uint64_t payload_bytes, PenBuf *out, uint32_t *ret_frames,
                           PenError *reterr);
uint32_t pen__video_runs(uint64_t payload_bytes);
/* Appends the CRC-32C of each run, u32 each. */
int pen__video_run_crcs(const uint8_t *data, uint64_t bytes, PenBuf *out);
/* Fills in the checksums of a table; `place` is that of the clip. `crcs` as above; NULL: they are
 * computed from `data`. */
void pen__video_table_seal(uint8_t *table, const uint8_t *crcs, const uint8_t *data, uint64_t bytes,
                           PenPlace place);

/* ---- reading --------------------------------------------------------------------------------- */

/* A table as it lies in a block's index. */
typedef struct PenVideoTable {
    PenVideoStream stream; /* `extra` points into the index */
    int64_t first_ns;      /* time of the first frame in the file */
    uint64_t payload_bytes;
    uint32_t n_frames, n_packets, n_groups, n_runs;
    const uint8_t *sums, *groups, *coded;
    size_t coded_bytes;
} PenVideoTable;

/* Parses the header of a table that pen__video_table_read has accepted before. */
PenVideoTable pen__video_table_open(const uint8_t *data, uint64_t bytes, uint64_t payload_bytes,
                                    uint32_t n_frames);
/* Parses the table, which takes all of `bytes`, and checks all of it but the packets. Returns NULL,
 * or what is wrong with it. */
const char *pen__video_table_read(PenVideoTable *ret, const uint8_t *data, uint64_t bytes,
                                  uint64_t payload_bytes, uint32_t n_frames);
/* Checks every packet, and that this is the one form of the table. PEN_E_CORRUPT: it is not. */
int pen__video_table_check(const PenVideoTable *t, PenError *reterr);

/* Packets from a key packet on, and where they are: what a reader finds without the packets before
 * them. */
typedef struct PenVideoGroup {
    uint32_t packet; /* its first one */
    uint32_t code;   /* of that in the coded packets */
    uint64_t offset; /* of that in the payload */
    int64_t time;    /* of that */
    uint32_t frames; /* of the video, that are shown before that */
} PenVideoGroup;
PenVideoGroup pen__video_group(const PenVideoTable *t, uint32_t group);

/* One run of the payload. */
typedef struct PenVideoRun {
    uint64_t offset;
    uint32_t bytes;
    uint32_t sum;
} PenVideoRun;
PenVideoRun pen__video_table_run(const PenVideoTable *t, uint32_t run);

/* What a video adds to the bytes of source: many parts may be of one file. */
uint64_t pen__video_source(const PenVideoTable *t, uint64_t source_bytes);

/* Width and height as shown. */
void pen__video_shown_size(const PenVideoTable *t, uint32_t ret[2]);

/* ---- packets and frames ----
 *
 * Times of packets count from the first frame, in ticks of the table's stream. All of these return
 * PEN_E_CORRUPT if the packets they need are not valid. */

/* A place in the list of packets. */
typedef struct PenVideoCursor {
    const PenVideoTable *table;
    uint32_t packet;     /* number of the next one */
    uint32_t next_group; /* begins with the packet `group_end` */
    uint32_t group_end;
    size_t at;       /* in the coded packets */
    uint64_t offset; /* of the end of the packet before */
    int64_t time;    /* of the packet before */
} PenVideoCursor;

/* The next packet is the first one of a group. */
PenVideoCursor pen__video_seek(const PenVideoTable *t, uint32_t group);
/* The next packet; only while there is one. NULL, or what is wrong with it. */
const char *pen__video_next(PenVideoCursor *c, PenVideoPacket *ret);

/* A frame that is wanted. */
typedef struct PenVideoFrame {
    uint32_t packet;
    uint32_t frame;
    int64_t time;
} PenVideoFrame;

/* Packets that are decoded one after another. The first one is a key packet. */
typedef struct PenVideoNeed {
    uint32_t first, end; /* packets */
    uint32_t group;      /* of the first one */
    uint64_t offset;     /* the bytes of the payload that hold them, and may hold others */
    uint64_t bytes;
    uint32_t first_frame, n_frames; /* of the wanted ones, those that come out of these packets */
} PenVideoNeed;

/* What to read and decode for some frames. Zero-initialised is empty; memory is used again. */
typedef struct PenVideoNeeds {
    PenVideoNeed *needs; /* in order */
    uint32_t n_needs;
    PenVideoFrame *frames; /* each wanted frame once, by packet */
    uint32_t n_frames;
    PenBuf need_memory, frame_memory, shown, keys;
} PenVideoNeeds;

/* `frames` rise, and may repeat; all are below n_frames of the table. */
int pen__video_need(const PenVideoTable *t, const uint32_t *frames, uint32_t n, PenVideoNeeds *ret,
                    PenError *reterr);
void pen__video_needs_free(PenVideoNeeds *n);

/* The packets of a need, one after another. */
typedef struct PenVideoWalk {
    PenVideoCursor cursor;
    uint32_t end;
    const PenVideoFrame *frame, *frames_end; /* the next one that is wanted */
} PenVideoWalk;

int pen__video_walk(const PenVideoTable *t, const PenVideoNeeds *needs, uint32_t need,
                    PenVideoWalk *ret, PenError *reterr);
/* 1: the next packet; *ret_frame is the frame that is wanted of it, or NULL. 0: there is none. */
int pen__video_walk_next(PenVideoWalk *w, PenVideoPacket *ret, const PenVideoFrame **ret_frame,
                         PenError *reterr);

/* Nanoseconds from the first frame. */
int64_t pen__video_ns(const PenVideoTable *t, int64_t time);
int pen__video_frame_ns(const PenVideoTable *t, uint32_t frame, PenVideoNeeds *scratch,
                        int64_t *ret, PenError *reterr);
/* Of all frames; `ret` has n_frames numbers. */
int pen__video_all_ns(const PenVideoTable *t, PenVideoNeeds *scratch, int64_t *ret,
                      PenError *reterr);

#endif
