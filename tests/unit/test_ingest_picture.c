/* SPDX-License-Identifier: Apache-2.0 */
/* Headers of pictures that no encoder here writes: fields, pictures that are not shown, several of
 * them in a packet, leading pictures of a sequence that starts anew. */
#include <stdlib.h>

#include "base/attr.h"
#include "ingest/video/picture.h"
#include "pack/format/video_table.h"
#include "test.h"

/* ---- bits ------------------------------------------------------------------------------------ */

typedef struct Bits {
    uint8_t data[256];
    size_t n; /* bits */
} Bits;

static void put(Bits *b, unsigned bits, uint64_t v)
{
    while (bits--) {
        b->data[b->n / 8] |= (uint8_t)((v >> bits & 1) << (7 - b->n % 8));
        b->n++;
    }
}

static void put_golomb(Bits *b, uint32_t v)
{
    unsigned bits = 32 - (unsigned)__builtin_clz(v + 1);
    put(b, bits - 1, 0);
    put(b, bits, (uint64_t)v + 1);
}

static void align(Bits *b)
{
    b->n = (b->n + 7) / 8 * 8;
}

/* Another one behind it, after a start code or its length in four bytes. */
static void add_unit(Bits *to, const Bits *unit, bool has_length)
{
    align(to);
    put(to, 32, has_length ? (unit->n + 7) / 8 : 1);
    for (size_t i = 0; i < (unit->n + 7) / 8; i++)
        put(to, 8, unit->data[i]);
}

static const char *parse(PenPictureParser *p, const Bits *b, PenPicture *ret)
{
    size_t bytes = (b->n + 7) / 8;
    uint8_t *exact = malloc(bytes + 1);
    memcpy(exact, b->data, bytes);
    const char *wrong = pen__picture_parse(p, exact, bytes, ret);
    free(exact);
    return wrong;
}

#define CHECK_PICTURE(parser, bits, frames, key)                                                   \
    do {                                                                                           \
        PenPicture test__p;                                                                        \
        const char *test__w = parse(parser, bits, &test__p);                                       \
        CHECK_STR(test__w ? test__w : "", "");                                                     \
        CHECK_INT(test__p.shown, frames);                                                          \
        CHECK_INT(test__p.is_key, key);                                                            \
    } while (0)

#define CHECK_WRONG(parser, bits, text)                                                            \
    do {                                                                                           \
        PenPicture test__p;                                                                        \
        CHECK_STR(parse(parser, bits, &test__p), text);                                            \
    } while (0)

/* ---- H.264 ----------------------------------------------------------------------------------- */

/* With a byte 3 after each two bytes 0 that come before one of 0 to 3. */
static Bits escaped(const Bits *b)
{
    Bits ret = {0};
    unsigned zeros = 0;
    for (size_t i = 0; i < (b->n + 7) / 8; i++) {
        if (zeros == 2 && b->data[i] <= 3) {
            put(&ret, 8, 3);
            zeros = 0;
        }
        put(&ret, 8, b->data[i]);
        zeros = b->data[i] ? 0 : zeros + 1;
    }
    return ret;
}

/* `high`: planes of their own, scaling lists, and pictures in an order of type 1. */
static Bits h264_sequence(bool high, bool has_fields)
{
    Bits b = {0};
    put(&b, 32, 0x67000000u | (high ? 244u : 66u) << 16 | 30);
    put_golomb(&b, 1); /* its number */
    if (high) {
        put_golomb(&b, 3);
        put(&b, 1, 1); /* separate_colour_plane_flag */
        put_golomb(&b, 0);
        put_golomb(&b, 0);
        put(&b, 2, 1);
        put(&b, 1, 1);
        for (int i = 0; i < 16; i++)
            put_golomb(&b, 1); /* + 1 */
        put(&b, 1, 1);
        put_golomb(&b, 16); /* 8 - 8: the rest is not there */
        put(&b, 10, 0);
    }
    put_golomb(&b, 2); /* 6 bits of frame_num */
    put_golomb(&b, high ? 1 : 2);
    if (high) {
        put(&b, 1, 0);
        put_golomb(&b, 5);
        put_golomb(&b, 6);
        put_golomb(&b, 4);
        for (int i = 0; i < 4; i++)
            put_golomb(&b, (1u << 30) - 1); /* 30 bits 0, a 1, and 30 bits 0 */
    }
    put_golomb(&b, 1);
    put(&b, 1, 0);
    put_golomb(&b, 3);
    put_golomb(&b, 2);
    put(&b, 1, !has_fields);
    put(&b, 8, 0xff);
    return escaped(&b);
}

