/* SPDX-License-Identifier: Apache-2.0 */
#include "pack/format/block_read.h"

#include <inttypes.h>
#include <string.h>

#include "base/bytes.h"

#define WHERE "pack/block"

static size_t column_of(const PenBlockView *v, uint32_t field)
{
    size_t at = PEN_BLOCK_HEADER_BYTES + (size_t)v->n_samples * PEN_KEY_ENTRY_BYTES;
    for (uint32_t f = 0; f < field; f++)
        at += (size_t)v->n_samples * v->schema->widths[f];
    return at;
}

const uint8_t *pen__block_number(const PenBlockView *v, uint32_t sample, uint32_t field)
{
    return v->data + column_of(v, field) + (size_t)sample * v->schema->widths[field];
}

void pen__block_key(const PenBlockView *v, uint32_t sample, const uint8_t **ret_key,
                    uint32_t *ret_bytes)
{
    const uint8_t *e = v->data + PEN_BLOCK_HEADER_BYTES + (size_t)sample * PEN_KEY_ENTRY_BYTES;
    *ret_key = v->data + pen__load64(e);
    *ret_bytes = pen__load32(e + 8);
}

PenBlobEntry pen__block_blob(const PenBlockView *v, uint32_t sample, uint32_t field)
{
    const uint8_t *e = pen__block_number(v, sample, field);
    return (PenBlobEntry){pen__load64(e), pen__load64(e + 8), pen__load32(e + 16),
                          pen__load32(e + 20)};
}

PenClipEntry pen__block_clip(const PenBlockView *v, uint32_t sample, uint32_t field)
{
    const uint8_t *e = pen__block_number(v, sample, field);
    return (PenClipEntry){.offset = pen__load64(e),
                          .bytes = pen__load64(e + 8),
                          .n_frames = pen__load32(e + 16),
                          .kind = pen__load32(e + 20),
                          .table_offset = pen__load64(e + 24),
                          .table_bytes = pen__load64(e + 32),
                          .source_bytes = pen__load64(e + 40)};
}

uint32_t pen__block_images(const PenBlockView *v, uint32_t sample, uint32_t field)
{
    int type = v->schema->fields[field].type;
    if (type != PEN_TYPE_CLIP)
        return type == PEN_TYPE_IMAGE;
    PenClipEntry e = pen__block_clip(v, sample, field);
    return e.kind == PEN_CLIP_IMAGES ? e.n_frames : 0;
}

bool pen__block_video(const PenBlockView *v, uint32_t sample, uint32_t field, PenVideoTable *ret)
{
    if (v->schema->fields[field].type != PEN_TYPE_CLIP)
        return false;
    PenClipEntry e = pen__block_clip(v, sample, field);
    if (e.kind == PEN_CLIP_VIDEO)
        *ret = pen__video_table_open(v->data + e.table_offset, e.table_bytes, e.bytes, e.n_frames);
    return e.kind == PEN_CLIP_VIDEO;
}

static PenImageEntry load_image(const uint8_t *e)
{
    return (PenImageEntry){.offset = pen__load64(e),
                           .bytes = pen__load64(e + 8),
                           .width = pen__load32(e + 16),
                           .height = pen__load32(e + 20),
                           .codec = e[24],
                           .how = e[25],
                           .orientation = e[26],
                           .channels = e[27],
                           .crc = pen__load32(e + 28),
                           .table_offset = pen__load64(e + 32),
                           .table_bytes = pen__load64(e + 40),
                           .timestamp_ns = (int64_t)pen__load64(e + 48),
                           .source_bytes = pen__load64(e + 56)};
}

PenImageEntry pen__block_image(const PenBlockView *v, uint32_t sample, uint32_t field,
                               uint32_t frame)
{
    const uint8_t *e = pen__block_number(v, sample, field);
    if (v->schema->fields[field].type == PEN_TYPE_CLIP)
        e = v->data + pen__load64(e + 24) + (size_t)frame * PEN_IMAGE_ENTRY_BYTES;
    return load_image(e);
}

PenSegmentTable pen__block_segments(const PenBlockView *v, const PenImageEntry *e)
{
    PenSegmentTable t = {0};
    pen__segments_read(&t, v->data + e->table_offset, e->table_bytes, e->bytes);
    return t;
}

bool pen__block_is_indexed(const PenBlockView *v, const PenImageEntry *e)
{
    return e->codec == PEN_STORED_JPEG &&
           pen__is_entry_table(v->data + e->table_offset, e->table_bytes);
}

PenEntryTable pen__block_entries(const PenBlockView *v, const PenImageEntry *e)
{
    PenEntryTable t = {0};
    pen__entry_table_read(&t, v->data + e->table_offset, e->table_bytes, e->bytes, e->width,
                          e->height);
    return t;
}

