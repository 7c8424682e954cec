/* SPDX-License-Identifier: Apache-2.0 */
/* The entry index of JPEG files: which MCUs have one, as bytes, and as found in files. */
#include "codec/jpeg/entries.h"

#include <stdlib.h>

#include "base/attr.h"
#include "base/bytes.h"
#include "codec/jpeg/decoder/scan.h"
#include "codec_images.h"
#include "slow_scan.h"
#include "test.h"

static const PenLimits *const limits = &pen__limits_default;
static uint32_t dice_state = 1;

static uint32_t dice(uint32_t below)
{
    dice_state = dice_state * 1664525u + 1013904223u;
    return (uint32_t)((uint64_t)dice_state * below >> 32);
}

/* ---- plan ---- */

static void check_plan(uint32_t n, uint32_t restart, uint32_t unit)
{
    PenEntryPlan p;
    pen__entry_plan(n, restart, unit, 3, &p);
    uint32_t next = 0;
    for (uint32_t i = 0; i < p.n_entries; i++) {
        uint32_t mcus = pen__entry_mcus(&p, i);
        CHECK_INT(pen__entry_first(&p, i), next);
        CHECK(mcus >= 1 && mcus <= unit);
        for (uint32_t m = next; m < next + mcus; m++)
            CHECK_INT(pen__entry_of(&p, m), i);
        bool behind = next == 0 || (restart && next % restart == 0);
        CHECK_INT(pen__entry_is_restart(&p, i), behind);
        if (restart && restart >= unit) /* none goes over a marker */
            CHECK_INT(next / restart, (next + mcus - 1) / restart);
        if (restart && next && behind)
            CHECK_INT(pen__entry_marker(&p, next), 0xD0 + (next / restart + 7) % 8);
        next += mcus;
    }
    CHECK_INT(next, n);
    CHECK(pen__entry_is_restart(&p, p.n_entries)); /* the end */
}

TEST(every_mcu_is_in_one_interval)
{
    for (uint32_t n = 1; n < 60; n++)
        for (uint32_t restart = 0; restart < 24; restart++)
            for (uint32_t unit = 1; unit < 18; unit++) {
                check_plan(n, restart, unit);
                CHECK_OK_SO_FAR();
            }
    check_plan(8192 * 4, 65535, 8);
    check_plan(8192 * 4, 3, 65535);
}

/* ---- as bytes ---- */

static void check_same(const PenJpegEntries *found, const PenJpegEntries *expected)
{
    CHECK_INT(found->plan.n_entries, expected->plan.n_entries);
    CHECK_INT(found->scan_bytes, expected->scan_bytes);
    for (uint32_t i = 0; i < expected->plan.n_entries; i++) {
        CHECK_INT(found->at[i].bit, expected->at[i].bit);
        CHECK_MEM(found->at[i].dc, expected->at[i].dc, sizeof found->at[i].dc);
    }
}

static int parse(const PenBuf *b, const PenJpegEntries *of, PenBuf *entries, PenJpegEntries *ret)
{
    PenError err = {0};
    int r = pen__entries_parse(b->data, b->bytes, &of->plan, of->scan_bytes, entries, ret, &err);
    return r < 0 && (err.status != r || !err.message[0]) ? 99 : r;
}

/* What was written is read again; a byte less or more is refused. */
static void check_coding(const PenJpegEntries *e)
{
    PenBuf coded = {0}, entries = {0};
    PenJpegEntries found;
    CHECK_INT(pen__entries_write(e, &coded, NULL), PEN_OK);
    CHECK_INT(parse(&coded, e, &entries, &found), PEN_OK);
    check_same(&found, e);
    CHECK_OK_SO_FAR();
    for (PenBuf cut = coded; cut.bytes;) {
        cut.bytes--;
        CHECK_INT(parse(&cut, e, &entries, &found), PEN_E_DECODE);
    }
    pen__buf_add(&coded, "\0", 1);
    CHECK_INT(parse(&coded, e, &entries, &found), PEN_E_DECODE);
    pen__buf_free(&coded);
    pen__buf_free(&entries);
}

static uint64_t draw_distance(void)
{
    static const uint32_t awkward[] = {1, 2, 0xFFFE, 0xFFFF, 0x10000, 0x10001, 80000, 1 << 30};
    return dice(3) ? 1 + dice(9000) : awkward[dice(PEN_LEN(awkward))];
}

