/* SPDX-License-Identifier: Apache-2.0 */
/* Hostile entry indexes: 100,000 of them with PENSTOCK_SCALE=full. Each is refused, or it is used
 * for the entire image, for a box of the complete file, and for a box of which only the part is
 * there that the index asks for. The entire image has the pixels of libjpeg, whatever the index
 * says. A box is delivered or left to libjpeg; its pixels may be wrong, as
 * docs/explanation/adr/0003-jpegs-with-an-entry-index.md says. Everything lies in memory of just
 * its size: the address sanitizer sees every byte too many. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/machine/cpu.h"
#include "base/rng.h"
#include "codec/jpeg/decoder/scan.h"
#include "codec/jpeg/turbo/turbo.h"
#include "lib/images.h"
#include "lib/region_help.h"
#include "lib/sweep.h"
#include "unit/test.h"

static const PenLimits *const limits = &pen__limits_default;

typedef struct File {
    uint8_t *data; /* exactly */
    size_t bytes;
    PenPixels whole;
    PenJpegHeader header;
    PenJpegEntries index;
    PenEntry *entries;
} File;

enum { N_FILES = 7 };
static File files[N_FILES];
static PenDecoder *decoders[PEN_CPU_TIERS];
static uint32_t n_decoders;
static PenRng rng;

/* What a hostile pack says about a file. */
typedef struct Claim {
    const File *file;
    PenEntry *entries;
    PenBuf coded, parsed;
    uint64_t scan_bytes;
    PenJpegEntries index;
} Claim;

typedef struct Tally {
    uint64_t refused, boxes, wrong, parts, stopped;
} Tally;

static uint32_t below(uint32_t n)
{
    return (uint32_t)pen__rng_below(&rng, n);
}

/* ---- files ----------------------------------------------------------------------------------- */

static void make_file(File *f, const PenBuf *jpeg, PenEntryScan *scan)
{
    const char *why = NULL;
    f->bytes = jpeg->bytes;
    f->data = exact_copy(jpeg->data, jpeg->bytes);
    MUST(pen__image_decode(f->data, f->bytes, limits, &f->whole, NULL) == PEN_OK);
    MUST(pen__jpeg_header(f->data, f->bytes, limits, &f->header, NULL) == PEN_OK);
    uint32_t unit = pen__entry_unit(&f->header.info);
    MUST(pen__entry_scan(scan, &f->header, f->data, f->bytes, unit, &f->index, &why, NULL) ==
         PEN_OK);
    size_t n = f->index.plan.n_entries;
    f->entries = malloc(n * sizeof *f->entries);
    MUST(f->entries);
    memcpy(f->entries, f->index.at, n * sizeof *f->entries);
}

/* Sampling of all kinds that encoders write, with and without restart markers. */
static void make_files(void)
{
    static const ImageSpec specs[] = {{203, 97, 3, 1, 1, 0, 0},
                                      {203, 97, 3, 2, 0, 1, 0},
                                      {120, 300, 3, 3, 2, 1, 0},
                                      {150, 90, 1, 4, 0, 0, 0}};
    static const uint32_t restarts[] = {3, 11, 13};
    PenEntryScan *scan = NULL;
    PenBuf jpeg = {0};
    MUST(pen__entry_scan_new(&scan, NULL) == PEN_OK);
    for (size_t i = 0; i < PEN_LEN(specs); i++) {
        image_jpeg(&specs[i], &jpeg);
        make_file(&files[i], &jpeg, scan);
    }
    for (size_t i = 0; i < PEN_LEN(restarts); i++) {
        jpeg.bytes = 0;
        MUST(pen__turbo_encode(&files[i].whole, 92, limits, &jpeg, NULL) == PEN_OK);
        reference_transcode(jpeg.data, jpeg.bytes, restarts[i], &jpeg);
        make_file(&files[PEN_LEN(specs) + i], &jpeg, scan);
    }
    pen__buf_free(&jpeg);
    pen__entry_scan_free(&scan);
}

static void free_files(void)
{
    for (int i = 0; i < N_FILES; i++) {
        free(files[i].data);
        free(files[i].entries);
        pen__pixels_free(&files[i].whole);
    }
}

