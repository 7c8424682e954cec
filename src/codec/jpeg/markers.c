/* SPDX-License-Identifier: Apache-2.0 */
#include "codec/jpeg/markers.h"

#include <string.h>

#include "base/bytes.h"

static const char where[] = "codec/jpeg";

int pen__jpeg_walk_start(PenJpegWalk *walk, const uint8_t *data, size_t bytes, PenError *reterr)
{
    if (bytes < 2 || data[0] != 0xFF || data[1] != PEN_MARKER_SOI)
        return pen__fail(reterr, PEN_E_DECODE, where,
                         "jpeg: expected SOI (ff d8) at byte 0, found something else");
    *walk = (PenJpegWalk){.data = data, .bytes = bytes, .at = 2};
    return PEN_OK;
}

static int truncated(const PenJpegWalk *walk, const char *expected, PenError *reterr)
{
    return pen__fail(reterr, PEN_E_DECODE, where,
                     "jpeg: truncated: expected %s, found the end of the file at byte %zu",
                     expected, walk->bytes);
}

/* The next 0xFF that a marker code follows; false at the end of the file. */
static bool find_marker(PenJpegWalk *walk)
{
    while (walk->at < walk->bytes) {
        const uint8_t *p = memchr(walk->data + walk->at, 0xFF, walk->bytes - walk->at);
        if (!p)
            break;
        walk->at = (size_t)(p - walk->data);
        if (walk->bytes - walk->at < 2)
            break;
        if (p[1] != 0 && p[1] != 0xFF)
            return true;
        walk->at += p[1] == 0 ? 2 : 1;
    }
    walk->at = walk->bytes;
    return false;
}

static bool stands_alone(uint8_t code)
{
    return (code >= PEN_MARKER_RST0 && code <= PEN_MARKER_EOI) || code == PEN_MARKER_TEM;
}

/* Reserved codes are damage: libjpeg refuses them too. */
static bool is_known(uint8_t code)
{
    return (code >= PEN_MARKER_SOF0 && code <= PEN_MARKER_DRI && code != PEN_MARKER_JPG) ||
           (code >= PEN_MARKER_APP0 && code <= PEN_MARKER_APP15) || code == PEN_MARKER_COM ||
           code == PEN_MARKER_TEM;
}

int pen__jpeg_walk_next(PenJpegWalk *walk, PenJpegMarker *ret, PenError *reterr)
{
    if (!find_marker(walk))
        return truncated(walk, "a marker", reterr);
    size_t offset = walk->at;
    const uint8_t *p = walk->data + offset;
    PenJpegMarker m = {.code = p[1], .offset = offset, .body = p + 2};
    if (!is_known(m.code))
        return pen__fail(reterr, PEN_E_DECODE, where,
                         "jpeg: expected a JPEG marker at byte %zu, found code %02x", offset,
                         m.code);
    if (stands_alone(m.code)) {
        walk->at += 2;
        *ret = m;
        return PEN_OK;
    }
    if (walk->bytes - offset < 4)
        return truncated(walk, "the length of a marker", reterr);
    unsigned length = pen__load16be(p + 2);
    if (length < 2)
        return pen__fail(reterr, PEN_E_DECODE, where,
                         "jpeg: marker %02x at byte %zu: expected a length of 2 or more, found %u",
                         m.code, offset, length);
    if (length > walk->bytes - offset - 2)
        return truncated(walk, "the rest of a marker", reterr);
    m.body = p + 4;
    m.body_bytes = length - 2;
    walk->at = offset + 2 + length;
    *ret = m;
    return PEN_OK;
}

void pen__jpeg_walk_scan(PenJpegWalk *walk)
{
    while (find_marker(walk)) {
        uint8_t code = walk->data[walk->at + 1];
        if (code < PEN_MARKER_RST0 || code > PEN_MARKER_RST7)
            return;
        walk->at += 2;
    }
}
