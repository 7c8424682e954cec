/* SPDX-License-Identifier: Apache-2.0 */
/* A Feistel network on Z_a x Z_b: a number below a * b is split into its quotient and its remainder
 * by b, and in turn each half has a hash of the other added to it, modulo its own range. As a and b
 * are next to the square root of n, the domain exceeds n by less than a: what falls behind n is
 * sent through again, which is rare and ends, because the network is a bijection of its domain. */
#include "load/epoch/permute.h"

#include <math.h>

#include "base/attr.h"

#define GOLDEN UINT64_C(0x9e3779b97f4a7c15)

__extension__ typedef unsigned __int128 Wide;

/* Bijective. The upper bits of what it gives are good, the lower ones are not. */
static inline uint64_t mix_upper(uint64_t x)
{
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    return (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
}

/* The finaliser of splitmix64; bijective. */
static inline uint64_t mix(uint64_t x)
{
    x = mix_upper(x);
    return x ^ (x >> 31);
}

/* Words are hashed one after another, never added up: seed 1, epoch 2 is not seed 2, epoch 1. */
uint64_t pen__permute_key(uint64_t seed, uint64_t epoch, uint64_t purpose, uint64_t index)
{
    uint64_t h = mix(seed + GOLDEN);
    h = mix((h ^ epoch) + GOLDEN);
    h = mix((h ^ purpose) + GOLDEN);
    return mix((h ^ index) + GOLDEN);
}

/* The floating-point root may be off by one; the loops make it exact on every machine. */
static uint64_t root_above(uint64_t n)
{
    uint64_t a = (uint64_t)sqrt((double)n);
    while (a * a < n)
        a++;
    while (a > 1 && (a - 1) * (a - 1) >= n)
        a--;
    return PEN_MAX(a, 1);
}

void pen__permute_rekey(PenPermutation *p, uint64_t key)
{
    for (int i = 0; i < p->rounds; i++)
        p->keys[i] = mix(key += GOLDEN);
}

void pen__permute_init(PenPermutation *ret, uint64_t n, uint64_t key)
{
    ret->n = n;
    ret->a = root_above(n);
    ret->b = (n - 1) / ret->a + 1;
    ret->rounds = n < PEN_PERMUTE_FEW ? PEN_PERMUTE_ROUNDS_FEW : PEN_PERMUTE_ROUNDS;
    pen__permute_rekey(ret, key);
}

/* A hash in [0, range), by the upper half of a product instead of a division. */
static inline uint64_t hash_below(uint64_t x, uint64_t key, uint64_t range)
{
    return (uint64_t)(((Wide)mix_upper(x + key) * range) >> 64);
}

static inline uint64_t add(uint64_t x, uint64_t y, uint64_t range)
{
    x += y;
    return x >= range ? x - range : x;
}

static inline uint64_t subtract(uint64_t x, uint64_t y, uint64_t range)
{
    return x >= y ? x - y : x + range - y;
}

uint64_t pen__permute_at(const PenPermutation *p, uint64_t i)
{
    do {
        uint64_t x = i / p->b;
        uint64_t y = i % p->b;
        for (int k = 0; k < p->rounds; k += 2) {
            x = add(x, hash_below(y, p->keys[k], p->a), p->a);
            y = add(y, hash_below(x, p->keys[k + 1], p->b), p->b);
        }
        i = x * p->b + y;
    } while (i >= p->n);
    return i;
}

uint64_t pen__permute_find(const PenPermutation *p, uint64_t value)
{
    do {
        uint64_t x = value / p->b;
        uint64_t y = value % p->b;
        for (int k = p->rounds - 2; k >= 0; k -= 2) {
            y = subtract(y, hash_below(x, p->keys[k + 1], p->b), p->b);
            x = subtract(x, hash_below(y, p->keys[k], p->a), p->a);
        }
        value = x * p->b + y;
    } while (value >= p->n);
    return value;
}

bool pen__permute_bit(uint64_t key, uint64_t number)
{
    return mix(key + number * GOLDEN) >> 63;
}
