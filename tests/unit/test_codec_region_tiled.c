/* SPDX-License-Identifier: Apache-2.0 */
/* Regions of tiled JPEGs: all of the file, or only the segments that the rows need. */
#include "codec/region/region.h"

#include "region_checks.h"

static void check_part(const TiledJpeg *t, const PenPixels *whole, PenBox box, int32_t colour)
{
    uint8_t *bytes = NULL;
    PenEncoded e = part_of(t, box, dice(3) ? 0 : dice(20), &bytes);
    uint8_t *before = exact_copy(e.data, e.bytes);
    check_box(&e, whole, box, colour);
    CHECK_MEM(e.data, before, e.bytes);
    free(before);
    free(bytes);
}

static void check_tiled(const JpegSpec *spec, uint32_t n_boxes)
{
    PenBuf b = {0};
    TiledJpeg t = {0};
    PenPixels whole = {0};
    make_jpeg(spec, &b);
    CHECK_INT(tile_jpeg(b.data, b.bytes, &t), PEN_OK);
    CHECK_INT(pen__image_decode(b.data, b.bytes, limits, &whole, NULL), PEN_OK);
    uint8_t *copy = exact_copy(t.jpeg.data, t.jpeg.bytes);
    PenEncoded e = whole_tiled(&t);
    e.data = copy;
    for (uint32_t i = 0; i < n_boxes; i++) {
        PenBox box = nth_box(i, whole.width, whole.height);
        check_box(&e, &whole, box, colours[i % 2]);
        check_part(&t, &whole, box, colours[i % 2]);
        CHECK_OK_SO_FAR();
    }
    free(copy);
    pen__buf_free(&b);
    tiled_free(&t);
    pen__pixels_free(&whole);
}

static const JpegSpec tileable[] = {{SAMPLING(1, 1, 1, 1)},
                                    {SAMPLING(2, 1, 1, 1)},
                                    {SAMPLING(1, 2, 1, 1)},
                                    {SAMPLING(2, 2, 1, 1)},
                                    {.channels = 1},
                                    {.channels = 1, .h = 2, .v = 2},
                                    {SAMPLING(2, 1, 2, 1), .progressive = true},
                                    {SAMPLING(2, 2, 1, 1), .progressive = true}};

TEST(tiled_whole_and_in_part)
{
    static const uint32_t widths[] = {1, 8, 17, 64, 65, 129, 250, 256};
    static const uint32_t heights[] = {1, 17, 33, 100, 240};
    for (size_t i = 0; i < PEN_LEN(widths) * PEN_LEN(heights); i++)
        for (size_t k = 0; k < PEN_LEN(tileable); k++) {
            JpegSpec spec = tileable[k];
            spec.width = widths[i % PEN_LEN(widths)];
            spec.height = heights[i / PEN_LEN(widths)];
            check_tiled(&spec, 14);
            CHECK_OK_SO_FAR();
        }
}

/* Every row alone, for one of every distance between rows that begin a segment. */
TEST(tiled_row_by_row)
{
    for (uint32_t mcus = 1; mcus <= 8; mcus++)
        for (size_t k = 0; k < 4; k++) {
            JpegSpec spec = tileable[k];
            PenBuf b = {0};
            TiledJpeg t = {0};
            PenPixels whole = {0};
            spec.width = mcus * 8 * (uint32_t)spec.h - 3;
            spec.height = 140;
            make_jpeg(&spec, &b);
            CHECK_INT(tile_jpeg(b.data, b.bytes, &t), PEN_OK);
            CHECK_INT(pen__image_decode(b.data, b.bytes, limits, &whole, NULL), PEN_OK);
            for (uint32_t y = 0; y < spec.height; y++) {
                PenBox box = {.x = 1, .y = y, .w = 2, .h = 1};
                check_part(&t, &whole, box, PEN_COLOUR_RGB);
                CHECK_OK_SO_FAR();
            }
            pen__buf_free(&b);
            tiled_free(&t);
            pen__pixels_free(&whole);
        }
}

TEST(tiled_segments_that_are_not_there)
{
    TiledJpeg t = a_tiled_jpeg();
    PenBox box = {.x = 20, .y = 100, .w = 50, .h = 60};
    uint8_t *bytes = NULL;
    PenEncoded e = part_of(&t, box, 0, &bytes), other = e;
    CHECK_INT(find_status(&e, box), PEN_OK);
    other.first_segment++;
    CHECK_INT(find_status(&other, box), PEN_E_INVALID);
    other = e;
    other.end_segment--;
    CHECK_INT(find_status(&other, box), PEN_E_INVALID);
    other = e;
    other.segment_bytes = NULL;
    CHECK_INT(find_status(&other, box), PEN_E_INVALID);
    other = e;
    other.tiled = 0;
    CHECK_INT(find_status(&other, box), PEN_E_INVALID);
    free(bytes);
    tiled_free(&t);
}

