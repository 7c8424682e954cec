/* SPDX-License-Identifier: Apache-2.0 */
/* A region of an image, from any bytes and with any table of segments: what is given out has to be
 * the crop of the whole decode, unless the table was made to lie. */
#include <stdlib.h>
#include <string.h>

#include "base/attr.h"
#include "codec/jpeg/tiled.h"
#include "codec/region/region.h"
#include "help.h"

static const PenLimits limits = {
    .max_pixels = 1 << 18, .max_memory_bytes = 32 << 20, .max_scans = 20};

enum { KEPT, TILED, PART, RAW, N_WAYS };

typedef struct Case {
    Input in;
    uint32_t way;
    int32_t colour;
    PenEncoded image;
    uint8_t *data; /* exactly image.bytes */
    uint32_t *lengths;
    bool lies;       /* about lengths */
    bool odd;        /* no pack would call it tiled */
    PenPixels whole; /* data is NULL when it cannot be decoded */
} Case;

/* Rows that were found, compared as they come. */
typedef struct Rows {
    const Case *c;
    PenBox box;
    uint32_t n, stop_at;
} Rows;

static uint8_t expected_sample(const Rows *r, uint32_t x, uint32_t y, uint32_t i)
{
    const PenPixels *w = &r->c->whole;
    const uint8_t *p = w->data + ((size_t)y * w->width + x) * w->channels;
    if (w->channels == 1)
        return p[0];
    if (r->c->colour == PEN_COLOUR_RGB)
        return p[i];
    return (uint8_t)((p[0] * 19595u + p[1] * 38470u + p[2] * 7471u + 32768) >> 16);
}

static int compare_rows(void *ctx, const uint8_t *rows, size_t stride, uint32_t n, PenError *reterr)
{
    Rows *r = ctx;
    uint32_t each = r->c->colour == PEN_COLOUR_RGB ? 3 : 1;
    REQUIRE(n && n <= r->box.h - r->n);
    for (uint32_t y = 0; y < n; y++)
        for (uint32_t x = 0; x < r->box.w * each; x++) {
            uint8_t found = rows[y * stride + x];
            if (r->c->whole.data && !r->c->lies)
                REQUIRE(found ==
                        expected_sample(r, r->box.x + x / each, r->box.y + r->n + y, x % each));
        }
    r->n += n;
    if (r->stop_at && r->n >= r->stop_at)
        return pen__fail(reterr, PEN_E_CANCELLED, "fuzz", "stopped");
    return PEN_OK;
}

static PenBox take_box(Case *c)
{
    PenBox b;
    b.w = 1 + take_below(&c->in, c->image.width);
    b.h = 1 + take_below(&c->in, c->image.height);
    b.x = take_below(&c->in, c->image.width - b.w + 1);
    b.y = take_below(&c->in, c->image.height - b.h + 1);
    /* Edges of blocks are where something can go wrong. */
    uint32_t aligned = take_byte(&c->in);
    b.x -= aligned & 1 ? b.x % 16 : 0;
    b.y -= aligned & 2 ? b.y % 16 : 0;
    b.w -= aligned & 4 && b.w > 16 ? (b.x + b.w) % 16 : 0;
    b.h -= aligned & 8 && b.h > 16 ? (b.y + b.h) % 16 : 0;
    return b;
}

static void set_data(Case *c, const void *data, size_t bytes)
{
    uint8_t *copy = copy_of(data, bytes);
    free(c->data);
    c->data = c->image.data = copy;
    c->image.bytes = bytes;
}

static void take_lies(Case *c, uint32_t n)
{
    uint32_t *lengths = c->lengths;
    for (uint32_t i = take_below(&c->in, 4); i && n; i--) {
        uint32_t at = take_below(&c->in, PEN_MIN(n, 65536u));
        lengths[at] += (uint32_t)(int8_t)take_byte(&c->in) << take_below(&c->in, 2) * 24;
        c->lies = true;
    }
    if (take_byte(&c->in) % 8 == 7) {
        c->image.head_bytes += take_byte(&c->in) - 128u;
        c->lies = true;
    }
}

