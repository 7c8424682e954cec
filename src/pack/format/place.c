/* SPDX-License-Identifier: Apache-2.0 */
#include "pack/format/place.h"

#include <string.h>

#include "base/bytes.h"
#include "base/crc32c.h"

uint32_t pen__place_sum(const PenPlace *place, const void *data, size_t bytes)
{
    uint8_t p[36];
    memcpy(p, place->id, PEN_ID_BYTES);
    pen__store32(p + 16, place->block);
    pen__store32(p + 20, place->sample);
    pen__store32(p + 24, place->field);
    pen__store32(p + 28, place->frame);
    pen__store32(p + 32, place->run);
    return pen__crc32c(pen__crc32c(0, p, sizeof p), data, bytes);
}
