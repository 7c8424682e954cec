/* SPDX-License-Identifier: Apache-2.0 */
/* Regions of real photographs, from PENSTOCK_PHOTOS (folders of JPEG files) or
 * ../shared/data/photos beside the tree: each with 20 boxes, as its own bytes, with an entry index,
 * tiled, in part, and encoded again, the indexed and tiled ones by the kernels of every tier, and
 * the tiled ones by libjpeg. Not one byte may differ from the crop of libjpeg's decode of the
 * whole. 50 photographs unless PENSTOCK_SCALE=full: then the own decoder is to have had 100 million
 * blocks. */
#include <glob.h>
#include <inttypes.h>
#include <math.h>
#include <time.h>

#include "base/machine/cpu.h"
#include "base/rng.h"
#include "codec/jpeg/decoder/decoder_impl.h"
#include "codec/jpeg/decoder/scan.h"
#include "codec/jpeg/turbo/turbo.h"
#include "codec/region/region_impl.h"
#include "lib/region_help.h"
#include "lib/sweep.h"
#include "unit/test.h"

static const PenLimits *const limits = &pen__limits_default;

enum { BOXES = 20 };
/* The last ones are a way for each tier, half of the boxes in part: of tiled files, and of those
 * with an entry index. */
enum { KEPT, TILED, PART, ENCODED, TURBO, TIERS, INDEXED = TIERS + PEN_CPU_TIERS };
enum { N_WAYS = INDEXED + PEN_CPU_TIERS };
static const char *const way_names[] = {
    "keep",        "tile",          "tile, in part", "encode",     "tile, libjpeg",
    "tile, c",     "tile, avx2",    "tile, avx512",  "tile, neon", "index, c",
    "index, avx2", "index, avx512", "index, neon"};

typedef struct Account {
    uint64_t boxes, bytes, different;
    uint64_t file_bytes, read_bytes; /* of the files, and of them as far as the boxes need them */
    uint64_t blocks;                 /* by the own decoder */
    double seconds, whole_seconds;
} Account;

static Account accounts[N_WAYS];
static PenDecoder *decoders[N_WAYS];
static Collected found;
static PenEntryScan *scan;

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t); /* others use the machine too */
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static double uniform(PenRng *rng)
{
    return (double)(pen__rng_next(rng) >> 11) * 0x1p-53;
}

/* Every second box as RandomResizedCrop draws it (area 8-100 %, aspect 3:4 to 4:3), the others
 * anyhow. */
static PenBox draw_box(PenRng *rng, uint32_t i, uint32_t width, uint32_t height)
{
    PenBox b = {.w = 1 + (uint32_t)pen__rng_below(rng, width),
                .h = 1 + (uint32_t)pen__rng_below(rng, height)};
    if (i % 2 == 0) {
        double area = (0.08 + 0.92 * uniform(rng)) * width * height;
        double aspect = exp((2 * uniform(rng) - 1) * log(4.0 / 3));
        b.w = PEN_MIN((uint32_t)lround(sqrt(area * aspect)), width);
        b.h = PEN_MIN((uint32_t)lround(sqrt(area / aspect)), height);
        b.w = PEN_MAX(b.w, 1u);
        b.h = PEN_MAX(b.h, 1u);
    }
    b.x = (uint32_t)pen__rng_below(rng, width - b.w + 1);
    b.y = (uint32_t)pen__rng_below(rng, height - b.h + 1);
    return b;
}

static int count_rows(void *ctx, const uint8_t *rows, size_t stride, uint32_t n, PenError *reterr)
{
    (void)rows, (void)stride, (void)reterr;
    *(uint32_t *)ctx += n;
    return PEN_OK;
}

/* Decoding alone, without what the test does with the rows. */
static double time_region(PenDecoder *decoder, const PenEncoded *e, PenBox box)
{
    uint32_t rows = 0;
    PenRegion region = {
        .box = box, .colour = PEN_COLOUR_RGB, .limits = limits, .rows = count_rows, .ctx = &rows};
    double start = seconds();
    MUST(pen__region_decode(decoder, e, &region, NULL) == PEN_OK && rows == box.h);
    return seconds() - start;
}

static double time_whole(const PenEncoded *e, PenPixels *ret)
{
    pen__pixels_free(ret);
    double start = seconds();
    MUST(pen__image_decode(e->data, e->bytes, limits, ret, NULL) == PEN_OK);
    return seconds() - start;
}

/* Blocks of all components in the box, when the own decoder has given all of its rows. */
static uint64_t own_blocks(const PenDecoder *d, PenBox box)
{
    if (!d->own || !d->own->entropy || d->own->request.at.box.w != box.w || d->own->given != box.h)
        return 0;
    const PenOwnHead *h = &d->own->head;
    uint64_t luma = (uint64_t)box.w * box.h / 64;
    return h->components == 1 ? luma : luma + 2 * luma / (uint64_t)(h->h * h->v);
}

