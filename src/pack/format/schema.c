/* SPDX-License-Identifier: Apache-2.0 */
#include "pack/format/schema.h"

#include <inttypes.h>
#include <string.h>

#include "base/bytes.h"
#include "pack/format/format.h"

#define WHERE "pack/schema"

const char *pen_type_name(int type)
{
    static const char *const names[] = {"?",    "image", "clip", "bytes", "json",
                                        "text", "i64",   "f32",  "f64"};
    return type >= PEN_TYPE_IMAGE && type <= PEN_TYPE_F64 ? names[type] : names[0];
}

uint32_t pen__field_row_bytes(const PenField *f)
{
    if (!pen__type_is_number(f->type))
        return 1;
    uint32_t bytes = f->type == PEN_TYPE_F32 ? 4 : 8;
    for (uint32_t i = pen__field_is_ragged(f); i < f->n_dims; i++)
        bytes *= f->dims[i];
    return bytes;
}

static uint32_t width_of(const PenField *f)
{
    if (f->type == PEN_TYPE_IMAGE)
        return PEN_IMAGE_ENTRY_BYTES;
    if (f->type == PEN_TYPE_CLIP)
        return PEN_CLIP_ENTRY_BYTES;
    return pen__field_is_blob(f) ? PEN_BLOB_ENTRY_BYTES : pen__field_row_bytes(f);
}

static int check_dims(const PenField *f, PenError *reterr)
{
    uint64_t n = 1;
    if (f->n_dims > PEN_MAX_DIMS || (f->n_dims && !pen__type_is_number(f->type)))
        return pen__fail(
            reterr, PEN_E_INVALID, WHERE,
            "field '%s': expected at most %u dimensions, and only for numbers, found %u", f->name,
            PEN_MAX_DIMS, f->n_dims);
    for (uint32_t i = pen__field_is_ragged(f); i < f->n_dims; i++) {
        n *= f->dims[i];
        if (n == 0 || n > PEN_MAX_ELEMENTS)
            return pen__fail(
                reterr, PEN_E_INVALID, WHERE,
                "field '%s': expected 1 to %u elements, found dimensions with %" PRIu64, f->name,
                PEN_MAX_ELEMENTS, n);
    }
    return PEN_OK;
}

static uint32_t flags_of(const PenField *f)
{
    uint32_t flags = f->type == PEN_TYPE_IMAGE ? PEN_FIELD_MASK
                     : pen__field_is_blob(f)   ? PEN_FIELD_OPTIONAL
                                               : 0;
    if (pen__field_is_ragged(f) && f->type == PEN_TYPE_F32)
        flags |= PEN_FIELD_COORDINATES | PEN_FIELD_RELATIVE;
    return flags;
}

/* Boxes have rows of 4, points end in 2, and nothing else is relative. */
static int check_coordinates(const PenField *f, PenError *reterr)
{
    uint32_t what = f->flags & PEN_FIELD_COORDINATES;
    bool is_points = what == PEN_FIELD_POINTS;
    bool is_box = what && what <= PEN_FIELD_BOXES_CXCYWH;
    if ((is_box && f->n_dims == 2 && f->dims[1] == 4) ||
        (is_points && f->n_dims > 1 && f->dims[f->n_dims - 1] == 2) ||
        !(f->flags & (PEN_FIELD_COORDINATES | PEN_FIELD_RELATIVE)))
        return PEN_OK;
    return pen__fail(reterr, PEN_E_INVALID, WHERE,
                     "field '%s': expected f32[*,4] for boxes and f32[*,2] for points, found "
                     "flags 0x%x with %u dimensions, the last one %u",
                     f->name, f->flags, f->n_dims, f->n_dims ? f->dims[f->n_dims - 1] : 0);
}

static int check_field(const PenField *fields, uint32_t i, PenError *reterr)
{
    const PenField *f = &fields[i];
    size_t length = f->name ? strlen(f->name) : 0;
    if (length < 1 || length > 255)
        return pen__fail(reterr, PEN_E_INVALID, WHERE,
                         "field %u: expected a name of 1 to 255 bytes, found %zu", i, length);
    if (f->type < PEN_TYPE_IMAGE || f->type > PEN_TYPE_F64)
        return pen__fail(reterr, PEN_E_INVALID, WHERE,
                         "field '%s': expected a type from 1 to 8, found %d", f->name, f->type);
    if (f->flags & ~flags_of(f))
        return pen__fail(reterr, PEN_E_INVALID, WHERE,
                         "field '%s': flags 0x%x are not valid for type %s", f->name, f->flags,
                         pen_type_name(f->type));
    for (uint32_t j = 0; j < i; j++)
        if (strcmp(fields[j].name, f->name) == 0)
            return pen__fail(reterr, PEN_E_INVALID, WHERE, "field '%s' occurs twice", f->name);
    int r = check_dims(f, reterr);
    return r < 0 ? r : check_coordinates(f, reterr);
}