static Bits h264_slice(bool high, unsigned type, uint32_t first, uint32_t kind, unsigned field)
{
    Bits b = {0};
    put(&b, 8, 0x40 | type);
    put_golomb(&b, first);
    put_golomb(&b, kind);
    put_golomb(&b, 3); /* picture parameter set */
    put(&b, high ? 2 : 0, 2);
    put(&b, 6, 0);
    put(&b, 1, field);
    put(&b, 8, 0xff);
    return b;
}

static void start_h264(PenPictureParser *p, bool high)
{
    Bits sequence = h264_sequence(high, true), set = {0}, extra = {0};
    put(&set, 8, 0x68);
    put_golomb(&set, 3);
    put_golomb(&set, 1);
    put(&set, 8, 0xff);
    put(&extra, 40, UINT64_C(0x01420010ff));
    put(&extra, 8, 0xe1);
    put(&extra, 16, (sequence.n + 7) / 8);
    for (size_t i = 0; i < (sequence.n + 7) / 8; i++)
        put(&extra, 8, sequence.data[i]);
    put(&extra, 8, 1);
    put(&extra, 16, (set.n + 7) / 8);
    for (size_t i = 0; i < (set.n + 7) / 8; i++)
        put(&extra, 8, set.data[i]);
    CHECK(!pen__picture_start(p, PEN_VIDEO_H264, extra.data, extra.n / 8));
    CHECK(pen__picture_start(p, PEN_VIDEO_H264, extra.data, extra.n / 8 - 5));
    CHECK(pen__picture_start(p, PEN_VIDEO_H264, extra.data, 6));
    CHECK(!pen__picture_start(p, PEN_VIDEO_H264, extra.data, extra.n / 8));
    CHECK_INT(p->length_bytes, 4);
}

static Bits h264_packet(bool high, const char *slices)
{
    Bits b = {0};
    for (const char *s = slices; *s; s++) {
        Bits unit = {0};
        switch (*s) {
        case 'I': /* intra, not IDR */
            unit = h264_slice(high, 1, 0, 7, 0);
            break;
        case 'D':
            unit = h264_slice(high, 5, 0, 2, 0);
            break;
        case 'P':
            unit = h264_slice(high, 1, 0, 5, 0);
            break;
        case 'p': /* the second slice */
            unit = h264_slice(high, 1, 9, 0, 0);
            break;
        case 'F': /* a field */
            unit = h264_slice(high, 1, 0, 0, 1);
            break;
        default:
            put(&unit, 16, 0x0605);
        }
        add_unit(&b, &unit, true);
    }
    return b;
}

#define H264(high, slices) (packet = h264_packet(high, slices), &packet)

TEST(h264)
{
    static const char one[] = "interlaced H.264 with a packet for each field";
    static const char several[] = "H.264 with several pictures in a packet";
    for (int high = 0; high < 2; high++) {
        PenPictureParser p;
        Bits packet;
        start_h264(&p, high);
        CHECK_OK_SO_FAR();
        CHECK_PICTURE(&p, H264(high, "sP"), 1, false);
        CHECK_PICTURE(&p, H264(high, "Pp"), 1, false);
        CHECK_PICTURE(&p, H264(high, "sD"), 1, true);
        CHECK_PICTURE(&p, H264(high, "sI"), 1, true);
        CHECK_PICTURE(&p, H264(high, "Ip"), 1, false); /* a picture that is refreshed by parts */
        CHECK_PICTURE(&p, H264(high, "FF"), 1, false);
        CHECK_PICTURE(&p, H264(high, "s"), 0, false);
        CHECK_WRONG(&p, H264(high, "F"), one);
        CHECK_WRONG(&p, H264(high, "FP"), one);
        CHECK_WRONG(&p, H264(high, "FFF"), several);
        CHECK_WRONG(&p, H264(high, "PP"), several);
        packet = (Bits){0}; /* a length behind the end */
        put(&packet, 40, UINT64_C(0xffffffff65));
        CHECK_PICTURE(&p, &packet, 0, false);
    }
}

