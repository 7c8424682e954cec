/* SPDX-License-Identifier: Apache-2.0 */
/* The public calls for clips that are stored as videos. */
#include <string.h>

#include "base/bytes.h"
#include "pack/reader/reader.h"

#define WHERE "pack/read"

const char *pen_video_codec_name(int codec)
{
    static const char *const names[] = {"?", "h264", "hevc", "vp9", "av1", "mpeg4", "mjpeg", "vp8"};
    return codec > 0 && codec <= PEN_VIDEO_LAST_CODEC ? names[codec] : "?";
}

const char *pen_video_suffix(int container)
{
    static const char *const suffixes[] = {"", ".mp4", ".mov", ".mkv", ".webm"};
    return container > 0 && container <= PEN_CONTAINER_LAST ? suffixes[container] : "";
}

static int find_clip(PenPack *pack, uint64_t sample, uint32_t field, PenBlock **ret,
                     uint32_t *ret_sample, PenError *reterr)
{
    const PenPackInfo *info = pen_pack_info(pack);
    if (field >= info->n_fields || info->fields[field].type != PEN_TYPE_CLIP)
        return pen__fail(reterr, PEN_E_INVALID, WHERE, "%s: field %u: expected a clip",
                         pen__pack_path(pack), field);
    int r = pen__pack_alive(pack, reterr);
    return r < 0 ? r : pen__pack_locate(pack, sample, ret, ret_sample, reterr);
}

int pen_pack_video(PenPack *pack, uint64_t sample, uint32_t field, PenClipVideo *ret_video,
                   PenError *reterr)
{
    PenBlock *b;
    PenVideoTable t;
    uint32_t in_block, size[2];
    int r = find_clip(pack, sample, field, &b, &in_block, reterr);
    if (r < 0)
        return r;
    bool is_video = pen__block_video(&b->view, in_block, field, &t);
    if (is_video) {
        pen__video_shown_size(&t, size);
        *ret_video =
            (PenClipVideo){.width = size[0],
                           .height = size[1],
                           .n_frames = t.n_frames,
                           .codec = t.stream.codec,
                           .container = t.stream.container,
                           .orientation = t.stream.orientation,
                           .depth = t.stream.depth,
                           .bytes = t.payload_bytes,
                           .source_bytes = pen__block_clip(&b->view, in_block, field).source_bytes};
    }
    pen__pack_block_put(pack, b);
    return is_video;
}

int pen_pack_video_bytes(PenPack *pack, uint64_t sample, uint32_t field, uint64_t offset, void *buf,
                         size_t bytes, PenError *reterr)
{
    PenBlock *b;
    PenBuf data = {0};
    uint64_t from, end;
    PenSpot at = {.field = field};
    int r = find_clip(pack, sample, field, &b, &at.sample, reterr);
    if (r < 0)
        return r;
    at.block = b;
    if (pen__add_over(offset, bytes, &end))
        end = UINT64_MAX;
    if (bytes)
        r = pen__pack_read_video(&at, offset, end, &data, &from, reterr);
    if (bytes && r == PEN_OK)
        memcpy(buf, data.data + (offset - from), bytes);
    if (r < 0 && reterr)
        reterr->sample = (int64_t)sample;
    pen__buf_free(&data);
    pen__pack_block_put(pack, b);
    return r;
}
