/* SPDX-License-Identifier: Apache-2.0 */
#include "codec_images.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>

#include "base/bytes.h"

void make_pixels(uint32_t width, uint32_t height, uint32_t channels, uint32_t seed, PenPixels *ret)
{
    size_t n = (size_t)width * height * channels;
    uint8_t *data = pen__alloc(n + PEN_SLACK);
    if (!data)
        abort();
    uint32_t state = seed * 2654435761u + 1;
    for (size_t i = 0; i < n; i++) {
        uint32_t c = (uint32_t)(i % channels), x = (uint32_t)(i / channels % width);
        uint32_t y = (uint32_t)(i / channels / width);
        state = state * 1664525u + 1013904223u;
        uint32_t v = x * (3 + c) + y * 2 + (state >> 27) + 40 * c;
        if ((x / 13 + y / 9) % 3 == c % 3)
            v += 90;
        data[i] = (uint8_t)(v % 400 < 256 ? v % 400 : 255);
    }
    memset(data + n, 0, PEN_SLACK);
    *ret = (PenPixels){.data = data, .width = width, .height = height, .channels = channels};
}

size_t make_exif(int orientation, bool big_endian, uint8_t out[64])
{
    static const uint8_t little[] = {0xFF, 0xE1, 0, 34, 'E', 'x', 'i', 'f', 0,    0,    'I', 'I',
                                     42,   0,    8, 0,  0,   0,   1,   0,   0x12, 0x01, 3,   0,
                                     1,    0,    0, 0,  0,   0,   0,   0,   0,    0,    0,   0};
    static const uint8_t big[] = {0xFF, 0xE1, 0, 34, 'E', 'x', 'i', 'f', 0,    0,    'M', 'M',
                                  0,    42,   0, 0,  0,   8,   0,   1,   0x01, 0x12, 0,   3,
                                  0,    0,    0, 1,  0,   0,   0,   0,   0,    0,    0,   0};
    memcpy(out, big_endian ? big : little, sizeof big);
    out[big_endian ? 29 : 28] = (uint8_t)orientation;
    return sizeof big;
}

static void set_sampling(struct jpeg_compress_struct *c, const JpegSpec *spec)
{
    for (int i = 0; i < c->num_components; i++) {
        bool luma = i == 0 || i == 3;
        int h = luma ? spec->h : spec->chroma_h, v = luma ? spec->v : spec->chroma_v;
        c->comp_info[i].h_samp_factor = h ? h : 1;
        c->comp_info[i].v_samp_factor = v ? v : 1;
    }
}

static void set_colour(struct jpeg_compress_struct *c, const JpegSpec *spec)
{
    int n = c->input_components;
    c->in_color_space = n == 1 ? JCS_GRAYSCALE : n == 3 ? JCS_RGB : JCS_CMYK;
    jpeg_set_defaults(c);
    if (spec->rgb)
        jpeg_set_colorspace(c, JCS_RGB);
    if (spec->ycck)
        jpeg_set_colorspace(c, JCS_YCCK);
}

void make_jpeg(const JpegSpec *spec, PenBuf *out)
{
    static const jpeg_scan_info scans[3] = {
        {1, {0}, 0, 63, 0, 0}, {1, {1}, 0, 63, 0, 0}, {1, {2}, 0, 63, 0, 0}};
    struct jpeg_compress_struct c;
    struct jpeg_error_mgr errors; /* exits with a message, which is right for a test */
    unsigned char *buf = NULL;
    unsigned long bytes = 0;
    PenPixels p;
    uint32_t channels = spec->channels ? (uint32_t)spec->channels : 3;
    make_pixels(spec->width, spec->height, channels, 1, &p);
    c.err = jpeg_std_error(&errors);
    jpeg_create_compress(&c);
    jpeg_mem_dest(&c, &buf, &bytes);
    c.image_width = p.width;
    c.image_height = p.height;
    c.input_components = (int)channels;
    set_colour(&c, spec);
    set_sampling(&c, spec);
    jpeg_set_quality(&c, spec->quality ? spec->quality : 85, TRUE);
    c.optimize_coding = spec->optimal;
    c.arith_code = spec->arithmetic;
    c.restart_interval = spec->restart_interval;
    if (spec->progressive)
        jpeg_simple_progression(&c);
    if (spec->separate) {
        c.scan_info = scans;
        c.num_scans = c.num_components;
    }
    jpeg_start_compress(&c, TRUE);
    if (spec->orientation) {
        uint8_t exif[64];
        size_t n = make_exif(spec->orientation, true, exif);
        jpeg_write_marker(&c, JPEG_APP0 + 1, exif + 4, (unsigned)n - 4);
    }
    while (c.next_scanline < c.image_height) {
        JSAMPROW row = p.data + (size_t)c.next_scanline * p.width * channels;
        jpeg_write_scanlines(&c, &row, 1);
    }
    jpeg_finish_compress(&c);
    jpeg_destroy_compress(&c);
    pen__pixels_free(&p);
    out->bytes = 0;
    if (pen__buf_add(out, buf, bytes) < 0)
        abort();
    free(buf);
}

