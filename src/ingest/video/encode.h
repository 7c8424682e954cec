/* SPDX-License-Identifier: Apache-2.0 */
/* Encoding a video anew, with a key frame every few frames, by the confined ffmpeg. */
#ifndef PEN_INGEST_VIDEO_ENCODE_H
#define PEN_INGEST_VIDEO_ENCODE_H

#include "ingest/video/video.h"

enum { PEN_MAX_GOP = 1000 };

/* Gets the bytes of the file, piece by piece; < 0 ends it. */
typedef int (*PenVideoBytesTaker)(void *ctx, const void *data, size_t bytes, PenError *reterr);

/* The frames of a part in an MP4 file, H.264, with a key frame every settings->gop of them. Times,
 * rotation and color are those of the source. Sound that MP4 can hold is copied. The same source
 * gives the same bytes. Errors are those of pen__video_read. PEN_E_IO also if this ffmpeg lacks the
 * encoder. After any error the bytes are worthless. */
int pen__video_encode(const PenVideoSettings *settings, const PenVideoPart *part,
                      PenVideoBytesTaker take, void *ctx, PenError *reterr);

/* PEN_E_NOT_FOUND if this ffmpeg lacks the encoder. */
int pen__video_check_encoder(const PenVideoSettings *settings, PenError *reterr);

#endif
