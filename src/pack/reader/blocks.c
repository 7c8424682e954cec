/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks: their indexes are read when they are first needed, and kept. Of a pack that is far away
 * or has a cache whole blocks are, each by one request, and checked before anybody sees them. */
#include <inttypes.h>
#include <string.h>

#include "base/bytes.h"
#include "pack/reader/arriving.h"

#define WHERE "pack/blocks"

/* More block indexes than this are not kept, whatever the memory. */
#define MAX_BLOCK_SLOTS (1u << 22)

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

/* Makes space by giving up those that were not used for longest. Gives a row of what is to be put
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

/* Puts a block into its slot, when it fits; returns the one to put back. With the lock. */
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

/* ---- one block ------------------------------------------------------------------------------ */

static int load_block(PenPack *p, PenBlock *b, PenError *reterr)
{
    PenBlock whole = {0};
    PenArriving a = {0};
    int r = p->cache ? pen__block_get(p, b->number, b->shard, b->data, reterr)
                     : pen__block_fetch_checked(p, b->number, b->shard, b->data, &a, reterr);
    if (r == PEN_OK && a.is_checked)
        whole = a.block;
    else if (r == PEN_OK)
        r = pen__block_open_memory(p, b->number, b->shard, b->data, &whole, reterr);
    b->view = whole.view;
    return r;
}

static int load_index(PenPack *p, PenBlock *b, PenError *reterr)
{
    PenShard *shard = &b->shard->shard;
    uint64_t in_shard = b->number - p->first_blocks[b->shard->number];
    int r = pen__shard_index(shard, &p->m.schema, in_shard, &b->data, &b->view, reterr);
    return r < 0 ? r : pen__block_check_count(p, b->number, &b->view, shard->source->name, reterr);
}

static void free_block(PenPack *p, PenBlock *b)
{
    if (b->is_whole)
        pen__block_memory_free(p, b);
    else
        pen__free(b->data);
    pen__pack_shard_put(p, b->shard);
    pen__free(b);
}

static int new_block(PenPack *p, uint64_t number, PenBlock **ret, PenError *reterr)
{
    uint64_t shard_number = pen__pack_shard_of(p, number);
    PenBlock *b = pen__zalloc(sizeof *b);
    if (!b) {
        pen__fail_memory(reterr, WHERE, p->path);
        return PEN_E_NO_MEMORY;
    }
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
    if (b->is_whole && pen__block_memory_take(p, b, e.bytes) < 0) {
        pen__fail_memory(reterr, WHERE, b->shard->shard.source->name);
        free_block(p, b);
        return PEN_E_NO_MEMORY;
    }
    *ret = b;
    return PEN_OK;
}

static int open_block(PenPack *p, uint64_t number, PenBlock **ret, PenError *reterr)
{
    PenBlock *b;
    int r = new_block(p, number, &b, reterr);
    if (r < 0)
        return r;
    b->refs = 2;
    r = b->is_whole ? load_block(p, b, reterr) : load_index(p, b, reterr);
    if (r < 0)
        free_block(p, b);
    else
        *ret = b;
    return r;
}

/* ---- all of them; with the lock ------------------------------------------------------------- */

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

/* ---- blocks that lie side by side in a shard, by one request ---- */

enum { GAP = 256 }; /* bytes between two blocks, at most: they are aligned */

/* Where the bytes go: every block has memory of its own; what lies between is thrown away. */
typedef struct Places {
    struct iovec v[2 * PEN_JOIN_MOST];
    int n;
    PenArriving arriving[PEN_JOIN_MOST];
    int n_arriving;
    uint8_t gap[GAP];
} Places;

/* False: they do not lie side by side. */
static bool place_all(PenPack *p, PenBlock *const *blocks, int n, Places *ret)
{
    ret->n = 0;
    ret->n_arriving = n;
    for (int i = 0; i < n; i++) {
        const PenBlock *b = blocks[i], *before = i ? blocks[i - 1] : b;
        uint64_t at = i ? before->offset + before->whole_bytes : b->offset;
        if (b->shard != before->shard || b->offset < at || b->offset - at > GAP)
            return false;
        if (b->offset > at)
            ret->v[ret->n++] = (struct iovec){ret->gap, (size_t)(b->offset - at)};
        ret->v[ret->n++] = (struct iovec){b->data, (size_t)b->whole_bytes};
        pen__arriving_begin(&ret->arriving[i], p, b->number, b->shard, b->data);
    }
    return true;
}

static void on_arrival(void *ctx, uint64_t bytes)
{
    Places *places = ctx;
    const uint64_t first = places->arriving[0].entry.offset;
    for (int i = 0; i < places->n_arriving; i++) {
        PenArriving *a = &places->arriving[i];
        uint64_t at = a->entry.offset - first;
        if (!bytes || bytes > at)
            pen__arriving_more(a, PEN_MIN(bytes - PEN_MIN(at, bytes), a->entry.bytes));
    }
}

/* Checked here, if not before; what does not fit is asked for by itself, as often as any other. */
static int land(PenPack *p, PenBlock *b, PenArriving *a, PenError *reterr)
{
    if (pen__arriving_end(a) < 0)
        return load_block(p, b, reterr);
    b->view = a->block.view;
    return PEN_OK;
}

static int read_all(PenPack *p, PenBlock *const *blocks, int n, PenError *reterr)
{
    Places places;
    int r = PEN_OK;
    if (!place_all(p, blocks, n, &places)) {
        for (int i = 0; i < n && r == PEN_OK; i++)
            r = load_block(p, blocks[i], reterr);
        return r;
    }
    const PenArrival arrival = {.call = on_arrival, .ctx = &places};
    r = pen__source_read_v(blocks[0]->shard->shard.source, places.v, places.n, blocks[0]->offset,
                           &arrival, reterr);
    for (int i = 0; i < n && r == PEN_OK; i++)
        r = land(p, blocks[i], &places.arriving[i], reterr);
    return r;
}

int pen__pack_joins(const PenPack *p)
{
    return p->is_remote && p->is_whole && !p->cache;
}

int pen__pack_blocks_take(PenPack *p, uint64_t first, int n, PenBlock **ret, PenError *reterr)
{
    int r = PEN_OK, made = 0;
    while (made < n && r == PEN_OK) {
        r = new_block(p, first + (uint64_t)made, &ret[made], reterr);
        if (r == PEN_OK)
            made++;
    }
    if (r == PEN_OK)
        r = read_all(p, ret, n, reterr);
    for (int i = 0; i < made && r < 0; i++)
        pen__pack_block_put(p, ret[i]);
    return r;
}