static void draw_entries(const PenEntryPlan *plan, PenEntry *ret)
{
    static const int16_t awkward[] = {0, -1, 1, 63, 64, -64, -65, INT16_MIN, INT16_MAX};
    ret[0] = (PenEntry){0};
    for (uint32_t i = 1; i < plan->n_entries; i++) {
        ret[i] = (PenEntry){.bit = ret[i - 1].bit + draw_distance()};
        if (pen__entry_is_restart(plan, i)) {
            ret[i].bit = pen__padded(ret[i].bit + 17, 8);
            continue;
        }
        for (uint32_t c = 0; c < plan->components; c++)
            ret[i].dc[c] = dice(2) ? (int16_t)(dice(400) - 200) : awkward[dice(PEN_LEN(awkward))];
    }
}

TEST(indexes_survive_their_coding)
{
    PenEntry entries[80];
    for (uint32_t k = 0; k < 400; k++) {
        PenJpegEntries e = {.at = entries};
        uint32_t unit = 1 + dice(9), restart = dice(3) ? 0 : 1 + dice(20);
        pen__entry_plan(1 + dice(60), restart, unit, k % 2 ? 3 : 1, &e.plan);
        CHECK(e.plan.n_entries <= PEN_LEN(entries));
        draw_entries(&e.plan, entries);
        e.scan_bytes = entries[e.plan.n_entries - 1].bit / 8 + 1 + dice(100);
        check_coding(&e);
        CHECK_OK_SO_FAR();
    }
}

TEST(entries_too_far_apart)
{
    PenEntry entries[] = {{.bit = 0}, {.bit = UINT32_MAX}};
    PenJpegEntries e = {.at = entries};
    PenBuf out = {0};
    pen__entry_plan(16, 0, 8, 1, &e.plan);
    CHECK_INT(pen__entries_write(&e, &out, NULL), PEN_OK);
    entries[1].bit++;
    CHECK_INT(pen__entries_write(&e, &out, NULL), PEN_E_LIMIT);
    pen__buf_free(&out);
}

/* Whatever is accepted is the one coding of what it says. */
TEST(hostile_bytes_are_refused_or_mean_one_thing)
{
    uint32_t accepted = 0;
    for (uint32_t k = 0; k < 30000; k++) {
        uint8_t data[64];
        PenBuf coded = {.data = data, .bytes = dice(40)}, entries = {0}, again = {0};
        PenJpegEntries e = {.scan_bytes = 1 + dice(100000)}, found;
        uint32_t restart = dice(4) ? 0 : 1 + dice(12);
        pen__entry_plan(1 + dice(40), restart, 1 + dice(12), dice(2) ? 3 : 1, &e.plan);
        for (size_t i = 0; i < coded.bytes; i++)
            data[i] = (uint8_t)(dice(4) ? dice(8) : dice(256));
        int r = parse(&coded, &e, &entries, &found);
        CHECK(r == PEN_OK || r == PEN_E_DECODE);
        if (r == PEN_OK) {
            accepted++;
            CHECK_INT(pen__entries_write(&found, &again, NULL), PEN_OK);
            CHECK_INT(again.bytes, coded.bytes);
            CHECK_MEM(again.data, data, coded.bytes);
        }
        pen__buf_free(&entries);
        pen__buf_free(&again);
    }
    CHECK(accepted > 300);
}

/* Two entries of a grey image, the second of them as these bytes, in a scan of 20,000 bytes. */
static int parse_one(const char *bytes, size_t n, uint32_t restart)
{
    PenBuf coded = {0}, entries = {0};
    PenJpegEntries e = {.scan_bytes = 20000}, found;
    pen__buf_add(&coded, bytes, n);
    pen__entry_plan(16, restart, 8, 1, &e.plan);
    int r = parse(&coded, &e, &entries, &found);
    pen__buf_free(&coded);
    pen__buf_free(&entries);
    return r;
}

#define PARSE_ONE(bytes, restart) parse_one(bytes, sizeof(bytes) - 1, restart)

