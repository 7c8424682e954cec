/* SPDX-License-Identifier: Apache-2.0 */
#include "pack/reader/sections.h"

#include <inttypes.h>
#include <string.h>

#include "base/bytes.h"

#define WHERE "pack/sections"

static int damaged(const PenBlock *b, uint32_t number, uint64_t offset, PenError *reterr)
{
    return pen__fail(reterr, PEN_E_CORRUPT, WHERE,
                     "%s: block %u, section %u, offset %" PRIu64
                     ": the metadata is damaged; the samples can be read",
                     b->shard->shard.source->name, b->view.block, number, b->offset + offset);
}

int pen__sections_walk(const PenBlock *b, const uint8_t *data,
                       int (*each)(void *ctx, const PenSection *section), void *ctx,
                       PenError *reterr)
{
    const PenBlockView *v = &b->view;
    uint64_t total = v->bytes - v->sections_offset;
    uint64_t at = 0;
    const uint8_t *sums = v->data + v->index_bytes - (size_t)v->n_sections * PEN_SECTION_SUM_BYTES;
    for (uint32_t i = 0; i < v->n_sections; i++) {
        const uint8_t *h = data + at;
        if (!pen__range_ok(at, PEN_BLOCK_SECTION_BYTES, total) || pen__load32(h + 4) ||
            pen__load32(h + 20) ||
            !pen__range_ok(at + PEN_BLOCK_SECTION_BYTES, pen__load64(h + 24), total))
            return damaged(b, i, v->sections_offset + at, reterr);
        uint64_t bytes = pen__load64(h + 24);
        PenPlace place = {.id = v->id, .block = v->block, .sample = PEN_SAMPLE_SECTION, .field = i};
        uint32_t sum = pen__place_sum(&place, h, PEN_BLOCK_SECTION_BYTES + (size_t)bytes);
        if (sum != pen__load32(sums + (size_t)i * PEN_SECTION_SUM_BYTES))
            return damaged(b, i, v->sections_offset + at, reterr);
        PenSection s = {.number = i,
                        .sample = pen__load32(h + 8),
                        .field = pen__load32(h + 12),
                        .frame = pen__load32(h + 16),
                        .data = h + PEN_BLOCK_SECTION_BYTES,
                        .bytes = bytes};
        memcpy(s.type, h, 4);
        int r = each ? each(ctx, &s) : PEN_OK;
        if (r != PEN_OK)
            return r;
        at += PEN_BLOCK_SECTION_BYTES + bytes;
    }
    return at == total ? PEN_OK : damaged(b, v->n_sections, v->sections_offset + at, reterr);
}

typedef struct Find {
    uint32_t sample, field, frame;
    const uint8_t *data;
    uint64_t bytes;
} Find;

static int match(void *ctx, const PenSection *s)
{
    Find *f = ctx;
    if (strcmp(s->type, "META") != 0 || s->sample != f->sample || s->field != f->field ||
        s->frame != f->frame)
        return PEN_OK;
    f->data = s->data;
    f->bytes = s->bytes;
    return PEN_END;
}

static int find_metadata(const PenBlock *b, Find *find, uint8_t **ret_all, PenError *reterr)
{
    uint64_t bytes = b->view.bytes - b->view.sections_offset;
    uint8_t *all = pen__alloc_array(bytes, 1);
    if (!all)
        return pen__fail_memory(reterr, WHERE, "metadata");
    int r = pen__block_read(b, b->view.sections_offset, bytes, all, reterr);
    if (r == PEN_OK)
        r = pen__sections_walk(b, all, match, find, reterr);
    if (r < 0) {
        pen__free(all);
        return r;
    }
    *ret_all = all;
    return PEN_OK;
}

int pen_pack_metadata(PenPack *pack, uint64_t sample, uint32_t field, uint32_t frame, void *buf,
                      size_t cap, size_t *ret_bytes, PenError *reterr)
{
    PenBlock *b = NULL;
    Find find = {.field = field, .frame = frame};
    uint8_t *all = NULL;
    int r = pen__pack_alive(pack, reterr);
    if (r == PEN_OK)
        r = pen__pack_locate(pack, sample, &b, &find.sample, reterr);
    if (r != PEN_OK)
        return r;
    r = find_metadata(b, &find, &all, reterr);
    if (r == PEN_OK && buf && find.bytes > cap)
        r = pen__fail(reterr, PEN_E_LIMIT, WHERE,
                      "%s: sample %" PRIu64 ": metadata of %" PRIu64
                      " bytes, but the buffer holds %zu",
                      pen__pack_path(pack), sample, find.bytes, cap);
    if (r == PEN_OK) {
        if (buf && find.bytes)
            memcpy(buf, find.data, (size_t)find.bytes);
        *ret_bytes = (size_t)find.bytes;
    } else if (reterr) {
        reterr->sample = (int64_t)sample;
    }
    pen__free(all);
    pen__pack_block_put(pack, b);
    return r;
}
