/* SPDX-License-Identifier: Apache-2.0 */
#include "pack/format/place.h"

#include <string.h>

#include "base/bytes.h"
#include "base/crc32c.h"

static uint32_t sum_place(const PenPlace *place)
{
    uint8_t p[36];
    memcpy(p, place->id, PEN_ID_BYTES);
    pen__store32(p + 16, place->block);
    pen__store32(p + 20, place->sample);
    pen__store32(p + 24, place->field);
    pen__store32(p + 28, place->frame);
    pen__store32(p + 32, place->run);
    return pen__crc32c(0, p, sizeof p);
}

uint32_t pen__place_sum(const PenPlace *place, const void *data, size_t bytes)
{
    return pen__crc32c(sum_place(place), data, bytes);
}

uint32_t pen__place_sum_of(const PenPlace *place, uint32_t crc, uint64_t bytes)
{
    return pen__crc32c_join(sum_place(place), crc, bytes);
}
