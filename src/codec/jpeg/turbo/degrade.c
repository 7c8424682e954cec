/* SPDX-License-Identifier: Apache-2.0 */
/* What a JPEG would make of an image: encoded into memory of the caller, and decoded from it. */
#include <string.h>

#include "codec/jpeg/turbo/session.h"
#include "codec/jpeg/turbo/turbo.h"

static const char where[] = "codec/jpeg";

typedef struct Degrade {
    PenTurbo t; /* first: a PenTurbo pointer to it is a Degrade pointer */
    struct jpeg_compress_struct c;
    struct jpeg_destination_mgr out;
    const PenPixels *image;
    int quality;
    uint8_t *buf;
    size_t bytes;
} Degrade;

/* A block of baseline JPEG has at most 20 bits for its first coefficient and 26 for each of the
 * others, and every byte may be followed by a zero. */
enum { BLOCK_BYTES = 2 * 208, HEAD_BYTES = 2048 };

uint64_t pen__turbo_degrade_bytes(uint32_t width, uint32_t height, uint32_t channels)
{
    uint64_t side = channels == 1 ? DCTSIZE : 2 * DCTSIZE;
    uint64_t mcus = ((width + side - 1) / side) * ((height + side - 1) / side);
    return HEAD_BYTES + mcus * (channels == 1 ? 1 : 6) * BLOCK_BYTES;
}

/* libjpeg's tables and first pools, and rows of blocks with those above and below. */
uint64_t pen__turbo_degrade_memory(uint32_t width, uint32_t channels)
{
    return (256u << 10) + 96 * ((uint64_t)width + 128) * channels;
}

static void out_start(j_compress_ptr c)
{
    Degrade *g = c->client_data;
    g->out.next_output_byte = g->buf;
    g->out.free_in_buffer = g->bytes;
}

static boolean out_full(j_compress_ptr c)
{
    Degrade *g = c->client_data;
    pen__turbo_leave(&g->t, pen__fail(g->t.reterr, PEN_E_LIMIT, where,
                                      "jpeg: expected at most %zu bytes of %u x %u pixels",
                                      g->bytes, g->image->width, g->image->height));
}

static void out_end(j_compress_ptr c)
{
    Degrade *g = c->client_data;
    g->bytes -= g->out.free_in_buffer;
}

/* The parameters of libjpeg's calls are not const, but nothing is written through them. */
static JSAMPROW row_at(const Degrade *g, uint32_t y)
{
    return g->image->data + (size_t)y * g->image->width * g->image->channels;
}

static int encode_body(PenTurbo *t)
{
    Degrade *g = (Degrade *)t;
    struct jpeg_compress_struct *c = &g->c;
    jpeg_create_compress(c);
    pen__turbo_limit_memory(t, c->mem);
    g->out.init_destination = out_start;
    g->out.empty_output_buffer = out_full;
    g->out.term_destination = out_end;
    c->dest = &g->out;
    c->image_width = g->image->width;
    c->image_height = g->image->height;
    c->input_components = (int)g->image->channels;
    c->in_color_space = g->image->channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
    jpeg_set_defaults(c); /* 4:2:0 for colour */
    jpeg_set_quality(c, g->quality, TRUE);
    c->dct_method = JDCT_ISLOW;
    jpeg_start_compress(c, TRUE);
    while (c->next_scanline < c->image_height) {
        JSAMPROW row = row_at(g, c->next_scanline);
        jpeg_write_scanlines(c, &row, 1);
    }
    jpeg_finish_compress(c);
    return PEN_OK;
}

static int decode_body(PenTurbo *t)
{
    Degrade *g = (Degrade *)t;
    struct jpeg_decompress_struct *d = &t->d;
    jpeg_create_decompress(d);
    pen__turbo_limit_memory(t, d->mem);
    jpeg_mem_src(d, g->buf, g->bytes);
    jpeg_read_header(d, TRUE);
    d->dct_method = JDCT_ISLOW;
    d->do_fancy_upsampling = TRUE;
    jpeg_start_decompress(d);
    while (d->output_scanline < d->output_height) {
        JSAMPROW row = row_at(g, d->output_scanline);
        jpeg_read_scanlines(d, &row, 1);
    }
    jpeg_finish_decompress(d);
    return PEN_OK;
}

int pen__turbo_degrade(const PenPixels *image, int quality, const PenLimits *limits, void *scratch,
                       PenError *reterr)
{
    Degrade g;
    memset(&g, 0, sizeof g);
    pen__turbo_start(&g.t, limits, reterr);
    g.c.err = &g.t.errors;
    g.c.client_data = &g;
    g.image = image;
    g.quality = quality;
    g.buf = scratch;
    g.bytes = pen__turbo_degrade_bytes(image->width, image->height, image->channels);
    int r = pen__turbo_guard(&g.t, encode_body);
    jpeg_destroy_compress(&g.c);
    if (r < 0)
        return r;
    g.t.in_bytes = g.bytes;
    r = pen__turbo_guard(&g.t, decode_body);
    jpeg_destroy_decompress(&g.t.d);
    return r;
}
