/* SPDX-License-Identifier: Apache-2.0 */
/* Opening a pack; finding shards and blocks and keeping some of them. */
#include "pack/reader.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "base/bytes.h"
#include "io/dir.h"

#define WHERE "pack/reader"

/* Slots are chosen by number, so neighbours never push each other out. */
enum { SHARD_SLOTS = 128, BLOCK_SLOTS = 64 };

/* More block indexes than this are not kept, whatever the memory. */
#define MAX_BLOCK_SLOTS (1u << 22)

struct PenPack {
    char *path;
    PenManifest m;
    PenPackInfo info;
    uint64_t *first_blocks; /* of the shards, side by side for the search */
    PenOpenFn open;
    void *open_ctx;
    pthread_mutex_t mutex; /* of the slots and all counts of references */
    PenShardRef *shards[SHARD_SLOTS];
    PenBlock **blocks;
    uint64_t block_slots;
    uint64_t kept_bytes, keep_bytes; /* of the indexes in them, and the most there may be */
    int refs;                        /* of the pack itself: the caller's and those of loaders */
    pid_t pid;                       /* that opened it */
};

const PenManifest *pen__pack_manifest(const PenPack *p)
{
    return &p->m;
}

const char *pen__pack_path(const PenPack *p)
{
    return p->path;
}

const PenPackInfo *pen_pack_info(const PenPack *pack)
{
    return &pack->info;
}

static void fill_info(PenPack *p)
{
    const PenManifest *m = &p->m;
    p->info = (PenPackInfo){.struct_size = sizeof p->info,
                            .format_version = PEN_FORMAT_VERSION,
                            .n_samples = m->n_samples,
                            .n_blocks = m->n_blocks,
                            .n_shards = m->n_shards,
                            .block_samples = m->block_samples,
                            .total_bytes = m->bytes,
                            .n_fields = m->schema.n_fields,
                            .fields = m->schema.fields,
                            .class_field = m->schema.class_field,
                            .n_classes = m->schema.n_classes,
                            .classes = (const char *const *)m->schema.classes,
                            .settings = m->settings ? m->settings : "{}",
                            .stats = m->stats};
    memcpy(p->info.id, m->id, sizeof p->info.id);
    for (uint64_t i = 0; i < m->n_shards; i++) {
        p->first_blocks[i] = m->shards[i].first_block;
        p->info.total_bytes += m->shards[i].file_bytes;
        p->info.largest_block_bytes =
            PEN_MAX(p->info.largest_block_bytes, m->shards[i].largest_block);
    }
}

static int open_in_dir(void *ctx, const char *name, PenSource **ret, PenError *reterr)
{
    char *path = pen__path_join(ctx, name);
    if (!path)
        return pen__fail_memory(reterr, WHERE, name);
    int r = pen__source_open_file(path, ret, reterr);
    pen__free(path);
    return r;
}

int pen__pack_open_with(const char *name, PenOpenFn open, void *ctx, PenPack **ret,
                        PenError *reterr)
{
    PenSource *source = NULL;
    PenPack *p = pen__zalloc(sizeof *p);
    if (!p)
        return pen__fail_memory(reterr, WHERE, name);
    pthread_mutex_init(&p->mutex, NULL);
    p->path = pen__strdup(name);
    p->open = open;
    p->open_ctx = ctx ? ctx : p->path;
    p->refs = 1;
    p->pid = getpid();
    p->block_slots = BLOCK_SLOTS;
    p->keep_bytes = UINT64_MAX;
    p->blocks = pen__zalloc(BLOCK_SLOTS * sizeof(PenBlock *));
    int r = p->path && p->blocks ? PEN_OK : pen__fail_memory(reterr, WHERE, name);
    if (r == PEN_OK)
        r = p->open(p->open_ctx, PEN_MANIFEST_NAME, &source, reterr);
    if (r == PEN_OK)
        r = pen__manifest_read(&p->m, source, reterr);
    if (r == PEN_OK) {
        p->first_blocks = pen__alloc_array(p->m.n_shards, sizeof *p->first_blocks);
        if (!p->first_blocks)
            r = pen__fail_memory(reterr, WHERE, name);
    }
    pen__source_close(&source);
    if (r < 0) {
        pen_pack_close(&p);
        return r;
    }
    fill_info(p);
    *ret = p;
    return PEN_OK;
}

