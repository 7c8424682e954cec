/* SPDX-License-Identifier: Apache-2.0 */
/* Keys over the whole pack: which sample has this one, and is any there twice? */
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/team.h"
#include "pack/format/keys.h"
#include "pack/reader/reader.h"

#define WHERE "pack/keys"

enum { REMOTE_THREADS = 16 };

static int same_key(PenPack *p, uint64_t sample, const void *key, size_t bytes, PenError *reterr)
{
    uint8_t found[PEN_MAX_KEY_BYTES];
    size_t n = 0;
    int r = pen_pack_key(p, sample, found, sizeof found, &n, reterr);
    return r < 0 ? r : n == bytes && memcmp(found, key, n) == 0;
}

/* 1 found, 0 not in this shard. */
static int find_in_shard(PenPack *p, PenShardRef *ref, uint64_t hash, const void *key, size_t bytes,
                         uint64_t *ret, PenError *reterr)
{
    const PenManifest *m = pen__pack_manifest(p);
    const PenShardEntry *e = &m->shards[ref->number];
    const uint8_t *keys;
    int r = pen__pack_shard_keys(p, ref, &keys, reterr);
    if (r < 0)
        return r;
    uint64_t n = ref->shard.n_samples;
    for (uint64_t i = pen__keys_lower(keys, n, hash); i < n; i++) {
        PenKeyHash k = pen__keys_load(keys, i);
        if (k.hash != hash)
            break;
        if (k.sample >= e->samples_used)
            continue;
        uint64_t sample = e->first_block * m->block_samples + k.sample;
        r = same_key(p, sample, key, bytes, reterr);
        if (r == 1)
            *ret = sample;
        if (r != PEN_OK)
            return r;
    }
    return 0;
}

int pen_pack_find(PenPack *pack, const void *key, size_t key_bytes, uint64_t *ret_sample,
                  PenError *reterr)
{
    uint64_t hash = pen__key_hash(key, key_bytes);
    for (uint64_t s = 0; s < pen__pack_manifest(pack)->n_shards; s++) {
        PenShardRef *ref = NULL;
        int r = pen__pack_shard(pack, s, &ref, reterr);
        if (r < 0)
            return r;
        r = find_in_shard(pack, ref, hash, key, key_bytes, ret_sample, reterr);
        pen__pack_shard_put(pack, ref);
        if (r != PEN_OK)
            return r < 0 ? r : PEN_OK;
    }
    char text[PEN_KEY_TEXT_BYTES];
    return pen__fail(reterr, PEN_E_NOT_FOUND, WHERE, "%s: no sample has the key '%s'",
                     pen__pack_path(pack), pen__key_text(key, key_bytes, text));
}

/* ---- all keys at once ----------------------------------------------------------------------- */

static int by_hash(const void *a, const void *b)
{
    const PenKeySeen *x = a;
    const PenKeySeen *y = b;
    if (x->hash != y->hash)
        return x->hash < y->hash ? -1 : 1;
    return x->sample < y->sample ? -1 : x->sample > y->sample;
}

/* Appends the hashes in [low, high] of one shard. */
static int gather(PenPack *p, uint64_t shard, uint64_t low, uint64_t high, PenBuf *out,
                  PenError *reterr)
{
    const PenManifest *m = pen__pack_manifest(p);
    const PenShardEntry *e = &m->shards[shard];
    PenShardRef *ref = NULL;
    const uint8_t *keys = NULL;
    int r = pen__pack_shard(p, shard, &ref, reterr);
    if (r < 0)
        return r;
    r = pen__pack_shard_keys(p, ref, &keys, reterr);
    uint64_t n = ref->shard.n_samples;
    for (uint64_t i = r < 0 ? n : pen__keys_lower(keys, n, low); i < n; i++) {
        PenKeyHash k = pen__keys_load(keys, i);
        if (k.hash > high)
            break;
        PenKeySeen seen = {k.hash, e->first_block * m->block_samples + k.sample};
        if (k.sample < e->samples_used && pen__buf_add(out, &seen, sizeof seen) < 0) {
            r = pen__fail_memory(reterr, WHERE, pen__pack_path(p));
            break;
        }
    }
    pen__pack_shard_put(p, ref);
    return r;
}

/* Of all shards, in any order. */
typedef struct Gathering {
    PenPack *pack;
    uint64_t low, high;
    pthread_mutex_t mutex;
    PenBuf all;
} Gathering;

