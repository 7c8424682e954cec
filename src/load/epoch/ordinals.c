/* SPDX-License-Identifier: Apache-2.0 */
#include "load/epoch/ordinals.h"

#include <string.h>

#include "base/error.h"
#include "base/mem.h"

#define WHERE "load/ordinals"

/* A set of samples: one bit each. `before` counts the members in all words before this one, so that
 * a member's place among the members needs no search. */
typedef struct Set {
    uint64_t *words, *before;
    uint64_t n_words;
} Set;

static uint64_t bit_of(uint64_t sample)
{
    return UINT64_C(1) << (sample & 63);
}

/* Returns the number of different samples in the list. */
static uint64_t add_all(Set *s, const uint64_t *list, uint64_t n)
{
    uint64_t different = 0;
    for (uint64_t i = 0; i < n; i++) {
        uint64_t *word = &s->words[list[i] >> 6], bit = bit_of(list[i]);
        different += !(*word & bit);
        *word |= bit;
    }
    return different;
}

static void count_before(Set *s)
{
    uint64_t n = 0;
    for (uint64_t i = 0; i < s->n_words; i++) {
        s->before[i] = n;
        n += (uint64_t)__builtin_popcountll(s->words[i]);
    }
}

static uint64_t place_of(const Set *s, uint64_t sample)
{
    uint64_t lower = s->words[sample >> 6] & (bit_of(sample) - 1);
    return s->before[sample >> 6] + (uint64_t)__builtin_popcountll(lower);
}

static int count_all(Set *s, const uint64_t *list, uint64_t n, uint64_t different, uint32_t **ret,
                     PenError *reterr)
{
    uint32_t *seen = pen__alloc_array(different, sizeof *seen);
    uint32_t *ordinals = pen__alloc_array(n, sizeof *ordinals);
    s->before = pen__alloc_array(s->n_words, sizeof *s->before);
    if (!seen || !ordinals || !s->before) {
        pen__free(seen);
        pen__free(ordinals);
        return pen__fail_memory(reterr, WHERE, "repeats in the subset");
    }
    memset(seen, 0, different * sizeof *seen);
    count_before(s);
    for (uint64_t i = 0; i < n; i++)
        ordinals[i] = seen[place_of(s, list[i])]++;
    pen__free(seen);
    *ret = ordinals;
    return PEN_OK;
}

int pen__ordinals_new(const uint64_t *list, uint64_t n, uint64_t n_samples, uint32_t **ret,
                      PenError *reterr)
{
    Set s = {.n_words = n_samples / 64 + 1};
    int r = PEN_OK;
    *ret = NULL;
    s.words = pen__alloc_array(s.n_words, sizeof *s.words);
    if (!s.words)
        return pen__fail_memory(reterr, WHERE, "repeats in the subset");
    memset(s.words, 0, s.n_words * sizeof *s.words);
    uint64_t different = add_all(&s, list, n);
    if (different < n)
        r = count_all(&s, list, n, different, ret, reterr);
    pen__free(s.before);
    pen__free(s.words);
    return r;
}
