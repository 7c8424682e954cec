/* SPDX-License-Identifier: Apache-2.0 */
#include "pack/format/block_write.h"

#include <string.h>

#include "base/bytes.h"
#include "pack/format/entry_table.h"
#include "pack/format/place.h"
#include "pack/format/segments.h"

#define WHERE "pack/block"

/* Where the next payload and the next table will lie. */
typedef struct Layout {
    PenBlockBuild *b;
    const PenSchema *schema;
    PenPlace place;
    uint64_t heap_start;
    uint64_t payload; /* bytes of payloads so far; the index comes before them */
    uint32_t n_sections;
} Layout;

static int add_piece(PenBlockBuild *b, const void *data, uint64_t bytes)
{
    if (bytes == 0)
        return PEN_OK;
    if (b->n_iov == b->iov_cap) {
        size_t cap = b->iov_cap ? b->iov_cap * 2 : 128;
        struct iovec *iov = pen__resize(b->iov, cap * sizeof *iov);
        if (!iov)
            return PEN_E_NO_MEMORY;
        b->iov = iov;
        b->iov_cap = cap;
    }
    b->iov[b->n_iov++] = (struct iovec){(void *)data, (size_t)bytes};
    return PEN_OK;
}

static int note_piece(PenBlockBuild *b, const PenOutsidePiece *piece, uint64_t bytes)
{
    return piece->path && bytes ? pen__buf_add(&b->outside, piece, sizeof *piece) : PEN_OK;
}

static int note_origin(PenBlockBuild *b, const PenStoredImage *image)
{
    PenOutsidePiece piece = {image->origin,          image->origin_etag,   image->origin_bytes,
                             image->origin_mtime_ns, image->origin_offset, b->n_iov};
    return note_piece(b, &piece, image->bytes);
}

static int add_payload(Layout *l, const void *data, uint64_t bytes)
{
    l->payload += bytes;
    return add_piece(l->b, data, bytes);
}

/* The bytes from `start` on are a section. */
static int end_section(Layout *l, size_t start)
{
    const PenBuf *s = &l->b->sections;
    uint8_t sum[PEN_SECTION_SUM_BYTES];
    PenPlace place = {.id = l->place.id,
                      .block = l->place.block,
                      .sample = PEN_SAMPLE_SECTION,
                      .field = l->n_sections++};
    pen__store32(sum, pen__place_sum(&place, s->data + start, s->bytes - start));
    return pen__buf_add(&l->b->sums, sum, sizeof sum);
}

static int add_meta(Layout *l, const PenStoredImage *image)
{
    PenBuf *s = &l->b->sections;
    size_t start = s->bytes;
    uint8_t h[PEN_BLOCK_SECTION_BYTES] = "META";
    pen__store32(h + 8, l->place.sample);
    pen__store32(h + 12, l->place.field);
    pen__store32(h + 16, l->place.frame);
    pen__store64(h + 24, image->meta_bytes);
    int r = pen__buf_add(s, h, sizeof h);
    if (r == PEN_OK)
        r = pen__buf_add(s, image->meta, (size_t)image->meta_bytes);
    return r < 0 ? r : end_section(l, start);
}

static int add_columns(Layout *l, const PenBuf *columns)
{
    size_t start = l->b->sections.bytes;
    int r = pen__buf_add(&l->b->sections, columns->data, columns->bytes);
    return r < 0 ? r : end_section(l, start);
}

/* Fills the 64 bytes of an image entry; offsets of payloads lack the size of the index, which is
 * added at the end. */
