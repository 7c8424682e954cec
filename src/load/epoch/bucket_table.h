/* SPDX-License-Identifier: Apache-2.0 */
/* Which sample is at each place of an epoch with buckets; buckets.h makes it. It takes 4 bytes for
 * each place, and 4 for each group. */
#ifndef PEN_LOAD_EPOCH_BUCKET_TABLE_H
#define PEN_LOAD_EPOCH_BUCKET_TABLE_H

#include <stdbool.h>
#include <stdint.h>

typedef struct PenBucketTable {
    uint64_t group;    /* samples of a global batch */
    uint64_t n_groups; /* of these places each */
    uint32_t *entries; /* of all places; the highest bit is set where it only pads */
    uint32_t *groups;  /* the one at each turn */
} PenBucketTable;

#define PEN_BUCKET_FILLS (UINT32_C(1) << 31)

static inline uint32_t pen__bucket_table_entry(const PenBucketTable *t, uint64_t place)
{
    return t->entries[t->groups[place / t->group] * t->group + place % t->group];
}

/* Sample at a place, and does it only pad? */
static inline uint64_t pen__bucket_table_at(const PenBucketTable *t, uint64_t place)
{
    return pen__bucket_table_entry(t, place) & ~PEN_BUCKET_FILLS;
}

static inline bool pen__bucket_table_fills(const PenBucketTable *t, uint64_t place)
{
    return (pen__bucket_table_entry(t, place) & PEN_BUCKET_FILLS) != 0;
}

#endif
