/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEN_CODEC_JPEG_QUALITY_H
#define PEN_CODEC_JPEG_QUALITY_H

#include <stdint.h>

/* The IJG quality (1-100) that quantisation tables in zigzag order stand for: exact when they are
 * the IJG's own scaled tables, else the quality whose tables are about as coarse. `chroma` may be
 * NULL.
 */
int pen__jpeg_quality(const uint16_t luma[64], const uint16_t *chroma);

#endif
