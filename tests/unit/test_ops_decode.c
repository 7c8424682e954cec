/* SPDX-License-Identifier: Apache-2.0 */
/* Files decoded without a pack, against the crop and resize of the entire image. Files and pixels
 * lie in memory of exactly their size: the sanitizer sees a byte too many. */
#include <stdlib.h>

#include "base/rng.h"
#include "codec/region/region_impl.h"
#include "codec_images.h"
#include "dsp/resample.h"
#include "fault_sweep.h"
#include "ops_reference.h"
#include "test.h"

enum { N_FILES = 9, WIDTH = 83, HEIGHT = 61 };

typedef struct File {
    uint8_t *data;
    size_t bytes;
    uint8_t codec, channels;
    int orientation;
} File;

static File files[N_FILES];

static void keep(int i, const PenBuf *buf, uint8_t codec, int channels, int orientation)
{
    files[i] = (File){malloc(buf->bytes), buf->bytes, codec, (uint8_t)channels, orientation};
    if (!files[i].data)
        abort();
    memcpy(files[i].data, buf->data, buf->bytes);
}

static void add_jpeg(int i, JpegSpec spec)
{
    PenBuf buf = {0};
    spec.width = WIDTH;
    spec.height = HEIGHT;
    make_jpeg(&spec, &buf);
    keep(i, &buf, PEN_STORED_JPEG, spec.channels ? spec.channels : 3, spec.orientation);
    pen__buf_free(&buf);
}

static void add_png(int i, uint32_t channels)
{
    PenPixels px;
    PenBuf buf = {0};
    make_pixels(WIDTH, HEIGHT, channels, 9, &px);
    if (pen__png_encode(&px, &buf, NULL) < 0)
        abort();
    keep(i, &buf, PEN_STORED_PNG, (int)channels, 1);
    pen__pixels_free(&px);
    pen__buf_free(&buf);
}

static void make_files(void)
{
    add_jpeg(0, (JpegSpec){.h = 2, .v = 2});
    add_jpeg(1, (JpegSpec){.channels = 1});
    add_jpeg(2, (JpegSpec){.progressive = true, .h = 2, .v = 1});
    add_jpeg(3, (JpegSpec){.orientation = 6});
    add_jpeg(4, (JpegSpec){.orientation = 2, .h = 2, .v = 2});
    add_jpeg(5, (JpegSpec){.restart_interval = 8});
    add_png(6, 3);
    add_png(7, 4);
    add_png(8, 1);
}

static void free_files(void)
{
    for (int i = 0; i < N_FILES; i++)
        free(files[i].data);
}

static int is_turned(const File *f)
{
    return f->orientation >= 5;
}

static PenDecodeItem item_of(const File *f)
{
    return (PenDecodeItem){.data = f->data, .bytes = f->bytes};
}

/* ---- pixels ---- */

/* The entire image, decoded by libjpeg or libspng and turned; then the crop; then the resize. */
static Pic expect(const File *f, const PenBox *box, const PenDecodeSettings *s)
{
    static const int colours[] = {PEN_COLOUR_RGB, PEN_COLOUR_GREY, PEN_COLOUR_MASK};
    PenBuf slack = {0};
    if (pen__buf_add(&slack, f->data, f->bytes) < 0 || pen__buf_reserve(&slack, PEN_SLACK) < 0)
        abort();
    PenEncoded e = {.data = slack.data,
                    .bytes = f->bytes,
                    .width = WIDTH,
                    .height = HEIGHT,
                    .codec = f->codec,
                    .channels = f->channels};
    Pic p = pic_decode(&e, colours[s->mode], f->orientation);
    Pic crop = {malloc((size_t)box->w * box->h * p.c), box->w, box->h, p.c};
    Pic out = {malloc((size_t)s->width * s->height * p.c), s->width, s->height, p.c};
    if (!crop.data || !out.data)
        abort();
    for (uint32_t y = 0; y < box->h; y++)
        memcpy(pic_at(&crop, 0, y), pic_at(&p, box->x, box->y + y), (size_t)box->w * p.c);
    PenRaster from = {crop.data, crop.w, crop.h, p.c}, to = {out.data, out.w, out.h, p.c};
    int filter = s->mode == PEN_DECODE_MASK ? PEN_FILTER_NEAREST : s->filter;
    if (pen__raster_resample(&from, &to, filter, NULL) < 0)
        abort();
    free(p.data);
    free(crop.data);
    pen__buf_free(&slack);
    return out;
}

