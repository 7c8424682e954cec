/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of videos: what is read is rounded out to runs, each of which has a checksum. */
#include <inttypes.h>
#include <string.h>

#include "base/attr.h"
#include "base/bytes.h"
#include "pack/reader/reader_impl.h"

#define WHERE "pack/video"

enum { RUNS_AT_ONCE = 32 }; /* 2 MiB, for who goes through all of a video */

int pen__video_check_runs(const PenSpot *at, const PenVideoTable *t, uint32_t first, uint32_t end,
                          const uint8_t *data, PenError *reterr)
{
    const PenBlockView *v = &at->block->view;
    uint64_t payload = pen__block_clip(v, at->sample, at->field).offset;
    PenPlace place = pen__block_place(v, at->sample, at->field, 0);
    uint64_t begin = pen__stage_begin(at->clock);
    int r = PEN_OK;
    for (uint32_t i = first; i < end && r == PEN_OK; i++) {
        PenVideoRun run = pen__video_table_run(t, i);
        place.run = i + 1;
        uint32_t sum = pen__place_sum(&place, data, run.bytes);
        r = pen__sum_check(at, payload + run.offset, sum, run.sum, reterr);
        data += run.bytes;
    }
    pen__stage_end(at->clock, PEN_TIMED_VERIFY, begin);
    return r;
}

/* Appends runs [first, end); PEN_SLACK bytes of 0 follow. */
static int read_runs(const PenSpot *at, const PenVideoTable *t, uint32_t first, uint32_t end,
                     PenBuf *data, PenError *reterr)
{
    const PenBlock *b = at->block;
    const char *name = b->shard->shard.source->name;
    uint64_t payload = pen__block_clip(&b->view, at->sample, at->field).offset;
    uint64_t from = pen__video_table_run(t, first).offset;
    PenVideoRun last = pen__video_table_run(t, end - 1);
    uint64_t bytes = last.offset + last.bytes - from;
    if (bytes > SIZE_MAX / 4 || pen__buf_reserve(data, (size_t)bytes + PEN_SLACK) < 0)
        return pen__fail_memory(reterr, WHERE, name);
    uint8_t *to = data->data + data->bytes;
    int r = pen__block_read(b, payload + from, bytes, to, reterr);
    if (r == PEN_OK)
        r = pen__video_check_runs(at, t, first, end, to, reterr);
    for (int i = 1; i < PEN_REMOTE_READS && r == PEN_E_CORRUPT; i++) {
        r = pen__block_read_again(b, payload + from, bytes, to, reterr);
        if (r == PEN_OK)
            r = pen__video_check_runs(at, t, first, end, to, reterr);
    }
    if (r < 0)
        return r;
    data->bytes += (size_t)bytes;
    memset(data->data + data->bytes, 0, PEN_SLACK);
    return PEN_OK;
}

static int open_video(const PenSpot *at, PenVideoTable *ret, PenError *reterr)
{
    const PenBlock *b = at->block;
    if (pen__block_video(&b->view, at->sample, at->field, ret))
        return PEN_OK;
    return pen__fail(reterr, PEN_E_INVALID, WHERE,
                     "%s: block %u, sample %u, field '%s': expected a video, found none",
                     b->shard->shard.source->name, b->view.block, at->sample,
                     b->view.schema->fields[at->field].name);
}

int pen__pack_read_video(const PenSpot *at, uint64_t from, uint64_t end, PenBuf *data,
                         uint64_t *ret_offset, PenError *reterr)
{
    PenVideoTable t;
    int r = open_video(at, &t, reterr);
    if (r < 0)
        return r;
    if (from >= end || end > t.payload_bytes)
        return pen__fail(reterr, PEN_E_INVALID, WHERE,
                         "%s: block %u, sample %u: bytes %" PRIu64 " to %" PRIu64
                         " of a video requested, but it has %" PRIu64,
                         at->block->shard->shard.source->name, at->block->view.block, at->sample,
                         from, end, t.payload_bytes);
    uint32_t first = (uint32_t)(from / PEN_VIDEO_RUN_BYTES);
    *ret_offset = (uint64_t)first * PEN_VIDEO_RUN_BYTES;
    return read_runs(at, &t, first, pen__video_runs(end), data, reterr);
}

int pen__pack_each_run(const PenSpot *at, PenBuf *data, PenVideoBytesFn take, void *ctx,
                       PenError *reterr)
{
    PenVideoTable t;
    int r = open_video(at, &t, reterr);
    for (uint32_t i = 0; r == PEN_OK && i < t.n_runs; i += RUNS_AT_ONCE) {
        data->bytes = 0;
        r = read_runs(at, &t, i, PEN_MIN(i + RUNS_AT_ONCE, t.n_runs), data, reterr);
        if (r == PEN_OK && take)
            r = take(ctx, data->data, data->bytes, reterr);
    }
    return r;
}
