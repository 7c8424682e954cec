/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/region_help.h"

static int collect_rows(void *ctx, const uint8_t *rows, size_t stride, uint32_t n, PenError *reterr)
{
    Collected *c = ctx;
    if (++c->calls == c->fail_at)
        return pen__fail(reterr, PEN_E_CANCELLED, "test", "stopped");
    for (uint32_t i = 0; i < n; i++)
        if (pen__buf_add(&c->pixels, rows + i * stride, c->row_bytes) < 0)
            abort();
    c->rows += n;
    return PEN_OK;
}

uint8_t *exact_copy(const void *data, size_t bytes)
{
    uint8_t *p = malloc(bytes ? bytes : 1);
    if (!p)
        abort();
    memcpy(p, data, bytes);
    return p;
}

int find_region(PenDecoder *d, const PenEncoded *image, PenBox box, int32_t colour, Collected *c,
                PenError *err)
{
    return find_shrunk(d, image, &(PenRegion){.box = box, .colour = colour}, c, err);
}

int find_shrunk(PenDecoder *d, const PenEncoded *image, const PenRegion *what, Collected *c,
                PenError *err)
{
    PenRegion region = {.box = what->box,
                        .colour = what->colour,
                        .shrink = what->shrink,
                        .limits = &pen__limits_default,
                        .rows = collect_rows,
                        .ctx = c};
    c->pixels.bytes = 0;
    c->rows = c->calls = 0;
    c->row_bytes = (size_t)what->box.w * (what->colour == PEN_COLOUR_RGB ? 3 : 1);
    return pen__region_decode(d, image, &region, err);
}

static void expect_pixel(const uint8_t *p, uint32_t channels, int32_t colour, uint8_t *out)
{
    const uint8_t *g = channels == 1 ? p : p + 1, *b = channels == 1 ? p : p + 2;
    if (colour == PEN_COLOUR_RGB) {
        out[0] = *p;
        out[1] = *g;
        out[2] = *b;
    } else if (channels == 1) {
        *out = *p;
    } else {
        *out = (uint8_t)((*p * 19595 + *g * 38470 + *b * 7471 + 32768) / 65536);
    }
}

size_t count_different(const PenPixels *whole, PenBox box, int32_t colour, const Collected *c)
{
    size_t different = 0, each = colour == PEN_COLOUR_RGB ? 3 : 1;
    if (c->rows != box.h || c->pixels.bytes != (size_t)box.w * box.h * each)
        return (size_t)box.w * box.h * each;
    const uint8_t *found = c->pixels.data;
    for (uint32_t y = box.y; y < box.y + box.h; y++)
        for (uint32_t x = box.x; x < box.x + box.w; x++, found += each) {
            uint8_t expected[3];
            expect_pixel(whole->data + ((size_t)y * whole->width + x) * whole->channels,
                         whole->channels, colour, expected);
            for (size_t i = 0; i < each; i++)
                different += expected[i] != found[i];
        }
    return different;
}

PenEncoded part_of(const TiledJpeg *t, PenBox box, uint32_t more, uint8_t **out)
{
    return part_of_shrunk(t, box, 0, more, out);
}

PenEncoded part_of_shrunk(const TiledJpeg *t, PenBox box, uint32_t shrink, uint32_t more,
                          uint8_t **out)
{
    PenCut cut = {.codec = PEN_STORED_JPEG,
                  .components = t->info.components,
                  .h_samp = t->info.components == 1 ? 1 : t->info.h_samp[0],
                  .v_samp = t->info.components == 1 ? 1 : t->info.v_samp[0],
                  .width = t->info.width,
                  .height = t->info.height,
                  .shrink = shrink};
    PenEncoded e = whole_tiled(t);
    uint32_t first, last;
    pen__region_segments(&cut, box.y, box.h, &first, &last);
    if (first > last || last >= t->n_segments)
        abort();
    first -= PEN_MIN(first, more);
    last = PEN_MIN(last + more, t->n_segments - 1);
    size_t before = 0, bytes = 0;
    for (uint32_t i = 0; i <= last; i++)
        *(i < first ? &before : &bytes) += t->segment_bytes[i];
    *out = malloc(t->head_bytes + bytes);
    if (!*out)
        abort();
    memcpy(*out, t->jpeg.data, t->head_bytes);
    memcpy(*out + t->head_bytes, t->jpeg.data + t->head_bytes + before, bytes);
    e.data = *out;
    e.bytes = t->head_bytes + bytes;
    e.partial = 1;
    e.first_segment = first;
    e.end_segment = last + 1;
    e.segment_bytes = t->segment_bytes + first;
    return e;
}

PenEncoded part_of_indexed(const PenEncoded *image, const PenJpegInfo *info, PenBox box,
                           uint8_t **out)
{
    return shrunk_part_of_indexed(image, info, box, 0, out);
}

PenEncoded shrunk_part_of_indexed(const PenEncoded *image, const PenJpegInfo *info, PenBox box,
                                  uint32_t shrink, uint8_t **out)
{
    PenCut cut = {PEN_STORED_JPEG, info->components, info->h_samp[0], info->v_samp[0],
                  info->width,     info->height,     shrink};
    uint64_t from, end;
    pen__region_scan(&cut, image->entries, &box, &from, &end);
    if (from >= end || end > image->entries->scan_bytes || info->lead_bytes < 2)
        abort();
    size_t tables = info->head_bytes - info->lead_bytes, bytes = (size_t)(end - from);
    PenEncoded part = *image;
    part.head_bytes = (uint32_t)(2 + tables);
    part.bytes = part.head_bytes + bytes;
    part.partial = 1;
    part.scan_offset = from;
    part.data = *out = malloc(part.bytes);
    if (!*out)
        abort();
    memcpy(*out, image->data, 2);
    memcpy(*out + 2, image->data + info->lead_bytes, tables);
    memcpy(*out + part.head_bytes, image->data + info->head_bytes + from, bytes);
    return part;
}