static int copy_fields(PenSchema *s, const PenField *fields, PenError *reterr)
{
    size_t names = 0;
    for (uint32_t i = 0; i < s->n_fields; i++)
        names += strlen(fields[i].name) + 1;
    s->fields = pen__alloc_array(s->n_fields, sizeof *s->fields);
    s->widths = pen__alloc_array(s->n_fields, sizeof *s->widths);
    s->names = pen__alloc(names);
    if (!s->fields || !s->widths || !s->names)
        return pen__fail_memory(reterr, WHERE, "fields");
    char *at = s->names;
    for (uint32_t i = 0; i < s->n_fields; i++) {
        size_t n = strlen(fields[i].name) + 1;
        memcpy(at, fields[i].name, n);
        s->fields[i] = fields[i];
        s->fields[i].name = at;
        s->widths[i] = width_of(&fields[i]);
        at += n;
    }
    return PEN_OK;
}

int pen__schema_init(PenSchema *ret, const PenField *fields, uint32_t n_fields, PenError *reterr)
{
    if (n_fields < 1 || n_fields > PEN_MAX_FIELDS)
        return pen__fail(reterr, PEN_E_INVALID, WHERE, "expected 1 to %u fields, found %u",
                         PEN_MAX_FIELDS, n_fields);
    int r = PEN_OK;
    for (uint32_t i = 0; i < n_fields && r == PEN_OK; i++)
        r = check_field(fields, i, reterr);
    if (r < 0)
        return r;
    PenSchema s = {.n_fields = n_fields, .class_field = -1};
    r = copy_fields(&s, fields, reterr);
    if (r < 0) {
        pen__schema_fini(&s);
        return r;
    }
    *ret = s;
    return PEN_OK;
}

bool pen__fields_have_images(const PenField *fields, uint32_t n)
{
    for (const PenField *f = fields; f < fields + n; f++)
        if (f->type == PEN_TYPE_CLIP || (f->type == PEN_TYPE_IMAGE && !(f->flags & PEN_FIELD_MASK)))
            return true;
    return false;
}

uint64_t pen__schema_must(const PenSchema *s)
{
    uint64_t must = (s->has_entries ? PEN_MUST_ENTRIES : 0) | (s->has_videos ? PEN_MUST_VIDEOS : 0);
    for (uint32_t f = 0; f < s->n_fields; f++) {
        if (s->fields[f].flags & PEN_FIELD_OPTIONAL)
            must |= PEN_MUST_MISSING;
        if (pen__field_is_ragged(&s->fields[f]))
            must |= PEN_MUST_RAGGED;
    }
    return must;
}

static int check_class_field(const PenSchema *s, int64_t field, PenError *reterr)
{
    if (field < 0 || field >= s->n_fields || s->fields[field].type != PEN_TYPE_I64 ||
        s->fields[field].n_dims)
        return pen__fail(reterr, PEN_E_INVALID, WHERE,
                         "classes: expected the number of an i64 field, found %" PRIi64, field);
    return PEN_OK;
}

int pen__schema_set_classes(PenSchema *s, int32_t class_field, const char *const *classes,
                            uint32_t n_classes, PenError *reterr)
{
    int r = check_class_field(s, class_field, reterr);
    if (r < 0)
        return r;
    size_t bytes = 0;
    for (uint32_t i = 0; i < n_classes; i++)
        bytes += strlen(classes[i]) + 1;
    char **table = pen__alloc_array(n_classes, sizeof *table);
    char *names = pen__alloc(bytes);
    if (!table || !names) {
        pen__free(table);
        pen__free(names);
        return pen__fail_memory(reterr, WHERE, "classes");
    }
    char *at = names;
    for (uint32_t i = 0; i < n_classes; i++) {
        size_t n = strlen(classes[i]) + 1;
        memcpy(at, classes[i], n);
        table[i] = at;
        at += n;
    }
    s->class_field = class_field;
    s->n_classes = n_classes;
    s->classes = table;
    s->class_names = names;
    return PEN_OK;
}

void pen__schema_fini(PenSchema *s)
{
    pen__free(s->fields);
    pen__free(s->widths);
    pen__free(s->names);
    pen__free(s->classes);
    pen__free(s->class_names);
    *s = (PenSchema){.class_field = -1};
}

int pen__schema_write(const PenSchema *s, PenBuf *out)
{
    uint8_t b[4 + 4 * PEN_MAX_DIMS];
    pen__store32(b, s->n_fields);
    int r = pen__buf_add(out, b, 4);
    for (uint32_t i = 0; i < s->n_fields && r == PEN_OK; i++) {
        const PenField *f = &s->fields[i];
        b[0] = (uint8_t)f->type;
        b[1] = (uint8_t)f->flags;
        b[2] = (uint8_t)f->n_dims;
        b[3] = (uint8_t)strlen(f->name);
        for (uint32_t d = 0; d < f->n_dims; d++)
            pen__store32(b + 4 + 4 * d, f->dims[d]);
        r = pen__buf_add(out, b, 4 + 4 * (size_t)f->n_dims);
        if (r == PEN_OK)
            r = pen__buf_add(out, f->name, b[3]);
    }
    return r;
}

