/* SPDX-License-Identifier: Apache-2.0 */
/* Reading only what a crop needs: the head and the runs of segments that hold its rows. */
#include "codec/region/region.h"
#include "lib/tiled_pack.h"
#include "pack_help.h"

enum { N = 12 };

static struct {
    uint64_t reads, bytes;
} seen;

static int64_t counting_pread(int fd, void *buf, size_t bytes, uint64_t offset)
{
    seen.reads++;
    seen.bytes += bytes;
    return pen__sys_real.pread(fd, buf, bytes, offset);
}

static PenPack *make(const char *name, int mode)
{
    PenError err = {0};
    PenPack *pack = NULL;
    PenIngestResult result;
    bool tiles = mode == PEN_MODE_TILE;
    PenIngestSettings s = help_ingest("photos", tiles ? "kept-files.pen" : name);
    s.mode = tiles ? PEN_MODE_KEEP : mode;
    s.no_index = tiles;
    int r = pen_ingest_run(&s, &result, &err);
    if (r == PEN_OK && tiles)
        tile_pack(s.out, at(name), s.shard_bytes);
    if (r < 0 || pen_pack_open(at(name), NULL, &pack, &err) < 0)
        printf("%s\n", err.message);
    return pack;
}

static int slice_of(const PenBlock *b, uint32_t sample, uint32_t first, uint32_t last,
                    PenSlice *ret, PenError *err)
{
    PenSpot spot = {.block = b, .sample = sample};
    return pen__pack_read_slice(&spot, first, last, ret, err);
}

/* Every range of rows of one image, in steps. */
static void check_rows(PenPack *pack, uint64_t sample, int tiled)
{
    PenError err = {0};
    PenBuf whole = {0};
    PenSlice slice = {.first = 0};
    PenBlock *b = NULL;
    uint32_t in_block = 0;
    help_read(pack, sample, 0, &whole);
    CHECK_OK_SO_FAR();
    CHECK_INT(pen__pack_locate(pack, sample, &b, &in_block, &err), PEN_OK);
    PenImageEntry e = pen__block_image(&b->view, in_block, 0, 0);
    PenSegmentTable t = pen__block_segments(&b->view, &e);
    PenCut cut = {e.codec, t.components, t.h_samp, t.v_samp, e.width, e.height, 0};
    for (uint32_t y = 0; y < e.height; y += 13)
        for (uint32_t h = 1; y + h <= e.height; h += 29) {
            uint32_t first = y;
            uint32_t last = y + h - 1;
            if (tiled)
                pen__region_segments(&cut, y, h, &first, &last);
            seen.reads = seen.bytes = 0;
            CHECK_INT(slice_of(b, in_block, first, last, &slice, &err), PEN_OK);
            CHECK(seen.reads <= 2);
            CHECK_INT(seen.bytes, slice.data.bytes);
            CHECK(slice.first <= first && slice.end > last);
            CHECK_INT(slice.segments_offset, t.head_bytes);
            CHECK_MEM(slice.data.data, whole.data, t.head_bytes);
            uint64_t at = t.head_bytes;
            for (uint32_t i = 0; i < slice.first; i++)
                at += pen__segment_bytes(&t, i);
            size_t bytes = slice.data.bytes - t.head_bytes;
            CHECK(at + bytes <= whole.bytes);
            CHECK_MEM(slice.data.data + t.head_bytes, whole.data + at, bytes);
        }
    CHECK_INT(slice_of(b, in_block, 0, t.n_segments, &slice, &err), PEN_E_INVALID);
    pen__pack_block_put(pack, b);
    pen__buf_free(&slice.data);
    pen__buf_free(&whole);
}

static void check_mode(const char *name, int mode)
{
    static PenSys sys;
    PenPack *pack = make(name, mode);
    CHECK(pack);
    sys = pen__sys_real;
    sys.pread = counting_pread;
    pen__sys = &sys;
    for (uint64_t s = 0; s < N; s++)
        check_rows(pack, s, mode == PEN_MODE_TILE);
    pen__sys = &pen__sys_real;
    pen_pack_close(&pack);
}

TEST(rows_of_tiled_jpegs)
{
    check_mode("tiled.pen", PEN_MODE_TILE);
}

TEST(rows_of_raw_images)
{
    check_mode("raw.pen", PEN_MODE_RAW);
}

/* A flipped byte spoils the slices that need it and no other. */
TEST(damage_outside_the_slice_does_not_matter)
{
    PenError err = {0};
    PenPack *pack = make("hurt.pen", PEN_MODE_RAW);
    PenBlock *b = NULL;
    PenSlice slice = {.first = 0};
    uint32_t in_block = 0;
    CHECK(pack);
    CHECK_INT(pen__pack_locate(pack, 1, &b, &in_block, &err), PEN_OK);
    PenImageEntry e = pen__block_image(&b->view, in_block, 0, 0);
    uint64_t row = 50 * (uint64_t)e.width * e.channels;
    int fd = open(b->shard->shard.source->name, O_RDWR);
    uint8_t byte;
    CHECK_INT(pread(fd, &byte, 1, (off_t)(b->offset + e.offset + row)), 1);
    byte ^= 16;
    CHECK_INT(pwrite(fd, &byte, 1, (off_t)(b->offset + e.offset + row)), 1);
    close(fd);
    CHECK_INT(slice_of(b, in_block, 0, 20, &slice, &err), PEN_OK);
    CHECK_INT(slice_of(b, in_block, 70, 100, &slice, &err), PEN_OK);
    CHECK_INT(slice_of(b, in_block, 40, 60, &slice, &err), PEN_E_CORRUPT);
    CHECK_INT(err.sample, 1);
    CHECK(strstr(err.message, "sample 1 (1 of the pack)"));
    pen__pack_block_put(pack, b);
    pen__buf_free(&slice.data);
    pen_pack_close(&pack);
}

TEST(an_image_without_segments_has_no_slices)
{
    PenError err = {0};
    PenPack *pack = make("kept.pen", PEN_MODE_KEEP);
    PenBlock *b = NULL;
    PenSlice slice = {.first = 0};
    uint32_t in_block = 0;
    CHECK(pack);
    CHECK_INT(pen__pack_locate(pack, 0, &b, &in_block, &err), PEN_OK);
    CHECK_INT(slice_of(b, in_block, 0, 0, &slice, &err), PEN_E_INVALID);
    pen__pack_block_put(pack, b);
    pen_pack_close(&pack);
}

int main(int argc, char **argv)
{
    TEST_START(argc, argv);
    help_begin();
    help_folder("photos", 0, N);
    RUN(rows_of_tiled_jpegs);
    RUN(rows_of_raw_images);
    RUN(damage_outside_the_slice_does_not_matter);
    RUN(an_image_without_segments_has_no_slices);
    help_end();
    return TEST_END();
}
