/* SPDX-License-Identifier: Apache-2.0 */
#include "codec/jpeg/huffman.h"

#include <stddef.h>
#include <string.h>

enum {
    N_LEAVES = 257, /* the last is a stand-in for the code of all ones, which stays unused */
    MAX_BITS = 16
};

/* Trees that are still to be joined. A key orders by weight, then by falling leaf number. */
typedef struct Heap {
    uint64_t keys[N_LEAVES];
    uint32_t n;
} Heap;

static uint64_t key_of(uint64_t weight, uint32_t leaf)
{
    return weight << 9 | (511 - leaf);
}

static uint32_t leaf_of(uint64_t key)
{
    return 511 - (uint32_t)(key & 511);
}

static void sift_down(Heap *h, uint32_t i)
{
    uint64_t key = h->keys[i];
    for (;;) {
        uint32_t child = 2 * i + 1;
        if (child >= h->n)
            break;
        if (child + 1 < h->n && h->keys[child + 1] < h->keys[child])
            child++;
        if (h->keys[child] >= key)
            break;
        h->keys[i] = h->keys[child];
        i = child;
    }
    h->keys[i] = key;
}

static uint64_t take_least(Heap *h)
{
    uint64_t key = h->keys[0];
    h->keys[0] = h->keys[--h->n];
    if (h->n)
        sift_down(h, 0);
    return key;
}

static void start_heap(Heap *h, const uint32_t counts[256])
{
    h->n = 0;
    for (uint32_t i = 0; i < 256; i++)
        if (counts[i])
            h->keys[h->n++] = key_of(counts[i], i);
    h->keys[h->n++] = key_of(1, N_LEAVES - 1);
    for (uint32_t i = h->n / 2; i-- > 0;)
        sift_down(h, i);
}

/* One more bit for every leaf of a tree; returns its last leaf. */
static uint32_t deepen(uint32_t leaf, const int16_t next[N_LEAVES], uint16_t depth[N_LEAVES])
{
    depth[leaf]++;
    while (next[leaf] >= 0) {
        leaf = (uint32_t)next[leaf];
        depth[leaf]++;
    }
    return leaf;
}

static void find_depths(const uint32_t counts[256], uint16_t depth[N_LEAVES])
{
    Heap heap;
    int16_t next[N_LEAVES]; /* leaves of one tree are chained */
    memset(next, 0xFF, sizeof next);
    memset(depth, 0, N_LEAVES * sizeof *depth);
    start_heap(&heap, counts);
    while (heap.n > 1) {
        uint64_t a = take_least(&heap), b = heap.keys[0];
        uint32_t last = deepen(leaf_of(a), next, depth);
        next[last] = (int16_t)leaf_of(b);
        deepen(leaf_of(b), next, depth);
        heap.keys[0] = key_of((a >> 9) + (b >> 9), leaf_of(a));
        sift_down(&heap, 0);
    }
}

/* Codes that are too long become shorter at the cost of some that are short (annex K.3). */
static void limit_lengths(uint32_t n_codes[N_LEAVES])
{
    for (size_t i = N_LEAVES - 1; i > MAX_BITS; i--)
        while (n_codes[i]) {
            size_t j = i - 2;
            while (!n_codes[j])
                j--;
            n_codes[i] -= 2;
            n_codes[i - 1]++;
            n_codes[j + 1] += 2;
            n_codes[j]--;
        }
}

/* Symbols by the length they first had, then by value. */
static void sort_symbols(const uint16_t depth[N_LEAVES], const uint32_t n_codes[N_LEAVES],
                         PenHuffTable *ret)
{
    uint32_t start[N_LEAVES], n = 0;
    for (size_t i = 1; i < N_LEAVES; i++) {
        start[i] = n;
        n += n_codes[i];
    }
    for (uint32_t i = 0; i < 256; i++)
        if (depth[i]) {
            ret->symbols[start[depth[i]]++] = (uint8_t)i;
            ret->n_symbols++;
        }
}

void pen__huff_optimal(const uint32_t counts[256], PenHuffTable *ret)
{
    uint16_t depth[N_LEAVES];
    uint32_t n_codes[N_LEAVES] = {0};
    memset(ret, 0, sizeof *ret);
    find_depths(counts, depth);
    if (!depth[N_LEAVES - 1])
        return; /* nothing occurs at all */
    for (size_t i = 0; i < N_LEAVES; i++)
        n_codes[depth[i]]++;
    n_codes[0] = 0;
    /* The stand-in is the rarest leaf and the last of its length: it must not count here. */
    n_codes[depth[N_LEAVES - 1]]--;
    sort_symbols(depth, n_codes, ret);
    n_codes[depth[N_LEAVES - 1]]++;
    limit_lengths(n_codes);
    size_t longest = MAX_BITS;
    while (!n_codes[longest])
        longest--;
    n_codes[longest]--;
    for (size_t i = 0; i <= MAX_BITS; i++)
        ret->n_codes[i] = (uint8_t)n_codes[i];
}