/* There is no manifest: is there anything at all, or a pack that is not finished? */
static int no_pack(const char *path, PenError *reterr)
{
    char *work = pen__path_join(path, PEN_WORK_NAME);
    int under_way = work ? pen__file_exists(work, NULL) : 0;
    int there = pen__file_exists(path, NULL);
    pen__free(work);
    if (there == 0)
        return pen__fail(reterr, PEN_E_NOT_FOUND, WHERE, "%s: no such file or directory", path);
    if (under_way == 1)
        return pen__fail(reterr, PEN_E_NOT_FOUND, WHERE,
                         "%s: the pack is not finished; run the same 'penstock pack' again, or "
                         "'penstock finalise' after the last task",
                         path);
    return pen__fail(reterr, PEN_E_NOT_FOUND, WHERE, "%s: not a pack: there is no file %s in it",
                     path, PEN_MANIFEST_NAME);
}

int pen_pack_open(const char *path, PenPack **ret_pack, PenError *reterr)
{
    int r = pen__pack_open_with(path, open_in_dir, NULL, ret_pack, reterr);
    return r == PEN_E_NOT_FOUND ? no_pack(path, reterr) : r;
}

static void free_shard(PenShardRef *ref)
{
    pen__shard_close(&ref->shard);
    pen__free(ref->keys);
    pen__free(ref);
}

void pen_pack_close(PenPack **pack)
{
    if (!pack || !*pack)
        return;
    PenPack *p = *pack;
    *pack = NULL;
    if (p->pid != getpid())
        return; /* the child's copy stays as it is */
    pthread_mutex_lock(&p->mutex);
    int left = --p->refs;
    pthread_mutex_unlock(&p->mutex);
    if (left)
        return;
    for (uint64_t i = 0; p->blocks && i < p->block_slots; i++)
        if (p->blocks[i])
            pen__pack_block_put(p, p->blocks[i]);
    pen__free(p->blocks);
    for (int i = 0; i < SHARD_SLOTS; i++)
        if (p->shards[i])
            pen__pack_shard_put(p, p->shards[i]);
    pthread_mutex_destroy(&p->mutex);
    pen__manifest_fini(&p->m);
    pen__free(p->first_blocks);
    pen__free(p->path);
    pen__free(p);
}

int pen__pack_alive(const PenPack *p, PenError *reterr)
{
    if (PEN_LIKELY(p->pid == getpid()))
        return PEN_OK;
    return pen__fail(reterr, PEN_E_CLOSED, WHERE,
                     "%s: opened by process %d; open it again in process %d", p->path, (int)p->pid,
                     (int)getpid());
}

PenPack *pen__pack_ref(PenPack *p)
{
    pthread_mutex_lock(&p->mutex);
    p->refs++;
    pthread_mutex_unlock(&p->mutex);
    return p;
}

static uint64_t weight(const PenBlock *b)
{
    return b->view.index_bytes + sizeof *b;
}

/* Puts a block into its slot, when there is room; returns the one to put back. With the lock. */
static PenBlock *keep_block(PenPack *p, PenBlock *b)
{
    PenBlock **slot = &p->blocks[b->number % p->block_slots], *old = *slot;
    uint64_t left = p->kept_bytes - (old ? weight(old) : 0);
    if (weight(b) > p->keep_bytes || left > p->keep_bytes - weight(b))
        return b;
    p->kept_bytes = left + weight(b);
    *slot = b;
    return old;
}