/* Tables that lie: never a wrong pixel said to be right, never a byte outside. */
TEST(tiled_hostile_tables)
{
    TiledJpeg t = a_tiled_jpeg();
    PenPixels whole = {0};
    CHECK_INT(pen__image_decode(t.jpeg.data, t.jpeg.bytes, limits, &whole, NULL), PEN_OK);
    uint8_t *copy = exact_copy(t.jpeg.data, t.jpeg.bytes);
    uint32_t *lengths = malloc(t.n_segments * sizeof *lengths);
    CHECK(lengths);
    int fine = 0, refused = 0;
    for (uint32_t i = 0; i < 2000; i++) {
        static const uint32_t awkward[] = {0, 1, 2, 0x7FFFFFFF, 0xFFFFFFFF, 65536};
        PenBox box = random_box(whole.width, whole.height);
        PenEncoded e = whole_tiled(&t);
        e.data = copy;
        e.segment_bytes = lengths;
        memcpy(lengths, t.segment_bytes, t.n_segments * sizeof *lengths);
        uint32_t at = dice(t.n_segments), by = dice(9);
        lengths[at] = i % 3 ? lengths[at] + by - 4 : awkward[dice(PEN_LEN(awkward))];
        if (i % 5 == 0)
            e.head_bytes += dice(9) - 4;
        int r = find_status(&e, box);
        CHECK(r == PEN_OK || r == PEN_E_DECODE);
        if (r == PEN_OK)
            CHECK_INT(count_different(&whole, box, PEN_COLOUR_RGB, &found), 0);
        *(r == PEN_OK ? &fine : &refused) += 1;
    }
    CHECK(fine > 100 && refused > 100);
    free(lengths);
    free(copy);
    pen__pixels_free(&whole);
    tiled_free(&t);
}

/* Heads that do not fit: another size, interval, kind, sampling. */
TEST(tiled_hostile_heads)
{
    TiledJpeg t = a_tiled_jpeg();
    PenEncoded e = whole_tiled(&t);
    PenBox box = {.x = 3, .y = 130, .w = 100, .h = 20};
    uint8_t *head = t.jpeg.data;
    size_t sof = find_marker_offset(head, t.head_bytes, 0xC0, 0);
    size_t dri = find_marker_offset(head, t.head_bytes, 0xDD, 0);
    const struct {
        size_t at;
        uint8_t value;
    } lies[] = {{sof + 6, 239},   {sof + 8, 249},   {sof + 1, 0xC1}, {dri + 5, 4},    {dri + 4, 1},
                {sof + 11, 0x42}, {sof + 14, 0x21}, {0, 0},          {sof + 11, 0x14}};
    CHECK_INT(find_status(&e, box), PEN_OK);
    for (size_t i = 0; i < PEN_LEN(lies); i++) {
        uint8_t was = head[lies[i].at];
        head[lies[i].at] = lies[i].value;
        CHECK_INT(find_status(&e, box), PEN_E_DECODE);
        head[lies[i].at] = was;
    }
    e.head_bytes = (uint32_t)t.jpeg.bytes + 1;
    CHECK_INT(find_status(&e, box), PEN_E_DECODE);
    e = whole_tiled(&t);
    e.end_segment++;
    CHECK_INT(find_status(&e, box), PEN_E_DECODE);
    e = whole_tiled(&t);
    CHECK_INT(find_status(&e, box), PEN_OK);
    tiled_free(&t);
}

/* Every restart marker is looked at: a wrong one is damage though libjpeg could go on. */
TEST(tiled_wrong_restart_markers)
{
    TiledJpeg t = a_tiled_jpeg();
    PenEncoded e = whole_tiled(&t), plain = e;
    plain.tiled = 0;
    PenBox box = {.x = 0, .y = 130, .w = 250, .h = 60};
    PenCut cut = {PEN_STORED_JPEG, 3, 2, 2, 250, 240, 0};
    uint32_t first, last;
    pen__region_segments(&cut, box.y, box.h, &first, &last);
    CHECK(first > 0 && last + 1 < t.n_segments);
    size_t at = t.head_bytes;
    for (uint32_t s = 0; s < last; s++) {
        at += t.segment_bytes[s];
        uint8_t *marker = t.jpeg.data + at - 1, was = *marker;
        CHECK(was >= 0xD0 && was <= 0xD7);
        for (uint8_t by = 1; by < 8; by++) {
            *marker = (uint8_t)(0xD0 + (was + by) % 8);
            CHECK_INT(find_status(&e, box), s + 1 < first ? PEN_OK : PEN_E_DECODE);
            CHECK_INT(find_status(&plain, box), PEN_E_DECODE);
        }
        *marker = was;
    }
    CHECK_INT(find_status(&e, box), PEN_OK);
    CHECK_INT(find_status(&plain, box), PEN_OK);
    tiled_free(&t);
}

