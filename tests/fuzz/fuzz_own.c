/* SPDX-License-Identifier: Apache-2.0 */
/* The own decoder against libjpeg: a tiled JPEG, changed as only one who knows JPEG would, decoded
 * by both from the same bytes and the same table of lengths. Of all pixels it has to be the same
 * rows or an error of both; of a box the same rows when libjpeg has no complaint about other parts.
 */
#include <stdlib.h>
#include <string.h>

#include "base/attr.h"
#include "base/machine/cpu.h"
#include "codec/jpeg/tiled.h"
#include "help.h"
#include "region_rows.h"

/* How the file is asked for stands before it. */
enum { ARGUMENTS = 16 };

typedef struct Case {
    Input in;
    PenEncoded image;
    uint8_t *data; /* exactly image.bytes */
    uint32_t *lengths;
    uint8_t components, h, v;
} Case;

/* ---- a case ---- */

static PenBox take_box(Case *c)
{
    PenBox b;
    b.w = 1 + take_below(&c->in, c->image.width);
    b.h = 1 + take_below(&c->in, c->image.height);
    b.x = take_below(&c->in, c->image.width - b.w + 1);
    b.y = take_below(&c->in, c->image.height - b.h + 1);
    return b;
}

/* Only the segments that the rows of the box need. */
static void keep_part(Case *c, PenBox box)
{
    PenCut cut = {PEN_STORED_JPEG, c->components, c->h, c->v, c->image.width, c->image.height, 0};
    uint32_t first, last, n = c->image.end_segment;
    size_t at = c->image.head_bytes, bytes = 0;
    pen__region_segments(&cut, box.y, box.h, &first, &last);
    REQUIRE(first <= last && last < n);
    for (uint32_t i = 0; i <= last; i++)
        *(i < first ? &at : &bytes) += c->lengths[i];
    uint8_t *part = malloc(c->image.head_bytes + bytes);
    REQUIRE(part);
    memcpy(part, c->data, c->image.head_bytes);
    memcpy(part + c->image.head_bytes, c->data + at, bytes);
    free(c->data);
    c->data = c->image.data = part;
    c->image.bytes = c->image.head_bytes + bytes;
    memmove(c->lengths, c->lengths + first, (last - first + 1) * sizeof *c->lengths);
    c->image.partial = 1;
    c->image.first_segment = first;
    c->image.end_segment = last + 1;
}

static bool is_common(const PenJpegInfo *info)
{
    bool common = info->components == 1 ? info->h_samp[0] * info->v_samp[0] == 1
                                        : info->h_samp[0] <= 2 && info->v_samp[0] <= 2;
    for (size_t i = 1; i < info->components; i++)
        common &= info->h_samp[i] == 1 && info->v_samp[i] == 1;
    return common && info->components != 4;
}

static bool make_case(Case *c, const uint8_t *data, size_t bytes)
{
    PenError err;
    PenJpegInfo info;
    uint32_t head, n, *lengths = NULL;
    c->data = copy_of(data, bytes);
    if (!GOES(pen__jpeg_segments(c->data, bytes, &region_limits, &head, &lengths, &n, &err)))
        return false;
    MUST(pen__jpeg_info(c->data, bytes, &region_limits, &info, &err));
    c->lengths = copy_of(lengths, n * sizeof *lengths);
    pen__free(lengths);
    c->components = info.components;
    c->h = info.components == 1 ? 1 : info.h_samp[0];
    c->v = info.components == 1 ? 1 : info.v_samp[0];
    c->image = (PenEncoded){.data = c->data,
                            .bytes = bytes,
                            .width = info.width,
                            .height = info.height,
                            .codec = PEN_STORED_JPEG,
                            .channels = info.components,
                            .tiled = 1,
                            .head_bytes = head,
                            .end_segment = n,
                            .segment_bytes = c->lengths};
    return is_common(&info);
}

static void take_lies(Case *c)
{
    uint32_t n = c->image.end_segment - c->image.first_segment;
    for (uint32_t i = take_below(&c->in, 3); i; i--) {
        uint32_t at = take_below(&c->in, PEN_MIN(n, 65536u));
        c->lengths[at] += (uint32_t)(int8_t)take_byte(&c->in);
    }
}

static void compare(PenDecoder *own, PenDecoder *turbo, const Case *c, PenBox box)
{
    Rows found, expected;
    bool all = box.w == c->image.width && box.h == c->image.height;
    int by_turbo = decode_rows(turbo, &c->image, box, &expected);
    int r = decode_rows(own, &c->image, box, &found);
    if (by_turbo == PEN_OK || all)
        REQUIRE(r == by_turbo);
    if (by_turbo == PEN_OK)
        REQUIRE(memcmp(found.data, expected.data, expected.n * expected.row_bytes) == 0);
    free(found.data);
    free(expected.data);
}

