/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/big_images.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>

#include "codec/codec.h"
#include "lib/sweep.h"

static void begin_jpeg(struct jpeg_compress_struct *c, const BigSpec *s)
{
    c->image_width = s->width;
    c->image_height = s->height;
    c->input_components = s->channels;
    c->in_color_space = s->channels == 1 ? JCS_GRAYSCALE : s->channels == 3 ? JCS_RGB : JCS_CMYK;
    jpeg_set_defaults(c);
    jpeg_set_quality(c, 70, TRUE);
    for (int i = 0; i < c->num_components; i++)
        c->comp_info[i].h_samp_factor = c->comp_info[i].v_samp_factor =
            s->subsample && i == 0 ? 2 : 1;
    c->arith_code = s->arithmetic;
    c->restart_interval = s->restart_interval;
    if (s->progressive)
        jpeg_simple_progression(c);
}

void big_jpeg(const BigSpec *s, PenBuf *out)
{
    struct jpeg_compress_struct c;
    struct jpeg_error_mgr errors; /* exits with a message, which is right for a test */
    unsigned char *buf = NULL;
    unsigned long bytes = 0;
    size_t stride = (size_t)s->width * (size_t)s->channels;
    JSAMPROW row = malloc(stride);
    MUST(row);
    c.err = jpeg_std_error(&errors);
    jpeg_create_compress(&c);
    jpeg_mem_dest(&c, &buf, &bytes);
    begin_jpeg(&c, s);
    jpeg_start_compress(&c, TRUE);
    while (c.next_scanline < c.image_height) {
        for (size_t i = 0; i < stride; i++)
            row[i] = (uint8_t)((i >> 3) + (c.next_scanline >> 2) * 3 + (i * 7 % 13));
        jpeg_write_scanlines(&c, &row, 1);
    }
    jpeg_finish_compress(&c);
    jpeg_destroy_compress(&c);
    out->bytes = 0;
    MUST(pen__buf_add(out, buf, bytes) == 0);
    free(buf);
    free(row);
}

void big_png(uint32_t width, uint32_t height, PenBuf *out)
{
    PenPixels pixels = {calloc((size_t)width * height, 3), width, height, 3};
    MUST(pixels.data);
    out->bytes = 0;
    MUST(pen__png_encode(&pixels, out, NULL) == 0);
    free(pixels.data);
}

/* ---- byte by byte ---------------------------------------------------------------------------- */

static void put(PenBuf *out, const void *data, size_t bytes)
{
    MUST(pen__buf_add(out, data, bytes) == 0);
}

static void put16(PenBuf *out, uint32_t v)
{
    uint8_t b[2] = {(uint8_t)(v >> 8), (uint8_t)v};
    put(out, b, 2);
}

static void put32(PenBuf *out, uint32_t v)
{
    put16(out, v >> 16);
    put16(out, v & 0xFFFF);
}

static void put_scan(PenBuf *out, uint32_t band, uint32_t bits)
{
    uint8_t head[] = {0xFF, 0xDA, 0, 8, 1, 1, 0, (uint8_t)band, (uint8_t)band, (uint8_t)bits};
    put(out, head, sizeof head);
}

/* A code of one bit for one symbol. */
static void put_table(PenBuf *out, uint8_t slot, uint8_t symbol)
{
    uint8_t table[18] = {slot, 1};
    table[17] = symbol;
    put(out, table, sizeof table);
}

/* Runs of 32,767 empty blocks: the code '0' and 14 bits, 15 in all, all ones. */
static void put_runs(PenBuf *out, uint64_t blocks)
{
    uint32_t held = 0, n = 0;
    for (uint64_t i = 0; i < blocks / 32767 + 1; i++) {
        held = held << 15 | 0x3FFF;
        for (n += 15; n >= 8; n -= 8) {
            uint8_t byte = (uint8_t)(held >> (n - 8));
            put(out, &byte, 1);
            if (byte == 0xFF)
                put(out, "", 1);
        }
    }
    uint8_t last = (uint8_t)(held << (8 - n) | 0xFFu >> n);
    if (n)
        put(out, &last, 1);
    if (n && last == 0xFF)
        put(out, "", 1);
}

