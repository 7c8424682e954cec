/* SPDX-License-Identifier: Apache-2.0 */
#include "load/read/sample.h"

#include <string.h>

#include "base/bytes.h"
#include "load/read/clip.h"
#include "load/read/follow.h"
#include "load/read/list.h"
#include "load/read/values.h"
#include "load/read/window.h"
#include "ops/sample/orientation.h"

#define WHERE "load/read"

static PenSpot spot_of(const PenOutField *f, const PenLocation *at, PenStageClock *clock)
{
    return (PenSpot){.block = at->block, .sample = at->in_block, .field = f->field, .clock = clock};
}

static int no_image(const PenOutField *f, PenError *reterr)
{
    return pen__fail(reterr, PEN_E_NOT_FOUND, WHERE,
                     "field '%s' is empty; leave the sample out with a subset", f->name);
}

/* A mask has the geometry of its image, so it has to have its size. */
static int check_mask(const PenTask *task, const PenOutField *image, const PenOutField *mask,
                      const PenImageShape *shape, PenError *reterr)
{
    PenBox of = pen__turn_upright(&task->images[image->image].sample_plan.shape);
    PenBox found = pen__turn_upright(shape);
    if (found.w == of.w && found.h == of.h)
        return PEN_OK;
    return pen__fail(reterr, PEN_E_INVALID, WHERE,
                     "mask '%s': expected the size of '%s' (%u x %u), found %u x %u", mask->name,
                     image->name, of.w, of.h, found.w, found.h);
}

/* Of the result: height, width. */
static void store_size(const PenTask *task, const PenOutField *f)
{
    const PenSamplePlan *sample_plan = &task->images[f->image].sample_plan;
    int64_t *to = (int64_t *)(void *)pen__task_place(task, &task->to.fields[f->sizes]);
    to[0] = sample_plan->height;
    to[1] = sample_plan->width;
}

/* Of patches: how many down and across, and which of the sequence they are. */
static void store_grid(const PenTask *task, const PenOutField *f)
{
    const PenSamplePlan *sample_plan = &task->images[f->image].sample_plan;
    const PenOutField *sizes = &task->to.fields[f->grid], *mask = sizes + 1;
    int64_t *to = (int64_t *)(void *)pen__task_place(task, sizes);
    PenPatches patches;
    pen__program_patches(f->program, &patches);
    to[0] = sample_plan->height / patches.side;
    to[1] = sample_plan->width / patches.side;
    memset(pen__task_place(task, mask), 0, mask->bytes);
    memset(pen__task_place(task, mask), 1, (size_t)(to[0] * to[1]));
}

static int locate_image(const PenLoadPlan *plan, PenTask *task, const PenOutField *f,
                        PenLocation *at, PenError *reterr)
{
    PenImageEntry e = pen__block_image(&at->block->view, at->in_block, f->field, 0);
    if (e.codec == PEN_STORED_NONE)
        return no_image(f, reterr);
    PenImageShape shape = {e.width, e.height, e.orientation ? e.orientation : 1,
                           e.codec == PEN_STORED_JPEG};
    int r = PEN_OK;
    for (uint32_t i = 0; i < f->repeats && r == PEN_OK; i++)
        r = pen__sample_plan_make_view(f->program, &shape, pen__task_key(plan, task, f),
                                       task->to.sample, i, &task->images[f->image + i].sample_plan,
                                       reterr);
    if (r == PEN_OK && f->kind == PEN_KIND_MASK && f->follows >= 0)
        r = check_mask(task, &task->to.fields[f->follows], f, &shape, reterr);
    if (r == PEN_OK && f->sizes)
        store_size(task, f);
    if (r == PEN_OK && f->grid)
        store_grid(task, f);
    /* An entry of 2 bytes or more becomes one of 16; a length of 2 one of 4. */
    uint32_t grows = pen__block_is_indexed(&at->block->view, &e) ? 8 : 2;
    if (f->n_views)
        at->bytes += e.bytes + PEN_SLACK + e.table_bytes * grows;
    return r;
}

