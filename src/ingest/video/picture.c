/* SPDX-License-Identifier: Apache-2.0 */
#include "ingest/video/picture.h"
#include "pack/format/video_table.h"

/* RFC 6386, 9.1: the frame tag. */
static const char *parse_vp8(const uint8_t *data, size_t bytes, PenPicture *ret)
{
    if (bytes < 3)
        return "a VP8 packet without a frame";
    ret->is_key = !(data[0] & 1);
    ret->shown = data[0] >> 4 & 1;
    return NULL;
}

const char *pen__picture_start(PenPictureParser *p, uint8_t codec, const uint8_t *extra,
                               size_t bytes)
{
    PenPicture ignored = {0};
    *p = (PenPictureParser){.codec = codec, .is_broken = true};
    switch (codec) {
    case PEN_CODED_H264:
        return pen__h264_start(p, extra, bytes);
    case PEN_CODED_HEVC:
        return pen__hevc_start(p, extra, bytes);
    case PEN_CODED_MPEG4:
        return pen__mpeg4_parse(p, extra, bytes, &ignored);
    default:
        return NULL;
    }
}

const char *pen__picture_parse(PenPictureParser *p, const uint8_t *data, size_t bytes,
                               PenPicture *ret)
{
    *ret = (PenPicture){0};
    switch (p->codec) {
    case PEN_CODED_H264:
        return pen__h264_parse(p, data, bytes, ret);
    case PEN_CODED_HEVC:
        return pen__hevc_parse(p, data, bytes, ret);
    case PEN_CODED_VP9:
        return pen__vp9_parse(data, bytes, ret);
    case PEN_CODED_AV1:
        return pen__av1_parse(p, data, bytes, ret);
    case PEN_CODED_MPEG4:
        return pen__mpeg4_parse(p, data, bytes, ret);
    case PEN_CODED_VP8:
        return parse_vp8(data, bytes, ret);
    default: /* MJPEG */
        *ret = (PenPicture){.shown = 1, .is_key = true};
        return NULL;
    }
}
