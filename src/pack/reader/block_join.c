/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks that lie side by side in a shard, by one request. */
#include "base/attr.h"
#include "pack/reader/reader_impl.h"

#define WHERE "pack/blocks"

enum { GAP = 256 }; /* bytes between two blocks, at most: they are aligned */

/* Where the bytes go: every block has memory of its own; what lies between is thrown away. */
typedef struct Places {
    struct iovec v[2 * PEN_JOIN_MOST];
    int n;
    uint8_t gap[GAP];
} Places;

/* False: they do not lie side by side. */
static bool place_all(PenBlock *const *blocks, int n, Places *ret)
{
    ret->n = 0;
    for (int i = 0; i < n; i++) {
        const PenBlock *b = blocks[i], *before = i ? blocks[i - 1] : b;
        uint64_t at = i ? before->offset + before->whole_bytes : b->offset;
        if (b->shard != before->shard || b->offset < at || b->offset - at > GAP)
            return false;
        if (b->offset > at)
            ret->v[ret->n++] = (struct iovec){ret->gap, (size_t)(b->offset - at)};
        ret->v[ret->n++] = (struct iovec){b->data, (size_t)b->whole_bytes};
    }
    return true;
}

/* Checked here; what does not fit is asked for by itself, as often as any other. */
static int land(PenPack *p, PenBlock *b, PenError *reterr)
{
    PenBlock whole = {0};
    int r = pen__block_open_memory(p, b->number, b->shard, b->data, &whole, NULL);
    whole.data = b->data;
    if (r == PEN_OK)
        r = pen__block_check(&whole, NULL);
    if (r < 0)
        return pen__block_load(p, b, reterr);
    b->view = whole.view;
    return PEN_OK;
}

static int read_all(PenPack *p, PenBlock *const *blocks, int n, PenError *reterr)
{
    Places places;
    int r = PEN_OK;
    if (!place_all(blocks, n, &places)) {
        for (int i = 0; i < n && r == PEN_OK; i++)
            r = pen__block_load(p, blocks[i], reterr);
        return r;
    }
    r = pen__source_read_v(blocks[0]->shard->shard.source, places.v, places.n, blocks[0]->offset,
                           reterr);
    for (int i = 0; i < n && r == PEN_OK; i++)
        r = land(p, blocks[i], reterr);
    return r;
}

int pen__pack_joins(const PenPack *p)
{
    return p->is_remote && !p->cache;
}

int pen__pack_blocks_take(PenPack *p, uint64_t first, int n, PenBlock **ret, PenError *reterr)
{
    int r = PEN_OK, made = 0;
    while (made < n && r == PEN_OK) {
        r = pen__block_new(p, first + (uint64_t)made, &ret[made], reterr);
        if (r == PEN_OK)
            made++;
    }
    if (r == PEN_OK)
        r = read_all(p, ret, n, reterr);
    for (int i = 0; i < made && r < 0; i++)
        pen__pack_block_put(p, ret[i]);
    return r;
}