/* A size of 0 x 0 is that of the box, a box of 0 x 0 the image. */
static void check_pixels(const File *f, PenBox box, PenDecodeSettings s)
{
    PenError err = {0};
    PenDecodeItem item = item_of(f);
    item.box = box;
    CHECK_INT(pen_decode(&item, &s, &err), PEN_OK);
    item.cap = (size_t)item.size[0] * item.size[1] * (s.mode == PEN_DECODE_RGB ? 3 : 1);
    item.pixels = malloc(item.cap);
    CHECK(item.pixels);
    int r = pen_decode(&item, &s, &err);
    if (!box.w)
        box = (PenBox){.w = is_turned(f) ? HEIGHT : WIDTH, .h = is_turned(f) ? WIDTH : HEIGHT};
    s.width = s.width ? s.width : box.w;
    s.height = s.height ? s.height : box.h;
    Pic p = expect(f, &box, &s);
    size_t at = r < 0 ? 0 : test__mem_diff(item.pixels, p.data, item.cap);
    if (r < 0 || at < item.cap || item.size[0] != s.height || item.size[1] != s.width)
        test__fail(__FILE__, __LINE__,
                   "file %d, mode %d, filter %d, box %u x %u at %u, %u to %u x %u: %s, byte %zu",
                   (int)(f - files), s.mode, s.filter, box.w, box.h, box.x, box.y, s.width,
                   s.height, r < 0 ? err.message : "other pixels", at);
    free(p.data);
    free(item.pixels);
}

static PenDecodeSettings settings_of(int mode, int filter, uint32_t width, uint32_t height)
{
    PenDecodeSettings s;
    pen_decode_settings_init(&s);
    s.mode = mode;
    s.filter = filter;
    s.width = width;
    s.height = height;
    return s;
}

TEST(decode_entire_images)
{
    for (int i = 0; i < N_FILES; i++) {
        check_pixels(&files[i], (PenBox){0}, settings_of(PEN_DECODE_RGB, 0, 0, 0));
        check_pixels(&files[i], (PenBox){0}, settings_of(PEN_DECODE_GRAY, 0, 0, 0));
        check_pixels(&files[i], (PenBox){0}, settings_of(PEN_DECODE_RGB, 0, 24, 31));
        CHECK_OK_SO_FAR();
    }
    check_pixels(&files[1], (PenBox){0}, settings_of(PEN_DECODE_MASK, 0, 0, 0));
    check_pixels(&files[8], (PenBox){0}, settings_of(PEN_DECODE_MASK, 0, 20, 20));
}

TEST(decode_random_boxes)
{
    PenRng rng = pen__rng_init(16, 4);
    for (int n = 0; n < 400; n++) {
        const File *f = &files[pen__rng_below(&rng, N_FILES)];
        uint32_t width = is_turned(f) ? HEIGHT : WIDTH, height = is_turned(f) ? WIDTH : HEIGHT;
        PenBox box = {.w = 1 + (uint32_t)pen__rng_below(&rng, width),
                      .h = 1 + (uint32_t)pen__rng_below(&rng, height)};
        box.x = (uint32_t)pen__rng_below(&rng, width - box.w + 1);
        box.y = (uint32_t)pen__rng_below(&rng, height - box.h + 1);
        uint32_t side = pen__rng_below(&rng, 3) ? 1 + (uint32_t)pen__rng_below(&rng, 90) : 0;
        uint32_t other = side ? 1 + (uint32_t)pen__rng_below(&rng, 90) : 0;
        check_pixels(
            f, box,
            settings_of((int)pen__rng_below(&rng, 2), (int)pen__rng_below(&rng, 5), side, other));
        CHECK_OK_SO_FAR();
    }
}