/* Leaves only the segments that the rows of the box need. */
static void keep_part(Case *c, const PenJpegInfo *info, PenBox box, uint32_t n)
{
    PenCut cut = {PEN_STORED_JPEG,
                  info->components,
                  info->h_samp[0],
                  info->v_samp[0],
                  info->width,
                  info->height,
                  0};
    uint32_t first, last;
    size_t at = c->image.head_bytes, bytes = 0;
    pen__region_segments(&cut, box.y, box.h, &first, &last);
    REQUIRE(first <= last && last < n);
    for (uint32_t i = 0; i <= last; i++)
        *(i < first ? &at : &bytes) += c->lengths[i];
    memmove(c->data + c->image.head_bytes, c->data + at, bytes);
    set_data(c, c->data, c->image.head_bytes + bytes);
    memmove(c->lengths, c->lengths + first, (last - first + 1) * sizeof *c->lengths);
    c->image.partial = 1;
    c->image.first_segment = first;
    c->image.end_segment = last + 1;
}

/* False when it cannot be called tiled. */
static bool make_tiled(Case *c, PenBox box)
{
    PenError err;
    PenJpegInfo info;
    uint32_t head, n, *lengths = NULL;
    if (c->image.codec != PEN_STORED_JPEG) /* other rules say where a JPEG begins */
        return false;
    if (!GOES(pen__jpeg_segments(c->data, c->image.bytes, &limits, &head, &lengths, &n, &err)))
        return false;
    MUST(pen__jpeg_info(c->data, c->image.bytes, &limits, &info, &err));
    /* What no table of a pack says. */
    bool common = info.components == 1 ? info.h_samp[0] * info.v_samp[0] == 1
                                       : info.h_samp[0] <= 2 && info.v_samp[0] <= 2;
    for (size_t i = 1; i < info.components; i++)
        common &= info.h_samp[i] == 1 && info.v_samp[i] == 1;
    c->lengths = copy_of(lengths, n * sizeof *lengths);
    pen__free(lengths);
    c->image.tiled = 1;
    c->image.head_bytes = head;
    c->image.end_segment = n;
    c->image.segment_bytes = c->lengths;
    c->odd = !common;
    if (c->way == PART && common)
        keep_part(c, &info, box, n);
    take_lies(c, c->image.end_segment - c->image.first_segment);
    return true;
}

static void make_raw(Case *c)
{
    static const uint8_t channels[] = {1, 3, 4, 2};
    c->image.codec = PEN_STORED_RAW;
    c->image.channels = channels[take_byte(&c->in) % 4];
    c->image.width = 1 + take_below(&c->in, 64);
    size_t row = (size_t)c->image.width * c->image.channels;
    c->image.height = (uint32_t)PEN_MIN(c->in.bytes / row, (size_t)4096);
    set_data(c, c->in.data, c->image.height * row);
    c->image.height += !c->image.height;
}

/* What the file is, and all of its pixels when it can be decoded. */
static void make_file(Case *c, const uint8_t *data, size_t bytes)
{
    PenError err;
    PenImageInfo info = {.width = 40, .height = 30};
    set_data(c, data, bytes);
    (void)CALL(pen__image_probe(c->data, bytes, &limits, &info, &err));
    c->image.codec = (uint8_t)pen__image_sniff(c->data, bytes);
    c->image.width = info.width;
    c->image.height = info.height;
    PenPixels whole = {0};
    if (CALL((c->colour == PEN_COLOUR_MASK ? pen__mask_decode : pen__image_decode)(
            c->data, bytes, &limits, &whole, &err)) == PEN_OK)
        c->whole = whole;
}

