/* SPDX-License-Identifier: Apache-2.0 */
#include "codec/jpeg/pixels/pixels.h"

#include "check.h"

static const char *const jpeg_tiers[] = {"c", "avx2", "avx512", "neon"};

#define FOR_JPEG_TIERS(p, from)                                                                    \
    for (size_t tier_i = from; tier_i < PEN_LEN(jpeg_tiers); tier_i++)                             \
        for (const PenJpegPixels *p = pen__jpeg_pixels_tier(jpeg_tiers[tier_i]); p; p = NULL)

static const char *const class_names[] = {"full", "top4", "dc"};
static const char *const order_names[] = {"natural", "zigzag"};
static const char *const sampling_names[] = {"4:4:4", "4:2:2", "4:4:0", "4:2:0"};

static void *aligned_new(size_t bytes)
{
    void *p = aligned_alloc(64, (bytes + 63) / 64 * 64);
    if (!p)
        abort();
    memset(p, 0, bytes);
    return p;
}

/* ---- blocks --------------------------------------------------------------------------------- */

enum { SMALL, LARGE, EXTREME, ANY, ENDS, VALUES };

static int16_t random_coef(uint32_t kind)
{
    static const int16_t ends[] = {INT16_MIN, INT16_MIN + 1, -16384, -8193, -8192, -1,       0,
                                   1,         8191,          8192,   16384, 32766, INT16_MAX};
    switch (kind) {
    case SMALL:
        return (int16_t)((int32_t)chance(31) - 15);
    case LARGE:
        return (int16_t)((int32_t)chance(2048) - 1024);
    case EXTREME:
        return chance(2) ? INT16_MAX : INT16_MIN;
    case ANY:
        return (int16_t)((int32_t)chance(65536) - 32768);
    default:
        return ends[chance(PEN_LEN(ends))];
    }
}

static void random_quant(uint16_t *quant)
{
    uint32_t kind = chance(4);
    for (int i = 0; i < 64; i++)
        quant[i] = (uint16_t)(kind == 0   ? 1
                              : kind == 1 ? 1 + chance(255)
                              : kind == 2 ? chance(65536)
                                          : 1u << chance(16));
}

static bool in_class(uint32_t natural, int class)
{
    return class == PEN_JPEG_FULL || natural == 0 ||
           (class == PEN_JPEG_TOP4 && natural < 32 && natural % 8 < 4);
}

/* Which of a class are not zero is drawn too: some, all, the first row, the first column. */
static void random_block(int16_t *block, int class)
{
    uint32_t kind = chance(VALUES), shape = chance(5), density = 1 + chance(100);
    for (uint32_t k = 0; k < 64; k++) {
        bool there = in_class(k, class) && (shape != 1 || chance(100) < density) &&
                     (shape != 2 || k < 8) && (shape != 3 || k % 8 == 0);
        block[k] = there ? random_coef(kind) : 0;
    }
}

typedef struct Blocks {
    uint32_t n;
    size_t stride, plane_bytes;
    int16_t *coefs; /* in natural order */
    PenJpegBlock *list;
    uint16_t quant[64];
} Blocks;

static void blocks_new(Blocks *b, uint32_t n, int class)
{
    b->n = n;
    b->stride = 8 * (size_t)n + chance(9);
    b->plane_bytes = 8 * b->stride;
    b->coefs = aligned_new(128 * (size_t)n);
    b->list = aligned_new(n * sizeof *b->list);
    random_quant(b->quant);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t j = chance(i + 1); /* in any order */
        random_block(b->coefs + 64 * (size_t)i, class);
        b->list[i] = b->list[j];
        b->list[j] = (PenJpegBlock){i, 8 * i};
    }
}

static void blocks_free(Blocks *b)
{
    free(b->coefs);
    free(b->list);
}

static int16_t *coefs_in(const Blocks *b, int order)
{
    int16_t *coefs = aligned_new(128 * (size_t)b->n);
    for (size_t i = 0; i < 64 * (size_t)b->n; i++) {
        size_t k = i % 64;
        coefs[i] = b->coefs[i - k + (order == PEN_JPEG_ZIGZAG ? pen__jpeg_natural[k] : k)];
    }
    return coefs;
}