TEST(what_an_index_must_not_say)
{
    CHECK_INT(PARSE_ONE("\x20\x03\x05", 0), PEN_OK);
    CHECK_INT(PARSE_ONE("\x00\x00\x05", 0), PEN_E_DECODE);                 /* no distance */
    CHECK_INT(PARSE_ONE("\xFF\xFF\xFF\xFF\x00\x00\x05", 0), PEN_OK);       /* 65,535 bits */
    CHECK_INT(PARSE_ONE("\xFF\xFF\xFE\xFF\x00\x00\x05", 0), PEN_E_DECODE); /* fits 16 bits */
    CHECK_INT(PARSE_ONE("\xFF\xFF\xFF\x70\x02\x00\x05", 0), PEN_OK);       /* 159,999: the last */
    CHECK_INT(PARSE_ONE("\xFF\xFF\x00\x71\x02\x00\x05", 0), PEN_E_DECODE); /* the end */
    CHECK_INT(PARSE_ONE("\x20\x03\x85\x00", 0), PEN_E_DECODE);             /* a needless byte */
    CHECK_INT(PARSE_ONE("\x20\x03\xFF\xFF\x03", 0), PEN_OK);               /* -32,768 */
    CHECK_INT(PARSE_ONE("\x20\x03\x80\x80\x04", 0), PEN_E_DECODE);         /* 32,768 */
    CHECK_INT(PARSE_ONE("\x20\x03\x81\x80\x04", 0), PEN_E_DECODE);         /* -32,769 */
    CHECK_INT(PARSE_ONE("\x20\x03\x80\x80\x80\x01", 0), PEN_E_DECODE);     /* four bytes */
    CHECK_INT(PARSE_ONE("\x20\x03", 8), PEN_OK);                           /* behind a marker */
    CHECK_INT(PARSE_ONE("\x21\x03", 8), PEN_E_DECODE);                     /* inside a byte */
    CHECK_INT(PARSE_ONE("\x10\x00", 8), PEN_E_DECODE);                     /* only the marker */
    CHECK_INT(PARSE_ONE("\x18\x00", 8), PEN_OK);
}

/* A few bytes must not allocate for a huge image. */
TEST(few_bytes_cannot_have_many_entries)
{
    PenBuf entries = {0};
    PenJpegEntries e;
    PenEntryPlan plan;
    pen__entry_plan(67000000, 0, 1, 3, &plan);
    CHECK_INT(pen__entries_parse((const uint8_t *)"", 0, &plan, 100, &entries, &e, NULL),
              PEN_E_DECODE);
    CHECK_INT(entries.cap, 0);
}

/* ---- files ---- */

static PenEntryScan *scan;

static int find_entries(const PenBuf *file, uint32_t unit, PenJpegHeader *ret_header,
                        PenJpegEntries *ret, const char **ret_why)
{
    PenError err = {0};
    int r = pen__jpeg_header(file->data, file->bytes, limits, ret_header, &err);
    *ret_why = r < 0 ? "header" : "";
    if (r < 0)
        return r;
    r = pen__entry_scan(scan, ret_header, file->data, file->bytes, unit, ret, ret_why, &err);
    return err.message[0] ? 99 : r;
}

static void check_as_slow(const PenBuf *file, const PenJpegHeader *header,
                          const PenJpegEntries *found)
{
    SlowScan slow;
    bool good = read_slowly(file->data, file->bytes, header, &slow);
    if (good) {
        CHECK_INT(found->plan.n_mcus, slow.n_mcus);
        CHECK_INT(found->scan_bytes, slow.scan_bytes);
        for (uint32_t i = 0; i < found->plan.n_entries; i++) {
            const PenEntry *e = &slow.mcus[pen__entry_first(&found->plan, i)];
            CHECK_INT(found->at[i].bit, e->bit);
            CHECK_MEM(found->at[i].dc, e->dc, sizeof e->dc);
        }
    }
    free(slow.mcus);
    CHECK(good);
}

static void check_file(const PenBuf *file, uint32_t unit)
{
    PenJpegHeader header;
    PenJpegEntries found;
    const char *why;
    int r = find_entries(file, unit, &header, &found, &why);
    if (r == PEN_END && unit == 48) { /* more than some of them have */
        CHECK_STR(why, "small");
        return;
    }
    CHECK_STR(why ? why : "", "");
    CHECK_INT(r, PEN_OK);
    check_as_slow(file, &header, &found);
    CHECK_OK_SO_FAR();
    check_coding(&found);
}