int pen__pack_keep(PenPack *p, uint64_t bytes, PenError *reterr)
{
    uint64_t each = p->m.stats.index_bytes / PEN_MAX(p->m.n_blocks, 1u) + sizeof(PenBlock);
    uint64_t n = PEN_MIN(PEN_MIN(bytes / each, p->m.n_blocks), (uint64_t)MAX_BLOCK_SLOTS);
    n = PEN_MAX(n, (uint64_t)BLOCK_SLOTS);
    PenBlock **fresh = pen__alloc_array(n, sizeof *fresh);
    if (!fresh)
        return pen__fail_memory(reterr, WHERE, p->path);
    memset(fresh, 0, n * sizeof *fresh);
    pthread_mutex_lock(&p->mutex);
    PenBlock **old = p->blocks;
    uint64_t n_old = p->block_slots;
    bool more = p->keep_bytes == UINT64_MAX || bytes > p->keep_bytes;
    if (more) {
        p->blocks = fresh;
        p->block_slots = n;
        p->keep_bytes = bytes;
        p->kept_bytes = 0;
    }
    pthread_mutex_unlock(&p->mutex);
    for (uint64_t i = 0; more && i < n_old; i++)
        if (old[i])
            pen__pack_block_put(p, old[i]);
    pen__free(more ? old : fresh);
    return PEN_OK;
}

uint64_t pen__pack_shard_of(const PenPack *p, uint64_t block)
{
    uint64_t low = 0;
    uint64_t n = p->m.n_shards;
    while (n > 1) {
        uint64_t half = n / 2;
        low = p->first_blocks[low + half] <= block ? low + half : low;
        n -= half;
    }
    return low;
}

static int open_shard(PenPack *p, uint64_t number, PenShardRef **ret, PenError *reterr)
{
    const PenShardEntry *e = &p->m.shards[number];
    char name[PEN_SHARD_NAME_BYTES];
    PenSource *source = NULL;
    PenShardRef *ref = pen__zalloc(sizeof *ref);
    if (!ref)
        return pen__fail_memory(reterr, WHERE, p->path);
    pen__shard_name(e->id, name);
    int r = p->open(p->open_ctx, name, &source, reterr);
    if (r == PEN_E_NOT_FOUND) /* which would mean: no such sample */
        r = pen__fail(reterr, PEN_E_CORRUPT, WHERE,
                      "%s: shard %s is missing; its samples cannot be read", p->path, name);
    if (r == PEN_OK)
        r = pen__shard_open(&ref->shard, source, e->id, e, reterr);
    if (r == PEN_OK && ref->shard.block_samples != p->m.block_samples)
        r = pen__fail(reterr, PEN_E_CORRUPT, WHERE,
                      "%s: blocks of %" PRIu64 " samples, expected %" PRIu64
                      " as the manifest says",
                      source->name, ref->shard.block_samples, p->m.block_samples);
    if (r < 0) {
        pen__free(ref->shard.tail);
        pen__source_close(&source);
        pen__free(ref);
        return r;
    }
    ref->number = number;
    ref->refs = 2; /* the slot's and the caller's */
    *ret = ref;
    return PEN_OK;
}

int pen__pack_shard(PenPack *p, uint64_t number, PenShardRef **ret, PenError *reterr)
{
    PenShardRef **slot = &p->shards[number % SHARD_SLOTS];
    int r = pen__pack_alive(p, reterr);
    if (r < 0)
        return r;
    pthread_mutex_lock(&p->mutex);
    PenShardRef *ref = *slot;
    if (ref && ref->number == number) {
        ref->refs++;
        pthread_mutex_unlock(&p->mutex);
        *ret = ref;
        return PEN_OK;
    }
    pthread_mutex_unlock(&p->mutex);
    /* Two threads may open the same one at once: the later one stays. */
    r = open_shard(p, number, &ref, reterr);
    if (r < 0)
        return r;
    pthread_mutex_lock(&p->mutex);
    PenShardRef *old = *slot;
    *slot = ref;
    pthread_mutex_unlock(&p->mutex);
    if (old)
        pen__pack_shard_put(p, old);
    *ret = ref;
    return PEN_OK;
}

