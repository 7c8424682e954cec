/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks from a server: checked while they arrive, and requested again when they are wrong. */
#include "pack/reader/arriving.h"

#include "base/attr.h"
#include "base/crc32c.h"

#define WHERE "pack/blocks"

void pen__arriving_begin(PenArriving *a, PenPack *p, uint64_t block, PenShardRef *shard,
                         uint8_t *data)
{
    *a = (PenArriving){.pack = p,
                       .entry =
                           pen__shard_block(&shard->shard, block - p->first_blocks[shard->number]),
                       .block = {.number = block, .shard = shard, .data = data}};
}

static void anew(PenArriving *a)
{
    pen__arriving_begin(a, a->pack, a->block.number, a->block.shard, a->block.data);
}

static uint32_t frames_of(const PenArriving *a)
{
    return pen__block_images(&a->block.view, a->n_checked, a->field);
}

/* Of a video, the runs that have arrived. */
static int check_video(PenArriving *a, const PenSpot *at, const PenVideoTable *t, uint64_t bytes)
{
    uint64_t offset = pen__block_clip(&a->block.view, at->sample, at->field).offset;
    uint64_t arrived = PEN_MIN(bytes - PEN_MIN(bytes, offset), t->payload_bytes);
    uint32_t end =
        arrived == t->payload_bytes ? t->n_runs : (uint32_t)(arrived / PEN_VIDEO_RUN_BYTES);
    if (end > a->part) {
        const uint8_t *data = a->block.data + offset + pen__video_table_run(t, a->part).offset;
        int r = pen__video_check_runs(at, t, a->part, end, data, NULL);
        if (r < 0)
            return r;
        a->part = end;
    }
    return end == t->n_runs;
}

/* The next payload. They lie one after another, in the order of the samples. Images are checked in
 * parts: an entire one is larger than the first cache of the processor, where its bytes still are.
 * 1: it fits. 0: it has not arrived yet. */
static int check_next(PenArriving *a, uint64_t bytes)
{
    const PenBlockView *v = &a->block.view;
    PenSpot at = {.block = &a->block, .sample = a->n_checked, .field = a->field, .frame = a->frame};
    if (a->field >= v->schema->n_fields)
        return 1;
    if (pen__field_is_blob(&v->schema->fields[a->field])) {
        PenBlobEntry e = pen__block_blob(v, a->n_checked, a->field);
        if (e.offset + e.bytes > bytes)
            return 0;
        int r = pen__blob_check(&at, &e, a->block.data + e.offset, NULL);
        return r < 0 ? r : 1;
    }
    PenVideoTable video;
    if (pen__block_video(v, a->n_checked, a->field, &video))
        return check_video(a, &at, &video, bytes);
    if (a->frame >= frames_of(a))
        return 1;
    PenImageEntry e = pen__block_image(v, a->n_checked, a->field, a->frame);
    uint64_t arrived = bytes - PEN_MIN(bytes, e.offset);
    return pen__payload_check_arrived(&at, &e, a->block.data + e.offset, arrived, &a->part, NULL);
}

static void advance(PenArriving *a)
{
    uint32_t n_fields = a->block.view.schema->n_fields;
    a->part = 0;
    if (a->field < n_fields && ++a->frame < frames_of(a))
        return;
    a->frame = 0;
    if (++a->field < n_fields)
        return;
    a->field = 0;
    a->n_checked++;
}

static int open_index(PenArriving *a)
{
    uint8_t *data = a->block.data;
    PenBlock b;
    int r = pen__block_open_memory(a->pack, a->block.number, a->block.shard, data, &b, NULL);
    if (r < 0)
        return r;
    a->block = b;
    a->block.data = data;
    a->is_open = true;
    return PEN_OK;
}

void pen__arriving_more(PenArriving *a, uint64_t bytes)
{
    const PenBlockView *v = &a->block.view;
    if (!bytes)
        anew(a);
    if (a->status < 0 || bytes < a->entry.index_bytes)
        return;
    if (!a->is_open)
        a->status = open_index(a);
    int r = 1;
    while (a->status == PEN_OK && a->n_checked < v->n_samples && r == 1) {
        r = check_next(a, bytes);
        if (r == 1)
            advance(a);
        a->status = PEN_MIN(r, PEN_OK);
    }
}

int pen__arriving_end(PenArriving *a)
{
    pen__arriving_more(a, a->entry.bytes);
    if (a->status == PEN_OK && a->n_checked < a->block.view.n_samples)
        a->status = PEN_E_CORRUPT; /* a payload that ends behind the block */
    if (a->status == PEN_OK)
        a->status = pen__block_check_sections(&a->block, NULL);
    a->is_checked = a->status == PEN_OK;
    return a->status;
}

int pen__block_accept(PenPack *p, uint64_t block, PenShardRef *shard, uint8_t *data)
{
    PenArriving a;
    pen__arriving_begin(&a, p, block, shard, data);
    return pen__arriving_end(&a);
}

static void on_arrival(void *ctx, uint64_t bytes)
{
    pen__arriving_more(ctx, bytes);
}

int pen__block_fetch_checked(PenPack *p, uint64_t block, PenShardRef *shard, uint8_t *data,
                             PenArriving *ret, PenError *reterr)
{
    PenSource *source = shard->shard.source;
    pen__arriving_begin(ret, p, block, shard, data);
    const PenBlockEntry *e = &ret->entry;
    const struct iovec place = {data, (size_t)e->bytes};
    const PenArrival arrival = {.call = on_arrival, .ctx = ret};
    uint32_t seen = 0;
    int r = pen__source_read_v(source, &place, 1, e->offset, &arrival, reterr);
    if (r < 0 || !source->is_remote)
        return r;
    /* Wrong on its way, maybe. What comes wrong in the same way over another connection lies there
     * so; what comes otherwise each time is not believed. */
    for (int i = 0; i < PEN_REMOTE_READS; i++) {
        if (i) {
            r = pen__source_read_again(source, data, (size_t)e->bytes, e->offset, reterr);
            anew(ret);
        }
        if (r < 0)
            return r;
        /* Another failure is the caller's to see. */
        if (pen__arriving_end(ret) != PEN_E_CORRUPT)
            return PEN_OK;
        uint32_t sum = pen__crc32c(0, data, (size_t)e->bytes);
        if (i && sum == seen)
            return PEN_OK;
        seen = sum;
    }
    return pen__fail(reterr, PEN_E_CORRUPT, WHERE,
                     "%s: block %u: %d reads returned different bytes, none of which match their "
                     "checksums; check the network",
                     source->name, (unsigned)(block - p->first_blocks[shard->number]),
                     (int)PEN_REMOTE_READS);
}

int pen__block_fetch(PenPack *p, uint64_t block, PenShardRef *shard, uint8_t *data,
                     PenError *reterr)
{
    PenArriving a;
    return pen__block_fetch_checked(p, block, shard, data, &a, reterr);
}
