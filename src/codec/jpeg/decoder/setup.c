/* SPDX-License-Identifier: Apache-2.0 */
/* What the own decoder has before it begins with an image: memory and geometry. */
#include <string.h>

#include "codec/jpeg/decoder/decoder_impl.h"
#include "codec/jpeg/decoder/scan.h"

static const char where[] = "codec/jpeg";

enum {
    ALIGN = 64,
    /* Larger buffers are not kept for the next image. */
    KEEP_COPIES = 128 << 10,
    KEEP_PLANES = 256 << 10,
    KEEP_ROWS = 64 << 10
};

/* ---- memory ---- */

static size_t align_up(size_t n)
{
    return (n + ALIGN - 1) & ~(size_t)(ALIGN - 1);
}

/* At least so many bytes; what was there is lost when it grows. */
static int reserve(PenBuf *b, size_t bytes, bool *ret_new, PenError *reterr)
{
    *ret_new = b->cap < bytes + ALIGN;
    if (!*ret_new)
        return PEN_OK;
    pen__buf_free(b);
    b->data = pen__alloc(bytes + ALIGN);
    if (!b->data)
        return pen__fail_memory(reterr, where, "rows of pixels");
    b->cap = bytes + ALIGN;
    return PEN_OK;
}

static uint8_t *aligned(const PenBuf *b)
{
    return b->data + (-(uintptr_t)b->data & (ALIGN - 1));
}

static uint32_t slots_of(const PenOwnEntropy *e)
{
    return e->lanes + e->spare;
}

/* Rows of MCUs in the ring: as many as all slots together can touch, those that upsampling looks
 * back at and ahead to, and some for segments that are of more than one row. */
static uint32_t ring_rows(const PenTileGeometry *g, const PenOwnWanted *w, uint32_t slots,
                          uint32_t unit)
{
    uint32_t in_row = PEN_MAX((w->right - w->left + 1) / unit, 1u);
    uint32_t rows = g->mcus_x < unit ? slots * unit / g->mcus_x : slots / in_row;
    rows += unit / g->mcus_x + 4;
    return PEN_MIN(rows, w->bottom - w->top + 1);
}

/* Rows a multiple of 512 bytes apart would share a few lines of the cache. */
static size_t stride_of(const PenOwnWanted *w, uint32_t i, uint32_t side)
{
    size_t blocks = w->block_right[i] - w->block_left[i] + 1;
    size_t stride = align_up(blocks * side + PEN_JPEG_SLACK);
    return stride % 512 ? stride : stride + ALIGN;
}

/* A component's samples, `high` of them in the height of an MCU. */
static size_t plane_bytes(const PenOwnWanted *w, uint32_t i, uint32_t side, uint32_t high,
                          uint32_t rows)
{
    return align_up(stride_of(w, i, side) * high * rows + 2 * PEN_JPEG_SLACK);
}

/* Slots of so many blocks. Before the first one there is room for what a larger one would have
 * there: streams count places in the largest. */
static size_t coef_bytes(uint32_t slots, uint32_t slot_blocks)
{
    size_t blocks = PEN_OWN_SLOT_BLOCKS + (size_t)slots * (slot_blocks + PEN_OWN_GUARD_BLOCKS);
    return blocks * 64 * sizeof(int16_t);
}

/* A list has one entry more than it can hold. */
static size_t list_bytes(uint32_t slots, uint32_t slot_blocks)
{
    size_t blocks = (size_t)slots * slot_blocks + 3; /* of three components */
    return blocks * PEN_JPEG_CLASSES * sizeof(PenJpegBlock);
}

static size_t copy_bytes(uint32_t longest)
{
    return align_up((size_t)longest + PEN_OWN_PAD) + ALIGN;
}

/* ---- geometry ---- */

/* Place k of a block of a segment; block 0 is before the first, n behind the last. */
static PenOwnStep step_of(const PenOwn *own, uint32_t block, uint32_t k, uint32_t n)
{
    bool ends = k >= 63;
    uint32_t next = block + ends, luma = own->head.h * own->head.v, table = PEN_OWN_TABLES;
    if (next && next <= n) {
        bool chroma = (next - 1) % own->mcu_blocks >= luma;
        table = chroma ? PEN_OWN_DC_CHROMA : PEN_OWN_DC_LUMA;
        table += !ends; /* AC */
    }
    k = PEN_MIN(k, 63u);
    k = own->order == PEN_JPEG_NATURAL ? pen__jpeg_natural[k] : k;
    block = PEN_MIN(PEN_MAX(block, 1u), n + 1) - 1;
    return (PenOwnStep){.place = (uint16_t)(block * 64 + k),
                        .table = (uint16_t)(table * PEN_OWN_ENTRIES)};
}