TEST(h264_start_codes)
{
    PenPictureParser p;
    PenPicture found;
    Bits sequence = h264_sequence(false, true), set = {0}, b = {0}, slice;
    put(&set, 8, 0x68);
    put_golomb(&set, 3);
    put_golomb(&set, 1);
    put(&set, 8, 0xff);
    add_unit(&b, &sequence, false);
    add_unit(&b, &set, false);
    CHECK(!pen__picture_start(&p, PEN_VIDEO_H264, b.data, b.n / 8));
    CHECK_INT(p.length_bytes, 0);
    slice = h264_slice(false, 5, 0, 2, 1);
    add_unit(&b, &slice, false);
    CHECK_STR(parse(&p, &b, &found), "interlaced H.264 with a packet for each field");
    CHECK(!pen__picture_start(&p, PEN_VIDEO_H264, NULL, 0)); /* parameter sets in the packet */
    CHECK_STR(parse(&p, &b, &found), "interlaced H.264 with a packet for each field");
}

TEST(h264_sequences)
{
    for (int i = 0; i < 4; i++) {
        PenPictureParser p;
        Bits sequence = h264_sequence(i % 2, i / 2), b = {0};
        add_unit(&b, &sequence, false);
        CHECK(!pen__picture_start(&p, PEN_VIDEO_H264, b.data, b.n / 8));
        CHECK(p.sequences[1].is_known && !p.sequences[0].is_known);
        CHECK_INT(p.sequences[1].has_planes, i % 2);
        CHECK_INT(p.sequences[1].has_fields, i / 2);
        CHECK_INT(p.sequences[1].number_bits, 6);
    }
}

/* ---- HEVC ------------------------------------------------------------------------------------ */

enum { TRAIL = 1, RASL = 9, BLA = 16, IDR = 19, CRA = 21, END = 36 };

/* A slice: the first one of its picture, that forgets earlier ones, of another layer. */
static void add_hevc(Bits *b, unsigned type, bool first, bool forgets, unsigned layer)
{
    Bits unit = {0};
    put(&unit, 7, type);
    put(&unit, 6, layer);
    put(&unit, 3, 1);
    put(&unit, 8, (first ? 0x80u : 0) | (forgets ? 0x40u : 0) | 1);
    add_unit(b, &unit, false);
}

static Bits hevc(unsigned type)
{
    Bits b = {0};
    add_hevc(&b, type, true, false, 0);
    add_hevc(&b, type, false, false, 0);
    add_hevc(&b, type, true, false, 1);
    return b;
}

static void check_hevc(PenPictureParser *p, unsigned type, unsigned shown, bool key)
{
    Bits b = hevc(type);
    CHECK_PICTURE(p, &b, shown, key);
}

TEST(hevc_leading)
{
    PenPictureParser p;
    CHECK(!pen__picture_start(&p, PEN_VIDEO_HEVC, NULL, 0));
    check_hevc(&p, CRA, 1, true);
    check_hevc(&p, RASL, 0, false); /* nothing came before it */
    check_hevc(&p, TRAIL, 1, false);
    check_hevc(&p, CRA, 1, true);
    check_hevc(&p, RASL, 1, false);
    check_hevc(&p, BLA, 1, true);
    check_hevc(&p, RASL, 0, false);
    check_hevc(&p, IDR, 1, true);
    Bits b = hevc(TRAIL), end = {0};
    put(&end, 16, END << 9 | 1);
    add_unit(&b, &end, false);
    CHECK_PICTURE(&p, &b, 1, false);
    check_hevc(&p, CRA, 1, true);
    check_hevc(&p, RASL, 0, false);
}

