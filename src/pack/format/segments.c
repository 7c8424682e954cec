/* SPDX-License-Identifier: Apache-2.0 */
#include "pack/format/segments.h"

#include "base/bytes.h"
#include "base/error.h"

static uint8_t length_width(const PenSegments *s)
{
    if (!s->lengths)
        return 0;
    for (uint32_t i = 0; i < s->n_segments; i++)
        if (s->lengths[i] > UINT16_MAX)
            return 4;
    return 2;
}

static void store_lengths(const PenSegments *s, uint8_t width, uint8_t *to)
{
    for (uint32_t i = 0; i < s->n_segments; i++) {
        if (width == 2)
            pen__store16(to + 2 * (size_t)i, (uint16_t)s->lengths[i]);
        else
            pen__store32(to + 4 * (size_t)i, s->lengths[i]);
    }
}

/* A table over the caller's lengths, with no checksums yet: the runs can be walked. */
static uint32_t count_runs(const PenSegmentTable *t)
{
    uint32_t n = 0;
    PenRun run;
    for (pen__run_first(t, &run); run.first < t->n_segments; n++)
        if (!pen__run_next(t, &run))
            return n + 1;
    return n;
}

int pen__segments_write(const PenSegments *s, const uint8_t *data, uint64_t bytes, PenPlace place,
                        PenBuf *out)
{
    uint8_t width = length_width(s);
    size_t lengths_bytes = (size_t)s->n_segments * width;
    PenBuf lengths = {0};
    int r = pen__buf_reserve(&lengths, lengths_bytes + 1);
    if (r < 0)
        return r;
    if (width)
        store_lengths(s, width, lengths.data);
    PenSegmentTable t = {.head_bytes = s->head_bytes,
                         .n_segments = s->n_segments,
                         .length_bytes = width,
                         .equal_bytes = (bytes - s->head_bytes) / s->n_segments,
                         .lengths = lengths.data};
    t.n_runs = count_runs(&t);
    r = pen__buf_reserve(out, PEN_SEGMENT_HEADER_BYTES + 4 * (size_t)t.n_runs + lengths_bytes);
    if (r < 0) {
        pen__buf_free(&lengths);
        return r;
    }
    uint8_t *h = out->data + out->bytes;
    pen__store32(h, s->head_bytes);
    pen__store32(h + 4, s->n_segments);
    pen__store32(h + 8, t.n_runs);
    pen__store16(h + 12, s->unit);
    h[14] = width;
    h[15] = s->components;
    h[16] = s->h_samp;
    h[17] = s->v_samp;
    h[18] = h[19] = 0;
    out->bytes += PEN_SEGMENT_HEADER_BYTES;
    PenRun run;
    pen__run_first(&t, &run);
    do {
        place.run = run.run + 1;
        pen__store32(out->data + out->bytes, pen__place_sum(&place, data + run.offset, run.bytes));
        out->bytes += 4;
    } while (pen__run_next(&t, &run));
    r = pen__buf_add(out, lengths.data, lengths_bytes);
    pen__buf_free(&lengths);
    return r;
}

/* The lengths have to make up the payload, and the rule for runs the number of runs. */
static const char *check_lengths(const PenSegmentTable *t, uint64_t payload_bytes)
{
    uint64_t total = t->head_bytes;
    uint64_t in_run = 0;
    uint32_t runs = 0;
    for (uint32_t i = 0; i < t->n_segments; i++) {
        uint64_t n = pen__segment_bytes(t, i);
        if (n == 0 || n > payload_bytes - total)
            return "segments are larger than the payload";
        total += n;
        in_run += n;
        if (in_run >= PEN_RUN_BYTES || i + 1 == t->n_segments) {
            runs++;
            in_run = 0;
        }
    }
    if (total != payload_bytes)
        return "segments do not add up to the payload";
    return runs == t->n_runs ? NULL : "number of runs does not match the segments";
}

const char *pen__segments_read(PenSegmentTable *ret, const uint8_t *data, uint64_t bytes,
                               uint64_t payload_bytes)
{
    if (bytes < PEN_SEGMENT_HEADER_BYTES)
        return "segment table too short";
    PenSegmentTable t = {.head_bytes = pen__load32(data),
                         .n_segments = pen__load32(data + 4),
                         .n_runs = pen__load32(data + 8),
                         .unit = pen__load16(data + 12),
                         .length_bytes = data[14],
                         .components = data[15],
                         .h_samp = data[16],
                         .v_samp = data[17]};
    if (data[18] || data[19] || (t.length_bytes && t.length_bytes != 2 && t.length_bytes != 4))
        return "segment table header is not valid";
    if (t.n_segments == 0 || t.head_bytes > payload_bytes)
        return "segment table without segments, or head larger than the payload";
    uint64_t need =
        PEN_SEGMENT_HEADER_BYTES + 4 * (uint64_t)t.n_runs + (uint64_t)t.length_bytes * t.n_segments;
    if (need != bytes)
        return "segment table size does not match its counts";
    if (!t.length_bytes) {
        t.equal_bytes = (payload_bytes - t.head_bytes) / t.n_segments;
        if (t.n_segments > payload_bytes)
            return "more segments than bytes";
    }
    t.runs = data + PEN_SEGMENT_HEADER_BYTES;
    t.lengths = t.runs + 4 * (size_t)t.n_runs;
    const char *wrong = check_lengths(&t, payload_bytes);
    if (!wrong)
        *ret = t;
    return wrong;
}

uint64_t pen__segment_bytes(const PenSegmentTable *t, uint32_t segment)
{
    if (t->length_bytes == 2)
        return pen__load16(t->lengths + 2 * (size_t)segment);
    if (t->length_bytes == 4)
        return pen__load32(t->lengths + 4 * (size_t)segment);
    return t->equal_bytes;
}

static void extend(const PenSegmentTable *t, PenRun *run)
{
    run->bytes = 0;
    run->end = run->first;
    while (run->end < t->n_segments && run->bytes < PEN_RUN_BYTES)
        run->bytes += pen__segment_bytes(t, run->end++);
}

void pen__run_first(const PenSegmentTable *t, PenRun *run)
{
    *run = (PenRun){.offset = t->head_bytes};
    extend(t, run);
}

int pen__run_next(const PenSegmentTable *t, PenRun *run)
{
    if (run->end >= t->n_segments)
        return 0;
    run->run++;
    run->first = run->end;
    run->offset += run->bytes;
    extend(t, run);
    return 1;
}

uint32_t pen__run_sum(const PenSegmentTable *t, uint32_t run)
{
    return pen__load32(t->runs + 4 * (size_t)run);
}
