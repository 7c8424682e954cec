/* SPDX-License-Identifier: Apache-2.0 */
#include "load/read/window.h"

#include <inttypes.h>
#include <string.h>

#include "base/attr.h"
#include "load/read/values.h"
#include "ops/operations/frame_choice.h"

#define WHERE "load/read"

void pen__window_locate(const PenOutField *f, PenLocation *at)
{
    at->bytes += pen__block_blob(&at->block->view, at->in_block, f->field).bytes;
}

void pen__window_mask(const PenTask *task, const PenOutField *f, int64_t first, uint32_t stride,
                      uint32_t n, uint64_t all)
{
    uint8_t *to = pen__task_place(task, &task->to.fields[f->inside]);
    for (uint32_t k = 0; k < n; k++) {
        int64_t place = pen__window_place(task->to.ordinal, first, stride, k);
        to[k] = place >= 0 && (uint64_t)place < all;
    }
}

static void copy_rows(const PenTask *task, const PenOutField *f, const uint8_t *rows, uint64_t n)
{
    uint8_t *to = pen__task_place(task, f);
    for (uint32_t k = 0; k < f->max_rows; k++) {
        int64_t place = pen__window_place(task->to.ordinal, f->at, f->stride, k);
        uint64_t row = (uint64_t)PEN_MAX(PEN_MIN(place, (int64_t)n - 1), 0);
        memcpy(to + (size_t)k * f->row_bytes, rows + row * f->row_bytes, f->row_bytes);
    }
}

int pen__window_read(PenTask *task, const PenOutField *f, const PenLocation *at, PenError *reterr)
{
    PenBlobEntry e = pen__block_blob(&at->block->view, at->in_block, f->field);
    uint64_t n = e.bytes / f->row_bytes;
    if (task->to.ordinal >= n)
        return pen__fail(reterr, PEN_E_INVALID, WHERE,
                         "field '%s': the sample is frame %u, but has %" PRIu64
                         " rows; pass the number of frames of each sample to frames",
                         f->name, task->to.ordinal, n);
    task->rows_read.bytes = 0;
    if (e.bytes > SIZE_MAX / 2 || pen__buf_reserve(&task->rows_read, (size_t)e.bytes) < 0)
        return pen__fail_memory(reterr, WHERE, f->name);
    int r = pen__values_read(task, f, at, &e, task->rows_read.data, reterr);
    if (r < 0)
        return r;
    copy_rows(task, f, task->rows_read.data, n);
    pen__window_mask(task, f, f->at, f->stride, f->max_rows, n);
    task->bytes_read += e.bytes;
    return PEN_OK;
}
