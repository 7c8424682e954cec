/* SPDX-License-Identifier: Apache-2.0 */
#include "pack/roll.h"

#include <string.h>

#include "base/bytes.h"
#include "base/sha256.h"
#include "io/dir.h"
#include "pack/shard_read.h"
#include "pack/shard_write.h"

#define WHERE "pack/roll"

struct PenRoll {
    PenRollSettings s;
    PenShardWriter *writer; /* NULL between shards */
    uint8_t id[PEN_ID_BYTES];
    uint64_t ordinal;
    const PenStoredSample **held; /* of the block that is being filled */
    uint32_t n_held;
    uint64_t first, end, n_bad; /* of the open shard: see PenShardPlan */
    uint64_t bad_ahead; /* left out since the last sample: they belong to whatever comes next */
    PenShardEntry *shards;
    uint64_t n_shards, cap;
    PenPackStats stats;
};

void pen__shard_id(const uint8_t plan_id[32], uint64_t task, uint64_t n_tasks, uint64_t ordinal,
                   uint8_t ret[PEN_ID_BYTES])
{
    uint8_t numbers[24];
    uint8_t hash[32];
    PenSha256 sha;
    pen__store64(numbers, task);
    pen__store64(numbers + 8, n_tasks);
    pen__store64(numbers + 16, ordinal);
    pen__sha256_init(&sha);
    pen__sha256_update(&sha, "penstock shard", 14);
    pen__sha256_update(&sha, plan_id, 32);
    pen__sha256_update(&sha, numbers, sizeof numbers);
    pen__sha256_final(&sha, hash);
    memcpy(ret, hash, PEN_ID_BYTES);
}

static char *shard_path(const char *dir, const uint8_t id[PEN_ID_BYTES])
{
    char name[PEN_SHARD_NAME_BYTES];
    pen__shard_name(id, name);
    return pen__path_join(dir, name);
}

int pen__shard_find(const char *dir, const uint8_t id[PEN_ID_BYTES], PenShardEntry *ret,
                    PenPackStats *ret_stats, uint64_t *ret_plan_end, PenError *reterr)
{
    PenSource *source = NULL;
    PenShard shard;
    char *path = shard_path(dir, id);
    if (!path)
        return pen__fail_memory(reterr, WHERE, dir);
    int r = pen__file_exists(path, reterr);
    if (r == 1)
        r = pen__source_open_file(path, &source, reterr);
    else
        goto out;
    if (r == PEN_OK)
        r = pen__shard_open(&shard, source, id, NULL, reterr);
    if (r < 0) {
        pen__source_close(&source);
        goto out;
    }
    *ret = shard.entry;
    if (ret_stats)
        *ret_stats = shard.stats;
    if (ret_plan_end)
        *ret_plan_end = shard.plan_end;
    pen__shard_close(&shard);
    r = 1;
out:
    pen__free(path);
    return r;
}

int pen__roll_open(const PenRollSettings *settings, PenRoll **ret, PenError *reterr)
{
    PenRoll *r = pen__zalloc(sizeof *r);
    const PenStoredSample **held =
        pen__alloc_array(PEN_MIN(settings->block_samples, PEN_MAX_BLOCK_SAMPLES), sizeof *held);
    char *dir = pen__strdup(settings->dir);
    char *part = pen__strdup(settings->part_path);
    if (!r || !held || !dir || !part) {
        pen__free(r);
        pen__free(held);
        pen__free(dir);
        pen__free(part);
        return pen__fail_memory(reterr, WHERE, settings->dir);
    }
    r->s = *settings;
    r->s.dir = dir;
    r->s.part_path = part;
    r->held = held;
    *ret = r;
    return PEN_OK;
}

static int note_shard(PenRoll *r, const PenShardEntry *entry, const PenPackStats *stats)
{
    if (r->n_shards == r->cap) {
        uint64_t cap = r->cap ? r->cap * 2 : 16;
        PenShardEntry *grown = pen__resize(r->shards, (size_t)cap * sizeof *grown);
        if (!grown)
            return PEN_E_NO_MEMORY;
        r->shards = grown;
        r->cap = cap;
    }
    r->shards[r->n_shards++] = *entry;
    pen__stats_add(&r->stats, stats);
    return PEN_OK;
}

/* The run before may have ended between the renaming of a shard and the syncing of its folder: the
 * name has to be safe before a manifest relies on it. */
static int sync_name(const PenRoll *r, PenError *reterr)
{
    char *path = shard_path(r->s.dir, r->id);
    int ret = path ? pen__dir_sync_parent(path, reterr) : pen__fail_memory(reterr, WHERE, r->s.dir);
    pen__free(path);
    return ret;
}

int pen__roll_resume(PenRoll *r, uint64_t *ret_position, PenError *reterr)
{
    uint64_t position = 0;
    for (;;) {
        PenShardEntry entry;
        PenPackStats stats;
        uint64_t end = 0;
        pen__shard_id(r->s.plan_id, r->s.task, r->s.n_tasks, r->ordinal, r->id);
        int found = pen__shard_find(r->s.dir, r->id, &entry, &stats, &end, reterr);
        if (found < 0)
            return found;
        /* A short last block is written again: an input left out behind it may be whole by now. */
        if (!found || entry.samples_used % r->s.block_samples)
            break;
        if (note_shard(r, &entry, &stats) < 0)
            return pen__fail_memory(reterr, WHERE, r->s.dir);
        int synced = sync_name(r, reterr);
        if (synced < 0)
            return synced;
        position = end;
        r->ordinal++;
    }
    int ret = r->n_shards ? pen__dir_sync(r->s.dir, reterr) : PEN_OK;
    if (ret == PEN_OK)
        *ret_position = position;
    return ret;
}

