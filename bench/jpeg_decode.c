/* SPDX-License-Identifier: Apache-2.0 */
/* Decoding alone, one thread: libjpeg-turbo and the own decoder, whole images and crops.
 *
 *     jpeg_decode DIRECTORY [PHOTOGRAPHS [ROUNDS [TIER ...]]]
 *
 * DIRECTORY has folders of JPEG files. Each gets an entry index once. All ways decode the same
 * photographs and the same boxes (RandomResizedCrop, 8-100 % of the area), 48 photographs at a time
 * with one way, then with the next, and begin with another one each time, so that no way finds its
 * data warm and a drifting clock hits all. Times are of the thread's CPU. A ratio is of times of
 * the same round.
 */
#include <glob.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>

#include "base/attr.h"
#include "base/machine/cpu.h"
#include "codec/jpeg/decoder/scan.h"
#include "regions.h"

enum { MAX_TIERS = 4, MAX_WAYS = 2 + 2 * MAX_TIERS, ROWS = 16 };

typedef struct Photo {
    PenBuf file;
    PenJpegHeader header;
    PenBuf entries;
    PenJpegEntries index;
    PenBox box;
} Photo;

typedef enum Kind { TURBO_WHOLE, TURBO_CROP, OWN_WHOLE, OWN_CROP } Kind;

typedef struct Way {
    Kind kind;
    const char *tier;
    PenDecoder *decoder;
    double seconds[MAX_ROUNDS];
} Way;

/* ---- photographs ---- */

/* False if it cannot have an index. */
static bool make_index(PenEntryScan *scan, Photo *p)
{
    PenJpegEntries e;
    PenBuf coded = {0};
    const char *why;
    const PenBuf *f = &p->file;
    if (pen__jpeg_header(f->data, f->bytes, &pen__limits_default, &p->header, NULL) != PEN_OK ||
        pen__entry_scan(scan, &p->header, f->data, f->bytes, pen__entry_unit(&p->header.info), &e,
                        &why, NULL) != PEN_OK)
        return false;
    if (pen__entries_write(&e, &coded, NULL) != PEN_OK ||
        pen__entries_parse(coded.data, coded.bytes, &e.plan, e.scan_bytes, &p->entries, &p->index,
                           NULL) != PEN_OK)
        die("no index");
    pen__buf_free(&coded);
    return true;
}

static uint32_t load_photos(const char *dir, uint32_t n, Photo *ret)
{
    PenEntryScan *scan = NULL;
    glob_t files;
    size_t step;
    uint32_t found = 0;
    if (pen__entry_scan_new(&scan, NULL) != PEN_OK)
        die("memory");
    find_photos(dir, n, &files, &step);
    for (size_t i = 0; i < files.gl_pathc && found < n; i += step) {
        Photo *p = &ret[found];
        *p = (Photo){.file = {0}};
        read_file(files.gl_pathv[i], &p->file);
        if (!make_index(scan, p))
            continue;
        PenRng rng = pen__rng_init(1, i);
        p->box = draw_box(&rng, p->header.info.width, p->header.info.height);
        found++;
    }
    globfree(&files);
    pen__entry_scan_free(&scan);
    return found;
}

/* ---- the ways ---- */

/* Errors end the program: these are good files. */
static void turbo(const PenBuf *file, const PenBox *box)
{
    static struct jpeg_decompress_struct d;
    static struct jpeg_error_mgr errors;
    static uint8_t *buffer;
    JSAMPROW rows[ROWS];
    if (!d.mem) {
        d.err = jpeg_std_error(&errors);
        jpeg_create_decompress(&d);
        buffer = malloc((size_t)ROWS * 65536 * 3);
    }
    jpeg_mem_src(&d, file->data, file->bytes);
    jpeg_read_header(&d, TRUE);
    d.out_color_space = JCS_RGB;
    d.dct_method = JDCT_ISLOW;
    jpeg_start_decompress(&d);
    JDIMENSION x = box ? box->x : 0, w = box ? box->w : d.output_width;
    uint32_t end = box ? box->y + box->h : d.output_height;
    if (box && (box->x || box->w != d.output_width))
        jpeg_crop_scanline(&d, &x, &w);
    if (box && box->y)
        jpeg_skip_scanlines(&d, box->y);
    for (uint32_t i = 0; i < ROWS; i++)
        rows[i] = buffer + (size_t)i * d.output_width * 3;
    while (d.output_scanline < end)
        jpeg_read_scanlines(&d, rows, PEN_MIN(end - d.output_scanline, (uint32_t)ROWS));
    jpeg_abort_decompress(&d);
}

