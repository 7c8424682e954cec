/* SPDX-License-Identifier: Apache-2.0 */
/* A record of the plan file: the key, then one part for each field.
 *
 *     key_bytes u32, key
 *     for each field: kind u8 (low half: PEN_PART_*, high half: PEN_PATH_*), then
 *       FILE            source u32, bytes u64, and for PEN_PATH_TEXT text_bytes u32, text
 *       RANGE, STREAM   source u32, offset u64, bytes u64, text_bytes u32, text
 *       FRAMES          the same, and no text for PEN_PATH_KEY; offset is the number of frames
 *       VIDEO           the same, with end u64 behind bytes; offset is where it starts
 *       GULP            as FRAMES; the text says where the frames lie
 *       INLINE          bytes u32, data
 *
 * Behind it, and not part of the plan's identity: a stamp of 24 bytes for each FILE, FRAMES and
 * VIDEO, in the order of the fields. */
#include <inttypes.h>
#include <string.h>

#include "base/bytes.h"
#include "ingest/plan/plan_impl.h"

#define WHERE "ingest/plan"

/* ---- writing --------------------------------------------------------------------------------- */

static int add32(PenBuf *out, uint32_t v)
{
    return pen__buf_add(out, &v, sizeof v);
}

static int add64(PenBuf *out, uint64_t v)
{
    return pen__buf_add(out, &v, sizeof v);
}

static int add_text(PenBuf *out, const void *text, uint32_t bytes)
{
    int r = add32(out, bytes);
    return r < 0 ? r : pen__buf_add(out, text, bytes);
}

static int add_place(PenBuf *out, const PenCell *c)
{
    int r = add32(out, c->source);
    if (r == PEN_OK && c->kind != PEN_PART_FILE)
        r = add64(out, c->offset);
    if (r == PEN_OK)
        r = add64(out, c->bytes);
    if (r == PEN_OK && c->kind == PEN_PART_VIDEO)
        r = add64(out, c->end);
    if (r == PEN_OK && c->path != PEN_PATH_KEY)
        r = add_text(out, c->text, c->text_bytes);
    return r;
}

/* The value as the pack stores it. The texts fit: that was checked when the types were chosen. */
static int add_value(PenBuf *out, int32_t type, const PenCell *c)
{
    if (type == PEN_TYPE_TEXT || type == PEN_TYPE_JSON)
        return add_text(out, c->text, c->text_bytes);
    char text[512];
    if (c->text_bytes >= sizeof text)
        return PEN_E_LIMIT;
    memcpy(text, c->text, c->text_bytes);
    text[c->text_bytes] = 0;
    if (type == PEN_TYPE_I64) {
        int64_t v;
        return pen__text_i64(text, &v) ? add_text(out, &v, sizeof v) : PEN_E_INVALID;
    }
    double v;
    if (!pen__text_f64(text, &v))
        return PEN_E_INVALID;
    float single = (float)v;
    return type == PEN_TYPE_F32 ? add_text(out, &single, sizeof single)
                                : add_text(out, &v, sizeof v);
}

static int add_part(PenBuf *out, int32_t type, const PenCell *c)
{
    uint8_t kind = (uint8_t)(c->kind | c->path << 4);
    int r = pen__buf_add(out, &kind, 1);
    if (r < 0 || c->kind == PEN_PART_NONE)
        return r;
    return c->kind == PEN_PART_INLINE ? add_value(out, type, c) : add_place(out, c);
}

static int add_label(PenBuf *out, int64_t number)
{
    uint8_t kind = PEN_PART_INLINE;
    int r = pen__buf_add(out, &kind, 1);
    return r < 0 ? r : add_text(out, &number, sizeof number);
}

/* The cells by field; those of fields the input has nothing for are zero. */
static void place_cells(const PenPlanSchema *shape, const PenInput *input, PenCell *cells)
{
    memset(cells, 0, shape->n_fields * sizeof *cells);
    const uint8_t *at = input->cells;
    for (uint32_t k = 0; k < input->n_cells; k++) {
        PenCell c;
        pen__cell_next(&at, &c);
        cells[shape->field_of_column[c.column]] = c;
    }
}

