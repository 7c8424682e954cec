/* SPDX-License-Identifier: Apache-2.0 */
/* A map of a pack's files: what each byte belongs to, and what is lost with it. */
#ifndef PEN_TESTS_LIB_REGIONS_H
#define PEN_TESTS_LIB_REGIONS_H

#include "lib/probe.h"

typedef enum RegionKind {
    REGION_MANIFEST,
    REGION_SHARD_HEADER,
    REGION_INDEX,   /* header and index of a block */
    REGION_PAYLOAD, /* what one checksum covers: a blob, an image without table, a head, a run */
    REGION_SECTION,
    REGION_KEYS,
    REGION_TAIL
} RegionKind;

typedef struct Region {
    RegionKind kind;
    size_t item; /* of the tree */
    uint64_t begin, end;
    uint64_t shard;
    uint32_t block;        /* in the shard */
    uint64_t block_number; /* in the pack */
    uint32_t in_block;     /* number of the sample in its block */
    uint64_t sample;
    uint32_t field, frame;
    bool is_run;
    uint32_t first_segment, end_segment; /* of a run */
} Region;

typedef struct RegionMap {
    PenPack *pack; /* whole */
    const Tree *tree;
    Region *regions; /* in the order of the tree's items and of offsets, without gaps */
    size_t n, cap;
} RegionMap;

/* Aborts when the files are not covered byte by byte. */
void regions_make(PenPack *pack, const Tree *tree, RegionMap *ret);
void regions_free(RegionMap *map);
const Region *regions_at(const RegionMap *map, size_t item, uint64_t offset);
const char *region_name(RegionKind kind);

/* What has to become of a question when a byte of the region is damaged. */
typedef enum Fate { FATE_ANSWERED, FATE_REFUSED, FATE_EITHER } Fate;
Fate region_fate(const RegionMap *map, const Region *r, const Probe *p);

/* Does the message name the smallest place that can be known? */
bool region_named(const RegionMap *map, const Region *r, const PenError *e);

#endif
