/* SPDX-License-Identifier: Apache-2.0 */
/* Boxes of JPEGs at 1/2, 1/4 and 1/8 of their size, tier by tier: the pixels of libjpeg-turbo with
 * that scale_denom, whether the file is tiled, has an entry index or neither. */
#include "base/machine/cpu.h"
#include "codec/jpeg/decoder/decoder_impl.h"
#include "codec/jpeg/decoder/scan.h"
#include "codec/region/region_impl.h"
#include "region_checks.h"

static PenDecoder *tiers[PEN_CPU_TIERS + 1]; /* the last: libjpeg */
static uint32_t n_tiers;
static PenEntryScan *scan;

static void make_decoders(void)
{
    for (int i = 0; i <= PEN_CPU_TIERS; i++) {
        PenDecoder *d = NULL;
        if (pen__decoder_new(&d, NULL) != PEN_OK)
            abort();
        if (pen__decoder_use(d, i < PEN_CPU_TIERS ? pen__cpu_name(i) : "turbo", NULL) == PEN_OK)
            tiers[n_tiers++] = d;
        else
            pen__decoder_free(&d);
    }
}

static bool is_turbo(uint32_t tier)
{
    return tier + 1 == n_tiers;
}

/* A file and what libjpeg makes of it at 1 / 2^shrink. */
typedef struct File {
    PenBuf bytes;
    PenPixels full; /* size and channels only */
    PenPixels whole[PEN_SHRINK_MOST + 1];
} File;

static void make_file(const JpegSpec *spec, File *f)
{
    *f = (File){.full = {.width = spec->width,
                         .height = spec->height,
                         .channels = spec->channels ? (uint32_t)spec->channels : 3}};
    make_jpeg(spec, &f->bytes);
    for (unsigned s = 1; s <= PEN_SHRINK_MOST; s++)
        if (reference_shrink(f->bytes.data, f->bytes.bytes, 1u << s, &f->whole[s]) != 0)
            abort();
}

static void free_file(File *f)
{
    pen__buf_free(&f->bytes);
    for (unsigned s = 1; s <= PEN_SHRINK_MOST; s++)
        pen__pixels_free(&f->whole[s]);
}

static void check_shrunk(uint32_t tier, const PenEncoded *e, const File *f, const PenRegion *r)
{
    PenError err = {0};
    int status = find_shrunk(tiers[tier], e, r, &found, &err);
    size_t different = count_different(&f->whole[r->shrink], r->box, r->colour, &found);
    if (status != PEN_OK || different)
        printf("decoder %u, %u x %u, 1/%u, box %u, %u, %u x %u, colour %d: %s\n", tier, e->width,
               e->height, 1u << r->shrink, r->box.x, r->box.y, r->box.w, r->box.h, r->colour,
               err.message);
    CHECK_INT(status, PEN_OK);
    CHECK_INT(different, 0);
    if (!is_turbo(tier) && (e->tiled || e->entries))
        CHECK_INT(tiers[tier]->own->given, r->box.h); /* libjpeg had nothing to do */
}

static PenRegion nth_region(const File *f, uint32_t n)
{
    uint32_t shrink = 1 + n % PEN_SHRINK_MOST;
    const PenPixels *w = &f->whole[shrink];
    return (PenRegion){.box = nth_box(n / PEN_SHRINK_MOST, w->width, w->height),
                       .colour = colours[n % 2],
                       .shrink = shrink};
}

/* By libjpeg alone. */
static void check_plain(const File *f, uint32_t n)
{
    uint8_t *copy = exact_copy(f->bytes.data, f->bytes.bytes);
    PenEncoded e = encoded(copy, f->bytes.bytes, PEN_STORED_JPEG, &f->full);
    for (uint32_t i = 0; i < n; i++) {
        PenRegion r = nth_region(f, i);
        check_shrunk(n_tiers - 1, &e, f, &r);
        CHECK_OK_SO_FAR();
    }
    free(copy);
}

