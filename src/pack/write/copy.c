/* SPDX-License-Identifier: Apache-2.0 */
#include "pack/write/copy.h"

#include <string.h>

#include "base/bytes.h"
#include "pack/reader/sections.h"

#define WHERE "pack/copy"

/* How much there is to point at. */
typedef struct Count {
    uint64_t images, videos, lengths;
} Count;

static uint32_t frames_of(const PenBlockView *v, uint32_t sample, uint32_t field)
{
    if (v->schema->fields[field].type == PEN_TYPE_IMAGE)
        return pen__block_image(v, sample, field, 0).codec != PEN_STORED_NONE;
    return pen__block_images(v, sample, field);
}

static Count count(const PenBlockView *v)
{
    Count c = {0};
    PenVideoTable video;
    for (uint32_t s = 0; s < v->n_samples; s++)
        for (uint32_t f = 0; f < v->schema->n_fields; f++) {
            uint32_t n = frames_of(v, s, f);
            c.images += n;
            c.videos += pen__block_video(v, s, f, &video);
            for (uint32_t i = 0; i < n; i++) {
                PenImageEntry e = pen__block_image(v, s, f, i);
                if (e.table_bytes && !pen__block_is_indexed(v, &e))
                    c.lengths += pen__block_segments(v, &e).n_segments;
            }
        }
    return c;
}

static PenSegments copy_segments(const PenSegmentTable *t, uint32_t **lengths)
{
    PenSegments s = {.head_bytes = t->head_bytes,
                     .n_segments = t->n_segments,
                     .unit = t->unit,
                     .components = t->components,
                     .h_samp = t->h_samp,
                     .v_samp = t->v_samp};
    if (t->length_bytes) {
        s.lengths = *lengths;
        for (uint32_t i = 0; i < t->n_segments; i++)
            (*lengths)[i] = (uint32_t)pen__segment_bytes(t, i);
        *lengths += t->n_segments;
    }
    return s;
}

static int copy_image(const PenSpot *at, const uint8_t *data, PenStoredImage *to,
                      uint32_t **lengths, PenError *reterr)
{
    const PenBlockView *v = &at->block->view;
    PenImageEntry e = pen__block_image(v, at->sample, at->field, at->frame);
    *to = (PenStoredImage){.data = data + e.offset,
                           .bytes = e.bytes,
                           .width = e.width,
                           .height = e.height,
                           .codec = e.codec,
                           .how = e.how,
                           .orientation = e.orientation,
                           .channels = e.channels,
                           .timestamp_ns = e.timestamp_ns,
                           .source_bytes = e.source_bytes};
    if (pen__block_is_indexed(v, &e)) {
        to->entries = pen__block_entries(v, &e).stored;
    } else if (e.table_bytes) {
        PenSegmentTable t = pen__block_segments(v, &e);
        to->segments = copy_segments(&t, lengths);
    }
    return pen__payload_check(at, &e, data + e.offset, reterr);
}

static int copy_video(const PenSpot *at, const PenVideoTable *t, const uint8_t *data,
                      PenStoredVideo *to, PenError *reterr)
{
    const PenBlockView *v = &at->block->view;
    PenClipEntry e = pen__block_clip(v, at->sample, at->field);
    *to = (PenStoredVideo){.data = data + e.offset,
                           .bytes = e.bytes,
                           .table = v->data + e.table_offset,
                           .table_bytes = e.table_bytes,
                           .n_frames = e.n_frames,
                           .source_bytes = e.source_bytes};
    return pen__video_check_runs(at, t, 0, t->n_runs, data + e.offset, reterr);
}

typedef struct Fill {
    PenCopied *c;
    const PenSchema *schema;
    PenStoredImage *image;
    PenStoredVideo *video;
    uint32_t *length;
} Fill;

static int copy_value(Fill *fill, const PenBlock *b, uint32_t s, uint32_t f, PenStoredValue *to,
                      PenError *reterr)
{
    const uint8_t *data = fill->c->data.data;
    const PenField *field = &fill->schema->fields[f];
    PenSpot at = {.block = b, .sample = s, .field = f};
    PenVideoTable video;
    int r = PEN_OK;
    if (pen__block_video(&b->view, s, f, &video)) {
        to->video = fill->video;
        r = copy_video(&at, &video, data, fill->video++, reterr);
    } else if (pen__field_is_number(field)) {
        to->data = pen__block_number(&b->view, s, f);
        to->bytes = fill->schema->widths[f];
    } else if (pen__field_is_blob(field)) {
        PenBlobEntry e = pen__block_blob(&b->view, s, f);
        to->data = data + e.offset;
        to->bytes = e.bytes;
        to->missing = (e.flags & PEN_BLOB_MISSING) != 0;
        r = pen__blob_check(&at, &e, data + e.offset, reterr);
    } else {
        to->n_images = frames_of(&b->view, s, f);
        to->images = fill->image;
        for (; at.frame < to->n_images && r == PEN_OK; at.frame++)
            r = copy_image(&at, data, fill->image++, &fill->length, reterr);
    }
    return r;
}

