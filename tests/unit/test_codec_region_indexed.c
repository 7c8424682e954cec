/* SPDX-License-Identifier: Apache-2.0 */
/* Boxes of JPEG files that are kept as they are and have an entry index, tier by tier: the pixels
 * of libjpeg, whatever the index says. */
#include "codec/jpeg/decoder/scan.h"
#include "own_checks.h"

static PenEntryScan *scan;

/* A file, its pixels, and its index as a reader has it: parsed. */
typedef struct Indexed {
    PenBuf file, coded, entries;
    uint8_t *copy; /* of the file, exactly */
    PenPixels whole;
    PenJpegHeader header;
    PenJpegEntries index;
    PenEncoded image;
} Indexed;

static void parse_index(Indexed *x)
{
    const PenJpegEntries *e = &x->index;
    if (pen__entries_parse(x->coded.data, x->coded.bytes, &e->plan, e->scan_bytes, &x->entries,
                           &x->index, NULL) != PEN_OK)
        abort();
}

/* False if the image has only one interval. */
static bool make_indexed(const JpegSpec *spec, uint32_t unit, Indexed *ret)
{
    const char *why;
    *ret = (Indexed){.copy = NULL};
    make_jpeg(spec, &ret->file);
    ret->copy = exact_copy(ret->file.data, ret->file.bytes);
    if (pen__image_decode(ret->copy, ret->file.bytes, limits, &ret->whole, NULL) != PEN_OK ||
        pen__jpeg_header(ret->copy, ret->file.bytes, limits, &ret->header, NULL) != PEN_OK)
        abort();
    int r = pen__entry_scan(scan, &ret->header, ret->copy, ret->file.bytes, unit, &ret->index, &why,
                            NULL);
    if (r == PEN_END && strcmp(why, "small") == 0)
        return false;
    pen__buf_reserve(&ret->coded, 1);
    if (r != PEN_OK || pen__entries_write(&ret->index, &ret->coded, NULL) != PEN_OK)
        abort();
    parse_index(ret);
    ret->image = encoded(ret->copy, ret->file.bytes, PEN_STORED_JPEG, &ret->whole);
    ret->image.head_bytes = (uint32_t)ret->header.info.head_bytes;
    ret->image.entries = &ret->index;
    return true;
}

static void free_indexed(Indexed *x)
{
    free(x->copy);
    pen__buf_free(&x->file);
    pen__buf_free(&x->coded);
    pen__buf_free(&x->entries);
    pen__pixels_free(&x->whole);
}

/* The head and the bytes of the scan from one entry to another, exactly. */
static PenEncoded part_of_scan(const Indexed *x, uint32_t first, uint32_t end, uint8_t **out)
{
    const PenJpegEntries *e = &x->index;
    uint64_t from = e->at[first].bit / 8, to = (pen__entry_bit(e, end) + 7) / 8;
    size_t head = x->image.head_bytes;
    if (pen__entry_bit(e, end) % 8 && x->copy[head + to - 1] == 0xFF)
        to++;
    PenEncoded part = x->image;
    part.bytes = head + (size_t)(to - from);
    *out = exact_copy(x->copy, part.bytes);
    memcpy(*out + head, x->copy + head + from, (size_t)(to - from));
    part.data = *out;
    part.partial = 1;
    part.scan_offset = from;
    return part;
}

/* Intervals of all rows that a box and the rows beside it need. */
static void needed(const Indexed *x, PenBox box, uint32_t *ret_first, uint32_t *ret_end)
{
    PenTileGeometry g;
    pen__tile_geometry(&x->header.info, &g);
    uint32_t half = g.mcu_height > 8, top = (box.y - (half && box.y)) / g.mcu_height;
    uint32_t bottom = PEN_MIN((box.y + box.h - 1 + half) / g.mcu_height, g.mcus_y - 1);
    *ret_first = pen__entry_of(&x->index.plan, top * g.mcus_x);
    *ret_end = pen__entry_of(&x->index.plan, (bottom + 1) * g.mcus_x - 1) + 1;
}