static int add_stamps(PenBuf *out, const PenCell *cells, uint32_t n)
{
    int r = PEN_OK;
    for (uint32_t k = 0; r == PEN_OK && k < n; k++)
        if (pen__kind_has_stamp(cells[k].kind)) {
            uint8_t stamp[PEN_STAMP_BYTES];
            pen__stamp_store(stamp, &cells[k].stamp);
            r = pen__buf_add(out, stamp, sizeof stamp);
        }
    return r;
}

int pen__record_add(const PenPlanSchema *shape, const PenInput *input, PenBuf *out,
                    size_t *ret_stamps, PenError *reterr)
{
    PenCell cells[PEN_FIELD_LIMIT];
    place_cells(shape, input, cells);
    int r = add_text(out, input->key, input->key_bytes);
    for (uint32_t k = 0; r == PEN_OK && k < shape->n_fields; k++) {
        if ((int32_t)k == shape->label_field)
            r = add_label(out, shape->numbers[input->label]);
        else
            r = add_part(out, shape->fields[k].type, &cells[k]);
        if (r < 0 && r != PEN_E_NO_MEMORY)
            return pen__fail(reterr, r, WHERE, "%.*s: field %s: expected a number, found %.*s",
                             (int)PEN_MIN(input->key_bytes, 200u), (const char *)input->key,
                             shape->fields[k].name, (int)PEN_MIN(cells[k].text_bytes, 60u),
                             cells[k].text);
    }
    *ret_stamps = out->bytes;
    if (r == PEN_OK)
        r = add_stamps(out, cells, shape->n_fields);
    return r < 0 ? pen__fail_memory(reterr, WHERE, "record") : PEN_OK;
}

/* ---- reading --------------------------------------------------------------------------------- */

typedef struct Cursor {
    const uint8_t *p, *end;
    bool ok;
} Cursor;

static const uint8_t *take(Cursor *c, uint64_t bytes)
{
    static const uint8_t zeros[PEN_STAMP_BYTES];
    if (!c->ok || bytes > (uint64_t)(c->end - c->p)) {
        c->ok = false;
        return zeros; /* enough for a number, and no text is looked at when ok is false */
    }
    const uint8_t *p = c->p;
    c->p += bytes;
    return p;
}

static uint32_t take32(Cursor *c)
{
    return pen__load32(take(c, 4));
}

static uint64_t take64(Cursor *c)
{
    return pen__load64(take(c, 8));
}

/* What a field's INLINE value must have; 0 = any. */
static uint32_t value_bytes(const PenField *f)
{
    return f->type == PEN_TYPE_I64 || f->type == PEN_TYPE_F64 ? 8 : f->type == PEN_TYPE_F32 ? 4 : 0;
}

static bool part_fits(const PenRecordFrame *frame, const PenField *f, uint8_t kind, uint8_t path,
                      uint32_t source)
{
    if (value_bytes(f))
        return kind == PEN_PART_INLINE && path == PEN_PATH_NONE;
    if (kind == PEN_PART_NONE)
        return path == PEN_PATH_NONE;
    if (kind == PEN_PART_INLINE)
        return path == PEN_PATH_NONE && f->type != PEN_TYPE_IMAGE && f->type != PEN_TYPE_CLIP;
    if (source >= frame->n_roots)
        return false;
    bool in_tar = frame->roots[source].kind == PEN_ROOT_TAR;
    bool in_gulp = frame->roots[source].kind == PEN_ROOT_GULP;
    bool is_clip = kind >= PEN_PART_FRAMES && kind <= PEN_PART_GULP;
    if (is_clip != (f->type == PEN_TYPE_CLIP))
        return false;
    if (kind == PEN_PART_GULP)
        return in_gulp && path == PEN_PATH_NONE;
    if (kind == PEN_PART_FILE || is_clip)
        return !in_tar && !in_gulp && (path == PEN_PATH_KEY || path == PEN_PATH_TEXT);
    return in_tar && path == PEN_PATH_SUFFIX && (kind == PEN_PART_RANGE || kind == PEN_PART_STREAM);
}

/* Builds the path at *paths and moves that on; there is room for it. */
static const char *put_path(const PenItem *item, uint8_t path, const uint8_t *text, uint32_t bytes,
                            uint8_t **paths)
{
    uint8_t *begin = *paths, *p = begin;
    if (path != PEN_PATH_TEXT) {
        memcpy(p, item->key, item->key_bytes);
        p += item->key_bytes;
    }
    if (path == PEN_PATH_SUFFIX)
        *p++ = '.';
    memcpy(p, text, bytes);
    p[bytes] = 0;
    *paths = p + bytes + 1;
    return (const char *)begin;
}