static void release_held(PenRoll *r)
{
    for (uint32_t i = 0; i < r->n_held; i++)
        r->s.release(r->s.ctx, r->held[i]);
    r->n_held = 0;
}

static int start_shard(PenRoll *r, uint64_t ordinal, PenError *reterr)
{
    pen__shard_id(r->s.plan_id, r->s.task, r->s.n_tasks, ordinal, r->id);
    r->n_bad = 0;
    r->first = r->held[0]->position;
    return pen__shard_create(r->s.part_path, r->s.schema, r->id, r->s.block_samples, &r->writer,
                             reterr);
}

static int write_held(PenRoll *r, PenError *reterr)
{
    int ret = PEN_OK;
    if (!r->writer)
        ret = start_shard(r, r->ordinal, reterr);
    if (ret == PEN_OK)
        ret = pen__shard_add(r->writer, r->held, r->n_held, reterr);
    r->end = r->held[r->n_held - 1]->position + 1;
    r->n_bad += r->bad_ahead;
    r->bad_ahead = 0;
    release_held(r);
    return ret;
}

/* Puts the open shard in its place; its entry is then read back from the file. */
static int commit(PenRoll *r, PenShardEntry *ret_entry, PenPackStats *ret_stats, PenError *reterr)
{
    PenShardPlan plan = {r->first, r->end, r->n_bad};
    char name[PEN_SHARD_NAME_BYTES];
    pen__shard_name(r->id, name);
    char *path = pen__path_join(r->s.dir, name);
    name[2] = 0;
    char *folder = pen__path_join(r->s.dir, name);
    int ret = path && folder ? PEN_OK : pen__fail_memory(reterr, WHERE, r->s.dir);
    if (ret == PEN_OK && r->s.before_commit)
        ret = r->s.before_commit(r->s.ctx, reterr);
    if (ret == PEN_OK)
        ret = pen__dir_make(folder, reterr);
    if (ret == PEN_OK)
        ret = pen__shard_commit(&r->writer, &plan, path, reterr);
    if (ret == PEN_OK)
        ret = pen__shard_find(r->s.dir, r->id, ret_entry, ret_stats, NULL, reterr);
    if (ret == 0)
        ret = pen__fail(reterr, PEN_E_IO, WHERE, "%s: gone right after it was written", path);
    pen__shard_abort(&r->writer);
    pen__free(path);
    pen__free(folder);
    return ret < 0 ? ret : PEN_OK;
}

static int end_shard(PenRoll *r, PenError *reterr)
{
    PenShardEntry entry;
    PenPackStats stats;
    int ret = commit(r, &entry, &stats, reterr);
    if (ret == PEN_OK && note_shard(r, &entry, &stats) < 0)
        ret = pen__fail_memory(reterr, WHERE, r->s.dir);
    r->ordinal++;
    return ret;
}

int pen__roll_add(PenRoll *r, const PenStoredSample *sample, PenError *reterr)
{
    r->held[r->n_held++] = sample;
    if (r->n_held < r->s.block_samples)
        return PEN_OK;
    int ret = write_held(r, reterr);
    if (ret == PEN_OK && pen__shard_bytes(r->writer) >= r->s.shard_bytes)
        ret = end_shard(r, reterr);
    return ret;
}

void pen__roll_skip(PenRoll *r)
{
    r->bad_ahead++;
}

static int write_rest(PenRoll *r, PenShardEntry *ret_rest, PenError *reterr)
{
    PenPackStats stats;
    int ret = start_shard(r, PEN_ORDINAL_REST, reterr);
    if (ret == PEN_OK)
        ret = write_held(r, reterr);
    if (ret == PEN_OK)
        ret = commit(r, ret_rest, &stats, reterr);
    if (ret == PEN_OK)
        pen__stats_add(&r->stats, &stats);
    return ret;
}

int pen__roll_finish(PenRoll *r, int keep_rest, PenShardEntry *ret_rest, PenError *reterr)
{
    int ret = PEN_OK;
    if (r->n_held && !keep_rest)
        ret = write_held(r, reterr);
    if (ret == PEN_OK && r->writer)
        ret = end_shard(r, reterr);
    PenShardEntry rest = {.n_blocks = 0};
    if (ret == PEN_OK && r->n_held)
        ret = write_rest(r, &rest, reterr);
    if (ret == PEN_OK && ret_rest)
        *ret_rest = rest;
    return ret;
}

const PenShardEntry *pen__roll_shards(const PenRoll *r, uint64_t *ret_n)
{
    *ret_n = r->n_shards;
    return r->shards;
}

const PenPackStats *pen__roll_stats(const PenRoll *r)
{
    return &r->stats;
}

void pen__roll_remove(PenRoll *r)
{
    pen__shard_abort(&r->writer);
    for (uint64_t i = 0; i < r->n_shards; i++) {
        char *path = shard_path(r->s.dir, r->shards[i].id);
        if (path)
            pen__file_remove(path, NULL);
        pen__free(path);
    }
}

void pen__roll_close(PenRoll **roll)
{
    if (!roll || !*roll)
        return;
    PenRoll *r = *roll;
    release_held(r);
    pen__shard_abort(&r->writer);
    pen__free(r->held);
    pen__free(r->shards);
    pen__free((char *)r->s.dir);
    pen__free((char *)r->s.part_path);
    pen__free(r);
    *roll = NULL;
}
