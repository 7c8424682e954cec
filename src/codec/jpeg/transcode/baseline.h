/* SPDX-License-Identifier: Apache-2.0 */
/* Makes baseline JPEG files of other JPEG files. */
#ifndef PEN_CODEC_JPEG_TRANSCODE_BASELINE_H
#define PEN_CODEC_JPEG_TRANSCODE_BASELINE_H

#include "codec/codec.h"

/* Transcodes without loss to a baseline JPEG of one scan, without restart markers. It has JFIF, but
 * no other metadata of the source. Replaces what `ret` holds; after a failure that is undefined.
 * PEN_OK: the pixels of `ret` equal the source's bit for bit.
 * PEN_END: a good file that cannot be transcoded exactly; *ret_why says why in a word or two
 * ("arithmetic", "12 bit", "CMYK", "sampling", "incomplete progressive", ...).
 * < 0: broken (truncated, damaged) or over a limit. Reads every coefficient, so damage is found. */
int pen__jpeg_baseline(const uint8_t *data, size_t bytes, const PenLimits *limits, PenBuf *ret,
                       const char **ret_why, PenError *reterr);

#endif
