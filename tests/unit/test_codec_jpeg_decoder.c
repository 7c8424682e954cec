/* SPDX-License-Identifier: Apache-2.0 */
/* The own decoder of tiled JPEGs, tier by tier: what libjpeg gives, or what libjpeg says is wrong.
 */
#include "codec/jpeg/decoder/decoder.h"

#include <sys/mman.h>

#include "base/sys.h"
#include "own_checks.h"

static PenDecoder *turbo; /* the same calls, by libjpeg */
static Collected expected;

static void make_turbo(void)
{
    if (pen__decoder_new(&turbo, NULL) != PEN_OK ||
        pen__decoder_use(turbo, "turbo", NULL) != PEN_OK)
        abort();
}

static TiledJpeg make_tiled(const JpegSpec *spec, PenPixels *ret_whole)
{
    PenBuf b = {0};
    TiledJpeg t = {0};
    make_jpeg(spec, &b);
    if (tile_jpeg(b.data, b.bytes, &t) != PEN_OK ||
        (ret_whole && pen__image_decode(b.data, b.bytes, limits, ret_whole, NULL) != PEN_OK))
        abort();
    pen__buf_free(&b);
    return t;
}

/* ---- good files ---- */

static void check_all_boxes(const JpegSpec *spec, uint32_t n_boxes)
{
    PenPixels whole = {0};
    TiledJpeg t = make_tiled(spec, &whole);
    uint8_t *copy = exact_copy(t.jpeg.data, t.jpeg.bytes), *bytes = NULL;
    for (uint32_t i = 0; i < n_boxes; i++) {
        PenBox box = nth_box(i, spec->width, spec->height);
        PenEncoded e = whole_tiled(&t), part = part_of(&t, box, 0, &bytes);
        e.data = copy;
        check_own_box(&e, &whole, box, colours[i % 2]);
        check_own_box(&part, &whole, box, colours[(i + 1) % 2]);
        decoder = turbo; /* has to find what it needs in the same part */
        check_box(&part, &whole, box, colours[i % 2]);
        free(bytes);
        CHECK_OK_SO_FAR();
    }
    free(copy);
    tiled_free(&t);
    pen__pixels_free(&whole);
}

TEST(every_sampling_and_size)
{
    check_sizes(check_all_boxes);
}

TEST(tall_and_wide)
{
    check_shapes(check_all_boxes);
}

TEST(every_quality)
{
    check_qualities(check_all_boxes);
}

TEST(masks_have_one_channel)
{
    PenError err = {0};
    PenPixels whole = {0};
    TiledJpeg grey = make_tiled(&(JpegSpec){.width = 50, .height = 40, .channels = 1}, &whole);
    TiledJpeg colour = make_tiled(&(JpegSpec){.width = 50, .height = 40}, NULL);
    PenEncoded e = whole_tiled(&grey);
    PenBox box = {3, 5, 40, 30};
    check_own_box(&e, &whole, box, PEN_COLOUR_MASK);
    e = whole_tiled(&colour);
    EACH_TIER(i)
    CHECK_INT(find_region(decoder, &e, box, PEN_COLOUR_MASK, &found, &err), PEN_E_DECODE);
    pen__pixels_free(&whole);
    tiled_free(&grey);
    tiled_free(&colour);
}

/* ---- bounds ---- */

/* Memory that ends where a page ends that cannot be touched: no sanitizer looks at what gathers
 * read and scatters write. */
static struct {
    uint8_t *at;
    size_t bytes;
} fenced[256];

static size_t fence_pages(size_t bytes)
{
    return (bytes + 16 + 4095) / 4096 * 4096;
}

static void *fenced_alloc(size_t bytes)
{
    size_t n = fence_pages(bytes);
    uint8_t *p = mmap(NULL, n + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED || mprotect(p + n, 4096, PROT_NONE))
        abort();
    p += n - (bytes + 15) / 16 * 16;
    for (size_t i = 0; i < PEN_LEN(fenced); i++)
        if (!fenced[i].at) {
            fenced[i].at = p;
            fenced[i].bytes = bytes;
            return p;
        }
    abort();
}

