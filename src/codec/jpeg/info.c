/* SPDX-License-Identifier: Apache-2.0 */
/* The header of a JPEG file: all that is said before the first scan. */
#include <string.h>

#include "base/bytes.h"
#include "codec/codec_impl.h"
#include "codec/jpeg/jpeg.h"
#include "codec/jpeg/markers.h"
#include "codec/jpeg/quality.h"

static const char where[] = "codec/jpeg";

typedef struct Header {
    PenJpegInfo info;
    const PenLimits *limits;
    bool has_sof, has_exif;
    uint8_t quant_slot[4];
    bool has_quant[4];
    uint16_t quant[4][64]; /* in zigzag order */
} Header;

static int short_marker(const PenJpegMarker *m, PenError *reterr)
{
    return pen__fail(reterr, PEN_E_DECODE, where,
                     "jpeg: marker %02x at byte %zu: found %u bytes, which is not its length",
                     m->code, m->offset, m->body_bytes);
}

static int read_components(Header *h, const PenJpegMarker *m, PenError *reterr)
{
    PenJpegInfo *info = &h->info;
    for (size_t i = 0; i < info->components; i++) {
        const uint8_t *c = m->body + 6 + 3 * i;
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
                         "jpeg: expected 8 or 12 bits a sample, found %u", info->precision);
    if (info->components != 1 && info->components != 3 && info->components != 4)
        return pen__fail(reterr, PEN_E_UNSUPPORTED, where,
                         "jpeg: expected 1, 3 or 4 components, found %u", info->components);
    return PEN_OK;
}

static int read_sof(Header *h, const PenJpegMarker *m, PenError *reterr)
{
    if (h->has_sof)
        return pen__fail(reterr, PEN_E_DECODE, where,
                         "jpeg: expected one frame header, found a second at byte %zu", m->offset);
    if (m->body_bytes < 6 || m->body_bytes != 6 + 3 * (uint32_t)m->body[5])
        return short_marker(m, reterr);
    PenJpegInfo *info = &h->info;
    info->sof = m->code;
    info->precision = m->body[0];
    info->height = pen__load16be(m->body + 1);
    info->width = pen__load16be(m->body + 3);
    info->components = m->body[5];
    int r = check_kind(info, reterr);
    if (r < 0)
        return r;
    h->has_sof = true;
    r = pen__limits_check(h->limits, info->width, info->height, where, reterr);
    return r < 0 ? r : read_components(h, m, reterr);
}

static int read_dqt(Header *h, const PenJpegMarker *m, PenError *reterr)
{
    const uint8_t *p = m->body, *end = m->body + m->body_bytes;
    while (p < end) {
        size_t wide = *p >> 4, slot = *p & 15;
        if (wide > 1 || slot > 3 || (size_t)(end - p) < 1 + 64 * (1 + wide))
            return short_marker(m, reterr);
        p++;
        for (size_t i = 0; i < 64; i++, p += 1 + wide)
            h->quant[slot][i] = (uint16_t)(wide ? pen__load16be(p) : *p);
        h->has_quant[slot] = true;
    }
    return PEN_OK;
}

static int read_dri(Header *h, const PenJpegMarker *m, PenError *reterr)
{
    if (m->body_bytes != 2)
        return short_marker(m, reterr);
    h->info.restart_interval = pen__load16be(m->body);
    return PEN_OK;
}

static void read_app(Header *h, const PenJpegMarker *m)
{
    if (m->code == PEN_MARKER_APP14 && m->body_bytes >= 12 && memcmp(m->body, "Adobe", 5) == 0)
        h->info.adobe_transform = m->body[11];
    if (m->code == PEN_MARKER_APP1 && !h->has_exif && m->body_bytes >= 6 &&
        memcmp(m->body, "Exif\0", 5) == 0) {
        h->info.orientation = (uint8_t)pen__exif_orientation(m->body, m->body_bytes);
        h->has_exif = true;
    }
}

static int read_marker(Header *h, const PenJpegMarker *m, PenError *reterr)
{
    if (pen__jpeg_is_sof(m->code))
        return read_sof(h, m, reterr);
    switch (m->code) {
    case PEN_MARKER_DQT:
        return read_dqt(h, m, reterr);
    case PEN_MARKER_DRI:
        return read_dri(h, m, reterr);
    case PEN_MARKER_SOI:
    case PEN_MARKER_EOI:
        return pen__fail(reterr, PEN_E_DECODE, where,
                         "jpeg: expected a scan (SOS), found marker %02x at byte %zu", m->code,
                         m->offset);
    default:
        read_app(h, m);
        return PEN_OK;
    }
}

static void set_quality(Header *h)
{
    uint8_t luma = h->quant_slot[0], chroma = h->quant_slot[1];
    if (!h->has_quant[luma])
        return;
    bool two = h->info.components >= 3 && chroma != luma && h->has_quant[chroma];
    h->info.quality = (uint8_t)pen__jpeg_quality(h->quant[luma], two ? h->quant[chroma] : NULL);
}

int pen__jpeg_info(const uint8_t *data, size_t bytes, const PenLimits *limits, PenJpegInfo *ret,
                   PenError *reterr)
{
    PenJpegWalk walk;
    PenJpegMarker m;
    int r = pen__jpeg_walk_start(&walk, data, bytes, reterr);
    if (r < 0)
        return r;
    Header h = {.limits = limits, .info = {.orientation = 1, .adobe_transform = 0xFF}};
    for (;;) {
        r = pen__jpeg_walk_next(&walk, &m, reterr);
        if (r < 0)
            return r;
        if (m.code == PEN_MARKER_SOS)
            break;
        r = read_marker(&h, &m, reterr);
        if (r < 0)
            return r;
    }
    if (!h.has_sof)
        return pen__fail(reterr, PEN_E_DECODE, where,
                         "jpeg: expected a frame header (SOF) before the scan at byte %zu, found "
                         "none",
                         m.offset);
    set_quality(&h);
    h.info.scan_components = m.body_bytes ? m.body[0] : 0;
    h.info.head_bytes = walk.at;
    *ret = h.info;
    return PEN_OK;
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
