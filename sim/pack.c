/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/pack.h"

#include <inttypes.h>

#include "base/attr.h"
#include "base/bytes.h"
#include "base/error.h"
#include "load/epoch/permute.h"
#include "pack/reader/reader.h"

#define WHERE "sim/pack"

enum { SHARD_ENTRY_BYTES = 96 }; /* of a manifest, for each shard */
/* Of the index of a block of photographs, as 'penstock info' prints it. */
enum { INDEX_BYTES = 64, INDEX_SAMPLE_BYTES = 224 };

static int from_pack(PenSimPack *p, const PenSimSettings *s, PenError *reterr)
{
    if (s->n_samples || s->sample_bytes)
        return pen__fail(reterr, PEN_E_INVALID, WHERE,
                         "pack=%s: expected no samples and sample_bytes: a pack has its own",
                         s->pack);
    int r = pen_pack_open(s->pack, NULL, &p->pack, reterr);
    if (r < 0)
        return r;
    const PenManifest *m = pen__pack_manifest(p->pack);
    const PenPackInfo *info = pen_pack_info(p->pack);
    uint64_t shards = info->total_bytes - m->bytes;
    p->n_samples = m->n_samples;
    p->block_samples = m->block_samples;
    p->n_blocks = m->n_blocks;
    p->n_shards = m->n_shards;
    p->pack_bytes = info->total_bytes;
    p->payload_bytes = info->stats.payload_bytes;
    p->block_bytes = shards / PEN_MAX(m->n_blocks, 1u);
    p->largest_block = info->largest_block_bytes;
    p->sample_bytes = (double)shards / (double)PEN_MAX(m->n_samples, 1u);
    p->index_bytes = info->stats.index_bytes / PEN_MAX(m->n_blocks, 1u);
    p->manifest_bytes = m->bytes;
    if (!p->n_samples)
        return pen__fail(reterr, PEN_E_INVALID, WHERE, "%s: expected samples, found none", s->pack);
    return PEN_OK;
}

static int from_numbers(PenSimPack *p, const PenSimSettings *s, PenError *reterr)
{
    uint64_t bytes;
    if (!s->n_samples || !s->sample_bytes)
        return pen__fail(reterr, PEN_E_INVALID, WHERE,
                         "expected a pack, or samples and sample_bytes: pack=NAME.pen, or "
                         "samples=1e9 sample_bytes=110000");
    if (pen__mul_over(s->n_samples, s->sample_bytes, &bytes))
        return pen__fail(reterr, PEN_E_INVALID, WHERE,
                         "%" PRIu64 " samples of %" PRIu64 " bytes: expected less than 2^64 bytes",
                         s->n_samples, s->sample_bytes);
    p->n_samples = s->n_samples;
    p->block_samples = s->block_samples;
    p->n_blocks = (s->n_samples - 1) / s->block_samples + 1;
    p->pack_bytes = p->payload_bytes = bytes;
    p->block_bytes = p->largest_block = s->sample_bytes * s->block_samples;
    p->index_bytes =
        PEN_MIN(INDEX_BYTES + (uint64_t)INDEX_SAMPLE_BYTES * s->block_samples, p->block_bytes / 2);
    p->sample_bytes = (double)s->sample_bytes;
    p->blocks_per_shard = PEN_MAX(s->shard_bytes / p->block_bytes, 1u);
    p->n_shards = (p->n_blocks - 1) / p->blocks_per_shard + 1;
    p->manifest_bytes = p->n_shards * SHARD_ENTRY_BYTES;
    return PEN_OK;
}

int pen__sim_pack_init(PenSimPack *p, const PenSimSettings *s, PenError *reterr)
{
    *p = (PenSimPack){.prefixes = s->prefixes};
    return s->pack ? from_pack(p, s, reterr) : from_numbers(p, s, reterr);
}

void pen__sim_pack_fini(PenSimPack *p)
{
    pen_pack_close(&p->pack);
}

uint64_t pen__sim_pack_shard(const PenSimPack *p, uint64_t block)
{
    return p->pack ? pen__pack_shard_of(p->pack, block) : block / p->blocks_per_shard;
}

uint64_t pen__sim_pack_block_bytes(const PenSimPack *p, uint64_t block)
{
    if (!p->pack)
        return p->block_bytes;
    const PenShardEntry *e = &pen__pack_manifest(p->pack)->shards[pen__sim_pack_shard(p, block)];
    return e->file_bytes / PEN_MAX(e->n_blocks, 1u);
}

/* Shards are named by a hash; of a pack that is not there, by another one. */
unsigned pen__sim_pack_prefix(const PenSimPack *p, uint64_t shard)
{
    uint64_t hash = p->pack ? pen__pack_manifest(p->pack)->shards[shard].id[0]
                            : pen__permute_key(0, 0, 0, shard) >> 56;
    return (unsigned)(hash % p->prefixes);
}
