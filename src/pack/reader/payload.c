/* SPDX-License-Identifier: Apache-2.0 */
/* Checking payloads, and reading parts of them. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "pack/reader/reader_impl.h"

#define WHERE "pack/payload"

int pen__block_read(const PenBlock *b, uint64_t offset, uint64_t bytes, void *buf, PenError *reterr)
{
    uint64_t first = b->index ? b->part_offset : 0, n = b->is_whole ? UINT64_MAX : b->part_bytes;
    bool is_wrong = atomic_load_explicit(&b->is_wrong, memory_order_relaxed);
    if (is_wrong || offset < first || offset - first > n || bytes > n - (offset - first))
        return pen__source_read(b->shard->shard.source, buf, (size_t)bytes, b->offset + offset,
                                reterr);
    if (bytes)
        memcpy(buf, b->data + (offset - first), (size_t)bytes);
    return PEN_OK;
}

static PenPlace place_of(const PenSpot *at)
{
    return pen__block_place(&at->block->view, at->sample, at->field, at->frame);
}

static uint32_t sum_of(const PenSpot *at, const PenPlace *place, const void *data, size_t bytes)
{
    uint64_t begin = pen__stage_begin(at->clock);
    uint32_t sum = pen__place_sum(place, data, bytes);
    pen__stage_end(at->clock, PEN_TIMED_VERIFY, begin);
    return sum;
}

typedef struct Payload {
    uint64_t offset, bytes; /* bytes: 0 of a video */
} Payload;

static Payload payload_of(const PenSpot *at)
{
    const PenBlockView *v = &at->block->view;
    if (pen__field_is_blob(&v->schema->fields[at->field])) {
        PenBlobEntry e = pen__block_blob(v, at->sample, at->field);
        return (Payload){e.offset, e.bytes};
    }
    if (v->schema->fields[at->field].type == PEN_TYPE_CLIP &&
        !pen__block_images(v, at->sample, at->field))
        return (Payload){.offset = pen__block_clip(v, at->sample, at->field).offset};
    PenImageEntry e = pen__block_image(v, at->sample, at->field, at->frame);
    return (Payload){e.offset, e.bytes};
}

/* A cache does not give the same bytes again, nor does a part that is in memory. Of a video,
 * `offset` is that of a run. */
static void forget(const PenSpot *at, uint64_t offset)
{
    const PenBlock *b = at->block;
    Payload p = payload_of(at);
    if (!p.bytes)
        p = (Payload){offset, PEN_VIDEO_RUN_BYTES};
    bool was_wrong = b->index && atomic_exchange_explicit(&((PenBlock *)at->block)->is_wrong, true,
                                                          memory_order_relaxed);
    if (b->cached_by && !was_wrong)
        pen__block_forget(b->cached_by, b->number);
    else if (!b->is_whole)
        pen__source_forget(b->shard->shard.source, p.bytes, b->offset + p.offset);
}

/* Of bytes that may come from a file outside of the pack: the message names the file, but says
 * nothing about what it has, since a pack could be made to ask for it. */
static int outside_changed(const PenSpot *at, PenError *reterr)
{
    const PenBlock *b = at->block;
    PenSource *source = b->shard->shard.source;
    uint64_t sample = b->first_sample + at->sample;
    PenOrigin origin = {.is_modified = false};
    /* The beginning of what does not fit, not the part of it that does not: a pack could be made to
     * ask by parts what a file has. */
    int r = pen__source_origin(source, b->offset + payload_of(at).offset, &origin, reterr);
    if (r == 0)
        snprintf(origin.name, sizeof origin.name, "%.400s", source->name);
    if (r >= 0) /* else the file itself is missing, or has another size */
        r = pen__fail(reterr, PEN_E_CORRUPT, WHERE,
                      "%s: does not match its checksum: sample %" PRIu64
                      ", field '%s' has changed since the pack was made, or is damaged%s; the "
                      "other samples can be read",
                      origin.name, sample, b->view.schema->fields[at->field].name,
                      origin.is_modified ? " (the file was modified after it was indexed)" : "");
    if (reterr)
        reterr->sample = (int64_t)sample;
    return r;
}

