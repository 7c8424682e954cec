/* SPDX-License-Identifier: Apache-2.0 */
/* Images that are broken in every way, or made to cost much, in packs whose checksums are right.
 * The loader replaces what is damaged and refuses the rest; it never crashes, and no image takes
 * more than two seconds. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/attr.h"
#include "base/rng.h"
#include "codec/codec.h"
#include "lib/big_images.h"
#include "lib/load_pack.h"
#include "lib/sweep.h"
#include "lib/tree.h"
#include "unit/test.h"

enum { EACH = 500, BASES = 10, KINDS = 10, CHILD_SECONDS = 120 };
#define MOST_SECONDS 2.0

/* ---- mutated JPEGs --------------------------------------------------------------------------- */

static PenBuf bases[BASES];

static void make_bases(void)
{
    static const BigSpec specs[BASES] = {
        {72, 56, 3, true, false, false, 0},  {72, 56, 3, false, false, false, 0},
        {72, 56, 3, true, true, false, 0},   {65, 49, 3, false, true, false, 0},
        {72, 56, 1, false, false, false, 0}, {72, 56, 1, false, true, false, 0},
        {72, 56, 4, false, false, false, 0}, {72, 56, 3, true, false, true, 0},
        {72, 56, 3, true, false, false, 3},  {72, 56, 3, true, true, true, 0},
    };
    for (size_t i = 0; i < BASES; i++)
        big_jpeg(&specs[i], &bases[i]);
}

/* A stretch of the file: where, and how long. */
static size_t pick(PenRng *rng, size_t bytes, size_t *ret_n)
{
    size_t at = (size_t)pen__rng_below(rng, bytes);
    *ret_n = 1 + (size_t)pen__rng_below(rng, PEN_MIN(bytes - at, (size_t)64));
    return at;
}

static void splice(PenBuf *b, size_t at, size_t remove, const uint8_t *data, size_t add)
{
    PenBuf fresh = {0};
    MUST(pen__buf_add(&fresh, b->data, at) == 0 && pen__buf_add(&fresh, data, add) == 0 &&
         pen__buf_add(&fresh, b->data + at + remove, b->bytes - at - remove) == 0);
    pen__buf_free(b);
    *b = fresh;
}

static void mutate(PenRng *rng, int kind, PenBuf *b)
{
    size_t n, at = pick(rng, b->bytes, &n);
    uint8_t marker[2] = {0xFF, (uint8_t)(0xC0 + pen__rng_below(rng, 64))};
    const PenBuf *other = &bases[pen__rng_below(rng, BASES)];
    switch (kind) {
    case 0: /* bits */
    case 1: /* of the header */
        for (uint64_t k = 1 + pen__rng_below(rng, 12); k > 0; k--)
            b->data[pen__rng_below(rng, kind ? PEN_MIN(b->bytes, 640u) : b->bytes)] ^=
                (uint8_t)(1u << pen__rng_below(rng, 8));
        break;
    case 2: /* bytes */
        for (uint64_t k = 1 + pen__rng_below(rng, 6); k > 0; k--)
            b->data[pen__rng_below(rng, b->bytes)] = (uint8_t)pen__rng_next(rng);
        break;
    case 3:
        memset(b->data + at, pen__rng_below(rng, 2) ? 0 : 0xFF, n);
        break;
    case 4:
        splice(b, at, n, NULL, 0);
        break;
    case 5:
        splice(b, at, 0, other->data + at % (other->bytes - 64), n);
        break;
    case 6:
        b->bytes = at > 2 ? at : 2;
        break;
    case 7:
        splice(b, at, 0, marker, 2);
        break;
    case 8: /* the header of one, the rest of another */
        splice(b, at, b->bytes - at, other->data + at % other->bytes,
               other->bytes - at % other->bytes);
        break;
    default:
        resize_header(b, 1 + (uint32_t)pen__rng_below(rng, 65535),
                      1 + (uint32_t)pen__rng_below(rng, 1 << pen__rng_below(rng, 17)));
        break;
    }
}

/* The index says what the file was, or, of some, what it says now. */
static void mutant(void *ctx, uint32_t i, LoadImage *image)
{
    PenRng rng = pen__rng_init(*(uint64_t *)ctx, i);
    const PenBuf *base = &bases[i % BASES];
    PenImageInfo info = {.width = 72, .height = 56, .channels = 3};
    image->file.bytes = 0;
    MUST(pen__buf_add(&image->file, base->data, base->bytes) == 0);
    MUST(pen__image_probe(base->data, base->bytes, &pen__limits_default, &info, NULL) == 0);
    for (uint64_t k = 1 + pen__rng_below(&rng, 2); k > 0 && i % 50 != 49; k--)
        mutate(&rng, (int)(i / BASES % KINDS), &image->file);
    if (i % 3 == 0)
        (void)pen__image_probe(image->file.data, image->file.bytes, &pen__limits_default, &info,
                               NULL);
    image->width = info.width;
    image->height = info.height;
    image->channels = info.channels;
    image->codec = PEN_STORED_JPEG;
}