static int put_image(Layout *l, const PenStoredImage *image, uint8_t *e)
{
    PenBlockBuild *b = l->b;
    memset(e, 0, PEN_IMAGE_ENTRY_BYTES);
    pen__store64(e, l->payload);
    if (!image) {
        b->stats[PEN_STAT_MISSING + l->place.field]++;
        return PEN_OK;
    }
    bool cut = image->segments.n_segments, indexed = image->entries.plan.n_entries;
    uint64_t head = cut       ? image->segments.head_bytes
                    : indexed ? image->entries.lead_bytes
                              : image->bytes;
    pen__store64(e + 8, image->bytes);
    pen__store32(e + 16, image->width);
    pen__store32(e + 20, image->height);
    e[24] = image->codec;
    e[25] = image->how;
    e[26] = image->orientation;
    e[27] = image->channels;
    pen__store32(e + 28, image->data ? pen__place_sum(&l->place, image->data, (size_t)head)
                                     : pen__place_sum_of(&l->place, image->sum, head));
    pen__store64(e + 48, (uint64_t)image->timestamp_ns);
    pen__store64(e + 56, image->source_bytes);
    b->stats[PEN_STAT_SOURCE] += image->source_bytes;
    b->stats[PEN_STAT_IMAGES + 8 * (image->codec & 7) + (image->how & 7)]++;
    int r = PEN_OK;
    if (cut || indexed) {
        size_t before = b->heap.bytes;
        r = cut ? pen__segments_write(&image->segments, image->data, image->bytes, l->place,
                                      &b->heap)
                : pen__entry_table_write(&image->entries, image->data, image->bytes, l->place,
                                         &b->heap);
        pen__store64(e + 32, l->heap_start + before);
        pen__store64(e + 40, b->heap.bytes - before);
    }
    if (r == PEN_OK)
        r = note_origin(b, image);
    if (r == PEN_OK)
        r = add_payload(l, image->data, image->bytes);
    if (r == PEN_OK && image->meta_bytes)
        r = add_meta(l, image);
    return r;
}

/* The checksums in the table depend on its place, which is known here. */
static int put_video_table(Layout *l, const PenStoredVideo *video)
{
    PenBlockBuild *b = l->b;
    size_t before = b->heap.bytes;
    PenVideoTable t;
    bool has_bytes = video->data || (video->crcs && (video->source || video->origin));
    if (!l->schema->has_videos || !has_bytes ||
        pen__video_table_read(&t, video->table, video->table_bytes, video->bytes, video->n_frames))
        return PEN_E_INVALID;
    b->stats[PEN_STAT_SOURCE] += pen__video_source(&t, video->source_bytes);
    int r = pen__buf_add(&b->heap, video->table, (size_t)video->table_bytes);
    if (r == PEN_OK)
        pen__video_table_seal(b->heap.data + before, video->crcs, video->data, video->bytes,
                              l->place);
    return r;
}

static int note_source(PenBlockBuild *b, const PenStoredVideo *video)
{
    PenSourcePiece piece = {video->source, video->source_offset, video->crcs};
    return pen__buf_add(&b->sources, &piece, sizeof piece);
}

static int put_video(Layout *l, const PenStoredVideo *video, uint8_t *e)
{
    PenBlockBuild *b = l->b;
    PenOutsidePiece piece = {video->origin,          video->origin_etag,   video->origin_bytes,
                             video->origin_mtime_ns, video->origin_offset, b->n_iov};
    pen__store64(e + 8, video->bytes);
    pen__store32(e + 16, video->n_frames);
    pen__store32(e + 20, PEN_CLIP_VIDEO);
    pen__store64(e + 24, l->heap_start + b->heap.bytes);
    pen__store64(e + 32, video->table_bytes);
    pen__store64(e + 40, video->source_bytes);
    b->stats[PEN_STAT_VIDEOS]++;
    b->stats[PEN_STAT_VIDEO_FRAMES] += video->n_frames;
    int r = put_video_table(l, video);
    if (r == PEN_OK)
        r = note_piece(b, &piece, video->bytes);
    if (r == PEN_OK && !video->data && !video->origin)
        r = note_source(b, video);
    return r < 0 ? r : add_payload(l, video->data, video->bytes);
}

/* The frame table comes first in the heap, then the frames' segment tables. */
static int put_clip(Layout *l, const PenStoredValue *value, uint8_t *e)
{
    PenBlockBuild *b = l->b;
    memset(e, 0, PEN_CLIP_ENTRY_BYTES);
    pen__store64(e, l->payload);
    if (value->video)
        return put_video(l, value->video, e);
    if (value->n_images == 0)
        return PEN_OK;
    size_t table = b->heap.bytes;
    uint64_t payload = l->payload;
    int r = pen__buf_reserve(&b->heap, (size_t)value->n_images * PEN_IMAGE_ENTRY_BYTES);
    if (r < 0)
        return r;
    b->heap.bytes += (size_t)value->n_images * PEN_IMAGE_ENTRY_BYTES;
    for (uint32_t i = 0; i < value->n_images && r == PEN_OK; i++) {
        uint8_t frame[PEN_IMAGE_ENTRY_BYTES];
        l->place.frame = i;
        r = put_image(l, &value->images[i], frame);
        memcpy(b->heap.data + table + (size_t)i * sizeof frame, frame, sizeof frame);
    }
    l->place.frame = 0;
    pen__store64(e + 8, l->payload - payload);
    pen__store32(e + 16, value->n_images);
    pen__store64(e + 24, l->heap_start + table);
    pen__store64(e + 32, b->heap.bytes - table);
    return r;
}