/* All of a complete image at a smaller size. */
static void compare_shrunk(PenDecoder *own, PenDecoder *turbo, const Case *c, uint32_t shrink)
{
    Rows found, expected;
    PenBox all = {.w = pen__shrunk_side(c->image.width, shrink),
                  .h = pen__shrunk_side(c->image.height, shrink)};
    if (c->image.partial)
        return;
    int by_turbo = decode_shrunk(turbo, &c->image, all, shrink, &expected);
    REQUIRE(decode_shrunk(own, &c->image, all, shrink, &found) == by_turbo);
    if (by_turbo == PEN_OK)
        REQUIRE(memcmp(found.data, expected.data, expected.n * expected.row_bytes) == 0);
    free(found.data);
    free(expected.data);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    /* They stay: what an image leaves behind must not be seen in the next. */
    static PenDecoder *turbo, *tiers[PEN_CPU_TIERS];
    static uint32_t n_tiers;
    if (!turbo) {
        turbo = make_decoder("turbo");
        for (int i = 0; i <= pen__cpu(); i++)
            if ((tiers[n_tiers] = make_decoder(pen__cpu_name(i))))
                n_tiers++;
    }
    size_t n = PEN_MIN(bytes, (size_t)ARGUMENTS);
    Case c = {.in = {data, n}};
    PenDecoder *own = tiers[take_byte(&c.in) % n_tiers];
    uint32_t way = take_byte(&c.in);
    if (make_case(&c, data + n, bytes - n)) {
        PenBox box = {0, 0, c.image.width, c.image.height};
        if (way & 1)
            box = take_box(&c);
        if (way & 2)
            keep_part(&c, box);
        if (way & 4)
            take_lies(&c);
        compare(own, turbo, &c, box);
        if (way & 8)
            compare_shrunk(own, turbo, &c, 1 + way / 64 % PEN_SHRINK_MOST);
    }
    free(c.data);
    free(c.lengths);
    return 0;
}

/* ---- changes ---- */

typedef struct Jpeg {
    uint8_t *data;
    size_t bytes, max_bytes;
    size_t head;                   /* end of it */
    size_t starts[256], ends[256]; /* of segments, without their markers */
    uint32_t n;
    Dice *dice;
} Jpeg;

static bool parse(Jpeg *j)
{
    PenJpegInfo info;
    if (pen__jpeg_info(j->data, j->bytes, &region_limits, &info, NULL) < 0)
        return false;
    j->head = info.head_bytes;
    size_t start = j->head;
    for (size_t i = start; i + 1 < j->bytes && j->n < PEN_LEN(j->starts); i++) {
        if (j->data[i] != 0xFF || j->data[i + 1] == 0 || j->data[i + 1] == 0xFF)
            continue;
        j->starts[j->n] = start;
        j->ends[j->n++] = i;
        start = i + 2;
    }
    return j->n > 0;
}

/* The bytes [from, to) become `n` bytes of `with`. */
static void replace(Jpeg *j, size_t from, size_t to, const uint8_t *with, size_t n)
{
    if (j->bytes - (to - from) + n > j->max_bytes)
        return;
    uint8_t *copy = copy_of(with, n);
    memmove(j->data + from + n, j->data + to, j->bytes - to);
    memcpy(j->data + from, copy, n);
    j->bytes = j->bytes - (to - from) + n;
    free(copy);
}

/* A byte of a segment; 0xFF keeps its zero. */
static void change_bits(Jpeg *j)
{
    uint32_t s = roll(j->dice, j->n);
    size_t n = j->ends[s] - j->starts[s];
    for (uint32_t i = 1 + roll(j->dice, 4); i && n; i--) {
        uint8_t *p = j->data + j->starts[s] + roll(j->dice, n);
        if (p[0] == 0xFF || (p > j->data && p[-1] == 0xFF))
            continue;
        p[0] ^= (uint8_t)(1u << roll(j->dice, 8));
        p[0] -= p[0] == 0xFF;
    }
}