static Bits hevc_set(bool has_output_flag)
{
    Bits set = {0};
    put(&set, 16, 34 << 9 | 1);
    put_golomb(&set, 0);
    put_golomb(&set, 0);
    put(&set, 1, 0);
    put(&set, 1, has_output_flag);
    put(&set, 8, 0xff);
    return set;
}

TEST(hevc_refused)
{
    static const char hidden[] = "HEVC with pictures that are not shown";
    PenPictureParser p;
    Bits b = {0}, set, extra = {0};
    CHECK(!pen__picture_start(&p, PEN_VIDEO_HEVC, NULL, 0));
    add_hevc(&b, IDR, true, true, 0);
    CHECK_PICTURE(&p, &b, 1, true); /* there are none before it */
    CHECK_WRONG(&p, &b, hidden);
    b = (Bits){0};
    add_hevc(&b, TRAIL, true, false, 0);
    add_hevc(&b, TRAIL, true, false, 0);
    CHECK_WRONG(&p, &b, "HEVC with several pictures in a packet");
    for (int flag = 0; flag < 2; flag++) {
        extra = (Bits){.n = (size_t)21 * 8};
        extra.data[0] = 1;
        set = hevc_set(flag);
        put(&extra, 8, 3);
        put(&extra, 8, 1); /* arrays */
        put(&extra, 24, 34 << 16 | 1);
        put(&extra, 16, (set.n + 7) / 8);
        for (size_t i = 0; i < (set.n + 7) / 8; i++)
            put(&extra, 8, set.data[i]);
        const char *wrong = pen__picture_start(&p, PEN_VIDEO_HEVC, extra.data, extra.n / 8);
        CHECK_STR(wrong ? wrong : "", flag ? hidden : "");
        b = (Bits){0};
        add_unit(&b, &set, false);
        wrong = pen__picture_start(&p, PEN_VIDEO_HEVC, b.data, (b.n + 7) / 8);
        CHECK_STR(wrong ? wrong : "", flag ? hidden : "");
    }
    static const size_t cuts[] = {22, 24, 27};
    for (size_t i = 0; i < PEN_LEN(cuts); i++)
        CHECK_STR(pen__picture_start(&p, PEN_VIDEO_HEVC, extra.data, cuts[i]),
                  "an HEVC configuration that is cut off");
    CHECK(!pen__picture_start(&p, PEN_VIDEO_HEVC, NULL, 0));
    b = (Bits){0};
    set = hevc_set(true);
    add_unit(&b, &set, false);
    CHECK_WRONG(&p, &b, hidden);
}

/* ---- the others ------------------------------------------------------------------------------ */

TEST(vp8)
{
    PenPictureParser p;
    Bits b = {.data = {0x10}, .n = 24};
    CHECK(!pen__picture_start(&p, PEN_VIDEO_VP8, NULL, 0));
    CHECK_PICTURE(&p, &b, 1, true);
    b.data[0] = 0x11;
    CHECK_PICTURE(&p, &b, 1, false);
    b.data[0] = 0x01;
    CHECK_PICTURE(&p, &b, 0, false);
    b.n = 16;
    CHECK_WRONG(&p, &b, "a VP8 packet without a frame");
}

enum {
    VP9_KEY = 0x82,
    VP9_HIDDEN_KEY = 0x80,
    VP9_SHOWN = 0x86,
    VP9_HIDDEN = 0x84,
    VP9_AGAIN = 0x88
};

/* Frames of two bytes each, with an index of their sizes. */
static Bits superframe(unsigned a, unsigned c)
{
    Bits b = {0};
    put(&b, 32, a << 24 | c << 8);
    put(&b, 32, 0xc10202c1u);
    return b;
}

