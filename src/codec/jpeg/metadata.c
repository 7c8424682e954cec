/* SPDX-License-Identifier: Apache-2.0 */
#include "codec/jpeg/metadata.h"

#include <string.h>

#include "codec/jpeg/markers.h"

static const char where[] = "codec/jpeg";

static bool is_jfif(const PenJpegMarker *m)
{
    return m->code == PEN_MARKER_APP0 && m->body_bytes >= 5 && memcmp(m->body, "JFIF", 5) == 0;
}

static bool is_adobe(const PenJpegMarker *m)
{
    return m->code == PEN_MARKER_APP14 && m->body_bytes >= 5 && memcmp(m->body, "Adobe", 5) == 0;
}

/* JFIF and Adobe say how to decode: they belong to the image and are written anew with it. */
static bool is_metadata(const PenJpegMarker *m)
{
    bool kind =
        (m->code >= PEN_MARKER_APP0 && m->code <= PEN_MARKER_APP15) || m->code == PEN_MARKER_COM;
    return kind && !is_jfif(m) && !is_adobe(m);
}

int pen__jpeg_metadata(const uint8_t *data, size_t bytes, PenBuf *out, PenError *reterr)
{
    PenJpegWalk walk;
    PenJpegMarker m;
    size_t start = out->bytes;
    int r = pen__jpeg_walk_start(&walk, data, bytes, reterr);
    while (r >= 0) {
        r = pen__jpeg_walk_next(&walk, &m, reterr);
        if (r < 0 || m.code == PEN_MARKER_SOS || m.code == PEN_MARKER_EOI)
            break;
        if (is_metadata(&m) && pen__buf_add(out, data + m.offset, walk.at - m.offset) < 0)
            r = pen__fail_memory(reterr, where, "metadata");
    }
    if (r < 0)
        out->bytes = start;
    return r;
}

/* A chain of whole metadata segments and nothing else, or it would damage the file. */
static int check_chain(const uint8_t *metadata, size_t bytes, PenError *reterr)
{
    PenJpegWalk walk = {.data = metadata, .bytes = bytes};
    while (walk.at < bytes) {
        PenJpegMarker m;
        size_t at = walk.at;
        int r = pen__jpeg_walk_next(&walk, &m, reterr);
        if (r < 0)
            return r;
        if (m.offset != at || !is_metadata(&m))
            return pen__fail(reterr, PEN_E_DECODE, where,
                             "jpeg metadata: expected an APPn or COM segment at byte %zu, found "
                             "marker %02x at byte %zu",
                             at, m.code, m.offset);
    }
    return PEN_OK;
}

/* Behind SOI, and behind JFIF where that comes first as its standard asks. */
static int find_place(const uint8_t *data, size_t bytes, size_t *ret, PenError *reterr)
{
    PenJpegWalk walk;
    PenJpegMarker m;
    int r = pen__jpeg_walk_start(&walk, data, bytes, reterr);
    if (r < 0)
        return r;
    r = pen__jpeg_walk_next(&walk, &m, reterr);
    if (r < 0)
        return r;
    *ret = is_jfif(&m) ? walk.at : 2;
    return PEN_OK;
}

int pen__jpeg_with_metadata(const uint8_t *data, size_t bytes, const uint8_t *metadata,
                            size_t metadata_bytes, PenBuf *out, PenError *reterr)
{
    size_t place = 0, start = out->bytes;
    int r = check_chain(metadata, metadata_bytes, reterr);
    if (r < 0)
        return r;
    r = find_place(data, bytes, &place, reterr);
    if (r < 0)
        return r;
    if (pen__buf_add(out, data, place) < 0 || pen__buf_add(out, metadata, metadata_bytes) < 0 ||
        pen__buf_add(out, data + place, bytes - place) < 0) {
        out->bytes = start;
        return pen__fail_memory(reterr, where, "jpeg with metadata");
    }
    return PEN_OK;
}