static void check_all_boxes(const JpegSpec *spec, uint32_t unit, uint32_t n_boxes)
{
    Indexed x;
    bool has_index = make_indexed(spec, unit, &x);
    for (uint32_t i = 0; has_index && i < n_boxes; i++) {
        PenBox box = nth_box(i, spec->width, spec->height);
        uint8_t *bytes;
        check_own_box(&x.image, &x.whole, box, colours[i % 2]);
        PenEncoded part = part_of_indexed(&x.image, &x.header.info, box, &bytes);
        check_own_box(&part, &x.whole, box, colours[(i + 1) % 2]);
        free(bytes);
        CHECK_OK_SO_FAR();
    }
    free_indexed(&x);
}

/* As many MCUs as fit into 48 blocks. */
static uint32_t largest_unit(const JpegSpec *spec)
{
    return PEN_OWN_SLOT_BLOCKS / (spec->channels == 1 ? 1u : (uint32_t)(spec->h * spec->v) + 2);
}

static void check_largest_unit(const JpegSpec *spec, uint32_t n_boxes)
{
    check_all_boxes(spec, largest_unit(spec), n_boxes);
}

static void check_some_unit(const JpegSpec *spec, uint32_t n_boxes)
{
    check_all_boxes(spec, 1 + dice(largest_unit(spec)), n_boxes);
}

TEST(every_sampling_and_size)
{
    check_sizes(check_some_unit);
}

/* Restart markers closer than entries, and further apart. */
TEST(restart_markers)
{
    for (uint32_t i = 0; i < 150; i++) {
        JpegSpec spec = kinds[i % PEN_LEN(kinds)];
        spec.width = 20 + dice(200);
        spec.height = 20 + dice(150);
        spec.restart_interval = i % 10 == 0 ? 5000 : 1 + dice(i % 3 ? 8 : 40);
        check_all_boxes(&spec, 1 + dice(largest_unit(&spec)), 8);
        CHECK_OK_SO_FAR();
    }
}

TEST(tall_and_wide)
{
    check_shapes(check_largest_unit);
}

TEST(every_quality)
{
    check_qualities(check_largest_unit);
}

/* ---- what is wrong ---- */

static const JpegSpec wrong_kinds[] = {
    {.width = 203, .height = 97, SAMPLING(2, 2, 1, 1)},
    {.width = 203, .height = 97, SAMPLING(1, 1, 1, 1)},
    {.width = 203, .height = 97, SAMPLING(2, 1, 1, 1), .restart_interval = 11},
    {.width = 203, .height = 97, SAMPLING(1, 1, 1, 1), .restart_interval = 3},
    {.width = 203, .height = 97, .channels = 1},
};

static void change_entry(PenEntry *e, const PenEntryPlan *plan, uint32_t i)
{
    if (pen__entry_is_restart(plan, i))
        e->bit += dice(2) ? 8 : (uint64_t)-8;
    else if (dice(2))
        e->bit += dice(2) ? 1 + dice(9) : (uint64_t)-1 - dice(9);
    else
        e->dc[dice(plan->components)] += (int16_t)(dice(2) ? 1 : -1);
}

/* All intervals of an entire image are compared with the next entry: what is wrong is noticed, and
 * libjpeg decodes the rest. */
TEST(a_wrong_entry_is_noticed)
{
    uint32_t n_entries = 0;
    for (uint32_t k = 0; k < PEN_LEN(wrong_kinds); k++) {
        Indexed x;
        CHECK(make_indexed(&wrong_kinds[k], 8, &x));
        PenBox all = {0, 0, x.whole.width, x.whole.height};
        PenEntry *entries = (PenEntry *)(void *)x.entries.data;
        for (uint32_t i = 1; i < x.index.plan.n_entries; i++, n_entries++) {
            PenEntry right = entries[i];
            change_entry(&entries[i], &x.index.plan, i);
            EACH_TIER(t)
            {
                check_box(&x.image, &x.whole, all, PEN_COLOUR_RGB);
                CHECK(decoder->own->given < all.h);
                CHECK_OK_SO_FAR();
            }
            entries[i] = right;
        }
        free_indexed(&x);
    }
    CHECK(n_entries > 100);
}

