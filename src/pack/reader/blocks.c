/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks: their indexes are read when they are first needed, and kept. Of a pack that is remote or
 * has a cache whole blocks are, each by one request, and checked before anybody sees them; or parts
 * of them, whose samples are checked when they are read. */
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

/* ---- by last use: of a remote pack alone; with the lock -----------------------------------------
 */

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
static PenBlock *keep_by_use(PenPack *p, PenBlock *b)
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
    if (p->is_whole)
        return keep_by_use(p, b);
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

static uint64_t slots_for(const PenPack *p, uint64_t bytes)
{
    uint64_t each = p->m.stats.index_bytes / PEN_MAX(p->m.n_blocks, 1u) + sizeof(PenBlock);
    uint64_t n = PEN_MIN(PEN_MIN(bytes / each, p->m.n_blocks), (uint64_t)MAX_BLOCK_SLOTS);
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

/* 1: from the cache, and right. */
static int cached_index(PenPack *p, PenBlock *b, uint64_t in_shard)
{
    const PenShard *s = &b->shard->shard;
    PenBlockEntry e = pen__shard_block(s, in_shard);
    b->data = pen__alloc_array(e.index_bytes, 1);
    if (b->data && pen__block_get_part(p, b, 0, e.index_bytes, b->data, NULL) == PEN_OK) {
        if (pen__block_view(&b->view, &p->m.schema, s->entry.id, (uint32_t)in_shard, &e, b->data,
                            s->source->name, NULL) == PEN_OK)
            return 1;
        pen__block_forget(p, b->number);
    }
    pen__free(b->data);
    b->data = NULL;
    return 0;
}

static int load_index(PenPack *p, PenBlock *b, PenError *reterr)
{
    PenShard *shard = &b->shard->shard;
    uint64_t in_shard = b->number - p->first_blocks[b->shard->number];
    int r = PEN_OK;
    if (!p->cache || !p->is_whole || !cached_index(p, b, in_shard))
        r = pen__shard_index(shard, &p->m.schema, in_shard, &b->data, &b->view, reterr);
    return r < 0 ? r : pen__block_check_count(p, b->number, &b->view, shard->source->name, reterr);
}

static void free_block(PenPack *p, PenBlock *b)
{
    if (b->index) {
        pen__pack_block_put(p, b->index);
        pen__free(b->data);
        pen__free(b);
        return;
    }
    if (b->is_whole)
        pen__block_memory_free(p, b);
    else
        pen__free(b->data);
    pen__pack_shard_put(p, b->shard);
    pen__free(b);
}

static int new_block(PenPack *p, uint64_t number, bool whole, PenBlock **ret, PenError *reterr)
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
    b->is_whole = whole;
    if (whole && pen__block_memory_take(p, b, e.bytes) < 0) {
        pen__fail_memory(reterr, WHERE, b->shard->shard.source->name);
        free_block(p, b);
        return PEN_E_NO_MEMORY;
    }
    *ret = b;
    return PEN_OK;
}