static void try_box(Sweep *s, int way, const PenEncoded *e, const PenPixels *whole, PenBox box)
{
    PenError err = {0};
    Account *a = &accounts[way];
    s->n++;
    if (find_region(decoders[way], e, box, PEN_COLOUR_RGB, &found, &err) != PEN_OK)
        sweep_bad(s, "%s: %s", way_names[way], err.message);
    size_t different = count_different(whole, box, PEN_COLOUR_RGB, &found);
    if (different)
        sweep_bad(s, "%s: %u x %u at %u, %u of %u x %u: %zu bytes differ", way_names[way], box.w,
                  box.h, box.x, box.y, whole->width, whole->height, different);
    a->boxes++;
    a->blocks += own_blocks(decoders[way], box);
    a->bytes += (uint64_t)box.w * box.h * 3;
    a->different += different;
    a->read_bytes += e->bytes;
    if (!different)
        a->seconds += time_region(decoders[way], e, box);
}

/* Whole or in part, by libjpeg and by each tier. */
static void try_tiers(Sweep *s, const PenEncoded *e, const PenPixels *whole, PenBox box)
{
    for (int way = TURBO; way < INDEXED; way++) {
        if (!decoders[way])
            continue;
        accounts[way].whole_seconds = accounts[TILED].whole_seconds;
        accounts[way].file_bytes = accounts[TILED].file_bytes;
        try_box(s, way, e, whole, box);
    }
}

/* The same for a file with an entry index. */
static void try_index(Sweep *s, const PenEncoded *e, const PenPixels *whole, PenBox box,
                      bool in_part)
{
    PenJpegInfo info;
    uint8_t *bytes = NULL;
    MUST(pen__jpeg_info(e->data, e->bytes, limits, &info, NULL) == PEN_OK);
    PenEncoded part = in_part ? part_of_indexed(e, &info, box, &bytes) : *e;
    for (int way = INDEXED; way < N_WAYS; way++) {
        if (!decoders[way])
            continue;
        accounts[way].whole_seconds = accounts[KEPT].whole_seconds;
        accounts[way].file_bytes += e->bytes;
        try_box(s, way, &part, whole, box);
    }
    free(bytes);
}

static void try_boxes(Sweep *s, int way, const PenEncoded *e, const TiledJpeg *t, PenRng rng)
{
    PenPixels whole = {0};
    double time = 0;
    for (uint32_t i = 0; i < BOXES; i++) {
        if (i % 5 == 0)
            time = time_whole(e, &whole);
        PenBox box = draw_box(&rng, i, whole.width, whole.height);
        accounts[way].whole_seconds += time;
        accounts[way].file_bytes += e->bytes;
        PenEncoded plain = *e;
        plain.entries = NULL;
        try_box(s, way, &plain, &whole, box);
        if (e->entries)
            try_index(s, e, &whole, box, i / 2 % 2);
        if (way != TILED)
            continue;
        uint8_t *bytes = NULL;
        PenEncoded part = part_of(t, box, 0, &bytes);
        accounts[PART].whole_seconds += time;
        accounts[PART].file_bytes += e->bytes;
        try_box(s, PART, &part, &whole, box);
        try_tiers(s, i / 2 % 2 ? &part : e, &whole, box);
        free(bytes);
    }
    pen__pixels_free(&whole);
}

static void read_photo(const char *path, PenBuf *out)
{
    FILE *f = fopen(path, "rb");
    size_t n;
    MUST(f);
    out->bytes = 0;
    do {
        MUST(pen__buf_reserve(out, 65536) == PEN_OK);
        n = fread(out->data + out->bytes, 1, 65536, f);
        out->bytes += n;
    } while (n);
    fclose(f);
}

/* False if the file has no index; what is found is valid until the next call. */
static bool find_entries(PenEncoded *kept, PenJpegEntries *ret)
{
    PenJpegHeader header;
    const char *why = NULL;
    MUST(pen__jpeg_header(kept->data, kept->bytes, limits, &header, NULL) == PEN_OK);
    kept->head_bytes = (uint32_t)header.info.head_bytes;
    uint32_t unit = pen__entry_unit(&header.info);
    int r = pen__entry_scan(scan, &header, kept->data, kept->bytes, unit, ret, &why, NULL);
    MUST(r == PEN_OK || r == PEN_END);
    return r == PEN_OK;
}

