/* SPDX-License-Identifier: Apache-2.0 */
/* The entry index of a JPEG file: 16 bytes of arguments, an index, and the file. Every index that
 * can be parsed has one coding; the index that is made of a file can be parsed. Whatever the index
 * says, an entire image is what libjpeg makes of it, and a box has its rows, from the complete file
 * or from a part of it that is enough. Without an index it is decoded as libjpeg decodes it. */
#include <stdlib.h>
#include <string.h>

#include "base/attr.h"
#include "base/machine/cpu.h"
#include "codec/jpeg/decoder/scan.h"
#include "codec/jpeg/tiled.h"
#include "help.h"
#include "region_rows.h"

enum { ARGUMENTS = 16 };

typedef struct Case {
    Input in;
    uint8_t *coded; /* the index as bytes */
    size_t coded_bytes;
    uint8_t *data; /* the file */
    size_t bytes;
    PenJpegHeader header;
    PenJpegInfo said; /* what the table says about the file */
    PenEntryPlan plan;
    PenJpegEntries index;
    PenBuf entries;
    PenEncoded image;
} Case;

static void require_one_coding(const PenJpegEntries *e, const uint8_t *coded, size_t bytes)
{
    PenError err;
    PenBuf again = {.bytes = 0};
    MUST(pen__entries_write(e, &again, &err));
    REQUIRE(again.bytes == bytes && (!bytes || memcmp(again.data, coded, bytes) == 0));
    pen__buf_free(&again);
}

/* The index of the file itself. Returns the length of its scan, or some other. */
static uint64_t try_scan(const Case *c, PenEntryScan *scan, uint32_t unit)
{
    PenError err;
    PenJpegEntries e, again;
    PenBuf coded = {.bytes = 0}, buf = {.bytes = 0};
    const char *why = NULL;
    int r = CALL(pen__entry_scan(scan, &c->header, c->data, c->bytes, unit, &e, &why, &err));
    REQUIRE(r == PEN_OK || (r == PEN_END && why));
    if (r != PEN_OK)
        return c->bytes - c->header.info.head_bytes;
    MUST(pen__entries_write(&e, &coded, &err));
    MUST(pen__entries_parse(coded.data, coded.bytes, &e.plan, e.scan_bytes, &buf, &again, &err));
    for (uint32_t i = 0; i < e.plan.n_entries; i++)
        REQUIRE(e.at[i].bit == again.at[i].bit &&
                memcmp(e.at[i].dc, again.at[i].dc, sizeof e.at[i].dc) == 0);
    REQUIRE(c->header.info.head_bytes + e.scan_bytes + 2 <= c->bytes);
    pen__buf_free(&coded);
    pen__buf_free(&buf);
    return e.scan_bytes;
}

/* A table has 1 or 3 components, and factors of 1 or 2, whatever the file has. */
static void take_said(Case *c, bool lie)
{
    const PenJpegInfo *info = &c->header.info;
    bool grey = (info->components == 1) != (lie && !take_below(&c->in, 4));
    uint8_t h = lie ? 1 + take_byte(&c->in) % 2 : PEN_MIN(info->h_samp[0], 2);
    uint8_t v = lie ? 1 + take_byte(&c->in) % 2 : PEN_MIN(info->v_samp[0], 2);
    c->said = (PenJpegInfo){.width = info->width,
                            .height = info->height,
                            .components = grey ? 1 : 3,
                            .h_samp = {grey ? 1 : h, 1, 1},
                            .v_samp = {grey ? 1 : v, 1, 1}};
}

/* False if there is nothing to decode. */
static bool make_case(Case *c, PenEntryScan *scan, bool lie)
{
    PenError err;
    PenTileGeometry g;
    const PenJpegInfo *info = &c->header.info;
    uint32_t unit = 1 + take_below(&c->in, 50);
    if (!GOES(pen__jpeg_header(c->data, c->bytes, &region_limits, &c->header, &err)))
        return false;
    take_said(c, lie);
    pen__tile_geometry(&c->said, &g);
    pen__entry_plan(g.mcus_x * g.mcus_y, info->restart_interval, unit, c->said.components,
                    &c->plan);
    uint64_t scan_bytes = try_scan(c, scan, unit);
    if (!GOES(pen__entries_parse(c->coded, c->coded_bytes, &c->plan, scan_bytes, &c->entries,
                                 &c->index, &err)))
        return false;
    require_one_coding(&c->index, c->coded, c->coded_bytes);
    c->image = (PenEncoded){.data = c->data,
                            .bytes = c->bytes,
                            .width = info->width,
                            .height = info->height,
                            .codec = PEN_STORED_JPEG,
                            .channels = c->said.components,
                            .head_bytes = (uint32_t)info->head_bytes,
                            .entries = &c->index};
    return true;
}

