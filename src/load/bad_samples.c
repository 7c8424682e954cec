/* SPDX-License-Identifier: Apache-2.0 */
#include "load/bad_samples.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/mem.h"

enum { KEPT = 1000 };

void pen__bad_samples_fini(PenBadSamples *b)
{
    pen__buf_free(&b->list);
}

static int by_index(const void *a, const void *b)
{
    const PenReplacement *x = a, *y = b;
    return (x->index > y->index) - (x->index < y->index);
}

int pen__bad_samples_add(PenBadSamples *b, PenSlot *s, uint64_t limit, PenError *reterr)
{
    size_t n = s->replacements.bytes / sizeof(PenReplacement);
    PenReplacement *all = (PenReplacement *)(void *)s->replacements.data;
    s->batch.n_substituted = (uint32_t)n;
    if (!n)
        return PEN_OK;
    qsort(all, n, sizeof *all, by_index);
    for (size_t i = 0; i < n; i++) {
        if (b->list.bytes < KEPT * sizeof(PenBadSample) &&
            pen__buf_add(&b->list, &all[i].bad, sizeof(PenBadSample)) < 0)
            break; /* the count is still right */
    }
    b->n += n;
    b->in_pass += n;
    if (b->in_pass <= limit)
        return PEN_OK;
    return pen__fail(reterr, PEN_E_CORRUPT, "load/loader",
                     "%" PRIu64 " samples of this epoch are broken, expected %" PRIu64
                     " at most (max_bad); the last one: %.200s",
                     b->in_pass, limit, all[n - 1].bad.message);
}

const PenBadSample *pen__bad_samples_at(const PenBadSamples *b, uint64_t i)
{
    const PenBadSample *all = (const PenBadSample *)(const void *)b->list.data;
    return i < b->list.bytes / sizeof *all ? &all[i] : NULL;
}
