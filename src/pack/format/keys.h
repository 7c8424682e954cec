/* SPDX-License-Identifier: Apache-2.0 */
/* Key hashes: finding a sample by its key, and keys that are there twice. */
#ifndef PEN_PACK_FORMAT_KEYS_H
#define PEN_PACK_FORMAT_KEYS_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/mem.h"

typedef struct PenKeyHash {
    uint64_t hash;
    uint32_t sample; /* number in the shard */
} PenKeyHash;

uint64_t pen__key_hash(const void *key, size_t bytes);

/* The key for messages: what is not printable becomes '?', what is too long is cut. Returns `ret`.
 */
enum { PEN_KEY_TEXT_BYTES = 161 };
const char *pen__key_text(const void *key, size_t bytes, char ret[PEN_KEY_TEXT_BYTES]);

/* Sorts `keys` in place and appends them as they lie in a shard. */
int pen__keys_write(PenKeyHash *keys, uint64_t n, PenBuf *out);
PenKeyHash pen__keys_load(const uint8_t *keys, uint64_t i);
/* Sorted by (hash, sample), all samples below n? NULL, or what is wrong. */
const char *pen__keys_check(const uint8_t *keys, uint64_t n);
/* The first entry whose hash is at least `hash`; n when there is none. */
uint64_t pen__keys_lower(const uint8_t *keys, uint64_t n, uint64_t hash);

#endif
