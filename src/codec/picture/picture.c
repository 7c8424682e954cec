/* SPDX-License-Identifier: Apache-2.0 */
#include "codec/picture/picture.h"

#include "base/attr.h"

static const char where[] = "codec/picture";

static int check_format(const PenVideoPicture *p, PenError *reterr)
{
    PenYuvFactors unused;
    if (p->depth != 8 && p->depth != 10 && p->depth != 12)
        return pen__fail(reterr, PEN_E_UNSUPPORTED, where,
                         "picture: expected samples of 8, 10 or 12 bits, found %u", p->depth);
    if ((p->n_planes != 1 && p->n_planes != 3) || p->shift_x > 1 || p->shift_y > 1)
        return pen__fail(reterr, PEN_E_UNSUPPORTED, where,
                         "picture: expected gray, 4:2:0, 4:2:2, 4:4:0 or 4:4:4, found %u planes "
                         "with chroma of 1/%u x 1/%u",
                         p->n_planes, 1u << PEN_MIN(p->shift_x, 31), 1u << PEN_MIN(p->shift_y, 31));
    if (p->range > PEN_VIDEO_RANGE_FULL)
        return pen__fail(reterr, PEN_E_DECODE, where,
                         "picture: expected a range of 0 (unknown), 1 (limited) or 2 (full), "
                         "found %u",
                         p->range);
    if (!pen__yuv_factors(p->matrix, p->range == PEN_VIDEO_RANGE_FULL, p->depth, &unused))
        return pen__fail(reterr, PEN_E_UNSUPPORTED, where,
                         "picture: expected matrix coefficients 1 to 7, 9 or 10 of H.273 (BT.709, "
                         "BT.601, BT.2020, ...), found %u%s",
                         p->matrix,
                         p->matrix == 0   ? " (RGB)"
                         : p->matrix == 8 ? " (YCgCo)"
                                          : "");
    return PEN_OK;
}

static int check_plane(const PenVideoPicture *p, uint32_t i, PenError *reterr)
{
    uint64_t columns = i ? pen__chroma_side(p->width, p->shift_x) : p->width;
    int64_t row_bytes = (int64_t)columns * (p->depth > 8 ? 2 : 1), stride = p->strides[i];
    if (p->planes[i] && (stride >= row_bytes || stride <= -row_bytes))
        return PEN_OK;
    return pen__fail(reterr, PEN_E_DECODE, where,
                     "picture: expected rows of %lld bytes in plane %u, found %lld",
                     (long long)row_bytes, i, p->planes[i] ? (long long)stride : 0);
}

int pen__picture_check(const PenVideoPicture *p, PenError *reterr)
{
    int r = check_format(p, reterr);
    if (r >= 0 && (!p->width || !p->height))
        r = pen__fail(reterr, PEN_E_DECODE, where,
                      "picture: expected at least 1 x 1 pixels, found %u x %u", p->width,
                      p->height);
    for (uint32_t i = 0; r >= 0 && i < p->n_planes; i++)
        r = check_plane(p, i, reterr);
    return r;
}

PenYuvFactors pen__picture_factors(const PenVideoPicture *p)
{
    PenYuvFactors f = {0};
    pen__yuv_factors(p->matrix, p->range == PEN_VIDEO_RANGE_FULL, p->depth, &f);
    return f;
}