PenPlace pen__block_place(const PenBlockView *v, uint32_t sample, uint32_t field, uint32_t frame)
{
    return (PenPlace){
        .id = v->id, .block = v->block, .sample = sample, .field = field, .frame = frame};
}

/* Walking the index in its order: every payload and table has to begin where the one before ended.
 */
typedef struct Walk {
    const PenBlockView *v;
    uint64_t heap;    /* where the next key or table has to be */
    uint64_t payload; /* and the next payload */
} Walk;

static int all_zero(const uint8_t *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (p[i])
            return 0;
    return 1;
}

static const char *take_payload(Walk *w, uint64_t offset, uint64_t bytes)
{
    if (offset != w->payload)
        return "payload does not follow the one before it";
    if (bytes > w->v->sections_offset - w->payload)
        return "payload larger than its block";
    w->payload += bytes;
    return NULL;
}

static const char *take_heap(Walk *w, uint64_t offset, uint64_t bytes)
{
    if (offset != w->heap)
        return "table does not follow the one before it";
    if (bytes > w->v->index_bytes - w->heap)
        return "table larger than the index";
    w->heap += bytes;
    return NULL;
}

static const char *check_tiles(const PenImageEntry *e, const PenSegmentTable *t)
{
    if (t->unit == 0 || t->length_bytes == 0 || t->head_bytes == 0)
        return "segment table does not match a tiled JPEG";
    if (t->components != e->channels)
        return "number of components differs from the channels of the JPEG";
    if ((t->components != 1 && t->components != 3) || t->h_samp < 1 || t->h_samp > 2 ||
        t->v_samp < 1 || t->v_samp > 2 || (t->components == 1 && t->h_samp * t->v_samp != 1))
        return "chroma subsampling is not that of a tiled JPEG";
    uint64_t across = ((uint64_t)e->width + 8u * t->h_samp - 1) / (8u * t->h_samp);
    uint64_t down = ((uint64_t)e->height + 8u * t->v_samp - 1) / (8u * t->v_samp);
    if (e->width > 65535 || e->height > 65535 ||
        (across * down + t->unit - 1) / t->unit != t->n_segments)
        return "number of segments does not match the size of the JPEG";
    return NULL;
}

static const char *check_rows(const PenImageEntry *e, const PenSegmentTable *t)
{
    uint64_t row = (uint64_t)e->width * e->channels;
    if (t->unit || t->length_bytes || t->head_bytes || t->components || t->h_samp || t->v_samp ||
        t->n_segments != e->height || t->equal_bytes != row)
        return "segment table does not match raw rows";
    return NULL;
}

/* No other table will do. */
static int needs_entries(const PenImageEntry *e)
{
    return e->how == PEN_HOW_INDEXED || e->how == PEN_HOW_CONVERTED;
}

/* Only what was tiled or has an index has a table, and raw pixels; nothing else does. */
static int has_table(const PenImageEntry *e)
{
    int cut = e->how == PEN_HOW_TILED || e->how == PEN_HOW_ENCODED ||
              e->how == PEN_HOW_KEPT_QUALITY || needs_entries(e);
    return e->codec == PEN_STORED_RAW || (e->codec == PEN_STORED_JPEG && cut);
}

/* An encoded JPEG that is too small for an index, in a pack that older readers refuse anyway. */
static int may_lack_table(const PenBlockView *v, const PenImageEntry *e)
{
    return v->schema->has_entries && e->codec == PEN_STORED_JPEG && e->how == PEN_HOW_ENCODED;
}

static const char *check_entries_of(const PenBlockView *v, const PenImageEntry *e)
{
    PenEntryTable t;
    if (!v->schema->has_entries)
        return "entry table in a pack without such tables";
    if (e->how == PEN_HOW_TILED)
        return "entry table of a tiled JPEG";
    const char *wrong = pen__entry_table_read(&t, v->data + e->table_offset, e->table_bytes,
                                              e->bytes, e->width, e->height);
    if (!wrong && t.stored.plan.components != e->channels)
        wrong = "number of components differs from the channels of the JPEG";
    return wrong;
}

static const char *check_table(Walk *w, const PenImageEntry *e)
{
    if ((e->table_bytes != 0) != has_table(e) && (e->table_bytes || !may_lack_table(w->v, e)))
        return "table missing or unexpected";
    if (e->table_bytes == 0)
        return e->table_offset ? "offset of a segment table that does not exist" : NULL;
    const char *wrong = take_heap(w, e->table_offset, e->table_bytes);
    if (wrong)
        return wrong;
    if (pen__block_is_indexed(w->v, e))
        return check_entries_of(w->v, e);
    if (needs_entries(e))
        return "segment table in the place of an entry table";
    PenSegmentTable t;
    wrong = pen__segments_read(&t, w->v->data + e->table_offset, e->table_bytes, e->bytes);
    if (wrong)
        return wrong;
    return e->codec == PEN_STORED_JPEG ? check_tiles(e, &t) : check_rows(e, &t);
}

