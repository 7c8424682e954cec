/* SPDX-License-Identifier: Apache-2.0 */
/* AV1 (bitstream specification 5.3 and 5.9.2): frame headers of a temporal unit. */
#include "ingest/video/bits.h"
#include "ingest/video/picture.h"

enum { SEQUENCE = 1, FRAME_HEADER = 3, FRAME = 6 };

typedef struct Unit {
    unsigned type;
    const uint8_t *data;
    size_t bytes;
} Unit;

/* leb128; false: it is cut off, or too large. */
static bool take_size(const uint8_t *data, size_t bytes, size_t *at, uint64_t *ret)
{
    *ret = 0;
    for (unsigned i = 0; i < 8 && *at < bytes; i++) {
        uint8_t byte = data[(*at)++];
        *ret |= (uint64_t)(byte & 127) << (7 * i);
        if (!(byte & 128))
            return true;
    }
    return false;
}

static bool take_unit(const uint8_t *data, size_t bytes, size_t *at, Unit *ret)
{
    uint8_t head = data[(*at)++];
    uint64_t n;
    ret->type = head >> 3 & 15;
    if (head & 4 && (*at)++ >= bytes)
        return false;
    n = bytes - *at;
    if ((head & 2 && !take_size(data, bytes, at, &n)) || n > bytes - *at)
        return false;
    ret->data = data + *at;
    ret->bytes = (size_t)n;
    *at += (size_t)n;
    return true;
}

static void skip_timing(PenBits *b, unsigned *ret_delay_bits)
{
    if (!pen__bit(b))
        return;
    pen__bits_skip(b, 64);
    if (pen__bit(b))
        (void)pen__bits_golomb(b);
    if (!pen__bit(b)) /* decoder_model_info_present_flag */
        return;
    *ret_delay_bits = pen__bits_take(b, 5) + 1;
    pen__bits_skip(b, 32 + 5 + 5);
}

static void skip_points(PenBits *b, unsigned delay_bits)
{
    bool has_delay = pen__bit(b);
    for (unsigned left = pen__bits_take(b, 5) + 1; left; left--) {
        pen__bits_skip(b, 12);
        if (pen__bits_take(b, 5) > 7)
            pen__bits_skip(b, 1);
        if (delay_bits && pen__bit(b))
            pen__bits_skip(b, 2 * delay_bits + 1);
        if (has_delay && pen__bit(b))
            pen__bits_skip(b, 4);
    }
}

/* sequence_header_obu() */
static void take_sequence(PenPictureParser *p, const Unit *u, PenPicture *ret)
{
    PenBits b = pen__bits(u->data, u->bytes, false);
    unsigned delay_bits = 0;
    pen__bits_skip(&b, 4);
    p->is_still = pen__bit(&b);
    if (p->is_still) {
        pen__bits_skip(&b, 5);
    } else {
        skip_timing(&b, &delay_bits);
        skip_points(&b, delay_bits);
    }
    unsigned width_bits = pen__bits_take(&b, 4) + 1, height_bits = pen__bits_take(&b, 4) + 1;
    uint32_t width = pen__bits_take(&b, width_bits), height = pen__bits_take(&b, height_bits);
    if (b.is_over)
        return;
    ret->width = width + 1;
    ret->height = height + 1;
}

static void take_frame(const PenPictureParser *p, const Unit *u, bool is_first, PenPicture *ret)
{
    PenBits b = pen__bits(u->data, u->bytes, false);
    if (p->is_still) {
        ret->shown++;
        ret->is_key |= is_first;
        return;
    }
    if (pen__bit(&b)) { /* show_existing_frame */
        ret->shown++;
        return;
    }
    unsigned type = pen__bits_take(&b, 2), is_shown = pen__bit(&b);
    ret->shown += is_shown;
    ret->is_key |= is_first && type == 0 && is_shown;
}

const char *pen__av1_parse(PenPictureParser *p, const uint8_t *data, size_t bytes, PenPicture *ret)
{
    bool is_first = true;
    for (size_t at = 0; at < bytes;) {
        Unit u;
        if (!take_unit(data, bytes, &at, &u))
            return "an AV1 packet that is cut off";
        if (u.type == SEQUENCE)
            take_sequence(p, &u, ret);
        if (u.type != FRAME && u.type != FRAME_HEADER)
            continue;
        take_frame(p, &u, is_first, ret);
        is_first = false;
    }
    return NULL;
}
