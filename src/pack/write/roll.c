/* SPDX-License-Identifier: Apache-2.0 */
#include "pack/write/roll.h"

#include <string.h>

#include "base/bytes.h"
#include "base/sha256.h"
#include "pack/format/shard_read.h"
#include "pack/format/shard_write.h"
#include "pack/mapped/mapped.h"

#define WHERE "pack/roll"

struct PenRoll {
    PenRollSettings s;
    PenShardWriter *writer; /* NULL between shards */
    uint8_t id[PEN_ID_BYTES];
    uint64_t ordinal;
    const PenStoredSample **held; /* of the block that is being filled */
    uint32_t n_held;
    /* Of the full block before it, which is written when it is known whether it is the last one. */
    const PenStoredSample **waiting;
    uint32_t n_waiting;
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

int pen__shard_find(PenStore *store, const uint8_t id[PEN_ID_BYTES], PenShardEntry *ret,
                    PenPackStats *ret_stats, uint64_t *ret_plan_end, PenError *reterr)
{
    PenSource *source = NULL;
    PenShard shard;
    char name[PEN_SHARD_NAME_BYTES];
    pen__shard_name(id, name);
    int r = pen__store_source(store, name, &source, reterr);
    if (r < 0)
        return pen__error_accept(r, PEN_E_NOT_FOUND, reterr);
    r = pen__map_is(source, reterr);
    if (r == 1)
        r = pen__mapped_open(&source, id, NULL, 0, reterr);
    if (r == PEN_OK)
        r = pen__shard_open(&shard, source, id, NULL, reterr);
    if (r < 0) {
        pen__source_close(&source);
        return r;
    }
    *ret = shard.entry;
    ret->stored_bytes = pen__mapped_stored(source);
    if (ret_stats)
        pen__shard_stats(&shard, ret_stats);
    if (ret_plan_end)
        *ret_plan_end = shard.plan_end;
    pen__shard_close(&shard);
    return 1;
}

int pen__roll_open(const PenRollSettings *settings, PenRoll **ret, PenError *reterr)
{
    PenRoll *r = pen__zalloc(sizeof *r);
    uint64_t n = PEN_MIN(settings->block_samples, PEN_MAX_BLOCK_SAMPLES);
    const PenStoredSample **held = pen__alloc_array(n, sizeof *held);
    const PenStoredSample **waiting = pen__alloc_array(n, sizeof *waiting);
    char *part = pen__strdup(settings->part_path);
    if (!r || !held || !waiting || !part) {
        pen__free(r);
        pen__free(held);
        pen__free(waiting);
        pen__free(part);
        return pen__fail_memory(reterr, WHERE, pen__store_name(settings->store));
    }
    r->s = *settings;
    r->s.part_path = part;
    r->held = held;
    r->waiting = waiting;
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
    char name[PEN_SHARD_NAME_BYTES];
    pen__shard_name(r->id, name);
    return pen__store_sync(r->s.store, name, reterr);
}

/* The next shard, if it is there and may be taken over: 1 yes, 0 no. */
static int find_next(PenRoll *r, PenShardEntry *ret, PenPackStats *ret_stats, uint64_t *ret_end,
                     PenError *reterr)
{
    pen__shard_id(r->s.plan_id, r->s.task, r->s.n_tasks, r->ordinal, r->id);
    int found = r->s.resume ? r->s.resume(r->s.ctx, r->ordinal, NULL, 0, reterr) : 0;
    if (found > 0)
        found = pen__shard_find(r->s.store, r->id, ret, ret_stats, ret_end, reterr);
    found = pen__error_accept(found, PEN_E_CORRUPT, reterr); /* it is written again */
    found = pen__error_accept(found, PEN_E_FORMAT, reterr);
    if (found > 0)
        found = r->s.resume(r->s.ctx, r->ordinal, ret, *ret_end, reterr);
    /* A short last block is written again: an input left out behind it may be whole by now. */
    return found > 0 ? ret->samples_used % r->s.block_samples == 0 : found;
}

int pen__roll_resume(PenRoll *r, uint64_t *ret_position, PenError *reterr)
{
    uint64_t position = 0;
    for (;;) {
        PenShardEntry entry;
        PenPackStats stats;
        uint64_t end = 0;
        int found = find_next(r, &entry, &stats, &end, reterr);
        if (found < 0)
            return found;
        if (!found)
            break;
        if (note_shard(r, &entry, &stats) < 0)
            return pen__fail_memory(reterr, WHERE, pen__store_name(r->s.store));
        int synced = sync_name(r, reterr);
        if (synced < 0)
            return synced;
        position = end;
        r->ordinal++;
    }
    int ret = r->n_shards ? pen__store_sync(r->s.store, NULL, reterr) : PEN_OK;
    if (ret == PEN_OK)
        *ret_position = position;
    return ret;
}

static void release(const PenRoll *r, const PenStoredSample **samples, uint32_t *n)
{
    for (uint32_t i = 0; i < *n; i++)
        r->s.release(r->s.ctx, samples[i]);
    *n = 0;
}

static int start_shard(PenRoll *r, uint64_t ordinal, PenError *reterr)
{
    pen__shard_id(r->s.plan_id, r->s.task, r->s.n_tasks, ordinal, r->id);
    r->n_bad = 0;
    r->first = r->held[0]->position;
    PenShardSettings s = {.store = r->s.store,
                          .part_path = r->s.part_path,
                          .schema = r->s.schema,
                          .id = r->id,
                          .block_samples = r->s.block_samples,
                          .has_columns = r->s.has_columns};
    return pen__shard_create(&s, &r->writer, reterr);
}

/* The block waits from now on. */
static void swap_held(PenRoll *r)
{
    const PenStoredSample **samples = r->held;
    r->held = r->waiting;
    r->waiting = samples;
    r->n_waiting = r->n_held;
    r->n_held = 0;
}

/* 1: it was the last block of its shard, by the size of the shard. */
static int write_held(PenRoll *r, PenError *reterr)
{
    int ret = PEN_OK;
    if (!r->writer)
        ret = start_shard(r, r->ordinal, reterr);
    if (ret == PEN_OK)
        ret = pen__shard_add(r->writer, r->held, r->n_held, r->s.shard_bytes, reterr);
    r->end = r->held[r->n_held - 1]->position + 1;
    r->n_bad += r->bad_ahead;
    r->bad_ahead = 0;
    release(r, r->waiting, &r->n_waiting);
    if (ret == 0)
        swap_held(r);
    else
        release(r, r->held, &r->n_held);
    return ret;
}

/* Another sample has come, and it will be in the same shard: the block that waits is not the last
 * one. */
static int write_waiting(PenRoll *r, PenError *reterr)
{
    if (!r->n_waiting || r->s.keep_rest)
        return PEN_OK;
    int ret = pen__shard_flush(r->writer, reterr);
    release(r, r->waiting, &r->n_waiting);
    return ret;
}

/* Puts the open shard in its place; its entry is then read back from the file. */
static int commit(PenRoll *r, PenShardEntry *ret_entry, PenPackStats *ret_stats, PenError *reterr)
{
    PenShardPlan plan = {r->first, r->end, r->n_bad};
    char name[PEN_SHARD_NAME_BYTES];
    uint8_t digest[sizeof ret_entry->digest];
    int ret = PEN_OK;
    pen__shard_name(r->id, name);
    if (r->s.before_commit)
        ret = r->s.before_commit(r->s.ctx, reterr);
    if (ret == PEN_OK)
        ret = pen__shard_commit(&r->writer, &plan, digest, reterr);
    if (ret == PEN_OK)
        ret = pen__shard_find(r->s.store, r->id, ret_entry, ret_stats, NULL, reterr);
    if (ret == 0)
        ret = pen__fail(reterr, PEN_E_IO, WHERE, "%s/%s: disappeared right after it was written",
                        pen__store_name(r->s.store), name);
    else if (ret == 1 && memcmp(digest, ret_entry->digest, sizeof digest) != 0)
        ret = pen__fail(reterr, PEN_E_CHANGED, WHERE,
                        "%s/%s: replaced by another process right after it was written; wait until "
                        "that one has ended, and start again",
                        pen__store_name(r->s.store), name);
    pen__shard_abort(&r->writer);
    release(r, r->waiting, &r->n_waiting);
    return ret < 0 ? ret : PEN_OK;
}

static int end_shard(PenRoll *r, PenError *reterr)
{
    PenShardEntry entry;
    PenPackStats stats;
    int ret = commit(r, &entry, &stats, reterr);
    if (ret == PEN_OK && note_shard(r, &entry, &stats) < 0)
        ret = pen__fail_memory(reterr, WHERE, pen__store_name(r->s.store));
    if (ret == PEN_OK && r->s.finished)
        ret = r->s.finished(r->s.ctx, r->ordinal, &entry, r->end, reterr);
    r->ordinal++;
    return ret;
}

int pen__roll_add(PenRoll *r, const PenStoredSample *sample, PenError *reterr)
{
    int ret = write_waiting(r, reterr);
    r->held[r->n_held++] = sample;
    if (ret < 0 || r->n_held < r->s.block_samples)
        return ret;
    ret = write_held(r, reterr);
    return ret > 0 ? end_shard(r, reterr) : ret;
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
    if (ret >= 0)
        ret = commit(r, ret_rest, &stats, reterr);
    if (ret == PEN_OK)
        pen__stats_add(&r->stats, &stats);
    return ret;
}

int pen__roll_finish(PenRoll *r, PenShardEntry *ret_rest, PenError *reterr)
{
    int ret = PEN_OK;
    if (r->n_held && !r->s.keep_rest)
        ret = write_held(r, reterr);
    if (ret >= 0 && r->writer)
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
        char name[PEN_SHARD_NAME_BYTES];
        pen__shard_name(r->shards[i].id, name);
        pen__store_remove(r->s.store, name, NULL);
    }
}

void pen__roll_close(PenRoll **roll)
{
    if (!roll || !*roll)
        return;
    PenRoll *r = *roll;
    release(r, r->held, &r->n_held);
    release(r, r->waiting, &r->n_waiting);
    pen__shard_abort(&r->writer);
    pen__free(r->held);
    pen__free(r->waiting);
    pen__free(r->shards);
    pen__free((char *)r->s.part_path);
    pen__free(r);
    *roll = NULL;
}
