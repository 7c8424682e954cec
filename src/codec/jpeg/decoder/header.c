/* SPDX-License-Identifier: Apache-2.0 */
/* The head of a tiled JPEG, in the form that the packer writes it and a little beyond. A head that
 * is anything else is not judged here: it is libjpeg's. */
#include <string.h>

#include "base/bytes.h"
#include "codec/jpeg/decoder/decoder_impl.h"
#include "codec/jpeg/markers.h"

/* What the markers said. */
typedef struct Parts {
    uint8_t ids[3], quant_slot[3];
    uint16_t quant[4][64]; /* as stored */
    PenHuffTable huff[4];  /* DC 0, AC 0, DC 1, AC 1 */
    bool has_quant[4], has_huff[4], has_jfif;
} Parts;

static bool read_quant(Parts *p, const PenJpegMarker *m)
{
    const uint8_t *at = m->body, *end = at + m->body_bytes;
    for (; at < end; at += 65) {
        if (*at > 3 || end - at < 65) /* 8 bits a value */
            return false;
        for (size_t i = 0; i < 64; i++)
            p->quant[*at][i] = at[1 + i];
        p->has_quant[*at] = true;
    }
    return true;
}

static bool read_huff(Parts *p, const PenJpegMarker *m)
{
    const uint8_t *at = m->body, *end = at + m->body_bytes;
    while (at < end) {
        if (end - at < 17 || (*at & 0xEE))
            return false;
        uint32_t n = 0, i = (*at & 1u) * 2 + (*at >> 4);
        PenHuffTable t = {.n_codes = {0}};
        memcpy(t.n_codes + 1, at + 1, 16);
        for (size_t k = 1; k <= 16; k++)
            n += t.n_codes[k];
        if (n > 256 || end - at < 17 + (ptrdiff_t)n)
            return false;
        memcpy(t.symbols, at + 17, n);
        t.n_symbols = n;
        p->huff[i] = t;
        p->has_huff[i] = true;
        at += 17 + n;
    }
    return true;
}

/* Sampling, precision and number of components have been looked at. */
static bool read_frame(Parts *p, const PenJpegMarker *m, uint32_t components)
{
    for (size_t i = 0; i < components; i++) {
        p->ids[i] = m->body[6 + 3 * i];
        p->quant_slot[i] = m->body[8 + 3 * i];
    }
    return components == 1 ||
           (p->ids[0] != p->ids[1] && p->ids[0] != p->ids[2] && p->ids[1] != p->ids[2]);
}

/* libjpeg takes three components with a JFIF marker as YCbCr, and without one unless something
 * else, an Adobe marker or letters as ids, says that they are RGB. */
static bool is_ycc(const Parts *p)
{
    return p->has_jfif || (p->ids[0] == 1 && p->ids[1] == 2 && p->ids[2] == 3);
}

static bool read_app(Parts *p, const PenJpegMarker *m)
{
    if (m->code == PEN_MARKER_APP0 && m->body_bytes >= 14 && memcmp(m->body, "JFIF", 5) == 0)
        p->has_jfif = true;
    return m->code != PEN_MARKER_APP14;
}

static bool read_marker(Parts *p, const PenJpegMarker *m, uint32_t components)
{
    switch (m->code) {
    case PEN_MARKER_SOF0:
        return read_frame(p, m, components);
    case PEN_MARKER_DQT:
        return read_quant(p, m);
    case PEN_MARKER_DHT:
        return read_huff(p, m);
    case PEN_MARKER_DRI:
        return true;
    default:
        return ((m->code >= PEN_MARKER_APP0 && m->code <= PEN_MARKER_APP15) ||
                m->code == PEN_MARKER_COM) &&
               read_app(p, m);
    }
}

/* All components in the order of the frame, all coefficients at once; both components of chroma
 * with the same tables. */
static bool read_scan(const Parts *p, const PenJpegMarker *m, PenOwnHead *ret)
{
    const uint8_t *b = m->body;
    uint32_t n = ret->components;
    if (m->body_bytes != 4 + 2 * n || b[0] != n)
        return false;
    for (size_t i = 0; i < n; i++) {
        uint8_t dc = b[2 + 2 * i] >> 4, ac = b[2 + 2 * i] & 15;
        if (b[1 + 2 * i] != p->ids[i] || dc > 1 || ac > 1 || !p->has_huff[2 * dc] ||
            !p->has_huff[2 * ac + 1] || (i == 2 && b[2 + 2 * i] != b[2 * i]))
            return false;
        ret->huff[i ? PEN_OWN_DC_CHROMA : PEN_OWN_DC_LUMA] = p->huff[2 * dc];
        ret->huff[i ? PEN_OWN_AC_CHROMA : PEN_OWN_AC_LUMA] = p->huff[2 * ac + 1];
    }
    const uint8_t *end = b + 1 + 2 * n;
    return end[0] == 0 && end[1] == 63 && end[2] == 0;
}

static bool finish(const Parts *p, PenOwnHead *ret)
{
    for (size_t i = 0; i < ret->components; i++) {
        uint8_t slot = p->quant_slot[i];
        if (slot > 3 || !p->has_quant[slot])
            return false;
        for (size_t k = 0; k < 64; k++)
            ret->quant[i][pen__jpeg_natural[k]] = p->quant[slot][k];
    }
    return ret->components == 1 || is_ycc(p);
}

int pen__own_head(const PenEncoded *image, const PenJpegInfo *info, PenOwnHead *ret)
{
    PenJpegWalk walk;
    PenJpegMarker m;
    Parts p = {.has_jfif = false};
    bool grey = info->components == 1;
    ret->components = info->components;
    ret->h = grey ? 1 : info->h_samp[0];
    ret->v = grey ? 1 : info->v_samp[0];
    if (pen__jpeg_walk_start(&walk, image->data, image->head_bytes, NULL) < 0)
        return PEN_END;
    for (;;) {
        if (pen__jpeg_walk_next(&walk, &m, NULL) < 0)
            return PEN_END;
        if (m.code == PEN_MARKER_SOS)
            break;
        if (!read_marker(&p, &m, info->components))
            return PEN_END;
    }
    return read_scan(&p, &m, ret) && finish(&p, ret) ? PEN_OK : PEN_END;
}
