/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks: their indexes are read when they are first needed, and kept. Of a pack that is far away
 * or has a cache whole blocks are, each by one request, and checked before anybody sees them. */
#include <inttypes.h>
#include <string.h>

#include "base/bytes.h"
#include "base/crc32c.h"
#include "base/sys.h"
#include "base/thread.h"
#include "pack/reader/reader_impl.h"
#include "pack/reader/sections.h"

#define WHERE "pack/blocks"

/* More block indexes than this are not kept, whatever the memory. */
#define MAX_BLOCK_SLOTS (1u << 22)
#define LOOK_NS 250000000u /* between two looks whether somebody interrupts */

int pen__blocks_open(PenPack *p, PenError *reterr)
{
    p->block_slots = BLOCK_SLOTS;
    p->keep_bytes = p->is_whole ? WHOLE_KEEP_BYTES : UINT64_MAX;
    p->blocks = pen__zalloc(BLOCK_SLOTS * sizeof(PenBlock *));
    return p->blocks ? PEN_OK : pen__fail_memory(reterr, WHERE, p->path);
}

void pen__blocks_close(PenPack *p)
{
    for (uint64_t i = 0; p->blocks && i < p->block_slots; i++)
        if (p->blocks[i])
            pen__pack_block_put(p, p->blocks[i]);
    pen__free(p->blocks);
    p->blocks = NULL;
    pen__pack_trim(p);
}

int pen__blocks_renew(PenPack *p, PenError *reterr)
{
    PenBlock **fresh = pen__zalloc(BLOCK_SLOTS * sizeof(PenBlock *));
    if (!fresh)
        return pen__fail_memory(reterr, WHERE, p->path);
    pen__blocks_close(p);
    p->newest = p->oldest = NULL;
    p->kept_bytes = 0;
    p->keep_chosen = false;
    p->keep_bytes = p->is_whole ? WHOLE_KEEP_BYTES : UINT64_MAX;
    p->block_slots = BLOCK_SLOTS;
    p->blocks = fresh;
    return PEN_OK;
}

static uint64_t weight(const PenBlock *b)
{
    return (b->is_whole ? b->cap : b->view.index_bytes) + sizeof *b;
}

/* ---- by last use: whole blocks alone; with the lock ----------------------------------------- */

static void list_remove(PenPack *p, PenBlock *b)
{
    *(b->newer ? &b->newer->older : &p->newest) = b->older;
    *(b->older ? &b->older->newer : &p->oldest) = b->newer;
    b->newer = b->older = NULL;
}

static void list_add(PenPack *p, PenBlock *b)
{
    b->older = p->newest;
    *(p->newest ? &p->newest->newer : &p->oldest) = b;
    p->newest = b;
}

/* Takes a block out of its slot and puts it into the row of those to put back. */
static PenBlock *evict(PenPack *p, PenBlock *b, PenBlock *row)
{
    list_remove(p, b);
    p->blocks[b->number % p->block_slots] = NULL;
    p->kept_bytes -= weight(b);
    b->older = row;
    return b;
}

/* Makes room by giving up those that were not used for longest. Gives a row of what is to be put
 * back. */
static PenBlock *keep_whole(PenPack *p, PenBlock *b)
{
    PenBlock **slot = &p->blocks[b->number % p->block_slots], *row = NULL;
    if (weight(b) > p->keep_bytes)
        return b;
    if (*slot)
        row = evict(p, *slot, row);
    while (p->oldest && p->kept_bytes > p->keep_bytes - weight(b))
        row = evict(p, p->oldest, row);
    p->kept_bytes += weight(b);
    *slot = b;
    list_add(p, b);
    return row;
}

/* ---- which are kept ------------------------------------------------------------------------- */

/* Puts a block into its slot, when there is room; returns the one to put back. With the lock. */
static PenBlock *keep_block(PenPack *p, PenBlock *b)
{
    if (b->is_whole)
        return keep_whole(p, b);
    PenBlock **slot = &p->blocks[b->number % p->block_slots], *old = *slot;
    uint64_t left = p->kept_bytes - (old ? weight(old) : 0);
    if (weight(b) > p->keep_bytes || left > p->keep_bytes - weight(b))
        return b;
    p->kept_bytes = left + weight(b);
    *slot = b;
    return old;
}

static void put_row(PenPack *p, PenBlock *row)
{
    for (PenBlock *next; row; row = next) {
        next = row->older;
        row->older = NULL;
        pen__pack_block_put(p, row);
    }
}

/* Of whole blocks few fit; with more slots than that they seldom meet in one. */
static uint64_t slots_for(const PenPack *p, uint64_t bytes)
{
    uint64_t all = p->is_whole ? p->info.total_bytes : p->m.stats.index_bytes;
    uint64_t each = all / PEN_MAX(p->m.n_blocks, 1u) + sizeof(PenBlock);
    uint64_t n = PEN_MIN(bytes / each, (uint64_t)MAX_BLOCK_SLOTS) * (p->is_whole ? 16 : 1);
    n = PEN_MIN(PEN_MIN(n, p->m.n_blocks), (uint64_t)MAX_BLOCK_SLOTS);
    return PEN_MAX(n, (uint64_t)BLOCK_SLOTS);
}