static int store_number(const PenTask *task, const PenOutField *f, const PenLocation *at,
                        PenError *reterr)
{
    const uint8_t *number = pen__block_number(&at->block->view, at->in_block, f->field);
    int r = pen__program_store_number(f->program, number, pen__task_place(task, f), reterr);
    if (r < 0)
        pen__error_prefix(reterr, "field '%.60s'", f->name);
    return r;
}

int pen__sample_locate(const PenLoadPlan *plan, PenTask *task, PenLocation *ret, PenError *reterr)
{
    int r = pen__location_find(task->to.pack, task->to.sample, task->block, ret, reterr);
    /* Images first: masks are compared with them. */
    for (uint32_t i = 0; i < plan->n_fields && r == PEN_OK; i++)
        if (task->to.fields[i].kind == PEN_KIND_IMAGE)
            r = locate_image(plan, task, &task->to.fields[i], ret, reterr);
    for (uint32_t i = 0; i < plan->n_fields && r == PEN_OK; i++) {
        const PenOutField *f = &task->to.fields[i];
        if (f->kind == PEN_KIND_MASK)
            r = locate_image(plan, task, f, ret, reterr);
        else if (f->kind == PEN_KIND_CLIP)
            r = pen__clip_locate(plan, task, f, ret, reterr);
        else if (f->kind == PEN_KIND_NUMBER)
            r = store_number(task, f, ret, reterr);
        else if (f->kind == PEN_KIND_WINDOW)
            pen__window_locate(f, ret);
        else if (f->kind == PEN_KIND_SOURCE)
            memcpy(pen__task_place(task, f), &(int64_t){f->field}, sizeof(int64_t));
    }
    if (r < 0)
        pen__location_release(task->to.pack, ret);
    else
        pen__values_locate(plan, task, ret);
    return r;
}

/* Lengths of the segments that were read, for the decoder. */
static int list_lengths(PenTaskImage *im, const PenSegmentTable *t, PenError *reterr)
{
    uint32_t n = im->slice.end - im->slice.first;
    im->lengths.bytes = 0;
    if (pen__buf_reserve(&im->lengths, (size_t)n * 4) < 0)
        return pen__fail_memory(reterr, WHERE, "segment lengths");
    for (uint32_t i = 0; i < n; i++)
        pen__store32(im->lengths.data + (size_t)i * 4,
                     (uint32_t)pen__segment_bytes(t, im->slice.first + i));
    im->lengths.bytes = (size_t)n * 4;
    return PEN_OK;
}

static int read_segments(const PenSpot *spot, const PenImageEntry *e, PenTaskImage *im, uint32_t n,
                         PenError *reterr)
{
    PenSegmentTable t = pen__block_segments(&spot->block->view, e);
    PenCut cut = {e->codec, t.components, t.h_samp, t.v_samp, e->width, e->height, 0};
    uint32_t first = UINT32_MAX, last = 0;
    for (uint32_t i = 0, from, to; i < n; i++) { /* what lies between views is read with them */
        const PenSamplePlan *plan = &im[i].sample_plan;
        cut.shrink = plan->shrink;
        pen__region_segments(&cut, plan->region.y, plan->region.h, &from, &to);
        first = PEN_MIN(first, from);
        last = PEN_MAX(last, to);
    }
    int r = pen__pack_read_slice(spot, first, last, &im->slice, reterr);
    if (r < 0)
        return r;
    PenEncoded *enc = &im->encoded;
    enc->tiled = e->codec == PEN_STORED_JPEG;
    enc->partial = im->slice.first > 0 || im->slice.end < t.n_segments;
    enc->head_bytes = t.head_bytes;
    enc->first_segment = im->slice.first;
    enc->end_segment = im->slice.end;
    if (enc->tiled) {
        r = list_lengths(im, &t, reterr);
        enc->segment_bytes = (const uint32_t *)(const void *)im->lengths.data;
    }
    return r;
}

