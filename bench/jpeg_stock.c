/* SPDX-License-Identifier: Apache-2.0 */
/* JPEG files as they are, without an index: one thread, against libjpeg-turbo.
 *
 *     jpeg_stock DIRECTORY [PHOTOGRAPHS [ROUNDS [LEAST-BYTES MOST-BYTES]]]
 *
 * DIRECTORY has folders of JPEG files. Entire images are compared with libjpeg-turbo alone, whose
 * decoder and memory are kept from image to image. Boxes (RandomResizedCrop, 8-100 % of the area)
 * resized to 224 x 224 are compared with libjpeg-turbo's crop and skip calls and the same resize.
 * All ways decode the same files, 48 at a time with one way, then with the next, and begin with
 * another one each time. A ratio is of times of the same round. */
#include "base/attr.h"
#include "base/machine/cpu.h"
#include "ops/run/decode_context.h"
#include "ops/run/decode_file.h"
#include "photos.h"

/* It needs size_t and FILE. */
#include <jpeglib.h>

enum { CHUNK = 48, SIDE = 224, ROWS = 16, MAX_WAYS = 4 };

typedef struct Photo {
    PenBuf file;
    uint32_t width, height;
    PenBox box;
} Photo;

/* libjpeg-turbo alone, or a context of a tier. */
typedef struct Way {
    const char *name;
    PenDecodeContext *k; /* NULL: libjpeg-turbo alone */
    double seconds[2][MAX_ROUNDS];
} Way;

static struct jpeg_decompress_struct turbo;
static struct jpeg_error_mgr turbo_errors;
static PenBuf pixels;

static void add_photo(const char *path, Photo *p, uint32_t i)
{
    PenDecodeItem item = {0};
    PenRng rng = pen__rng_init(1, i);
    read_file(path, &p->file);
    item.data = p->file.data;
    item.bytes = p->file.bytes;
    if (pen_decode(&item, NULL, NULL) != PEN_OK)
        die(path);
    p->height = item.size[0];
    p->width = item.size[1];
    p->box = draw_box(&rng, p->width, p->height);
    size_t bytes = (size_t)p->width * (p->height + ROWS) * 3;
    if (bytes > pixels.cap && pen__buf_reserve(&pixels, bytes) < 0)
        die("memory");
}

static uint32_t load_photos(const char *dir, uint32_t n, size_t least, size_t most, Photo *photos)
{
    glob_t files;
    size_t step;
    uint32_t found = 0;
    find_photos(dir, n, &files, &step);
    for (size_t i = 0; i < files.gl_pathc && found < n; i += step) {
        Photo p = {.width = 0};
        add_photo(files.gl_pathv[i], &p, (uint32_t)i);
        if (p.file.bytes >= least && p.file.bytes <= most)
            photos[found++] = p;
        else
            pen__buf_free(&p.file);
    }
    globfree(&files);
    return found;
}

static void decode_alone(const Photo *p)
{
    JSAMPROW rows[ROWS];
    jpeg_mem_src(&turbo, p->file.data, (unsigned long)p->file.bytes);
    jpeg_read_header(&turbo, TRUE);
    turbo.out_color_space = turbo.num_components == 4 ? JCS_CMYK : JCS_RGB;
    jpeg_start_decompress(&turbo);
    size_t stride = (size_t)turbo.output_width * (size_t)turbo.output_components;
    while (turbo.output_scanline < turbo.output_height) {
        for (uint32_t i = 0; i < ROWS; i++)
            rows[i] = pixels.data + (turbo.output_scanline + i) * stride;
        jpeg_read_scanlines(&turbo, rows, ROWS);
    }
    jpeg_finish_decompress(&turbo);
}

static void decode(const Way *way, const Photo *p, bool box)
{
    PenDecodeSettings s;
    PenError err = {0};
    if (!way->k && !box) {
        decode_alone(p);
        return;
    }
    pen_decode_settings_init(&s);
    PenDecodeItem item = {
        .data = p->file.data, .bytes = p->file.bytes, .pixels = pixels.data, .cap = pixels.cap};
    if (box) {
        item.box = p->box;
        s.width = s.height = SIDE;
    }
    if (pen__decode_file(way->k, &item, &s, &err) != PEN_OK)
        die(err.message);
}

static void run_round(Way *ways, uint32_t n_ways, const Photo *photos, uint32_t n, uint32_t round)
{
    for (uint32_t first = 0; first < n; first += CHUNK)
        for (uint32_t i = 0; i < 2 * n_ways; i++) {
            uint32_t turn = (i + first / CHUNK + round * 3) % (2 * n_ways);
            Way *way = &ways[turn / 2];
            bool box = turn % 2;
            if (box && !way->k)
                continue;
            double start = now();
            for (uint32_t k = first; k < PEN_MIN(first + CHUNK, n); k++)
                decode(way, &photos[k], box);
            way->seconds[box][round] += now() - start;
        }
}

static void print_way(const Way *ways, const Way *w, uint32_t n, uint32_t rounds)
{
    printf("%-24s", w->name);
    for (uint32_t box = 0; box < 2; box++) {
        double ratio[MAX_ROUNDS];
        const Way *base = &ways[box]; /* alone, or crop and skip */
        if (box && !w->k)
            break;
        for (uint32_t r = 0; r < rounds; r++)
            ratio[r] = base->seconds[box][r] / w->seconds[box][r];
        printf(" %10.3f %8.2f", median(w->seconds[box], rounds) / n * 1e3, median(ratio, rounds));
    }
    printf("\n");
}

static void add_way(Way *ways, uint32_t *n, const char *name, const char *tier)
{
    Way *w = &ways[*n];
    if (pen__cpu_find(tier) >= 0 && !pen__cpu_has(pen__cpu_find(tier)))
        return;
    w->name = name;
    if (pen__decode_context_new(&w->k, NULL) != PEN_OK ||
        pen__decoder_use(w->k->decoder, tier, NULL) != PEN_OK)
        die("no context");
    (*n)++;
}

int main(int argc, char **argv)
{
    static Way ways[MAX_WAYS] = {{.name = "libjpeg-turbo alone"}};
    uint32_t n_ways = 1;
    if (argc < 2)
        die("expected a directory of folders of photographs");
    uint32_t n = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10) : 200;
    uint32_t rounds =
        argc > 3 ? PEN_MIN((uint32_t)strtoul(argv[3], NULL, 10), (uint32_t)MAX_ROUNDS) : 7;
    size_t least = argc > 5 ? strtoul(argv[4], NULL, 10) : 0;
    size_t most = argc > 5 ? strtoul(argv[5], NULL, 10) : SIZE_MAX;
    Photo *photos = calloc(n, sizeof *photos);
    turbo.err = jpeg_std_error(&turbo_errors);
    jpeg_create_decompress(&turbo);
    add_way(ways, &n_ways, "libjpeg-turbo in decode", "turbo");
    add_way(ways, &n_ways, "avx2", "avx2");
    add_way(ways, &n_ways, "avx512", "avx512");
    if (!photos || !(n = load_photos(argv[1], n, least, most, photos)))
        die("no photographs");
    for (uint32_t r = 0; r < rounds; r++)
        run_round(ways, n_ways, photos, n, r);
    printf("%u photographs, %u rounds\n%-24s %10s %8s %10s %8s\n", n, rounds, "", "all, ms", "x",
           "box, ms", "x");
    for (uint32_t i = 0; i < n_ways; i++)
        print_way(ways, &ways[i], n, rounds);
    return 0;
}
