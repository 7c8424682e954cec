/* SPDX-License-Identifier: Apache-2.0 */
#include "pack/format/columns.h"

#include <string.h>

#include "base/bytes.h"
#include "pack/format/place.h"
#include "pack/format/video_table.h"

/* A column of a field. */
typedef struct Column {
    uint32_t field;
    int what;
    uint32_t width;
} Column;

uint32_t pen__column_width(const PenSchema *schema, uint32_t field, int what)
{
    int type = schema->fields[field].type;
    if (what == PEN_COLUMN_VALUE)
        return pen__field_is_number(&schema->fields[field]) ? schema->widths[field] : 0;
    if (what == PEN_COLUMN_SIZE)
        return type == PEN_TYPE_IMAGE || type == PEN_TYPE_CLIP ? 8 : 0;
    return what == PEN_COLUMN_FRAMES && type == PEN_TYPE_CLIP ? 4 : 0;
}

/* The next column that a section has, in its order; field PEN_ALL: there is none. */
static Column next_column(const PenSchema *schema, uint32_t field, int what)
{
    for (; field < schema->n_fields; field++, what = 0)
        for (; what < PEN_COLUMN_COUNT; what++) {
            uint32_t width = pen__column_width(schema, field, what);
            if (width && width <= PEN_MAX_COLUMN_WIDTH)
                return (Column){field, what, width};
        }
    return (Column){.field = PEN_ALL};
}

static Column first_column(const PenSchema *schema)
{
    return next_column(schema, 0, 0);
}

static Column column_after(const PenSchema *schema, Column c)
{
    return next_column(schema, c.field, c.what + 1);
}

/* n is below 2^32 and there are few columns of few bytes: no sum is too large. */
static uint64_t column_bytes(Column c, uint64_t n)
{
    return n * c.width + PEN_COLUMN_SUM_BYTES;
}

uint64_t pen__columns_bytes(const PenSchema *schema, uint64_t n)
{
    uint64_t bytes = 0;
    for (Column c = first_column(schema); c.field != PEN_ALL; c = column_after(schema, c))
        bytes += column_bytes(c, n);
    return bytes ? PEN_BLOCK_SECTION_BYTES + bytes : 0;
}

bool pen__column_find(const PenSchema *schema, uint64_t n, uint32_t field, int what,
                      uint64_t *ret_offset)
{
    uint64_t at = PEN_BLOCK_SECTION_BYTES;
    Column c = first_column(schema);
    for (; c.field != PEN_ALL && (c.field != field || c.what != what); c = column_after(schema, c))
        at += column_bytes(c, n);
    *ret_offset = at;
    return c.field != PEN_ALL;
}

uint32_t pen__column_sum(const uint8_t *id, uint32_t field, int what, const void *values,
                         size_t bytes)
{
    PenPlace place = {.id = id,
                      .block = PEN_ALL,
                      .sample = PEN_ALL,
                      .field = PEN_PART_COLUMN,
                      .frame = field,
                      .run = (uint32_t)what};
    return pen__place_sum(&place, values, bytes);
}

/* ---- values of a block ----------------------------------------------------------------------- */

/* Width and height of an image as it is shown. */
static void store_size(const uint8_t *entry, uint8_t *ret)
{
    bool is_turned = entry[26] >= 5;
    memcpy(ret, entry + (is_turned ? 20 : 16), 4);
    memcpy(ret + 4, entry + (is_turned ? 16 : 20), 4);
}

static void store_video_size(const uint8_t *index, const uint8_t *entry, uint8_t *ret)
{
    uint32_t size[2];
    PenVideoTable t =
        pen__video_table_open(index + pen__load64(entry + 24), pen__load64(entry + 32),
                              pen__load64(entry + 8), pen__load32(entry + 16));
    pen__video_shown_size(&t, size);
    memcpy(ret, size, sizeof size);
}

static void store_clip(const uint8_t *index, const uint8_t *entry, int what, uint8_t *ret)
{
    if (what == PEN_COLUMN_FRAMES)
        memcpy(ret, entry + 16, 4);
    else if (pen__load32(entry + 20) == PEN_CLIP_VIDEO)
        store_video_size(index, entry, ret);
    else if (pen__load32(entry + 16))
        store_size(index + pen__load64(entry + 24), ret);
    else
        memset(ret, 0, 8);
}