/* Long codes and runs of ones come of bytes that are nearly all ones. */
static void put_ones(Jpeg *j)
{
    static const uint8_t ones[] = {0xFE, 0xFF, 0x00, 0xFE, 0x7F, 0xFF, 0x00, 0xFC};
    uint32_t s = roll(j->dice, j->n), n = 1 + roll(j->dice, sizeof ones);
    size_t at = j->starts[s] + roll(j->dice, j->ends[s] - j->starts[s] + 1);
    if (at > j->starts[s] && j->data[at - 1] == 0xFF)
        return;
    n -= ones[n - 1] == 0xFF;
    size_t end = roll(j->dice, 2) ? at + n : at;
    replace(j, at, PEN_MIN(end, j->ends[s]), ones, n);
}

static void copy_segment(Jpeg *j)
{
    uint32_t from = roll(j->dice, j->n), to = roll(j->dice, j->n);
    replace(j, j->starts[to], j->ends[to], j->data + j->starts[from],
            j->ends[from] - j->starts[from]);
}

static void shorten_segment(Jpeg *j)
{
    uint32_t s = roll(j->dice, j->n);
    size_t n = roll(j->dice, PEN_MIN(j->ends[s] - j->starts[s], (size_t)8) + 1);
    if (n && j->ends[s] - n > j->starts[s] && j->data[j->ends[s] - n - 1] == 0xFF)
        return;
    replace(j, j->ends[s] - n, j->ends[s], NULL, 0);
}

static void lengthen_segment(Jpeg *j)
{
    uint8_t more[4];
    uint32_t s = roll(j->dice, j->n), n = 1 + roll(j->dice, sizeof more);
    for (uint32_t i = 0; i < n; i++)
        more[i] = (uint8_t)roll(j->dice, roll(j->dice, 16) ? 255 : 256);
    replace(j, j->ends[s], j->ends[s], more, n);
}

/* Somewhere in the body of the n-th marker of this code. */
static void change_marker(Jpeg *j, uint8_t code)
{
    uint32_t n = roll(j->dice, 4);
    for (size_t i = 2; i + 4 < j->head; i += 2 + j->data[i + 2] * 256u + j->data[i + 3]) {
        if (j->data[i + 1] != code || n--)
            continue;
        size_t bytes = j->data[i + 2] * 256u + j->data[i + 3] - 2u;
        if (bytes > j->head - i - 4)
            return;
        uint8_t *p = j->data + i + 4 + roll(j->dice, bytes);
        if (roll(j->dice, 2))
            *p ^= (uint8_t)(1u << roll(j->dice, 8));
        else
            *p = (uint8_t)(*p + roll(j->dice, 5) - 2);
        return;
    }
}

/* One code shorter and two longer ones: the table stays whole, and all that follows moves. */
static void move_codes(Jpeg *j)
{
    uint32_t n = roll(j->dice, 4);
    for (size_t i = 2; i + 21 < j->head; i += 2 + j->data[i + 2] * 256u + j->data[i + 3]) {
        if (j->data[i + 1] != 0xC4 || n--)
            continue;
        uint8_t *counts = j->data + i + 5;
        uint32_t a = roll(j->dice, 16), b = roll(j->dice, 16);
        if (counts[a] && counts[b] < 255) {
            counts[a]--;
            counts[b]++;
        }
        return;
    }
}

static void change(Jpeg *j)
{
    switch (roll(j->dice, 12)) {
    case 0:
        copy_segment(j);
        break;
    case 1:
        shorten_segment(j);
        break;
    case 2:
        lengthen_segment(j);
        break;
    case 3:
        change_marker(j, 0xC4); /* DHT */
        break;
    case 4:
        move_codes(j);
        break;
    case 5:
        change_marker(j, 0xDB); /* DQT */
        break;
    case 6:
        change_marker(j, roll(j->dice, 2) ? 0xC0 : 0xDA); /* SOF, SOS */
        break;
    case 7:
    case 8:
        put_ones(j);
        break;
    default:
        change_bits(j);
        break;
    }
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t bytes, size_t max_bytes, unsigned seed)
{
    Dice dice = {seed};
    if (bytes <= ARGUMENTS || roll(&dice, 16) == 0)
        return LLVMFuzzerMutate(data, bytes, max_bytes);
    if (roll(&dice, 3) == 0) {
        for (uint32_t n = 1 + roll(&dice, 4); n; n--)
            data[roll(&dice, ARGUMENTS)] = (uint8_t)roll(&dice, 256);
        return bytes;
    }
    for (uint32_t n = 1 + roll(&dice, 3); n; n--) {
        Jpeg j = {.data = data + ARGUMENTS,
                  .bytes = bytes - ARGUMENTS,
                  .max_bytes = max_bytes - ARGUMENTS,
                  .dice = &dice};
        if (!parse(&j))
            return bytes;
        change(&j);
        bytes = j.bytes + ARGUMENTS;
    }
    return bytes;
}
