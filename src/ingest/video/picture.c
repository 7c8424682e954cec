/* SPDX-License-Identifier: Apache-2.0 */
#include "ingest/video/picture.h"
#include "base/bytes.h"
#include "pack/format/video_table.h"

/* RFC 6386, 9.1: the frame tag. */
static const char *parse_vp8(const uint8_t *data, size_t bytes, PenPicture *ret)
{
    if (bytes < 3)
        return "a VP8 packet without a frame";
    ret->is_key = !(data[0] & 1);
    ret->shown = data[0] >> 4 & 1;
    if (ret->is_key && bytes >= 10) {
        ret->width = pen__load16(data + 6) & 0x3fff;
        ret->height = pen__load16(data + 8) & 0x3fff;
    }
    return NULL;
}

/* T.81, B.2.2: the header of the first frame. */
static void find_jpeg_size(const uint8_t *data, size_t bytes, PenPicture *ret)
{
    for (size_t at = 2; at + 9 <= bytes && data[at] == 0xff;) {
        uint8_t marker = data[at + 1];
        if (marker >= 0xc0 && marker <= 0xc3) {
            ret->height = pen__load16be(data + at + 5);
            ret->width = pen__load16be(data + at + 7);
            return;
        }
        at += marker == 0xff ? 1 : 2 + (size_t)pen__load16be(data + at + 2);
    }
}

static const char *check_size(PenPictureParser *p, const PenPicture *picture)
{
    if (!picture->width)
        return NULL;
    if (p->width && (p->width != picture->width || p->height != picture->height))
        return "pictures of several sizes";
    p->width = picture->width;
    p->height = picture->height;
    return NULL;
}

const char *pen__picture_start(PenPictureParser *p, uint8_t codec, const uint8_t *extra,
                               size_t bytes)
{
    PenPicture set = {0};
    const char *wrong = NULL;
    *p = (PenPictureParser){.codec = codec, .is_broken = true};
    if (codec == PEN_VIDEO_H264)
        wrong = pen__h264_start(p, extra, bytes);
    else if (codec == PEN_VIDEO_HEVC)
        wrong = pen__hevc_start(p, extra, bytes, &set);
    else if (codec == PEN_VIDEO_MPEG4)
        wrong = pen__mpeg4_parse(p, extra, bytes, &set);
    return wrong ? wrong : check_size(p, &set);
}

static const char *parse_codec(PenPictureParser *p, const uint8_t *data, size_t bytes,
                               PenPicture *ret)
{
    switch (p->codec) {
    case PEN_VIDEO_H264:
        return pen__h264_parse(p, data, bytes, ret);
    case PEN_VIDEO_HEVC:
        return pen__hevc_parse(p, data, bytes, ret);
    case PEN_VIDEO_VP9:
        return pen__vp9_parse(data, bytes, ret);
    case PEN_VIDEO_AV1:
        return pen__av1_parse(p, data, bytes, ret);
    case PEN_VIDEO_MPEG4:
        return pen__mpeg4_parse(p, data, bytes, ret);
    case PEN_VIDEO_VP8:
        return parse_vp8(data, bytes, ret);
    default: /* MJPEG */
        *ret = (PenPicture){.shown = 1, .is_key = true};
        find_jpeg_size(data, bytes, ret);
        return NULL;
    }
}

const char *pen__picture_parse(PenPictureParser *p, const uint8_t *data, size_t bytes,
                               PenPicture *ret)
{
    *ret = (PenPicture){0};
    const char *wrong = parse_codec(p, data, bytes, ret);
    return wrong ? wrong : check_size(p, ret);
}