static void check_tiled(const File *f, uint32_t n)
{
    TiledJpeg t = {0};
    CHECK_INT(tile_jpeg(f->bytes.data, f->bytes.bytes, &t), PEN_OK);
    for (uint32_t i = 0; i < n; i++) {
        PenRegion r = nth_region(f, i);
        uint8_t *bytes = NULL;
        PenEncoded e = part_of_shrunk(&t, r.box, r.shrink, dice(3) ? 0 : dice(20), &bytes);
        for (uint32_t tier = 0; tier < n_tiers; tier++)
            check_shrunk(tier, &e, f, &r);
        free(bytes);
        CHECK_OK_SO_FAR();
    }
    tiled_free(&t);
}

/* Own decoders get the part that a loader reads, libjpeg the complete file. */
static void check_indexed(const File *f, uint32_t n)
{
    const char *why = NULL;
    PenJpegHeader header;
    PenJpegEntries index;
    uint8_t *copy = exact_copy(f->bytes.data, f->bytes.bytes);
    CHECK_INT(pen__jpeg_header(copy, f->bytes.bytes, limits, &header, NULL), PEN_OK);
    int has = pen__entry_scan(scan, &header, copy, f->bytes.bytes, pen__entry_unit(&header.info),
                              &index, &why, NULL);
    for (uint32_t i = 0; has == PEN_OK && i < n; i++) {
        PenRegion r = nth_region(f, i);
        PenEncoded e = encoded(copy, f->bytes.bytes, PEN_STORED_JPEG, &f->full);
        e.entries = &index;
        e.head_bytes = (uint32_t)header.info.head_bytes;
        check_shrunk(n_tiers - 1, &e, f, &r);
        uint8_t *bytes = NULL;
        PenEncoded part = shrunk_part_of_indexed(&e, &header.info, r.box, r.shrink, &bytes);
        for (uint32_t tier = 0; tier + 1 < n_tiers; tier++)
            check_shrunk(tier, &part, f, &r);
        free(bytes);
        CHECK_OK_SO_FAR();
    }
    free(copy);
}

static const JpegSpec kinds[] = {
    {SAMPLING(1, 1, 1, 1)}, {SAMPLING(2, 1, 1, 1)}, {SAMPLING(1, 2, 1, 1)},
    {SAMPLING(2, 2, 1, 1)}, {.channels = 1},
};

TEST(tiled_and_indexed)
{
    static const uint32_t widths[] = {1, 7, 16, 17, 33, 65, 129, 250};
    static const uint32_t heights[] = {1, 15, 17, 33, 130};
    for (size_t i = 0; i < PEN_LEN(widths) * PEN_LEN(heights); i++)
        for (size_t k = 0; k < PEN_LEN(kinds); k++) {
            JpegSpec spec = kinds[k];
            File f;
            spec.width = widths[i % PEN_LEN(widths)];
            spec.height = heights[i / PEN_LEN(widths)];
            spec.restart_interval = i % 3 ? 0 : 5;
            make_file(&spec, &f);
            check_tiled(&f, 36);
            check_indexed(&f, 36);
            check_plain(&f, 12);
            free_file(&f);
            CHECK_OK_SO_FAR();
        }
}

/* Rows one by one, where those above and below lie in other segments. */
TEST(row_by_row)
{
    for (size_t k = 0; k < PEN_LEN(kinds); k++) {
        JpegSpec spec = kinds[k];
        TiledJpeg t = {0};
        File f;
        spec.width = 45;
        spec.height = 140;
        make_file(&spec, &f);
        CHECK_INT(tile_jpeg(f.bytes.data, f.bytes.bytes, &t), PEN_OK);
        for (uint32_t s = 1; s <= PEN_SHRINK_MOST; s++)
            for (uint32_t y = 0; y < f.whole[s].height; y++) {
                PenRegion r = {{1, y, 2, 1}, PEN_COLOUR_RGB, s, NULL, NULL, NULL};
                uint8_t *bytes = NULL;
                PenEncoded e = part_of_shrunk(&t, r.box, s, 0, &bytes);
                for (uint32_t tier = 0; tier < n_tiers; tier++)
                    check_shrunk(tier, &e, &f, &r);
                free(bytes);
                CHECK_OK_SO_FAR();
            }
        tiled_free(&t);
        free_file(&f);
    }
}

