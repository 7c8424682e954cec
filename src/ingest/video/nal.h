/* SPDX-License-Identifier: Apache-2.0 */
/* Units of a packet: NAL units of H.264 and HEVC, and what follows a start code of MPEG-4. */
#ifndef PEN_INGEST_VIDEO_NAL_H
#define PEN_INGEST_VIDEO_NAL_H

#include <stddef.h>
#include <stdint.h>

typedef struct PenNal {
    const uint8_t *data; /* NULL: there are no more */
    size_t bytes;
} PenNal;

/* The NAL unit at *at, which then is where the next one starts. `length_bytes`: of the
 * length before each one; 0: they follow start codes (0, 0, 1). */
PenNal pen__nal_next(const uint8_t *data, size_t bytes, size_t *at, unsigned length_bytes);

#endif
