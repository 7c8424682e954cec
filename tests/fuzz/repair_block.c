/* SPDX-License-Identifier: Apache-2.0 */
/* The checksums and offsets in a block. Written apart from the library's reader, which it is to
 * test: it goes on where that stops, and looks at nothing outside of the block. */
#include "repair_block.h"

#include <stdbool.h>
#include <string.h>

#include "base/bytes.h"
#include "pack/format/columns.h"
#include "pack/format/keys.h"
#include "pack/format/place.h"
#include "pack/format/video_table.h"

typedef struct Walk {
    uint8_t *data;
    uint64_t bytes, index_bytes;
    uint64_t heap, payload; /* where the next table and the next payload belong */
    uint8_t *last_size;     /* in the last entry whose payload may have any size */
    PenPlace place;
    int what;
} Walk;

static void put_entry(const Walk *w, uint8_t *at, uint64_t offset)
{
    if (w->what & REPAIR_ENTRIES)
        pen__store64(at, offset);
}

static bool inside(const Walk *w, uint64_t offset, uint64_t bytes)
{
    return pen__range_ok(offset, bytes, w->bytes);
}

static uint64_t length_at(const uint8_t *lengths, unsigned width, uint64_t equal, uint64_t i)
{
    return width == 2   ? pen__load16(lengths + 2 * i)
           : width == 4 ? pen__load32(lengths + 4 * i)
                        : equal;
}

/* The checksums of all runs that lie in the payload and have a place in the table. */
static void sum_runs(Walk *w, uint8_t *table, uint64_t table_bytes, const uint8_t *payload,
                     uint64_t payload_bytes)
{
    uint64_t n = pen__load32(table + 4);
    uint64_t n_runs = pen__load32(table + 8);
    unsigned width = table[14];
    uint64_t at = pen__load32(table);
    if (PEN_SEGMENT_HEADER_BYTES + 4 * n_runs + width * n > table_bytes || !n || at > payload_bytes)
        return;
    const uint8_t *lengths = table + PEN_SEGMENT_HEADER_BYTES + 4 * n_runs;
    uint64_t equal = (payload_bytes - at) / n;
    uint64_t i = 0;
    for (uint64_t run = 0; run < n_runs && i < n; run++) {
        uint64_t bytes = 0;
        while (i < n && bytes < PEN_RUN_BYTES && (equal || width))
            bytes += length_at(lengths, width, equal, i++);
        if (!pen__range_ok(at, bytes, payload_bytes))
            return;
        w->place.run = (uint32_t)run + 1;
        pen__store32(table + PEN_SEGMENT_HEADER_BYTES + 4 * run,
                     pen__place_sum(&w->place, payload + at, (size_t)bytes));
        at += bytes;
    }
}

/* The checksums of the parts of an indexed JPEG that lie in the payload. */
static void sum_parts(Walk *w, uint8_t *table, uint64_t table_bytes, const uint8_t *payload,
                      uint64_t payload_bytes)
{
    uint64_t head = pen__load32(table), n = pen__load32(table + 8), at = pen__load32(table + 20);
    uint64_t scan_end = head + pen__load32(table + 24);
    if (PEN_ENTRY_HEADER_BYTES + 4 * n > table_bytes)
        return;
    for (uint64_t i = 0; i < n; i++) {
        uint64_t end = i == 0       ? head
                       : i + 1 == n ? payload_bytes
                                    : PEN_MIN(at + PEN_RUN_BYTES, scan_end);
        if (end < at || end > payload_bytes)
            return;
        w->place.run = (uint32_t)i + 1;
        pen__store32(table + PEN_ENTRY_HEADER_BYTES + 4 * i,
                     pen__place_sum(&w->place, payload + at, (size_t)(end - at)));
        at = end;
    }
}

static void walk_image(Walk *w, uint8_t *e)
{
    uint64_t table_bytes = pen__load64(e + 40);
    put_entry(w, e, w->payload);
    if (table_bytes)
        put_entry(w, e + 32, w->heap);
    uint64_t offset = pen__load64(e), bytes = pen__load64(e + 8), table = pen__load64(e + 32);
    if (e[24] && !table_bytes)
        w->last_size = e + 8;
    w->payload += bytes;
    w->heap += table_bytes;
    if (!(w->what & REPAIR_SUMS) || !inside(w, offset, bytes) || !e[24])
        return;
    uint64_t head = bytes;
    w->place.run = 0;
    if (table_bytes >= PEN_SEGMENT_HEADER_BYTES && inside(w, table, table_bytes)) {
        uint8_t *t = w->data + table;
        bool indexed = t[14] == 1 && table_bytes >= PEN_ENTRY_HEADER_BYTES;
        (indexed ? sum_parts : sum_runs)(w, t, table_bytes, w->data + offset, bytes);
        head = PEN_MIN(bytes, pen__load32(t + (indexed ? 20 : 0)));
    }
    w->place.run = 0;
    pen__store32(e + 28, pen__place_sum(&w->place, w->data + offset, (size_t)head));
}