/* Intervals of more bytes than baseline blocks can have: the copies of the decoder are smaller. */
TEST(intervals_that_are_too_long)
{
    Indexed x;
    JpegSpec spec = {.width = 1200, .height = 900, SAMPLING(1, 1, 1, 1), .quality = 100};
    CHECK(make_indexed(&spec, 16, &x));
    PenBox all = {0, 0, x.whole.width, x.whole.height};
    PenEntry *entries = (PenEntry *)(void *)x.entries.data;
    uint32_t n = x.index.plan.n_entries;
    uint64_t bits = 8 * x.index.scan_bytes, gap = (uint64_t)8 * PEN_OWN_MAX_SEGMENT_BYTES + 100;
    CHECK(bits > (PEN_OWN_LANES + 1) * gap); /* more than the copies of all lanes */
    for (uint32_t longest = 1; longest <= n; longest += n - 1) { /* the first, and the last one */
        for (uint32_t i = 1; i < n; i++)
            entries[i].bit = longest == 1 ? gap + i * ((bits - gap) / n) : i;
        EACH_TIER(t)
        {
            check_box(&x.image, &x.whole, all, PEN_COLOUR_RGB);
            CHECK(decoder->own->given < all.h);
            CHECK_INT(find_status(&x.image, (PenBox){1180, 890, 20, 10}), PEN_OK);
            /* The last row of MCUs: no other interval is needed, so nothing else stops it. */
            check_box(&x.image, &x.whole, (PenBox){1180, 897, 20, 3}, PEN_COLOUR_RGB);
            CHECK_INT(decoder->own->given, 0);
            CHECK_OK_SO_FAR();
        }
    }
    free_indexed(&x);
}

/* Entries in the middle of bytes 0xFF, which have a stuffed byte behind them. */
TEST(every_mcu_is_an_entry)
{
    for (size_t k = 0; k < PEN_LEN(kinds); k++) {
        JpegSpec spec = kinds[k];
        spec.width = 300;
        spec.height = 200;
        spec.quality = 100;
        check_all_boxes(&spec, 1, 3);
        CHECK_OK_SO_FAR();
    }
}

/* What libjpeg refuses, with an index that fits: it has to be refused on all tiers. */
static void check_refused(Indexed *x)
{
    PenBox all = {0, 0, x->whole.width, x->whole.height};
    EACH_TIER(i)
    {
        CHECK_INT(find_status(&x->image, all), PEN_E_DECODE);
        CHECK(decoder->own->given < all.h);
    }
}

TEST(restart_markers_out_of_turn)
{
    for (uint32_t unit = 2; unit <= 8; unit += 6) { /* markers at entries, and inside intervals */
        Indexed x;
        CHECK(make_indexed(&wrong_kinds[3], unit, &x));
        size_t at = x.image.head_bytes;
        while (x.copy[at] != 0xFF || x.copy[at + 1] < 0xD0 || x.copy[at + 1] > 0xD7)
            at++;
        x.copy[at + 1] ^= 1;
        check_refused(&x);
        free_indexed(&x);
        CHECK_OK_SO_FAR();
    }
}

/* A byte too many before a marker, which the index counts: libjpeg passes over it. */
TEST(bytes_before_a_restart_marker)
{
    Indexed x;
    CHECK(make_indexed(&wrong_kinds[2], 11, &x));
    PenEntry *entries = (PenEntry *)(void *)x.entries.data;
    size_t at = x.image.head_bytes + entries[1].bit / 8 - 2;
    uint8_t *longer = malloc(x.image.bytes + 1);
    CHECK(longer);
    memcpy(longer, x.copy, at);
    longer[at] = 0x12;
    memcpy(longer + at + 1, x.copy + at, x.image.bytes - at);
    for (uint32_t i = 1; i < x.index.plan.n_entries; i++)
        entries[i].bit += 8;
    x.index.scan_bytes++;
    x.image.data = longer;
    x.image.bytes++;
    EACH_TIER(i)
    {
        PenBox all = {0, 0, x.whole.width, x.whole.height};
        check_box(&x.image, &x.whole, all, PEN_COLOUR_RGB);
        CHECK(decoder->own->given < all.h);
    }
    free(longer);
    free_indexed(&x);
}

