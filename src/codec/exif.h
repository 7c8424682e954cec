/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEN_CODEC_EXIF_H
#define PEN_CODEC_EXIF_H

#include <stddef.h>
#include <stdint.h>

/* EXIF orientation of a TIFF block, with or without "Exif\0\0" before it; 1 if absent or
 * damaged. */
int pen__exif_orientation(const uint8_t *exif, size_t bytes);

#endif
