/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels against libjpeg-turbo itself: files are made of chosen coefficients (also of those
 * that no encoder writes, for which the file is put together here) and decoded by both. */
#include "codec/jpeg/pixels/pixels.h"

#include <stdio.h>
#include <stdlib.h>

#include <jpeglib.h>

#include "base/attr.h"
#include "test.h"

static uint32_t seed = 1;

static uint32_t chance(uint32_t below)
{
    seed = seed * 1664525u + 1013904223u;
    return (uint32_t)((uint64_t)seed * below >> 32);
}

static void *must_alloc(size_t bytes)
{
    void *p = aligned_alloc(64, (bytes + 63) / 64 * 64);
    if (!p)
        abort();
    memset(p, 0, bytes);
    return p;
}

/* ---- an image of coefficients --------------------------------------------------------------- */

typedef struct Image {
    uint32_t width, height, components;
    int sampling;
    uint32_t mcus_x, mcus_y;
    uint32_t across[3], down[3]; /* blocks of a component in one MCU */
    uint16_t quant[3][64];
    int16_t *coefs[3]; /* block after block, row after row, in natural order */
} Image;

static uint32_t blocks_x(const Image *m, uint32_t c)
{
    return m->mcus_x * m->across[c];
}

static size_t n_blocks(const Image *m, uint32_t c)
{
    return (size_t)blocks_x(m, c) * m->mcus_y * m->down[c];
}

/* Kinds of content: samples that need little or no clipping (as photographs are), samples that
 * need it, and what overflows. */
enum { TAME, SPARSE, WILD, KINDS };

static void random_quant(uint16_t *quant, int kind)
{
    uint32_t most = kind == TAME ? 12 : kind == SPARSE ? 60 : chance(2) ? 65536 : 1000;
    bool one = chance(4) == 0, power = kind == WILD && chance(3) == 0;
    for (int i = 0; i < 64; i++)
        quant[i] = (uint16_t)(power ? 1u << chance(16) : one ? 1 : chance(most) + (kind != WILD));
}

/* Of up to `bits` bits, both signs; few are large. */
static int32_t random_value(uint32_t bits)
{
    int32_t v = (int32_t)chance(1u << chance(bits + 1));
    return chance(2) ? v : -v;
}

static int16_t random_ac(int kind)
{
    return (int16_t)random_value(kind == TAME ? 4 : kind == SPARSE ? 8 : 15);
}

static void random_block(int16_t *block, int kind, int32_t *dc)
{
    uint32_t shape = chance(6), n = chance(kind == TAME ? 12 : 63);
    int32_t most = kind == TAME ? 80 : kind == SPARSE ? 1024 : INT32_MAX;
    int32_t next = *dc + random_value(kind == TAME ? 6 : kind == SPARSE ? 8 : 15);
    if (next > -most && next < most)
        *dc = next;
    block[0] = (int16_t)*dc;
    for (uint32_t i = 0; shape > 0 && i < n; i++) {
        uint32_t k = 1 + chance(63);
        if (shape == 1 && k > 7) /* the first row */
            k = k % 7 + 1;
        if (shape == 2 && (k > 31 || k % 8 > 3)) /* the top left */
            k = k % 3 + 1 + 8 * (k / 16);
        if (shape == 3) /* the first column */
            k = k < 8 ? 8 : k / 8 * 8;
        block[k] = random_ac(kind);
    }
}

static void image_new(Image *m, int kind)
{
    for (uint32_t c = 0; c < m->components; c++) {
        bool shared = m->components == 3 && c == 0;
        m->across[c] = shared && (m->sampling & 1) ? 2 : 1;
        m->down[c] = shared && m->sampling >> 1 ? 2 : 1;
    }
    m->mcus_x = (m->width + 8 * m->across[0] - 1) / (8 * m->across[0]);
    m->mcus_y = (m->height + 8 * m->down[0] - 1) / (8 * m->down[0]);
    for (uint32_t c = 0; c < m->components; c++) {
        random_quant(m->quant[c], kind);
        m->coefs[c] = must_alloc(n_blocks(m, c) * 128);
    }
}

static void image_free(Image *m)
{
    for (uint32_t c = 0; c < m->components; c++)
        free(m->coefs[c]);
}

