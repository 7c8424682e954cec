/* SPDX-License-Identifier: Apache-2.0 */
#include "codec/jpeg/header.h"

#include <string.h>

#include "base/bytes.h"
#include "codec/codec_impl.h"
#include "codec/exif.h"
#include "codec/jpeg/markers.h"

static const char where[] = "codec/jpeg";

/* A header that is being parsed. */
typedef struct Parser {
    PenJpegHeader *to;
    const PenLimits *limits;
    bool has_sof, has_exif;
} Parser;

static int short_marker(const PenJpegMarker *m, PenError *reterr)
{
    return pen__fail(
        reterr, PEN_E_DECODE, where,
        "jpeg: marker %02x at byte %zu: found %u bytes, which does not match its content", m->code,
        m->offset, m->body_bytes);
}

static int read_components(PenJpegHeader *h, const PenJpegMarker *m, PenError *reterr)
{
    PenJpegInfo *info = &h->info;
    for (size_t i = 0; i < info->components; i++) {
        const uint8_t *c = m->body + 6 + 3 * i;
        h->ids[i] = c[0];
        info->h_samp[i] = c[1] >> 4;
        info->v_samp[i] = c[1] & 15;
        h->quant_slot[i] = c[2];
        if (info->h_samp[i] < 1 || info->h_samp[i] > 4 || info->v_samp[i] < 1 ||
            info->v_samp[i] > 4 || c[2] > 3)
            return pen__fail(reterr, PEN_E_DECODE, where,
                             "jpeg: component %zu: expected sampling of 1-4 and table 0-3, "
                             "found %u x %u and table %u",
                             i, info->h_samp[i], info->v_samp[i], c[2]);
    }
    return PEN_OK;
}

static int check_kind(const PenJpegInfo *info, PenError *reterr)
{
    if (info->sof > PEN_MARKER_SOF2 && info->sof != PEN_MARKER_SOF9 &&
        info->sof != PEN_MARKER_SOF10)
        return pen__fail(reterr, PEN_E_UNSUPPORTED, where,
                         "jpeg: expected a baseline, extended or progressive file, found SOF%d "
                         "(lossless, hierarchical or unknown); convert it first",
                         info->sof - PEN_MARKER_SOF0);
    if (info->precision != 8 && info->precision != 12)
        return pen__fail(reterr, PEN_E_DECODE, where,
                         "jpeg: expected 8 or 12 bits per sample, found %u", info->precision);
    if (info->components != 1 && info->components != 3 && info->components != 4)
        return pen__fail(reterr, PEN_E_UNSUPPORTED, where,
                         "jpeg: expected 1, 3 or 4 components, found %u", info->components);
    return PEN_OK;
}

static int read_sof(Parser *p, const PenJpegMarker *m, PenError *reterr)
{
    if (p->has_sof)
        return pen__fail(reterr, PEN_E_DECODE, where,
                         "jpeg: expected one frame header, found a second one at byte %zu",
                         m->offset);
    if (m->body_bytes < 6 || m->body_bytes != 6 + 3 * (uint32_t)m->body[5])
        return short_marker(m, reterr);
    PenJpegInfo *info = &p->to->info;
    info->sof = m->code;
    info->precision = m->body[0];
    info->height = pen__load16be(m->body + 1);
    info->width = pen__load16be(m->body + 3);
    info->components = m->body[5];
    int r = check_kind(info, reterr);
    if (r < 0)
        return r;
    p->has_sof = true;
    p->to->frame_offset = m->offset;
    p->to->is_unusual |= m->code > PEN_MARKER_SOF1 || info->precision != 8;
    r = pen__limits_check(p->limits, info->width, info->height, where, reterr);
    return r < 0 ? r : read_components(p->to, m, reterr);
}

static int read_dqt(PenJpegHeader *h, const PenJpegMarker *m, PenError *reterr)
{
    const uint8_t *at = m->body, *end = m->body + m->body_bytes;
    while (at < end) {
        size_t wide = *at >> 4, slot = *at & 15, bytes = 64 * (1 + wide);
        if (wide > 1 || slot > 3 || (size_t)(end - at) < 1 + bytes)
            return short_marker(m, reterr);
        h->quant[slot] = (PenQuantSpec){.values = at + 1, .wide = wide};
        h->is_unusual |= wide;
        at += 1 + bytes;
    }
    return PEN_OK;
}

/* False for tables that baseline files do not have. What is wrong with them is for libjpeg to say.
 */
static bool read_dht(PenJpegHeader *h, const PenJpegMarker *m)
{
    const uint8_t *at = m->body, *end = m->body + m->body_bytes;
    while (at < end) {
        uint32_t n = 0;
        if (end - at < 17 || (*at & 0xEE))
            return false;
        for (size_t k = 1; k <= 16; k++)
            n += at[k];
        if (n > 256 || end - at < 17 + (ptrdiff_t)n)
            return false;
        (*at >> 4 ? h->ac : h->dc)[*at & 1] = (PenHuffSpec){.n_codes = at, .symbols = at + 17};
        at += 17 + n;
    }
    return true;
}

static int read_dri(PenJpegHeader *h, const PenJpegMarker *m, PenError *reterr)
{
    if (m->body_bytes != 2)
        return short_marker(m, reterr);
    h->info.restart_interval = pen__load16be(m->body);
    return PEN_OK;
}