int pen__sum_check(const PenSpot *at, uint64_t offset, uint32_t found, uint32_t expected,
                   PenError *reterr)
{
    const PenBlock *b = at->block;
    if (PEN_LIKELY(found == expected))
        return PEN_OK;
    forget(at, offset);
    if (b->shard->shard.entry.stored_bytes)
        return outside_changed(at, reterr);
    int r = pen__fail(
        reterr, PEN_E_CORRUPT, WHERE,
        "%s: block %u, sample %u (%" PRIu64 " of the pack), field '%s', offset %" PRIu64
        ": checksum 0x%08x, expected 0x%08x: the sample is damaged or misplaced; the other samples "
        "can be read",
        b->shard->shard.source->name, b->view.block, at->sample, b->first_sample + at->sample,
        b->view.schema->fields[at->field].name, b->offset + offset, found, expected);
    if (reterr)
        reterr->sample = (int64_t)(b->first_sample + at->sample);
    return r;
}

int pen__blob_check(const PenSpot *at, const PenBlobEntry *e, const uint8_t *data, PenError *reterr)
{
    PenPlace place = place_of(at);
    return pen__sum_check(at, e->offset, sum_of(at, &place, data, (size_t)e->bytes), e->crc,
                          reterr);
}

/* The runs from `run` up to segment `end`; `data` begins with the first of them. */
static int check_runs(const PenSpot *at, uint64_t payload, const PenSegmentTable *t, PenRun run,
                      uint32_t end, const uint8_t *data, PenError *reterr)
{
    PenPlace place = place_of(at);
    int more = 1;
    while (more) {
        place.run = run.run + 1;
        uint32_t sum = sum_of(at, &place, data, (size_t)run.bytes);
        int r = pen__sum_check(at, payload + run.offset, sum, pen__run_sum(t, run.run), reterr);
        if (r < 0)
            return r;
        data += run.bytes;
        more = run.end < end && pen__run_next(t, &run);
    }
    return PEN_OK;
}

/* The parts of an indexed JPEG from `part` up to `end`; `data` begins with the first of them. */
static int check_parts(const PenSpot *at, const PenImageEntry *e, const PenEntryTable *t,
                       uint32_t part, uint32_t end, const uint8_t *data, PenError *reterr)
{
    PenPlace place = place_of(at);
    int r = PEN_OK;
    for (; part < end && r == PEN_OK; part++) {
        PenFilePart p = pen__entry_table_part(t, part);
        uint32_t expected = part == PEN_FILE_LEAD ? e->crc : pen__entry_table_sum(t, part);
        place.run = part;
        uint32_t sum = sum_of(at, &place, data, (size_t)p.bytes);
        r = pen__sum_check(at, e->offset + p.offset, sum, expected, reterr);
        data += p.bytes;
    }
    return r;
}

int pen__payload_check(const PenSpot *at, const PenImageEntry *e, const uint8_t *data,
                       PenError *reterr)
{
    PenPlace place = place_of(at);
    if (e->codec == PEN_STORED_NONE)
        return PEN_OK;
    if (!e->table_bytes)
        return pen__sum_check(at, e->offset, sum_of(at, &place, data, (size_t)e->bytes), e->crc,
                              reterr);
    if (pen__block_is_indexed(&at->block->view, e)) {
        PenEntryTable entries = pen__block_entries(&at->block->view, e);
        return check_parts(at, e, &entries, 0, entries.n_parts, data, reterr);
    }
    PenSegmentTable t = pen__block_segments(&at->block->view, e);
    int r = pen__sum_check(at, e->offset, sum_of(at, &place, data, t.head_bytes), e->crc, reterr);
    if (r < 0)
        return r;
    PenRun run;
    pen__run_first(&t, &run);
    return check_runs(at, e->offset, &t, run, t.n_segments, data + t.head_bytes, reterr);
}

int pen__payload_check_arrived(const PenSpot *at, const PenImageEntry *e, const uint8_t *data,
                               uint64_t arrived, uint32_t *part, PenError *reterr)
{
    if (!e->table_bytes || !pen__block_is_indexed(&at->block->view, e)) {
        int r = arrived < e->bytes ? PEN_OK : pen__payload_check(at, e, data, reterr);
        return r < 0 ? r : arrived >= e->bytes;
    }
    PenEntryTable t = pen__block_entries(&at->block->view, e);
    uint32_t from = *part;
    for (; *part < t.n_parts; ++*part) {
        PenFilePart p = pen__entry_table_part(&t, *part);
        if (p.offset + p.bytes > arrived)
            break;
    }
    if (*part > from) {
        uint64_t offset = pen__entry_table_part(&t, from).offset;
        int r = check_parts(at, e, &t, from, *part, data + offset, reterr);
        if (r < 0)
            return r;
    }
    return *part == t.n_parts;
}