/* ---- the image as a file -------------------------------------------------------------------- */

typedef struct Writer {
    uint8_t *data;
    size_t n, cap;
    uint64_t bits;
    uint32_t n_bits;
    int32_t dc[3];
} Writer;

static void put(Writer *w, uint32_t byte)
{
    if (w->n == w->cap) {
        w->cap = w->cap * 2 + 65536;
        w->data = realloc(w->data, w->cap);
        if (!w->data)
            abort();
    }
    w->data[w->n++] = (uint8_t)byte;
}

static void put2(Writer *w, uint32_t v)
{
    put(w, v >> 8);
    put(w, v & 255);
}

static void put_bits(Writer *w, uint32_t v, uint32_t n)
{
    w->bits = w->bits << n | (v & ((1u << n) - 1));
    for (w->n_bits += n; w->n_bits >= 8; w->n_bits -= 8) {
        uint32_t byte = (w->bits >> (w->n_bits - 8)) & 255;
        put(w, byte);
        if (byte == 255)
            put(w, 0);
    }
}

enum { DC_BITS = 5, AC_BITS = 9 };

/* All codes are equally long and are the symbol itself; but a table has no room for 256 codes of
 * one length, so the last symbol has a bit more. */
static void put_huffman(Writer *w, uint32_t id, uint32_t length, uint32_t n)
{
    put2(w, 0xffc4);
    put2(w, 19 + n);
    put(w, id);
    for (uint32_t i = 1; i <= 16; i++)
        put(w, i == length ? PEN_MIN(n, 255) : i == length + 1 ? n / 256 : 0);
    for (uint32_t i = 0; i < n; i++)
        put(w, i);
}

static void put_symbol(Writer *w, uint32_t symbol, uint32_t length)
{
    bool longer = symbol == 255;
    put_bits(w, symbol << longer, length + longer);
}

static void put_value(Writer *w, int32_t v, uint32_t run, uint32_t code_bits)
{
    uint32_t size = 0, magnitude = (uint32_t)abs(v);
    while (magnitude >> size)
        size++;
    put_symbol(w, run << 4 | size, code_bits);
    put_bits(w, (uint32_t)(v < 0 ? v - 1 : v), size);
}

static void put_block(Writer *w, const int16_t *block, int32_t dc, int32_t *last_dc)
{
    uint32_t run = 0;
    put_value(w, dc - *last_dc, 0, DC_BITS);
    *last_dc = dc;
    for (int k = 1; k < 64; k++) {
        int32_t v = block[pen__jpeg_natural[k]];
        if (!v) {
            run++;
            continue;
        }
        for (; run > 15; run -= 16)
            put_symbol(w, 0xf0, AC_BITS);
        put_value(w, v, run, AC_BITS);
        run = 0;
    }
    if (run)
        put_symbol(w, 0, AC_BITS);
}

static void put_head(Writer *w, const Image *m)
{
    put2(w, 0xffd8);
    for (uint32_t c = 0; c < m->components; c++) {
        put2(w, 0xffdb);
        put2(w, 131);
        put(w, 0x10 | c);
        for (int k = 0; k < 64; k++)
            put2(w, m->quant[c][pen__jpeg_natural[k]]);
    }
    put2(w, 0xffc1);
    put2(w, 8 + 3 * m->components);
    put(w, 8);
    put2(w, m->height);
    put2(w, m->width);
    put(w, m->components);
    for (uint32_t c = 0; c < m->components; c++) {
        put(w, c + 1);
        put(w, m->across[c] << 4 | m->down[c]);
        put(w, c);
    }
    put_huffman(w, 0x00, DC_BITS, 16);
    put_huffman(w, 0x10, AC_BITS, 256);
    put2(w, 0xffda);
    put2(w, 6 + 2 * m->components);
    put(w, m->components);
    for (uint32_t c = 0; c < m->components; c++)
        put2(w, (c + 1) << 8);
    put(w, 0);
    put2(w, 63 << 8);
}

/* Makes up the blocks in the order of the file, as what is written of the first coefficient of a
 * block is its distance from that of the block before. */
