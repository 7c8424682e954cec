/* SPDX-License-Identifier: Apache-2.0 */
/* Operations on doubles are those of torch, in the same order, and the compiler must not join any
 * (see meson.build): a span is the one that weigh.h finds for the same output. */
#include "dsp/axis.h"

#include <stddef.h>
#include <string.h>

#include "base/attr.h"
#include "base/bytes.h"
#include "dsp/dsp.h"

enum {
    MAX_LANES = 8,
    GROUP = 4,
    /* where a table has room for vectors: inputs for each output, and outputs */
    MAX_APART = 5,
    MAX_SPREAD = 1 << 16
};

static bool is_part(const PenAxisSpec *s)
{
    return s->span && (s->from || s->span != 8 * (uint64_t)s->size);
}

bool pen__axis_changes(const PenAxisSpec *s)
{
    return s->size != s->n || is_part(s);
}

PenAxisShape pen__axis_shape(const PenAxisSpec *s)
{
    static const double half[] = {[PEN_FILTER_BILINEAR] = 1.0,
                                  [PEN_FILTER_BICUBIC] = 2.0,
                                  [PEN_FILTER_LANCZOS] = 3.0,
                                  [PEN_FILTER_BOX] = 0.5};
    PenAxisShape k = {.scale = (double)s->size / s->n, .size = s->size, .n = s->n};
    if (is_part(s)) {
        k.start = s->from / 8.0;
        k.scale = s->span / 8.0 / s->n;
    }
    k.support = k.scale >= 1.0 ? half[s->filter] * k.scale : half[s->filter];
    k.inverse = k.scale >= 1.0 ? 1.0 / k.scale : 1.0;
    uint64_t side = (uint64_t)k.support; /* rounded up below */
    k.reach = (uint32_t)PEN_MIN((side + ((double)side < k.support)) * 2 + 1, UINT32_MAX);
    return k;
}

static bool is_weighted(const PenAxisSpec *s)
{
    return pen__axis_changes(s) && s->filter != PEN_FILTER_NEAREST;
}

/* ---- spans ---------------------------------------------------------------------------------- */

PEN_INLINE void span(const PenAxisShape *k, uint32_t i, uint32_t *ret_first, uint32_t *ret_count)
{
    double center = k->start + k->scale * (i + 0.5);
    int64_t first = PEN_MAX((int64_t)(center - k->support + 0.5), (int64_t)0);
    int64_t count = PEN_MIN((int64_t)(center + k->support + 0.5), (int64_t)k->size) - first;
    *ret_first = (uint32_t)first;
    *ret_count = (uint32_t)PEN_MAX(PEN_MIN(count, (int64_t)k->reach), (int64_t)1);
}

/* torch's "nearest": rounded down, in single precision but where the factor is 1 or 2. */
static uint32_t nearest_index(uint32_t i, uint32_t size, uint32_t n)
{
    if (n == size)
        return i;
    if (n == 2 * (uint64_t)size)
        return i / 2;
    float scale = (float)size / (float)n;
    uint32_t at = (uint32_t)((float)i * scale);
    return PEN_MIN(at, size - 1);
}

void pen__axis_needs(const PenAxisSpec *s, uint32_t *ret_first, uint32_t *ret_end)
{
    uint32_t last = s->first + s->len - 1, count = 1;
    if (is_weighted(s)) {
        PenAxisShape k = pen__axis_shape(s);
        span(&k, s->first, ret_first, &count);
        span(&k, last, &last, &count);
    } else {
        *ret_first = nearest_index(s->first, s->size, s->n);
        last = nearest_index(last, s->size, s->n);
    }
    *ret_end = last + count;
}

uint32_t pen__axis_reach(const PenAxisSpec *s)
{
    return is_weighted(s) ? PEN_MIN(pen__axis_shape(s).reach, s->size) : 1;
}

/* ---- tables --------------------------------------------------------------------------------- */

static uint64_t list_bytes(uint64_t entries, uint64_t taps)
{
    return pen__padded(entries * (2 * sizeof(uint32_t) + taps * sizeof(int16_t)), 64);
}

/* For what dsp->spread makes. It makes nothing where inputs lie far apart; and tables of very long
 * rows would not stay in a cache. */
static uint64_t room_bytes(const PenAxisSpec *s)
{
    if (!s->inside || !is_weighted(s) || s->size / s->n >= MAX_APART || s->len > MAX_SPREAD)
        return 0;
    uint64_t vectors = pen__padded((uint64_t)s->len * s->unit, 64) / 16;
    uint64_t pairs = pen__padded(pen__axis_reach(s), 2) / 2;
    return pen__padded(vectors * sizeof(uint32_t), 64) + vectors * 64 * (1 + pairs);
}

uint64_t pen__axis_bytes(const PenAxisSpec *s)
{
    uint64_t taps = is_weighted(s) ? pen__padded(pen__axis_reach(s), 2) : 0;
    return list_bytes(pen__padded(s->len, GROUP), taps) + room_bytes(s);
}

/* Blocks of outputs (weigh.h), of which the wanted ones begin and end anywhere, and one more. */
uint64_t pen__axis_scratch_bytes(const PenAxisSpec *s)
{
    if (!is_weighted(s))
        return 0;
    uint64_t blocks = ((uint64_t)s->len + MAX_LANES - 2) / MAX_LANES + 2;
    return blocks * MAX_LANES * sizeof(double) * (1 + (uint64_t)pen__axis_reach(s));
}

/* Entries near the end get weights of 0 in front instead of behind, and begin earlier. */
static void move_inside(PenAxis *a, uint32_t origin, uint32_t end)
{
    for (uint32_t i = 0; i < a->n; i++) {
        if (a->at[i] + a->taps <= end)
            continue;
        uint32_t by = PEN_MIN(a->at[i] + a->taps - end, a->at[i] - origin);
        int16_t *w = a->weights + (size_t)i * a->taps;
        memmove(w + by, w, (a->taps - by) * sizeof *w);
        memset(w, 0, by * sizeof *w);
        a->at[i] -= by;
        a->count[i] += by;
    }
}

void pen__axis_fill(const PenAxisSpec *s, uint32_t origin, const PenDsp *dsp, void *memory,
                    void *scratch, PenAxis *ret)
{
    size_t entries = (size_t)pen__padded(s->len, GROUP);
    PenAxis a = {.n = s->len, .taps = 0, .at = memory};
    a.count = a.at + entries;
    a.weights = (int16_t *)(a.count + entries);
    if (is_weighted(s)) {
        uint32_t first, end;
        pen__axis_needs(s, &first, &end);
        dsp->weigh(s, scratch, &a);
        memset(a.weights + (size_t)s->len * a.taps, 0,
               (entries - s->len) * a.taps * sizeof *a.weights);
        if (s->inside)
            move_inside(&a, first, end);
        if (room_bytes(s))
            a.room = (uint8_t *)memory + list_bytes(entries, a.taps);
    } else {
        for (uint32_t i = 0; i < s->len; i++) {
            uint32_t e = s->flip ? s->len - 1 - i : i;
            a.at[e] = nearest_index(s->first + i, s->size, s->n);
            a.count[e] = 1;
        }
    }
    for (uint32_t i = 0; i < s->len; i++)
        a.at[i] = (a.at[i] - origin) * s->unit;
    for (size_t i = s->len; i < entries; i++)
        a.at[i] = a.count[i] = 0;
    if (a.room && dsp->spread)
        dsp->spread(&a, s->unit);
    *ret = a;
}