typedef struct Toll { /* what became of them */
    uint64_t batches, substituted, errors[16];
    double slowest; /* seconds of a batch */
} Toll;

static void load_mutants(Sweep *sweep, PenPack *pack, const PenLoaderSettings *s, Toll *toll)
{
    PenLoader *l = NULL;
    PenBatch *b = NULL;
    PenError e = {0};
    int r;
    MUST(pen_loader_open(pack, s, &l, NULL) == PEN_OK);
    do {
        double began = load_cpu_seconds();
        r = pen_loader_next(l, -1, &b, &e);
        double took = load_cpu_seconds() - began;
        toll->slowest = PEN_MAX(toll->slowest, took);
        if (r == PEN_OK) {
            toll->batches++;
            toll->substituted += b->n_substituted;
            pen_batch_unref(&b);
        } else if (r < 0) {
            toll->errors[-r]++;
            if (r != PEN_E_DECODE && r != PEN_E_UNSUPPORTED && r != PEN_E_LIMIT)
                sweep_bad(sweep, "status %d: %s", r, e.message);
        }
    } while (r != PEN_END && r != PEN_E_TIMEOUT);
    pen_loader_close(&l);
}

TEST(mutated_jpegs)
{
    static const char *const pipelines[] = {
        "decode | random_resized_crop 64 | hflip | tensor u8 nhwc",
        "decode | resize 48,40 bicubic | tensor f32 nchw",
        "decode | resize 90 | center_crop 80 | grayscale | tensor u8 nhwc"};
    Sweep sweep = sweep_begin("mutated JPEGs");
    Toll toll = {0};
    make_bases();
    for (uint64_t turn = 0; turn < scaled(20, 3); turn++) {
        LoadSpec spec = {EACH, LOAD_AS_IS, 16, 1 << 20, mutant, &turn};
        PenLoaderSettings s = load_settings(4);
        load_pack_write(scratch("mutants-%" PRIu64, turn), &spec);
        PenPack *pack = load_pack_open(scratch("mutants-%" PRIu64, turn));
        s.pipeline = pipelines[turn % PEN_LEN(pipelines)];
        s.memory_bytes = 1 << 30;
        s.on_bad = PEN_BAD_SUBSTITUTE;
        s.max_bad = UINT64_MAX;
        load_mutants(&sweep, pack, &s, &toll);
        pen_pack_close(&pack);
        dir_remove(scratch("mutants-%" PRIu64, turn));
        sweep.n += EACH;
    }
    if (!load_is_sanitized() && toll.slowest > MOST_SECONDS)
        sweep_bad(&sweep, "a batch took %.2f s", toll.slowest);
    for (size_t i = 0; i < BASES; i++)
        pen__buf_free(&bases[i]);
    sweep_end(&sweep,
              "%" PRIu64 " of %d kinds: %" PRIu64 " batches, %" PRIu64 " samples replaced, %" PRIu64
              " batches refused; the slowest took %.2f s",
              sweep.n, KINDS, toll.batches, toll.substituted,
              toll.errors[-PEN_E_DECODE] + toll.errors[-PEN_E_UNSUPPORTED] +
                  toll.errors[-PEN_E_LIMIT],
              toll.slowest);
    if (!toll.batches || !toll.substituted || !toll.errors[-PEN_E_LIMIT])
        sweep_bad(&sweep, "not all outcomes were met");
    CHECK_INT(sweep.bad, 0);
}

/* ---- bombs ----------------------------------------------------------------------------------- */

typedef struct Bomb {
    const char *name;
    void (*make)(LoadImage *image);
    bool loads; /* large, and nothing wrong with it */
} Bomb;

static const BigSpec small = {64, 64, 3, true, false, false, 0};

static void small_jpeg(LoadImage *image, uint32_t width, uint32_t height)
{
    big_jpeg(&small, &image->file);
    resize_header(&image->file, width, height);
    image->width = width;
    image->height = height;
}

static void sides_of_65535(LoadImage *image)
{
    small_jpeg(image, 65535, 65535);
}

static void just_allowed(LoadImage *image)
{
    small_jpeg(image, 65500, 1024);
}

static void just_allowed_tall(LoadImage *image)
{
    small_jpeg(image, 1024, 65500);
}

static void progressive_of_nothing(LoadImage *image)
{
    BigSpec spec = small;
    spec.progressive = true;
    big_jpeg(&spec, &image->file);
    resize_header(&image->file, 8192, 8192);
    image->width = image->height = 8192;
}