static const JpegSpec indexable[] = {
    {.width = 97, .height = 61},
    {.width = 97, .height = 61, .channels = 1},
    {.width = 97, .height = 61, .channels = 1, .h = 2, .v = 2},
    {.width = 97, .height = 61, .h = 2},
    {.width = 97, .height = 61, .v = 2},
    {.width = 97, .height = 61, .h = 2, .v = 2},
    {.width = 200, .height = 133, .h = 2, .v = 2, .quality = 100},
    {.width = 133, .height = 200, .h = 2, .v = 2, .quality = 3},
    {.width = 97, .height = 61, .h = 2, .v = 2, .optimal = true},
    {.width = 97, .height = 61, .h = 2, .v = 2, .restart_interval = 1},
    {.width = 97, .height = 61, .h = 2, .v = 2, .restart_interval = 7},
    {.width = 97, .height = 61, .restart_interval = 3},
    {.width = 97, .height = 61, .restart_interval = 8},
    {.width = 97, .height = 61, .channels = 1, .restart_interval = 13},
    {.width = 97, .height = 61, .restart_interval = 60000},
    {.width = 97, .height = 61, .h = 2, .v = 2, .orientation = 6},
};

TEST(entries_are_where_a_slow_decoder_finds_them)
{
    static const uint32_t units[] = {1, 2, 5, 8, 16, 48};
    PenBuf file = {0};
    for (size_t i = 0; i < PEN_LEN(indexable); i++) {
        make_jpeg(&indexable[i], &file);
        for (size_t u = 0; u < PEN_LEN(units); u++) {
            check_file(&file, units[u]);
            CHECK_OK_SO_FAR();
        }
    }
    pen__buf_free(&file);
}

static void check_why(const PenBuf *file, const char *expected)
{
    PenJpegHeader header;
    PenJpegEntries found;
    const char *why;
    CHECK_INT(find_entries(file, 8, &header, &found, &why), PEN_END);
    CHECK_STR(why, expected);
}

TEST(files_without_an_index_say_why)
{
    static const struct {
        JpegSpec spec;
        const char *why;
    } kinds[] = {
        {{.width = 97, .height = 61, .arithmetic = true}, "arithmetic"},
        {{.width = 97, .height = 61, .arithmetic = true, .progressive = true}, "arithmetic"},
        {{.width = 97, .height = 61, .progressive = true}, "progressive"},
        {{.width = 97, .height = 61, .channels = 4}, "CMYK"},
        {{.width = 97, .height = 61, .separate = true}, "several scans"},
        {{.width = 97, .height = 61, .h = 4}, "sampling"},
        {{.width = 97, .height = 61, .h = 2, .chroma_h = 2}, "sampling"},
        {{.width = 97, .height = 61, .rgb = true}, "not YCbCr"},
        {{.width = 64, .height = 8}, "small"},
    };
    PenBuf file = {0};
    for (size_t i = 0; i < PEN_LEN(kinds); i++) {
        make_jpeg(&kinds[i].spec, &file);
        check_why(&file, kinds[i].why);
        CHECK_OK_SO_FAR();
    }
    make_jpeg(&(JpegSpec){.width = 97, .height = 61}, &file);
    size_t sof = find_marker_offset(file.data, file.bytes, 0xC0, 0);
    file.data[sof + 1] = 0xC1;
    check_file(&file, 8); /* extended sequential, 8 bits */
    file.data[sof + 4] = 12;
    check_why(&file, "12 bit");
    file.data[sof + 4] = 8;
    file.data[find_marker_offset(file.data, file.bytes, 0xDA, 0) + 8] = 0x22; /* tables of Cb */
    check_why(&file, "unusual header");
    pen__buf_free(&file);
}

/* Some programs align markers; what else is between them libjpeg warns of. */
TEST(bytes_between_markers)
{
    PenBuf source = {0}, file = {0};
    make_jpeg(&(JpegSpec){.width = 97, .height = 61}, &source);
    size_t tables = find_marker_offset(source.data, source.bytes, 0xDB, 0);
    for (int i = 0; i < 2; i++) {
        PenJpegInfo info;
        file.bytes = 0;
        pen__buf_add(&file, source.data, tables);
        pen__buf_add(&file, i ? "\xFF\x00" : "\xFF\xFF", 2);
        pen__buf_add(&file, source.data + tables, source.bytes - tables);
        CHECK_INT(pen__jpeg_info(file.data, file.bytes, limits, &info, NULL), PEN_OK);
        CHECK_INT(info.lead_bytes, tables + 2);
        if (i)
            check_why(&file, "unusual header");
        else
            check_file(&file, 8);
    }
    pen__buf_free(&source);
    pen__buf_free(&file);
}