static int make_steps(PenOwn *own, PenError *reterr)
{
    uint32_t n = PEN_OWN_SLOT_BLOCKS;
    uint32_t total = (1 + n + PEN_OWN_STEP_GUARDS) * PEN_OWN_STEP_BLOCK;
    PenOwnStep **steps = &own->steps[own->mcu_blocks];
    if (*steps)
        return PEN_OK;
    *steps = pen__alloc_array(total, sizeof **steps);
    if (!*steps)
        return pen__fail_memory(reterr, where, "decoder");
    for (uint32_t i = 0; i < total; i++)
        (*steps)[i] = step_of(own, i / PEN_OWN_STEP_BLOCK, i % PEN_OWN_STEP_BLOCK, n);
    return PEN_OK;
}

static size_t set_plane(PenOwn *own, uint32_t i, size_t at)
{
    PenOwnPlane *p = &own->planes[i];
    const PenOwnWanted *w = &own->wanted;
    const PenEncoded *image = own->request.image;
    uint32_t shrink = own->request.at.shrink;
    PenOwnScale s = pen__own_scale(&own->head, i, shrink);
    *p = (PenOwnPlane){.stride = stride_of(w, i, s.side),
                       .side = s.side,
                       .h = i ? 1 : own->head.h,
                       .v = i ? 1 : own->head.v,
                       .first_block = i ? own->mcu_blocks - 3 + i : 0,
                       .columns = (pen__shrunk_side(image->width, shrink) + s.h - 1) / s.h,
                       .rows = (pen__shrunk_side(image->height, shrink) + s.v - 1) / s.v};
    p->ring_bytes = (uint32_t)(p->stride * s.side * p->v);
    p->data = own->planes_buf.data ? aligned(&own->planes_buf) + at + PEN_JPEG_SLACK : NULL;
    return at + plane_bytes(w, i, s.side, s.side * p->v, own->ring_rows);
}

static size_t set_planes(PenOwn *own)
{
    size_t bytes = 0;
    for (uint32_t i = 0; i < own->head.components; i++)
        bytes = set_plane(own, i, bytes);
    return bytes;
}

static void set_lists(PenOwn *own, uint8_t *at)
{
    uint32_t slots = slots_of(own->entropy);
    for (uint32_t i = 0; i < own->head.components; i++) {
        PenOwnPlane *p = &own->planes[i];
        for (uint32_t c = 0; c < PEN_JPEG_CLASSES; c++) {
            p->list[c] = (PenJpegBlock *)(void *)at;
            at += ((size_t)slots * p->h * p->v * own->unit + 1) * sizeof(PenJpegBlock);
        }
    }
}

static void set_slots(PenOwn *own)
{
    own->n_used = 0;
    own->n_free = slots_of(own->entropy);
    for (uint32_t i = 0; i < own->n_free; i++)
        own->free_slots[i] = own->n_free - 1 - i;
}

/* With a byte at either end that it shares with others, and a stuffed one. */
static uint32_t longest_interval(const PenJpegEntries *e)
{
    uint64_t longest = 0;
    for (uint32_t i = 0; i < e->plan.n_entries; i++)
        longest = PEN_MAX(longest, pen__entry_bit(e, i + 1) - e->at[i].bit);
    return (uint32_t)PEN_MIN(longest / 8 + 3, (uint64_t)PEN_OWN_MAX_SEGMENT_BYTES);
}

/* Of the segments that are there; longer ones than there can be are not decoded. */
static uint32_t longest_segment(const PenEncoded *image)
{
    uint32_t longest = 0;
    if (image->entries)
        return longest_interval(image->entries);
    if (!image->segment_bytes) /* entries are not known yet */
        return (uint32_t)PEN_MIN(image->bytes, (size_t)PEN_OWN_MAX_SEGMENT_BYTES);
    for (uint32_t s = image->first_segment; s < image->end_segment; s++)
        longest = PEN_MAX(longest, image->segment_bytes[s - image->first_segment]);
    return PEN_MIN(longest, (uint32_t)PEN_OWN_MAX_SEGMENT_BYTES);
}

