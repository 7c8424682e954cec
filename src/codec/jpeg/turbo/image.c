/* SPDX-License-Identifier: Apache-2.0 */
/* JPEG files behind the calls that all codecs have. */
#include "codec/codec_impl.h"
#include "codec/jpeg/header.h"
#include "codec/jpeg/turbo/turbo.h"

static int probe(const uint8_t *data, size_t bytes, const PenLimits *limits, PenImageInfo *ret,
                 PenError *reterr)
{
    PenJpegInfo info;
    int r = pen__jpeg_info(data, bytes, limits, &info, reterr);
    if (r < 0)
        return r;
    *ret = (PenImageInfo){
        .width = info.width,
        .height = info.height,
        .codec = PEN_STORED_JPEG,
        .channels = info.components == 1 ? 1 : 3,
        .orientation = info.orientation,
    };
    return PEN_OK;
}

static int decode(const uint8_t *data, size_t bytes, const PenLimits *limits, PenPixels *ret,
                  PenError *reterr)
{
    PenJpegInfo info;
    int r = pen__jpeg_info(data, bytes, limits, &info, reterr);
    return r < 0 ? r : pen__turbo_decode(data, bytes, limits, ret, reterr);
}

static int mask(const uint8_t *data, size_t bytes, const PenLimits *limits, PenPixels *ret,
                PenError *reterr)
{
    PenJpegInfo info;
    int r = pen__jpeg_info(data, bytes, limits, &info, reterr);
    if (r < 0)
        return r;
    if (info.components != 1)
        return pen__fail(reterr, PEN_E_DECODE, "codec/jpeg",
                         "mask: expected 1 channel (gray or palette), found a JPEG of %u channels; "
                         "store masks as PNG",
                         info.components);
    return pen__turbo_decode(data, bytes, limits, ret, reterr);
}

const PenCodecOps pen__jpeg_ops = {
    .codec = PEN_STORED_JPEG,
    .name = "jpeg",
    .suffix = ".jpg",
    .probe = probe,
    .check = pen__jpeg_check,
    .decode = decode,
    .mask = mask,
};