void pen__pack_shard_put(PenPack *p, PenShardRef *ref)
{
    pthread_mutex_lock(&p->mutex);
    int left = --ref->refs;
    pthread_mutex_unlock(&p->mutex);
    if (!left)
        free_shard(ref);
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

static int check_count(const PenPack *p, uint64_t number, const PenBlockView *v, const char *name,
                       PenError *reterr)
{
    uint64_t left = p->m.n_samples - number * p->m.block_samples;
    if (v->n_samples == PEN_MIN(left, p->m.block_samples))
        return PEN_OK;
    return pen__fail(reterr, PEN_E_CORRUPT, WHERE, "%s: block %u: %u samples, expected %" PRIu64,
                     name, v->block, v->n_samples, PEN_MIN(left, p->m.block_samples));
}

int pen__block_open_memory(PenPack *p, uint64_t block, PenShardRef *shard, const uint8_t *data,
                           PenBlock *ret, PenError *reterr)
{
    const PenShard *s = &shard->shard;
    uint64_t in_shard = block - p->first_blocks[shard->number];
    PenBlockEntry e = pen__shard_block(s, in_shard);
    *ret = (PenBlock){.number = block,
                      .first_sample = block * p->m.block_samples,
                      .offset = e.offset,
                      .shard = shard};
    int r = pen__block_view(&ret->view, &p->m.schema, s->entry.id, (uint32_t)in_shard, &e, data,
                            s->source->name, reterr);
    return r < 0 ? r : check_count(p, block, &ret->view, s->source->name, reterr);
}

static int open_block(PenPack *p, uint64_t number, PenBlock **ret, PenError *reterr)
{
    uint64_t shard_number = pen__pack_shard_of(p, number);
    PenBlock *b = pen__zalloc(sizeof *b);
    if (!b)
        return pen__fail_memory(reterr, WHERE, p->path);
    int r = pen__pack_shard(p, shard_number, &b->shard, reterr);
    if (r < 0) {
        pen__free(b);
        return r;
    }
    PenShard *shard = &b->shard->shard;
    uint64_t in_shard = number - p->first_blocks[shard_number];
    r = pen__shard_index(shard, &p->m.schema, in_shard, &b->data, &b->view, reterr);
    if (r == PEN_OK)
        r = check_count(p, number, &b->view, shard->source->name, reterr);
    if (r < 0) {
        pen__free(b->data);
        pen__pack_shard_put(p, b->shard);
        pen__free(b);
        return r;
    }
    b->number = number;
    b->first_sample = number * p->m.block_samples;
    b->offset = pen__shard_block(shard, in_shard).offset;
    b->refs = 2;
    *ret = b;
    return PEN_OK;
}

int pen__pack_block(PenPack *p, uint64_t number, PenBlock **ret, PenError *reterr)
{
    pthread_mutex_lock(&p->mutex);
    PenBlock *b = p->blocks[number % p->block_slots];
    if (b && b->number == number) {
        b->refs++;
        pthread_mutex_unlock(&p->mutex);
        *ret = b;
        return PEN_OK;
    }
    pthread_mutex_unlock(&p->mutex);
    int r = open_block(p, number, &b, reterr);
    if (r < 0)
        return r;
    pthread_mutex_lock(&p->mutex);
    PenBlock *old = keep_block(p, b);
    pthread_mutex_unlock(&p->mutex);
    if (old)
        pen__pack_block_put(p, old);
    *ret = b;
    return PEN_OK;
}

void pen__pack_block_put(PenPack *p, PenBlock *b)
{
    pthread_mutex_lock(&p->mutex);
    int left = --b->refs;
    pthread_mutex_unlock(&p->mutex);
    if (left)
        return;
    pen__pack_shard_put(p, b->shard);
    pen__free(b->data);
    pen__free(b);
}

int pen__pack_locate(PenPack *p, uint64_t sample, PenBlock **ret, uint32_t *ret_sample,
                     PenError *reterr)
{
    if (sample >= p->m.n_samples)
        return pen__fail(reterr, PEN_E_NOT_FOUND, WHERE,
                         "%s: sample %" PRIu64 ": expected a number below %" PRIu64, p->path,
                         sample, p->m.n_samples);
    int r = pen__pack_block(p, sample / p->m.block_samples, ret, reterr);
    if (r == PEN_OK)
        *ret_sample = (uint32_t)(sample % p->m.block_samples);
    else if (reterr)
        reterr->sample = (int64_t)sample;
    return r;
}