static void compare_idct(const PenJpegPixels *p, const Blocks *b, int order, int class,
                         const uint8_t *expected)
{
    int16_t *coefs = coefs_in(b, order);
    uint8_t *found = guarded_new(b->plane_bytes);
    p->idct[order][class](coefs, b->list, b->n, b->quant, found, b->stride);
    CHECK_MEM(found, expected, b->plane_bytes);
    CHECK(guarded_ok(found, b->plane_bytes));
    for (size_t i = 0; i < 64 * (size_t)b->n; i++)
        CHECK_INT(coefs[i], 0);
    guarded_free(found);
    free(coefs);
}

/* A smaller class goes through the kernels of the larger ones as well. */
static void check_idct(int class)
{
    const PenJpegPixels *c = pen__jpeg_pixels_tier("c");
    for (int i = 0; i < 4000; i++) {
        Blocks b;
        blocks_new(&b, 1 + chance(i % 4 ? 6 : 40), class);
        int16_t *coefs = coefs_in(&b, PEN_JPEG_NATURAL);
        uint8_t *expected = guarded_new(b.plane_bytes);
        c->idct[PEN_JPEG_NATURAL][PEN_JPEG_FULL](coefs, b.list, b.n, b.quant, expected, b.stride);
        FOR_JPEG_TIERS(p, 0)
        for (int order = 0; order < PEN_JPEG_ORDERS; order++)
            for (int other = 0; other <= class; other++)
                compare_idct(p, &b, order, other, expected);
        guarded_free(expected);
        free(coefs);
        blocks_free(&b);
        CHECK_OK_SO_FAR();
    }
}

TEST(idct_full)
{
    check_idct(PEN_JPEG_FULL);
}

TEST(idct_top4)
{
    check_idct(PEN_JPEG_TOP4);
}

TEST(idct_dc)
{
    check_idct(PEN_JPEG_DC);
}

/* Every value of a single coefficient. */
TEST(every_dc)
{
    const PenJpegPixels *c = pen__jpeg_pixels_tier("c");
    Blocks b;
    blocks_new(&b, 64, PEN_JPEG_DC);
    for (int32_t v = INT16_MIN; v <= INT16_MAX; v += 64) {
        for (int32_t i = 0; i < 64; i++)
            b.coefs[64 * i] = (int16_t)(v + i);
        b.quant[0] = (uint16_t)(1 + chance(4));
        int16_t *coefs = coefs_in(&b, PEN_JPEG_NATURAL);
        uint8_t *expected = guarded_new(b.plane_bytes);
        c->idct[PEN_JPEG_NATURAL][PEN_JPEG_FULL](coefs, b.list, b.n, b.quant, expected, b.stride);
        FOR_JPEG_TIERS(p, 0)
        for (int class = 0; class < PEN_JPEG_CLASSES; class ++)
            compare_idct(p, &b, PEN_JPEG_NATURAL, class, expected);
        guarded_free(expected);
        free(coefs);
        CHECK_OK_SO_FAR();
    }
    blocks_free(&b);
}

static int class_of(const int16_t *natural)
{
    int class = PEN_JPEG_DC;
    for (uint32_t k = 1; k < 64; k++)
        while (natural[k] && !in_class(k, class))
            class --;
    return class;
}

TEST(classify)
{
    for (int i = 0; i < 4000; i++) {
        Blocks b;
        uint8_t classes[80];
        blocks_new(&b, 1 + chance(40), (int)chance(PEN_JPEG_CLASSES));
        b.coefs[64 * (size_t)chance(b.n) + chance(64)] = (int16_t)(1u << chance(15));
        FOR_JPEG_TIERS(p, 0)
        for (int order = 0; order < PEN_JPEG_ORDERS; order++) {
            int16_t *coefs = coefs_in(&b, order);
            memset(classes, 77, sizeof classes);
            p->classify[order](coefs, b.n, classes);
            for (uint32_t j = 0; j < b.n; j++)
                CHECK_INT(classes[j], class_of(b.coefs + 64 * (size_t)j));
            CHECK_INT(classes[b.n], 77);
            free(coefs);
        }
        blocks_free(&b);
    }
}

/* ---- rows ----------------------------------------------------------------------------------- */

