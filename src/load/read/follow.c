/* SPDX-License-Identifier: Apache-2.0 */
#include "load/read/follow.h"

#include <inttypes.h>
#include <string.h>

#include "base/mem.h"

#define WHERE "load/follow"

static int64_t *kept_numbers(const PenTaskRows *rows)
{
    return (int64_t *)(void *)rows->kept.data;
}

/* Boxes or points to where their image is. The numbers of the rows that are kept stay with the
 * task, for fields that follow these. */
static int move_rows(PenTask *task, const PenFollow *follow, PenTaskRows *rows, PenError *reterr)
{
    const PenOutField *f = &task->to.fields[follow->field];
    const PenOutField *image = &task->to.fields[follow->image];
    uint32_t n = 0;
    rows->kept.bytes = 0;
    if (pen__buf_reserve(&rows->kept, (size_t)rows->stored * sizeof(int64_t)) < 0)
        return pen__fail_memory(reterr, WHERE, f->name);
    int r = pen__follow_rows(&follow->rule, &task->images[image->image].sample_plan,
                             (float *)(void *)pen__task_place(task, f), rows->stored,
                             kept_numbers(rows), &n, reterr);
    if (r < 0) {
        pen__error_prefix(reterr, "field '%s'", f->name);
        return r;
    }
    rows->kept.bytes = n * sizeof(int64_t);
    *pen__task_length(task, f) = (int64_t)n * f->row_bytes;
    return PEN_OK;
}

static void give_kept(PenTask *task, const PenFollow *follow, const PenTaskRows *rows)
{
    const PenOutField *to = &task->to.fields[follow->kept];
    if (rows->kept.bytes)
        memcpy(pen__task_place(task, to), rows->kept.data, rows->kept.bytes);
    *pen__task_length(task, to) = (int64_t)rows->kept.bytes;
}

/* The rows that another field keeps. They only move to lower addresses. */
static int keep_rows(const PenLoadPlan *plan, PenTask *task, const PenFollow *follow,
                     const PenTaskRows *rows, PenError *reterr)
{
    const PenTaskRows *chosen = &task->rows[follow->source];
    const PenOutField *f = &task->to.fields[follow->field];
    const PenOutField *of = &task->to.fields[plan->follows[follow->source].field];
    uint8_t *data = pen__task_place(task, f);
    size_t n = chosen->kept.bytes / sizeof(int64_t);
    if (rows->stored != chosen->stored)
        return pen__fail(reterr, PEN_E_INVALID, WHERE,
                         "field '%s': expected %u rows, as many as '%s' has, found %u", f->name,
                         chosen->stored, of->name, rows->stored);
    for (size_t i = 0; i < n; i++)
        memmove(data + i * f->row_bytes, data + (size_t)kept_numbers(chosen)[i] * f->row_bytes,
                (size_t)f->row_bytes);
    *pen__task_length(task, f) = (int64_t)(n * f->row_bytes);
    return PEN_OK;
}

int pen__sample_follow(const PenLoadPlan *plan, PenTask *task, PenError *reterr)
{
    int r = PEN_OK;
    for (uint32_t i = 0; i < plan->n_follows && r == PEN_OK; i++) {
        const PenFollow *follow = &plan->follows[i];
        const PenOutField *f = &task->to.fields[follow->field];
        PenTaskRows *rows = &task->rows[i];
        int64_t bytes = *pen__task_length(task, f);
        rows->stored = bytes > 0 ? (uint32_t)((uint64_t)bytes / f->row_bytes) : 0;
        if (follow->rule.stored)
            r = move_rows(task, follow, rows, reterr);
        if (r == PEN_OK && follow->kept)
            give_kept(task, follow, rows);
        if (r == PEN_OK && follow->source != PEN_NO_FIELD)
            r = keep_rows(plan, task, follow, rows, reterr);
        if (r == PEN_OK && bytes < 0) /* a value that is missing stays so */
            *pen__task_length(task, f) = -1;
    }
    return r;
}
