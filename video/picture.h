/* SPDX-License-Identifier: Apache-2.0 */
/* Describes a frame of libavcodec as the picture of a plug-in. */
#ifndef PEN_VIDEO_PICTURE_H
#define PEN_VIDEO_PICTURE_H

#include <penstock/video.h>

#include <libavutil/frame.h>

/* Fails with PEN_E_UNSUPPORTED if the pixel format is not planar YUV or gray. The planes belong to
 * the frame. */
int video_picture(const AVFrame *frame, int64_t time, PenVideoPicture *ret, PenError *reterr);

#endif