/* Samples with slack on both sides, and not a byte more. */
static uint8_t *samples_new(size_t n)
{
    uint8_t *p = malloc(n + 2 * PEN_JPEG_SLACK);
    if (!p)
        abort();
    fill_pixels(p, n + 2 * PEN_JPEG_SLACK);
    return p + PEN_JPEG_SLACK;
}

static void samples_free(const uint8_t *p)
{
    free((uint8_t *)(uintptr_t)p - PEN_JPEG_SLACK);
}

static PenJpegRow row_make(uint32_t n, int sampling)
{
    bool half = sampling == PEN_JPEG_422 || sampling == PEN_JPEG_420;
    PenJpegRow r = {.n = n, .odd_y = chance(2), .odd_x = half && chance(2)};
    size_t columns = half ? (n + r.odd_x + 1) / 2 : n;
    r.first = chance(2);
    r.last = chance(2);
    r.plain = half && n <= 4 && chance(3) == 0;
    r.y = samples_new(n);
    r.cb = samples_new(columns);
    r.cr = samples_new(columns);
    r.cb_far = samples_new(columns);
    r.cr_far = samples_new(columns);
    return r;
}

static void row_end(PenJpegRow *r)
{
    samples_free(r->y);
    samples_free(r->cb);
    samples_free(r->cr);
    samples_free(r->cb_far);
    samples_free(r->cr_far);
}

static void check_rgb(int sampling)
{
    const PenJpegPixels *c = pen__jpeg_pixels_tier("c");
    for (int i = 0; i < 3000; i++) {
        uint32_t n = 1 + chance(i % 3 == 0 ? 6 : i % 3 == 1 ? 150 : 1700);
        PenJpegRow row = row_make(n, sampling);
        if (sampling == PEN_JPEG_444 || sampling == PEN_JPEG_422) {
            samples_free(row.cb_far);
            samples_free(row.cr_far);
            row.cb_far = row.cr_far = NULL;
        }
        uint8_t *expected = guarded_new(3 * (size_t)n);
        c->rgb[sampling](&row, expected);
        FOR_JPEG_TIERS(p, 1)
        {
            uint8_t *found = guarded_new(3 * (size_t)n);
            p->rgb[sampling](&row, found);
            CHECK_MEM(found, expected, 3 * (size_t)n);
            CHECK(guarded_ok(found, 3 * (size_t)n));
            guarded_free(found);
        }
        guarded_free(expected);
        if (!row.cb_far)
            row.cb_far = samples_new(1), row.cr_far = samples_new(1);
        row_end(&row);
    }
}

TEST(rgb_444)
{
    check_rgb(PEN_JPEG_444);
}

TEST(rgb_422)
{
    check_rgb(PEN_JPEG_422);
}

TEST(rgb_440)
{
    check_rgb(PEN_JPEG_440);
}

TEST(rgb_420)
{
    check_rgb(PEN_JPEG_420);
}

/* All of chroma, with some of y. */
TEST(every_chroma)
{
    const PenJpegPixels *c = pen__jpeg_pixels_tier("c");
    uint8_t *y = samples_new(256), *cb = samples_new(256), *cr = samples_new(256);
    uint8_t expected[768], found[768];
    PenJpegRow row = {.y = y, .cb = cb, .cr = cr, .n = 256};
    for (uint32_t i = 0; i < 256 * 16; i++) {
        for (uint32_t k = 0; k < 256; k++) {
            cb[k] = (uint8_t)(i / 16);
            cr[k] = (uint8_t)k;
            y[k] = (uint8_t)(i % 16 * 17);
        }
        c->rgb[PEN_JPEG_444](&row, expected);
        FOR_JPEG_TIERS(p, 1)
        {
            p->rgb[PEN_JPEG_444](&row, found);
            CHECK_MEM(found, expected, sizeof found);
        }
    }
    samples_free(y);
    samples_free(cb);
    samples_free(cr);
}

TEST(grey_rgb)
{
    const PenJpegPixels *c = pen__jpeg_pixels_tier("c");
    for (int i = 0; i < 2000; i++) {
        uint32_t n = 1 + chance(300);
        uint8_t *y = samples_new(n), *expected = guarded_new(3 * (size_t)n);
        c->grey_rgb(y, n, expected);
        FOR_JPEG_TIERS(p, 1)
        {
            uint8_t *found = guarded_new(3 * (size_t)n);
            p->grey_rgb(y, n, found);
            CHECK_MEM(found, expected, 3 * (size_t)n);
            CHECK(guarded_ok(found, 3 * (size_t)n));
            guarded_free(found);
        }
        guarded_free(expected);
        samples_free(y);
    }
}