static int gather_step(void *ctx, uint64_t shard, PenError *reterr)
{
    Gathering *g = ctx;
    PenBuf own = {0};
    int r = gather(g->pack, shard, g->low, g->high, &own, reterr);
    if (r == PEN_OK) {
        pthread_mutex_lock(&g->mutex);
        r = pen__buf_add(&g->all, own.data, own.bytes);
        pthread_mutex_unlock(&g->mutex);
        if (r < 0)
            r = pen__fail_memory(reterr, WHERE, pen__pack_path(g->pack));
    }
    pen__buf_free(&own);
    return r;
}

/* A draft has its manifest in memory: where its shards are, they say themselves. */
static unsigned count_threads(PenPack *p)
{
    PenShardRef *ref = NULL;
    if (!pen__pack_manifest(p)->n_shards || pen__pack_shard(p, 0, &ref, NULL) < 0)
        return 1;
    bool is_remote = ref->shard.source->is_remote;
    pen__pack_shard_put(p, ref);
    return is_remote ? REMOTE_THREADS : 1;
}

static int load_range(PenKeySet *set, uint64_t low, uint64_t high, PenError *reterr)
{
    Gathering g = {.pack = set->pack, .low = low, .high = high};
    PenEach each = {.name = "pen-keys",
                    .n = pen__pack_manifest(set->pack)->n_shards,
                    .threads = count_threads(set->pack),
                    .step = gather_step,
                    .ctx = &g};
    pthread_mutex_init(&g.mutex, NULL);
    int r = pen__each(&each, reterr);
    pthread_mutex_destroy(&g.mutex);
    if (r < 0) {
        pen__buf_free(&g.all);
        return r;
    }
    set->seen = (PenKeySeen *)(void *)g.all.data;
    set->n = g.all.bytes / sizeof *set->seen;
    if (set->n)
        qsort(set->seen, set->n, sizeof *set->seen, by_hash);
    return PEN_OK;
}

int pen__keyset_load(PenKeySet *set, PenPack *pack, PenError *reterr)
{
    *set = (PenKeySet){.pack = pack};
    return load_range(set, 0, UINT64_MAX, reterr);
}

void pen__keyset_free(PenKeySet *set)
{
    pen__free(set->seen);
    *set = (PenKeySet){.pack = NULL};
}

int pen__keyset_has(const PenKeySet *set, const void *key, size_t key_bytes, PenError *reterr)
{
    uint64_t hash = pen__key_hash(key, key_bytes);
    size_t low = 0;
    size_t n = set->n;
    while (n) {
        size_t half = n / 2;
        if (set->seen[low + half].hash < hash) {
            low += half + 1;
            n -= half + 1;
        } else {
            n = half;
        }
    }
    int r = 0;
    for (; low < set->n && set->seen[low].hash == hash && r == PEN_OK; low++)
        r = same_key(set->pack, set->seen[low].sample, key, key_bytes, reterr);
    return r;
}

/* ---- duplicates ----------------------------------------------------------------------------- */

/* How many hashes are looked at together; more are done in several rounds, each over a range of
 * hashes. */
enum { ROUND_KEYS = 64 * 1024 * 1024 };

static int compare(PenPack *p, const PenKeySeen *a, const PenKeySeen *b, PenError *reterr)
{
    uint8_t key[PEN_MAX_KEY_BYTES];
    char text[PEN_KEY_TEXT_BYTES];
    size_t bytes = 0;
    int r = pen_pack_key(p, a->sample, key, sizeof key, &bytes, reterr);
    if (r == PEN_OK)
        r = same_key(p, b->sample, key, bytes, reterr);
    if (r != 1)
        return r;
    return pen__fail(reterr, PEN_E_EXISTS, WHERE,
                     "%s: key '%s' occurs twice: samples %" PRIu64 " and %" PRIu64
                     "; keys must be unique",
                     pen__pack_path(p), pen__key_text(key, bytes, text), a->sample, b->sample);
}

static int check_round(PenPack *p, uint64_t low, uint64_t high, PenError *reterr)
{
    PenKeySet set = {.pack = p};
    int r = load_range(&set, low, high, reterr);
    for (size_t i = 1; i < set.n && r == PEN_OK; i++)
        for (size_t k = i; k > 0 && set.seen[k - 1].hash == set.seen[i].hash && r == PEN_OK; k--)
            r = compare(p, &set.seen[k - 1], &set.seen[i], reterr);
    pen__keyset_free(&set);
    return r;
}

int pen__pack_check_duplicates(PenPack *p, PenError *reterr)
{
    uint64_t rounds = pen__pack_manifest(p)->n_samples / ROUND_KEYS + 1;
    uint64_t width = UINT64_MAX / rounds;
    int r = PEN_OK;
    for (uint64_t i = 0; i < rounds && r == PEN_OK; i++)
        r = check_round(p, i * width, i + 1 == rounds ? UINT64_MAX : (i + 1) * width - 1, reterr);
    return r;
}
