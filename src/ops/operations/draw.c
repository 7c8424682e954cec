/* SPDX-License-Identifier: Apache-2.0 */
/* Built without fused multiply-add (meson.build), so that every machine rounds alike. */
#include "ops/operations/draw.h"

#include "base/rng.h"

/* A bijection of 64 bits in which every bit of the input moves half of the output's. */
static uint64_t mix(uint64_t x)
{
    x ^= x >> 32;
    x *= 0xd6e8feb86659fd93u;
    x ^= x >> 32;
    x *= 0xd6e8feb86659fd93u;
    return x ^ x >> 32;
}

PenDrawKey pen__draw_key(uint64_t seed, uint64_t epoch)
{
    /* Mixed twice: neighbours in seed and epoch do not meet. */
    uint64_t key = mix(mix(seed + 0x9e3779b97f4a7c15u) ^ (epoch + 0x2545f4914f6cdd1du));
    return (PenDrawKey){.key = {(uint32_t)key, (uint32_t)(key >> 32)}};
}

static PenDrawKey change_key(PenDrawKey key, uint64_t by)
{
    uint64_t whole = key.key[0] | (uint64_t)key.key[1] << 32;
    whole = mix(whole ^ by);
    return (PenDrawKey){.key = {(uint32_t)whole, (uint32_t)(whole >> 32)}};
}

PenDrawKey pen__draw_key_of(PenDrawKey key, uint32_t ordinal)
{
    if (!ordinal)
        return key;
    return change_key(key, mix(ordinal + 0x9e3779b97f4a7c15u));
}

/* FNV-1a. The last bit says that there is a name. */
uint64_t pen__draw_name(const char *name)
{
    uint64_t h = 0xcbf29ce484222325u;
    for (; *name; name++)
        h = (h ^ (uint8_t)*name) * 0x100000001b3u;
    return h | 1;
}

PenDrawKey pen__draw_key_view(PenDrawKey key, uint64_t name)
{
    return name ? change_key(key, mix(name ^ 0x517cc1b727220a95u)) : key;
}

PenDraw pen__draw_start(PenDrawKey key, uint64_t sample, uint32_t draw_id, uint32_t occurrence)
{
    return (PenDraw){
        .key = {key.key[0], key.key[1]},
        .counter = {(uint32_t)sample, (uint32_t)(sample >> 32), draw_id << 16 | occurrence, 0},
    };
}

uint64_t pen__draw_bits(PenDraw *d)
{
    uint32_t x[4];
    pen__philox(d->key, d->counter, x);
    d->counter[3]++;
    return x[0] | (uint64_t)x[1] << 32;
}

double pen__draw_uniform(PenDraw *d, double low, double high)
{
    double unit = (double)(pen__draw_bits(d) >> 11) * 0x1p-53;
    double span = (high - low) * unit;
    return low + span;
}

uint64_t pen__draw_below(PenDraw *d, uint64_t n)
{
    if (n == 0)
        return 0;
    /* The high half of the product is the result; low halves below 2^64 mod n are one too many for
     * some results, and are drawn again. */
    __uint128_t wide = (__uint128_t)pen__draw_bits(d) * n;
    uint64_t surplus = (0 - n) % n;
    while ((uint64_t)wide < surplus)
        wide = (__uint128_t)pen__draw_bits(d) * n;
    return (uint64_t)(wide >> 64);
}

int pen__draw_happens(PenDraw *d, double p)
{
    return pen__draw_uniform(d, 0, 1) < p;
}