static void make_decoders(void)
{
    for (int i = 0; i < PEN_CPU_TIERS; i++) {
        PenDecoder *d = NULL;
        MUST(pen__decoder_new(&d, NULL) == PEN_OK);
        if (pen__decoder_use(d, pen__cpu_name(i), NULL) == PEN_OK)
            decoders[n_decoders++] = d;
        else
            pen__decoder_free(&d);
    }
}

/* ---- lies ------------------------------------------------------------------------------------ */

static void shift_from(Claim *c, uint32_t first, int64_t bits)
{
    for (uint32_t i = first; i < c->file->index.plan.n_entries; i++)
        c->entries[i].bit += (uint64_t)bits;
}

/* Anywhere in the scan, in order. */
static void scatter(Claim *c)
{
    const PenEntryPlan *plan = &c->file->index.plan;
    uint64_t bit = 0, room = 16 * c->file->index.scan_bytes / plan->n_entries;
    for (uint32_t i = 1; i < plan->n_entries; i++) {
        bit += 1 + below((uint32_t)room + 1);
        bool restart = pen__entry_is_restart(plan, i);
        bit = restart ? (bit + 24) / 8 * 8 : bit;
        c->entries[i].bit = bit;
        for (uint32_t k = 0; k < plan->components; k++)
            c->entries[i].dc[k] = restart ? 0 : (int16_t)below(65536);
    }
}

static void change_entries(Claim *c)
{
    const PenEntryPlan *plan = &c->file->index.plan;
    uint32_t i = 1 + below(plan->n_entries - 1), k = below(plan->components);
    bool restart = pen__entry_is_restart(plan, i);
    switch (below(6)) {
    case 0:
        c->entries[i].bit += (below(2) ? 1 : (uint64_t)-1) * (restart ? 8 : 1 + below(40));
        break;
    case 1:
        c->entries[i].dc[k] = restart ? 0 : (int16_t)below(65536);
        break;
    case 2:
        shift_from(c, i, (int64_t)below(64) * 8 - 256);
        break;
    case 3: /* the state of another entry */
        memcpy(c->entries[i].dc, c->entries[below(plan->n_entries)].dc, sizeof c->entries[i].dc);
        break;
    case 4:
        scatter(c);
        break;
    default: /* all that follow lie at the end of the scan */
        shift_from(c, i,
                   (int64_t)(8 * c->file->index.scan_bytes) -
                       (int64_t)c->entries[plan->n_entries - 1].bit - 1 - below(16));
    }
}

static void change_bytes(Claim *c)
{
    PenBuf *b = &c->coded;
    for (uint32_t n = 1 + below(4); n && b->bytes > 1; n--) {
        size_t at = below((uint32_t)b->bytes);
        if (below(3)) {
            b->data[at] = below(2) ? (uint8_t)below(256) : b->data[at] ^ (uint8_t)(1u << below(8));
        } else {
            memmove(b->data + at, b->data + at + 1, b->bytes - at - 1);
            b->bytes--;
        }
    }
}

/* Makes an index that is not that of the file. False: it cannot be written, or is refused. */
static bool make_claim(Claim *c)
{
    const PenJpegEntries *right = &c->file->index;
    memcpy(c->entries, c->file->entries, right->plan.n_entries * sizeof *c->entries);
    c->scan_bytes = right->scan_bytes + (below(8) ? 0 : below(5)) - (below(8) ? 0 : below(5000));
    uint32_t how = below(3);
    for (uint32_t n = 1 + below(3); how != 2 && n; n--)
        change_entries(c);
    PenJpegEntries said = {.plan = right->plan, .at = c->entries, .scan_bytes = c->scan_bytes};
    c->coded.bytes = 0;
    if (pen__entries_write(&said, &c->coded, NULL) != PEN_OK)
        return false;
    if (how)
        change_bytes(c);
    uint8_t *exact = exact_copy(c->coded.data, c->coded.bytes);
    int r = pen__entries_parse(exact, c->coded.bytes, &right->plan, c->scan_bytes, &c->parsed,
                               &c->index, NULL);
    free(exact);
    return r == PEN_OK;
}

/* ---- use ------------------------------------------------------------------------------------- */