static const char *check_image(Walk *w, const uint8_t *entry)
{
    PenImageEntry e = load_image(entry);
    const char *wrong = take_payload(w, e.offset, e.bytes);
    if (wrong)
        return wrong;
    if (e.codec == PEN_STORED_NONE)
        return all_zero(entry + 8, PEN_IMAGE_ENTRY_BYTES - 8)
                   ? NULL
                   : "missing image with a non-empty entry";
    if (e.codec > PEN_STORED_RAW || e.how >= PEN_HOW_COUNT ||
        (needs_entries(&e) && e.codec != PEN_STORED_JPEG))
        return "unknown codec or storage mode";
    if ((e.codec == PEN_STORED_RAW) != (e.how == PEN_HOW_RAW))
        return "codec and storage mode do not match";
    if (e.width == 0 || e.height == 0 || e.bytes == 0 || e.orientation < 1 || e.orientation > 8 ||
        e.channels < 1 || e.channels > 4 || e.channels == 2)
        return "image size, orientation or channels out of range";
    return check_table(w, &e);
}

/* The packets are checked when they are needed, and by pen__video_table_check. */
static const char *check_video(Walk *w, const uint8_t *entry)
{
    PenVideoTable t;
    uint64_t bytes = pen__load64(entry + 8), source_bytes = pen__load64(entry + 40);
    uint64_t table = pen__load64(entry + 24), table_bytes = pen__load64(entry + 32);
    if (!w->v->schema->has_videos)
        return "video in a pack without videos";
    const char *wrong = take_payload(w, pen__load64(entry), bytes);
    if (!wrong)
        wrong = take_heap(w, table, table_bytes);
    if (!wrong)
        wrong = pen__video_table_read(&t, w->v->data + table, table_bytes, bytes,
                                      pen__load32(entry + 16));
    if (wrong)
        return wrong;
    bool is_part = t.stream.container == PEN_CONTAINER_PART;
    return is_part ? bytes > source_bytes ? "part of a video larger than its file" : NULL
           : bytes != source_bytes ? "video of another size than its file"
                                   : NULL;
}

static const char *check_clip(Walk *w, const uint8_t *entry)
{
    if (pen__load32(entry + 20) == PEN_CLIP_VIDEO)
        return check_video(w, entry);
    uint64_t offset = pen__load64(entry);
    uint64_t bytes = pen__load64(entry + 8);
    uint32_t n = pen__load32(entry + 16);
    uint64_t table = pen__load64(entry + 24);
    uint64_t table_bytes = pen__load64(entry + 32);
    if (!all_zero(entry + 20, 4) || !all_zero(entry + 40, 8))
        return "clip entry is not valid";
    if (n == 0)
        return offset == w->payload && bytes == 0 && table == 0 && table_bytes == 0
                   ? NULL
                   : "clip without frames has a non-empty entry";
    if (offset != w->payload)
        return "payload does not follow the one before it";
    uint64_t heap_end, payload_end;
    if (pen__add_over(table, table_bytes, &heap_end) || pen__add_over(offset, bytes, &payload_end))
        return "clip is larger than its block";
    const char *wrong = take_heap(w, table, (uint64_t)n * PEN_IMAGE_ENTRY_BYTES);
    for (uint32_t i = 0; i < n && !wrong; i++) {
        const uint8_t *frame = w->v->data + table + (size_t)i * PEN_IMAGE_ENTRY_BYTES;
        wrong = frame[24] == PEN_STORED_NONE ? "clip with a missing frame" : check_image(w, frame);
    }
    if (!wrong && (w->heap != heap_end || w->payload != payload_end))
        wrong = "frames do not add up to the clip";
    return wrong;
}

static const char *check_blob(Walk *w, const uint8_t *e, const PenField *f)
{
    uint32_t flags = pen__load32(e + 20);
    if (flags & ~(f->flags & PEN_FIELD_OPTIONAL ? PEN_BLOB_MISSING : 0u))
        return "entry is not valid";
    if (flags && pen__load64(e + 8))
        return "missing value with a non-empty entry";
    if (pen__load64(e + 8) % pen__field_row_bytes(f))
        return "value with an incomplete row";
    return take_payload(w, pen__load64(e), pen__load64(e + 8));
}

static const char *check_value(Walk *w, uint32_t sample, uint32_t field)
{
    const uint8_t *e = pen__block_number(w->v, sample, field);
    const PenField *f = &w->v->schema->fields[field];
    if (f->type == PEN_TYPE_IMAGE)
        return pen__load64(e + 48) ? "image with a timestamp" : check_image(w, e);
    if (f->type == PEN_TYPE_CLIP)
        return check_clip(w, e);
    return pen__field_is_blob(f) ? check_blob(w, e, f) : NULL;
}

