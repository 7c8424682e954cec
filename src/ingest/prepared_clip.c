/* SPDX-License-Identifier: Apache-2.0 */
/* The frames of a clip: read, then prepared as images are. */
#include <string.h>

#include "ingest/prepared.h"

#define WHERE "ingest/clip"

int pen__prepared_frame(PenPrepared *p, uint32_t field, PenPreparedImage **ret, PenError *reterr)
{
    PenStoredValue *value = &p->values[field];
    if (p->n_images == p->cap_images) {
        uint32_t cap = p->cap_images * 2 + 16; /* PEN_CLIP_FRAMES keeps it small */
        PenPreparedImage *images = pen__resize(p->images, cap * sizeof *images);
        if (images)
            p->images = images;
        PenStoredImage *stored = pen__resize(p->stored, cap * sizeof *stored);
        if (stored)
            p->stored = stored;
        if (!images || !stored)
            return pen__fail_memory(reterr, WHERE, "frames");
        p->cap_images = cap;
    }
    if (!value->n_images)
        p->first[field] = p->n_images;
    value->n_images++;
    *ret = &p->images[p->n_images];
    **ret = (PenPreparedImage){0};
    p->stored[p->n_images++] = (PenStoredImage){0};
    return PEN_OK;
}

uint64_t pen__prepared_memory(const PenPrepared *p)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < p->n_images; i++)
        bytes += p->images[i].source.cap + p->stored[i].bytes;
    for (uint32_t f = 0; f < p->n_values; f++)
        bytes += p->blobs[f].cap;
    return bytes;
}

typedef struct Reading {
    PenPrepared *p;
    uint32_t field;
} Reading;

static int keep_frame(void *ctx, PenBuf *data, PenError *reterr)
{
    const Reading *reading = ctx;
    PenPreparedImage *image = NULL;
    int r = pen__prepared_frame(reading->p, reading->field, &image, reterr);
    if (r < 0)
        return r;
    reading->p->source_bytes += data->bytes;
    image->source = *data;
    *data = (PenBuf){0};
    return PEN_OK;
}

/* A video is read when it is made: frame by frame, as its pixels come. */
int pen__prepared_read_clip(PenPrepared *p, uint32_t field, const PenPart *part,
                            PenPartReader *reader, PenError *reterr)
{
    uint64_t disk = 0;
    Reading reading = {p, field};
    if (part->kind == PEN_PART_VIDEO)
        return pen__fail(reterr, PEN_E_UNSUPPORTED, WHERE, "%s: videos cannot be packed yet",
                         part->path);
    int r = pen__part_frames(reader, part, keep_frame, &reading, &disk, reterr);
    p->disk_bytes += disk;
    return r;
}

static void name_frame(const PenPrepared *p, uint32_t field, uint64_t number, const PenPlan *plan,
                       PenError *reterr)
{
    PenItem item;
    PenBuf scratch = {0};
    char name[PEN_INPUT_NAME_BYTES], key[PEN_INPUT_NAME_BYTES / 2];
    size_t key_bytes = PEN_MIN(p->sample.key_bytes, sizeof key - 1);
    memcpy(key, p->sample.key, key_bytes);
    key[key_bytes] = 0;
    if (pen__plan_item(plan, p->sample.position, &item, &scratch, NULL) == PEN_OK) {
        pen__part_frame_name(plan, &item.parts[field], key, number, name, sizeof name);
        pen__error_prefix(reterr, "%s", name);
    }
    pen__buf_free(&scratch);
}

/* Behind frames that were stored in another way their source is not needed. */
static void drop_source(PenPreparedImage *image)
{
    if (image->image.data != image->source.data)
        pen__buf_free(&image->source);
}

int pen__prepared_make_clip(PenPrepared *p, uint32_t field, const PenRecipe *recipe,
                            const PenPlan *plan, PenError *reterr)
{
    uint32_t first = p->first[field], n = p->values[field].n_images;
    for (uint32_t i = 0; i < n; i++) {
        PenPreparedImage *image = &p->images[first + i];
        int r = pen__prepare_image(recipe, p->sample.key, p->sample.key_bytes, 0, image, reterr);
        if (r < 0) {
            name_frame(p, field, i, plan, reterr);
            return r;
        }
        p->stored[first + i] = image->image;
        if (recipe->fps > 0)
            p->stored[first + i].timestamp_ns = (int64_t)((double)i * 1e9 / recipe->fps + 0.5);
        drop_source(image);
    }
    return PEN_OK;
}
