/* SPDX-License-Identifier: Apache-2.0 */
/* A keyed permutation of [0, n): any value of it, and of its inverse, without a table. */
#ifndef PEN_LOAD_EPOCH_PERMUTE_H
#define PEN_LOAD_EPOCH_PERMUTE_H

#include <stdbool.h>
#include <stdint.h>

#define PEN_PERMUTE_MOST (UINT64_C(1) << 63) /* the largest n */

/* Few values need more rounds before all their orders are about equally likely. */
enum { PEN_PERMUTE_ROUNDS = 6, PEN_PERMUTE_ROUNDS_FEW = 18, PEN_PERMUTE_FEW = 64 };

typedef struct PenPermutation {
    uint64_t n, a, b; /* the domain is a * b >= n; values beyond n are walked over */
    int32_t rounds;
    uint64_t keys[PEN_PERMUTE_ROUNDS_FEW];
} PenPermutation;

/* A hash of what a permutation is for: the words, in this order. `purpose`: an enum PenPurpose. */
uint64_t pen__permute_key(uint64_t seed, uint64_t epoch, uint64_t purpose, uint64_t index);
/* A random bit for each number. */
bool pen__permute_bit(uint64_t key, uint64_t number);
/* n from 1 to PEN_PERMUTE_MOST. */
void pen__permute_init(PenPermutation *ret, uint64_t n, uint64_t key);
void pen__permute_rekey(PenPermutation *p, uint64_t key);      /* the same n, another permutation */
uint64_t pen__permute_at(const PenPermutation *p, uint64_t i); /* i < n */
uint64_t pen__permute_find(const PenPermutation *p, uint64_t value); /* the i whose value it is */

#endif