/* Photoshop writes such files: no JFIF, and a marker that says YCbCr or RGB. */
TEST(adobe_markers_say_the_colour)
{
    static const struct {
        const char *transform;
        const char *why;
    } kinds[] = {{"\x01", ""}, {"\x00", "not YCbCr"}, {"\x02", "not YCbCr"}};
    PenBuf source = {0}, file = {0};
    make_jpeg(&(JpegSpec){.width = 97, .height = 61}, &source);
    size_t after = 2 + 2 + pen__load16be(source.data + 4); /* SOI, JFIF */
    for (size_t i = 0; i < PEN_LEN(kinds); i++) {
        file.bytes = 0;
        pen__buf_add(&file,
                     "\xFF\xD8\xFF\xEE\x00\x0E"
                     "Adobe\0\x64\0\0\0\0",
                     17);
        pen__buf_add(&file, kinds[i].transform, 1);
        pen__buf_add(&file, source.data + after, source.bytes - after);
        if (kinds[i].why[0])
            check_why(&file, kinds[i].why);
        else
            check_file(&file, 8);
        CHECK_OK_SO_FAR();
    }
    pen__buf_free(&source);
    pen__buf_free(&file);
}

/* Bits are counted in 32 bits, also those of the tokens that are read behind the end. */
TEST(bits_that_would_not_fit_are_not_read)
{
    PenBuf file = {0};
    PenJpegHeader header;
    PenJpegEntries found;
    const char *why = "";
    make_jpeg(&indexable[0], &file);
    CHECK_INT(pen__jpeg_header(file.data, file.bytes, limits, &header, NULL), PEN_OK);
    for (size_t more = 0; more < 64; more++) { /* none of the bytes is looked at */
        size_t bytes = header.info.head_bytes + UINT32_MAX / 8 - more;
        CHECK_INT(pen__entry_scan(scan, &header, file.data, bytes, 8, &found, &why, NULL), PEN_END);
        CHECK_STR(why, "large");
        CHECK_OK_SO_FAR();
    }
    pen__buf_free(&file);
}

TEST(truncated_files_have_no_index)
{
    PenBuf file = {0};
    for (size_t i = 0; i < PEN_LEN(indexable); i += 3) {
        make_jpeg(&indexable[i], &file);
        size_t head = find_marker_offset(file.data, file.bytes, 0xDA, 0) + 14;
        for (PenBuf cut = file; cut.bytes > head + 9; cut.bytes -= 1 + dice(20)) {
            PenJpegHeader header;
            PenJpegEntries found;
            const char *why;
            if (cut.bytes == file.bytes)
                continue;
            CHECK_INT(find_entries(&cut, 4, &header, &found, &why), PEN_END);
            CHECK_STR(why, "truncated");
        }
    }
    pen__buf_free(&file);
}

TEST(what_follows_the_scan)
{
    PenBuf file = {0};
    make_jpeg(&(JpegSpec){.width = 97, .height = 61}, &file);
    pen__buf_add(&file, "\xFF\xD8\xFF\xE1 trailers", 13); /* behind EOI: of no interest */
    check_file(&file, 8);
    file.bytes -= 15;
    pen__buf_add(&file, "\x12\xFF\xD9", 3); /* a byte too many */
    check_why(&file, "damaged");
    file.bytes -= 3;
    pen__buf_add(&file, "\xFF\xD3\xFF\xD9", 4); /* another marker */
    check_why(&file, "damaged");
    pen__buf_free(&file);
}

/* Up to three bits of it flipped, from byte `from` on, `times` times: what has an index has that of
 * the slow decoder. Adds the number of those to `indexed`. */
static void check_damaged(const JpegSpec *spec, uint32_t from, uint32_t times, uint32_t *indexed)
{
    PenBuf file = {0};
    make_jpeg(spec, &file);
    for (uint32_t k = 0; k < times; k++) {
        PenBuf damaged = {0};
        PenJpegHeader header;
        PenJpegEntries found;
        const char *why;
        pen__buf_add(&damaged, file.data, file.bytes);
        for (uint32_t j = 0; j <= k % 3; j++)
            damaged.data[from + dice((uint32_t)file.bytes - from)] ^= (uint8_t)(1u << dice(8));
        if (find_entries(&damaged, 5, &header, &found, &why) == PEN_OK) {
            ++*indexed;
            check_as_slow(&damaged, &header, &found);
        }
        pen__buf_free(&damaged);
        CHECK_OK_SO_FAR();
    }
    pen__buf_free(&file);
}

