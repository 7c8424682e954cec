/* SPDX-License-Identifier: Apache-2.0 */
/* The head of a tiled JPEG, in the form that the packer writes, or of a file with an entry index.
 * Every other head is left to libjpeg. */
#include "codec/jpeg/decoder/decoder_impl.h"

/* libjpeg takes three components with a JFIF marker as YCbCr; without one, an Adobe marker says
 * what they are, and without that, letters as ids say that they are RGB. */
bool pen__own_is_ycc(const PenJpegHeader *h)
{
    uint8_t transform = h->info.adobe_transform;
    bool counted = h->ids[0] == 1 && h->ids[1] == 2 && h->ids[2] == 3;
    return h->has_jfif || transform == 1 || (transform == PEN_ADOBE_NONE && counted);
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

bool pen__own_takes(const PenJpegInfo *info)
{
    /* One component has one block per MCU, whatever its sampling factors are. */
    return info->components == 1 || pen__tile_sampling_fits(info);
}

int pen__own_head(const PenJpegHeader *header, PenOwnHead *ret)
{
    const PenJpegInfo *info = &header->info;
    bool grey = info->components == 1;
    if (!pen__own_takes(info))
        return PEN_END;
    ret->components = info->components;
    ret->h = grey ? 1 : info->h_samp[0];
    ret->v = grey ? 1 : info->v_samp[0];
    if (header->is_unusual || (!grey && !(ids_differ(header->ids) && pen__own_is_ycc(header))))
        return PEN_END;
    return read_scan(header, ret) && read_quant(header, ret) ? PEN_OK : PEN_END;
}
