/* SPDX-License-Identifier: Apache-2.0 */
/* VP9 (bitstream specification 6.2 and annex B): the uncompressed header of each frame of a
 * packet. */
#include "ingest/video/bits.h"
#include "ingest/video/picture.h"

static const char no_frame[] = "a VP9 packet without a frame";

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
    ret->shown += pen__bit(&b);
    if (b.is_over)
        return no_frame;
    if (!number)
        ret->is_key = is_key;
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
