/* SPDX-License-Identifier: Apache-2.0 */
#include "load/mix/mixture.h"

#include <string.h>

#include "base/attr.h"
#include "base/bytes.h"
#include "base/error.h"
#include "base/mem.h"
#include "base/sha256.h"
#include "load/epoch/permute.h"
#include "load/epoch/purpose.h"
#include "load/mix/table.h"

#define WHERE "load/mix"

typedef struct Stage {
    uint64_t start;
    uint64_t *before; /* samples of each source before it */
    PenMixTable table;
} Stage;

struct PenMixture {
    uint32_t n_sources, n_stages;
    Stage *stages;
};

/* ---- positions ---- */

static const Stage *stage_at(const PenMixture *m, uint64_t position)
{
    uint32_t i = m->n_stages - 1;
    while (m->stages[i].start > position)
        i--;
    return &m->stages[i];
}

PenMixed pen__mixture_at(const PenMixture *m, uint64_t position)
{
    const Stage *s = stage_at(m, position);
    const PenMixTable *t = &s->table;
    uint64_t offset = position - s->start;
    PenMixSlot slot = t->slots[offset % t->n_slots];
    uint64_t periods = offset / t->n_slots;
    return (PenMixed){slot.source,
                      s->before[slot.source] + periods * t->shares[slot.source] + slot.ordinal};
}

static void count_in(const Stage *s, uint64_t position, uint64_t *ret)
{
    const PenMixTable *t = &s->table;
    uint64_t offset = position - s->start;
    for (uint32_t i = 0; i < t->n_sources; i++)
        ret[i] = s->before[i] + offset / t->n_slots * t->shares[i];
    for (uint64_t i = 0; i < offset % t->n_slots; i++)
        ret[t->slots[i].source]++;
}

void pen__mixture_counts(const PenMixture *m, uint64_t position, uint64_t *ret)
{
    count_in(stage_at(m, position), position, ret);
}

static uint64_t find_in(const Stage *s, uint32_t source, uint64_t count)
{
    const PenMixTable *t = &s->table;
    uint64_t share = t->shares[source], at;
    uint32_t slot = 0;
    if (!share)
        return PEN_MIX_MOST_POSITIONS;
    while (t->slots[slot].source != source || t->slots[slot].ordinal != count % share)
        slot++;
    if (pen__mul_over(count / share, t->n_slots, &at) || pen__add_over(at, s->start + slot, &at))
        return PEN_MIX_MOST_POSITIONS;
    return PEN_MIN(at, PEN_MIX_MOST_POSITIONS);
}

uint64_t pen__mixture_find(const PenMixture *m, uint32_t source, uint64_t before)
{
    uint32_t i = m->n_stages - 1;
    while (i > 0 && m->stages[i].before[source] > before)
        i--;
    return find_in(&m->stages[i], source, before - m->stages[i].before[source]);
}

/* ---- life ---- */

static int add_stage(PenMixture *m, const PenMixturePlan *plan, uint32_t i, PenError *reterr)
{
    uint64_t key = pen__permute_key(plan->seed, 0, PEN_FOR_MIXTURE, i);
    Stage *s = &m->stages[i];
    *s = (Stage){.start = plan->starts[i]};
    m->n_stages++;
    s->before = pen__zalloc(plan->n_sources * sizeof *s->before);
    if (!s->before)
        return pen__fail_memory(reterr, WHERE, "mixture");
    if (i)
        count_in(s - 1, s->start, s->before);
    return pen__mix_table_init(&s->table, plan->weights + (size_t)i * plan->n_sources,
                               plan->n_sources, key, reterr);
}

int pen__mixture_new(const PenMixturePlan *plan, PenMixture **ret, PenError *reterr)
{
    PenMixture *m = pen__zalloc(sizeof *m);
    int r = PEN_OK;
    if (m)
        m->stages = pen__alloc_array(plan->n_stages, sizeof *m->stages);
    if (!m || !m->stages)
        r = pen__fail_memory(reterr, WHERE, "mixture");
    for (uint32_t i = 0; i < plan->n_stages && r == PEN_OK; i++)
        r = add_stage(m, plan, i, reterr);
    if (r < 0) {
        pen__mixture_free(&m);
        return r;
    }
    m->n_sources = plan->n_sources;
    *ret = m;
    return PEN_OK;
}

void pen__mixture_free(PenMixture **mixture)
{
    PenMixture *m = *mixture;
    if (!m)
        return;
    for (uint32_t i = 0; i < m->n_stages; i++) {
        pen__mix_table_fini(&m->stages[i].table);
        pen__free(m->stages[i].before);
    }
    pen__free(m->stages);
    pen__free(m);
    *mixture = NULL;
}

/* ---- state ---- */

static void hash_number(PenSha256 *hash, uint64_t number)
{
    uint8_t bytes[8];
    pen__store64(bytes, number);
    pen__sha256_update(hash, bytes, sizeof bytes);
}

uint64_t pen__mixture_hash(const PenMixture *m)
{
    PenSha256 hash;
    uint8_t sum[32];
    pen__sha256_init(&hash);
    for (uint32_t i = 0; i < m->n_stages; i++) {
        const Stage *s = &m->stages[i];
        hash_number(&hash, s->start);
        for (uint32_t k = 0; k < m->n_sources; k++)
            hash_number(&hash, s->table.shares[k]);
    }
    pen__sha256_final(&hash, sum);
    return pen__load64(sum);
}