TEST(decode_without_settings)
{
    PenDecodeItem item = item_of(&files[0]);
    CHECK_INT(pen_decode(&item, NULL, NULL), PEN_OK);
    CHECK_INT(item.size[0], HEIGHT);
    CHECK_INT(item.size[1], WIDTH);
}

/* ---- refusals ---- */

static void check_refused(PenDecodeItem item, const PenDecodeSettings *s, int status,
                          const char *message)
{
    PenError err = {0};
    item.size[0] = 77;
    CHECK_INT(pen_decode(&item, s, &err), status);
    CHECK_STR(err.message, message);
    CHECK_INT(err.status, status);
    CHECK_INT(err.sample, -1);
    CHECK_INT(item.size[0], 77);
    CHECK_INT(pen_decode(&item, s, NULL), status);
}

TEST(refuse_boxes)
{
    static const struct {
        PenBox box;
        const char *found;
    } cases[] = {
        {{0, 0, WIDTH + 1, 1}, "84 x 1 at column 0, row 0"},
        {{1, 0, WIDTH, 1}, "83 x 1 at column 1, row 0"},
        {{0, 1, 1, HEIGHT}, "1 x 61 at column 0, row 1"},
        {{5, 5, 0, 7}, "0 x 7 at column 5, row 5"},
        {{5, 5, 7, 0}, "7 x 0 at column 5, row 5"},
        {{1, 1, 0, 0}, "0 x 0 at column 1, row 1"},
        {{0xffffffff, 0, 0xffffffff, 1}, "4294967295 x 1 at column 4294967295, row 0"},
        {{0, 0x80000000, 1, 0x80000000}, "1 x 2147483648 at column 0, row 2147483648"},
    };
    for (size_t i = 0; i < PEN_LEN(cases); i++) {
        PenDecodeItem item = item_of(&files[0]);
        char text[200];
        item.box = cases[i].box;
        snprintf(text, sizeof text,
                 "box: expected a box inside the image of 83 x 61 pixels, found %s",
                 cases[i].found);
        check_refused(item, NULL, PEN_E_INVALID, text);
        CHECK_OK_SO_FAR();
    }
}

TEST(refuse_settings)
{
    PenDecodeItem item = item_of(&files[0]);
    PenDecodeSettings s = settings_of(3, 0, 0, 0);
    check_refused(item, &s, PEN_E_INVALID, "mode: expected 0 to 2, found 3");
    s = settings_of(-1, 0, 0, 0);
    check_refused(item, &s, PEN_E_INVALID, "mode: expected 0 to 2, found -1");
    s = settings_of(0, 5, 0, 0);
    check_refused(item, &s, PEN_E_INVALID, "filter: expected 0 to 4, found 5");
    s = settings_of(0, -1, 0, 0);
    check_refused(item, &s, PEN_E_INVALID, "filter: expected 0 to 4, found -1");
    s = settings_of(0, 0, 5, 0);
    check_refused(item, &s, PEN_E_INVALID,
                  "size: expected a width and a height, or neither, found 5 x 0");
    s = settings_of(0, 0, 16385, 1);
    check_refused(item, &s, PEN_E_LIMIT,
                  "size: expected at most 16384 pixels per side, found 16385 x 1");
    s = settings_of(0, 0, 1, 0xffffffff);
    check_refused(item, &s, PEN_E_LIMIT,
                  "size: expected at most 16384 pixels per side, found 1 x 4294967295");
    s = settings_of(0, 0, 0, 0);
    s.threads = -1;
    check_refused(item, &s, PEN_E_INVALID, "threads: expected a number, 0 or more, found -1");
}

TEST(refuse_small_memory)
{
    uint8_t byte;
    PenDecodeItem item = item_of(&files[0]);
    item.pixels = &byte;
    item.cap = WIDTH * HEIGHT * 3 - 1;
    check_refused(item, NULL, PEN_E_LIMIT,
                  "pixels: expected memory for 83 x 61 pixels of 3 bytes, found 15188 bytes");
}