TEST(vp9)
{
    PenPictureParser p;
    static const struct {
        unsigned byte, shown;
        bool key;
    } frames[] = {{VP9_KEY, 1, true},     {VP9_HIDDEN_KEY, 0, true}, {VP9_SHOWN, 1, false},
                  {VP9_HIDDEN, 0, false}, {VP9_AGAIN, 1, false},     {0xb1, 1, true},
                  {0xb4, 1, false}};
    Bits b;
    CHECK(!pen__picture_start(&p, PEN_VIDEO_VP9, NULL, 0));
    for (size_t i = 0; i < PEN_LEN(frames); i++) {
        b = (Bits){.data = {(uint8_t)frames[i].byte}, .n = 16};
        CHECK_PICTURE(&p, &b, frames[i].shown, frames[i].key);
    }
    b = superframe(VP9_HIDDEN, VP9_SHOWN);
    CHECK_PICTURE(&p, &b, 1, false);
    b = superframe(VP9_HIDDEN_KEY, VP9_SHOWN);
    CHECK_PICTURE(&p, &b, 1, true);
    b = superframe(VP9_HIDDEN, VP9_KEY); /* decoding starts with the first frame */
    CHECK_PICTURE(&p, &b, 1, false);
    b = superframe(VP9_SHOWN, VP9_SHOWN);
    CHECK_PICTURE(&p, &b, 2, false);
    b = superframe(0, VP9_SHOWN);
    CHECK_WRONG(&p, &b, "a VP9 packet without a frame");
    b = superframe(VP9_SHOWN, VP9_SHOWN);
    b.data[5] = 200;
    CHECK_WRONG(&p, &b, "a VP9 packet without a frame");
    b = (Bits){0};
    CHECK_WRONG(&p, &b, "a VP9 packet without a frame");
}

enum {
    AV1_KEY = 0x10,
    AV1_HIDDEN_KEY = 0x00,
    AV1_SHOWN = 0x30,
    AV1_HIDDEN = 0x20,
    AV1_AGAIN = 0x80
};

static Bits temporal_unit(const uint8_t *frames, size_t n)
{
    Bits b = {0};
    put(&b, 16, 0x1200);   /* temporal delimiter */
    put(&b, 24, 0x0a0100); /* sequence header */
    for (size_t i = 0; i < n; i++) {
        put(&b, 24, 0x3600 << 8 | 0x02); /* a frame with an extension, of two bytes */
        put(&b, 16, (uint64_t)frames[i] << 8);
    }
    return b;
}

TEST(av1)
{
    static const struct {
        uint8_t frames[2];
        unsigned n, shown;
        bool key;
    } cases[] = {{{AV1_KEY}, 1, 1, true},
                 {{AV1_HIDDEN_KEY}, 1, 0, false},
                 {{AV1_SHOWN}, 1, 1, false},
                 {{AV1_AGAIN}, 1, 1, false},
                 {{AV1_HIDDEN, AV1_SHOWN}, 2, 1, false},
                 {{AV1_HIDDEN, AV1_KEY}, 2, 1, false},
                 {{AV1_SHOWN, AV1_AGAIN}, 2, 2, false}};
    PenPictureParser p;
    Bits b;
    CHECK(!pen__picture_start(&p, PEN_VIDEO_AV1, NULL, 0));
    for (size_t i = 0; i < PEN_LEN(cases); i++) {
        b = temporal_unit(cases[i].frames, cases[i].n);
        CHECK_PICTURE(&p, &b, cases[i].shown, cases[i].key);
        b.n -= 8;
        CHECK_WRONG(&p, &b, "an AV1 packet that is cut off");
    }
    b = temporal_unit(cases[0].frames, 1);
    b.n = 6 * 8; /* within the extension */
    CHECK_WRONG(&p, &b, "an AV1 packet that is cut off");
    b = (Bits){.data = {0x32, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 1}, .n = 80};
    CHECK_WRONG(&p, &b, "an AV1 packet that is cut off");
    b = (Bits){.data = {0x30, AV1_SHOWN}, .n = 16}; /* without a size */
    CHECK_PICTURE(&p, &b, 1, false);
    b = temporal_unit(cases[1].frames, 1);
    b.data[4] = 0x08; /* reduced_still_picture_header */
    CHECK_PICTURE(&p, &b, 1, true);
}

