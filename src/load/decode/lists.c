/* SPDX-License-Identifier: Apache-2.0 */
#include "load/decode/lists.h"

#include <string.h>

#include "load/decode/mixup.h"
#include "load/decode/sizes.h"

/* Values move to lower addresses only, and in order, so none is overwritten before it has moved.
 * The lengths are in bytes, the offsets in rows. */
static int64_t join(const PenOutField *f, uint8_t *memory, uint32_t n)
{
    uint8_t *data = memory + f->offset, *validity = memory + f->validity;
    int64_t *offsets = (int64_t *)(void *)(memory + f->lengths), end = 0;
    memset(validity, 0, n / 8 + 1);
    offsets[0] = 0;
    for (uint32_t i = 0; i < n; i++) {
        int64_t bytes = offsets[i + 1];
        if (bytes >= 0) {
            memmove(data + end, data + i * f->bytes, (size_t)bytes);
            validity[i / 8] |= (uint8_t)(1u << i % 8);
            end += bytes;
        }
        offsets[i + 1] = end / f->row_bytes;
    }
    return end / f->row_bytes;
}

/* So many bytes of the number that pads. */
static void fill(const PenOutField *f, uint8_t *to, uint64_t bytes)
{
    float f32 = (float)f->pad;
    int64_t i64 = f->tensor.dtype == PEN_I64 ? (int64_t)f->pad : 0;
    const void *item = f->tensor.dtype == PEN_F32   ? (const void *)&f32
                       : f->tensor.dtype == PEN_I64 ? (const void *)&i64
                                                    : (const void *)&f->pad;
    size_t size = f->tensor.dtype == PEN_F32 ? sizeof f32 : sizeof f->pad;
    for (uint64_t at = 0; at < bytes; at += size)
        memcpy(to + at, item, size);
}

/* Values stay where they are, and the rows behind them are filled. */
static void pad(const PenOutField *f, uint8_t *memory, const PenOutField *mask, uint32_t n)
{
    const int64_t *lengths = (const int64_t *)(const void *)(memory + f->lengths);
    for (uint32_t i = 0; i < n; i++) {
        uint64_t bytes = lengths[i + 1] > 0 ? (uint64_t)lengths[i + 1] : 0, rows;
        uint8_t *is_row = memory + mask->offset + i * mask->bytes;
        rows = bytes / f->row_bytes;
        memset(is_row, 1, (size_t)rows);
        memset(is_row + rows, 0, (size_t)(f->max_rows - rows));
        fill(f, memory + f->offset + i * f->bytes + bytes, f->bytes - bytes);
    }
}

void pen__lists_join(const PenLoadPlan *plan, PenSlot *s)
{
    for (uint32_t i = 0; i < plan->n_fields; i++) {
        const PenOutField *f = &s->fields[i];
        if (f->program && pen__program_mix(f->program) && !plan->no_decode)
            pen__mixup_run(plan, s, i);
        else if (f->sizes && f->list)
            pen__sizes_list(s, i);
        else if (f->sizes)
            pen__sizes_pad(s, i);
        else if (f->mask)
            pad(f, s->batch.memory, &s->fields[f->mask], s->batch.n_samples);
        else if (f->list)
            s->tensors[i].shape[0] = join(f, s->batch.memory, s->batch.n_samples);
    }
}