static void put_mcus(Writer *w, Image *m, int kind)
{
    int32_t dc[3] = {0};
    for (uint32_t i = 0; i < m->mcus_x * m->mcus_y; i++)
        for (uint32_t c = 0; c < m->components; c++)
            for (uint32_t j = 0; j < m->across[c] * m->down[c]; j++) {
                size_t y = i / m->mcus_x * m->down[c] + j / m->across[c];
                size_t x = i % m->mcus_x * m->across[c] + j % m->across[c];
                int16_t *block = m->coefs[c] + (y * blocks_x(m, c) + x) * 64;
                random_block(block, kind, &dc[c]);
                put_block(w, block, dc[c], &w->dc[c]);
            }
    put_bits(w, 0x7f, 7);
    put2(w, 0xffd9);
}

/* ---- decoded by libjpeg-turbo --------------------------------------------------------------- */

static uint8_t *turbo_decode(const Writer *file, uint32_t width, uint32_t height)
{
    struct jpeg_decompress_struct d;
    struct jpeg_error_mgr errors;
    uint8_t *rgb = must_alloc((size_t)width * height * 3);
    d.err = jpeg_std_error(&errors);
    jpeg_create_decompress(&d);
    jpeg_mem_src(&d, file->data, (unsigned long)file->n);
    jpeg_read_header(&d, TRUE);
    d.out_color_space = JCS_RGB;
    jpeg_start_decompress(&d);
    while (d.output_scanline < height) {
        JSAMPROW row = rgb + (size_t)d.output_scanline * width * 3;
        jpeg_read_scanlines(&d, &row, 1);
    }
    jpeg_finish_decompress(&d);
    jpeg_destroy_decompress(&d);
    if (errors.num_warnings)
        abort();
    return rgb;
}

/* ---- decoded by the kernels ----------------------------------------------------------------- */

typedef struct Plane {
    uint8_t *memory, *samples;
    size_t stride;
} Plane;

static void to_zigzag(int16_t *coefs, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        int16_t natural[64];
        memcpy(natural, coefs + 64 * i, sizeof natural);
        for (int k = 0; k < 64; k++)
            coefs[64 * i + (size_t)k] = natural[pen__jpeg_natural[k]];
    }
}

static void plane_decode(const PenJpegPixels *p, const Image *m, uint32_t c, Plane *ret)
{
    size_t n = n_blocks(m, c), bytes = n * 128;
    int16_t *coefs = must_alloc(bytes);
    uint8_t *classes = must_alloc(n);
    PenJpegBlock *lists[PEN_JPEG_CLASSES];
    uint32_t counts[PEN_JPEG_CLASSES] = {0}, order = chance(PEN_JPEG_ORDERS);
    ret->stride = (size_t)blocks_x(m, c) * 8;
    ret->memory = must_alloc(n * 64 + 2 * PEN_JPEG_SLACK);
    ret->samples = ret->memory + PEN_JPEG_SLACK;
    memcpy(coefs, m->coefs[c], bytes);
    if (order == PEN_JPEG_ZIGZAG)
        to_zigzag(coefs, n);
    p->classify[order](coefs, (uint32_t)n, classes);
    for (int i = 0; i < PEN_JPEG_CLASSES; i++)
        lists[i] = must_alloc(n * sizeof *lists[i]);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t x = i % blocks_x(m, c), y = i / blocks_x(m, c);
        PenJpegBlock block = {i, (uint32_t)(y * 8 * ret->stride + x * 8)};
        lists[classes[i]][counts[classes[i]]++] = block;
    }
    for (int i = 0; i < PEN_JPEG_CLASSES; i++) {
        p->idct[order][i](coefs, lists[i], counts[i], m->quant[c], ret->samples, ret->stride);
        free(lists[i]);
    }
    free(classes);
    free(coefs);
}

static const uint8_t *chroma_row(const Plane *p, uint32_t row, uint32_t column)
{
    return p->samples + row * p->stride + column;
}