static void fenced_release(void *p)
{
    for (size_t i = 0; i < PEN_LEN(fenced); i++)
        if (p && fenced[i].at == p) {
            size_t n = fence_pages(fenced[i].bytes);
            munmap((uint8_t *)p + (fenced[i].bytes + 15) / 16 * 16 - n, n + 4096);
            fenced[i].at = NULL;
            return;
        }
    free(p); /* from before */
}

static void *fenced_resize(void *p, size_t bytes)
{
    uint8_t *q = fenced_alloc(bytes);
    for (size_t i = 0; p && i < PEN_LEN(fenced); i++)
        if (fenced[i].at == p)
            memcpy(q, p, PEN_MIN(bytes, fenced[i].bytes));
    fenced_release(p);
    return q;
}

/* Leaves only so many bytes of each segment. */
static void cut_segments(TiledJpeg *t, uint32_t bytes)
{
    size_t at = t->head_bytes;
    for (uint32_t i = 0; i < t->n_segments; i++) {
        uint32_t n = t->segment_bytes[i] - 2;
        n -= PEN_MIN(n, bytes);
        size_t left = t->segment_bytes[i] - n;
        memmove(t->jpeg.data + at + left - 2, t->jpeg.data + at + left - 2 + n,
                t->jpeg.bytes - at - left + 2 - n);
        t->jpeg.bytes -= n;
        t->segment_bytes[i] -= n;
        at += left;
    }
}

static PenEncoded fence(const TiledJpeg *t)
{
    PenEncoded e = whole_tiled(t);
    size_t bytes = (e.bytes + 15) / 16 * 16;
    e.data = (uint8_t *)fenced_alloc(bytes) + bytes - e.bytes;
    memcpy(e.data, t->jpeg.data, e.bytes);
    return e;
}

static void unfence(const PenEncoded *e)
{
    fenced_release(e->data - ((e->bytes + 15) / 16 * 16 - e->bytes));
}

/* A box that ends with the data: as it is, and with tokens that may go on behind the end of
 * segments. */
static void check_fenced(const JpegSpec *spec)
{
    TiledJpeg t = make_tiled(spec, NULL);
    PenBox box = {spec->width / 3, 9, spec->width - spec->width / 3, spec->height - 9};
    PenEncoded e = fence(&t);
    CHECK_INT(find_region(decoder, &e, box, PEN_COLOUR_RGB, &found, NULL), PEN_OK);
    CHECK_INT(decoder->own->given, box.h);
    for (size_t i = t.head_bytes; i < e.bytes - 1; i += 1 + dice(40))
        if (e.data[i] != 0xFF && e.data[i - 1] != 0xFF)
            e.data[i] ^= (uint8_t)(1u << dice(7));
    (void)find_region(decoder, &e, box, PEN_COLOUR_RGB, &found, NULL);
    unfence(&e);
    tiled_free(&t);
}

/* Segments that have nothing: all of their tokens would come from elsewhere. */
static void check_cut(const JpegSpec *spec)
{
    TiledJpeg t = make_tiled(spec, NULL);
    cut_segments(&t, 0);
    PenEncoded e = fence(&t);
    PenBox all = {0, 0, spec->width, spec->height};
    CHECK_INT(find_region(decoder, &e, all, PEN_COLOUR_RGB, &found, NULL), PEN_E_DECODE);
    unfence(&e);
    tiled_free(&t);
}

