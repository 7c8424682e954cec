/* SPDX-License-Identifier: Apache-2.0 */
/* Decoding a list of packets, from key packets on, up to the last frame that is wanted. */
#ifndef PEN_VIDEO_PLAY_H
#define PEN_VIDEO_PLAY_H

#include "video/decoder.h"

enum { PEN_PLAY_SECONDS = 600 }; /* that decoding a list may take */

/* One packet of the list. The first one starts. */
typedef struct PenPlayPacket {
    size_t at; /* of its bytes in the data */
    uint32_t bytes;
    uint32_t flags; /* PEN_VIDEO_WANTED, PEN_VIDEO_LEADING */
    int64_t time;
    bool starts; /* a key packet that does not follow the packet before: decoding starts anew */
} PenPlayPacket;

typedef struct PenPlayList {
    PenVideoParams params;
    const uint8_t *data;
    const PenPlayPacket *packets;
    size_t n;
} PenPlayList;

/* A picture that is wanted; it is valid during the call. What it returns other than PEN_OK stops,
 * and is returned. */
typedef int (*PenPictureFn)(void *ctx, const PenVideoPicture *picture, PenError *reterr);

/* Calls `take` for each wanted packet's picture, those after one start in the order of times.
 * Errors are those of the decoder: PEN_E_DECODE if a picture is missing. PEN_E_DECODE_TIMEOUT
 * if it takes too long: that is no damage of the sample, which a slow machine could make up. */
int pen__video_play(PenFrameDecoder *d, const PenPlayList *list, PenPictureFn take, void *ctx,
                    PenError *reterr);

#endif
