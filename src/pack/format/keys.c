/* SPDX-License-Identifier: Apache-2.0 */
#include "pack/format/keys.h"

#include <stdlib.h>

#include "base/bytes.h"
#include "base/sha256.h"
#include "pack/format/format.h"

uint64_t pen__key_hash(const void *key, size_t bytes)
{
    uint8_t hash[32];
    pen__sha256(key, bytes, hash);
    return pen__load64(hash);
}

const char *pen__key_text(const void *key, size_t bytes, char ret[PEN_KEY_TEXT_BYTES])
{
    size_t n = bytes < PEN_KEY_TEXT_BYTES - 1 ? bytes : PEN_KEY_TEXT_BYTES - 1;
    for (size_t i = 0; i < n; i++) {
        char c = ((const char *)key)[i];
        ret[i] = (unsigned char)c < 0x20 || c == 0x7F ? '?' : c;
    }
    ret[n] = 0;
    return ret;
}

static int by_hash(const void *a, const void *b)
{
    const PenKeyHash *x = a;
    const PenKeyHash *y = b;
    if (x->hash != y->hash)
        return x->hash < y->hash ? -1 : 1;
    return x->sample < y->sample ? -1 : x->sample > y->sample;
}

int pen__keys_write(PenKeyHash *keys, uint64_t n, PenBuf *out)
{
    int r = pen__buf_reserve(out, (size_t)n * PEN_KEY_HASH_BYTES);
    if (r < 0)
        return r;
    if (n)
        qsort(keys, (size_t)n, sizeof *keys, by_hash);
    uint8_t *to = out->data + out->bytes;
    for (uint64_t i = 0; i < n; i++, to += PEN_KEY_HASH_BYTES) {
        pen__store64(to, keys[i].hash);
        pen__store32(to + 8, keys[i].sample);
    }
    out->bytes += (size_t)n * PEN_KEY_HASH_BYTES;
    return PEN_OK;
}

PenKeyHash pen__keys_load(const uint8_t *keys, uint64_t i)
{
    const uint8_t *e = keys + i * PEN_KEY_HASH_BYTES;
    return (PenKeyHash){pen__load64(e), pen__load32(e + 8)};
}

const char *pen__keys_check(const uint8_t *keys, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        PenKeyHash now = pen__keys_load(keys, i);
        if (now.sample >= n)
            return "key of a sample that the shard does not have";
        if (i == 0)
            continue;
        PenKeyHash last = pen__keys_load(keys, i - 1);
        if (by_hash(&last, &now) >= 0)
            return "keys out of order";
    }
    return NULL;
}

uint64_t pen__keys_lower(const uint8_t *keys, uint64_t n, uint64_t hash)
{
    uint64_t low = 0;
    while (n) {
        uint64_t half = n / 2;
        if (pen__keys_load(keys, low + half).hash < hash) {
            low += half + 1;
            n -= half + 1;
        } else {
            n = half;
        }
    }
    return low;
}