TEST(nothing_is_touched_behind_buffers)
{
    PenSys sys = pen__sys_real;
    sys.alloc = fenced_alloc;
    sys.resize = fenced_resize;
    sys.release = fenced_release;
    pen__buf_free(&found.pixels);
    for (int tier = 0; tier < PEN_CPU_TIERS; tier++)
        for (uint32_t i = 0; i < 12 * PEN_LEN(kinds); i++) {
            PenDecoder *before = decoder;
            JpegSpec spec = kinds[i % PEN_LEN(kinds)];
            spec.width = 3 + dice(300);
            spec.height = 10 + dice(200);
            spec.quality = i % 2 ? 100 : 0;
            decoder = NULL;
            pen__sys = &sys;
            CHECK_INT(pen__decoder_new(&decoder, NULL), PEN_OK);
            if (pen__decoder_use(decoder, pen__cpu_name(tier), NULL) == PEN_OK)
                (i % 3 ? check_fenced : check_cut)(&spec);
            pen__decoder_free(&decoder);
            pen__buf_free(&found.pixels);
            pen__sys = &pen__sys_real;
            decoder = before;
            CHECK_OK_SO_FAR();
        }
}

static int fill_byte;

static void *filled_alloc(size_t bytes)
{
    void *p = malloc(bytes);
    return p ? memset(p, fill_byte, bytes) : p;
}

static void check_filled(const char *tier, uint32_t i)
{
    PenPixels whole = {0};
    JpegSpec spec = kinds[i % PEN_LEN(kinds)];
    spec.width = 1 + dice(300);
    spec.height = 1 + dice(200);
    TiledJpeg t = make_tiled(&spec, &whole);
    PenEncoded e = whole_tiled(&t);
    CHECK_INT(pen__decoder_new(&decoder, NULL), PEN_OK);
    if (pen__decoder_use(decoder, tier, NULL) == PEN_OK)
        check_boxes(&e, &whole, i % 10 ? 1 : 12);
    pen__decoder_free(&decoder);
    tiled_free(&t);
    pen__pixels_free(&whole);
}

/* Kernels compute more pixels than there are, of what happens to lie there: with every first image
 * of a decoder that is something else. */
TEST(what_was_in_memory_is_not_seen)
{
    static const int fills[] = {0x00, 0xFF, 0x80, 0x35};
    PenSys sys = pen__sys_real;
    sys.alloc = filled_alloc;
    pen__sys = &sys;
    for (int tier = 0; tier < PEN_CPU_TIERS; tier++)
        for (uint32_t i = 0; i < (TEST_SANITIZED ? 20 : 100); i++) {
            fill_byte = fills[i % PEN_LEN(fills)];
            check_filled(pen__cpu_name(tier), i);
            if (test__now.state != TEST_PASSED)
                break;
        }
    pen__sys = &pen__sys_real;
}

/* ---- damaged files ---- */

/* The same bytes and rows, or the same error, as by libjpeg. Not so when libjpeg finds damage
 * outside of the box: `strict` is for boxes of all pixels. */
static void check_same(const PenEncoded *e, PenBox box, bool strict)
{
    PenError turbo_err = {0};
    int by_turbo = find_region(turbo, e, box, PEN_COLOUR_RGB, &expected, &turbo_err);
    EACH_TIER(i)
    {
        PenError err = {0};
        int r = find_region(decoder, e, box, PEN_COLOUR_RGB, &found, &err);
        if (by_turbo < 0 && !strict)
            continue;
        if (r != by_turbo)
            printf("%s: %s; libjpeg: %s\n", decoder->own->pixels->tier, err.message,
                   turbo_err.message);
        CHECK_INT(r, by_turbo);
        if (r < 0)
            continue;
        CHECK_INT(found.rows, expected.rows);
        CHECK_MEM(found.pixels.data, expected.pixels.data, expected.pixels.bytes);
    }
}

/* Bits turned, and bytes that mean something. */
static uint8_t damage(uint8_t byte, uint32_t way)
{
    static const uint8_t special[] = {0x00, 0xFF, 0xD0, 0xD9, 0x7F, 0x01};
    return (uint8_t)(way < 8 ? byte ^ 1u << way : special[way - 8]);
}

