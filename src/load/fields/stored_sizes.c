/* SPDX-License-Identifier: Apache-2.0 */
#include "load/fields/stored_sizes.h"

#include "base/attr.h"
#include "base/error.h"
#include "base/mem.h"

enum { AT_ONCE = 1 << 22 }; /* samples */

int pen__stored_sizes(PenPack *pack, uint32_t field, PenSampleRange range,
                      void (*each)(void *ctx, uint64_t i, uint32_t width, uint32_t height),
                      void *ctx, PenError *reterr)
{
    uint64_t most = PEN_MIN(range.n, (uint64_t)AT_ONCE);
    uint32_t *sizes = pen__alloc_array(most, 2 * sizeof *sizes);
    int r = sizes ? PEN_OK : pen__fail_memory(reterr, "load/sizes", "sizes of images");
    for (uint64_t at = 0; at < range.n && r == PEN_OK; at += most) {
        PenColumnRange part = {.field = field,
                               .what = PEN_COLUMN_SIZE,
                               .first = range.first + at,
                               .n = PEN_MIN(most, range.n - at)};
        size_t bytes;
        r = pen_pack_column(pack, &part, sizes, most * 2 * sizeof *sizes, &bytes, reterr);
        for (uint64_t i = 0; i < part.n && r == PEN_OK; i++)
            each(ctx, at + i, sizes[2 * i], sizes[2 * i + 1]);
    }
    pen__free(sizes);
    return r;
}
