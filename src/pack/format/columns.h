/* SPDX-License-Identifier: Apache-2.0 */
/* Columns: the numbers and the image sizes of all samples of a shard, in a section of its last
 * block. */
#ifndef PEN_PACK_FORMAT_COLUMNS_H
#define PEN_PACK_FORMAT_COLUMNS_H

#include "pack/format/format.h"
#include "pack/format/schema.h"

/* Bytes of a sample's value; 0 when fields of this type have no such column. `what` is one of
 * PEN_COLUMN_*. */
uint32_t pen__column_width(const PenSchema *schema, uint32_t field, int what);

/* Bytes of the section for a shard of n samples; 0 when it has no column. */
uint64_t pen__columns_bytes(const PenSchema *schema, uint64_t n);

/* Where a column is, counted from the start of the section. Its checksum follows the values. False:
 * the section does not have it. */
bool pen__column_find(const PenSchema *schema, uint64_t n, uint32_t field, int what,
                      uint64_t *ret_offset);

uint32_t pen__column_sum(const uint8_t *id, uint32_t field, int what, const void *values,
                         size_t bytes);

/* The values of the n samples of a block, from its index. */
void pen__column_values(const PenSchema *schema, const uint8_t *index, uint32_t n, uint32_t field,
                        int what, uint8_t *ret);

/* Of a shard that is being written. */
typedef struct PenColumns {
    PenBuf *values; /* of each column */
    uint64_t n;     /* samples */
    uint64_t largest_block;
    bool is_dropped; /* they take too many bytes, or are not wanted */
} PenColumns;

/* Adds the samples of a block, which has `bytes` without columns. */
int pen__columns_add(PenColumns *c, const PenSchema *schema, const uint8_t *index, uint32_t n,
                     uint64_t bytes);
/* The section; empty when there is none. */
int pen__columns_write(const PenColumns *c, const PenSchema *schema, const uint8_t *id,
                       PenBuf *out);
void pen__columns_free(PenColumns *c, const PenSchema *schema); /* a zeroed one is fine */

#endif
