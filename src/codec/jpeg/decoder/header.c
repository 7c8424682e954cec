/* SPDX-License-Identifier: Apache-2.0 */
/* The head of a tiled JPEG, in the form that the packer writes and a little beyond. Every other
 * head is left to libjpeg. */
#include "codec/jpeg/decoder/decoder_impl.h"

/* libjpeg takes three components with a JFIF marker as YCbCr, and without one unless something
 * else, an Adobe marker or letters as ids, says that they are RGB. */
static bool is_ycc(const PenJpegHeader *h)
{
    return h->has_jfif || (h->ids[0] == 1 && h->ids[1] == 2 && h->ids[2] == 3);
}

static bool ids_differ(const uint8_t *ids)
{
    return ids[0] != ids[1] && ids[0] != ids[2] && ids[1] != ids[2];
}

/* All components in the order of the frame, all coefficients at once; both components of chroma
 * with the same tables. */
static bool read_scan(const PenJpegHeader *h, PenOwnHead *ret)
{
    const uint8_t *b = h->scan;
    uint32_t n = ret->components;
    if (h->scan_bytes != 4 + 2 * n || b[0] != n)
        return false;
    for (size_t i = 0; i < n; i++) {
        uint8_t dc = b[2 + 2 * i] >> 4, ac = b[2 + 2 * i] & 15;
        if (b[1 + 2 * i] != h->ids[i] || dc > 1 || ac > 1 || !h->dc[dc].n_codes ||
            !h->ac[ac].n_codes || (i == 2 && b[2 + 2 * i] != b[2 * i]))
            return false;
        ret->huff[i ? PEN_OWN_DC_CHROMA : PEN_OWN_DC_LUMA] = h->dc[dc];
        ret->huff[i ? PEN_OWN_AC_CHROMA : PEN_OWN_AC_LUMA] = h->ac[ac];
    }
    const uint8_t *end = b + 1 + 2 * n;
    return end[0] == 0 && end[1] == 63 && end[2] == 0;
}

static bool read_quant(const PenJpegHeader *h, PenOwnHead *ret)
{
    for (size_t i = 0; i < ret->components; i++) {
        const uint8_t *values = h->quant[h->quant_slot[i]].values;
        if (!values)
            return false;
        for (size_t k = 0; k < 64; k++)
            ret->quant[i][pen__jpeg_natural[k]] = values[k];
    }
    return true;
}

int pen__own_head(const PenJpegHeader *header, PenOwnHead *ret)
{
    const PenJpegInfo *info = &header->info;
    bool grey = info->components == 1;
    ret->components = info->components;
    ret->h = grey ? 1 : info->h_samp[0];
    ret->v = grey ? 1 : info->v_samp[0];
    if (header->is_unusual || (!grey && !(ids_differ(header->ids) && is_ycc(header))))
        return PEN_END;
    return read_scan(header, ret) && read_quant(header, ret) ? PEN_OK : PEN_END;
}
