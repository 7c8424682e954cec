/* SPDX-License-Identifier: Apache-2.0 */
/* EXIF is read for the orientation alone. Damaged EXIF is common and never an error. */
#include "codec/exif.h"

#include <stdbool.h>
#include <string.h>

#include "base/bytes.h"

typedef struct Tiff {
    const uint8_t *data;
    size_t bytes;
    bool big_endian;
} Tiff;

static bool read16(const Tiff *t, uint64_t at, uint32_t *ret)
{
    if (!pen__range_ok(at, 2, t->bytes))
        return false;
    const uint8_t *p = t->data + at;
    *ret = t->big_endian ? pen__load16be(p) : pen__load16(p);
    return true;
}

static bool read32(const Tiff *t, uint64_t at, uint32_t *ret)
{
    uint32_t first, second;
    if (!read16(t, at, &first) || !read16(t, at + 2, &second))
        return false;
    *ret = t->big_endian ? first << 16 | second : second << 16 | first;
    return true;
}

/* The value of tag 0x0112 in the first directory, 0 when it cannot be found. */
static uint32_t find_orientation(const Tiff *t)
{
    uint32_t directory, n;
    if (!read32(t, 4, &directory) || !read16(t, directory, &n))
        return 0;
    for (uint32_t i = 0; i < n; i++) {
        uint64_t entry = (uint64_t)directory + 2 + (uint64_t)i * 12;
        uint32_t tag, type, value;
        if (!read16(t, entry, &tag) || !read16(t, entry + 2, &type))
            return 0;
        if (tag != 0x0112)
            continue;
        /* Type 3 is the right one (16 bits); some writers store 4 (32 bits). */
        bool ok = type == 4 ? read32(t, entry + 8, &value) : read16(t, entry + 8, &value);
        return ok ? value : 0;
    }
    return 0;
}

int pen__exif_orientation(const uint8_t *exif, size_t bytes)
{
    if (bytes >= 6 && memcmp(exif, "Exif\0", 5) == 0) {
        exif += 6;
        bytes -= 6;
    }
    if (bytes < 8 || (memcmp(exif, "II*\0", 4) != 0 && memcmp(exif, "MM\0*", 4) != 0))
        return 1;
    Tiff t = {.data = exif, .bytes = bytes, .big_endian = exif[0] == 'M'};
    uint32_t value = find_orientation(&t);
    return value >= 1 && value <= 8 ? (int)value : 1;
}
