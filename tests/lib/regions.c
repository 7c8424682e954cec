/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/regions.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "lib/sweep.h"

const char *region_name(RegionKind kind)
{
    static const char *const names[] = {"manifest", "shard header", "index", "payload",
                                        "section",  "keys",         "tail"};
    return names[kind];
}

/* Adds a region that begins where the one before ended. */
static Region *add(RegionMap *m, Region r, uint64_t bytes)
{
    const Region *last = m->n ? &m->regions[m->n - 1] : NULL;
    if (bytes == 0)
        return NULL;
    if (m->n == m->cap) {
        m->cap = m->cap ? m->cap * 2 : 256;
        m->regions = realloc(m->regions, m->cap * sizeof *m->regions);
        MUST(m->regions);
        last = m->n ? &m->regions[m->n - 1] : NULL;
    }
    r.begin = last && last->item == r.item ? last->end : 0;
    r.end = r.begin + bytes;
    m->regions[m->n] = r;
    return &m->regions[m->n++];
}

/* Lead and tail of an indexed JPEG are of no run that can be asked for; every run needs the tables.
 */
static void add_parts(RegionMap *m, Region r, const PenEntryTable *t)
{
    for (uint32_t i = 0; i < t->n_parts; i++) {
        bool is_end = i == PEN_FILE_LEAD || i + 1 == t->n_parts;
        r.is_run = i != PEN_FILE_TABLES;
        r.first_segment = is_end ? UINT32_MAX : i - PEN_FILE_RUNS;
        r.end_segment = is_end ? UINT32_MAX : i - PEN_FILE_RUNS + 1;
        add(m, r, pen__entry_table_part(t, i).bytes);
    }
}

static void add_image(RegionMap *m, Region r, const PenBlock *b)
{
    PenImageEntry e = pen__block_image(&b->view, r.in_block, r.field, r.frame);
    r.kind = REGION_PAYLOAD;
    if (!e.table_bytes) {
        add(m, r, e.bytes);
        return;
    }
    if (pen__block_is_indexed(&b->view, &e)) {
        PenEntryTable entries = pen__block_entries(&b->view, &e);
        add_parts(m, r, &entries);
        return;
    }
    PenSegmentTable t = pen__block_segments(&b->view, &e);
    PenRun run;
    add(m, r, t.head_bytes);
    pen__run_first(&t, &run);
    r.is_run = true;
    do {
        r.first_segment = run.first;
        r.end_segment = run.end;
        add(m, r, run.bytes);
    } while (pen__run_next(&t, &run));
}

static void add_sample(RegionMap *m, Region r, const PenBlock *b)
{
    const PenSchema *schema = b->view.schema;
    r.sample = b->first_sample + r.in_block;
    r.kind = REGION_PAYLOAD;
    for (r.field = 0; r.field < schema->n_fields; r.field++) {
        int type = schema->fields[r.field].type;
        uint32_t n = type == PEN_TYPE_CLIP ? pen__block_clip(&b->view, r.in_block, r.field).n_frames
                                           : type == PEN_TYPE_IMAGE;
        for (r.frame = 0; r.frame < n; r.frame++)
            add_image(m, r, b);
        r.frame = 0;
        if (pen__field_is_blob(&schema->fields[r.field]))
            add(m, r, pen__block_blob(&b->view, r.in_block, r.field).bytes);
    }
}

static void add_block(RegionMap *m, Region r, const TreeItem *item)
{
    PenBlock *b = NULL;
    MUST(pen__pack_block(m->pack, r.block_number, &b, NULL) == PEN_OK);
    const PenBlockView *v = &b->view;
    r.kind = REGION_INDEX;
    r.block = v->block;
    add(m, r, v->index_bytes);
    for (r.in_block = 0; r.in_block < v->n_samples; r.in_block++)
        add_sample(m, r, b);
    r.in_block = 0;
    r.kind = REGION_SECTION;
    MUST(m->regions[m->n - 1].end == b->offset + v->sections_offset);
    for (uint32_t i = 0; i < v->n_sections; i++) {
        const uint8_t *h = item->data + m->regions[m->n - 1].end;
        add(m, r, PEN_BLOCK_SECTION_BYTES + pen__load64(h + 24));
    }
    MUST(m->regions[m->n - 1].end == b->offset + v->bytes);
    pen__pack_block_put(m->pack, b);
}