static void decode(const Way *way, const Photo *p)
{
    if (way->kind == TURBO_WHOLE || way->kind == TURBO_CROP) {
        turbo(&p->file, way->kind == TURBO_CROP ? &p->box : NULL);
        return;
    }
    const PenJpegInfo *info = &p->header.info;
    PenEncoded e = {.data = p->file.data,
                    .bytes = p->file.bytes,
                    .width = info->width,
                    .height = info->height,
                    .codec = PEN_STORED_JPEG,
                    .channels = info->components,
                    .head_bytes = (uint32_t)info->head_bytes,
                    .entries = &p->index};
    decode_box(way->decoder, &e,
               way->kind == OWN_WHOLE ? (PenBox){0, 0, e.width, e.height} : p->box);
}

static uint32_t add_way(Way *ways, uint32_t n, Kind kind, const char *tier)
{
    ways[n] = (Way){.kind = kind, .tier = tier};
    if (kind >= OWN_WHOLE && (pen__decoder_new(&ways[n].decoder, NULL) != PEN_OK ||
                              pen__decoder_use(ways[n].decoder, tier, NULL) != PEN_OK))
        die("no such tier on this machine");
    return n + 1;
}

/* ---- rounds ---- */

static void run_round(Way *ways, uint32_t n_ways, const Photo *photos, uint32_t n, uint32_t round)
{
    for (uint32_t first = 0; first < n; first += CHUNK)
        for (uint32_t i = 0; i < n_ways; i++) {
            Way *way = &ways[(i + first / CHUNK + round * 5) % n_ways];
            double start = now();
            for (uint32_t k = first; k < PEN_MIN(first + CHUNK, n); k++)
                decode(way, &photos[k]);
            way->seconds[round] += now() - start;
        }
}

static double ratio(const Way *of, const Way *to, uint32_t rounds)
{
    double r[MAX_ROUNDS];
    for (uint32_t i = 0; i < rounds; i++)
        r[i] = of->seconds[i] / to->seconds[i];
    return median(r, rounds);
}

static void print_ways(const Way *ways, uint32_t n_ways, uint32_t n, uint32_t rounds)
{
    static const char *const names[] = {"libjpeg-turbo, whole", "libjpeg-turbo, crop and skip",
                                        "own, whole", "own, crop"};
    printf("%-30s %-7s %9s %9s %9s\n", "", "tier", "ms", "x whole", "x crop");
    for (uint32_t i = 0; i < n_ways; i++) {
        const Way *w = &ways[i];
        printf("%-30s %-7s %9.3f %9.2f %9.2f\n", names[w->kind], w->tier,
               median(w->seconds, rounds) / n * 1e3, ratio(&ways[0], w, rounds),
               ratio(&ways[1], w, rounds));
    }
}

int main(int argc, char **argv)
{
    static Way ways[MAX_WAYS];
    uint32_t n_ways = 0;
    if (argc < 2)
        die("expected a directory of folders of photographs");
    uint32_t n = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10) : 200;
    uint32_t rounds =
        argc > 3 ? PEN_MIN((uint32_t)strtoul(argv[3], NULL, 10), (uint32_t)MAX_ROUNDS) : 7;
    Photo *photos = malloc((size_t)n * sizeof *photos);
    if (!photos)
        die("memory");
    n = load_photos(argv[1], n, photos);
    n_ways = add_way(ways, n_ways, TURBO_WHOLE, "");
    n_ways = add_way(ways, n_ways, TURBO_CROP, "");
    for (int tier = 0; tier < PEN_CPU_TIERS; tier++) {
        const char *name = pen__cpu_name(tier);
        bool wanted = argc <= 4;
        for (int i = 4; i < argc; i++)
            wanted |= strcmp(argv[i], name) == 0;
        if (!wanted || !pen__cpu_has(tier) || n_ways + 2 > MAX_WAYS)
            continue;
        n_ways = add_way(ways, n_ways, OWN_WHOLE, name);
        n_ways = add_way(ways, n_ways, OWN_CROP, name);
    }
    for (uint32_t i = 0; i < rounds; i++)
        run_round(ways, n_ways, photos, n, i);
    printf("%u photographs, %u rounds\n", n, rounds);
    print_ways(ways, n_ways, n, rounds);
    return 0;
}
