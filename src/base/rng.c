/* SPDX-License-Identifier: Apache-2.0 */
#include "base/rng.h"

void pen__philox(const uint32_t key[2], const uint32_t counter[4], uint32_t ret[4])
{
    uint32_t k0 = key[0], k1 = key[1];
    uint32_t c0 = counter[0], c1 = counter[1], c2 = counter[2], c3 = counter[3];
    for (int round = 0; round < 10; round++) {
        uint64_t a = (uint64_t)0xd2511f53u * c0;
        uint64_t b = (uint64_t)0xcd9e8d57u * c2;
        c0 = (uint32_t)(b >> 32) ^ c1 ^ k0;
        c1 = (uint32_t)b;
        c2 = (uint32_t)(a >> 32) ^ c3 ^ k1;
        c3 = (uint32_t)a;
        k0 += 0x9e3779b9u;
        k1 += 0xbb67ae85u;
    }
    ret[0] = c0;
    ret[1] = c1;
    ret[2] = c2;
    ret[3] = c3;
}

PenRng pen__rng_init(uint64_t seed, uint64_t stream)
{
    return (PenRng){
        .key = {(uint32_t)seed, (uint32_t)(seed >> 32)},
        .counter = {0, 0, (uint32_t)stream, (uint32_t)(stream >> 32)},
    };
}

uint64_t pen__rng_next(PenRng *rng)
{
    uint32_t x[4];
    pen__philox(rng->key, rng->counter, x);
    if (++rng->counter[0] == 0)
        rng->counter[1]++;
    return x[0] | (uint64_t)x[1] << 32;
}

uint64_t pen__rng_below(PenRng *rng, uint64_t n)
{
    if (n == 0)
        return 0;
    /* The high half of x * n is the result. The lowest 2^64 mod n values of the low half are the
     * ones that would make some results likelier, so they are drawn again. */
    __uint128_t wide = (__uint128_t)pen__rng_next(rng) * n;
    if ((uint64_t)wide < n) {
        uint64_t reject = -n % n;
        while ((uint64_t)wide < reject)
            wide = (__uint128_t)pen__rng_next(rng) * n;
    }
    return (uint64_t)(wide >> 64);
}
