/* SPDX-License-Identifier: Apache-2.0 */
/* Extracting images from a pack as files of their own. */
#include <inttypes.h>
#include <string.h>

#include "base/bytes.h"
#include "codec/jpeg/metadata.h"
#include "pack/reader/reader.h"

#define WHERE "manage/extract"

/* The stored bytes of an image or frame; PEN_SLACK readable bytes follow. */
static int load(PenPack *pack, uint64_t sample, uint32_t field, uint32_t frame,
                const PenImage *image, PenBuf *ret, PenError *reterr)
{
    size_t bytes = 0;
    int clip = pen_pack_info(pack)->fields[field].type == PEN_TYPE_CLIP;
    PenFrameRange range = {.first = frame, .step = 1, .n = 1};
    if (image->bytes > SIZE_MAX / 4 || pen__buf_reserve(ret, (size_t)image->bytes + PEN_SLACK) < 0)
        return pen__fail_memory(reterr, WHERE, "an image");
    int r = clip ? pen_pack_read_frames(pack, sample, field, &range, ret->data, ret->cap, &bytes,
                                        reterr)
                 : pen_pack_read(pack, sample, field, ret->data, ret->cap, &bytes, reterr);
    if (r < 0)
        return r;
    ret->bytes = bytes;
    memset(ret->data + bytes, 0, PEN_SLACK);
    return PEN_OK;
}

static int put_metadata_back(PenPack *pack, uint64_t sample, uint32_t field, uint32_t frame,
                             PenBuf *jpeg, PenError *reterr)
{
    size_t bytes = 0;
    PenBuf meta = {0};
    PenBuf whole = {0};
    int r = pen_pack_metadata(pack, sample, field, frame, NULL, 0, &bytes, reterr);
    if (r < 0 || bytes == 0)
        return r;
    r = pen__buf_reserve(&meta, bytes) == PEN_OK
            ? pen_pack_metadata(pack, sample, field, frame, meta.data, bytes, &bytes, reterr)
            : pen__fail_memory(reterr, WHERE, "metadata");
    if (r == PEN_OK)
        r = pen__jpeg_with_metadata(jpeg->data, jpeg->bytes, meta.data, bytes, &whole, reterr);
    pen__buf_free(&meta);
    if (r < 0) {
        pen__buf_free(&whole);
        return r;
    }
    pen__buf_free(jpeg);
    *jpeg = whole;
    return PEN_OK;
}

static int raw_to_png(const PenImage *image, PenBuf *data, PenError *reterr)
{
    PenBuf png = {0};
    PenPixels pixels = {data->data, image->width, image->height, image->channels};
    int r = pen__png_encode(&pixels, &png, reterr);
    if (r < 0) {
        pen__buf_free(&png);
        return r;
    }
    pen__buf_free(data);
    *data = png;
    return PEN_OK;
}

/* The packets of a part lack their container: no program plays them. */
static int extract_video(PenPack *pack, uint64_t sample, uint32_t field, const PenClipVideo *video,
                         PenBuf *ret, PenError *reterr)
{
    if (!video->container)
        return pen__fail(reterr, PEN_E_UNSUPPORTED, WHERE,
                         "sample %" PRIu64 ", field %u: expected a complete video, found a part of "
                         "a file; extract it from that file with ffmpeg",
                         sample, field);
    if (video->bytes > SIZE_MAX / 4 || pen__buf_reserve(ret, (size_t)video->bytes) < 0)
        return pen__fail_memory(reterr, WHERE, "a video");
    return pen_pack_read(pack, sample, field, ret->data, ret->cap, &ret->bytes, reterr);
}

static int is_video(PenPack *pack, uint64_t sample, uint32_t field, PenClipVideo *ret,
                    PenError *reterr)
{
    const PenPackInfo *info = pen_pack_info(pack);
    return field < info->n_fields && info->fields[field].type == PEN_TYPE_CLIP
               ? pen_pack_video(pack, sample, field, ret, reterr)
               : 0;
}

static int extract_image(PenPack *pack, uint64_t sample, uint32_t field, uint32_t frame,
                         PenBuf *ret, const char **ret_suffix, PenError *reterr)
{
    PenImage image;
    PenBuf data = {0};
    int r = pen_pack_image(pack, sample, field, frame, &image, reterr);
    if (r == PEN_OK && image.codec == PEN_STORED_NONE)
        r = pen__fail(reterr, PEN_E_NOT_FOUND, WHERE, "sample %" PRIu64 ": no image in field %u",
                      sample, field);
    if (r == PEN_OK)
        r = load(pack, sample, field, frame, &image, &data, reterr);
    if (r == PEN_OK && image.codec == PEN_STORED_JPEG)
        r = put_metadata_back(pack, sample, field, frame, &data, reterr);
    if (r == PEN_OK && image.codec == PEN_STORED_RAW)
        r = raw_to_png(&image, &data, reterr);
    *ret = data;
    if (r == PEN_OK)
        *ret_suffix =
            pen__codec_suffix(image.codec == PEN_STORED_RAW ? PEN_STORED_PNG : image.codec);
    return r;
}

int pen_pack_extract(PenPack *pack, uint64_t sample, uint32_t field, uint32_t frame,
                     void **ret_data, size_t *ret_bytes, const char **ret_suffix, PenError *reterr)
{
    PenClipVideo video;
    PenBuf data = {0};
    int r = frame ? 0 : is_video(pack, sample, field, &video, reterr);
    if (r == 1) {
        r = extract_video(pack, sample, field, &video, &data, reterr);
        *ret_suffix = pen_video_suffix(video.container);
    } else if (r == 0) {
        r = extract_image(pack, sample, field, frame, &data, ret_suffix, reterr);
    }
    if (r < 0) {
        pen__buf_free(&data);
        return r;
    }
    *ret_data = data.data;
    *ret_bytes = data.bytes;
    return PEN_OK;
}
