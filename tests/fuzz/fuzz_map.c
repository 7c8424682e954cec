/* SPDX-License-Identifier: Apache-2.0 */
/* The map of an in-place pack's shard: the end of the shard's file, whose checksum is put right
 * before it is read. What is accepted covers the shard once, without gaps, and stays in its files.
 */
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "help.h"
#include "io/outside.h"
#include "pack/format/map.h"
#include "pack/format/place.h"

enum { STORED = 200, CRC_AT = 12 };

static const uint8_t ID[PEN_ID_BYTES] = "0123456789abcdef";

static void repair(uint8_t *file, size_t bytes)
{
    PenPlace place = {.id = ID, .block = PEN_ALL, .sample = PEN_ALL, .field = PEN_PART_MAP};
    uint8_t *f = file + bytes - PEN_MAP_FOOTER_BYTES;
    uint64_t n = pen__load64(f + 56);
    if (n < PEN_MAP_FOOTER_BYTES || n > bytes)
        return;
    uint8_t *map = copy_of(file + bytes - n, (size_t)n);
    memcpy(f, "PENSHMAP", 8);
    pen__store32(f + 8, PEN_FORMAT_VERSION);
    memcpy(f + 16, ID, sizeof ID);
    memcpy(map + n - PEN_MAP_FOOTER_BYTES, f + 16, PEN_MAP_FOOTER_BYTES - 16);
    pen__store32(f + CRC_AT, pen__place_sum(&place, map, (size_t)n - 16));
    free(map);
}

static void check_map(const PenMap *m)
{
    uint64_t at = 0, skipped = 0;
    for (uint64_t i = 0; i < m->n_extents; i++) {
        PenExtent e = pen__map_extent(m, i);
        PenMappedFile f = pen__map_file(m, e.file);
        REQUIRE(e.offset >= at && e.bytes && e.skipped == skipped);
        REQUIRE(pen__range_ok(e.source, e.bytes, f.bytes));
        REQUIRE(pen__outside_path_ok(f.path, f.path_bytes));
        REQUIRE(pen__map_find(m, e.offset) == i && pen__map_find(m, e.offset + e.bytes - 1) == i);
        at = e.offset + e.bytes;
        skipped += e.bytes;
    }
    REQUIRE(at <= m->file_bytes && m->stored_bytes + skipped == m->file_bytes);
    REQUIRE(pen__map_find(m, m->file_bytes) == m->n_extents);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    PenError err;
    PenSource *source = NULL;
    PenMap m = {0};
    uint8_t *file = copy_of(data, bytes);
    if (bytes >= PEN_MAP_FOOTER_BYTES)
        repair(file, bytes);
    MUST(pen__source_open_memory("shard", file, bytes, &source, &err));
    if (GOES(pen__map_read(source, ID, &m, &err))) {
        uint8_t table[PEN_BLOCK_ENTRY_BYTES] = {0};
        check_map(&m);
        pen__store64(table, PEN_SHARD_HEADER_BYTES);
        pen__store64(table + 8, STORED);
        (void)CALL(pen__map_check_blocks(&m, table, 1, "shard", &err));
        pen__map_free(&m);
    }
    pen__source_close(&source);
    free(file);
    return 0;
}