static bool take_part(const PenRecordFrame *frame, const PenField *f, Cursor *c,
                      const PenItem *item, uint8_t **paths, PenPart *ret)
{
    uint8_t head = *take(c, 1);
    uint8_t kind = head & 15, path = head >> 4;
    PenPart part = {.kind = kind};
    if (kind == PEN_PART_INLINE) {
        part.bytes = take32(c);
        part.data = take(c, part.bytes);
        if (value_bytes(f) && part.bytes != value_bytes(f))
            return false;
    } else if (kind != PEN_PART_NONE) {
        part.source = take32(c);
        part.offset = kind == PEN_PART_FILE ? 0 : take64(c);
        part.bytes = take64(c);
        part.end = kind == PEN_PART_VIDEO ? take64(c) : 0;
        uint32_t text_bytes = path == PEN_PATH_KEY ? 0 : take32(c);
        const uint8_t *text = take(c, text_bytes);
        bool is_table = kind == PEN_PART_GULP;
        if (!c->ok || (!is_table && memchr(text, 0, text_bytes)))
            return false;
        part.data = is_table ? text : NULL;
        part.data_bytes = is_table ? text_bytes : 0;
        if (!is_table && part_fits(frame, f, kind, path, part.source))
            part.path = put_path(item, path, text, text_bytes, paths);
    }
    *ret = part;
    return c->ok && part_fits(frame, f, kind, path, part.source);
}

int pen__record_parse(const PenRecordFrame *frame, PenItem *ret, PenBuf *scratch, PenError *reterr)
{
    size_t bytes = scratch->bytes;
    uint32_t key_bytes = bytes >= 4 ? pen__load32(scratch->data) : 0;
    if (key_bytes < 1 || key_bytes > PEN_KEY_LIMIT || key_bytes > bytes - 4 ||
        memchr(scratch->data + 4, 0, key_bytes))
        return pen__fail(reterr, PEN_E_CORRUPT, WHERE,
                         "record: expected a key, found a length of %" PRIu32 " in %zu bytes",
                         key_bytes, bytes);
    /* Behind the record: the parts, aligned, then the paths, each at most key, dot, text and NUL.
     */
    size_t parts_at = (bytes + 15) / 16 * 16;
    size_t paths_at = parts_at + frame->n_fields * sizeof(PenPart);
    size_t end = paths_at + frame->n_fields * ((size_t)key_bytes + 2) + bytes;
    if (pen__buf_reserve(scratch, end - bytes) < 0)
        return pen__fail_memory(reterr, WHERE, "record");
    PenPart *parts = (PenPart *)(void *)(scratch->data + parts_at);
    uint8_t *paths = scratch->data + paths_at;
    Cursor c = {scratch->data + 4 + key_bytes, scratch->data + bytes, true};
    PenItem item = {scratch->data + 4, key_bytes, frame->n_fields, parts};
    for (uint32_t i = 0; i < frame->n_fields; i++)
        if (!take_part(frame, &frame->fields[i], &c, &item, &paths, &parts[i]))
            return pen__fail(reterr, PEN_E_CORRUPT, WHERE,
                             "record of %.*s: expected a part for field %s, found something else",
                             (int)PEN_MIN(key_bytes, 200u), (const char *)item.key,
                             frame->fields[i].name);
    for (uint32_t i = 0; i < frame->n_fields; i++)
        if (pen__kind_has_stamp(parts[i].kind))
            parts[i].stamp = pen__stamp_load(take(&c, PEN_STAMP_BYTES));
    if (!c.ok)
        return pen__fail(reterr, PEN_E_CORRUPT, WHERE,
                         "record of %.*s: expected a timestamp for each file, found fewer",
                         (int)PEN_MIN(key_bytes, 200u), (const char *)item.key);
    if (c.p != c.end)
        return pen__fail(
            reterr, PEN_E_CORRUPT, WHERE, "record of %.*s: expected its end, found %zu more bytes",
            (int)PEN_MIN(key_bytes, 200u), (const char *)item.key, (size_t)(c.end - c.p));
    *ret = item;
    return PEN_OK;
}