static Bits mpeg4_layer(bool all)
{
    Bits b = {0};
    put(&b, 32, 0x120);
    put(&b, 9, 1);
    put(&b, 1, all);
    if (all)
        put(&b, 7, 0x11);
    put(&b, 4, all ? 15 : 1);
    put(&b, all ? 16 : 0, 0x0101);
    put(&b, 1, all);
    if (all) {
        put(&b, 4, 3);
        put(&b, 64, 0);
        put(&b, 15, 0);
    }
    put(&b, 2, 0);
    put(&b, 1, 1);
    put(&b, 16, 30000); /* times of 15 bits */
    put(&b, 8, 0xff);
    align(&b);
    return b;
}

static void add_mpeg4(Bits *b, unsigned type, bool is_coded)
{
    align(b);
    put(b, 32, 0x1b6);
    put(b, 2, type);
    put(b, 3, 6); /* two seconds later */
    put(b, 1, 1);
    put(b, 15, 0x4001);
    put(b, 1, 1);
    put(b, 1, is_coded);
    put(b, 8, 0xff);
    align(b);
}

TEST(mpeg4)
{
    for (int all = 0; all < 2; all++) {
        PenPictureParser p;
        Bits b = mpeg4_layer(all);
        CHECK(!pen__picture_start(&p, PEN_VIDEO_MPEG4, b.data, b.n / 8));
        CHECK_INT(p.time_bits, 15);
        add_mpeg4(&b, 0, true);
        CHECK_PICTURE(&p, &b, 1, true);
        b = (Bits){0};
        add_mpeg4(&b, 2, true);
        CHECK_PICTURE(&p, &b, 1, false);
        add_mpeg4(&b, 2, true);
        CHECK_WRONG(&p, &b, "MPEG-4 with several pictures in a packet");
        b = (Bits){0};
        add_mpeg4(&b, 1, false);
        CHECK_PICTURE(&p, &b, 0, false);
    }
}

/* ---- sizes ----------------------------------------------------------------------------------- */

/* A picture of 320x200 whose header has all that can come before the size; then one of 320x201. */
static void check_size(uint8_t codec, const Bits *packet, const Bits *other)
{
    PenPictureParser p;
    PenPicture found;
    CHECK(!pen__picture_start(&p, codec, NULL, 0));
    CHECK(!parse(&p, packet, &found));
    CHECK_INT(found.width, 320);
    CHECK_INT(found.height, 200);
    CHECK(!parse(&p, packet, &found));
    CHECK_STR(parse(&p, other, &found), "pictures of several sizes");
    Bits cut = *packet;
    for (cut.n = 0; cut.n < packet->n; cut.n += 8) /* no bytes behind the end */
        (void)parse(&p, &cut, &found);
}

/* Key, intra (of profile 1) or referring, but with a size of its own. */
static Bits vp9_size(int kind, unsigned height)
{
    Bits b = {0};
    unsigned profile = kind == 2 ? 0 : 3;
    put(&b, 2, 2);
    put(&b, 2, profile);
    put(&b, profile == 3 ? 2 : 1, 0);
    put(&b, 2, kind ? 2 : 1); /* not a key and hidden, or a key and shown */
    put(&b, 1, 0);
    if (kind)
        put(&b, 3, kind == 1 ? 4 : 0);
    if (kind < 2) {
        put(&b, 24, 0x498342);
        put(&b, 1, 0);
        put(&b, 3, kind ? 7 : 2);
        put(&b, kind ? 1 : 4, 0);
    }
    put(&b, kind ? 8 : 0, 0xff);
    put(&b, kind == 2 ? 15 : 0, 0);
    put(&b, 16, 319);
    put(&b, 16, height - 1);
    put(&b, 8, 0);
    return b;
}

