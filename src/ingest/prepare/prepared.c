/* SPDX-License-Identifier: Apache-2.0 */
#include "ingest/prepare/prepared.h"

#include <string.h>

#include "ingest/prepare/summarize.h"

#define WHERE "ingest/sample"

PenPrepared *pen__prepared_new(uint32_t n_fields, uint32_t n_images)
{
    PenPrepared *p = pen__zalloc(sizeof *p);
    if (!p)
        return NULL;
    p->n_values = n_fields;
    p->n_images = p->cap_images = n_images;
    p->values = pen__zalloc(n_fields * sizeof *p->values);
    p->images = pen__zalloc(n_images * sizeof *p->images);
    p->stored = pen__zalloc(n_images * sizeof *p->stored);
    p->blobs = pen__zalloc(n_fields * sizeof *p->blobs);
    p->first = pen__zalloc(n_fields * sizeof *p->first);
    if (!p->values || !p->images || !p->stored || !p->blobs || !p->first) {
        pen__prepared_free(p);
        return NULL;
    }
    p->sample.values = p->values;
    return p;
}

void pen__prepared_free(PenPrepared *p)
{
    if (!p)
        return;
    for (uint32_t i = 0; i < p->n_images && p->images; i++)
        pen__prepared_image_free(&p->images[i]);
    for (uint32_t f = 0; f < p->n_values && p->blobs; f++)
        pen__buf_free(&p->blobs[f]);
    for (uint32_t f = 0; f < p->n_values && p->videos; f++)
        pen__prepared_video_free(&p->videos[f]);
    pen__free(p->videos);
    pen__free(p->values);
    pen__free(p->images);
    pen__free(p->stored);
    pen__free(p->blobs);
    pen__free(p->first);
    pen__buf_free(&p->scratch);
    pen__free(p);
}

/* An image of a tar that was read before. PEN_END: there is no summary of it. */
static int read_summary(PenPreparedImage *image, bool mask, const PenPart *part,
                        PenPartReader *reader, const char *name, PenError *reterr)
{
    PenMemberRecord record;
    int r = pen__part_record(reader, part, &image->index, &record, reterr);
    if (r == PEN_OK)
        r = pen__summary_image(&record, mask, name, image, reterr);
    if (r == PEN_OK)
        r = pen__part_object(reader, part, &image->object, reterr);
    image->is_known = r == PEN_OK;
    if (r != PEN_OK)
        image->index.bytes = 0;
    return r;
}

/* One part: numbers and inline texts stay where the plan's item has them. */
static int read_part(PenPrepared *p, const PenSchema *schema, uint32_t field, const PenPart *part,
                     PenPartReader *reader, const char *name, PenError *reterr)
{
    PenStoredValue *value = &p->values[field];
    int image = schema->fields[field].type == PEN_TYPE_IMAGE;
    uint64_t disk = 0;
    if (part->kind == PEN_PART_NONE) {
        value->missing = 1;
        return PEN_OK;
    }
    if (schema->fields[field].type == PEN_TYPE_CLIP)
        return pen__prepared_read_clip(p, field, part, reader, reterr);
    if (part->kind == PEN_PART_INLINE && !image) {
        value->data = part->data;
        value->bytes = part->bytes;
        return PEN_OK;
    }
    bool mask = (schema->fields[field].flags & PEN_FIELD_MASK) != 0;
    int r = image ? read_summary(&p->images[field], mask, part, reader, name, reterr) : PEN_END;
    if (r == PEN_OK) {
        p->source_bytes += part->bytes;
        p->disk_bytes += (part->bytes + 511) / 512 * 512;
    }
    if (r != PEN_END)
        return r;
    PenBuf *to = image ? &p->images[field].source : &p->blobs[field];
    r = pen__part_read(reader, part, to, &disk, reterr);
    if (r < 0)
        return r;
    p->source_bytes += to->bytes;
    p->disk_bytes += disk;
    if (image && pen__part_is_remote(reader, part))
        r = pen__part_object(reader, part, &p->images[field].object, reterr);
    if (!image) {
        value->data = to->data;
        value->bytes = to->bytes;
    }
    return r;
}