TEST(damaged_files_have_the_right_index_or_none)
{
    uint32_t indexed = 0, n = 300 * PEN_LEN(indexable);
    for (size_t i = 0; i < PEN_LEN(indexable); i++) {
        check_damaged(&indexable[i], 2, 300, &indexed);
        CHECK_OK_SO_FAR();
    }
    CHECK(indexed > n / 50 && indexed < n / 2);
}

/* ---- files that several lanes read ---- */

static const JpegSpec large[] = {
    {.width = 640, .height = 480, .h = 2, .v = 2},
    {.width = 400, .height = 300, .quality = 100},
    {.width = 701, .height = 300, .h = 2, .quality = 60, .optimal = true},
    {.width = 333, .height = 600, .v = 2, .quality = 97},
    {.width = 900, .height = 500, .channels = 1},
    {.width = 900, .height = 700, .quality = 1, .h = 2, .v = 2},
    {.width = 640, .height = 480, .h = 2, .v = 2, .restart_interval = 311},
};

TEST(lanes_find_what_a_slow_decoder_finds)
{
    PenBuf file = {0};
    for (size_t i = 0; i < PEN_LEN(large); i++) {
        make_jpeg(&large[i], &file);
        check_file(&file, 8);
        CHECK_OK_SO_FAR();
    }
    pen__buf_free(&file);
}

TEST(lanes_in_damaged_files)
{
    uint32_t indexed = 0;
    for (size_t i = 0; i < PEN_LEN(large); i++) {
        check_damaged(&large[i], 700, 12, &indexed);
        CHECK_OK_SO_FAR();
    }
    CHECK(indexed > 0);
}

/* A part of the index is the beginning of it, and the entry that ends it. */
static void check_part(const PenBuf *file, uint32_t last)
{
    PenJpegHeader header;
    PenJpegEntries all, part;
    PenEntryScan *other = NULL;
    const char *why;
    CHECK_INT(pen__jpeg_header(file->data, file->bytes, limits, &header, NULL), PEN_OK);
    CHECK_INT(find_entries(file, pen__entry_unit(&header.info), &header, &all, &why), PEN_OK);
    CHECK_INT(pen__entry_scan_new(&other, NULL), PEN_OK);
    CHECK_INT(pen__entry_scan_to(other, &header, file->data, file->bytes, last, &part, NULL),
              PEN_OK);
    uint32_t n = pen__entry_of(&all.plan, last) + 2;
    CHECK_INT(part.plan.n_entries, all.plan.n_entries);
    if (n > all.plan.n_entries)
        CHECK_INT(part.scan_bytes, all.scan_bytes);
    for (uint32_t i = 0; i < all.plan.n_entries; i++) {
        const PenEntry *e = &all.at[PEN_MIN(i, n - 1)];
        CHECK_INT(part.at[i].bit, e->bit);
        CHECK_MEM(part.at[i].dc, e->dc, sizeof e->dc);
    }
    CHECK(part.scan_bytes * 8 >= part.at[part.plan.n_entries - 1].bit);
    pen__entry_scan_free(&other);
}

TEST(a_part_of_the_index)
{
    PenBuf file = {0};
    for (size_t i = 0; i < PEN_LEN(large) + PEN_LEN(indexable); i++) {
        const JpegSpec *spec = i < PEN_LEN(large) ? &large[i] : &indexable[i - PEN_LEN(large)];
        PenJpegHeader header;
        PenTileGeometry g;
        make_jpeg(spec, &file);
        CHECK_INT(pen__jpeg_header(file.data, file.bytes, limits, &header, NULL), PEN_OK);
        pen__tile_geometry(&header.info, &g);
        if (g.mcus_x * g.mcus_y <= pen__entry_unit(&header.info))
            continue; /* "small" */
        for (uint32_t k = 0; k < 6; k++)
            check_part(&file, k ? dice(g.mcus_x * g.mcus_y) : g.mcus_x * g.mcus_y - 1);
        CHECK_OK_SO_FAR();
    }
    pen__buf_free(&file);
}

/* ---- long codes ---- */

typedef struct Writer {
    PenBuf *out;
    uint32_t bits, n;
} Writer;

static void put_bits(Writer *w, uint32_t value, uint32_t n)
{
    for (; n; n--) {
        w->bits = w->bits << 1 | (value >> (n - 1) & 1);
        if (++w->n < 8)
            continue;
        uint8_t byte = (uint8_t)w->bits;
        pen__buf_add(w->out, &byte, 1);
        if (byte == 0xFF)
            pen__buf_add(w->out, "", 1);
        w->n = 0;
    }
}