/* From some byte of a segment on there is the code of ones, which none is; or nothing at all. */
static PenBuf damaged(const TiledJpeg *t, uint32_t segment, uint32_t from, bool cut)
{
    PenBuf b = {0};
    size_t at = t->head_bytes, n = 6;
    for (uint32_t s = 0; s < segment; s++)
        at += t->segment_bytes[s];
    from -= from && t->jpeg.data[at + from - 1] == 0xFF;
    at += from;
    if (cut)
        n = t->segment_bytes[segment] - 2 - from;
    if (pen__buf_add(&b, t->jpeg.data, at) < 0 ||
        (!cut && pen__buf_add(&b, "\xFF\0\xFF\0\xFF\0", n) < 0) ||
        pen__buf_add(&b, t->jpeg.data + at + n, t->jpeg.bytes - at - n) < 0)
        abort();
    return b;
}

static void check_named(const TiledJpeg *t, uint32_t segment, PenBox box, bool cut)
{
    TiledJpeg bad = *t;
    PenError err = {0};
    char expected[80];
    uint8_t *part = NULL;
    uint32_t length = t->segment_bytes[segment], from = dice(2) ? dice(length / 2) : 0;
    bad.jpeg = damaged(t, segment, from, cut);
    t->segment_bytes[segment] -= (uint32_t)(t->jpeg.bytes - bad.jpeg.bytes);
    PenEncoded e = part_of(&bad, box, dice(2), &part);
    CHECK_INT(find_region(decoder, &e, box, PEN_COLOUR_RGB, &found, &err), PEN_E_DECODE);
    snprintf(expected, sizeof expected, "tiled jpeg of %u x %u: segment %u of %u: jpeg: damaged ",
             t->info.width, t->info.height, segment, t->n_segments);
    if (strncmp(err.message, expected, strlen(expected)) != 0)
        printf("%s... expected, %u bytes from %u, cut %d\n", expected, length, from, cut);
    CHECK_MEM(err.message, expected, strlen(expected));
    t->segment_bytes[segment] = length;
    pen__buf_free(&bad.jpeg);
    free(part);
}

/* All of the image, and from the rows of the segment on. */
static void check_all_named(const TiledJpeg *t)
{
    PenTileGeometry g;
    PenBox box = {.w = t->info.width, .h = t->info.height};
    pen__tile_geometry(&t->info, &g);
    for (uint32_t s = 0; s < t->n_segments; s++) {
        uint32_t row = s * PEN_TILE_MCUS / g.mcus_x * g.mcu_height;
        PenBox rest = {.y = row, .w = box.w, .h = box.h - row};
        for (uint32_t i = 0; i < 8; i++) {
            check_named(t, s, i & 1 ? box : rest, i & 2);
            CHECK_OK_SO_FAR();
        }
    }
}

/* Whoever decodes it. */
TEST(tiled_damage_is_named)
{
    static const uint32_t widths[] = {250, 90, 37, 130};
    for (size_t i = 0; i < PEN_LEN(widths); i++) {
        PenBuf b = {0};
        TiledJpeg t = {0};
        JpegSpec spec = tileable[i];
        spec.width = widths[i];
        spec.height = 150;
        make_jpeg(&spec, &b);
        CHECK_INT(tile_jpeg(b.data, b.bytes, &t), PEN_OK);
        check_all_named(&t);
        tiled_free(&t);
        pen__buf_free(&b);
        CHECK_OK_SO_FAR();
    }
}

TEST(tiled_damage_in_the_head_is_named)
{
    TiledJpeg t = a_tiled_jpeg();
    PenEncoded e = whole_tiled(&t);
    PenError err = {0};
    size_t dht = find_marker_offset(t.jpeg.data, t.jpeg.bytes, 0xC4, 0);
    t.jpeg.data[dht + 5] = 200; /* codes of one bit */
    CHECK_INT(find_region(decoder, &e, (PenBox){.w = 250, .h = 240}, PEN_COLOUR_RGB, &found, &err),
              PEN_E_DECODE);
    CHECK_MEM(err.message, "tiled jpeg of 250 x 240: header: jpeg: ", 37);
    tiled_free(&t);
}

int main(int argc, char **argv)
{
    TEST_START(argc, argv);
    if (!start_regions())
        return 1;
    RUN(tiled_whole_and_in_part);
    RUN(tiled_row_by_row);
    RUN(tiled_segments_that_are_not_there);
    RUN(tiled_hostile_tables);
    RUN(tiled_hostile_heads);
    RUN(tiled_wrong_restart_markers);
    RUN(tiled_damage_is_named);
    RUN(tiled_damage_in_the_head_is_named);
    end_regions();
    return TEST_END();
}
