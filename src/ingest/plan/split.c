/* SPDX-License-Identifier: Apache-2.0 */
/* Which items a task has. Every task has to find the same answer without reading the entire plan:
 * marks say how much lies before each stride of items, and only the items of one stride are read.
 */
#include "base/attr.h"
#include "base/bytes.h"
#include "ingest/plan/plan_impl.h"

/* share * total / n, rounded down; without overflow as share <= n < 2^32. */
static uint64_t part_of(uint64_t total, uint32_t share, uint32_t n)
{
    return total / n * share + total % n * share / n;
}

/* As it is counted when the plan is written. */
static uint64_t weight(const PenItem *item)
{
    uint64_t bytes = 1;
    for (uint32_t i = 0; i < item->n_parts; i++) {
        const PenPart *p = &item->parts[i];
        if (p->kind == PEN_PART_INLINE || p->kind == PEN_PART_NONE)
            continue;
        if (pen__add_over(bytes, p->bytes, &bytes))
            return UINT64_MAX;
    }
    return bytes;
}

/* The number of the first mark above `target`; the last one where there is none. */
static uint64_t find_mark(const PenMarks *m, uint64_t target)
{
    uint64_t low = 0, high = m->n - 1;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        if (pen__load64(m->data + middle * 8) > target)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

/* The item in whose weight `target` falls, or the next one if its end is nearer. */
static int find_item(const PenPlan *plan, const PenMarks *m, uint64_t target, uint64_t *ret,
                     PenError *reterr)
{
    uint64_t k = find_mark(m, target);
    uint64_t at = k ? pen__load64(m->data + (k - 1) * 8) : 0;
    uint64_t i = k * m->stride;
    uint64_t end = PEN_MIN(i + m->stride, pen__plan_info(plan)->n_items);
    PenBuf scratch = {0};
    int r = PEN_OK;
    for (; i < end; i++) {
        PenItem item;
        uint64_t bytes = pen__load64(m->data + k * 8) - at;
        if (m->stride > 1) {
            r = pen__plan_item(plan, i, &item, &scratch, reterr);
            if (r < 0)
                break;
            bytes = weight(&item);
        }
        if (bytes > target - at) {
            i += target - at > bytes / 2;
            break;
        }
        at += bytes;
    }
    pen__buf_free(&scratch);
    *ret = i;
    return r;
}

int pen__plan_split(const PenPlan *plan, uint32_t task, uint32_t n_tasks, uint64_t *ret,
                    PenError *reterr)
{
    PenMarks m = pen__plan_marks(plan);
    uint64_t n = pen__plan_info(plan)->n_items;
    *ret = part_of(n, task, n_tasks);
    if (!m.data || !m.n || task == 0 || task >= n_tasks)
        return PEN_OK;
    uint64_t total = pen__load64(m.data + (m.n - 1) * 8);
    return find_item(plan, &m, part_of(total, task, n_tasks), ret, reterr);
}