/* Some rows of a box with any index that can be parsed: rows, or more bytes are needed. */
static void check_hostile(const Indexed *x, uint32_t k)
{
    PenBox box = k % 4 ? nth_box(10, x->whole.width, x->whole.height)
                       : (PenBox){0, 0, x->whole.width, x->whole.height};
    uint32_t first, end;
    uint8_t *bytes;
    needed(x, box, &first, &end);
    PenEncoded part = part_of_scan(x, first, end, &bytes);
    EACH_TIER(t)
    {
        int r = find_status(&part, box);
        CHECK(r == PEN_OK || r == PEN_END);
        CHECK_INT(find_status(&x->image, box), PEN_OK);
        CHECK_INT(found.rows, box.h);
    }
    free(bytes);
}

TEST(hostile_indexes_do_no_harm)
{
    for (uint32_t k = 0; k < 600; k++) {
        Indexed x;
        CHECK(make_indexed(&wrong_kinds[k % PEN_LEN(wrong_kinds)], 1 + dice(8), &x));
        PenJpegEntries right = x.index;
        PenBuf hostile = {0}, entries = {0};
        pen__buf_add(&hostile, x.coded.data, x.coded.bytes);
        for (uint32_t i = 1 + dice(4); i; i--)
            hostile.data[dice((uint32_t)hostile.bytes)] ^= (uint8_t)(1u << dice(8));
        if (pen__entries_parse(hostile.data, hostile.bytes, &right.plan, right.scan_bytes, &entries,
                               &x.index, NULL) == PEN_OK)
            check_hostile(&x, k);
        pen__buf_free(&hostile);
        pen__buf_free(&entries);
        free_indexed(&x);
        CHECK_OK_SO_FAR();
    }
}

/* An index of another image, or with larger intervals than the decoder takes. */
TEST(an_index_that_does_not_fit_is_not_used)
{
    Indexed x, other;
    PenBox box = {10, 20, 100, 50};
    CHECK(make_indexed(&wrong_kinds[0], 8, &x));
    CHECK(make_indexed(&(JpegSpec){.width = 240, .height = 97, SAMPLING(2, 2, 1, 1)}, 8, &other));
    EACH_TIER(i)
    {
        decoder->own->given = 0;
        x.image.entries = &other.index;
        check_box(&x.image, &x.whole, box, PEN_COLOUR_RGB);
        CHECK_INT(decoder->own->given, 0);
        x.image.entries = &x.index;
        x.image.head_bytes--; /* where the scan begins is known from the file */
        check_box(&x.image, &x.whole, box, PEN_COLOUR_RGB);
        x.image.head_bytes++;
        CHECK_INT(decoder->own->given, 0);
    }
    free_indexed(&x);
    CHECK(make_indexed(&wrong_kinds[0], 9, &x));
    EACH_TIER(i)
    {
        check_box(&x.image, &x.whole, box, PEN_COLOUR_RGB);
        CHECK_INT(decoder->own->given, 0);
    }
    free_indexed(&x);
    free_indexed(&other);
}

/* A file with entries that somebody made up for it. */
static void forge_index(const JpegSpec *spec, Indexed *ret)
{
    PenTileGeometry g;
    PenEntryPlan plan;
    const PenJpegInfo *info = &ret->header.info;
    *ret = (Indexed){.copy = NULL};
    make_jpeg(spec, &ret->file);
    ret->copy = exact_copy(ret->file.data, ret->file.bytes);
    if (pen__image_decode(ret->copy, ret->file.bytes, limits, &ret->whole, NULL) != PEN_OK ||
        pen__jpeg_header(ret->copy, ret->file.bytes, limits, &ret->header, NULL) != PEN_OK)
        abort();
    pen__tile_geometry(info, &g);
    pen__entry_plan(g.mcus_x * g.mcus_y, info->restart_interval, 4, 3, &plan);
    size_t scan_bytes = ret->file.bytes - info->head_bytes - 2, n = plan.n_entries;
    if (pen__buf_reserve(&ret->entries, n * sizeof(PenEntry)) < 0)
        abort();
    PenEntry *entries = (PenEntry *)(void *)ret->entries.data;
    for (size_t i = 0; i < n; i++)
        entries[i] = (PenEntry){.bit = i * (8 * scan_bytes / n)};
    ret->index = (PenJpegEntries){.plan = plan, .at = entries, .scan_bytes = scan_bytes};
    ret->image = encoded(ret->copy, ret->file.bytes, PEN_STORED_JPEG, &ret->whole);
    ret->image.head_bytes = (uint32_t)info->head_bytes;
    ret->image.entries = &ret->index;
}