/* The row of an image for pixels [x, x + n) of row y. */
static PenJpegRow row_of(const Image *m, const Plane *planes, uint32_t y, uint32_t x, uint32_t n)
{
    uint32_t h = m->across[0], v = m->down[0];
    uint32_t columns = (m->width + h - 1) / h, rows = (m->height + v - 1) / v;
    uint32_t near = y / v, far = near;
    if (v == 2 && y % 2 && near + 1 < rows)
        far = near + 1;
    if (v == 2 && y % 2 == 0 && near > 0)
        far = near - 1;
    return (PenJpegRow){
        .y = chroma_row(&planes[0], y, x),
        .cb = chroma_row(&planes[1], near, x / h),
        .cr = chroma_row(&planes[2], near, x / h),
        .cb_far = chroma_row(&planes[1], far, x / h),
        .cr_far = chroma_row(&planes[2], far, x / h),
        .n = n,
        .odd_y = y % 2,
        .odd_x = h == 2 && x % 2,
        .first = x / h == 0,
        .last = (x + n - 1) / h == columns - 1,
        .plain = columns <= 2,
    };
}

static void get_row(const PenJpegPixels *p, const Image *m, const Plane *planes, uint32_t y,
                    uint32_t x, uint32_t n, uint8_t *rgb)
{
    if (m->components == 1) {
        p->grey_rgb(chroma_row(&planes[0], y, x), n, rgb);
        return;
    }
    PenJpegRow row = row_of(m, planes, y, x, n);
    p->rgb[m->sampling](&row, rgb);
}

/* Each row whole, and a part of it. */
static void compare(const PenJpegPixels *p, const Image *m, const uint8_t *expected)
{
    Plane planes[3] = {{0}};
    size_t row_bytes = (size_t)m->width * 3;
    uint8_t *rgb = must_alloc(row_bytes);
    size_t differences = 0;
    for (uint32_t c = 0; c < m->components; c++)
        plane_decode(p, m, c, &planes[c]);
    for (uint32_t y = 0; y < m->height; y++) {
        const uint8_t *row = expected + y * row_bytes;
        uint32_t x = chance(m->width), n = 1 + chance(m->width - x);
        get_row(p, m, planes, y, 0, m->width, rgb);
        differences += memcmp(rgb, row, row_bytes) != 0;
        get_row(p, m, planes, y, x, n, rgb);
        differences += memcmp(rgb, row + 3 * (size_t)x, 3 * (size_t)n) != 0;
    }
    for (uint32_t c = 0; c < m->components; c++)
        free(planes[c].memory);
    free(rgb);
    if (differences)
        printf("%s, sampling %d, %u x %u of %u:\n", p->tier, m->sampling, m->width, m->height,
               m->components);
    CHECK_INT(differences, 0);
}

static size_t check_image(uint32_t width, uint32_t height, int sampling, int kind)
{
    static const char *const tiers[] = {"c", "avx2", "avx512", "neon"};
    Image m = {.width = width, .height = height, .components = 3, .sampling = sampling};
    Writer w = {0};
    if (sampling == PEN_JPEG_SAMPLINGS)
        m.components = 1, m.sampling = 0;
    image_new(&m, kind);
    put_head(&w, &m);
    put_mcus(&w, &m, kind);
    uint8_t *expected = turbo_decode(&w, width, height);
    for (size_t i = 0; i < PEN_LEN(tiers); i++)
        if (pen__jpeg_pixels_tier(tiers[i]))
            compare(pen__jpeg_pixels_tier(tiers[i]), &m, expected);
    size_t blocks = 0;
    for (uint32_t c = 0; c < m.components; c++)
        blocks += n_blocks(&m, c);
    free(expected);
    free(w.data);
    image_free(&m);
    return blocks;
}

/* ---- at a smaller size ----------------------------------------------------------------------- */

static uint8_t *turbo_shrink(const Writer *file, unsigned denominator, size_t *ret_bytes)
{
    struct jpeg_decompress_struct d;
    struct jpeg_error_mgr errors;
    d.err = jpeg_std_error(&errors);
    jpeg_create_decompress(&d);
    jpeg_mem_src(&d, file->data, (unsigned long)file->n);
    jpeg_read_header(&d, TRUE);
    d.scale_num = 1;
    d.scale_denom = denominator;
    jpeg_start_decompress(&d);
    *ret_bytes = (size_t)d.output_width * d.output_height;
    uint8_t *grey = must_alloc(*ret_bytes);
    while (d.output_scanline < d.output_height) {
        JSAMPROW row = grey + (size_t)d.output_scanline * d.output_width;
        jpeg_read_scanlines(&d, &row, 1);
    }
    jpeg_finish_decompress(&d);
    jpeg_destroy_decompress(&d);
    return grey;
}

