/* SPDX-License-Identifier: Apache-2.0 */
/* A pack as one fuzz input: manifest bytes u32, the manifest, then for each shard bytes u32 and the
 * shard. Changed parts can be made to pass the checks that would stop a reader at once, so that
 * the code behind them is reached. */
#ifndef PEN_TESTS_FUZZ_PACK_PARTS_H
#define PEN_TESTS_FUZZ_PACK_PARTS_H

#include <stddef.h>
#include <stdint.h>

#include "io/source.h"
#include "pack/format/manifest.h"

enum { MAX_SHARDS = 8 };

typedef struct Part {
    uint8_t *data;
    size_t bytes;
} Part;

typedef struct PackParts { /* every part is a heap block of its own */
    Part manifest;
    Part shards[MAX_SHARDS];
    uint32_t n_shards;
} PackParts;

/* What does not fit the form above is cut. */
void parts_split(const uint8_t *data, size_t bytes, PackParts *ret);
void parts_free(PackParts *parts);
size_t parts_bytes(const PackParts *parts); /* joined */
void parts_join(const PackParts *parts, uint8_t *to);

/* For pen__pack_open_with: `ctx` is a PackParts. */
int parts_open(void *ctx, const char *name, PenSource **ret, PenError *reterr);

enum {
    REPAIR_SUMS = 1, /* every checksum whose bytes can be found, and the digests */
    REPAIR_PLACES =
        2, /* counts and offsets of manifest, footer and block table, to fit the sizes */
    REPAIR_ENTRIES = 4, /* offsets in the blocks' indexes, to follow each other */
    REPAIR_KEYS = 8     /* the sorted hashes */
};

void repair_manifest(Part *m, int what);
void repair_parts(PackParts *parts, int what);

#endif