int pen__pack_keep(PenPack *p, uint64_t bytes, PenError *reterr)
{
    uint64_t n = slots_for(p, bytes);
    PenBlock **fresh = pen__alloc_array(n, sizeof *fresh);
    if (!fresh)
        return pen__fail_memory(reterr, WHERE, p->path);
    memset(fresh, 0, n * sizeof *fresh);
    pthread_mutex_lock(&p->mutex);
    PenBlock **old = p->blocks;
    uint64_t n_old = p->block_slots;
    bool more = !p->keep_chosen || bytes > p->keep_bytes;
    if (more) {
        while (p->oldest)
            list_remove(p, p->oldest);
        p->keep_chosen = true;
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

/* ---- one block ------------------------------------------------------------------------------ */

static int check_sample(const PenBlock *b, uint32_t sample, PenError *reterr)
{
    const PenSchema *schema = b->view.schema;
    PenSpot at = {.block = b, .sample = sample};
    int r = PEN_OK;
    for (at.field = 0; at.field < schema->n_fields && r == PEN_OK; at.field++) {
        int type = schema->fields[at.field].type;
        uint32_t n = type == PEN_TYPE_CLIP ? pen__block_clip(&b->view, sample, at.field).n_frames
                                           : type == PEN_TYPE_IMAGE;
        for (at.frame = 0; at.frame < n && r == PEN_OK; at.frame++) {
            PenImageEntry e = pen__block_image(&b->view, sample, at.field, at.frame);
            r = pen__payload_check(&at, &e, b->data + e.offset, reterr);
        }
        at.frame = 0;
        if (r == PEN_OK && pen__type_is_blob(type)) {
            PenBlobEntry e = pen__block_blob(&b->view, sample, at.field);
            r = pen__blob_check(&at, &e, b->data + e.offset, reterr);
        }
    }
    return r;
}

int pen__block_check(const PenBlock *b, PenError *reterr)
{
    int r = PEN_OK;
    for (uint32_t s = 0; s < b->view.n_samples && r == PEN_OK; s++)
        r = check_sample(b, s, reterr);
    if (r == PEN_OK)
        r = pen__sections_walk(b, b->data + b->view.sections_offset, NULL, NULL, reterr);
    return r;
}

int pen__block_accept(PenPack *p, uint64_t block, PenShardRef *shard, uint8_t *data)
{
    PenBlock b;
    int r = pen__block_open_memory(p, block, shard, data, &b, NULL);
    b.data = data;
    return r == PEN_OK ? pen__block_check(&b, NULL) : r;
}

static bool fits(PenPack *p, uint64_t block, PenShardRef *shard, uint8_t *data)
{
    /* Another failure is the caller's to see. */
    return pen__block_accept(p, block, shard, data) != PEN_E_CORRUPT;
}

int pen__block_fetch(PenPack *p, uint64_t block, PenShardRef *shard, uint8_t *data,
                     PenError *reterr)
{
    PenSource *source = shard->shard.source;
    PenBlockEntry e = pen__shard_block(&shard->shard, block - p->first_blocks[shard->number]);
    uint32_t seen = 0;
    int r = pen__source_read(source, data, (size_t)e.bytes, e.offset, reterr);
    if (r < 0 || !source->is_remote)
        return r;
    /* Wrong on its way, maybe. What comes wrong in the same way over another connection lies there
     * so; what comes otherwise each time is not believed. */
    for (int i = 0; i < PEN_REMOTE_READS; i++) {
        if (i)
            r = pen__source_read_again(source, data, (size_t)e.bytes, e.offset, reterr);
        if (r < 0)
            return r;
        if (fits(p, block, shard, data))
            return PEN_OK;
        uint32_t sum = pen__crc32c(0, data, (size_t)e.bytes);
        if (i && sum == seen)
            return PEN_OK;
        seen = sum;
    }
    return pen__fail(reterr, PEN_E_CORRUPT, WHERE,
                     "%s: block %u: %d reads returned different bytes, none of which match their "
                     "checksums; check the network",
                     source->name, (unsigned)(block - p->first_blocks[shard->number]),
                     (int)PEN_REMOTE_READS);
}

int pen__block_load(PenPack *p, PenBlock *b, PenError *reterr)
{
    PenBlock whole = {0};
    int r = pen__block_get(p, b->number, b->shard, b->data, reterr);
    if (r == PEN_OK)
        r = pen__block_open_memory(p, b->number, b->shard, b->data, &whole, reterr);
    b->view = whole.view;
    return r;
}

static int load_index(PenPack *p, PenBlock *b, PenError *reterr)
{
    PenShard *shard = &b->shard->shard;
    uint64_t in_shard = b->number - p->first_blocks[b->shard->number];
    int r = pen__shard_index(shard, &p->m.schema, in_shard, &b->data, &b->view, reterr);
    return r < 0 ? r : check_count(p, b->number, &b->view, shard->source->name, reterr);
}

static void free_block(PenPack *p, PenBlock *b)
{
    if (b->is_whole)
        pen__block_room_free(p, b);
    else
        pen__free(b->data);
    pen__pack_shard_put(p, b->shard);
    pen__free(b);
}

int pen__block_new(PenPack *p, uint64_t number, PenBlock **ret, PenError *reterr)
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
    PenBlockEntry e = pen__shard_block(&b->shard->shard, number - p->first_blocks[shard_number]);
    b->number = number;
    b->first_sample = number * p->m.block_samples;
    b->offset = e.offset;
    b->whole_bytes = e.bytes;
    b->refs = 1;
    b->is_whole = p->is_whole;
    if (b->is_whole && pen__block_room(p, b, e.bytes) < 0) {
        r = pen__fail_memory(reterr, WHERE, b->shard->shard.source->name);
        free_block(p, b);
        return r;
    }
    *ret = b;
    return PEN_OK;
}

static int open_block(PenPack *p, uint64_t number, PenBlock **ret, PenError *reterr)
{
    PenBlock *b;
    int r = pen__block_new(p, number, &b, reterr);
    if (r < 0)
        return r;
    b->refs = 2;
    r = b->is_whole ? pen__block_load(p, b, reterr) : load_index(p, b, reterr);
    if (r < 0)
        free_block(p, b);
    else
        *ret = b;
    return r;
}

int pen__block_read(const PenBlock *b, uint64_t offset, uint64_t bytes, void *buf, PenError *reterr)
{
    if (!b->is_whole)
        return pen__source_read(b->shard->shard.source, buf, (size_t)bytes, b->offset + offset,
                                reterr);
    if (bytes)
        memcpy(buf, b->data + offset, (size_t)bytes);
    return PEN_OK;
}

/* ---- all of them; with the lock ------------------------------------------------------------- */

static bool is_loading(const PenPack *p, uint64_t what)
{
    for (uint32_t i = 0; i < p->n_loading; i++)
        if (p->loading[i] == what)
            return true;
    return false;
}

/* Whoever interrupts may need other locks. */
static bool is_interrupted(PenPack *p)
{
    PenRemote *remote = p->store ? pen__store_remote(p->store) : NULL;
    if (!remote)
        return false;
    pthread_mutex_unlock(&p->mutex);
    bool yes = pen__remote_interrupted(remote) != 0;
    pthread_mutex_lock(&p->mutex);
    return yes;
}

int pen__loading_wait(PenPack *p, uint64_t what, uint64_t *look_ns)
{
    if (!p->is_whole || !is_loading(p, what))
        return 0;
    if (!*look_ns)
        *look_ns = pen__deadline_after(LOOK_NS);
    (void)pen__cond_wait(&p->loaded, &p->mutex, *look_ns);
    if (pen__sys->now_ns() < *look_ns)
        return 1;
    *look_ns = 0;
    return !is_interrupted(p);
}

void pen__loading_begin(PenPack *p, uint64_t what)
{
    if (p->is_whole && p->n_loading < LOADING)
        p->loading[p->n_loading++] = what;
}

void pen__loading_end(PenPack *p, uint64_t what)
{
    for (uint32_t i = 0; i < p->n_loading; i++)
        if (p->loading[i] == what) {
            p->loading[i] = p->loading[--p->n_loading];
            pthread_cond_broadcast(&p->loaded);
            return;
        }
}

static PenBlock *find_block(PenPack *p, uint64_t number)
{
    uint64_t look_ns = 0;
    do {
        PenBlock *b = p->blocks[number % p->block_slots];
        if (b && b->number == number) {
            b->refs++;
            if (b->is_whole && b != p->newest) {
                list_remove(p, b);
                list_add(p, b);
            }
            return b;
        }
    } while (pen__loading_wait(p, number, &look_ns));
    return NULL;
}

static int get_block(PenPack *p, uint64_t number, bool keep, PenBlock **ret, PenError *reterr)
{
    pthread_mutex_lock(&p->mutex);
    PenBlock *b = find_block(p, number);
    if (!b)
        pen__loading_begin(p, number);
    pthread_mutex_unlock(&p->mutex);
    if (b) {
        *ret = b;
        return PEN_OK;
    }
    int r = open_block(p, number, &b, reterr);
    pthread_mutex_lock(&p->mutex);
    PenBlock *old = NULL;
    if (r == PEN_OK)
        old = keep ? keep_block(p, b) : b;
    pen__loading_end(p, number);
    pthread_mutex_unlock(&p->mutex);
    put_row(p, old);
    if (r == PEN_OK)
        *ret = b;
    return r;
}

int pen__pack_block(PenPack *p, uint64_t number, PenBlock **ret, PenError *reterr)
{
    return get_block(p, number, true, ret, reterr);
}

int pen__pack_block_take(PenPack *p, uint64_t number, PenBlock **ret, PenError *reterr)
{
    return get_block(p, number, false, ret, reterr);
}

void pen__pack_block_put(PenPack *p, PenBlock *b)
{
    pthread_mutex_lock(&p->mutex);
    int left = --b->refs;
    pthread_mutex_unlock(&p->mutex);
    if (!left)
        free_block(p, b);
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