static int copy_samples(Fill *fill, const PenBlock *b, PenError *reterr)
{
    PenCopied *c = fill->c;
    uint32_t n_fields = fill->schema->n_fields;
    int r = PEN_OK;
    for (uint32_t s = 0; s < c->n; s++) {
        PenStoredSample *to = &c->samples[s];
        PenStoredValue *values = c->values + (size_t)s * n_fields;
        pen__block_key(&b->view, s, &to->key, &to->key_bytes);
        to->values = values;
        for (uint32_t f = 0; f < n_fields && r == PEN_OK; f++)
            r = copy_value(fill, b, s, f, &values[f], reterr);
    }
    return r;
}

/* A section goes to the image it belongs to; one that belongs to none is left behind. */
static int copy_section(void *ctx, const PenSection *s)
{
    Fill *fill = ctx;
    if (strcmp(s->type, "META") != 0 || s->sample >= fill->c->n ||
        s->field >= fill->schema->n_fields)
        return PEN_OK;
    const PenStoredValue *v =
        &fill->c->values[(size_t)s->sample * fill->schema->n_fields + s->field];
    if (s->frame < v->n_images) {
        PenStoredImage *image = (PenStoredImage *)&v->images[s->frame];
        image->meta = s->data;
        image->meta_bytes = s->bytes;
    }
    return PEN_OK;
}

static int fill_copied(PenCopied *c, const PenBlock *b, PenError *reterr)
{
    Count n = count(&b->view);
    const PenSchema *schema = b->view.schema;
    c->n = b->view.n_samples;
    c->samples = pen__zalloc((size_t)c->n * sizeof *c->samples);
    c->values = pen__zalloc((size_t)c->n * schema->n_fields * sizeof *c->values);
    c->images = pen__alloc_array(n.images, sizeof *c->images);
    c->videos = pen__alloc_array(n.videos, sizeof *c->videos);
    c->lengths = pen__alloc_array(n.lengths, sizeof *c->lengths);
    if (!c->samples || !c->values || !c->images || !c->videos || !c->lengths)
        return pen__fail_memory(reterr, WHERE, "a block");
    Fill fill = {c, schema, c->images, c->videos, c->lengths};
    int r = copy_samples(&fill, b, reterr);
    if (r == PEN_OK)
        r = pen__sections_walk(b, c->data.data + b->view.sections_offset, copy_section, &fill,
                               reterr);
    return r;
}

int pen__copy_block(PenPack *p, uint64_t block, PenCopied *ret, PenError *reterr)
{
    PenCopied c = {0};
    PenShardRef *ref = NULL;
    PenBlock b;
    uint64_t shard = pen__pack_shard_of(p, block);
    int r = pen__pack_shard(p, shard, &ref, reterr);
    if (r < 0)
        return r;
    PenBlockEntry e =
        pen__shard_block(&ref->shard, block - pen__pack_manifest(p)->shards[shard].first_block);
    if (pen__buf_reserve(&c.data, (size_t)e.bytes + PEN_SLACK) < 0)
        r = pen__fail_memory(reterr, WHERE, "a block");
    if (r == PEN_OK)
        r = pen__block_fetch(p, block, ref, c.data.data, reterr);
    if (r == PEN_OK)
        r = pen__block_open_memory(p, block, ref, c.data.data, &b, reterr);
    if (r == PEN_OK)
        r = fill_copied(&c, &b, reterr);
    pen__pack_shard_put(p, ref);
    if (r < 0)
        pen__copied_free(&c);
    else
        *ret = c;
    return r;
}

void pen__copied_free(PenCopied *c)
{
    pen__free(c->samples);
    pen__free(c->values);
    pen__free(c->images);
    pen__free(c->videos);
    pen__free(c->lengths);
    pen__buf_free(&c->data);
    *c = (PenCopied){0};
}