static int put_blob(Layout *l, const PenStoredValue *value, uint8_t *e)
{
    memset(e, 0, PEN_BLOB_ENTRY_BYTES);
    pen__store64(e, l->payload);
    pen__store64(e + 8, value->bytes);
    pen__store32(e + 16, pen__place_sum(&l->place, value->data, (size_t)value->bytes));
    if (value->missing && l->schema->fields[l->place.field].flags & PEN_FIELD_OPTIONAL) {
        pen__store32(e + 20, PEN_BLOB_MISSING);
        l->b->stats[PEN_STAT_MISSING + l->place.field]++;
    }
    l->b->stats[PEN_STAT_SOURCE] += value->bytes;
    return add_payload(l, value->data, value->bytes);
}

static int put_value(Layout *l, const PenStoredValue *value, uint32_t field, uint8_t *e)
{
    int type = l->schema->fields[field].type;
    if (pen__field_is_number(&l->schema->fields[field])) {
        memcpy(e, value->data, l->schema->widths[field]);
        return PEN_OK;
    }
    if (type == PEN_TYPE_CLIP)
        return put_clip(l, value, e);
    if (type == PEN_TYPE_IMAGE)
        return put_image(l, value->n_images ? value->images : NULL, e);
    return put_blob(l, value, e);
}

static int put_keys(Layout *l, const PenStoredSample *const *samples, uint32_t n)
{
    PenBlockBuild *b = l->b;
    for (uint32_t i = 0; i < n; i++) {
        uint8_t *e = b->index.data + PEN_BLOCK_HEADER_BYTES + (size_t)i * PEN_KEY_ENTRY_BYTES;
        memset(e, 0, PEN_KEY_ENTRY_BYTES);
        pen__store64(e, l->heap_start + b->heap.bytes);
        pen__store32(e + 8, samples[i]->key_bytes);
        int r = pen__buf_add(&b->heap, samples[i]->key, samples[i]->key_bytes);
        if (r < 0)
            return r;
    }
    return PEN_OK;
}

static int put_values(Layout *l, const PenStoredSample *const *samples, uint32_t n)
{
    const PenSchema *schema = l->schema;
    for (uint32_t i = 0; i < n; i++) {
        size_t column = PEN_BLOCK_HEADER_BYTES + (size_t)n * PEN_KEY_ENTRY_BYTES;
        for (uint32_t f = 0; f < schema->n_fields; f++) {
            l->place.sample = i;
            l->place.field = f;
            uint8_t *e = l->b->index.data + column + (size_t)i * schema->widths[f];
            int r = put_value(l, &samples[i]->values[f], f, e);
            if (r < 0)
                return r;
            column += (size_t)n * schema->widths[f];
        }
    }
    return PEN_OK;
}

static void shift_offset(uint8_t *entry, uint64_t by)
{
    pen__store64(entry, pen__load64(entry) + by);
}

/* Payload offsets were counted from the first payload: now that the index has its size they move
 * behind it. */
static void shift_payloads(Layout *l, const PenStoredSample *const *samples, uint32_t n)
{
    const PenSchema *schema = l->schema;
    uint64_t by = l->b->index.bytes;
    uint8_t *index = l->b->index.data;
    size_t column = PEN_BLOCK_HEADER_BYTES + (size_t)n * PEN_KEY_ENTRY_BYTES;
    for (uint32_t f = 0; f < schema->n_fields; f++) {
        for (uint32_t i = 0; i < n && !pen__field_is_number(&schema->fields[f]); i++) {
            uint8_t *e = index + column + (size_t)i * schema->widths[f];
            shift_offset(e, by);
            uint32_t frames =
                schema->fields[f].type == PEN_TYPE_CLIP ? samples[i]->values[f].n_images : 0;
            for (uint32_t k = 0; k < frames; k++)
                shift_offset(index + pen__load64(e + 24) + (size_t)k * PEN_IMAGE_ENTRY_BYTES, by);
        }
        column += (size_t)n * schema->widths[f];
    }
}