int pen__prepared_read(PenPrepared *p, const PenSchema *schema, const PenPlan *plan,
                       uint64_t position, PenPartReader *reader, char *name, PenError *reterr)
{
    PenItem item;
    int r = pen__plan_item(plan, position, &item, &p->scratch, reterr);
    if (r < 0)
        return r;
    p->sample.key = item.key;
    p->sample.key_bytes = item.key_bytes;
    p->sample.position = position;
    r = pen__part_gather(reader, &item, reterr);
    if (r < 0)
        return r;
    for (uint32_t f = 0; f < schema->n_fields; f++) {
        if (item.parts[f].kind != PEN_PART_INLINE)
            pen__part_name(plan, &item.parts[f], name, PEN_INPUT_NAME_BYTES);
        r = read_part(p, schema, f, &item.parts[f], reader, name, reterr);
        if (r < 0)
            return r;
        if (pen__field_is_number(&schema->fields[f]) && p->values[f].bytes != schema->widths[f])
            return pen__fail(
                reterr, PEN_E_INVALID, WHERE,
                "%s: field '%s': expected a value of the right size, found none or another size",
                name, schema->fields[f].name);
    }
    return PEN_OK;
}

/* Is the image stored as it was read? */
static bool stays(const PenPreparedImage *image, const PenStoredImage *stored)
{
    return image->is_known || (image->source.data && stored->data == image->source.data &&
                               stored->bytes == image->source.bytes);
}

/* Where the images are that are stored as they were read. */
static int note_origins(PenPrepared *p, const PenSchema *schema, const PenPlan *plan,
                        PenError *reterr)
{
    PenItem item;
    PenBuf scratch = {0};
    int r = pen__plan_item(plan, p->sample.position, &item, &scratch, reterr);
    for (uint32_t f = 0; f < schema->n_fields && r == PEN_OK; f++) {
        PenPreparedImage *image = &p->images[f];
        if (schema->fields[f].type != PEN_TYPE_IMAGE || !stays(image, &p->stored[f]) ||
            (item.parts[f].kind != PEN_PART_FILE && item.parts[f].kind != PEN_PART_RANGE))
            continue;
        r = pen__part_file(plan, &item.parts[f], &image->origin, reterr);
        p->stored[f].origin = (const char *)image->origin.data;
        p->stored[f].origin_offset =
            item.parts[f].kind == PEN_PART_RANGE ? item.parts[f].offset : 0;
        p->stored[f].origin_bytes = image->object.bytes;
        p->stored[f].origin_etag = image->object.etag;
        if (r == PEN_OK && !pen_is_remote(p->stored[f].origin))
            pen__part_times(plan, &item.parts[f], &p->stored[f].origin_bytes,
                            &p->stored[f].origin_mtime_ns);
    }
    pen__buf_free(&scratch);
    return r;
}

int pen__prepared_make(PenPrepared *p, const PenSchema *schema, const PenPrepareSettings *prepare,
                       const PenPlan *plan, char *name, PenError *reterr)
{
    PenItem item;
    PenBuf scratch = {0};
    for (uint32_t f = 0; f < schema->n_fields; f++) {
        const PenField *field = &schema->fields[f];
        if (field->type == PEN_TYPE_CLIP) {
            int r = pen__prepared_make_clip(p, f, prepare, plan, reterr);
            if (r < 0)
                return r;
        }
        PenPreparedImage *image = &p->images[f];
        if (field->type != PEN_TYPE_IMAGE || (!image->source.data && !image->is_known))
            continue;
        int r = image->is_known
                    ? PEN_OK
                    : pen__prepare_image(prepare, p->sample.key, p->sample.key_bytes,
                                         (field->flags & PEN_FIELD_MASK) != 0, image, reterr);
        if (r < 0) {
            if (pen__plan_item(plan, p->sample.position, &item, &scratch, NULL) == PEN_OK)
                pen__part_name(plan, &item.parts[f], name, PEN_INPUT_NAME_BYTES);
            pen__buf_free(&scratch);
            pen__error_prefix(reterr, "%s", name);
            return r;
        }
        p->stored[f] = image->image;
        p->first[f] = f;
        p->values[f].n_images = 1;
    }
    int r = prepare->in_place ? note_origins(p, schema, plan, reterr) : PEN_OK;
    if (r < 0)
        return r;
    /* Only now do they stay where they are. */
    for (uint32_t f = 0; f < schema->n_fields; f++)
        p->values[f].images = p->values[f].n_images ? &p->stored[p->first[f]] : NULL;
    return PEN_OK;
}