TEST(refuse_what_is_no_image)
{
    check_refused((PenDecodeItem){0}, NULL, PEN_E_DECODE,
                  "image: expected a jpeg, png or webp file, found 0 bytes");
    check_refused((PenDecodeItem){.data = "GIF89a", .bytes = 6}, NULL, PEN_E_DECODE,
                  "image: expected a jpeg, png or webp file, found a GIF: convert or remove it");
    PenDecodeSettings s = settings_of(PEN_DECODE_MASK, 0, 0, 0);
    uint8_t pixels[WIDTH * HEIGHT];
    PenDecodeItem item = item_of(&files[0]);
    item.pixels = pixels;
    item.cap = sizeof pixels;
    check_refused(item, &s, PEN_E_DECODE,
                  "mask: expected 1 channel (gray or palette), found 3; store masks as PNG");
}

/* Every file cut off at many places is an error, and never other pixels. */
TEST(refuse_truncated_files)
{
    uint8_t *pixels = malloc(WIDTH * HEIGHT * 3);
    CHECK(pixels);
    for (int i = 0; i < N_FILES; i++) {
        const File *f = &files[i];
        for (size_t bytes = 0; bytes + 40 < f->bytes; bytes += 1 + bytes / 9) {
            PenError err = {0};
            uint8_t *part = malloc(bytes ? bytes : 1);
            CHECK(part);
            memcpy(part, f->data, bytes);
            PenDecodeItem item = {
                .data = part, .bytes = bytes, .pixels = pixels, .cap = WIDTH * HEIGHT * 3};
            int r = pen_decode(&item, NULL, &err);
            free(part);
            CHECK_INT(r, PEN_E_DECODE);
            CHECK(err.message[0]);
        }
    }
    free(pixels);
}

/* ---- batches ---- */

enum { N_BATCH = 40, SIDE = 16, EACH = SIDE * SIDE * 3 };

typedef struct Set {
    PenDecodeItem items[N_BATCH];
    PenError errors[N_BATCH];
    uint8_t pixels[N_BATCH][EACH];
} Set;

static Set *new_set(void)
{
    Set *set = calloc(1, sizeof *set);
    if (!set)
        abort();
    for (int i = 0; i < N_BATCH; i++) {
        set->items[i] = item_of(&files[i % N_FILES]);
        set->items[i].pixels = set->pixels[i];
        set->items[i].cap = EACH;
        set->items[i].error = &set->errors[i];
        set->items[i].status = 77;
    }
    return set;
}

static void check_item(const Set *set, int i, const PenDecodeSettings *s)
{
    uint8_t alone[EACH];
    PenDecodeItem item = set->items[i];
    item.pixels = alone;
    CHECK_INT(set->items[i].status, PEN_OK);
    CHECK_INT(set->items[i].size[0], SIDE);
    CHECK_INT(pen_decode(&item, s, NULL), PEN_OK);
    CHECK_MEM(set->pixels[i], alone, EACH);
}

TEST(batch_same_for_all_threads)
{
    static const int threads[] = {0, 1, 2, 7, 1000};
    PenDecodeSettings s = settings_of(PEN_DECODE_RGB, 0, SIDE, SIDE);
    for (size_t t = 0; t < PEN_LEN(threads); t++) {
        Set *set = new_set();
        PenError err = {0};
        s.threads = threads[t];
        CHECK_INT(pen_decode_batch(set->items, N_BATCH, &s, &err), PEN_OK);
        for (int i = 0; i < N_BATCH; i++)
            check_item(set, i, &s);
        free(set);
        CHECK_OK_SO_FAR();
    }
}