typedef struct Quiet {
    struct jpeg_error_mgr errors; /* first: libjpeg's pointer to it is one to this */
    jmp_buf jump;
} Quiet;

static void leave(j_common_ptr cinfo)
{
    longjmp(((Quiet *)cinfo->err)->jump, 1);
}

static void count(j_common_ptr cinfo, int level)
{
    if (level < 0)
        cinfo->err->num_warnings++;
}

int reference_decode(const uint8_t *data, size_t bytes, PenPixels *ret)
{
    return reference_shrink(data, bytes, 1, ret);
}

int reference_shrink(const uint8_t *data, size_t bytes, unsigned denominator, PenPixels *ret)
{
    struct jpeg_decompress_struct d;
    Quiet quiet;
    uint8_t *volatile pixels = NULL;
    memset(&d, 0, sizeof d);
    d.err = jpeg_std_error(&quiet.errors);
    quiet.errors.error_exit = leave;
    quiet.errors.emit_message = count;
    if (setjmp(quiet.jump)) {
        jpeg_destroy_decompress(&d);
        pen__free(pixels);
        return -1;
    }
    jpeg_create_decompress(&d);
    jpeg_mem_src(&d, data, bytes);
    jpeg_read_header(&d, TRUE);
    d.dct_method = JDCT_ISLOW;
    d.scale_num = 1;
    d.scale_denom = denominator;
    jpeg_start_decompress(&d);
    size_t stride = (size_t)d.output_width * (size_t)d.output_components;
    pixels = pen__alloc(stride * d.output_height);
    if (!pixels)
        abort();
    while (d.output_scanline < d.output_height) {
        JSAMPROW row = pixels + d.output_scanline * stride;
        jpeg_read_scanlines(&d, &row, 1);
    }
    jpeg_finish_decompress(&d);
    *ret = (PenPixels){.data = pixels,
                       .width = d.output_width,
                       .height = d.output_height,
                       .channels = (uint32_t)d.output_components};
    jpeg_destroy_decompress(&d);
    return (int)quiet.errors.num_warnings;
}

size_t find_marker_offset(const uint8_t *data, size_t bytes, uint8_t code, int n)
{
    for (size_t i = 2; i + 4 <= bytes;) {
        if (data[i] != 0xFF || data[i + 1] == 0 || data[i + 1] == 0xFF) {
            i++;
            continue;
        }
        if (data[i + 1] == code && n-- == 0)
            return i;
        bool alone = data[i + 1] >= 0xD0 && data[i + 1] <= 0xD9;
        i += alone ? 2 : 2 + pen__load16be(data + i + 2);
    }
    return 0;
}

bool read_whole_file(const char *path, PenBuf *out)
{
    FILE *f = fopen(path, "rb");
    if (!f)
        return false;
    out->bytes = 0;
    size_t n = 0;
    do {
        if (pen__buf_reserve(out, 65536) < 0)
            abort();
        n = fread(out->data + out->bytes, 1, 65536, f);
        out->bytes += n;
    } while (n > 0);
    bool ok = !ferror(f);
    fclose(f);
    return ok;
}