enum { DAMAGES = 14 };

/* Every byte in one way at least, neighbours in others. */
static void bytes_of(const JpegSpec *spec, uint32_t step)
{
    TiledJpeg t = make_tiled(spec, NULL);
    uint8_t *copy = exact_copy(t.jpeg.data, t.jpeg.bytes);
    PenEncoded e = whole_tiled(&t);
    PenBox all = {0, 0, spec->width, spec->height}, corner = {1, 1, 5, 5};
    e.data = copy;
    for (size_t i = 0; i < t.jpeg.bytes; i++)
        for (uint32_t way = (uint32_t)i % step; way < DAMAGES; way += step) {
            uint8_t before = copy[i];
            copy[i] = damage(before, way);
            check_same(&e, all, true);
            check_same(&e, corner, false);
            copy[i] = before;
            if (test__now.state == TEST_FAILED)
                printf("byte %zu of %zu (head %u), way %u\n", i, t.jpeg.bytes, t.head_bytes, way);
            CHECK_OK_SO_FAR();
        }
    free(copy);
    tiled_free(&t);
}

TEST(every_byte_damaged)
{
    for (size_t k = 0; k < PEN_LEN(kinds); k++) {
        JpegSpec spec = kinds[k];
        spec.width = 56;
        spec.height = 33;
        bytes_of(&spec, TEST_SANITIZED ? DAMAGES : 9);
        CHECK_OK_SO_FAR();
    }
}

/* Where the entropy bytes of a segment end. */
static size_t end_of(const TiledJpeg *t, uint32_t segment)
{
    size_t at = t->head_bytes;
    for (uint32_t i = 0; i <= segment; i++)
        at += t->segment_bytes[i];
    return at - 2;
}

static void insert(TiledJpeg *t, size_t at, const char *bytes, size_t n)
{
    if (pen__buf_reserve(&t->jpeg, n) < 0)
        abort();
    memmove(t->jpeg.data + at + n, t->jpeg.data + at, t->jpeg.bytes - at);
    memcpy(t->jpeg.data + at, bytes, n);
    t->jpeg.bytes += n;
}

static void cut_out(TiledJpeg *t, size_t at, size_t n)
{
    memmove(t->jpeg.data + at, t->jpeg.data + at + n, t->jpeg.bytes - at - n);
    t->jpeg.bytes -= n;
}

static void check_whole(const TiledJpeg *t, int status)
{
    PenEncoded e = whole_tiled(t);
    PenBox all = {0, 0, e.width, e.height};
    uint8_t *copy = exact_copy(e.data, e.bytes);
    e.data = copy;
    check_same(&e, all, true);
    CHECK_OK_SO_FAR();
    CHECK_INT(find_region(turbo, &e, all, PEN_COLOUR_RGB, &found, NULL), status);
    free(copy);
}

TEST(segments_that_are_too_short_or_too_long)
{
    for (size_t k = 0; k < PEN_LEN(kinds); k++)
        for (uint32_t i = 0; i < 8; i++) {
            JpegSpec spec = kinds[k];
            spec.width = 150;
            spec.height = 141;
            TiledJpeg t = make_tiled(&spec, NULL);
            uint32_t segment = dice(t.n_segments), n = 1 + i % 4;
            if (i < 4) { /* bits that are needed are not there */
                cut_out(&t, end_of(&t, segment) - n, n);
                t.segment_bytes[segment] -= n;
                check_whole(&t, PEN_E_DECODE);
            } else { /* more than are needed */
                insert(&t, end_of(&t, segment), "\x12\x34\xFF\x00\x56", 5);
                t.segment_bytes[segment] += 5;
                check_whole(&t, PEN_OK);
                EACH_TIER(tier)
                CHECK_INT(decoder->own->given, spec.height);
            }
            tiled_free(&t);
            CHECK_OK_SO_FAR();
        }
}