TEST(batch_reports_bad_images)
{
    PenDecodeSettings s = settings_of(PEN_DECODE_RGB, 0, SIDE, SIDE);
    for (s.threads = 1; s.threads <= 3; s.threads++) {
        Set *set = new_set();
        PenError err = {0};
        set->items[31].bytes = 0;
        set->items[12].box = (PenBox){.w = 5000, .h = 1};
        set->items[13].bytes /= 2;
        CHECK_INT(pen_decode_batch(set->items, N_BATCH, &s, &err), PEN_E_INVALID);
        CHECK_INT(err.sample, 12);
        CHECK_STR(err.message, "image 12: box: expected a box inside the image of 61 x 83 pixels, "
                               "found 5000 x 1 at column 0, row 0");
        CHECK_INT(set->items[12].status, PEN_E_INVALID);
        CHECK_STR(set->errors[12].message, err.message);
        CHECK_INT(set->items[13].status, PEN_E_DECODE);
        CHECK_INT(set->items[31].status, PEN_E_DECODE);
        CHECK_INT(set->errors[31].sample, 31);
        CHECK_STR(set->errors[31].message,
                  "image 31: image: expected a jpeg, png or webp file, found 0 bytes");
        for (int i = 0; i < N_BATCH; i++)
            if (i != 12 && i != 13 && i != 31)
                check_item(set, i, &s);
        free(set);
        CHECK_OK_SO_FAR();
    }
}

TEST(batch_without_memory_for_pixels_reads_sizes)
{
    Set *set = new_set();
    for (int i = 0; i < N_BATCH; i++)
        set->items[i].pixels = NULL;
    CHECK_INT(pen_decode_batch(set->items, N_BATCH, NULL, NULL), PEN_OK);
    CHECK_INT(set->items[0].size[0], HEIGHT);
    CHECK_INT(set->items[3].size[0], WIDTH); /* turned */
    free(set);
}

TEST(batch_of_nothing)
{
    CHECK_INT(pen_decode_batch(NULL, 0, NULL, NULL), PEN_OK);
}

TEST(batch_refuses_settings)
{
    PenError err = {0};
    Set *set = new_set();
    PenDecodeSettings s = settings_of(9, 0, 0, 0);
    CHECK_INT(pen_decode_batch(set->items, N_BATCH, &s, &err), PEN_E_INVALID);
    CHECK_INT(err.sample, -1);
    CHECK_INT(set->items[5].status, 77);
    free(set);
}

static int stop(void *ctx, uint64_t done, uint64_t total)
{
    int *calls = ctx;
    if (done < total)
        ++*calls;
    return 1;
}

/* More work than a tenth of a second: the callback stops it. */
TEST(batch_is_cancelled)
{
    enum { MANY = 20000 };
    for (int threads = 1; threads <= 2; threads++) {
        PenDecodeItem *items = calloc(MANY, sizeof *items);
        uint8_t *pixels = malloc((size_t)MANY * EACH);
        PenError err = {0};
        int calls = 0;
        PenDecodeSettings s = settings_of(PEN_DECODE_RGB, 0, SIDE, SIDE);
        s.threads = threads;
        s.progress = stop;
        s.ctx = &calls;
        CHECK(items && pixels);
        for (int i = 0; i < MANY; i++) {
            items[i] = item_of(&files[0]);
            items[i].pixels = pixels + (size_t)i * EACH;
            items[i].cap = EACH;
        }
        int r = pen_decode_batch(items, MANY, &s, &err);
        int status = items[MANY - 1].status;
        free(items);
        free(pixels);
        CHECK_INT(r, PEN_E_CANCELLED);
        CHECK_INT(calls, 1);
        CHECK_INT(status, PEN_E_CANCELLED);
        CHECK(strstr(err.message, "decoding was stopped after "));
    }
}

/* ---- batches of files that are large enough for the own decoder ---- */

enum { N_LARGE = 4, LARGE_WIDTH = 301, LARGE_HEIGHT = 203, LARGE_EACH = 301 * 203 * 3 };

static PenBuf large[N_LARGE];
static PenPixels large_pixels[N_LARGE]; /* by libjpeg alone */

static void make_large(void)
{
    JpegSpec specs[N_LARGE] = {
        {.h = 2, .v = 2}, {.quality = 95}, {.h = 2, .optimal = true}, {.restart_interval = 400}};
    for (int i = 0; i < N_LARGE; i++) {
        PenImageHeader header;
        uint8_t orientation;
        specs[i].width = LARGE_WIDTH;
        specs[i].height = LARGE_HEIGHT;
        make_jpeg(&specs[i], &large[i]);
        CHECK_INT(reference_decode(large[i].data, large[i].bytes, &large_pixels[i]), 0);
        PenEncoded image = {.data = large[i].data, .bytes = large[i].bytes};
        CHECK_INT(pen__file_header(&image, &pen__limits_default, &header, &orientation, NULL),
                  PEN_OK);
        CHECK_INT(pen__region_scans(&header), pen__own_is_on());
    }
}