static void arithmetic_of_nothing(LoadImage *image)
{
    BigSpec spec = small;
    spec.arithmetic = true;
    big_jpeg(&spec, &image->file);
    resize_header(&image->file, 8000, 8000);
    image->width = image->height = 8000;
}

static void cmyk_of_nothing(LoadImage *image)
{
    BigSpec spec = small;
    spec.channels = 4;
    big_jpeg(&spec, &image->file);
    resize_header(&image->file, 8000, 8000);
    image->width = image->height = 8000;
}

static void twelve_bits(LoadImage *image)
{
    big_jpeg(&small, &image->file);
    image->file.data[jpeg_marker(&image->file, 0xC0) + 4] = 12;
}

static void no_height(LoadImage *image)
{
    small_jpeg(image, 64, 0);
    image->height = 64;
}

static void many_components(LoadImage *image)
{
    big_jpeg(&small, &image->file);
    image->file.data[jpeg_marker(&image->file, 0xC0) + 9] = 200;
}

static void fourfold_sampling(LoadImage *image)
{
    big_jpeg(&small, &image->file);
    image->file.data[jpeg_marker(&image->file, 0xC0) + 11] = 0x44;
}

static void half_of_a_large_one(LoadImage *image)
{
    big_jpeg(&(BigSpec){4000, 3000, 3, true, false, false, 0}, &image->file);
    image->file.bytes /= 2;
    image->width = 4000;
    image->height = 3000;
}

static void scans(LoadImage *image, uint32_t side, uint32_t n)
{
    many_scans(side, side, n, &image->file);
    image->width = image->height = side;
    image->channels = 1;
}

static void a_hundred_scans(LoadImage *image)
{
    scans(image, 8000, 100);
}

static void thirty_scans(LoadImage *image)
{
    scans(image, 8000, 30);
}

static void a_hundred_of_20(LoadImage *image)
{
    scans(image, 4500, 100);
}

static void more_scans_than_allowed(LoadImage *image)
{
    scans(image, 8000, 120);
}

static void comments(LoadImage *image)
{
    big_jpeg(&small, &image->file);
    PenBuf b = {0};
    MUST(pen__buf_add(&b, image->file.data, 2) == 0);
    for (int i = 0; i < 400000; i++)
        MUST(pen__buf_add(&b, "\xFF\xFE\0\2", 4) == 0);
    MUST(pen__buf_add(&b, image->file.data + 2, image->file.bytes - 2) == 0);
    pen__buf_free(&image->file);
    image->file = b;
}

static void restarts(LoadImage *image)
{
    big_jpeg(&(BigSpec){4096, 4096, 1, false, false, false, 1}, &image->file);
    image->width = image->height = 4096;
    image->channels = 1;
}

static void png_sides_of_2_31(LoadImage *image)
{
    empty_png(INT32_MAX, INT32_MAX, 8, 2, false, &image->file);
    image->width = image->height = 65535;
    image->codec = PEN_STORED_PNG;
}

static void png_of_nothing(LoadImage *image)
{
    empty_png(8000, 8000, 16, 6, true, &image->file);
    image->width = image->height = 8000;
    image->codec = PEN_STORED_PNG;
}

static void png_60(LoadImage *image)
{
    big_png(10000, 6000, &image->file);
    image->width = 10000;
    image->height = 6000;
    image->codec = PEN_STORED_PNG;
}

static void baseline_60(LoadImage *image)
{
    big_jpeg(&(BigSpec){10000, 6000, 3, true, false, false, 0}, &image->file);
    image->width = 10000;
    image->height = 6000;
}

static void progressive_60(LoadImage *image)
{
    big_jpeg(&(BigSpec){10000, 6000, 3, true, true, false, 0}, &image->file);
    image->width = 10000;
    image->height = 6000;
}

static void webp_of_nothing(LoadImage *image)
{
    static const uint8_t file[] = "RIFF\x20\0\0\0WEBPVP8X\x0a\0\0\0\0\0\0\0\xFE\x3F\0\xFE\x3F\0"
                                  "VP8L\6\0\0\0\x2f\xFE\xFF\xFF\7\0";
    image->file.bytes = 0;
    MUST(pen__buf_add(&image->file, file, sizeof file - 1) == 0);
    image->width = image->height = 16383;
    image->codec = PEN_STORED_WEBP;
}

