/* SPDX-License-Identifier: Apache-2.0 */
#include "pack/preload/layout.h"

#include <stdbool.h>
#include <string.h>

#include "base/bytes.h"
#include "io/dir.h"
#include "pack/format/shard_read.h"

#define WHERE "pack/preload"

enum { PAGE = 4096, PIECES_MORE = 3 /* than blocks: see pen__shard_pieces */ };

uint64_t pen__preload_record_at(uint64_t shard)
{
    return PAGE + shard * sizeof(PenPreloadRecord);
}

/* Moves *at on by n bytes; false when that is more than any memory. */
static bool move_on(uint64_t *at, uint64_t n)
{
    return !pen__add_over(*at, n, at) && *at <= (uint64_t)INT64_MAX - PAGE;
}

static bool place(PenPreloadLayout *l, const PenManifest *m)
{
    uint64_t at = pen__preload_record_at(m->n_shards);
    for (uint64_t i = 0; i < m->n_shards; i++) {
        l->states[i] = at;
        if (!move_on(&at, m->shards[i].n_blocks) || !move_on(&at, PIECES_MORE))
            return false;
    }
    for (uint64_t i = 0; i < m->n_shards; i++) {
        at = pen__padded(at, PAGE);
        l->shards[i] = at;
        if (!move_on(&at, m->shards[i].file_bytes))
            return false;
        l->shard_bytes += m->shards[i].file_bytes;
    }
    l->bytes = pen__padded(at, PAGE);
    return true;
}

int pen__preload_layout(PenPreloadLayout *ret, const PenManifest *m, const char *name,
                        PenError *reterr)
{
    PenPreloadLayout l = {.states = pen__alloc_array(m->n_shards + 1, sizeof *l.states),
                          .shards = pen__alloc_array(m->n_shards + 1, sizeof *l.shards)};
    int r = PEN_OK;
    if (!l.states || !l.shards)
        r = pen__fail_memory(reterr, WHERE, name);
    else if (!place(&l, m))
        r = pen__fail(reterr, PEN_E_LIMIT, WHERE,
                      "%s: the shards are larger than the address space; open it without preload",
                      name);
    if (r < 0) {
        pen__preload_layout_fini(&l);
        return r;
    }
    memcpy(l.head, "PENSHARE", 8);
    pen__store64(l.head + 8, 1); /* version of this layout */
    memcpy(l.head + 16, m->id, PEN_ID_BYTES);
    pen__store64(l.head + 32, l.bytes);
    *ret = l;
    return PEN_OK;
}

void pen__preload_layout_fini(PenPreloadLayout *l)
{
    pen__free(l->states);
    pen__free(l->shards);
    *l = (PenPreloadLayout){0};
}

int pen__preload_source(const PenPreload *preload, const PenManifest *m, const char *path,
                        uint64_t shard, PenSource **ret, PenError *reterr)
{
    const PenShardEntry *e = &m->shards[shard];
    char name[PEN_SHARD_NAME_BYTES];
    pen__shard_name(e->id, name);
    char *full = pen__path_join(path, name); /* where it lies for messages */
    if (!full)
        return pen__fail_memory(reterr, WHERE, path);
    int r = pen__source_open_shared(preload->shared, full, preload->layout.shards[shard],
                                    e->file_bytes, ret, reterr);
    pen__free(full);
    return r;
}

void pen__preload_close(PenPreload **preload)
{
    PenPreload *p = *preload;
    *preload = NULL;
    if (!p || atomic_fetch_sub(&p->refs, 1) != 1)
        return;
    pen__shared_close(&p->shared);
    pen__preload_layout_fini(&p->layout);
    pen__free(p);
}
