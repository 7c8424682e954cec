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
