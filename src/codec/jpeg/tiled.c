/* SPDX-License-Identifier: Apache-2.0 */
#include "codec/jpeg/tiled.h"

#include <string.h>

#include "codec/jpeg/markers.h"

static const char where[] = "codec/jpeg";

static uint32_t ceil_div(uint32_t a, uint32_t b)
{
    return a / b + (a % b != 0);
}

void pen__tile_geometry(const PenJpegInfo *info, PenTileGeometry *ret)
{
    uint32_t h = 1, v = 1;
    /* A scan of one component has one block per MCU, whatever its sampling factors are. */
    if (info->components > 1)
        for (size_t i = 0; i < info->components; i++) {
            h = PEN_MAX(h, info->h_samp[i]);
            v = PEN_MAX(v, info->v_samp[i]);
        }
    ret->mcu_width = 8 * h;
    ret->mcu_height = 8 * v;
    ret->mcus_x = ceil_div(info->width, ret->mcu_width);
    ret->mcus_y = ceil_div(info->height, ret->mcu_height);
    ret->n_segments = ceil_div(ret->mcus_x * ret->mcus_y, PEN_TILE_MCUS);
}

bool pen__tile_sampling_fits(const PenJpegInfo *info)
{
    uint8_t largest = info->components == 3 ? 2 : 1;
    if (info->components != 1 && info->components != 3)
        return false;
    for (size_t i = 1; i < info->components; i++)
        if (info->h_samp[i] != 1 || info->v_samp[i] != 1)
            return false;
    return info->h_samp[0] <= largest && info->v_samp[0] <= largest;
}

uint8_t pen__tile_closing_code(uint32_t segment, uint32_t n_segments)
{
    return segment + 1 == n_segments ? PEN_MARKER_EOI : (uint8_t)(PEN_MARKER_RST0 + segment % 8);
}

int pen__jpeg_tiled_header(const uint8_t *data, size_t bytes, const PenLimits *limits,
                           PenJpegHeader *ret, PenError *reterr)
{
    PenJpegHeader h;
    const PenJpegInfo *info = &h.info;
    int r = pen__jpeg_header(data, bytes, limits, &h, reterr);
    if (r < 0)
        return r;
    if (info->sof != PEN_MARKER_SOF0 || info->precision != 8)
        return pen__fail(reterr, PEN_E_DECODE, where,
                         "tiled jpeg: expected a baseline file (c0) of 8 bits, found %02x of %u",
                         info->sof, info->precision);
    if (info->restart_interval != PEN_TILE_MCUS)
        return pen__fail(reterr, PEN_E_DECODE, where,
                         "tiled jpeg: expected a restart interval of %d, found %u", PEN_TILE_MCUS,
                         info->restart_interval);
    if (bytes > UINT32_MAX)
        return pen__fail(reterr, PEN_E_LIMIT, where,
                         "tiled jpeg: expected less than 4 GiB, found %zu bytes", bytes);
    *ret = h;
    return PEN_OK;
}

/* Segments end with their marker; every other byte pair is damage. */
static int measure(const uint8_t *data, size_t bytes, size_t at, uint32_t *lengths, uint32_t n,
                   PenError *reterr)
{
    for (uint32_t i = 0; i < n; i++) {
        size_t start = at;
        const uint8_t *p;
        do {
            p = at < bytes ? memchr(data + at, 0xFF, bytes - at) : NULL;
            if (!p || p + 1 == data + bytes)
                return pen__fail(reterr, PEN_E_DECODE, where,
                                 "tiled jpeg: expected %u segments, found the end of the file in "
                                 "segment %u",
                                 n, i);
            at = (size_t)(p - data) + 2;
        } while (p[1] == 0);
        if (p[1] != pen__tile_closing_code(i, n))
            return pen__fail(reterr, PEN_E_DECODE, where,
                             "tiled jpeg: segment %u of %u: expected marker %02x after it, found "
                             "%02x at byte %zu",
                             i, n, pen__tile_closing_code(i, n), p[1], at - 2);
        lengths[i] = (uint32_t)(at - start);
    }
    if (at != bytes)
        return pen__fail(
            reterr, PEN_E_DECODE, where,
            "tiled jpeg: expected the end of the file at byte %zu, found %zu more bytes", at,
            bytes - at);
    return PEN_OK;
}

int pen__jpeg_segments(const uint8_t *data, size_t bytes, const PenLimits *limits,
                       uint32_t *ret_head_bytes, uint32_t **ret, uint32_t *ret_n, PenError *reterr)
{
    PenJpegHeader h;
    PenTileGeometry g;
    int r = pen__jpeg_tiled_header(data, bytes, limits, &h, reterr);
    if (r < 0)
        return r;
    size_t head_bytes = h.info.head_bytes;
    pen__tile_geometry(&h.info, &g);
    /* A segment has 2 bytes at least: a small file cannot make us allocate for a huge one. */
    if (g.n_segments > (bytes - head_bytes) / 2)
        return pen__fail(reterr, PEN_E_DECODE, where,
                         "tiled jpeg: expected %u segments, found %zu bytes for them", g.n_segments,
                         bytes - head_bytes);
    uint32_t *lengths = pen__alloc_array(g.n_segments, sizeof *lengths);
    if (!lengths)
        return pen__fail_memory(reterr, where, "segment table");
    r = measure(data, bytes, head_bytes, lengths, g.n_segments, reterr);
    if (r < 0) {
        pen__free(lengths);
        return r;
    }
    *ret_head_bytes = (uint32_t)head_bytes;
    *ret = lengths;
    *ret_n = g.n_segments;
    return PEN_OK;
}
