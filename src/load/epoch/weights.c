/* SPDX-License-Identifier: Apache-2.0 */
/* Systematic sampling: the weights are lengths on a line, and n marks at equal distances, with a
 * random start in each epoch, hit the entries that are drawn. Lengths are whole numbers, so that
 * every machine draws the same. */
#include "load/epoch/weights.h"

#include <inttypes.h>
#include <math.h>

#include "base/bytes.h"
#include "base/error.h"
#include "base/mem.h"
#include "base/sha256.h"
#include "load/epoch/permute.h"
#include "load/epoch/purpose.h"

#define WHERE "load/weights"

enum { LINE_BITS = 62 }; /* the line is shorter than 2 to this power, and one for each entry */

__extension__ typedef unsigned __int128 Wide;

struct PenWeights {
    uint64_t n;
    uint64_t n_marks; /* drawn in an epoch: n, or one at each point of the line */
    uint64_t *ends;   /* of each entry on the line */
};

static int find_largest(const double *weights, uint64_t n, double *ret, PenError *reterr)
{
    double largest = 0;
    for (uint64_t i = 0; i < n; i++) {
        if (!isfinite(weights[i]) || weights[i] < 0)
            return pen__fail(reterr, PEN_E_INVALID, WHERE,
                             "weights: entry %" PRIu64
                             ": expected a finite number of 0 or more, found %g",
                             i, weights[i]);
        largest = fmax(largest, weights[i]);
    }
    if (largest == 0)
        return pen__fail(reterr, PEN_E_INVALID, WHERE,
                         "weights: expected at least one that is not 0");
    *ret = largest;
    return PEN_OK;
}

/* A positive weight is never 0, however small it is beside the largest. */
static uint64_t length_of(double weight, double unit)
{
    uint64_t length = (uint64_t)(weight * unit);
    return weight > 0 && !length ? 1 : length;
}

static double longest(uint64_t n)
{
    int bits = 0;
    while (bits < LINE_BITS && UINT64_C(1) << bits < n)
        bits++;
    return (double)(UINT64_C(1) << (LINE_BITS - bits));
}

int pen__weights_new(const double *weights, uint64_t n, PenWeights **ret, PenError *reterr)
{
    double largest;
    int r = find_largest(weights, n, &largest, reterr);
    if (r < 0)
        return r;
    PenWeights *w = pen__zalloc(sizeof *w);
    uint64_t *ends = pen__alloc_array(n, sizeof *ends), end = 0;
    if (!w || !ends) {
        pen__free(w);
        pen__free(ends);
        return pen__fail_memory(reterr, WHERE, "weights");
    }
    for (uint64_t i = 0; i < n; i++)
        ends[i] = end += length_of(weights[i] / largest, longest(n));
    *w = (PenWeights){.n = n, .n_marks = n, .ends = ends};
    *ret = w;
    return PEN_OK;
}

static int check_repeats(const uint64_t *n_times, uint64_t n, const char *name, PenError *reterr)
{
    uint64_t total = 0;
    for (uint64_t i = 0; i < n; i++) {
        if (n_times[i] > UINT32_MAX)
            return pen__fail(reterr, PEN_E_INVALID, WHERE,
                             "%s: entry %" PRIu64 ": expected at most 2^32 - 1, found %" PRIu64,
                             name, i, n_times[i]);
        total += n_times[i];
        if (total >= PEN_PERMUTE_MOST)
            return pen__fail(reterr, PEN_E_LIMIT, WHERE, "%s: expected a sum below 2^63", name);
    }
    return total ? PEN_OK
                 : pen__fail(reterr, PEN_E_INVALID, WHERE,
                             "%s: expected at least one that is not 0", name);
}

int pen__repeats_new(const uint64_t *n_times, uint64_t n, const char *name, PenWeights **ret,
                     uint64_t *ret_n, PenError *reterr)
{
    int r = check_repeats(n_times, n, name, reterr);
    if (r < 0)
        return r;
    PenWeights *w = pen__zalloc(sizeof *w);
    uint64_t *ends = pen__alloc_array(n, sizeof *ends), end = 0;
    if (!w || !ends) {
        pen__free(w);
        pen__free(ends);
        return pen__fail_memory(reterr, WHERE, name);
    }
    for (uint64_t i = 0; i < n; i++)
        ends[i] = end += n_times[i];
    *w = (PenWeights){.n = n, .n_marks = end, .ends = ends};
    *ret = w;
    *ret_n = end;
    return PEN_OK;
}

void pen__weights_free(PenWeights **weights)
{
    if (!*weights)
        return;
    pen__free((*weights)->ends);
    pen__free(*weights);
    *weights = NULL;
}

uint64_t pen__weights_hash(const PenWeights *w)
{
    PenSha256 s;
    uint8_t sum[32], bytes[8];
    pen__sha256_init(&s);
    for (uint64_t i = 0; i < w->n; i++) {
        pen__store64(bytes, w->ends[i]);
        pen__sha256_update(&s, bytes, sizeof bytes);
    }
    pen__sha256_final(&s, sum);
    return pen__load64(sum);
}

/* The entry that a point of the line lies in. */
static uint64_t find(const PenWeights *w, uint64_t point)
{
    uint64_t low = 0, high = w->n - 1;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        if (w->ends[middle] > point)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

PenDrawn pen__weights_at(const PenWeights *w, uint64_t seed, uint64_t epoch, uint64_t k)
{
    uint64_t total = w->ends[w->n - 1];
    uint64_t start =
        (uint64_t)((Wide)pen__permute_key(seed, epoch, PEN_FOR_WEIGHTS, 0) * total >> 64);
    if (w->n_marks == total) { /* one at each point: the start makes no difference */
        uint64_t at = find(w, k);
        return (PenDrawn){.entry = at, .ordinal = (uint32_t)(k - (at ? w->ends[at - 1] : 0))};
    }
    uint64_t entry = find(w, (uint64_t)(((Wide)k * total + start) / w->n_marks));
    Wide begin = entry ? (Wide)w->ends[entry - 1] * w->n_marks : 0;
    Wide first = begin > start ? (begin - start + total - 1) / total : 0;
    return (PenDrawn){.entry = entry, .ordinal = (uint32_t)(k - (uint64_t)first)};
}
