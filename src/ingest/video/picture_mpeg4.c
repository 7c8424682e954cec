/* SPDX-License-Identifier: Apache-2.0 */
/* MPEG-4 part 2 (ISO/IEC 14496-2, 6.2): packets with several pictures ("packed B-frames"), and
 * pictures that are not coded. */
#include "ingest/video/bits.h"
#include "ingest/video/nal.h"
#include "ingest/video/picture.h"

enum { LAYER_FIRST = 0x20, LAYER_LAST = 0x2f, PICTURE = 0xb6 };

static void take_layer(PenPictureParser *p, PenNal unit, PenPicture *ret)
{
    PenBits b = pen__bits(unit.data, unit.bytes, false);
    pen__bits_skip(&b, 8 + 1 + 8);
    unsigned version = 1, bits = 1;
    if (pen__bit(&b)) {
        version = pen__bits_take(&b, 4);
        pen__bits_skip(&b, 3);
    }
    if (pen__bits_take(&b, 4) == 15)
        pen__bits_skip(&b, 16);
    if (pen__bit(&b)) {
        pen__bits_skip(&b, 3);
        if (pen__bit(&b))
            pen__bits_skip(&b, 79);
    }
    uint32_t shape = pen__bits_take(&b, 2);
    if (shape == 3 && version != 1)
        pen__bits_skip(&b, 4);
    pen__bits_skip(&b, 1);
    uint32_t ticks = pen__bits_take(&b, 16);
    while (ticks && (ticks - 1) >> bits)
        bits++;
    if (!b.is_over)
        p->time_bits = (uint8_t)bits;
    pen__bits_skip(&b, 1);
    if (pen__bit(&b)) /* fixed_vop_rate */
        pen__bits_skip(&b, bits);
    pen__bits_skip(&b, 1);
    uint32_t width = pen__bits_take(&b, 13);
    pen__bits_skip(&b, 1);
    uint32_t height = pen__bits_take(&b, 13);
    if (b.is_over || shape != 0)
        return;
    ret->width = width;
    ret->height = height;
}

static void take_picture(const PenPictureParser *p, PenNal unit, PenPicture *ret)
{
    PenBits b = pen__bits(unit.data, unit.bytes, false);
    pen__bits_skip(&b, 8);
    bool is_key = pen__bits_take(&b, 2) == 0;
    while (pen__bit(&b))
        continue;
    pen__bits_skip(&b, 1u + p->time_bits + 1u);
    bool is_coded = pen__bit(&b) || !p->time_bits;
    ret->shown += is_coded;
    ret->is_key |= is_key && is_coded;
}

const char *pen__mpeg4_parse(PenPictureParser *p, const uint8_t *data, size_t bytes,
                             PenPicture *ret)
{
    size_t at = 0;
    unsigned pictures = 0;
    for (PenNal unit; (unit = pen__nal_next(data, bytes, &at, 0)).data;) {
        if (unit.bytes && unit.data[0] >= LAYER_FIRST && unit.data[0] <= LAYER_LAST)
            take_layer(p, unit, ret);
        if (!unit.bytes || unit.data[0] != PICTURE)
            continue;
        if (pictures++)
            return "MPEG-4 with several pictures in a packet";
        take_picture(p, unit, ret);
    }
    ret->may_have_leading = ret->is_key;
    return NULL;
}
