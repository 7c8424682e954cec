/* SPDX-License-Identifier: Apache-2.0 */
/* Slot j of source i, counted from 0, has to lie in the window [floor(j * n / s), ceil((j + 1) * n
 * / s)), where n is the number of slots and s the share of the source. Then its count is right at
 * every position. Earliest deadline first finds such slots, because all shares together are n:
 * every interval has at least as many slots as windows inside it. Then slots move within their
 * windows, at random. */
#include "load/mix/table.h"

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>

#include "base/attr.h"
#include "base/error.h"
#include "base/mem.h"
#include "base/rng.h"

#define WHERE "load/mix"

enum { LEAST_SLOTS = 16384, LENGTH_BITS = 50, MOVES = 4, NEAR_BITS = 30 };

__extension__ typedef unsigned __int128 Wide;

typedef struct Window {
    uint32_t from, end;
} Window;

/* ---- shares ---- */

/* Weights as integers, so that every machine computes the same shares. */
static int read_weights(const double *weights, uint32_t n, uint64_t *lengths, uint64_t *ret_total,
                        PenError *reterr)
{
    double largest = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (!isfinite(weights[i]) || weights[i] < 0)
            return pen__fail(reterr, PEN_E_INVALID, WHERE,
                             "mix: weight of source %" PRIu32
                             ": expected a finite number of 0 or more, found %g",
                             i, weights[i]);
        largest = fmax(largest, weights[i]);
    }
    if (largest == 0)
        return pen__fail(reterr, PEN_E_INVALID, WHERE,
                         "mix: expected at least one weight that is not 0");
    *ret_total = 0;
    for (uint32_t i = 0; i < n; i++) {
        double part = weights[i] / largest;
        uint64_t length = (uint64_t)(part * (double)(UINT64_C(1) << LENGTH_BITS));
        lengths[i] = weights[i] > 0 ? PEN_MAX(length, 1u) : 0;
        *ret_total += lengths[i];
    }
    *ret_total = PEN_MAX(*ret_total, 1u); /* it is: one weight is not 0 */
    return PEN_OK;
}

/* Is a period of `slots` exact? Then the shares are set. */
static bool is_exact(const uint64_t *lengths, uint32_t n, uint64_t total, uint32_t slots,
                     uint32_t *shares)
{
    uint64_t near = total >> NEAR_BITS;
    for (uint32_t i = 0; i < n; i++) {
        Wide x = (Wide)lengths[i] * slots;
        uint64_t rest = (uint64_t)(x % total);
        bool up = total - rest <= near;
        shares[i] = (uint32_t)(x / total) + up;
        if ((!up && rest > near) || (lengths[i] && !shares[i]))
            return false;
    }
    return true;
}

/* How much more than its share a source should have, in parts of a slot. */
static double missing(const uint64_t *lengths, uint64_t total, uint32_t slots,
                      const uint32_t *shares, uint32_t i)
{
    int64_t whole = (int64_t)((Wide)lengths[i] * slots / total) - (int64_t)shares[i];
    uint64_t part = (uint64_t)((Wide)lengths[i] * slots % total);
    return (double)whole + (double)part / (double)total;
}

/* The nearest shares: one slot after another goes to the source that misses most of one. */
static void round_shares(const uint64_t *lengths, uint32_t n, uint64_t total, uint32_t slots,
                         uint32_t *shares)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t share = (uint32_t)((Wide)lengths[i] * slots / total);
        shares[i] = lengths[i] ? PEN_MAX(share, 1u) : 0;
        sum += shares[i];
    }
    while (sum != slots) {
        bool add = sum < slots;
        uint32_t best = UINT32_MAX;
        double most = 0;
        for (uint32_t i = 0; i < n; i++) {
            double m = missing(lengths, total, slots, shares, i) * (add ? 1 : -1);
            if (lengths[i] && (add || shares[i] > 1) && (best == UINT32_MAX || m > most)) {
                best = i;
                most = m;
            }
        }
        shares[best] += add ? 1u : UINT32_MAX;
        sum += add ? 1u : UINT64_MAX;
    }
}

static void choose_shares(const uint64_t *lengths, uint32_t n, uint64_t total, PenMixTable *t)
{
    uint32_t slots = 1;
    while (slots < PEN_MIX_MOST_SLOTS && !is_exact(lengths, n, total, slots, t->shares))
        slots++;
    if (slots == PEN_MIX_MOST_SLOTS)
        round_shares(lengths, n, total, slots, t->shares);
    uint32_t times = (LEAST_SLOTS + slots - 1) / slots;
    for (uint32_t i = 0; i < n; i++)
        t->shares[i] *= times;
    t->n_slots = slots * times;
}

