/* SPDX-License-Identifier: Apache-2.0 */
/* H.264 (ITU-T Rec. H.264, 7.3): whether packets hold frames or single fields, and whether key
 * packets have intra pictures alone. */
#include "base/bytes.h"
#include "ingest/video/bits.h"
#include "ingest/video/nal.h"
#include "ingest/video/picture.h"

enum { MAX_BLOCKS = 1 << 20 }; /* on each side */
enum { SLICE = 1, PARTITION_A = 2, IDR = 5, SEQUENCE = 7, PICTURE = 8 };

static void skip_scaling_list(PenBits *b, unsigned n)
{
    int64_t last = 8, next = 8;
    for (unsigned i = 0; i < n && !b->is_over; i++) {
        if (next)
            next = (last + pen__bits_signed(b) % 256 + 256) % 256;
        last = next ? next : last;
    }
}

/* What the profiles have that are more than High in name. */
static void skip_chroma(PenBits *b, bool *ret_planes)
{
    uint32_t chroma = pen__bits_golomb(b);
    if (chroma == 3)
        *ret_planes = pen__bit(b);
    (void)pen__bits_golomb(b);
    (void)pen__bits_golomb(b);
    pen__bits_skip(b, 1);
    if (!pen__bit(b))
        return;
    for (unsigned i = 0; i < (chroma == 3 ? 12 : 8); i++)
        if (pen__bit(b))
            skip_scaling_list(b, i < 6 ? 16 : 64);
}

static void skip_order(PenBits *b)
{
    uint32_t type = pen__bits_golomb(b);
    if (type == 0)
        (void)pen__bits_golomb(b);
    if (type != 1)
        return;
    pen__bits_skip(b, 1);
    (void)pen__bits_golomb(b);
    (void)pen__bits_golomb(b);
    uint32_t n = pen__bits_golomb(b);
    for (uint32_t i = 0; i < n && !b->is_over; i++)
        (void)pen__bits_golomb(b);
}

static void take_sequence(PenPictureParser *p, PenNal nal)
{
    static const uint8_t with_chroma[] = {100, 110, 122, 244, 44, 83, 86, 118, 128, 138, 139, 134};
    PenBits b = pen__bits(nal.data, nal.bytes, true);
    bool has_planes = false;
    pen__bits_skip(&b, 8);
    uint32_t profile = pen__bits_take(&b, 8);
    pen__bits_skip(&b, 16);
    uint32_t id = pen__bits_golomb(&b);
    if (memchr(with_chroma, (int)profile, sizeof with_chroma))
        skip_chroma(&b, &has_planes);
    uint32_t number_bits = pen__bits_golomb(&b);
    skip_order(&b);
    (void)pen__bits_golomb(&b);
    pen__bits_skip(&b, 1);
    uint32_t width = pen__bits_golomb(&b), height = pen__bits_golomb(&b);
    bool has_fields = !pen__bit(&b);
    if (b.is_over || id >= 32 || number_bits > 12 || width >= MAX_BLOCKS || height >= MAX_BLOCKS)
        return;
    p->sequences[id].is_known = true;
    p->sequences[id].has_fields = has_fields;
    p->sequences[id].has_planes = has_planes;
    p->sequences[id].number_bits = (uint8_t)(number_bits + 4);
    p->sequences[id].width = 16 * (width + 1);
    p->sequences[id].height = 16 * (height + 1) << has_fields;
}

static void take_picture_set(PenPictureParser *p, PenNal nal)
{
    PenBits b = pen__bits(nal.data, nal.bytes, true);
    pen__bits_skip(&b, 8);
    uint32_t id = pen__bits_golomb(&b), sequence = pen__bits_golomb(&b);
    if (!b.is_over && id < 256 && sequence < 32)
        p->sequence_of[id] = (uint8_t)sequence;
}

static void take_set(PenPictureParser *p, PenNal nal)
{
    unsigned type = nal.bytes ? nal.data[0] & 31u : 0;
    if (type == SEQUENCE)
        take_sequence(p, nal);
    else if (type == PICTURE)
        take_picture_set(p, nal);
}

/* avcC (ISO/IEC 14496-15, 5.3.3): parameter sets, each after its length in two bytes. */
static const char *take_configuration(PenPictureParser *p, const uint8_t *extra, size_t bytes)
{
    size_t at = 5;
    if (bytes < 7)
        return "an H.264 configuration that is cut off";
    p->length_bytes = (extra[4] & 3) + 1;
    for (int kind = 0; kind < 2 && at < bytes; kind++) {
        unsigned n = kind ? extra[at] : extra[at] & 31u;
        for (at++; n; n--) {
            PenNal nal = pen__nal_next(extra, bytes, &at, 2);
            if (!nal.data)
                return "an H.264 configuration that is cut off";
            take_set(p, nal);
        }
    }
    return NULL;
}

const char *pen__h264_start(PenPictureParser *p, const uint8_t *extra, size_t bytes)
{
    size_t at = 0;
    if (bytes && extra[0] == 1)
        return take_configuration(p, extra, bytes);
    for (PenNal nal; (nal = pen__nal_next(extra, bytes, &at, 0)).data;)
        take_set(p, nal);
    return NULL;
}

typedef struct Slices {
    unsigned pictures, fields; /* that begin */
    bool has_idr, has_inter;
    uint32_t width, height;
} Slices;

static void take_slice(const PenPictureParser *p, PenNal nal, Slices *s)
{
    PenBits b = pen__bits(nal.data, nal.bytes, true);
    pen__bits_skip(&b, 8);
    uint32_t first = pen__bits_golomb(&b), kind = pen__bits_golomb(&b) % 5;
    uint32_t set = pen__bits_golomb(&b);
    s->has_inter |= kind != 2 && kind != 4;
    if (first != 0)
        return;
    s->pictures++;
    unsigned id = set < 256 ? p->sequence_of[set] : 0;
    s->width = p->sequences[id].width;
    s->height = p->sequences[id].height;
    if (!p->sequences[id].has_fields)
        return;
    pen__bits_skip(&b, p->sequences[id].has_planes ? 2 : 0);
    pen__bits_skip(&b, p->sequences[id].number_bits);
    s->fields += pen__bit(&b);
}

const char *pen__h264_parse(PenPictureParser *p, const uint8_t *data, size_t bytes, PenPicture *ret)
{
    Slices s = {0};
    size_t at = 0;
    for (PenNal nal; (nal = pen__nal_next(data, bytes, &at, p->length_bytes)).data;) {
        unsigned type = nal.bytes ? nal.data[0] & 31u : 0;
        take_set(p, nal);
        if (type == SLICE || type == PARTITION_A || type == IDR)
            take_slice(p, nal, &s);
        s.has_idr |= type == IDR;
    }
    if (s.fields == 1 || (s.fields && s.fields != s.pictures))
        return "interlaced H.264 with a packet for each field";
    if (s.pictures > (s.fields ? 2 : 1))
        return "H.264 with several pictures in a packet";
    ret->shown = s.pictures ? 1 : 0;
    ret->is_key = s.pictures && (s.has_idr || !s.has_inter);
    ret->may_have_leading = !s.has_idr;
    ret->width = s.width;
    ret->height = s.height;
    return NULL;
}