static void decode(Case *c, PenDecoder *d, PenBox box, uint32_t stop_at)
{
    PenError err;
    PenImageHeader header;
    uint64_t memory = 0;
    Rows rows = {.c = c, .box = box, .stop_at = stop_at};
    PenRegion region = {
        .box = box, .colour = c->colour, .limits = &limits, .rows = compare_rows, .ctx = &rows};
    if (GOES(pen__image_header(&c->image, &limits, &header, &err)))
        memory = pen__region_memory(&header, &box, 0);
    int r = CALL(pen__region_decode(d, &c->image, &region, &err));
    if (r == PEN_OK)
        REQUIRE(memory && rows.n == box.h);
    /* What is whole and said truly is not refused. */
    if (c->whole.data && !c->lies)
        REQUIRE(r == PEN_OK || (stop_at && r == PEN_E_CANCELLED) || c->odd);
}

/* The same by the public call, into memory of exactly its size. A turned image is decoded whole. */
static void decode_alone(const Case *c, PenBox box)
{
    PenError err;
    PenImageInfo info;
    PenDecodeSettings s;
    PenDecodeItem item = {.data = c->data, .bytes = c->image.bytes};
    Rows rows = {.c = c, .box = box};
    uint32_t each = c->colour == PEN_COLOUR_RGB ? 3 : 1;
    pen_decode_settings_init(&s);
    s.mode = c->colour == PEN_COLOUR_RGB    ? PEN_DECODE_RGB
             : c->colour == PEN_COLOUR_GREY ? PEN_DECODE_GRAY
                                            : PEN_DECODE_MASK;
    MUST(pen__image_probe(c->data, c->image.bytes, &limits, &info, &err));
    if (info.orientation == 1)
        item.box = box;
    MUST(pen_decode(&item, &s, &err));
    item.cap = (size_t)item.size[0] * item.size[1] * each;
    item.pixels = malloc(item.cap);
    REQUIRE(item.pixels);
    MUST(pen_decode(&item, &s, &err));
    require_written(item.pixels, item.cap);
    if (info.orientation == 1)
        REQUIRE(compare_rows(&rows, item.pixels, (size_t)box.w * each, box.h, &err) == PEN_OK);
    free(item.pixels);
}

/* How the file is asked for stands before it. */
enum { ARGUMENTS = 24 };

/* Files seldom survive a change: every second time something else is asked of the same one. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t bytes, size_t max_bytes, unsigned seed)
{
    Dice dice = {seed};
    if (bytes <= ARGUMENTS || roll(&dice, 2))
        return LLVMFuzzerMutate(data, bytes, max_bytes);
    for (uint32_t n = 1 + roll(&dice, 8); n; n--)
        data[roll(&dice, ARGUMENTS)] = (uint8_t)roll(&dice, 256);
    return bytes;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static const int32_t colours[] = {PEN_COLOUR_RGB, PEN_COLOUR_GREY, PEN_COLOUR_MASK};
    PenError err;
    PenDecoder *d = NULL;
    size_t n = PEN_MIN(bytes, (size_t)ARGUMENTS);
    Case c = {.in = {data, n}};
    MUST(pen__decoder_new(&d, &err));
    c.way = take_byte(&c.in) % N_WAYS;
    c.colour = colours[take_byte(&c.in) % 3];
    uint32_t stop_at = take_byte(&c.in) % 8 == 7 ? 1 + take_byte(&c.in) : 0;
    if (c.way == RAW) {
        c.in = (Input){data + n, bytes - n};
        make_raw(&c);
    } else {
        make_file(&c, data + n, bytes - n);
    }
    PenBox box = take_box(&c);
    if (c.way == TILED || c.way == PART)
        make_tiled(&c, box);
    decode(&c, d, box, stop_at);
    /* With what the first left behind. */
    decode(&c, d, box, 0);
    if (c.way == KEPT && c.whole.data)
        decode_alone(&c, box);
    pen__decoder_free(&d);
    pen__pixels_free(&c.whole);
    free(c.data);
    free(c.lengths);
    return 0;
}