/* The decoder is not made for their components and sampling factors. */
TEST(files_that_cannot_have_an_index_are_left_to_libjpeg)
{
    static const JpegSpec others[] = {{.width = 160, .height = 90, .channels = 4},
                                      {.width = 16, .height = 160, SAMPLING(4, 2, 1, 1)},
                                      {.width = 160, .height = 16, SAMPLING(1, 4, 1, 1)},
                                      {.width = 90, .height = 70, SAMPLING(1, 1, 2, 2)},
                                      {.width = 90, .height = 70, SAMPLING(2, 1, 2, 1)}};
    for (size_t k = 0; k < PEN_LEN(others); k++) {
        Indexed x;
        PenImageHeader header;
        forge_index(&others[k], &x);
        PenBox box = {2, 3, x.whole.width - 4, x.whole.height - 5};
        CHECK_INT(pen__image_header(&x.image, limits, &header, NULL), PEN_OK);
        CHECK(pen__region_memory(&header, &box, 0) > 0);
        EACH_TIER(i)
        {
            decoder->own->given = 0;
            check_box(&x.image, &x.whole, box, PEN_COLOUR_RGB);
            CHECK_INT(decoder->own->given, 0);
            x.image.partial = 1;
            CHECK_INT(find_status(&x.image, box), PEN_END);
            x.image.partial = 0;
        }
        free_indexed(&x);
        CHECK_OK_SO_FAR();
    }
}

/* Without the own decoder a part is never enough. */
TEST(libjpeg_needs_the_complete_file)
{
    Indexed x;
    PenBox box = {10, 20, 100, 50};
    uint32_t first, end;
    uint8_t *bytes;
    PenDecoder *turbo = NULL;
    CHECK(make_indexed(&wrong_kinds[0], 8, &x));
    CHECK_INT(pen__decoder_new(&turbo, NULL), PEN_OK);
    CHECK_INT(pen__decoder_use(turbo, "turbo", NULL), PEN_OK);
    decoder = turbo;
    check_box(&x.image, &x.whole, box, PEN_COLOUR_RGB);
    needed(&x, box, &first, &end);
    PenEncoded part = part_of_scan(&x, first, end, &bytes);
    CHECK_INT(find_status(&part, box), PEN_END);
    free(bytes);
    CHECK(first > 0);
    part = part_of_scan(&x, first + 3, end, &bytes); /* too little of it */
    EACH_TIER(i)
    CHECK_INT(find_status(&part, box), PEN_END);
    free(bytes);
    pen__decoder_free(&turbo);
    free_indexed(&x);
}

int main(int argc, char **argv)
{
    TEST_START(argc, argv);
    make_tiers();
    if (pen__entry_scan_new(&scan, NULL) != PEN_OK)
        return 1;
    RUN(every_sampling_and_size);
    RUN(restart_markers);
    RUN(tall_and_wide);
    RUN(every_quality);
    RUN(intervals_that_are_too_long);
    RUN(every_mcu_is_an_entry);
    RUN(a_wrong_entry_is_noticed);
    RUN(restart_markers_out_of_turn);
    RUN(bytes_before_a_restart_marker);
    RUN(hostile_indexes_do_no_harm);
    RUN(an_index_that_does_not_fit_is_not_used);
    RUN(files_that_cannot_have_an_index_are_left_to_libjpeg);
    RUN(libjpeg_needs_the_complete_file);
    for (uint32_t i = 0; i < n_tiers; i++)
        pen__decoder_free(&tiers[i]);
    pen__entry_scan_free(&scan);
    decoder = NULL;
    end_regions();
    return TEST_END();
}