static void try_photo(Sweep *s, const PenBuf *file, TiledJpeg *t, uint64_t number)
{
    PenRng rng = pen__rng_init(1, number);
    PenImageInfo info;
    PenPixels pixels = {0};
    MUST(pen__image_probe(file->data, file->bytes, limits, &info, NULL) == PEN_OK);
    PenEncoded kept = {.data = file->data,
                       .bytes = file->bytes,
                       .width = info.width,
                       .height = info.height,
                       .codec = PEN_STORED_JPEG,
                       .channels = info.channels};
    PenJpegEntries index;
    if (find_entries(&kept, &index))
        kept.entries = &index;
    try_boxes(s, KEPT, &kept, NULL, rng);
    int r = tile_jpeg(file->data, file->bytes, t);
    MUST(r == PEN_OK || r == PEN_END);
    if (r == PEN_OK) {
        PenEncoded tiled = whole_tiled(t);
        try_boxes(s, TILED, &tiled, t, rng);
    }
    MUST(pen__image_decode(file->data, file->bytes, limits, &pixels, NULL) == PEN_OK);
    PenBuf encoded = {0};
    MUST(pen__turbo_encode(&pixels, 90, limits, &encoded, NULL) == PEN_OK);
    MUST(tile_jpeg(encoded.data, encoded.bytes, t) == PEN_OK);
    pen__buf_free(&encoded);
    pen__pixels_free(&pixels);
    PenEncoded again = whole_tiled(t);
    try_boxes(s, ENCODED, &again, t, rng);
}

static bool find_photos(glob_t *ret)
{
    char pattern[4096];
    const char *dir = getenv("PENSTOCK_PHOTOS"), *end = strstr(__FILE__, "tests/long/");
    if (dir)
        snprintf(pattern, sizeof pattern, "%s/*/*.[Jj][Pp]*[Gg]", dir);
    else
        snprintf(pattern, sizeof pattern, "%.*s../shared/data/photos/*/*.[Jj][Pp]*[Gg]",
                 (int)(end ? end - __FILE__ : 0), __FILE__);
    return glob(pattern, 0, NULL, ret) == 0;
}

static void print_accounts(void)
{
    for (int way = 0; way < N_WAYS; way++) {
        const Account *a = &accounts[way];
        if (!decoders[way])
            continue;
        double n = (double)a->boxes;
        printf("  %s: %" PRIu64 " boxes, %" PRIu64 " of %" PRIu64 " bytes differ; %.3f ms a box, "
               "%.3f ms whole, ratio %.3f; %.2f of the bytes; %" PRIu64 " blocks by our own\n",
               way_names[way], a->boxes, a->different, a->bytes, a->seconds / n * 1e3,
               a->whole_seconds / n * 1e3, a->seconds / a->whole_seconds,
               (double)a->read_bytes / (double)a->file_bytes, a->blocks);
    }
}

static void make_decoders(void)
{
    for (int way = 0; way < N_WAYS; way++) {
        const char *tier = way < TIERS ? "turbo" : pen__cpu_name((way - TIERS) % PEN_CPU_TIERS);
        MUST(pen__decoder_new(&decoders[way], NULL) == PEN_OK);
        if (way >= TURBO && pen__decoder_use(decoders[way], tier, NULL) != PEN_OK)
            pen__decoder_free(&decoders[way]);
    }
}

/* All tiers together. */
static uint64_t count_blocks(void)
{
    uint64_t n = 0;
    for (int way = TIERS; way < N_WAYS; way++)
        n += accounts[way].blocks;
    return n;
}

TEST(regions_of_photographs)
{
    glob_t photos;
    if (!find_photos(&photos))
        SKIP("no photographs; set PENSTOCK_PHOTOS to a directory of class directories");
    PenBuf file = {0};
    TiledJpeg t = {0};
    Sweep s = sweep_begin("regions");
    size_t n = (size_t)scaled(photos.gl_pathc, PEN_MIN(photos.gl_pathc, (size_t)50));
    make_decoders();
    MUST(pen__entry_scan_new(&scan, NULL) == PEN_OK);
    for (size_t i = 0; i < n; i++) {
        read_photo(photos.gl_pathv[i * photos.gl_pathc / n], &file);
        try_photo(&s, &file, &t, i);
    }
    sweep_end(&s, "%zu photographs, %" PRIu64 " boxes", n, s.n);
    print_accounts();
    CHECK_INT(s.bad, 0);
    CHECK_INT(accounts[KEPT].boxes, n * BOXES);
    CHECK_INT(accounts[ENCODED].boxes, n * BOXES);
    CHECK(accounts[TILED].boxes && accounts[PART].boxes == accounts[TILED].boxes);
    printf("  %" PRIu64 " blocks compared\n", count_blocks());
    CHECK_INT(accounts[TURBO].blocks, 0);
    CHECK_INT(accounts[TIERS].boxes, accounts[TILED].boxes);
    CHECK(accounts[INDEXED].boxes && accounts[INDEXED].blocks);
    CHECK(count_blocks() > scaled(100000000, 4000000));
    for (int way = 0; way < N_WAYS; way++)
        pen__decoder_free(&decoders[way]);
    pen__entry_scan_free(&scan);
    pen__buf_free(&found.pixels);
    tiled_free(&t);
    pen__buf_free(&file);
    globfree(&photos);
}

int main(int argc, char **argv)
{
    TEST_START(argc, argv);
    RUN(regions_of_photographs);
    return TEST_END();
}