static void add_shard(RegionMap *m, uint64_t shard)
{
    PenShardRef *ref = NULL;
    char name[PEN_SHARD_NAME_BYTES];
    const PenShardEntry *e = &pen__pack_manifest(m->pack)->shards[shard];
    pen__shard_name(e->id, name);
    const TreeItem *item = tree_find(m->tree, name);
    MUST(item && pen__pack_shard(m->pack, shard, &ref, NULL) == PEN_OK);
    MUST(e->blocks_used == e->n_blocks);
    Region r = {.item = (size_t)(item - m->tree->items), .shard = shard};
    r.kind = REGION_SHARD_HEADER;
    add(m, r, PEN_SHARD_HEADER_BYTES);
    for (uint64_t b = 0; b < e->blocks_used; b++) {
        r.block_number = e->first_block + b;
        add_block(m, r, item);
    }
    r.kind = REGION_KEYS;
    MUST(m->regions[m->n - 1].end == ref->shard.keys_offset);
    add(m, r, ref->shard.tail_offset - ref->shard.keys_offset);
    r.kind = REGION_TAIL;
    add(m, r, item->bytes - ref->shard.tail_offset);
    pen__pack_shard_put(m->pack, ref);
}

void regions_make(PenPack *pack, const Tree *tree, RegionMap *ret)
{
    *ret = (RegionMap){.pack = pack, .tree = tree};
    const TreeItem *item = tree_find(tree, "manifest");
    MUST(item);
    add(ret, (Region){.kind = REGION_MANIFEST, .item = (size_t)(item - tree->items)}, item->bytes);
    for (uint64_t s = 0; s < pen_pack_info(pack)->n_shards; s++)
        add_shard(ret, s);
}

void regions_free(RegionMap *map)
{
    free(map->regions);
    *map = (RegionMap){0};
}

const Region *regions_at(const RegionMap *map, size_t item, uint64_t offset)
{
    for (size_t i = 0; i < map->n; i++) {
        const Region *r = &map->regions[i];
        if (r->item == item && r->begin <= offset && offset < r->end)
            return r;
    }
    return NULL;
}

/* ---- what is lost ---------------------------------------------------------------------------- */

static Fate refused_when(bool hit)
{
    return hit ? FATE_REFUSED : FATE_ANSWERED;
}

static bool frames_have(const Probe *p, uint32_t frame)
{
    return frame >= p->first && (frame - p->first) % p->step == 0 &&
           (frame - p->first) / p->step < p->n;
}

static Fate payload_fate(const Region *r, const Probe *p)
{
    if (p->sample != r->sample || p->field != r->field)
        return FATE_ANSWERED;
    switch (p->kind) {
    case PROBE_VALUE:
        return FATE_REFUSED;
    case PROBE_FRAMES:
        return refused_when(frames_have(p, r->frame));
    case PROBE_EXTRACT:
        return refused_when(p->frame == r->frame);
    case PROBE_SLICE:
        return refused_when(p->frame == r->frame && (!r->is_run || (p->first < r->end_segment &&
                                                                    p->n >= r->first_segment)));
    default:
        return FATE_ANSWERED;
    }
}

Fate region_fate(const RegionMap *map, const Region *r, const Probe *p)
{
    uint64_t block = p->sample / pen_pack_info(map->pack)->block_samples;
    uint64_t shard = pen__pack_shard_of(map->pack, block);
    switch (r->kind) {
    case REGION_MANIFEST:
        return FATE_REFUSED;
    case REGION_SHARD_HEADER:
        return FATE_ANSWERED;
    case REGION_INDEX:
        return refused_when(block == r->block_number);
    case REGION_PAYLOAD:
        return payload_fate(r, p);
    case REGION_SECTION:
        return block == r->block_number && (p->kind == PROBE_META || p->kind == PROBE_EXTRACT)
                   ? FATE_EITHER
                   : FATE_ANSWERED;
    case REGION_KEYS: /* a key is looked for shard by shard */
        return refused_when(p->kind == PROBE_FIND && shard >= r->shard);
    default:
        return refused_when(shard == r->shard || (p->kind == PROBE_FIND && shard > r->shard));
    }
}

bool region_named(const RegionMap *map, const Region *r, const PenError *e)
{
    const PenPackInfo *info = pen_pack_info(map->pack);
    char part[128] = "";
    if (!strstr(e->message, map->tree->items[r->item].path))
        return false;
    if (r->kind == REGION_INDEX)
        snprintf(part, sizeof part, "block %u", r->block);
    if (r->kind == REGION_SECTION)
        snprintf(part, sizeof part, "block %u, section ", r->block);
    if (r->kind == REGION_KEYS)
        snprintf(part, sizeof part, "offset %" PRIu64 ": keys", r->begin);
    if (r->kind == REGION_PAYLOAD)
        snprintf(part, sizeof part,
                 "block %u, sample %u (%" PRIu64 " of the pack), field '%s', offset %" PRIu64 ":",
                 r->block, r->in_block, r->sample, info->fields[r->field].name, r->begin);
    if (r->kind == REGION_PAYLOAD && e->sample != (int64_t)r->sample)
        return false;
    return strstr(e->message, part) &&
           (r->kind == REGION_MANIFEST || strstr(e->message, "offset") ||
            strstr(e->message, "version"));
}
