/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/images.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>

#include "codec/codec.h"
#include "lib/sweep.h"

/* Slopes, edges and a little noise: enough for several runs of segments in a small picture. */
static uint8_t *make_pixels(const ImageSpec *s)
{
    size_t n = (size_t)s->width * s->height * s->channels;
    uint8_t *data = malloc(n);
    MUST(data);
    uint32_t state = s->seed * 2654435761u + 99;
    for (size_t i = 0; i < n; i++) {
        uint32_t c = (uint32_t)(i % s->channels);
        uint32_t x = (uint32_t)(i / s->channels % s->width);
        uint32_t y = (uint32_t)(i / s->channels / s->width);
        state = state * 1664525u + 1013904223u;
        uint32_t edge = (x + s->seed * 5) / 11 % 2 != y / 7 % 2 ? 70 : 0;
        data[i] = (uint8_t)(x * 2 + y + c * 30 + edge + (state >> 26));
    }
    return data;
}

static void write_meta(struct jpeg_compress_struct *c, uint32_t seed)
{
    uint8_t exif[40] = "Exif\0\0MM\0\52\0\0\0\10\0\1\1\22\0\3\0\0\0\1\0\6";
    char comment[48];
    exif[36] = (uint8_t)seed;
    int n = snprintf(comment, sizeof comment, "picture number %08x", seed * 2654435761u);
    jpeg_write_marker(c, JPEG_APP0 + 1, exif, sizeof exif);
    jpeg_write_marker(c, JPEG_COM, (const JOCTET *)comment, (unsigned)n);
}

void image_jpeg(const ImageSpec *s, PenBuf *out)
{
    struct jpeg_compress_struct c;
    struct jpeg_error_mgr errors; /* exits with a message, which is right for a test */
    unsigned char *buf = NULL;
    unsigned long bytes = 0;
    uint8_t *pixels = make_pixels(s);
    c.err = jpeg_std_error(&errors);
    jpeg_create_compress(&c);
    jpeg_mem_dest(&c, &buf, &bytes);
    c.image_width = s->width;
    c.image_height = s->height;
    c.input_components = (int)s->channels;
    c.in_color_space = s->channels == 1 ? JCS_GRAYSCALE : s->channels == 3 ? JCS_RGB : JCS_CMYK;
    jpeg_set_defaults(&c);
    jpeg_set_quality(&c, 85, TRUE);
    for (int i = 0; i < c.num_components; i++)
        c.comp_info[i].h_samp_factor = c.comp_info[i].v_samp_factor =
            s->subsample && i == 0 ? 2 : 1;
    if (s->progressive)
        jpeg_simple_progression(&c);
    jpeg_start_compress(&c, TRUE);
    if (s->meta)
        write_meta(&c, s->meta);
    while (c.next_scanline < c.image_height) {
        JSAMPROW row = pixels + (size_t)c.next_scanline * s->width * s->channels;
        jpeg_write_scanlines(&c, &row, 1);
    }
    jpeg_finish_compress(&c);
    jpeg_destroy_compress(&c);
    out->bytes = 0;
    MUST(pen__buf_add(out, buf, bytes) == 0);
    free(buf);
    free(pixels);
}

void image_png(const ImageSpec *s, PenBuf *out)
{
    uint8_t *data = make_pixels(s);
    PenPixels pixels = {data, s->width, s->height, s->channels};
    out->bytes = 0;
    MUST(pen__png_encode(&pixels, out, NULL) == 0);
    free(data);
}
