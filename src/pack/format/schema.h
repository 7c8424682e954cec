/* SPDX-License-Identifier: Apache-2.0 */
/* The fields of a pack and the names of its classes. */
#ifndef PEN_PACK_FORMAT_SCHEMA_H
#define PEN_PACK_FORMAT_SCHEMA_H

#include <stdbool.h>

#include <penstock/pack.h>

#include "base/error.h"
#include "base/mem.h"

typedef struct PenSchema {
    uint32_t n_fields;
    PenField *fields; /* names are in `names` */
    uint32_t *widths; /* bytes of a column's entry */
    char *names;
    int32_t has_entries; /* images may have entry tables, and encoded JPEGs none */
    int32_t has_videos;  /* clips may be videos that are stored as their files */
    int32_t class_field; /* -1 = none */
    uint32_t n_classes;
    char **classes;
    char *class_names;
} PenSchema;

/* Copies and checks fields from outside (names unique, dims in range). */
int pen__schema_init(PenSchema *ret, const PenField *fields, uint32_t n_fields, PenError *reterr);
int pen__schema_set_classes(PenSchema *s, int32_t class_field, const char *const *classes,
                            uint32_t n_classes, PenError *reterr);
void pen__schema_fini(PenSchema *s); /* a zeroed one is fine */

/* The sections SCHM and CLAS. */
int pen__schema_write(const PenSchema *s, PenBuf *out);
int pen__schema_read(PenSchema *ret, const uint8_t *data, size_t bytes, PenError *reterr);
int pen__classes_write(const PenSchema *s, PenBuf *out);
int pen__classes_read(PenSchema *s, const uint8_t *data, size_t bytes, PenError *reterr);

/* Are there images that are not masks, or clips? */
bool pen__fields_have_images(const PenField *fields, uint32_t n);

/* The features of *must* that a pack or shard with these fields and images needs. */
uint64_t pen__schema_must(const PenSchema *s);

static inline int pen__type_is_number(int type)
{
    return type >= PEN_TYPE_I64 && type <= PEN_TYPE_F64;
}

static inline bool pen__field_is_ragged(const PenField *f)
{
    return f->n_dims && f->dims[0] == PEN_DIM_ANY;
}

/* Numbers of a fixed shape, which are stored in the index of a block. */
static inline bool pen__field_is_number(const PenField *f)
{
    return pen__type_is_number(f->type) && !pen__field_is_ragged(f);
}

/* A value of any length, with a payload of its own: bytes, json, text, or numbers of a ragged
 * field. */
static inline bool pen__field_is_blob(const PenField *f)
{
    return (f->type >= PEN_TYPE_BYTES && f->type <= PEN_TYPE_TEXT) || pen__field_is_ragged(f);
}

/* What the bytes of a value are a multiple of: those of a row, or 1. */
uint32_t pen__field_row_bytes(const PenField *f);

#endif
