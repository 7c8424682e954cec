/* SPDX-License-Identifier: Apache-2.0 */
#include "load/read/values.h"

#include <string.h>

#include "base/bytes.h"

#define WHERE "load/read"

/* So much is read with one request, and so much between values is read for nothing. */
enum { MOST_BYTES = 1 << 20, GAP_BYTES = 64 << 10 };

static bool has_value(const PenOutField *f)
{
    return f->kind == PEN_KIND_WINDOW || (f->kind == PEN_KIND_LIST && f->list != PEN_LIST_KEY);
}

/* Are bytes [first, end) of a block values of the sample, and nothing else? Images and videos of a
 * mapped shard may be in files that nobody has asked for. */
static bool has_only_values(const PenLocation *at, uint64_t first, uint64_t end)
{
    const PenSchema *schema = at->block->view.schema;
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < schema->n_fields; i++) {
        if (!pen__field_is_blob(&schema->fields[i]))
            continue;
        PenBlobEntry e = pen__block_blob(&at->block->view, at->in_block, i);
        if (e.offset >= first && e.offset < end)
            bytes += e.bytes;
    }
    return bytes == end - first;
}

/* Does an output before this one have the same value? */
static bool repeats(const PenOutField *fields, uint32_t i)
{
    for (uint32_t k = 0; k < i; k++)
        if (has_value(&fields[k]) && fields[k].field == fields[i].field)
            return true;
    return false;
}

void pen__values_locate(const PenLoadPlan *plan, PenTask *task, PenLocation *at)
{
    const PenOutField *fields = task->to.fields;
    uint64_t first = UINT64_MAX, end = 0, bytes = 0;
    uint32_t n = 0;
    task->values_bytes = 0;
    if (!pen__pack_is_remote(task->to.pack) || at->block->is_whole || at->block->index)
        return;
    for (uint32_t i = 0; i < plan->n_fields; i++) {
        if (!has_value(&fields[i]) || repeats(fields, i))
            continue;
        PenBlobEntry e = pen__block_blob(&at->block->view, at->in_block, fields[i].field);
        if (!e.bytes)
            continue;
        first = PEN_MIN(first, e.offset);
        end = PEN_MAX(end, e.offset + e.bytes);
        bytes += e.bytes;
        n++;
    }
    if (n < 2 || end - first > MOST_BYTES || end - first - bytes > GAP_BYTES ||
        at->bytes + (end - first) > plan->shares.read / 2)
        return;
    if (at->block->shard->shard.entry.stored_bytes && !has_only_values(at, first, end))
        return;
    task->values_offset = first;
    task->values_bytes = (uint32_t)(end - first);
    at->bytes += task->values_bytes;
}

int pen__values_fetch(PenTask *task, const PenLocation *at, PenError *reterr)
{
    PenBuf *b = &task->values;
    b->bytes = 0;
    if (!task->values_bytes)
        return PEN_OK;
    if (pen__buf_reserve(b, task->values_bytes) < 0)
        return pen__fail_memory(reterr, WHERE, "values");
    int r = pen__block_read(at->block, task->values_offset, task->values_bytes, b->data, reterr);
    if (r == PEN_OK)
        b->bytes = task->values_bytes;
    return r == PEN_E_CORRUPT ? PEN_OK : r; /* then each by itself: not all may be gone */
}

int pen__values_read(PenTask *task, const PenOutField *f, const PenLocation *at,
                     const PenBlobEntry *e, uint8_t *to, PenError *reterr)
{
    PenSpot spot = {.block = at->block,
                    .sample = at->in_block,
                    .field = f->field,
                    .clock = pen__task_clock(task)};
    if (task->values.bytes && e->bytes) {
        memcpy(to, task->values.data + (e->offset - task->values_offset), (size_t)e->bytes);
        if (pen__blob_check(&spot, e, to, reterr) == PEN_OK)
            return PEN_OK;
        task->values.bytes = 0; /* and all of it is damaged, perhaps */
    }
    int r = pen__pack_read_blob(&spot, e, to, reterr);
    return r == PEN_E_CORRUPT ? pen__pack_read_blob(&spot, e, to, reterr) : r;
}
