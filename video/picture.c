/* SPDX-License-Identifier: Apache-2.0 */
#include "picture.h"

#include <stdbool.h>

#include <libavutil/pixdesc.h>

#include "fail.h"

enum {
    OTHER_KINDS = AV_PIX_FMT_FLAG_BE | AV_PIX_FMT_FLAG_PAL | AV_PIX_FMT_FLAG_BITSTREAM |
                  AV_PIX_FMT_FLAG_HWACCEL | AV_PIX_FMT_FLAG_RGB | AV_PIX_FMT_FLAG_ALPHA |
                  AV_PIX_FMT_FLAG_BAYER | AV_PIX_FMT_FLAG_FLOAT
};

/* One component per plane, of 8 bits in a byte or 9 to 16 in the lower bits of two bytes. */
static bool is_planar(const AVPixFmtDescriptor *format)
{
    if (!format || format->flags & OTHER_KINDS ||
        (format->nb_components != 1 && format->nb_components != 3))
        return false;
    for (int i = 0; i < format->nb_components; i++) {
        const AVComponentDescriptor *c = &format->comp[i];
        int bytes = c->depth > 8 ? 2 : 1;
        if (c->plane != i || c->offset || c->shift || c->step != bytes || c->depth < 8 ||
            c->depth > 16 || c->depth != format->comp[0].depth)
            return false;
    }
    return true;
}

/* The formats that have J in their names are of full range, whatever else is known of them. */
static uint32_t range_of(const AVFrame *frame)
{
    enum AVPixelFormat format = (enum AVPixelFormat)frame->format;
    if (frame->color_range == AVCOL_RANGE_JPEG || format == AV_PIX_FMT_YUVJ420P ||
        format == AV_PIX_FMT_YUVJ422P || format == AV_PIX_FMT_YUVJ444P ||
        format == AV_PIX_FMT_YUVJ440P || format == AV_PIX_FMT_YUVJ411P)
        return PEN_VIDEO_RANGE_FULL;
    return frame->color_range == AVCOL_RANGE_MPEG ? PEN_VIDEO_RANGE_LIMITED
                                                  : PEN_VIDEO_RANGE_UNKNOWN;
}

int video_picture(const AVFrame *frame, int64_t time, PenVideoPicture *ret, PenError *reterr)
{
    const AVPixFmtDescriptor *format = av_pix_fmt_desc_get((enum AVPixelFormat)frame->format);
    if (!is_planar(format))
        return video_fail(reterr, PEN_E_UNSUPPORTED,
                          "pixel format: expected planar YUV or gray, found %s",
                          format ? format->name : "none");
    int n = format->nb_components;
    *ret = (PenVideoPicture){
        .width = (uint32_t)frame->width,
        .height = (uint32_t)frame->height,
        .n_planes = (uint32_t)n,
        .depth = (uint32_t)format->comp[0].depth,
        .shift_x = n == 1 ? 0 : format->log2_chroma_w,
        .shift_y = n == 1 ? 0 : format->log2_chroma_h,
        .range = range_of(frame),
        .matrix = (uint32_t)frame->colorspace, /* has the numbers of H.273 */
        .time = time,
    };
    for (int i = 0; i < n; i++) {
        ret->planes[i] = frame->data[i];
        ret->strides[i] = frame->linesize[i];
    }
    return PEN_OK;
}