static PenBox some_box(const PenPixels *p)
{
    PenBox b = {.w = 1 + below(p->width), .h = 1 + below(p->height)};
    b.x = below(p->width - b.w + 1);
    b.y = below(p->height - b.h + 1);
    return b;
}

static PenEncoded complete(const Claim *c)
{
    const File *f = c->file;
    return (PenEncoded){.data = f->data,
                        .bytes = f->bytes,
                        .width = f->whole.width,
                        .height = f->whole.height,
                        .codec = PEN_STORED_JPEG,
                        .channels = (uint8_t)f->whole.channels,
                        .head_bytes = (uint32_t)f->header.info.head_bytes,
                        .entries = &c->index};
}

static void use_whole(Sweep *s, const Claim *c, PenDecoder *d, Collected *found)
{
    const PenPixels *whole = &c->file->whole;
    PenBox all = {0, 0, whole->width, whole->height};
    PenEncoded image = complete(c);
    PenError e = {0};
    int r = find_region(d, &image, all, PEN_COLOUR_RGB, found, &e);
    if (r != PEN_OK)
        sweep_bad(s, "entire image: status %d, %s", r, e.message);
    else if (count_different(whole, all, PEN_COLOUR_RGB, found))
        sweep_bad(s, "entire image: wrong pixels");
}

static void use_boxes(Sweep *s, const Claim *c, PenDecoder *d, Collected *found, Tally *tally)
{
    const PenPixels *whole = &c->file->whole;
    PenBox box = some_box(whole);
    PenEncoded image = complete(c);
    PenError e = {0};
    int r = find_region(d, &image, box, PEN_COLOUR_RGB, found, &e);
    if (r != PEN_OK)
        sweep_bad(s, "box: status %d, %s", r, e.message);
    else
        tally->wrong += count_different(whole, box, PEN_COLOUR_RGB, found) != 0;
    tally->boxes++;
    if (c->scan_bytes > c->file->bytes - c->file->header.info.head_bytes)
        return; /* no table can say that */
    uint8_t *bytes;
    image = part_of_indexed(&image, &c->file->header.info, box, &bytes);
    r = find_region(d, &image, box, PEN_COLOUR_RGB, found, &e);
    if (r != PEN_OK && r != PEN_END)
        sweep_bad(s, "part: status %d, %s", r, e.message);
    tally->parts++;
    tally->stopped += r == PEN_END;
    free(bytes);
}

TEST(hostile_indexes)
{
    uint64_t n = scaled(100000, 2000);
    Sweep s = sweep_begin("hostile entry indexes");
    Tally tally = {0};
    Collected found = {0};
    Claim claims[N_FILES] = {0};
    for (int i = 0; i < N_FILES; i++) {
        claims[i].file = &files[i];
        claims[i].entries = malloc(files[i].index.plan.n_entries * sizeof(PenEntry));
        MUST(claims[i].entries);
    }
    for (; s.n < n; s.n++) {
        Claim *c = &claims[s.n % N_FILES];
        PenDecoder *d = decoders[s.n / N_FILES % n_decoders];
        rng = pen__rng_init(9, s.n);
        if (!make_claim(c)) {
            tally.refused++;
            continue;
        }
        use_whole(&s, c, d, &found);
        use_boxes(&s, c, d, &found, &tally);
    }
    sweep_end(&s,
              "%" PRIu64 " indexes, %" PRIu64 " refused; of %" PRIu64 " boxes %" PRIu64
              " with wrong pixels; of %" PRIu64 " parts %" PRIu64 " left to libjpeg",
              s.n, tally.refused, tally.boxes, tally.wrong, tally.parts, tally.stopped);
    for (int i = 0; i < N_FILES; i++) {
        free(claims[i].entries);
        pen__buf_free(&claims[i].coded);
        pen__buf_free(&claims[i].parsed);
    }
    pen__buf_free(&found.pixels);
    CHECK_INT(s.bad, 0);
    CHECK(tally.refused > n / 20 && tally.boxes > n / 4 && tally.stopped > tally.parts / 20);
}

int main(int argc, char **argv)
{
    TEST_START(argc, argv);
    make_files();
    make_decoders();
    RUN(hostile_indexes);
    for (uint32_t i = 0; i < n_decoders; i++)
        pen__decoder_free(&decoders[i]);
    free_files();
    return TEST_END();
}
