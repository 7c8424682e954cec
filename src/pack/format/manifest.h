/* SPDX-License-Identifier: Apache-2.0 */
/* The manifest: the one file that makes shards a pack. */
#ifndef PEN_PACK_FORMAT_MANIFEST_H
#define PEN_PACK_FORMAT_MANIFEST_H

#include "base/mem.h"
#include "io/source.h"
#include "pack/format/format.h"
#include "pack/format/schema.h"

typedef struct PenShardEntry {
    uint8_t id[PEN_ID_BYTES];
    uint64_t first_block, blocks_used, n_blocks, samples_used;
    uint64_t file_bytes, largest_block, tail_bytes;
    uint64_t stored_bytes; /* of a mapped shard: the size of its file; else 0 */
    uint8_t digest[16];
} PenShardEntry;

typedef struct PenManifest {
    uint8_t id[PEN_ID_BYTES]; /* of the pack */
    /* As read: the id of the pack that 'copy' makes of it. An ordinary pack has the same. */
    uint8_t content_id[PEN_ID_BYTES];
    uint64_t n_samples, block_samples, n_blocks, n_shards;
    uint64_t bytes;
    uint64_t must; /* as read; what is written follows from the schema and the shards */
    PenSchema schema;
    PenShardEntry *shards;
    char *settings;
    PenPackStats stats;
} PenManifest;

/* Serialises; of `m` it reads block_samples, n_shards, schema, shards, settings (may be NULL) and
 * stats, and fills first_block of the shards, n_blocks, n_samples, bytes and id. */
int pen__manifest_write(PenManifest *m, PenBuf *out, PenError *reterr);
int pen__manifest_read(PenManifest *ret, PenSource *source, PenError *reterr);
void pen__manifest_fini(PenManifest *m);
/* Makes the manifest of an in-place pack, valid and complete in memory, that of a pack with the
 * same shards that has all bytes itself. Nothing else changes. */
void pen__manifest_unmap(uint8_t *data);
/* Do payloads lie in files outside of the pack? */
bool pen__manifest_is_mapped(const PenManifest *m);
/* What the shard takes where the pack is. */
static inline uint64_t pen__shard_stored(const PenShardEntry *s)
{
    return s->stored_bytes ? s->stored_bytes : s->file_bytes;
}

/* Is the version that the file `name` has the one that is read? PEN_E_FORMAT, and what to do. */
int pen__format_check(const char *name, uint32_t version, PenError *reterr);

/* Statistics as the format numbers them. */
void pen__stats_load(PenPackStats *ret, const uint8_t *data, size_t n);
/* How many are written: those of missing values only when there are some. */
size_t pen__stats_count(const uint64_t v[PEN_STAT_COUNT]);
void pen__stats_add(PenPackStats *to, const PenPackStats *from);

/* "3f/3f9a....shard"; 40 bytes and the end. */
#define PEN_SHARD_NAME_BYTES 42
void pen__shard_name(const uint8_t id[PEN_ID_BYTES], char ret[PEN_SHARD_NAME_BYTES]);

#endif