/* What only libjpeg decodes. */
TEST(other_files)
{
    static const JpegSpec others[] = {
        {SAMPLING(2, 2, 1, 1), .progressive = true},
        {SAMPLING(2, 1, 1, 1), .progressive = true},
        {.channels = 1, .progressive = true},
        {SAMPLING(4, 1, 1, 1)},
        {SAMPLING(4, 2, 1, 1)},
        {SAMPLING(1, 4, 1, 1)},
        {SAMPLING(3, 1, 1, 1)},
        {SAMPLING(2, 2, 2, 1)},
        {SAMPLING(2, 2, 1, 2)},
        {SAMPLING(1, 1, 2, 2)},
        {SAMPLING(2, 2, 1, 1), .rgb = true},
        {SAMPLING(2, 2, 1, 1), .separate = true},
        {SAMPLING(2, 1, 1, 1), .arithmetic = true},
    };
    for (size_t k = 0; k < PEN_LEN(others); k++)
        for (uint32_t i = 0; i < 4; i++) {
            JpegSpec spec = others[k];
            File f;
            spec.width = 30 + 41 * i;
            spec.height = 17 + 30 * i;
            make_file(&spec, &f);
            check_plain(&f, 60);
            free_file(&f);
            CHECK_OK_SO_FAR();
        }
}

TEST(refused)
{
    PenPixels p = {0};
    PenError err = {0};
    uint8_t pixels[64 + PEN_SLACK] = {0};
    PenEncoded raw = {.data = pixels,
                      .bytes = 64,
                      .width = 8,
                      .height = 8,
                      .codec = PEN_STORED_RAW,
                      .channels = 1};
    PenRegion r = {.box = {0, 0, 4, 4}, .colour = PEN_COLOUR_GREY, .shrink = 1};
    CHECK_INT(find_shrunk(tiers[0], &raw, &r, &found, &err), PEN_E_INVALID);
    CHECK(strstr(err.message, "shrink: expected 0, or up to 3 for a JPEG, found 1 for raw"));
    File f;
    make_file(&(JpegSpec){.width = 33, .height = 20}, &f);
    p = f.full;
    PenEncoded e = encoded(f.bytes.data, f.bytes.bytes, PEN_STORED_JPEG, &p);
    r = (PenRegion){.box = {0, 0, 17, 10}, .colour = PEN_COLOUR_RGB, .shrink = 1};
    CHECK_INT(find_shrunk(tiers[0], &e, &r, &found, &err), PEN_OK);
    r.box.w = 18;
    CHECK_INT(find_shrunk(tiers[0], &e, &r, &found, &err), PEN_E_INVALID);
    r.box.w = 1;
    r.box.h = 1;
    r.shrink = 4;
    CHECK_INT(find_shrunk(tiers[0], &e, &r, &found, &err), PEN_E_INVALID);
    free_file(&f);
}

int main(int argc, char **argv)
{
    TEST_START(argc, argv);
    make_decoders();
    if (pen__entry_scan_new(&scan, NULL) != PEN_OK)
        return 1;
    RUN(tiled_and_indexed);
    RUN(row_by_row);
    RUN(other_files);
    RUN(refused);
    for (uint32_t i = 0; i < n_tiers; i++)
        pen__decoder_free(&tiers[i]);
    pen__entry_scan_free(&scan);
    pen__buf_free(&found.pixels);
    return TEST_END();
}
