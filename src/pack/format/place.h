/* SPDX-License-Identifier: Apache-2.0 */
/* Checksums bound to the place of what they protect. */
#ifndef PEN_PACK_FORMAT_PLACE_H
#define PEN_PACK_FORMAT_PLACE_H

#include <stddef.h>
#include <stdint.h>

#include "pack/format/format.h"

typedef struct PenPlace {
    const uint8_t *id; /* of the shard, 16 bytes */
    uint32_t block, sample, field, frame, run;
} PenPlace;

uint32_t pen__place_sum(const PenPlace *place, const void *data, size_t bytes);
/* The same of bytes that are not at hand, at most 2^28 of them: `crc` is their CRC-32C. */
uint32_t pen__place_sum_of(const PenPlace *place, uint32_t crc, uint64_t bytes);

#endif