/* ---- reading --------------------------------------------------------------------------------- */

int pen__block_read_again(const PenBlock *b, uint64_t offset, uint64_t bytes, void *buf,
                          PenError *reterr)
{
    PenSource *source = b->shard->shard.source;
    return b->is_whole || !source->is_remote
               ? PEN_E_CORRUPT
               : pen__source_read_again(source, buf, (size_t)bytes, b->offset + offset, reterr);
}

int pen__pack_read_blob(const PenSpot *at, const PenBlobEntry *e, uint8_t *to, PenError *reterr)
{
    int r = pen__block_read(at->block, e->offset, e->bytes, to, reterr);
    if (r == PEN_OK)
        r = pen__blob_check(at, e, to, reterr);
    for (int i = 1; i < PEN_REMOTE_READS && r == PEN_E_CORRUPT; i++) {
        r = pen__block_read_again(at->block, e->offset, e->bytes, to, reterr);
        if (r == PEN_OK)
            r = pen__blob_check(at, e, to, reterr);
    }
    return r;
}

int pen__pack_read_image(const PenSpot *at, const PenImageEntry *e, uint8_t *to, PenError *reterr)
{
    int r = pen__block_read(at->block, e->offset, e->bytes, to, reterr);
    if (r == PEN_OK)
        r = pen__payload_check(at, e, to, reterr);
    for (int i = 1; i < PEN_REMOTE_READS && r == PEN_E_CORRUPT; i++) {
        r = pen__block_read_again(at->block, e->offset, e->bytes, to, reterr);
        if (r == PEN_OK)
            r = pen__payload_check(at, e, to, reterr);
    }
    return r;
}

int pen__pack_read_payload(const PenSpot *at, PenBuf *ret, PenError *reterr)
{
    const PenBlock *b = at->block;
    const char *name = b->shard->shard.source->name;
    PenImageEntry e = pen__block_image(&b->view, at->sample, at->field, at->frame);
    ret->bytes = 0;
    if (e.bytes > SIZE_MAX - PEN_SLACK || pen__buf_reserve(ret, (size_t)e.bytes + PEN_SLACK) < 0)
        return pen__fail_memory(reterr, WHERE, name);
    int r = pen__pack_read_image(at, &e, ret->data, reterr);
    if (r < 0)
        return r;
    ret->bytes = (size_t)e.bytes;
    memset(ret->data + ret->bytes, 0, PEN_SLACK);
    return PEN_OK;
}

/* The runs that hold the segments [first, last]. */
typedef struct Want {
    PenRun from;    /* the first run */
    uint64_t bytes; /* of all runs */
    uint32_t end;   /* behind the last segment */
} Want;

static void find_runs(const PenSegmentTable *t, uint32_t first, uint32_t last, Want *ret)
{
    PenRun run;
    pen__run_first(t, &run);
    while (run.end <= first)
        pen__run_next(t, &run);
    *ret = (Want){run, run.bytes, run.end};
    while (ret->end <= last) {
        pen__run_next(t, &run);
        ret->bytes += run.bytes;
        ret->end = run.end;
    }
}

static int read_slice(const PenSpot *at, const PenImageEntry *e, const PenSegmentTable *t,
                      const Want *want, PenBuf *out, PenError *reterr)
{
    const PenBlock *b = at->block;
    PenPlace place = place_of(at);
    size_t head = t->head_bytes;
    out->bytes = 0;
    if (pen__buf_reserve(out, head + (size_t)want->bytes + PEN_SLACK) < 0)
        return pen__fail_memory(reterr, WHERE, b->shard->shard.source->name);
    int r = pen__block_read(b, e->offset, head, out->data, reterr);
    if (r == PEN_OK)
        r = pen__block_read(b, e->offset + want->from.offset, want->bytes, out->data + head,
                            reterr);
    if (r == PEN_OK)
        r = pen__sum_check(at, e->offset, sum_of(at, &place, out->data, head), e->crc, reterr);
    if (r == PEN_OK)
        r = check_runs(at, e->offset, t, want->from, want->end, out->data + head, reterr);
    if (r < 0)
        return r;
    out->bytes = head + (size_t)want->bytes;
    memset(out->data + out->bytes, 0, PEN_SLACK);
    return PEN_OK;
}