static Bits av1_size(unsigned height)
{
    Bits b = {0}, unit = {0};
    put(&b, 5, 0);
    put(&b, 1, 1); /* timing */
    put(&b, 64, 7);
    put(&b, 1, 1);
    put_golomb(&b, 9);
    put(&b, 1, 1); /* a model of the decoder */
    put(&b, 5, 9);
    put(&b, 32, 1);
    put(&b, 10, 3);
    put(&b, 1, 1); /* delays */
    put(&b, 5, 1);
    for (int i = 0; i < 2; i++) { /* operating points */
        put(&b, 12, 1);
        put(&b, 5, i ? 8 : 7);
        put(&b, i ? 1 : 0, 1);
        put(&b, 1, 1);
        put(&b, 21, 5);
        put(&b, 1, 1);
        put(&b, 4, 9);
    }
    put(&b, 8, 0x98); /* 10 and 9 bits */
    put(&b, 10, 319);
    put(&b, 9, height - 1);
    put(&unit, 16, 0x0a00 | (b.n + 7) / 8);
    for (size_t i = 0; i < (b.n + 7) / 8; i++)
        put(&unit, 8, b.data[i]);
    return unit;
}

/* With three layers, of which one has a profile and one a level. */
static Bits hevc_size(unsigned height)
{
    Bits b = {0}, unit = {0};
    put(&b, 16, 33 << 9 | 1);
    put(&b, 8, 3 << 1);
    for (int i = 0; i < 12; i++)
        put(&b, 8, 0xee);
    put(&b, 16, 0x6000);
    for (int i = 0; i < 12; i++)
        put(&b, 8, 0xee);
    put_golomb(&b, 0);
    put_golomb(&b, 3);
    put(&b, 1, 1);
    put_golomb(&b, 320);
    put_golomb(&b, height);
    put(&b, 8, 0xff);
    add_unit(&unit, &b, false);
    return unit;
}

static Bits jpeg_size(unsigned height)
{
    Bits b = {0};
    put(&b, 48, UINT64_C(0xffd8ffe00004));
    put(&b, 16, 0x1234);
    put(&b, 64, UINT64_C(0xffffc0000b080000) | height);
    put(&b, 16, 320);
    return b;
}

static Bits vp8_size(unsigned height)
{
    Bits b = {.data = {0x10, 0, 0, 0x9d, 1, 0x2a, 0x40, 0x41, (uint8_t)height}, .n = 80};
    return b;
}

TEST(sizes)
{
    Bits a, b;
    for (int kind = 0; kind < 3; kind++) {
        a = vp9_size(kind, 200);
        b = vp9_size(kind, 201);
        check_size(PEN_VIDEO_VP9, &a, &b);
    }
    a = av1_size(200);
    b = av1_size(201);
    check_size(PEN_VIDEO_AV1, &a, &b);
    a = hevc_size(200);
    b = hevc_size(201);
    check_size(PEN_VIDEO_HEVC, &a, &b);
    a = jpeg_size(200);
    b = jpeg_size(201);
    check_size(PEN_VIDEO_MJPEG, &a, &b);
    a = vp8_size(200);
    b = vp8_size(201);
    check_size(PEN_VIDEO_VP8, &a, &b);
}

TEST(mjpeg)
{
    PenPictureParser p;
    Bits b = {.n = 8};
    CHECK(!pen__picture_start(&p, PEN_VIDEO_MJPEG, NULL, 0));
    CHECK_PICTURE(&p, &b, 1, true);
}

int main(int argc, char **argv)
{
    TEST_START(argc, argv);
    RUN(h264);
    RUN(h264_start_codes);
    RUN(h264_sequences);
    RUN(hevc_leading);
    RUN(hevc_refused);
    RUN(vp8);
    RUN(vp9);
    RUN(av1);
    RUN(mpeg4);
    RUN(mjpeg);
    RUN(sizes);
    return TEST_END();
}