static void put_header(Layout *l, uint32_t n)
{
    PenBlockBuild *b = l->b;
    uint8_t *h = b->index.data;
    PenPlace place = {.id = l->place.id, .block = l->place.block, .sample = PEN_ALL};
    uint64_t sections_offset = b->index.bytes + l->payload;
    b->bytes = sections_offset + b->sections.bytes;
    place.field = PEN_PART_INDEX;
    b->index_crc =
        pen__place_sum(&place, h + PEN_BLOCK_HEADER_BYTES, b->index.bytes - PEN_BLOCK_HEADER_BYTES);
    memset(h, 0, PEN_BLOCK_HEADER_BYTES);
    memcpy(h, "PENB", 4);
    pen__store32(h + 8, l->place.block);
    pen__store32(h + 12, n);
    pen__store64(h + 16, b->bytes);
    pen__store64(h + 24, b->index.bytes);
    pen__store64(h + 32, sections_offset);
    pen__store32(h + 40, l->n_sections);
    pen__store32(h + 44, b->index_crc);
    place.field = PEN_PART_BLOCK_HEADER;
    pen__store32(h + 4, pen__place_sum(&place, h + 8, PEN_BLOCK_HEADER_BYTES - 8));
}

static int too_large(uint32_t n, PenError *reterr)
{
    return pen__fail(
        reterr, PEN_E_LIMIT, WHERE,
        "a block of %u samples: the index is larger than 2 GiB; choose fewer samples per block", n);
}

static int lay_out(Layout *l, const PenStoredSample *const *samples, uint32_t n,
                   const PenBuf *columns)
{
    PenBlockBuild *b = l->b;
    int r = pen__buf_reserve(&b->index, (size_t)l->heap_start);
    if (r < 0)
        return r;
    b->index.bytes = (size_t)l->heap_start;
    r = add_piece(b, b->index.data, b->index.bytes); /* put right when the index is complete */
    if (r == PEN_OK)
        r = put_keys(l, samples, n);
    if (r == PEN_OK)
        r = put_values(l, samples, n);
    if (r == PEN_OK && columns && columns->bytes)
        r = add_columns(l, columns);
    if (r == PEN_OK)
        r = pen__buf_add(&b->index, b->heap.data, b->heap.bytes);
    if (r == PEN_OK)
        r = pen__buf_add(&b->index, b->sums.data, b->sums.bytes);
    if (r == PEN_OK)
        r = add_piece(b, b->sections.data, b->sections.bytes);
    return r;
}

int pen__block_build(PenBlockBuild *b, const PenSchema *schema, const uint8_t *id, uint32_t block,
                     const PenStoredSample *const *samples, uint32_t n, const PenBuf *columns,
                     PenError *reterr)
{
    uint64_t row = PEN_KEY_ENTRY_BYTES;
    uint64_t entries;
    for (uint32_t f = 0; f < schema->n_fields; f++)
        row += schema->widths[f];
    if (pen__mul_over(row, n, &entries) || entries > PEN_MAX_INDEX_BYTES)
        return too_large(n, reterr);
    b->index.bytes = b->heap.bytes = b->sections.bytes = b->sums.bytes = 0;
    b->n_iov = 0;
    b->outside.bytes = b->sources.bytes = 0;
    memset(b->stats, 0, sizeof b->stats);
    Layout l = {.b = b, .schema = schema, .heap_start = entries + PEN_BLOCK_HEADER_BYTES};
    l.place = (PenPlace){.id = id, .block = block};
    int r = lay_out(&l, samples, n, columns);
    if (r == PEN_E_INVALID)
        return pen__fail(reterr, PEN_E_INVALID, WHERE,
                         "sample %u of a block: its video has a table that is not its own, or the "
                         "pack is one without videos",
                         l.place.sample);
    if (r < 0)
        return pen__fail_memory(reterr, WHERE, "index of a block");
    if (b->index.bytes > PEN_MAX_INDEX_BYTES)
        return too_large(n, reterr);
    shift_payloads(&l, samples, n);
    put_header(&l, n);
    b->iov[0] = (struct iovec){b->index.data, b->index.bytes};
    b->stats[PEN_STAT_PAYLOAD] = l.payload;
    b->stats[PEN_STAT_INDEX] = b->index.bytes;
    b->stats[PEN_STAT_SECTIONS] = b->sections.bytes;
    b->stats[PEN_STAT_COLUMNS] = columns ? columns->bytes : 0;
    return PEN_OK;
}

void pen__block_build_fini(PenBlockBuild *b)
{
    pen__buf_free(&b->index);
    pen__buf_free(&b->heap);
    pen__buf_free(&b->sections);
    pen__buf_free(&b->sums);
    pen__buf_free(&b->outside);
    pen__buf_free(&b->sources);
    pen__free(b->iov);
    *b = (PenBlockBuild){0};
}