static int open_block(PenPack *p, uint64_t number, bool whole, PenBlock **ret, PenError *reterr)
{
    PenBlock *b;
    int r = new_block(p, number, whole, &b, reterr);
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

static PenBlock *find_block(PenPack *p, uint64_t number, bool whole)
{
    uint64_t look_ns = 0;
    do {
        PenBlock *b = p->blocks[number % p->block_slots];
        if (b && b->number == number && (b->is_whole || !whole)) {
            b->refs++;
            if (p->is_whole && b != p->newest) {
                list_remove(p, b);
                list_add(p, b);
            }
            return b;
        }
    } while (pen__loading_wait(p, number | (whole ? 0 : PEN_LOADING_INDEX), &look_ns));
    return NULL;
}

static int get_block(PenPack *p, uint64_t number, bool whole, bool keep, PenBlock **ret,
                     PenError *reterr)
{
    const uint64_t what = number | (whole ? 0 : PEN_LOADING_INDEX);
    pthread_mutex_lock(&p->mutex);
    PenBlock *b = find_block(p, number, whole);
    if (!b)
        pen__loading_begin(p, what);
    pthread_mutex_unlock(&p->mutex);
    if (b) {
        *ret = b;
        return PEN_OK;
    }
    int r = open_block(p, number, whole, &b, reterr);
    pthread_mutex_lock(&p->mutex);
    PenBlock *old = NULL;
    if (r == PEN_OK)
        old = keep ? keep_block(p, b) : b;
    pen__loading_end(p, what);
    pthread_mutex_unlock(&p->mutex);
    put_row(p, old);
    if (r == PEN_OK)
        *ret = b;
    return r;
}

int pen__pack_block(PenPack *p, uint64_t number, PenBlock **ret, PenError *reterr)
{
    return get_block(p, number, p->is_whole, true, ret, reterr);
}

int pen__pack_block_take(PenPack *p, uint64_t number, PenBlock **ret, PenError *reterr)
{
    return get_block(p, number, p->is_whole, false, ret, reterr);
}

void pen__pack_block_put(PenPack *p, PenBlock *b)
{
    pthread_mutex_lock(&p->mutex);
    int left = --b->refs;
    pthread_mutex_unlock(&p->mutex);
    if (!left)
        free_block(p, b);
}

static uint64_t payload_of(const PenBlockView *v, uint32_t sample, uint32_t field,
                           uint64_t *ret_bytes)
{
    const PenField *f = &v->schema->fields[field];
    PenImageEntry image = {.bytes = 0};
    if (f->type == PEN_TYPE_CLIP) {
        PenClipEntry clip = pen__block_clip(v, sample, field);
        *ret_bytes = clip.bytes;
        return clip.offset;
    }
    if (pen__field_is_blob(f)) {
        PenBlobEntry blob = pen__block_blob(v, sample, field);
        *ret_bytes = blob.bytes;
        return blob.offset;
    }
    if (f->type == PEN_TYPE_IMAGE)
        image = pen__block_image(v, sample, field, 0);
    *ret_bytes = image.bytes;
    return image.offset;
}

/* Where the payloads of samples [first, first + n) lie in their block. */
static void find_payloads(PenBlock *b, uint32_t first, uint32_t n)
{
    const PenBlockView *v = &b->view;
    uint64_t from = UINT64_MAX, end = 0;
    for (uint32_t s = first; s < first + n; s++)
        for (uint32_t f = 0; f < v->schema->n_fields; f++) {
            uint64_t bytes, offset = payload_of(v, s, f, &bytes);
            if (!bytes)
                continue;
            from = PEN_MIN(from, offset);
            end = PEN_MAX(end, offset + bytes);
        }
    b->part_offset = end ? from : 0;
    b->part_bytes = end - b->part_offset;
}

static int read_part(PenPack *p, PenBlock *b, PenError *reterr)
{
    b->data = pen__alloc_array(b->part_bytes + PEN_SLACK, 1);
    if (!b->data)
        return pen__fail_memory(reterr, WHERE, p->path);
    b->cap = (size_t)b->part_bytes + PEN_SLACK;
    if (!b->part_bytes)
        return PEN_OK;
    b->cached_by = p->cache ? p : NULL;
    return p->cache ? pen__block_get_part(p, b, b->part_offset, b->part_bytes, b->data, reterr)
                    : pen__source_read(b->shard->shard.source, b->data, (size_t)b->part_bytes,
                                       b->offset + b->part_offset, reterr);
}

int pen__pack_part_take(PenPack *p, uint64_t number, uint32_t first, uint32_t n, PenBlock **ret,
                        PenError *reterr)
{
    PenBlock *index = NULL, *b = pen__zalloc(sizeof *b);
    if (!b)
        return pen__fail_memory(reterr, WHERE, p->path);
    int r = get_block(p, number, false, true, &index, reterr);
    if (r != PEN_OK) {
        pen__free(b);
        return r;
    }
    if (index->is_whole) {
        pen__free(b);
        *ret = index;
        return PEN_OK;
    }
    *b = (PenBlock){.number = number,
                    .first_sample = index->first_sample,
                    .offset = index->offset,
                    .view = index->view,
                    .shard = index->shard,
                    .whole_bytes = index->whole_bytes,
                    .index = index,
                    .refs = 1};
    find_payloads(b, first, n);
    r = read_part(p, b, reterr);
    if (r < 0)
        free_block(p, b);
    else
        *ret = b;
    return r;
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
        r = new_block(p, first + (uint64_t)made, p->is_whole, &ret[made], reterr);
        if (r == PEN_OK)
            made++;
    }
    if (r == PEN_OK)
        r = read_all(p, ret, n, reterr);
    for (int i = 0; i < made && r < 0; i++)
        pen__pack_block_put(p, ret[i]);
    return r;
}