static void walk_video(Walk *w, uint8_t *e)
{
    put_entry(w, e, w->payload);
    put_entry(w, e + 24, w->heap);
    uint64_t offset = pen__load64(e), bytes = pen__load64(e + 8);
    uint64_t table = pen__load64(e + 24), table_bytes = pen__load64(e + 32);
    uint64_t n_runs = pen__video_runs(bytes);
    w->payload += bytes;
    w->heap += table_bytes;
    if (w->what & REPAIR_SUMS && inside(w, offset, bytes) && inside(w, table, table_bytes) &&
        PEN_VIDEO_HEADER_BYTES + 4 * n_runs <= table_bytes)
        pen__video_table_seal(w->data + table, NULL, w->data + offset, bytes, w->place);
}

static void walk_clip(Walk *w, uint8_t *e)
{
    if (pen__load32(e + 20) == PEN_CLIP_VIDEO) {
        walk_video(w, e);
        return;
    }
    uint32_t n = pen__load32(e + 16);
    uint64_t heap = w->heap, payload = w->payload;
    put_entry(w, e, w->payload);
    if (n)
        put_entry(w, e + 24, w->heap);
    uint64_t table = pen__load64(e + 24);
    uint64_t frames = (uint64_t)n * PEN_IMAGE_ENTRY_BYTES;
    w->heap += frames;
    if (!inside(w, table, frames))
        return;
    for (uint32_t i = 0; i < n; i++) {
        w->place.frame = i;
        walk_image(w, w->data + table + (size_t)i * PEN_IMAGE_ENTRY_BYTES);
    }
    w->place.frame = 0;
    put_entry(w, e + 8, w->payload - payload);
    put_entry(w, e + 32, w->heap - heap);
}

static void walk_blob(Walk *w, uint8_t *e)
{
    put_entry(w, e, w->payload);
    uint64_t offset = pen__load64(e), bytes = pen__load64(e + 8);
    w->last_size = e + 8;
    w->payload += bytes;
    w->place.run = 0;
    if (w->what & REPAIR_SUMS && inside(w, offset, bytes))
        pen__store32(e + 16, pen__place_sum(&w->place, w->data + offset, (size_t)bytes));
}

static void walk_value(Walk *w, const PenSchema *schema, uint32_t field, uint8_t *e)
{
    int type = schema->fields[field].type;
    if (type == PEN_TYPE_IMAGE)
        walk_image(w, e);
    else if (type == PEN_TYPE_CLIP)
        walk_clip(w, e);
    else if (pen__field_is_blob(&schema->fields[field]))
        walk_blob(w, e);
}

static void walk_keys(Walk *w, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        uint8_t *e = w->data + PEN_BLOCK_HEADER_BYTES + (size_t)i * PEN_KEY_ENTRY_BYTES;
        put_entry(w, e, w->heap);
        w->heap += pen__load32(e + 8);
    }
}

static void walk_index(Walk *w, const PenSchema *schema, uint32_t n)
{
    uint64_t row = PEN_KEY_ENTRY_BYTES;
    for (uint32_t f = 0; f < schema->n_fields; f++)
        row += schema->widths[f];
    w->heap = PEN_BLOCK_HEADER_BYTES + row * n;
    w->payload = w->index_bytes;
    if (w->heap > w->index_bytes)
        return;
    walk_keys(w, n);
    for (uint32_t i = 0; i < n; i++) {
        uint64_t column = PEN_BLOCK_HEADER_BYTES + (uint64_t)n * PEN_KEY_ENTRY_BYTES;
        for (uint32_t f = 0; f < schema->n_fields; f++) {
            w->place.sample = i;
            w->place.field = f;
            walk_value(w, schema, f, w->data + column + (uint64_t)i * schema->widths[f]);
            column += (uint64_t)n * schema->widths[f];
        }
    }
}

/* The bytes of all sections, from where they are now. */
static uint64_t section_bytes(const Walk *w)
{
    uint64_t start = pen__load64(w->data + 32), at = start;
    uint32_t n = pen__load32(w->data + 40);
    for (uint32_t i = 0; i < n && inside(w, at, PEN_BLOCK_SECTION_BYTES); i++)
        at += PEN_BLOCK_SECTION_BYTES + pen__load64(w->data + at + 24);
    return at - start;
}

/* Makes the sizes fit each other: the index ends behind the last table, and the last payload takes
 * what the block has too much or too little. */
