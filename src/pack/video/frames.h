/* SPDX-License-Identifier: Apache-2.0 */
/* Some frames of a video: the packets that decoding them takes, and the bytes of these. */
#ifndef PEN_PACK_VIDEO_FRAMES_H
#define PEN_PACK_VIDEO_FRAMES_H

#include "pack/reader/reader.h"
#include "video/play.h"

/* A decoder cannot be interrupted: so many packets are decoded for the frames of one sample, and no
 * more. */
enum { PEN_MAX_PLAY_PACKETS = 100000 };

/* Bytes of the payload that are read at once, complete runs. */
typedef struct PenVideoRange {
    uint64_t from, end;
    size_t at; /* in the data */
} PenVideoRange;

/* Zero-initialized is empty; memory is used again. What it holds does not depend on the block. */
typedef struct PenFramePackets {
    PenVideoStream stream; /* `extra` is ours */
    PenVideoNeeds needs;   /* `needs.frames`: each wanted frame once, in decode order */
    uint64_t data_bytes;   /* that are read */
    PenBuf extra;
    PenBuf ranges;  /* PenVideoRange each */
    PenBuf packets; /* PenPlayPacket each, in decode order */
    PenBuf data;    /* of the ranges, one after another; PEN_SLACK bytes of 0 follow */
} PenFramePackets;

/* Lists what to read and to decode. `numbers` rise, and may repeat; all are below n_frames of the
 * table. PEN_E_LIMIT: more than PEN_MAX_PLAY_PACKETS packets, or more bytes than memory has
 * addresses for. */
int pen__frame_packets_list(const PenVideoTable *t, const uint32_t *numbers, uint32_t n,
                            PenFramePackets *ret, PenError *reterr);
/* The memory that they take, with the data that is to be read. */
uint64_t pen__frame_packets_memory(const PenFramePackets *f);
/* Reads and checks the bytes: one read for each range. */
int pen__frame_packets_read(const PenSpot *at, PenFramePackets *f, PenError *reterr);
/* What pen__video_play takes, when the bytes are there. */
PenPlayList pen__frame_packets_play(const PenFramePackets *f);
/* Frees buffers of more than `bytes`; 0: all. */
void pen__frame_packets_trim(PenFramePackets *f, size_t bytes);

#endif