static const char *check_key(Walk *w, uint32_t sample)
{
    const uint8_t *e = w->v->data + PEN_BLOCK_HEADER_BYTES + (size_t)sample * PEN_KEY_ENTRY_BYTES;
    uint32_t bytes = pen__load32(e + 8);
    if (bytes < 1 || bytes > PEN_MAX_KEY_BYTES || !all_zero(e + 12, 4))
        return "key is empty or too long";
    return take_heap(w, pen__load64(e), bytes);
}

static int check_entries(const PenBlockView *v, const char *name, PenError *reterr)
{
    Walk w = {v, column_of(v, v->schema->n_fields), v->index_bytes};
    const char *wrong = NULL;
    uint32_t sample = 0;
    uint32_t field = 0;
    if (w.heap > v->index_bytes)
        wrong = "index too short for its samples";
    for (uint32_t i = 0; i < v->n_samples && !wrong; i++) {
        sample = i;
        wrong = check_key(&w, i);
    }
    for (uint32_t i = 0; i < v->n_samples && !wrong; i++)
        for (uint32_t f = 0; f < v->schema->n_fields && !wrong; f++) {
            sample = i;
            field = f;
            wrong = check_value(&w, i, f);
        }
    if (!wrong && v->index_bytes - w.heap != (uint64_t)v->n_sections * PEN_SECTION_SUM_BYTES)
        wrong = "index has unused bytes";
    if (!wrong && w.payload != v->sections_offset)
        wrong = "block has unused bytes";
    if (!wrong)
        return PEN_OK;
    return pen__fail(reterr, PEN_E_CORRUPT, WHERE, "%s: block %u: sample %u, field '%s': %s", name,
                     v->block, sample, v->schema->fields[field].name, wrong);
}

static int check_header(const PenBlockView *v, const PenBlockEntry *entry, const char *name,
                        PenError *reterr)
{
    const uint8_t *h = v->data;
    PenPlace place = {.id = v->id, .block = v->block, .sample = PEN_ALL};
    place.field = PEN_PART_BLOCK_HEADER;
    uint32_t sum = pen__place_sum(&place, h + 8, PEN_BLOCK_HEADER_BYTES - 8);
    if (memcmp(h, "PENB", 4) != 0 || sum != pen__load32(h + 4))
        return pen__fail(
            reterr, PEN_E_CORRUPT, WHERE,
            "%s: block %u, offset %" PRIu64
            ": header checksum 0x%08x, expected 0x%08x: the block is damaged or misplaced",
            name, v->block, entry->offset, sum, pen__load32(h + 4));
    if (pen__load32(h + 8) != v->block || v->n_samples != entry->n_samples ||
        v->bytes != entry->bytes || v->index_bytes != entry->index_bytes ||
        pen__load32(h + 44) != entry->index_crc || v->sections_offset > v->bytes ||
        v->sections_offset < v->index_bytes || !all_zero(h + 48, 16) ||
        (v->n_sections == 0) != (v->sections_offset == v->bytes))
        return pen__fail(reterr, PEN_E_CORRUPT, WHERE,
                         "%s: block %u, offset %" PRIu64
                         ": the header does not match the shard's block table",
                         name, v->block, entry->offset);
    place.field = PEN_PART_INDEX;
    sum = pen__place_sum(&place, h + PEN_BLOCK_HEADER_BYTES,
                         (size_t)v->index_bytes - PEN_BLOCK_HEADER_BYTES);
    if (sum != entry->index_crc)
        return pen__fail(reterr, PEN_E_CORRUPT, WHERE,
                         "%s: block %u, offset %" PRIu64
                         ": index checksum 0x%08x, expected 0x%08x: its samples cannot be read",
                         name, v->block, entry->offset, sum, entry->index_crc);
    return PEN_OK;
}

int pen__block_view(PenBlockView *ret, const PenSchema *schema, const uint8_t *id, uint32_t block,
                    const PenBlockEntry *entry, const uint8_t *data, const char *name,
                    PenError *reterr)
{
    PenBlockView v = {.schema = schema,
                      .data = data,
                      .bytes = pen__load64(data + 16),
                      .index_bytes = pen__load64(data + 24),
                      .sections_offset = pen__load64(data + 32),
                      .n_samples = pen__load32(data + 12),
                      .n_sections = pen__load32(data + 40),
                      .id = id,
                      .block = block};
    int r = check_header(&v, entry, name, reterr);
    if (r == PEN_OK)
        r = check_entries(&v, name, reterr);
    if (r == PEN_OK)
        *ret = v;
    return r;
}
