/* SPDX-License-Identifier: Apache-2.0 */
/* How far apart the entries of an index should be: its size, and the time that crops take, one
 * thread.
 *
 *     jpeg_entries DIRECTORY [PHOTOGRAPHS [ROUNDS [TIER]]]
 *
 * DIRECTORY has folders of JPEG files. Photographs of 4:4:4 and of 4:2:0 are measured apart. All
 * distances decode the same boxes (RandomResizedCrop, 8-100 % of the area), 48 photographs at a
 * time with one distance, then with the next, and begin with another one each time. A ratio is of
 * times of the same round. */
#include "base/attr.h"
#include "base/machine/cpu.h"
#include "codec/jpeg/decoder/scan.h"
#include "regions.h"

enum { MAX_UNITS = 4 };

/* A distance. */
typedef struct Way {
    uint32_t unit;  /* MCUs */
    uint64_t bytes; /* of the index */
    double seconds[MAX_ROUNDS];
} Way;

typedef struct Photo {
    PenBuf file;
    PenJpegHeader header;
    PenBox box;
    PenBuf entries[MAX_UNITS];
    PenJpegEntries index[MAX_UNITS];
} Photo;

typedef struct Group {
    const char *name;
    uint32_t h, v, n;
    uint64_t bytes;
    double scan_seconds;
    Photo *photos;
    Way ways[MAX_UNITS];
} Group;

static PenEntryScan *scan;

/* False if the file has no index. */
static bool load_photo(const char *path, Photo *p)
{
    const char *why;
    PenJpegEntries e;
    *p = (Photo){.file = {0}};
    read_file(path, &p->file);
    return pen__jpeg_header(p->file.data, p->file.bytes, &pen__limits_default, &p->header, NULL) ==
               PEN_OK &&
           pen__entry_scan(scan, &p->header, p->file.data, p->file.bytes, 8, &e, &why, NULL) ==
               PEN_OK;
}

static void add_indexes(Group *g, Photo *p)
{
    const char *why;
    double start = now();
    for (uint32_t i = 0; i < MAX_UNITS; i++) {
        PenJpegEntries e;
        PenBuf coded = {0};
        Way *way = &g->ways[i];
        if (pen__entry_scan(scan, &p->header, p->file.data, p->file.bytes, way->unit, &e, &why,
                            NULL) != PEN_OK ||
            pen__entries_write(&e, &coded, NULL) != PEN_OK ||
            pen__entries_parse(coded.data, coded.bytes, &e.plan, e.scan_bytes, &p->entries[i],
                               &p->index[i], NULL) != PEN_OK)
            die("no index");
        way->bytes += coded.bytes;
        pen__buf_free(&coded);
    }
    g->scan_seconds += (now() - start) / MAX_UNITS;
}

static void load_photos(const char *dir, uint32_t n, Group *groups, uint32_t n_groups)
{
    glob_t files;
    size_t step;
    find_photos(dir, n, &files, &step);
    for (size_t i = 0; i < files.gl_pathc; i += step) {
        Photo p;
        if (!load_photo(files.gl_pathv[i], &p))
            continue;
        PenRng rng = pen__rng_init(1, i);
        p.box = draw_box(&rng, p.header.info.width, p.header.info.height);
        for (uint32_t k = 0; k < n_groups; k++) {
            Group *g = &groups[k];
            if (p.header.info.components != 3 || p.header.info.h_samp[0] != g->h ||
                p.header.info.v_samp[0] != g->v || g->n >= n)
                continue;
            add_indexes(g, &p);
            g->bytes += p.file.bytes;
            g->photos[g->n++] = p;
        }
    }
    globfree(&files);
}

static void decode(PenDecoder *d, const Photo *p, uint32_t way)
{
    const PenJpegInfo *info = &p->header.info;
    PenEncoded e = {.data = p->file.data,
                    .bytes = p->file.bytes,
                    .width = info->width,
                    .height = info->height,
                    .codec = PEN_STORED_JPEG,
                    .channels = info->components,
                    .head_bytes = (uint32_t)info->head_bytes,
                    .entries = &p->index[way]};
    decode_box(d, &e, p->box);
}

static void run_round(PenDecoder *d, Group *g, uint32_t round)
{
    for (uint32_t first = 0; first < g->n; first += CHUNK)
        for (uint32_t i = 0; i < PEN_LEN(g->ways); i++) {
            uint32_t way = (i + first / CHUNK + round * 3) % (uint32_t)PEN_LEN(g->ways);
            double start = now();
            for (uint32_t k = first; k < PEN_MIN(first + CHUNK, g->n); k++)
                decode(d, &g->photos[k], way);
            g->ways[way].seconds[round] += now() - start;
        }
}

static void print_group(const Group *g, uint32_t rounds)
{
    double ratio[MAX_ROUNDS], n = g->n;
    printf("%s: %u photographs of %.0f bytes; finding entries %.3f ms each\n", g->name, g->n,
           (double)g->bytes / n, g->scan_seconds / n * 1e3);
    printf("%-8s %10s %10s %10s\n", "MCUs", "index, %", "crop, ms", "x first");
    for (uint32_t i = 0; i < PEN_LEN(g->ways); i++) {
        const Way *w = &g->ways[i];
        for (uint32_t r = 0; r < rounds; r++)
            ratio[r] = g->ways[0].seconds[r] / w->seconds[r];
        printf("%-8u %10.2f %10.3f %10.3f\n", w->unit, (double)w->bytes / (double)g->bytes * 100,
               median(w->seconds, rounds) / n * 1e3, median(ratio, rounds));
    }
}

int main(int argc, char **argv)
{
    static Group groups[] = {
        {.name = "4:4:4",
         .h = 1,
         .v = 1,
         .ways = {{.unit = 4}, {.unit = 8}, {.unit = 12}, {.unit = 16}}},
        {.name = "4:2:0",
         .h = 2,
         .v = 2,
         .ways = {{.unit = 2}, {.unit = 4}, {.unit = 6}, {.unit = 8}}},
    };
    PenDecoder *d = NULL;
    if (argc < 2)
        die("expected a directory of folders of photographs");
    uint32_t n = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10) : 200;
    uint32_t rounds =
        argc > 3 ? PEN_MIN((uint32_t)strtoul(argv[3], NULL, 10), (uint32_t)MAX_ROUNDS) : 7;
    const char *tier = argc > 4 ? argv[4] : pen__cpu_name(pen__cpu());
    if (pen__decoder_new(&d, NULL) != PEN_OK || pen__decoder_use(d, tier, NULL) != PEN_OK)
        die("no such tier on this machine");
    if (pen__entry_scan_new(&scan, NULL) != PEN_OK)
        die("memory");
    for (uint32_t k = 0; k < PEN_LEN(groups); k++)
        if (!(groups[k].photos = malloc((size_t)n * sizeof(Photo))))
            die("memory");
    load_photos(argv[1], n, groups, PEN_LEN(groups));
    printf("%u rounds, %s\n", rounds, tier);
    for (uint32_t k = 0; k < PEN_LEN(groups); k++) {
        for (uint32_t r = 0; r < rounds; r++)
            run_round(d, &groups[k], r);
        print_group(&groups[k], rounds);
    }
    return 0;
}