/* ---- slots ---- */

static Window window_of(const PenMixTable *t, uint32_t source, uint32_t ordinal)
{
    uint64_t share = PEN_MAX(t->shares[source], 1u), n = t->n_slots;
    return (Window){(uint32_t)(ordinal * n / share),
                    (uint32_t)(((ordinal + UINT64_C(1)) * n + share - 1) / share)};
}

typedef struct Next { /* slot of a source */
    uint32_t ordinal;
    Window window; /* behind the table: there is none */
} Next;

static void place_all(PenMixTable *t, Next *next)
{
    for (uint32_t i = 0; i < t->n_sources; i++)
        next[i] = (Next){0, t->shares[i] ? window_of(t, i, 0) : (Window){UINT32_MAX, UINT32_MAX}};
    for (uint32_t at = 0; at < t->n_slots; at++) {
        uint32_t best = 0, end = UINT32_MAX;
        for (uint32_t i = 0; i < t->n_sources; i++)
            if (next[i].window.from <= at && next[i].window.end < end) {
                best = i;
                end = next[i].window.end;
            }
        t->slots[at] = (PenMixSlot){best, next[best].ordinal++};
        next[best].window = window_of(t, best, next[best].ordinal);
    }
}

static bool lies_in(Window w, uint32_t at)
{
    return at >= w.from && at < w.end;
}

/* Moves the slot at `from` to `to`. Those between make room, each by one place; or nothing happens,
 * if one of them would leave its window. */
static void move(PenMixTable *t, Window *windows, uint32_t from, uint32_t to)
{
    uint32_t step = to < from ? UINT32_MAX : 1; /* -1 or 1 */
    for (uint32_t at = from; at != to; at += step)
        if (!lies_in(windows[at + step], at))
            return;
    PenMixSlot slot = t->slots[from];
    Window window = windows[from];
    for (uint32_t at = from; at != to; at += step) {
        t->slots[at] = t->slots[at + step];
        windows[at] = windows[at + step];
    }
    t->slots[to] = slot;
    windows[to] = window;
}

/* A slot moves to any place of its window with the same probability, and back. So all orders that
 * the windows allow become equally likely. */
static void shuffle(PenMixTable *t, Window *windows, uint64_t key)
{
    PenRng rng = pen__rng_init(key, 0);
    for (uint32_t i = 0; i < t->n_slots; i++)
        windows[i] = window_of(t, t->slots[i].source, t->slots[i].ordinal);
    for (uint64_t i = 0; i < (uint64_t)MOVES * t->n_slots; i++) {
        uint32_t from = (uint32_t)pen__rng_below(&rng, t->n_slots);
        Window w = windows[from];
        move(t, windows, from, w.from + (uint32_t)pen__rng_below(&rng, w.end - w.from));
    }
}

/* ---- life ---- */

static int make(PenMixTable *t, const double *weights, uint64_t key, uint64_t *lengths,
                PenError *reterr)
{
    uint64_t total;
    int r = read_weights(weights, t->n_sources, lengths, &total, reterr);
    if (r < 0)
        return r;
    choose_shares(lengths, t->n_sources, total, t);
    t->slots = pen__alloc_array(t->n_slots, sizeof *t->slots);
    Next *next = pen__alloc_array(t->n_sources, sizeof *next);
    Window *windows = pen__alloc_array(t->n_slots, sizeof *windows);
    bool has_memory = t->slots && next && windows;
    if (has_memory) {
        place_all(t, next);
        shuffle(t, windows, key);
    }
    pen__free(next);
    pen__free(windows);
    return has_memory ? PEN_OK : pen__fail_memory(reterr, WHERE, "mixture");
}

int pen__mix_table_init(PenMixTable *t, const double *weights, uint32_t n, uint64_t key,
                        PenError *reterr)
{
    *t = (PenMixTable){.n_sources = n};
    t->shares = pen__alloc_array(n, sizeof *t->shares);
    uint64_t *lengths = pen__alloc_array(n, sizeof *lengths);
    int r = t->shares && lengths ? make(t, weights, key, lengths, reterr)
                                 : pen__fail_memory(reterr, WHERE, "mixture");
    pen__free(lengths);
    if (r < 0)
        pen__mix_table_fini(t);
    return r;
}

void pen__mix_table_fini(PenMixTable *t)
{
    pen__free(t->shares);
    pen__free(t->slots);
    *t = (PenMixTable){0};
}
