/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEN_CODEC_JPEG_QUALITY_H
#define PEN_CODEC_JPEG_QUALITY_H

#include "codec/jpeg/header.h"

/* The IJG quality (1-100) of a file, estimated from its quantisation tables; 0 = cannot say. */
int pen__jpeg_quality(const PenJpegHeader *header);

/* The IJG quality that quantisation tables in zigzag order correspond to: exact for the IJG's own
 * scaled tables, otherwise the quality whose tables are about as coarse. `chroma` may be NULL. */
int pen__quant_quality(const uint16_t luma[64], const uint16_t *chroma);

/* The quality factor (1-100) as ImageMagick estimates it from all tables of a file: exact for the
 * IJG's own scaled tables, otherwise that of IJG tables which are about as coarse; 0 = cannot say.
 * It is for reports: people compare it with that of other tools. */
int pen__jpeg_quality_factor(const PenJpegHeader *header);

#endif