/* Symbol 0, or the end of the block, has a code of 1 bit; all others have codes of 16 bits. */
static void put_table(PenBuf *out, uint8_t number, const uint8_t *symbols, uint8_t n)
{
    uint8_t head[21] = {0xFF, 0xC4, 0, (uint8_t)(19 + n), number, 1};
    head[20] = (uint8_t)(n - 1);
    pen__buf_add(out, head, sizeof head);
    pen__buf_add(out, symbols, n);
}

/* A grey file in which nearly all codes have 16 bits, behind `flat` blocks of 2 bits. */
static void make_long_codes(uint32_t side, uint32_t flat, PenBuf *out)
{
    static const uint8_t dc[] = {0, 1, 2, 3, 4, 5, 6, 7, 8}, ac[] = {0, 1, 2, 0xF0, 0x71, 9};
    uint8_t quant[69] = {0xFF, 0xDB, 0, 67};
    uint8_t frame[] = {0xFF, 0xC0, 0, 11, 8, 0, 0, 0, 0, 1, 1, 0x11, 0};
    int32_t sum = 0;
    out->bytes = 0;
    memset(quant + 5, 1, 64);
    frame[5] = frame[7] = (uint8_t)(side >> 8);
    frame[6] = frame[8] = (uint8_t)side;
    pen__buf_add(out, "\xFF\xD8", 2);
    pen__buf_add(out, quant, sizeof quant);
    pen__buf_add(out, frame, sizeof frame);
    put_table(out, 0, dc, sizeof dc);
    put_table(out, 0x10, ac, sizeof ac);
    pen__buf_add(out, "\xFF\xDA\0\x08\x01\x01\0\0\x3F\0", 10);
    Writer w = {.out = out};
    for (uint32_t i = 0; i < side / 8 * (side / 8); i++) {
        uint32_t size = 1 + dice(8), half = 1u << (size - 1);
        bool up = sum < 0; /* the sum stays small */
        if (i < flat) {
            put_bits(&w, 0, 2);
            continue;
        }
        put_bits(&w, 0x8000 + size - 1, 16);
        put_bits(&w, (up ? half : 0) + dice(half), size);
        sum += up ? 100 : -100;
        for (uint32_t k = dice(4); k; k--) {
            uint32_t symbol = 1 + dice(sizeof ac - 1);
            put_bits(&w, 0x8000 + symbol - 1, 16);
            put_bits(&w, 0x2AAA, ac[symbol] & 15);
        }
        put_bits(&w, 0, 1);
    }
    put_bits(&w, 0xFF, (8 - w.n) % 8);
    pen__buf_add(out, "\xFF\xD9", 2);
}

TEST(long_codes)
{
    PenBuf file = {0};
    for (uint32_t side = 64; side <= 1024; side *= 2) {
        make_long_codes(side, 0, &file);
        check_file(&file, 8);
        make_long_codes(side, side * side / 128, &file); /* more in a lane than it can hold */
        check_file(&file, 8);
        CHECK_OK_SO_FAR();
    }
    pen__buf_free(&file);
}

int main(int argc, char **argv)
{
    TEST_START(argc, argv);
    if (pen__entry_scan_new(&scan, NULL) != PEN_OK)
        return 1;
    RUN(every_mcu_is_in_one_interval);
    RUN(indexes_survive_their_coding);
    RUN(entries_too_far_apart);
    RUN(hostile_bytes_are_refused_or_mean_one_thing);
    RUN(what_an_index_must_not_say);
    RUN(few_bytes_cannot_have_many_entries);
    RUN(entries_are_where_a_slow_decoder_finds_them);
    RUN(files_without_an_index_say_why);
    RUN(bytes_between_markers);
    RUN(adobe_markers_say_the_colour);
    RUN(bits_that_would_not_fit_are_not_read);
    RUN(truncated_files_have_no_index);
    RUN(what_follows_the_scan);
    RUN(damaged_files_have_the_right_index_or_none);
    RUN(lanes_find_what_a_slow_decoder_finds);
    RUN(lanes_in_damaged_files);
    RUN(a_part_of_the_index);
    RUN(long_codes);
    pen__entry_scan_free(&scan);
    return TEST_END();
}