/* Who resamples them reads behind the last one. */
static uint64_t rows_bytes(const PenBox *box, uint32_t mcu_height)
{
    return (uint64_t)box->w * 3 * mcu_height + PEN_SLACK;
}

static int take_memory(PenOwn *own, PenError *reterr)
{
    uint32_t slots = slots_of(own->entropy), blocks = own->slot_blocks - PEN_OWN_GUARD_BLOCKS;
    size_t planes = set_planes(own);
    size_t rows = (size_t)rows_bytes(&own->request.at.box, own->g.mcu_height);
    bool fresh;
    if (planes + rows > own->request.limits->max_memory_bytes)
        return PEN_END; /* libjpeg says so, or needs less */
    own->copy_bytes = copy_bytes(longest_segment(own->request.image));
    int r = reserve(&own->coefs_buf, coef_bytes(slots, blocks), &fresh, reterr);
    own->clean &= !fresh;
    if (r >= 0)
        r = reserve(&own->lists_buf, list_bytes(slots, blocks), &fresh, reterr);
    if (r >= 0)
        r = reserve(&own->copies_buf, own->copy_bytes * own->entropy->lanes, &fresh, reterr);
    if (r >= 0)
        r = reserve(&own->planes_buf, planes, &fresh, reterr);
    if (r >= 0)
        r = reserve(&own->rows_buf, rows, &fresh, reterr);
    if (r < 0)
        return r;
    if (!own->clean)
        memset(own->coefs_buf.data, 0, own->coefs_buf.cap);
    own->coefs = (int16_t *)(void *)aligned(&own->coefs_buf) + (size_t)PEN_OWN_SLOT_BLOCKS * 64;
    own->copies = aligned(&own->copies_buf);
    own->rows = aligned(&own->rows_buf);
    set_planes(own);
    set_lists(own, aligned(&own->lists_buf));
    return PEN_OK;
}

static uint32_t unit_of(const PenEncoded *image, const PenJpegInfo *info)
{
    return image->entries         ? image->entries->plan.unit
           : image->segment_bytes ? (uint32_t)PEN_TILE_MCUS
                                  : pen__entry_unit(info);
}

static void set_geometry(PenOwn *own, const PenJpegInfo *info)
{
    static const int32_t samplings[] = {PEN_JPEG_444, PEN_JPEG_422, PEN_JPEG_440, PEN_JPEG_420};
    const PenOwnHead *head = &own->head;
    bool grey = head->components == 1;
    pen__tile_geometry(info, &own->g);
    pen__own_want(&own->g, head, &own->request.at, info->width, info->height, &own->wanted);
    own->scale = pen__own_scale(head, 1, own->request.at.shrink);
    own->sampling = samplings[own->scale.h - 1 + 2 * (own->scale.v - 1)];
    own->mcu_blocks = grey ? 1 : head->h * head->v + 2u;
    own->unit = unit_of(own->request.image, info);
    own->slot_blocks = own->mcu_blocks * own->unit + PEN_OWN_GUARD_BLOCKS;
    own->order = own->entropy->order < 0 ? own->pixels->order : own->entropy->order;
    own->ring_rows = ring_rows(&own->g, &own->wanted, slots_of(own->entropy), own->unit);
    own->row = own->wanted.top;
    own->given = 0;
    own->jobs = (PenOwnJobs){.image = own->request.image,
                             .wanted = &own->wanted,
                             .g = &own->g,
                             .mcu_blocks = own->mcu_blocks,
                             .segment = own->request.image->first_segment,
                             .at = own->request.image->head_bytes};
}

/* Intervals may be larger than slots are, and an index may be that of another image. */
static bool fits_slots(const PenOwn *own)
{
    const PenJpegEntries *e = own->request.image->entries;
    return own->slot_blocks <= PEN_OWN_SLOT_BLOCKS + PEN_OWN_GUARD_BLOCKS &&
           (!e || (e->plan.n_mcus == own->g.mcus_x * own->g.mcus_y &&
                   e->plan.components == own->head.components &&
                   e->plan.restart == own->request.header->info.restart_interval));
}

