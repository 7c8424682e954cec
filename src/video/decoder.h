/* SPDX-License-Identifier: Apache-2.0 */
/* Decoding frames of a video, packet by packet. A thread has one decoder for all videos.
 *
 *     pen__video_decoder_prepare(&d, &params, err);
 *     for each packet from the key packet to the last one that is wanted:
 *         pen__video_decoder_send(&d, &packet, err);
 *         while (pen__video_decoder_receive(&d, &picture, err) == PEN_OK)
 *             use the picture;
 *     pen__video_decoder_drain(&d, err);
 *     while (pen__video_decoder_receive(&d, &picture, err) == PEN_OK)
 *         use the picture;
 *
 * Draining right after the last wanted packet decodes no more packets than needed. */
#ifndef PEN_VIDEO_DECODER_H
#define PEN_VIDEO_DECODER_H

#include <stdbool.h>

#include <penstock/video.h>

#include "base/mem.h"

/* What the container states of a video. A decoder that is open can decode others if all is equal
 * but range and matrix, which are those of pictures whose coded form states none: as in
 * PenVideoPicture, and a matrix of 0 is unknown, too. */
typedef struct PenVideoParams {
    uint32_t codec; /* PEN_VIDEO_* */
    uint32_t width, height;
    uint32_t range, matrix;
    const void *extra; /* codec configuration */
    size_t extra_bytes;
} PenVideoParams;

/* Zero-initialized is empty; free with pen__video_decoder_free. */
typedef struct PenFrameDecoder {
    const PenVideoPlugin *plugin;
    PenVideoDecoder *decoder; /* NULL: not open */
    PenVideoParams params;    /* of the open one; extra is ours */
    PenVideoPicture picture;  /* the last one */
    PenBuf extra;
    PenBuf wanted;  /* times (int64_t) of pictures that are still to come, in decode order */
    bool is_used;   /* since it was opened or flushed */
    bool is_broken; /* since a call failed */
    bool is_drained;
} PenFrameDecoder;

/* Makes it ready for the first packet, a key packet, of a video: opens a decoder if the parameters
 * differ from those it has, or else flushes it. PEN_E_UNSUPPORTED: no plug-in, or no such codec.
 * PEN_E_LIMIT: pictures too large. */
int pen__video_decoder_prepare(PenFrameDecoder *d, const PenVideoParams *params, PenError *reterr);

/* PEN_E_DECODE: damaged. The decoder has to be prepared again after a failure. Times of wanted
 * packets are distinct. */
int pen__video_decoder_send(PenFrameDecoder *d, PenCodedPacket packet, PenError *reterr);

/* No more packets: everything that is wanted comes out now. */
int pen__video_decoder_drain(PenFrameDecoder *d, PenError *reterr);

/* The next wanted picture in order of time; each comes once. It is valid until the next call.
 * PEN_END: none now. After draining it means that all wanted pictures came out; if not, this fails
 * with PEN_E_DECODE. */
int pen__video_decoder_receive(PenFrameDecoder *d, const PenVideoPicture **ret, PenError *reterr);

void pen__video_decoder_free(PenFrameDecoder *d);

#endif