static void fit_sizes(Walk *w, const PenSchema *schema, uint32_t n)
{
    uint64_t sections = section_bytes(w);
    walk_index(w, schema, n);
    uint64_t index = w->heap + (uint64_t)pen__load32(w->data + 40) * PEN_SECTION_SUM_BYTES;
    uint64_t payloads = w->payload - w->index_bytes;
    if (index > w->bytes || index < PEN_BLOCK_HEADER_BYTES || sections > w->bytes - index)
        return;
    uint64_t room = w->bytes - index - sections;
    if (w->last_size && payloads != room) {
        uint64_t size = pen__load64(w->last_size) + room - payloads;
        pen__store64(w->last_size, size && size <= room ? size : 1);
    }
    w->index_bytes = index;
    pen__store64(w->data + 24, index);
    pen__store64(w->data + 32, w->bytes - sections);
}

/* Their checksums end the index. */
static void sum_sections(const Walk *w)
{
    uint64_t at = pen__load64(w->data + 32);
    uint64_t n = pen__load32(w->data + 40);
    uint64_t sums = w->index_bytes - n * PEN_SECTION_SUM_BYTES;
    for (uint32_t i = 0; i < n && inside(w, at, PEN_BLOCK_SECTION_BYTES); i++) {
        uint64_t bytes = PEN_BLOCK_SECTION_BYTES + pen__load64(w->data + at + 24);
        uint64_t sum_at = sums + (uint64_t)i * PEN_SECTION_SUM_BYTES;
        if (bytes < PEN_BLOCK_SECTION_BYTES || !inside(w, at, bytes) ||
            !inside(w, sum_at, PEN_SECTION_SUM_BYTES))
            return;
        PenPlace place = {
            .id = w->place.id, .block = w->place.block, .sample = PEN_SAMPLE_SECTION, .field = i};
        pen__store32(w->data + sum_at, pen__place_sum(&place, w->data + at, (size_t)bytes));
        at += bytes;
    }
}

static void sum_index(const Walk *w, uint8_t *entry)
{
    PenPlace place = {.id = w->place.id, .block = w->place.block, .sample = PEN_ALL};
    place.field = PEN_PART_INDEX;
    uint32_t sum = pen__place_sum(&place, w->data + PEN_BLOCK_HEADER_BYTES,
                                  (size_t)w->index_bytes - PEN_BLOCK_HEADER_BYTES);
    pen__store32(w->data + 44, sum);
    pen__store32(entry + 24, sum);
    place.field = PEN_PART_BLOCK_HEADER;
    pen__store32(w->data + 4, pen__place_sum(&place, w->data + 8, PEN_BLOCK_HEADER_BYTES - 8));
}

void repair_block(Part block, const uint8_t *id, uint32_t number, const PenSchema *schema,
                  uint8_t *entry, int what)
{
    uint8_t *data = block.data;
    size_t bytes = block.bytes;
    if (bytes < PEN_BLOCK_HEADER_BYTES)
        return;
    if (what & REPAIR_PLACES) {
        memcpy(data, "PENB", 4);
        pen__store32(data + 8, number);
        pen__store32(entry + 28, pen__load32(data + 12));
        pen__store64(data + 16, bytes);
        memset(data + 48, 0, 16);
    }
    Walk w = {.data = data,
              .bytes = bytes,
              .index_bytes = pen__load64(data + 24),
              .place = {.id = id, .block = number},
              .what = what};
    uint32_t n = pen__load32(data + 12);
    if (w.index_bytes < PEN_BLOCK_HEADER_BYTES || w.index_bytes > bytes)
        return;
    if (schema && n <= bytes) {
        if (what & REPAIR_ENTRIES)
            fit_sizes(&w, schema, n);
        walk_index(&w, schema, n);
    }
    if (what & REPAIR_PLACES)
        pen__store64(entry + 16, w.index_bytes);
    if (!(what & REPAIR_SUMS))
        return;
    sum_sections(&w);
    sum_index(&w, entry);
}

void repair_columns(Part last, const uint8_t *id, uint64_t n_samples, const PenSchema *schema)
{
    uint64_t bytes = pen__columns_bytes(schema, n_samples), at;
    if (!bytes || bytes > last.bytes)
        return;
    uint8_t *section = last.data + last.bytes - bytes;
    for (uint32_t f = 0; f < schema->n_fields && memcmp(section, "COLS", 4) == 0; f++)
        for (int what = 0; what < PEN_COLUMN_COUNT; what++)
            if (pen__column_find(schema, n_samples, f, what, &at)) {
                uint64_t size = n_samples * pen__column_width(schema, f, what);
                pen__store32(section + at + size,
                             pen__column_sum(id, f, what, section + at, (size_t)size));
            }
}

uint64_t block_key_hash(const uint8_t *data, uint64_t bytes, uint32_t sample)
{
    uint64_t at = PEN_BLOCK_HEADER_BYTES + (uint64_t)sample * PEN_KEY_ENTRY_BYTES;
    if (!pen__range_ok(at, PEN_KEY_ENTRY_BYTES, bytes))
        return 0;
    uint64_t offset = pen__load64(data + at);
    uint32_t key_bytes = pen__load32(data + at + 8);
    return pen__range_ok(offset, key_bytes, bytes) ? pen__key_hash(data + offset, key_bytes) : 0;
}
