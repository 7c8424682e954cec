/* SPDX-License-Identifier: Apache-2.0 */
#include "manage/copy_block.h"

#include "pack/reader/sections.h"

#define WHERE "manage/copy"

typedef struct Copy {
    PenBlock block;
    PenSink *sink;
    PenBuf *buf;
} Copy;

static int write_bytes(void *ctx, const uint8_t *data, size_t bytes, PenError *reterr)
{
    return pen__sink_write(ctx, data, bytes, reterr);
}

static int make_space(const Copy *c, uint64_t bytes, PenError *reterr)
{
    c->buf->bytes = 0;
    return bytes > SIZE_MAX / 4 || pen__buf_reserve(c->buf, (size_t)bytes + PEN_SLACK) < 0
               ? pen__fail_memory(reterr, WHERE, c->block.shard->shard.source->name)
               : PEN_OK;
}

static int copy_images(const Copy *c, PenSpot *at, PenError *reterr)
{
    uint32_t n = pen__block_images(&c->block.view, at->sample, at->field);
    int r = PEN_OK;
    for (at->frame = 0; at->frame < n && r == PEN_OK; at->frame++) {
        r = pen__pack_read_payload(at, c->buf, reterr);
        if (r == PEN_OK)
            r = pen__sink_write(c->sink, c->buf->data, c->buf->bytes, reterr);
    }
    at->frame = 0;
    return r;
}

static int copy_blob(const Copy *c, const PenSpot *at, PenError *reterr)
{
    PenBlobEntry e = pen__block_blob(&c->block.view, at->sample, at->field);
    int r = make_space(c, e.bytes, reterr);
    if (r == PEN_OK)
        r = pen__pack_read_blob(at, &e, c->buf->data, reterr);
    return r < 0 ? r : pen__sink_write(c->sink, c->buf->data, (size_t)e.bytes, reterr);
}

/* In the order of the payloads. */
static int copy_value(const Copy *c, PenSpot *at, PenError *reterr)
{
    const PenBlockView *v = &c->block.view;
    PenVideoTable video;
    if (pen__block_video(v, at->sample, at->field, &video))
        return pen__pack_each_run(at, c->buf, write_bytes, c->sink, reterr);
    if (pen__field_is_blob(&v->schema->fields[at->field]))
        return copy_blob(c, at, reterr);
    return copy_images(c, at, reterr);
}

static int copy_sections(const Copy *c, PenError *reterr)
{
    const PenBlock *b = &c->block;
    uint64_t offset = b->view.sections_offset, bytes = b->view.bytes - offset;
    int r = make_space(c, bytes, reterr);
    if (r == PEN_OK)
        r = pen__block_read(b, offset, bytes, c->buf->data, reterr);
    if (r == PEN_OK)
        r = pen__sections_walk(b, c->buf->data, NULL, NULL, reterr);
    return r < 0 ? r : pen__sink_write(c->sink, c->buf->data, (size_t)bytes, reterr);
}

static int copy_payloads(const Copy *c, PenError *reterr)
{
    const PenBlockView *v = &c->block.view;
    int r = PEN_OK;
    for (uint32_t s = 0; s < v->n_samples && r == PEN_OK; s++)
        for (uint32_t f = 0; f < v->schema->n_fields && r == PEN_OK; f++) {
            PenSpot at = {.block = &c->block, .sample = s, .field = f};
            r = copy_value(c, &at, reterr);
        }
    return r < 0 ? r : copy_sections(c, reterr);
}

static int copy_block(Copy *c, const PenSchema *schema, uint64_t block, PenError *reterr)
{
    PenShard *s = &c->block.shard->shard;
    uint8_t *index = NULL;
    c->block.number = block;
    c->block.first_sample = block * s->block_samples;
    c->block.offset = pen__shard_block(s, block).offset;
    int r = pen__shard_index(s, schema, block, &index, &c->block.view, reterr);
    if (r == PEN_OK)
        r = pen__sink_write(c->sink, index, (size_t)c->block.view.index_bytes, reterr);
    if (r == PEN_OK)
        r = copy_payloads(c, reterr);
    pen__free(index);
    return r;
}

int pen__copy_part_by_payloads(PenShardRef *ref, const PenSchema *schema, const PenShardPart *part,
                               PenSink *sink, PenBuf *buf, PenError *reterr)
{
    int r = PEN_OK;
    for (uint64_t piece = part->first; piece < part->end && r == PEN_OK; piece++) {
        Copy c = {.block = {.shard = ref}, .sink = sink, .buf = buf};
        if (piece >= 1 && piece <= ref->shard.entry.n_blocks) {
            r = copy_block(&c, schema, piece - 1, reterr);
            continue;
        }
        PenShardPart one = pen__shard_part(&ref->shard, piece, 1);
        r = pen__shard_part_read(ref, schema, &one, buf, reterr);
        if (r == PEN_OK)
            r = pen__sink_write(sink, buf->data, (size_t)one.bytes, reterr);
    }
    return r;
}
