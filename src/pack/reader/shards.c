/* SPDX-License-Identifier: Apache-2.0 */
/* Shards that are open: one that is needed is opened, and some stay open. */
#include "pack/reader/reader_impl.h"

#define WHERE "pack/reader"

static void free_shard(PenShardRef *ref)
{
    pen__shard_close(&ref->shard);
    pen__free(ref->keys);
    pen__free(ref);
}

static int open_shard(PenPack *p, uint64_t number, PenShardRef **ret, PenError *reterr)
{
    PenShardRef *ref = pen__zalloc(sizeof *ref);
    if (!ref)
        return pen__fail_memory(reterr, WHERE, p->path);
    int r = pen__shard_get(p, number, &ref->shard, reterr);
    if (r < 0) {
        pen__free(ref);
        return r;
    }
    ref->number = number;
    ref->refs = 2; /* the slot's and the caller's */
    *ret = ref;
    return PEN_OK;
}

/* With the lock. */
static PenShardRef *find_shard(PenPack *p, uint64_t number)
{
    uint64_t look_ns = 0;
    do {
        PenShardRef *ref = p->shards[number % p->shard_slots];
        if (ref && ref->number == number) {
            ref->refs++;
            return ref;
        }
    } while (pen__loading_wait(p, number + PEN_LOADING_SHARD, &look_ns));
    return NULL;
}

void pen__pack_shard_put(PenPack *p, PenShardRef *ref)
{
    pthread_mutex_lock(&p->mutex);
    int left = --ref->refs;
    pthread_mutex_unlock(&p->mutex);
    if (!left)
        free_shard(ref);
}

int pen__pack_shard(PenPack *p, uint64_t number, PenShardRef **ret, PenError *reterr)
{
    PenShardRef **slot = &p->shards[number % p->shard_slots];
    int r = pen__pack_alive(p, reterr);
    if (r < 0)
        return r;
    pthread_mutex_lock(&p->mutex);
    PenShardRef *ref = find_shard(p, number);
    if (!ref)
        pen__loading_begin(p, number + PEN_LOADING_SHARD);
    pthread_mutex_unlock(&p->mutex);
    if (ref) {
        *ret = ref;
        return PEN_OK;
    }
    /* Of one that is neither remote nor cached: two threads may open the same at once, and the
     * later one stays. */
    r = open_shard(p, number, &ref, reterr);
    pthread_mutex_lock(&p->mutex);
    PenShardRef *old = NULL;
    if (r == PEN_OK) {
        old = *slot;
        *slot = ref;
    }
    pen__loading_end(p, number + PEN_LOADING_SHARD);
    pthread_mutex_unlock(&p->mutex);
    if (old)
        pen__pack_shard_put(p, old);
    if (r == PEN_OK)
        *ret = ref;
    return r;
}

int pen__pack_shard_keys(PenPack *p, PenShardRef *ref, const uint8_t **ret, PenError *reterr)
{
    pthread_mutex_lock(&p->mutex);
    uint8_t *keys = ref->keys;
    pthread_mutex_unlock(&p->mutex);
    if (!keys) {
        int r = pen__shard_keys(&ref->shard, &keys, reterr);
        if (r < 0)
            return r;
        pthread_mutex_lock(&p->mutex);
        uint8_t *mine = keys;
        if (ref->keys)
            keys = ref->keys; /* another thread was quicker */
        else
            ref->keys = keys;
        pthread_mutex_unlock(&p->mutex);
        if (keys != mine)
            pen__free(mine);
    }
    *ret = keys;
    return PEN_OK;
}

void pen__shards_drop(PenPack *p)
{
    for (uint64_t i = 0; p->shards && i < p->shard_slots; i++)
        if (p->shards[i]) {
            pen__pack_shard_put(p, p->shards[i]);
            p->shards[i] = NULL;
        }
}