/* Bytes that fill up before a marker: not the own decoder's, which has given some rows by then. */
TEST(libjpeg_goes_on_where_it_has_to)
{
    for (size_t k = 0; k < PEN_LEN(kinds); k++) {
        JpegSpec spec = kinds[k];
        spec.width = 333;
        spec.height = 1200;
        TiledJpeg t = make_tiled(&spec, NULL);
        uint32_t segment = t.n_segments - 3;
        insert(&t, end_of(&t, segment), "\xFF", 1);
        t.segment_bytes[segment]++;
        check_whole(&t, PEN_OK);
        EACH_TIER(i)
        CHECK(decoder->own->given > 0 && decoder->own->given < spec.height);
        tiled_free(&t);
        CHECK_OK_SO_FAR();
    }
}

/* ---- heads that are not ours ---- */

static void check_head(TiledJpeg *t, int status)
{
    PenPixels whole = {0};
    PenBox box = {0, 100, 60, 20};
    uint8_t *bytes = NULL;
    check_whole(t, status);
    CHECK_OK_SO_FAR();
    if (status != PEN_OK)
        return;
    /* And in part: what is read does not depend on who decodes it. */
    CHECK_INT(pen__image_decode(t->jpeg.data, t->jpeg.bytes, limits, &whole, NULL), PEN_OK);
    PenEncoded e = part_of(t, box, 0, &bytes);
    EACH_TIER(i)
    check_box(&e, &whole, box, PEN_COLOUR_RGB);
    free(bytes);
    pen__pixels_free(&whole);
}

TEST(heads_that_are_left_to_libjpeg)
{
    JpegSpec spec = {.width = 75, .height = 141, SAMPLING(2, 1, 1, 1)};
    TiledJpeg t = make_tiled(&spec, NULL);
    size_t sof = find_marker_offset(t.jpeg.data, t.jpeg.bytes, 0xC0, 0);
    size_t sos = find_marker_offset(t.jpeg.data, t.jpeg.bytes, 0xDA, 0);
    check_head(&t, PEN_OK);
    /* No JFIF, and letters for components: RGB. */
    cut_out(&t, 2, 18);
    t.head_bytes -= 18;
    for (size_t i = 0; i < 3; i++)
        t.jpeg.data[sof - 18 + 10 + 3 * i] = t.jpeg.data[sos - 18 + 5 + 2 * i] = (uint8_t) "RGB"[i];
    check_head(&t, PEN_OK);
    /* An Adobe marker says the contrary. */
    insert(&t, 2,
           "\xFF\xEE\x00\x0E"
           "Adobe\0\x64\0\0\0\0\x01",
           16);
    t.head_bytes += 16;
    check_head(&t, PEN_OK);
    /* The usual numbers for components, but the marker says RGB. */
    t.jpeg.data[17] = 0;
    for (size_t i = 0; i < 3; i++)
        t.jpeg.data[sof - 2 + 10 + 3 * i] = t.jpeg.data[sos - 2 + 5 + 2 * i] = (uint8_t)(i + 1);
    check_head(&t, PEN_OK);
    /* No Huffman table for DC: libjpeg takes that of the standard, which ends in damage. */
    size_t dht = find_marker_offset(t.jpeg.data, t.jpeg.bytes, 0xC4, 0);
    size_t n = 2 + (size_t)t.jpeg.data[dht + 2] * 256 + t.jpeg.data[dht + 3];
    cut_out(&t, dht, n);
    t.head_bytes -= (uint32_t)n;
    check_head(&t, PEN_E_DECODE);
    tiled_free(&t);
}

