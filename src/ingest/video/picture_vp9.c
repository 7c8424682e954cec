/* SPDX-License-Identifier: Apache-2.0 */
/* VP9 (bitstream specification 6.2 and annex B): the uncompressed header of each frame of a
 * packet. */
#include "ingest/video/bits.h"
#include "ingest/video/picture.h"

static const char no_frame[] = "a VP9 packet without a frame";

static const uint32_t sync_code = 0x498342;

/* color_config(), in key frames and, unless the profile is 0, in intra frames. */
static void skip_color(PenBits *b, unsigned profile)
{
    enum { RGB = 7 };
    pen__bits_skip(b, profile >= 2 ? 1 : 0);
    bool is_rgb = pen__bits_take(b, 3) == RGB;
    pen__bits_skip(b, is_rgb ? 0 : 1);
    pen__bits_skip(b, profile % 2 ? (is_rgb ? 1 : 3) : 0);
}

static void take_size(PenBits *b, PenPicture *ret)
{
    uint32_t width = pen__bits_take(b, 16) + 1, height = pen__bits_take(b, 16) + 1;
    if (b->is_over)
        return;
    ret->width = width;
    ret->height = height;
}

/* From error_resilient_mode on; most frames have the size of one that they refer to. */
static void find_size(PenBits *b, unsigned profile, bool is_key, bool is_shown, PenPicture *ret)
{
    bool is_resilient = pen__bit(b), is_intra = is_key;
    if (!is_key) {
        is_intra = !is_shown && pen__bit(b);
        pen__bits_skip(b, is_resilient ? 0 : 2);
    }
    if (is_intra) {
        if (pen__bits_take(b, 24) != sync_code)
            return;
        if (is_key || profile)
            skip_color(b, profile);
        pen__bits_skip(b, is_key ? 0 : 8);
        take_size(b, ret);
        return;
    }
    pen__bits_skip(b, 8 + 3 * 4);
    for (int i = 0; i < 3; i++)
        if (pen__bit(b))
            return;
    take_size(b, ret);
}

static const char *take_frame(const uint8_t *data, size_t bytes, unsigned number, PenPicture *ret)
{
    PenBits b = pen__bits(data, bytes, false);
    if (pen__bits_take(&b, 2) != 2)
        return no_frame;
    unsigned low = pen__bit(&b), profile = pen__bit(&b) << 1 | low;
    pen__bits_skip(&b, profile == 3 ? 1 : 0);
    if (pen__bit(&b)) { /* show_existing_frame */
        ret->shown++;
        return NULL;
    }
    bool is_key = !pen__bit(&b);
    bool is_shown = pen__bit(&b);
    if (b.is_over)
        return no_frame;
    ret->shown += is_shown;
    if (!number)
        ret->is_key = is_key;
    find_size(&b, profile, is_key, is_shown, ret);
    return NULL;
}

/* Sizes of the frames, at the end of the packet; 0: it is one frame without them. */
static unsigned find_sizes(const uint8_t *data, size_t bytes, uint32_t sizes[8])
{
    unsigned marker = data[bytes - 1], n = (marker & 7) + 1, each = (marker >> 3 & 3) + 1;
    size_t index = 2 + (size_t)n * each;
    if ((marker & 0xe0) != 0xc0 || bytes < index || data[bytes - index] != marker)
        return 0;
    const uint8_t *at = data + bytes - index + 1;
    for (unsigned i = 0; i < n; i++) {
        sizes[i] = 0;
        for (unsigned j = 0; j < each; j++)
            sizes[i] |= (uint32_t)*at++ << (8 * j);
    }
    return n;
}

const char *pen__vp9_parse(const uint8_t *data, size_t bytes, PenPicture *ret)
{
    uint32_t sizes[8];
    size_t at = 0;
    unsigned n = bytes ? find_sizes(data, bytes, sizes) : 0;
    if (!n)
        return take_frame(data, bytes, 0, ret);
    for (unsigned i = 0; i < n; i++) {
        if (sizes[i] > bytes - at)
            return no_frame;
        const char *wrong = take_frame(data + at, sizes[i], i, ret);
        if (wrong)
            return wrong;
        at += sizes[i];
    }
    return NULL;
}