static void read_app(Parser *p, const PenJpegMarker *m)
{
    PenJpegHeader *h = p->to;
    if (m->code == PEN_MARKER_APP0 && m->body_bytes >= 14 && memcmp(m->body, "JFIF", 5) == 0)
        h->has_jfif = true;
    if (m->code == PEN_MARKER_APP14 && m->body_bytes >= 12 && memcmp(m->body, "Adobe", 5) == 0)
        h->info.adobe_transform = m->body[11];
    if (m->code == PEN_MARKER_APP1 && !p->has_exif && m->body_bytes >= 6 &&
        memcmp(m->body, "Exif\0", 5) == 0) {
        h->info.orientation = (uint8_t)pen__exif_orientation(m->body, m->body_bytes);
        p->has_exif = true;
    }
    h->is_unusual |= m->code == PEN_MARKER_APP14 && h->info.adobe_transform > 1;
}

static bool is_app_or_comment(uint8_t code)
{
    return (code >= PEN_MARKER_APP0 && code <= PEN_MARKER_APP15) || code == PEN_MARKER_COM;
}

static int read_marker(Parser *p, const PenJpegMarker *m, PenError *reterr)
{
    if (pen__jpeg_is_sof(m->code))
        return read_sof(p, m, reterr);
    switch (m->code) {
    case PEN_MARKER_DQT:
        return read_dqt(p->to, m, reterr);
    case PEN_MARKER_DRI:
        return read_dri(p->to, m, reterr);
    case PEN_MARKER_DHT:
        p->to->is_unusual |= !read_dht(p->to, m);
        return PEN_OK;
    case PEN_MARKER_SOI:
    case PEN_MARKER_EOI:
        return pen__fail(reterr, PEN_E_DECODE, where,
                         "jpeg: expected a scan (SOS), found marker %02x at byte %zu", m->code,
                         m->offset);
    default:
        if (is_app_or_comment(m->code))
            read_app(p, m);
        else
            p->to->is_unusual = true;
        return PEN_OK;
    }
}

/* Bytes 0xFF may fill the space before a marker. */
static bool is_filler(const uint8_t *data, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        if (data[i] != 0xFF)
            return false;
    return true;
}

/* Up to the first SOS, which is *ret. */
static int read_markers(Parser *p, PenJpegWalk *walk, PenJpegMarker *ret, PenError *reterr)
{
    PenJpegHeader *h = p->to;
    for (;;) {
        size_t at = walk->at;
        int r = pen__jpeg_walk_next(walk, ret, reterr);
        if (r < 0)
            return r;
        h->is_unusual |= !is_filler(walk->data + at, ret->offset - at);
        if (!h->info.lead_bytes && !is_app_or_comment(ret->code))
            h->info.lead_bytes = ret->offset;
        if (ret->code == PEN_MARKER_SOS)
            return PEN_OK;
        r = read_marker(p, ret, reterr);
        if (r < 0)
            return r;
    }
}

int pen__jpeg_header(const uint8_t *data, size_t bytes, const PenLimits *limits, PenJpegHeader *ret,
                     PenError *reterr)
{
    PenJpegWalk walk;
    PenJpegMarker m;
    PenJpegHeader h = {.info = {.orientation = 1, .adobe_transform = PEN_ADOBE_NONE}};
    Parser p = {.to = &h, .limits = limits};
    int r = pen__jpeg_walk_start(&walk, data, bytes, reterr);
    if (r >= 0)
        r = read_markers(&p, &walk, &m, reterr);
    if (r < 0)
        return r;
    if (!p.has_sof)
        return pen__fail(reterr, PEN_E_DECODE, where,
                         "jpeg: expected a frame header (SOF) before the scan at byte %zu, found "
                         "none",
                         m.offset);
    h.info.scan_components = m.body_bytes ? m.body[0] : 0;
    h.info.head_bytes = walk.at;
    h.scan = m.body;
    h.scan_bytes = m.body_bytes;
    *ret = h;
    return PEN_OK;
}

int pen__jpeg_info(const uint8_t *data, size_t bytes, const PenLimits *limits, PenJpegInfo *ret,
                   PenError *reterr)
{
    PenJpegHeader h;
    int r = pen__jpeg_header(data, bytes, limits, &h, reterr);
    if (r >= 0)
        *ret = h.info;
    return r;
}

int pen__jpeg_check(const uint8_t *data, size_t bytes, const PenLimits *limits, PenError *reterr)
{
    PenJpegInfo info;
    int r = pen__jpeg_info(data, bytes, limits, &info, reterr);
    if (r < 0)
        return r;
    PenJpegWalk walk = {.data = data, .bytes = bytes, .at = info.head_bytes};
    uint32_t most = pen__limits_scans(limits, (uint64_t)info.width * info.height);
    for (uint32_t scans = 1;; scans++) {
        PenJpegMarker m;
        if (scans > most)
            return pen__fail(reterr, PEN_E_LIMIT, where,
                             "jpeg: expected at most %u scans of %u x %u pixels, found more", most,
                             info.width, info.height);
        pen__jpeg_walk_scan(&walk);
        do {
            r = pen__jpeg_walk_next(&walk, &m, reterr);
            if (r < 0)
                return r;
            if (m.code == PEN_MARKER_EOI)
                return PEN_OK;
            if (m.code == PEN_MARKER_SOI || pen__jpeg_is_sof(m.code))
                return pen__fail(reterr, PEN_E_DECODE, where,
                                 "jpeg: expected EOI or another scan, found marker %02x at byte "
                                 "%zu",
                                 m.code, m.offset);
        } while (m.code != PEN_MARKER_SOS);
    }
}