void pen__column_values(const PenSchema *schema, const uint8_t *index, uint32_t n, uint32_t field,
                        int what, uint8_t *ret)
{
    uint32_t width = pen__column_width(schema, field, what);
    uint32_t step = schema->widths[field];
    const uint8_t *entry = index + PEN_BLOCK_HEADER_BYTES + (size_t)n * PEN_KEY_ENTRY_BYTES;
    for (uint32_t f = 0; f < field; f++)
        entry += (size_t)n * schema->widths[f];
    if (what == PEN_COLUMN_VALUE) {
        memcpy(ret, entry, (size_t)n * width);
        return;
    }
    bool is_clip = schema->fields[field].type == PEN_TYPE_CLIP;
    for (uint32_t i = 0; i < n; i++, entry += step, ret += width)
        if (is_clip)
            store_clip(index, entry, what, ret);
        else
            store_size(entry, ret);
}

/* ---- writing --------------------------------------------------------------------------------- */

static uint32_t count_columns(const PenSchema *schema)
{
    uint32_t n = 0;
    for (Column c = first_column(schema); c.field != PEN_ALL; c = column_after(schema, c))
        n++;
    return n;
}

void pen__columns_free(PenColumns *c, const PenSchema *schema)
{
    uint32_t n = c->values ? count_columns(schema) : 0;
    for (uint32_t i = 0; i < n; i++)
        pen__buf_free(&c->values[i]);
    pen__free(c->values);
    c->values = NULL;
}

static int add_values(const PenColumns *c, const PenSchema *schema, const uint8_t *index,
                      uint32_t n)
{
    PenBuf *to = c->values;
    for (Column k = first_column(schema); k.field != PEN_ALL; k = column_after(schema, k), to++) {
        size_t bytes = (size_t)n * k.width;
        int r = pen__buf_reserve(to, bytes);
        if (r < 0)
            return r;
        pen__column_values(schema, index, n, k.field, k.what, to->data + to->bytes);
        to->bytes += bytes;
    }
    return PEN_OK;
}

/* Who reads blocks needs memory for the largest one. */
static bool is_too_large(const PenColumns *c, uint64_t bytes)
{
    return bytes > PEN_MAX_SMALL_COLUMNS && bytes > c->largest_block / 4;
}

int pen__columns_add(PenColumns *c, const PenSchema *schema, const uint8_t *index, uint32_t n,
                     uint64_t bytes)
{
    c->n += n;
    c->largest_block = PEN_MAX(c->largest_block, bytes);
    uint64_t all = pen__columns_bytes(schema, c->n);
    c->is_dropped = c->is_dropped || !all || is_too_large(c, all);
    if (c->is_dropped) {
        pen__columns_free(c, schema);
        return PEN_OK;
    }
    if (!c->values)
        c->values = pen__zalloc(count_columns(schema) * sizeof *c->values);
    return c->values ? add_values(c, schema, index, n) : PEN_E_NO_MEMORY;
}

int pen__columns_write(const PenColumns *c, const PenSchema *schema, const uint8_t *id, PenBuf *out)
{
    uint8_t h[PEN_BLOCK_SECTION_BYTES] = "COLS", sum[PEN_COLUMN_SUM_BYTES];
    out->bytes = 0;
    if (c->is_dropped)
        return PEN_OK;
    pen__store64(h + 24, pen__columns_bytes(schema, c->n) - sizeof h);
    int r = pen__buf_add(out, h, sizeof h);
    const PenBuf *from = c->values;
    for (Column k = first_column(schema); k.field != PEN_ALL && r == PEN_OK;
         k = column_after(schema, k), from++) {
        r = pen__buf_add(out, from->data, from->bytes);
        pen__store32(sum, pen__column_sum(id, k.field, k.what, from->data, from->bytes));
        if (r == PEN_OK)
            r = pen__buf_add(out, sum, sizeof sum);
    }
    return r;
}