/* An image of one component whose sides are multiples of 8: all samples of all blocks. */
static void compare_reduced(const PenJpegPixels *p, const Image *m, int kernel,
                            const uint8_t *expected, size_t bytes)
{
    const uint32_t side = 4u >> kernel, n = (uint32_t)n_blocks(m, 0),
                   order = chance(PEN_JPEG_ORDERS);
    const size_t stride = (size_t)m->mcus_x * side;
    int16_t *coefs = must_alloc((size_t)n * 128), any = 0;
    uint8_t *found = must_alloc(bytes);
    PenJpegBlock *list = must_alloc(n * sizeof *list);
    memcpy(coefs, m->coefs[0], (size_t)n * 128);
    if (order == PEN_JPEG_ZIGZAG)
        to_zigzag(coefs, n);
    for (uint32_t i = 0; i < n; i++)
        list[i] = (PenJpegBlock){
            i, (uint32_t)(i / m->mcus_x * side * stride + (size_t)(i % m->mcus_x) * side)};
    p->reduced[order][kernel](coefs, list, n, m->quant[0], found, stride);
    for (size_t i = 0; i < (size_t)n * 64; i++)
        any |= coefs[i];
    CHECK_INT(any, 0);
    CHECK_MEM(found, expected, bytes);
    free(list);
    free(found);
    free(coefs);
}

static void check_reduced(int kind, int kernel)
{
    static const char *const tiers[] = {"c", "avx2", "avx512", "neon"};
    Image m = {.width = 8 * (1 + chance(40)), .height = 8 * (1 + chance(20)), .components = 1};
    Writer w = {0};
    size_t bytes;
    image_new(&m, kind);
    put_head(&w, &m);
    put_mcus(&w, &m, kind);
    uint8_t *expected = turbo_shrink(&w, 2u << kernel, &bytes);
    for (size_t i = 0; i < PEN_LEN(tiers); i++)
        if (pen__jpeg_pixels_tier(tiers[i]))
            compare_reduced(pen__jpeg_pixels_tier(tiers[i]), &m, kernel, expected, bytes);
    free(expected);
    free(w.data);
    image_free(&m);
}

/* ---- tests ---------------------------------------------------------------------------------- */

/* A million blocks in all. */
static void check_kind(int kind)
{
    const size_t most = TEST_SANITIZED ? 60000 : 340000;
    size_t blocks = 0;
    for (int i = 0; blocks < most; i++) {
        uint32_t width = 200 + chance(1000), height = 200 + chance(300);
        blocks += check_image(width, height, i % 5, kind);
        CHECK_OK_SO_FAR();
    }
}

TEST(as_photographs)
{
    check_kind(TAME);
}

TEST(sparse)
{
    check_kind(SPARSE);
}

TEST(out_of_bounds)
{
    check_kind(WILD);
}

TEST(small_sizes)
{
    for (uint32_t side = 1; side < 41; side++)
        for (int sampling = 0; sampling <= PEN_JPEG_SAMPLINGS; sampling++) {
            uint32_t other = 1 + chance(40);
            check_image(side, other, sampling, (int)chance(KINDS));
            check_image(other, side, sampling, (int)chance(KINDS));
            CHECK_OK_SO_FAR();
        }
}

/* What overflows is defined by libjpeg's kernels for x86-64. */
TEST(reduced)
{
#ifdef __x86_64__
    enum { MOST = KINDS };
#else
    enum { MOST = WILD };
#endif
    for (int kind = 0; kind < MOST; kind++)
        for (int i = 0; i < (TEST_SANITIZED ? 12 : 60); i++) {
            check_reduced(kind, i % PEN_JPEG_REDUCED);
            CHECK_OK_SO_FAR();
        }
}

int main(int argc, char **argv)
{
    TEST_START(argc, argv);
    RUN(small_sizes);
    RUN(as_photographs);
    RUN(sparse);
    RUN(out_of_bounds);
    RUN(reduced);
    return TEST_END();
}
