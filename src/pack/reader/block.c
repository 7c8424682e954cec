/* SPDX-License-Identifier: Apache-2.0 */
/* One block: its memory, its bytes, and whether they fit their checksums. */
#include <inttypes.h>
#include <string.h>

#include "base/attr.h"
#include "base/bytes.h"
#include "pack/reader/reader_impl.h"
#include "pack/reader/sections.h"

#define WHERE "pack/blocks"

/* ---- memory for whole blocks ----
 *
 * Blocks come and go at the speed of the network, each some megabytes: a fresh piece of memory for
 * each would cost more than receiving it. So pieces that fit the largest block are used again. */

/* A piece that is not in use begins with where the next one is. */
typedef struct Spare {
    struct Spare *next;
} Spare;

static size_t full_size(const PenPack *p)
{
    return (size_t)p->info.largest_block_bytes + PEN_SLACK;
}

int pen__block_memory_take(PenPack *p, PenBlock *b, uint64_t bytes)
{
    size_t cap = full_size(p);
    Spare *spare = NULL;
    if (bytes > SIZE_MAX / 4)
        return -1;
    if (bytes < cap / 2 || bytes + PEN_SLACK > cap) {
        cap = (size_t)bytes + PEN_SLACK;
    } else {
        pthread_mutex_lock(&p->mutex);
        spare = p->spare;
        if (spare)
            p->spare = spare->next;
        pthread_mutex_unlock(&p->mutex);
    }
    b->data = spare ? (uint8_t *)spare : pen__alloc(cap);
    if (!b->data)
        return -1;
    if (!spare)
        pen__ask_huge(b->data, cap);
    b->cap = cap;
    memset(b->data + bytes, 0, PEN_SLACK);
    return 0;
}

void pen__block_memory_free(PenPack *p, PenBlock *b)
{
    Spare *spare = (Spare *)(void *)b->data;
    if (!spare || b->cap != full_size(p) || b->cap < sizeof *spare) {
        pen__free_large(b->data, b->cap);
    } else {
        pthread_mutex_lock(&p->mutex);
        spare->next = p->spare;
        p->spare = spare;
        pthread_mutex_unlock(&p->mutex);
    }
    b->data = NULL;
}

void pen__pack_trim(PenPack *p)
{
    pthread_mutex_lock(&p->mutex);
    Spare *spare = p->spare;
    p->spare = NULL;
    pthread_mutex_unlock(&p->mutex);
    for (Spare *next; spare; spare = next) {
        next = spare->next;
        pen__free_large(spare, full_size(p));
    }
}

/* ---- bytes ---- */

int pen__block_check_count(const PenPack *p, uint64_t number, const PenBlockView *v,
                           const char *name, PenError *reterr)
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
    return r < 0 ? r : pen__block_check_count(p, block, &ret->view, s->source->name, reterr);
}

int pen__block_check_sample(const PenBlock *b, uint32_t sample, PenError *reterr)
{
    const PenSchema *schema = b->view.schema;
    PenSpot at = {.block = b, .sample = sample};
    int r = PEN_OK;
    for (at.field = 0; at.field < schema->n_fields && r == PEN_OK; at.field++) {
        PenVideoTable video;
        uint32_t n = pen__block_images(&b->view, sample, at.field);
        if (pen__block_video(&b->view, sample, at.field, &video))
            r = pen__video_check_runs(&at, &video, 0, video.n_runs,
                                      b->data + pen__block_clip(&b->view, sample, at.field).offset,
                                      reterr);
        for (at.frame = 0; at.frame < n && r == PEN_OK; at.frame++) {
            PenImageEntry e = pen__block_image(&b->view, sample, at.field, at.frame);
            r = pen__payload_check(&at, &e, b->data + e.offset, reterr);
        }
        at.frame = 0;
        if (r == PEN_OK && pen__field_is_blob(&schema->fields[at.field])) {
            PenBlobEntry e = pen__block_blob(&b->view, sample, at.field);
            r = pen__blob_check(&at, &e, b->data + e.offset, reterr);
        }
    }
    return r;
}

int pen__block_check_sections(const PenBlock *b, PenError *reterr)
{
    return pen__sections_walk(b, b->data + b->view.sections_offset, NULL, NULL, reterr);
}

int pen__block_check(const PenBlock *b, PenError *reterr)
{
    int r = PEN_OK;
    for (uint32_t s = 0; s < b->view.n_samples && r == PEN_OK; s++)
        r = pen__block_check_sample(b, s, reterr);
    return r < 0 ? r : pen__block_check_sections(b, reterr);
}