/* In batches of at least 5, one file has lost its second half. */
static void check_large(size_t n, int threads)
{
    PenDecodeItem *items = calloc(n, sizeof *items);
    uint8_t *pixels = malloc(n * LARGE_EACH);
    PenDecodeSettings s = settings_of(PEN_DECODE_RGB, 0, 0, 0);
    size_t cut = n < 5 ? n : n / 2;
    s.threads = threads;
    if (!items || !pixels)
        abort();
    for (size_t i = 0; i < n; i++)
        items[i] = (PenDecodeItem){.data = large[i % N_LARGE].data,
                                   .bytes = large[i % N_LARGE].bytes / (i == cut ? 2 : 1),
                                   .pixels = pixels + i * LARGE_EACH,
                                   .cap = LARGE_EACH};
    CHECK_INT(pen_decode_batch(items, n, &s, NULL), cut < n ? PEN_E_DECODE : PEN_OK);
    for (size_t i = 0; i < n; i++) {
        CHECK_INT(items[i].status, i == cut ? PEN_E_DECODE : PEN_OK);
        if (i != cut)
            CHECK_MEM(items[i].pixels, large_pixels[i % N_LARGE].data, LARGE_EACH);
    }
    free(items);
    free(pixels);
}

TEST(large_files_in_batches_of_any_size)
{
    static const size_t sizes[] = {1, 2, 3, 5, 8, 13};
    make_large();
    for (size_t n = 0; n < PEN_LEN(sizes); n++)
        for (int threads = 1; threads <= 4; threads++) {
            check_large(sizes[n], threads);
            CHECK_OK_SO_FAR();
        }
    for (int i = 0; i < N_LARGE; i++) {
        pen__buf_free(&large[i]);
        pen__pixels_free(&large_pixels[i]);
    }
}

/* ---- without memory or threads ---- */

static int decode_one(PenError *err)
{
    uint8_t pixels[EACH];
    PenDecodeSettings s = settings_of(PEN_DECODE_RGB, 0, SIDE, SIDE);
    PenDecodeItem item = item_of(&files[3]);
    item.pixels = pixels;
    item.cap = EACH;
    return pen_decode(&item, &s, err);
}

static int decode_two(PenError *err)
{
    uint8_t pixels[2][EACH];
    PenDecodeItem items[2] = {item_of(&files[0]), item_of(&files[6])};
    PenDecodeSettings s = settings_of(PEN_DECODE_RGB, 0, SIDE, SIDE);
    s.threads = 2;
    for (int i = 0; i < 2; i++) {
        items[i].pixels = pixels[i];
        items[i].cap = EACH;
    }
    return pen_decode_batch(items, 2, &s, err);
}

TEST(no_memory)
{
    int points = 0;
    fault_sweep(decode_one, &points);
    CHECK_OK_SO_FAR();
    CHECK(points >= 3);
    fault_sweep(decode_two, &points);
    CHECK_OK_SO_FAR();
    CHECK(points >= 3);
}

int main(int argc, char **argv)
{
    TEST_START(argc, argv);
    make_files();
    RUN(decode_entire_images);
    RUN(decode_random_boxes);
    RUN(decode_without_settings);
    RUN(refuse_boxes);
    RUN(refuse_settings);
    RUN(refuse_small_memory);
    RUN(refuse_what_is_no_image);
    RUN(refuse_truncated_files);
    RUN(batch_same_for_all_threads);
    RUN(batch_reports_bad_images);
    RUN(batch_without_memory_for_pixels_reads_sizes);
    RUN(batch_of_nothing);
    RUN(batch_refuses_settings);
    RUN(batch_is_cancelled);
    RUN(large_files_in_batches_of_any_size);
    RUN(no_memory);
    free_files();
    return TEST_END();
}