/* The part of a file that is needed. */
static int read_scan(const PenSpot *spot, const PenImageEntry *e, const PenStoredEntries *t,
                     PenTaskImage *im, uint32_t n, PenError *reterr)
{
    PenCut cut = {e->codec, (uint8_t)t->plan.components, t->h_samp, t->v_samp, e->width, e->height,
                  0};
    PenScanPart part;
    uint64_t from = UINT64_MAX, end = 0, a, b;
    for (uint32_t i = 0; i < n; i++) {
        cut.shrink = im[i].sample_plan.shrink;
        pen__region_scan(&cut, &im->index, &im[i].sample_plan.region, &a, &b);
        from = PEN_MIN(from, a);
        end = PEN_MAX(end, b);
    }
    int r = pen__pack_read_scan(spot, from, end, &im->slice.data, &part, reterr);
    if (r < 0)
        return r;
    im->encoded.partial = 1;
    im->encoded.head_bytes = part.head_bytes;
    im->encoded.scan_offset = part.scan_offset;
    return PEN_OK;
}

/* An index that cannot be parsed is not used, nor is one that has turned out to be wrong. */
static int read_indexed(const PenSpot *spot, const PenImageEntry *e, PenTaskImage *im, uint32_t n,
                        bool complete, PenError *reterr)
{
    PenStoredEntries t = pen__block_entries(&spot->block->view, e).stored;
    if (complete || !pen__region_takes_parts())
        return pen__pack_read_payload(spot, &im->slice.data, reterr);
    int r = pen__entries_parse(t.coded, t.coded_bytes, &t.plan, t.scan_bytes, &im->entries,
                               &im->index, reterr);
    if (r == PEN_E_DECODE)
        return pen__pack_read_payload(spot, &im->slice.data, reterr);
    im->encoded.entries = &im->index;
    return r < 0 ? r : read_scan(spot, e, &t, im, n, reterr);
}

/* Once, for all views of it. */
static int read_image(const PenOutField *f, PenTask *task, const PenLocation *at, PenError *reterr)
{
    PenTaskImage *im = &task->images[f->image];
    PenSpot spot = spot_of(f, at, pen__task_clock(task));
    PenImageEntry e = pen__block_image(&at->block->view, at->in_block, f->field, 0);
    im->encoded = (PenEncoded){
        .width = e.width, .height = e.height, .codec = e.codec, .channels = e.channels};
    int r;
    if (pen__block_is_indexed(&at->block->view, &e))
        r = read_indexed(&spot, &e, im, f->n_views, task->complete, reterr);
    else if (e.table_bytes)
        r = read_segments(&spot, &e, im, f->n_views, reterr);
    else
        r = pen__pack_read_payload(&spot, &im->slice.data, reterr);
    im->encoded.data = im->slice.data.data;
    im->encoded.bytes = im->slice.data.bytes;
    for (uint32_t i = 1; i < f->n_views; i++)
        im[i].encoded = im->encoded;
    return r;
}

int pen__sample_read(const PenLoadPlan *plan, PenTask *task, const PenLocation *at,
                     PenError *reterr)
{
    int r = pen__values_fetch(task, at, reterr);
    task->bytes_read = 0;
    for (uint32_t i = 0; i < plan->n_fields && r == PEN_OK; i++) {
        const PenOutField *f = &task->to.fields[i];
        if (f->kind == PEN_KIND_CLIP)
            r = pen__clip_read(task, f, at, reterr);
        if (f->kind == PEN_KIND_LIST)
            r = pen__list_read(task, f, at, reterr);
        if (f->kind == PEN_KIND_WINDOW)
            r = pen__window_read(task, f, at, reterr);
        if (!f->n_views)
            continue;
        PenTaskImage *im = &task->images[f->image];
        r = read_image(f, task, at, reterr);
        if (r == PEN_E_CORRUPT)
            r = read_image(f, task, at, reterr);
        task->bytes_read += im->encoded.bytes;
    }
    return r == PEN_OK && plan->n_follows ? pen__sample_follow(plan, task, reterr) : r;
}