static const Bomb bombs[] = {
    {"65,535 x 65,535 and no data", sides_of_65535, false},
    {"65,500 x 1,024 and no data", just_allowed, false},
    {"1,024 x 65,500 and no data", just_allowed_tall, false},
    {"progressive, 67 megapixels and no data", progressive_of_nothing, false},
    {"arithmetic, 64 megapixels and no data", arithmetic_of_nothing, false},
    {"CMYK, 64 megapixels and no data", cmyk_of_nothing, false},
    {"12 bits", twelve_bits, false},
    {"no height", no_height, false},
    {"200 components", many_components, false},
    {"sampling of 4 x 4", fourfold_sampling, false},
    {"half of 12 megapixels", half_of_a_large_one, false},
    {"120 scans of 64 megapixels", more_scans_than_allowed, false},
    {"100 scans of 64 megapixels", a_hundred_scans, false},
    {"30 scans of 64 megapixels", thirty_scans, true},
    {"100 scans of 20 megapixels", a_hundred_of_20, true},
    {"400,000 comments", comments, true},
    {"a restart after every block", restarts, true},
    {"PNG of 2^31 x 2^31", png_sides_of_2_31, false},
    {"PNG, 64 megapixels of 64 bits and no data", png_of_nothing, false},
    {"WebP of 268 megapixels and no data", webp_of_nothing, false},
    {"PNG of 60 megapixels", png_60, true},
    {"baseline, 60 megapixels", baseline_60, true},
    {"progressive, 60 megapixels", progressive_60, true},
};

static void make_bomb(void *ctx, uint32_t i, LoadImage *image)
{
    (void)ctx;
    image->width = image->height = 64;
    image->channels = 3;
    image->codec = PEN_STORED_JPEG;
    bombs[i].make(image);
}

typedef struct Slowest { /* shared with the children */
    double seconds;
    uint32_t i;
} Slowest;

typedef struct Blast {
    const char *dir;
    uint32_t i;
    Slowest *seen;
} Blast;

/* In a process of its own. The whole image is asked for. */
static int load_bomb(void *ctx)
{
    const Blast *blast = ctx;
    const Bomb *bomb = &bombs[blast->i];
    PenLoader *l = NULL;
    PenBatch *b = NULL;
    PenError e = {0};
    PenLoaderSettings s = load_settings(1);
    PenPack *pack = load_pack_open(blast->dir);
    s.pipeline = "decode | resize 224,224 | tensor u8 nhwc";
    s.order = PEN_ORDER_SEQUENTIAL;
    s.memory_bytes = 3ull << 30;
    s.first = blast->i;
    s.count = 1;
    s.threads = 1;
    MUST(pen_loader_open(pack, &s, &l, NULL) == PEN_OK);
    double began = load_cpu_seconds();
    int r = pen_loader_next(l, -1, &b, &e), failed = 0;
    double took = load_cpu_seconds() - began;
    if (r != PEN_OK && r != PEN_E_DECODE && r != PEN_E_LIMIT && r != PEN_E_UNSUPPORTED)
        failed = printf("  %s: status %d: %s\n", bomb->name, r, e.message) > 0;
    if (bomb->loads && r != PEN_OK)
        failed = printf("  %s: cannot be loaded: %s\n", bomb->name, e.message) > 0;
    if (took > MOST_SECONDS && !load_is_sanitized())
        failed = printf("  %s: %.2f s\n", bomb->name, took) > 0;
    if (took > blast->seen->seconds)
        *blast->seen = (Slowest){took, blast->i};
    pen_batch_unref(&b);
    pen_loader_close(&l);
    pen_pack_close(&pack);
    return failed;
}

TEST(bombs)
{
    LoadSpec spec = {PEN_LEN(bombs), LOAD_AS_IS, 2, 64 << 20, make_bomb, NULL};
    Blast blast = {.dir = scratch("bombs.pen"),
                   .seen = mmap(NULL, sizeof(Slowest), PROT_READ | PROT_WRITE,
                                MAP_SHARED | MAP_ANONYMOUS, -1, 0)};
    MUST(blast.seen != MAP_FAILED);
    Sweep sweep = sweep_begin("bombs");
    load_pack_write(blast.dir, &spec);
    for (; blast.i < PEN_LEN(bombs); blast.i++, sweep.n++) {
        int r = load_child_end(load_child_start(load_bomb, &blast, CHILD_SECONDS));
        if (r)
            sweep_bad(&sweep, "%s: ended with %d", bombs[blast.i].name, r);
    }
    dir_remove(blast.dir);
    sweep_end(&sweep, "%" PRIu64 " of them; the slowest took %.2f s (%s)", sweep.n,
              blast.seen->seconds, bombs[blast.seen->i].name);
    munmap(blast.seen, sizeof *blast.seen);
    CHECK_INT(sweep.bad, 0);
}

int main(int argc, char **argv)
{
    TEST_START(argc, argv);
    RUN(mutated_jpegs);
    RUN(bombs);
    return TEST_END();
}
