/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of a box of a JPEG that is kept as it is and has an entry index: by the own decoder, which
 * enters the scan where the box needs it, or by libjpeg, which needs the complete file. */
#include "codec/region/region_impl.h"

/* An index that is not of this file is of no use. */
static bool is_of_file(const PenImageHeader *header)
{
    const PenEncoded *image = header->image;
    return header->u.jpeg.info.head_bytes == image->head_bytes && image->head_bytes <= image->bytes;
}

int pen__region_indexed(PenDecoder *d, const PenImageHeader *header, const PenRegion *region,
                        PenError *reterr)
{
    uint32_t given = 0;
    int r = pen__region_check_mask(region, header->u.jpeg.info.components, reterr);
    if (r >= 0 && is_of_file(header))
        r = pen__region_own(d, header, region, &given, reterr);
    else if (r >= 0)
        r = PEN_END;
    if (r != PEN_END || header->image->partial)
        return r;
    PenRegion rest = *region;
    rest.box.y += given;
    rest.box.h -= given;
    return pen__region_jpeg(d, header, &rest, reterr);
}

bool pen__region_takes_parts(void)
{
    return pen__own_is_on();
}

void pen__region_scan(const PenCut *cut, const PenJpegEntries *entries, const PenBox *box,
                      uint64_t *ret_from, uint64_t *ret_end)
{
    PenJpegInfo info = pen__cut_info(cut);
    PenOwnBox at = {*box, cut->shrink};
    pen__own_scan_bytes(&info, entries, &at, ret_from, ret_end);
}