void many_scans(uint32_t width, uint32_t height, uint32_t scans, PenBuf *out)
{
    uint64_t blocks = (uint64_t)((width + 7) / 8) * ((height + 7) / 8);
    uint8_t quant[69] = {0xFF, 0xDB, 0, 67, 0};
    memset(quant + 5, 1, 64);
    out->bytes = 0;
    put(out, "\xFF\xD8", 2);
    put(out, quant, sizeof quant);
    put(out, "\xFF\xC2\0\13\10", 5);
    put16(out, height);
    put16(out, width);
    put(out, "\1\1\21\0", 4);
    put(out, "\xFF\xC4\0\46", 4);
    put_table(out, 0x00, 0x00);
    put_table(out, 0x10, 0xE0);
    put_scan(out, 0, 0);
    MUST(pen__buf_reserve(out, (size_t)blocks / 8 + 1) == 0);
    memset(out->data + out->bytes, 0, (size_t)blocks / 8 + 1);
    out->bytes += (size_t)blocks / 8 + 1;
    for (uint32_t i = 1; i < scans; i++) {
        put_scan(out, (i - 1) % 63 + 1, i < 64 ? 0x01 : 0x10);
        put_runs(out, blocks);
    }
    put(out, "\xFF\xD9", 2);
}

static uint32_t png_crc(const uint8_t *data, size_t bytes)
{
    uint32_t crc = UINT32_MAX;
    for (size_t i = 0; i < bytes; i++) {
        crc ^= data[i];
        for (int k = 0; k < 8; k++)
            crc = crc >> 1 ^ (crc & 1 ? 0xEDB88320u : 0);
    }
    return ~crc;
}

static void put_chunk(PenBuf *out, const char *type, const void *data, uint32_t bytes)
{
    put32(out, bytes);
    size_t start = out->bytes;
    put(out, type, 4);
    put(out, data, bytes);
    put32(out, png_crc(out->data + start, bytes + 4u));
}

void empty_png(uint32_t width, uint32_t height, uint8_t depth, uint8_t colour, bool interlaced,
               PenBuf *out)
{
    PenBuf head = {0};
    uint8_t rest[] = {depth, colour, 0, 0, interlaced};
    put32(&head, width);
    put32(&head, height);
    put(&head, rest, sizeof rest);
    out->bytes = 0;
    put(out, "\x89PNG\r\n\x1a\n", 8);
    put_chunk(out, "IHDR", head.data, 13);
    /* An empty zlib stream. */
    put_chunk(out, "IDAT", "\x78\x9c\x03\x00\x00\x00\x00\x01", 8);
    put_chunk(out, "IEND", "", 0);
    pen__buf_free(&head);
}

size_t jpeg_marker(const PenBuf *jpeg, uint8_t code)
{
    size_t at = 2;
    while (at + 4 < jpeg->bytes && !(jpeg->data[at] == 0xFF && jpeg->data[at + 1] == code))
        at += 2u + (size_t)jpeg->data[at + 2] * 256 + jpeg->data[at + 3];
    MUST(at + 4 < jpeg->bytes);
    return at;
}

void resize_header(PenBuf *jpeg, uint32_t width, uint32_t height)
{
    size_t at = 0;
    while (at + 9 < jpeg->bytes &&
           !(jpeg->data[at] == 0xFF && jpeg->data[at + 1] >= 0xC0 && jpeg->data[at + 1] <= 0xCF &&
             jpeg->data[at + 1] != 0xC4 && jpeg->data[at + 1] != 0xCC))
        at++;
    uint8_t *p = jpeg->data + at + 5;
    p[0] = (uint8_t)(height >> 8);
    p[1] = (uint8_t)height;
    p[2] = (uint8_t)(width >> 8);
    p[3] = (uint8_t)width;
}