int pen__own_begin(PenOwn *own, const PenOwnRequest *request, PenError *reterr)
{
    if (!own->entropy)
        return PEN_END;
    if (!own->tables && !(own->tables = pen__zalloc(sizeof *own->tables)))
        return pen__fail_memory(reterr, where, "decoder");
    own->request = *request;
    int r = pen__own_head(request->header, &own->head);
    if (r == PEN_OK)
        r = pen__own_tables(own->tables, own->entropy->layout, &own->head);
    if (r != PEN_OK)
        return r;
    set_geometry(own, &request->header->info);
    if (!fits_slots(own))
        return PEN_END;
    r = own->entropy->has_steps ? make_steps(own, reterr) : PEN_OK;
    if (r == PEN_OK)
        r = take_memory(own, reterr);
    if (r != PEN_OK)
        return r;
    set_slots(own);
    own->lanes = (PenOwnLanes){.bad = 0}; /* idle ones are read with the others */
    own->clean = false;
    return PEN_OK;
}

static void drop_large(PenBuf *b, size_t bytes)
{
    if (b->cap > bytes)
        pen__buf_free(b);
}

void pen__own_end(PenOwn *own)
{
    drop_large(&own->copies_buf, KEEP_COPIES);
    drop_large(&own->planes_buf, KEEP_PLANES);
    drop_large(&own->rows_buf, KEEP_ROWS);
}

/* ---- memory, before there is any ---- */

enum { MAX_SLOTS = PEN_OWN_LANES + PEN_OWN_SPARE };

/* Whatever the image: for the largest MCUs, and all kinds of them that there are. */
static uint64_t fixed_bytes(void)
{
    enum { MCU_KINDS = 4 }; /* of 1, 3, 4 and 6 blocks */
    uint64_t blocks = 1 + PEN_OWN_SLOT_BLOCKS + PEN_OWN_STEP_GUARDS;
    uint64_t steps = MCU_KINDS * blocks * PEN_OWN_STEP_BLOCK;
    return sizeof(PenOwn) + sizeof(PenOwnTables) + steps * sizeof(PenOwnStep) +
           coef_bytes(MAX_SLOTS, PEN_OWN_SLOT_BLOCKS) + list_bytes(MAX_SLOTS, PEN_OWN_SLOT_BLOCKS);
}

static uint64_t planes_bytes(const PenJpegInfo *info, const PenOwnBox *at, uint32_t unit)
{
    PenTileGeometry g;
    PenOwnWanted w;
    uint64_t bytes = 0;
    pen__tile_geometry(info, &g);
    PenOwnHead head = {.components = info->components,
                       .h = (uint8_t)(g.mcu_width / 8),
                       .v = (uint8_t)(g.mcu_height / 8)};
    pen__own_want(&g, &head, at, info->width, info->height, &w);
    for (uint32_t i = 0; i < info->components; i++) {
        uint32_t side = pen__own_scale(&head, i, at->shrink).side, high = i ? side : side * head.v;
        bytes += plane_bytes(&w, i, side, high, ring_rows(&g, &w, MAX_SLOTS, unit));
    }
    return bytes;
}

static bool is_inside(const PenOwnBox *at, const PenJpegInfo *info)
{
    const PenBox *box = &at->box;
    return box->w && box->h &&
           (uint64_t)box->x + box->w <= pen__shrunk_side(info->width, at->shrink) &&
           (uint64_t)box->y + box->h <= pen__shrunk_side(info->height, at->shrink);
}

uint64_t pen__own_memory(const PenEncoded *image, const PenJpegInfo *info, const PenOwnBox *at)
{
    uint64_t copies = KEEP_COPIES, planes = KEEP_PLANES, rows = KEEP_ROWS;
    if (image && pen__own_takes(info) && is_inside(at, info)) {
        copies = PEN_MAX(copies, copy_bytes(longest_segment(image)) * PEN_OWN_LANES);
        planes = PEN_MAX(planes, planes_bytes(info, at, unit_of(image, info)));
        rows = PEN_MAX(rows, rows_bytes(&at->box, 16));
    }
    return fixed_bytes() + copies + planes + rows + 5 * ALIGN;
}
