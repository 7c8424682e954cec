/* SPDX-License-Identifier: Apache-2.0 */
/* SHA-256 (FIPS 180-4): identities and key hashes. */
#ifndef PEN_BASE_SHA256_H
#define PEN_BASE_SHA256_H

#include <stddef.h>
#include <stdint.h>

typedef struct PenSha256 {
    uint32_t state[8];
    uint64_t bytes; /* taken so far */
    uint8_t block[64];
} PenSha256;

void pen__sha256_init(PenSha256 *s);
void pen__sha256_update(PenSha256 *s, const void *data, size_t bytes);
void pen__sha256_final(PenSha256 *s, uint8_t ret[32]); /* the state is then used up */

void pen__sha256(const void *data, size_t bytes, uint8_t ret[32]);

/* The same without special instructions: what tests compare with. */
void pen__sha256_soft(const void *data, size_t bytes, uint8_t ret[32]);

#endif