/* ---- time ----------------------------------------------------------------------------------- */

enum { BLOCKS = 96, WIDTH = 512 };

typedef struct Bench {
    const PenJpegPixels *pixels;
    int order, class, sampling;
    int16_t *coefs, *work;
    PenJpegBlock list[BLOCKS];
    uint16_t quant[64];
    PenJpegRow row;
    uint8_t *out, classes[BLOCKS];
} Bench;

/* As between two runs of the entropy decoder: blocks in the first cache are filled anew. */
static void run_fill(void *ctx)
{
    Bench *b = ctx;
    memcpy(b->work, b->coefs, 128 * (size_t)BLOCKS);
}

static void run_idct(void *ctx)
{
    Bench *b = ctx;
    run_fill(ctx);
    b->pixels->idct[b->order][b->class](b->work, b->list, BLOCKS, b->quant, b->out, BLOCKS * 8);
}

static void run_classify(void *ctx)
{
    Bench *b = ctx;
    b->pixels->classify[b->order](b->coefs, BLOCKS, b->classes);
}

static void run_rgb(void *ctx)
{
    Bench *b = ctx;
    b->pixels->rgb[b->sampling](&b->row, b->out);
}

static void run_grey(void *ctx)
{
    Bench *b = ctx;
    b->pixels->grey_rgb(b->row.y, WIDTH, b->out);
}

static void bench_blocks(Bench *b)
{
    double fill = time_of(run_fill, b);
    for (b->order = 0; b->order < PEN_JPEG_ORDERS; b->order++) {
        const char *order = order_names[b->order];
        for (b->class = 0; b->class < PEN_JPEG_CLASSES; b->class ++)
            printf("%-6s %-7s idct %-8s %6.1f ns a block\n", b->pixels->tier, order,
                   class_names[b->class], (time_of(run_idct, b) - fill) / BLOCKS);
        printf("%-6s %-7s classify %10.1f ns a block\n", b->pixels->tier, order,
               time_of(run_classify, b) / BLOCKS);
    }
}

static void bench_rows(Bench *b)
{
    for (b->sampling = 0; b->sampling < PEN_JPEG_SAMPLINGS; b->sampling++) {
        b->row = row_make(WIDTH, b->sampling);
        b->row.plain = false;
        printf("%-6s rgb %s %19.1f ns a row of %d pixels\n", b->pixels->tier,
               sampling_names[b->sampling], time_of(run_rgb, b), WIDTH);
        if (b->sampling == PEN_JPEG_444)
            printf("%-6s grey_rgb %18.1f ns a row of %d pixels\n", b->pixels->tier,
                   time_of(run_grey, b), WIDTH);
        row_end(&b->row);
    }
}

static void bench(void)
{
    Bench b = {.coefs = aligned_new(128 * (size_t)BLOCKS),
               .work = aligned_new(128 * (size_t)BLOCKS),
               .out = aligned_new(BLOCKS * 64)};
    for (uint32_t i = 0; i < BLOCKS; i++) {
        b.list[i] = (PenJpegBlock){i * 5 % BLOCKS, i * 5 % BLOCKS * 8};
        b.coefs[64 * i] = (int16_t)chance(100);
    }
    for (int i = 0; i < 64; i++)
        b.quant[i] = (uint16_t)(1 + chance(30));
    FOR_JPEG_TIERS(p, 0)
    {
        b.pixels = p;
        bench_blocks(&b);
        bench_rows(&b);
    }
    free(b.coefs);
    free(b.work);
    free(b.out);
}

int main(int argc, char **argv)
{
    if (wants_bench(argc, argv)) {
        bench();
        argc = 1;
    }
    TEST_START(argc, argv);
    RUN(idct_full);
    RUN(idct_top4);
    RUN(idct_dc);
    RUN(every_dc);
    RUN(classify);
    RUN(rgb_444);
    RUN(rgb_422);
    RUN(rgb_440);
    RUN(rgb_420);
    RUN(every_chroma);
    RUN(grey_rgb);
    return TEST_END();
}
