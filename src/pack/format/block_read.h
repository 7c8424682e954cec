/* SPDX-License-Identifier: Apache-2.0 */
/* The index of a block, checked as a whole before anything of it is used. */
#ifndef PEN_PACK_FORMAT_BLOCK_READ_H
#define PEN_PACK_FORMAT_BLOCK_READ_H

#include "pack/format/entry_table.h"
#include "pack/format/place.h"
#include "pack/format/schema.h"
#include "pack/format/segments.h"
#include "pack/format/video_table.h"

/* What the shard's table says of a block. */
typedef struct PenBlockEntry {
    uint64_t offset, bytes, index_bytes;
    uint32_t index_crc, n_samples;
} PenBlockEntry;

typedef struct PenBlockView { /* points into the index's bytes */
    const PenSchema *schema;
    const uint8_t *data;
    uint64_t index_bytes, sections_offset, bytes;
    uint32_t n_samples, n_sections;
    const uint8_t *id; /* of the shard */
    uint32_t block;
} PenBlockView;

typedef struct PenImageEntry {
    uint64_t offset, bytes; /* in the block */
    uint32_t width, height;
    uint8_t codec, how, orientation, channels;
    uint32_t crc;
    uint64_t table_offset, table_bytes;
    int64_t timestamp_ns;
    uint64_t source_bytes;
} PenImageEntry;

typedef struct PenBlobEntry {
    uint64_t offset, bytes;
    uint32_t crc;
    uint32_t flags; /* PEN_BLOB_* */
} PenBlobEntry;

typedef struct PenClipEntry {
    uint64_t offset, bytes;
    uint32_t n_frames;
    uint32_t kind; /* PEN_CLIP_* */
    uint64_t table_offset, table_bytes;
    uint64_t source_bytes; /* of a video */
} PenClipEntry;

/* `data` holds entry->index_bytes bytes. `name` is the shard's, for messages. The view keeps
 * schema, data and id. */
int pen__block_view(PenBlockView *ret, const PenSchema *schema, const uint8_t *id, uint32_t block,
                    const PenBlockEntry *entry, const uint8_t *data, const char *name,
                    PenError *reterr);

void pen__block_key(const PenBlockView *v, uint32_t sample, const uint8_t **ret_key,
                    uint32_t *ret_bytes);
const uint8_t *pen__block_number(const PenBlockView *v, uint32_t sample, uint32_t field);
PenBlobEntry pen__block_blob(const PenBlockView *v, uint32_t sample, uint32_t field);
PenClipEntry pen__block_clip(const PenBlockView *v, uint32_t sample, uint32_t field);
/* How many images are stored for it: the frames of a clip that is not a video, 1 for an image, else
 * 0. */
uint32_t pen__block_images(const PenBlockView *v, uint32_t sample, uint32_t field);
/* False: the value is not a video. */
bool pen__block_video(const PenBlockView *v, uint32_t sample, uint32_t field, PenVideoTable *ret);
/* An image (frame 0), or a frame of a clip that has it and is not a video. */
PenImageEntry pen__block_image(const PenBlockView *v, uint32_t sample, uint32_t field,
                               uint32_t frame);
/* Has it an entry table? Otherwise it has a segment table if table_bytes is not 0. */
bool pen__block_is_indexed(const PenBlockView *v, const PenImageEntry *e);
PenSegmentTable pen__block_segments(const PenBlockView *v, const PenImageEntry *e);
PenEntryTable pen__block_entries(const PenBlockView *v, const PenImageEntry *e);
PenPlace pen__block_place(const PenBlockView *v, uint32_t sample, uint32_t field, uint32_t frame);

#endif