/* What calls itself tiled and cannot be is refused by its header, before memory is reserved. */
TEST(headers_that_are_not_of_tiled_files)
{
    static const JpegSpec others[] = {{.channels = 4},
                                      {SAMPLING(4, 1, 1, 1)},
                                      {SAMPLING(2, 2, 2, 1)},
                                      {.channels = 1, .h = 2, .v = 2}};
    uint32_t table[8] = {100, 100, 100, 100, 100, 100, 100, 100};
    for (size_t i = 0; i < PEN_LEN(others); i++) {
        PenBuf b = {0};
        PenImageHeader header;
        JpegSpec spec = others[i];
        spec.width = 64;
        spec.height = 48;
        spec.restart_interval = PEN_TILE_MCUS;
        make_jpeg(&spec, &b);
        PenEncoded e = {.data = b.data,
                        .bytes = b.bytes,
                        .width = 64,
                        .height = 48,
                        .codec = PEN_STORED_JPEG,
                        .tiled = 1,
                        .end_segment = 8};
        CHECK_INT(pen__image_header(&e, limits, &header, NULL), PEN_OK);
        CHECK_OK_SO_FAR();
        e.head_bytes = (uint32_t)header.u.jpeg.info.head_bytes;
        e.segment_bytes = table;
        CHECK_INT(pen__image_header(&e, limits, &header, NULL), PEN_E_DECODE);
        pen__buf_free(&b);
    }
}

/* A box outside of the image takes no memory of its own: it is refused later. */
TEST(memory_of_a_box_outside)
{
    TiledJpeg t = make_tiled(&(JpegSpec){.width = 64, .height = 48}, NULL);
    PenEncoded e = whole_tiled(&t);
    PenImageHeader header;
    CHECK_INT(pen__image_header(&e, limits, &header, NULL), PEN_OK);
    CHECK_OK_SO_FAR();
    for (uint32_t x = 0; x < 2; x++) {
        uint64_t bytes = pen__region_memory(&header, &(PenBox){x ? 1000 : 1, 2, 30, 20}, 0);
        CHECK(bytes > 1 << 20 && bytes < 4 << 20);
    }
    tiled_free(&t);
}

/* All codes of a Huffman table moved to some length: more than there are of that length, or just as
 * many, which is one too many, since there is no code of ones. */
TEST(huffman_tables_that_are_too_full)
{
    for (uint32_t length = 1; length <= 16; length++)
        for (int table = 0; table < 4; table++) {
            JpegSpec spec = {.width = 75, .height = 41, .quality = 30};
            TiledJpeg t = make_tiled(&spec, NULL);
            size_t dht = find_marker_offset(t.jpeg.data, t.jpeg.bytes, 0xC4, table);
            uint32_t n = 0;
            for (size_t i = 0; i < 16; i++) {
                n += t.jpeg.data[dht + 5 + i];
                t.jpeg.data[dht + 5 + i] = 0;
            }
            t.jpeg.data[dht + 4 + length] = (uint8_t)n;
            PenEncoded e = whole_tiled(&t);
            check_same(&e, (PenBox){0, 0, e.width, e.height}, true);
            tiled_free(&t);
            CHECK_OK_SO_FAR();
        }
}

int main(int argc, char **argv)
{
    TEST_START(argc, argv);
    make_tiers();
    make_turbo();
    RUN(every_sampling_and_size);
    RUN(tall_and_wide);
    RUN(every_quality);
    RUN(masks_have_one_channel);
    RUN(nothing_is_touched_behind_buffers);
    RUN(what_was_in_memory_is_not_seen);
    RUN(every_byte_damaged);
    RUN(segments_that_are_too_short_or_too_long);
    RUN(libjpeg_goes_on_where_it_has_to);
    RUN(heads_that_are_left_to_libjpeg);
    RUN(headers_that_are_not_of_tiled_files);
    RUN(memory_of_a_box_outside);
    RUN(huffman_tables_that_are_too_full);
    EACH_TIER(i)
    pen__decoder_free(&decoder);
    pen__decoder_free(&turbo);
    pen__buf_free(&found.pixels);
    pen__buf_free(&expected.pixels);
    return TEST_END();
}