static PenBox take_box(Case *c)
{
    PenBox b;
    b.w = 1 + take_below(&c->in, c->image.width);
    b.h = 1 + take_below(&c->in, c->image.height);
    b.x = take_below(&c->in, c->image.width - b.w + 1);
    b.y = take_below(&c->in, c->image.height - b.h + 1);
    return b;
}

/* Some bytes of the scan, exactly. */
static void try_part(const Case *c, PenDecoder *own, PenBox box, uint32_t from, uint32_t n)
{
    PenEncoded part = c->image;
    Rows rows;
    size_t head = part.head_bytes, left = c->bytes - head;
    from = PEN_MIN(from, (uint32_t)left);
    n = PEN_MIN(n, (uint32_t)left - from);
    uint8_t *data = malloc(head + n);
    REQUIRE(data);
    memcpy(data, c->data, head);
    memcpy(data + head, c->data + head + from, n);
    part.data = data;
    part.bytes = head + n;
    part.partial = 1;
    part.scan_offset = from;
    (void)decode_rows(own, &part, box, &rows);
    free(rows.data);
    free(data);
}

/* The bytes of the scan that a reader reads for a box: all that the index says about it. */
static void try_needed(const Case *c, PenDecoder *own, PenBox box)
{
    const PenJpegInfo *said = &c->said;
    PenCut cut = {PEN_STORED_JPEG,
                  said->components,
                  said->h_samp[0],
                  said->v_samp[0],
                  said->width,
                  said->height,
                  0};
    uint64_t from, end;
    pen__region_scan(&cut, &c->index, &box, &from, &end);
    REQUIRE(from < end && end <= c->index.scan_bytes);
    try_part(c, own, box, (uint32_t)from, (uint32_t)(end - from));
}

/* The rows and the status of libjpeg: of an entire image, and without an index also of a box. */
static void compare(const PenEncoded *image, PenDecoder *own, PenDecoder *turbo, PenBox box)
{
    Rows found, expected;
    bool same = !image->entries || (box.w == image->width && box.h == image->height);
    int by_turbo = decode_rows(turbo, image, box, &expected);
    int r = decode_rows(own, image, box, &found);
    if (same)
        REQUIRE(r == by_turbo);
    if (same && r == PEN_OK)
        REQUIRE(memcmp(found.data, expected.data, expected.n * expected.row_bytes) == 0);
    free(found.data);
    free(expected.data);
}

static void try_case(Case *c, uint8_t tier, uint8_t way)
{
    /* They stay: what an image leaves behind must not be seen in the next. */
    static PenDecoder *turbo, *tiers[PEN_CPU_TIERS];
    static uint32_t n_tiers;
    static PenEntryScan *scan;
    PenError err;
    if (!turbo) {
        turbo = make_decoder("turbo");
        MUST(pen__entry_scan_new(&scan, &err));
        for (int i = 0; i <= pen__cpu(); i++)
            if ((tiers[n_tiers] = make_decoder(pen__cpu_name(i))))
                n_tiers++;
    }
    if (!make_case(c, scan, way & 8))
        return;
    PenDecoder *own = tiers[tier % n_tiers];
    PenBox box = {0, 0, c->image.width, c->image.height};
    if (way & 1)
        box = take_box(c);
    PenEncoded stock = c->image;
    stock.entries = NULL;
    stock.head_bytes = 0;
    compare(&c->image, own, turbo, box);
    compare(&stock, own, turbo, box);
    if (way & 2)
        try_part(c, own, box, take_below(&c->in, 65536), take_below(&c->in, 65536));
    if (way & 4)
        try_needed(c, own, box);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    size_t n = PEN_MIN(bytes, (size_t)ARGUMENTS);
    Case c = {.in = {data, n}};
    uint8_t tier = take_byte(&c.in), way = take_byte(&c.in);
    size_t index = take_below(&c.in, 65536);
    Input rest = {data + n, bytes - n};
    const uint8_t *coded = take_bytes(&rest, index, &c.coded_bytes);
    c.coded = copy_of(coded, c.coded_bytes);
    c.data = copy_of(rest.data, rest.bytes);
    c.bytes = rest.bytes;
    try_case(&c, tier, way);
    free(c.coded);
    free(c.data);
    pen__buf_free(&c.entries);
    return 0;
}
