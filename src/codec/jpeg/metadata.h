/* SPDX-License-Identifier: Apache-2.0 */
/* Metadata of a JPEG file: EXIF, ICC, XMP, comments. */
#ifndef PEN_CODEC_JPEG_METADATA_H
#define PEN_CODEC_JPEG_METADATA_H

#include "codec/codec.h"

/* APPn and COM segments before the first scan except JFIF and Adobe, complete ("FF E1 length
 * data"), one after another. Appended to `out`. */
int pen__jpeg_metadata(const uint8_t *data, size_t bytes, PenBuf *out, PenError *reterr);

/* The reverse: the JPEG with those segments inserted after SOI and JFIF. Appended to `out`. */
int pen__jpeg_with_metadata(const uint8_t *data, size_t bytes, const uint8_t *metadata,
                            size_t metadata_bytes, PenBuf *out, PenError *reterr);

#endif
