/* SPDX-License-Identifier: Apache-2.0 */
/* Tokens to a file. */
#ifndef PEN_CODEC_JPEG_TRANSCODE_WRITE_H
#define PEN_CODEC_JPEG_TRANSCODE_WRITE_H

#include "codec/jpeg/transcode/tokens.h"

/* Fills in jpeg, head_bytes, the lengths of segments (where the numbers of tokens stood), and
 * luma's sampling in info. The bytes are those that libjpeg would write. */
int pen__tiled_write(const PenTokens *t, const PenTilePlan *plan, PenTiledJpeg *ret,
                     PenError *reterr);

#endif