int pen__pack_read_slice(const PenSpot *at, uint32_t first, uint32_t last, PenSlice *ret,
                         PenError *reterr)
{
    const PenBlock *b = at->block;
    const char *name = b->shard->shard.source->name;
    PenImageEntry e = pen__block_image(&b->view, at->sample, at->field, at->frame);
    if (!e.table_bytes || pen__block_is_indexed(&b->view, &e))
        return pen__fail(reterr, PEN_E_INVALID, WHERE,
                         "%s: block %u, sample %u: has no segments: read all of it", name,
                         b->view.block, at->sample);
    PenSegmentTable t = pen__block_segments(&b->view, &e);
    if (last >= t.n_segments || first > last)
        return pen__fail(reterr, PEN_E_INVALID, WHERE,
                         "%s: block %u, sample %u: segments %u to %u requested, but it has %u",
                         name, b->view.block, at->sample, first, last, t.n_segments);
    Want want;
    find_runs(&t, first, last, &want);
    int r = read_slice(at, &e, &t, &want, &ret->data, reterr);
    if (r < 0)
        return r;
    ret->segments_offset = t.head_bytes;
    ret->first = want.from.first;
    ret->end = want.end;
    return PEN_OK;
}

/* ---- indexed JPEGs --------------------------------------------------------------------------- */

/* Tables and runs follow each other in the file, so that the first runs take no read of their own.
 */
static int read_parts(const PenSpot *at, uint64_t payload, PenFilePart tables, PenFilePart runs,
                      uint8_t *to, PenError *reterr)
{
    const PenBlock *b = at->block;
    if (tables.offset + tables.bytes == runs.offset)
        return pen__block_read(b, payload + tables.offset, tables.bytes + runs.bytes, to, reterr);
    int r = pen__block_read(b, payload + tables.offset, tables.bytes, to, reterr);
    return r < 0 ? r
                 : pen__block_read(b, payload + runs.offset, runs.bytes, to + tables.bytes, reterr);
}

int pen__pack_read_scan(const PenSpot *at, uint64_t from, uint64_t end, PenBuf *data,
                        PenScanPart *ret, PenError *reterr)
{
    static const uint8_t soi[] = {0xFF, 0xD8};
    const PenBlock *b = at->block;
    PenImageEntry e = pen__block_image(&b->view, at->sample, at->field, at->frame);
    PenEntryTable t = pen__block_entries(&b->view, &e);
    uint32_t first = PEN_FILE_RUNS + (uint32_t)(from / PEN_RUN_BYTES);
    uint32_t last = PEN_FILE_RUNS + (uint32_t)((end - 1) / PEN_RUN_BYTES);
    PenFilePart tables = pen__entry_table_part(&t, PEN_FILE_TABLES);
    PenFilePart runs = pen__entry_table_part(&t, first), behind = pen__entry_table_part(&t, last);
    runs.bytes = behind.offset + behind.bytes - runs.offset;
    size_t bytes = sizeof soi + (size_t)(tables.bytes + runs.bytes);
    data->bytes = 0;
    if (pen__buf_reserve(data, bytes + PEN_SLACK) < 0)
        return pen__fail_memory(reterr, WHERE, b->shard->shard.source->name);
    uint8_t *to = data->data + sizeof soi;
    memcpy(data->data, soi, sizeof soi);
    int r = read_parts(at, e.offset, tables, runs, to, reterr);
    if (r == PEN_OK)
        r = check_parts(at, &e, &t, PEN_FILE_TABLES, PEN_FILE_RUNS, to, reterr);
    if (r == PEN_OK)
        r = check_parts(at, &e, &t, first, last + 1, to + tables.bytes, reterr);
    if (r < 0)
        return r;
    data->bytes = bytes;
    memset(data->data + bytes, 0, PEN_SLACK);
    *ret = (PenScanPart){.head_bytes = (uint32_t)(sizeof soi + tables.bytes),
                         .scan_offset = runs.offset - t.stored.head_bytes};
    return PEN_OK;
}