/* One field of the section at data[*at]; its name is copied to `names`, which has room. */
static int read_field(const uint8_t *data, size_t bytes, size_t *at, PenField *ret, char *names,
                      size_t *names_used, PenError *reterr)
{
    if (!pen__range_ok(*at, 4, bytes))
        goto cut;
    const uint8_t *b = data + *at;
    *ret = (PenField){.type = b[0], .flags = b[1], .n_dims = b[2]};
    size_t name_bytes = b[3];
    if (ret->n_dims > PEN_MAX_DIMS || !pen__range_ok(*at + 4, 4 * ret->n_dims + name_bytes, bytes))
        goto cut;
    for (uint32_t d = 0; d < ret->n_dims; d++)
        ret->dims[d] = pen__load32(b + 4 + 4 * d);
    const uint8_t *name = b + 4 + 4 * ret->n_dims;
    if (memchr(name, 0, name_bytes))
        goto cut;
    memcpy(names + *names_used, name, name_bytes);
    names[*names_used + name_bytes] = 0;
    ret->name = names + *names_used;
    *names_used += name_bytes + 1;
    *at += 4 + 4 * ret->n_dims + name_bytes;
    return PEN_OK;
cut:
    return pen__fail(reterr, PEN_E_CORRUPT, WHERE,
                     "schema: offset %zu of %zu: expected a field, found something else", *at,
                     bytes);
}

int pen__schema_read(PenSchema *ret, const uint8_t *data, size_t bytes, PenError *reterr)
{
    if (bytes < 4 || pen__load32(data) > PEN_MAX_FIELDS)
        return pen__fail(reterr, PEN_E_CORRUPT, WHERE,
                         "schema: expected at most %u fields in %zu bytes", PEN_MAX_FIELDS, bytes);
    uint32_t n = pen__load32(data);
    size_t at = 4;
    size_t used = 0;
    PenField *fields = pen__alloc_array(n, sizeof *fields);
    char *names = pen__alloc(bytes + n);
    int r = fields && names ? PEN_OK : pen__fail_memory(reterr, WHERE, "schema");
    for (uint32_t i = 0; i < n && r == PEN_OK; i++)
        r = read_field(data, bytes, &at, &fields[i], names, &used, reterr);
    if (r == PEN_OK && at != bytes)
        r = pen__fail(reterr, PEN_E_CORRUPT, WHERE, "schema: expected to end at %zu, found %zu", at,
                      bytes);
    if (r == PEN_OK)
        r = pen__schema_init(ret, fields, n, reterr);
    pen__free(fields);
    pen__free(names);
    return r;
}

int pen__classes_write(const PenSchema *s, PenBuf *out)
{
    uint8_t b[8];
    pen__store32(b, (uint32_t)s->class_field);
    pen__store32(b + 4, s->n_classes);
    int r = pen__buf_add(out, b, 8);
    for (uint32_t i = 0; i < s->n_classes && r == PEN_OK; i++) {
        size_t n = strlen(s->classes[i]);
        pen__store32(b, (uint32_t)n);
        r = pen__buf_add(out, b, 4);
        if (r == PEN_OK)
            r = pen__buf_add(out, s->classes[i], n);
    }
    return r;
}

int pen__classes_read(PenSchema *s, const uint8_t *data, size_t bytes, PenError *reterr)
{
    if (bytes < 8)
        return pen__fail(reterr, PEN_E_CORRUPT, WHERE, "classes: expected 8 bytes, found %zu",
                         bytes);
    uint32_t field = pen__load32(data);
    uint32_t n = pen__load32(data + 4);
    int r = check_class_field(s, field, reterr);
    if (r < 0)
        return r;
    if (n > (bytes - 8) / 4)
        return pen__fail(reterr, PEN_E_CORRUPT, WHERE,
                         "classes: expected %u names, found only %zu bytes", n, bytes);
    char **table = pen__alloc_array(n, sizeof *table);
    char *names = pen__alloc(bytes + n);
    size_t at = 8;
    char *to = names;
    r = table && names ? PEN_OK : pen__fail_memory(reterr, WHERE, "classes");
    for (uint32_t i = 0; i < n && r == PEN_OK; i++) {
        size_t length = pen__range_ok(at, 4, bytes) ? pen__load32(data + at) : SIZE_MAX;
        if (!pen__range_ok(at + 4, length, bytes) || memchr(data + at + 4, 0, length)) {
            r = pen__fail(reterr, PEN_E_CORRUPT, WHERE, "classes: class %u at offset %zu: bad name",
                          i, at);
            break;
        }
        memcpy(to, data + at + 4, length);
        to[length] = 0;
        table[i] = to;
        to += length + 1;
        at += 4 + length;
    }
    if (r == PEN_OK && at != bytes)
        r = pen__fail(reterr, PEN_E_CORRUPT, WHERE, "classes: expected to end at %zu, found %zu",
                      at, bytes);
    if (r < 0) {
        pen__free(table);
        pen__free(names);
        return r;
    }
    s->class_field = (int32_t)field;
    s->n_classes = n;
    s->classes = table;
    s->class_names = names;
    return PEN_OK;
}
