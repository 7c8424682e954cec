/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEN_TESTS_FUZZ_REPAIR_BLOCK_H
#define PEN_TESTS_FUZZ_REPAIR_BLOCK_H

#include "pack/format/schema.h"
#include "pack_parts.h"

/* `entry` is the block's in the shard's table; `what` is of REPAIR_*. Without a schema only header
 * and index are repaired. */
void repair_block(Part block, const uint8_t *id, uint32_t number, const PenSchema *schema,
                  uint8_t *entry, int what);

/* The checksums of the columns at the end of the last block of a shard, if there are any. */
void repair_columns(Part last, const uint8_t *id, uint64_t n_samples, const PenSchema *schema);

/* 0 when the key is not where it could be looked at. */
uint64_t block_key_hash(const uint8_t *data, uint64_t bytes, uint32_t sample);

#endif
