/* SPDX-License-Identifier: Apache-2.0 */
/* Files that no encoder writes: odd but valid codings, coefficients at the limits of baseline, and
 * damage of every kind that libjpeg would only warn of. */
#include <stdio.h>
#include <stdlib.h>

#include <jpeglib.h>

#include "base/attr.h"
#include "codec/jpeg/transcode/baseline.h"
#include "codec/jpeg/transcode/tokens.h"
#include "codec_images.h"
#include "test.h"

static const PenLimits *const limits = &pen__limits_default;

/* ---- hand-made scans of one grey block ---- */

/* DC: size 0 is "0". AC: EOB "00", ZRL "01", run 0 size 1 "100", run 15 size 1 "101". */
static const uint8_t tables[] = {0xFF, 0xC4, 0,    20, 0x00, 1, 0, 0,    0,    0,    0,    0,
                                 0,    0,    0,    0,  0,    0, 0, 0,    0,    0,    0xFF, 0xC4,
                                 0,    23,   0x10, 0,  2,    2, 0, 0,    0,    0,    0,    0,
                                 0,    0,    0,    0,  0,    0, 0, 0x00, 0xF0, 0x01, 0xF1};

/* `code` is a string of 0 and 1; padded with ones. */
static void make_block_jpeg(const char *code, PenBuf *out)
{
    static const uint8_t head[] = {0xFF, 0xD8, 0xFF, 0xDB, 0, 67, 0};
    static const uint8_t frame[] = {0xFF, 0xC0, 0, 11, 8, 0, 8, 0, 8, 1, 1, 0x11, 0};
    static const uint8_t scan[] = {0xFF, 0xDA, 0, 8, 1, 1, 0, 0, 63, 0};
    uint8_t byte = 0;
    size_t n = 0;
    out->bytes = 0;
    pen__buf_add(out, head, sizeof head);
    for (int i = 0; i < 64; i++)
        pen__buf_add(out, "\x03", 1);
    pen__buf_add(out, frame, sizeof frame);
    pen__buf_add(out, tables, sizeof tables);
    pen__buf_add(out, scan, sizeof scan);
    for (; *code || n % 8; n++) {
        byte = (uint8_t)(byte << 1 | (*code ? *code++ == '1' : 1));
        if (n % 8 == 7)
            pen__buf_add(out, &byte, 1);
        if (n % 8 == 7 && byte == 0xFF)
            pen__buf_add(out, "", 1);
    }
    pen__buf_add(out, "\xFF\xD9", 2);
}

static void repeat(char out[512], const char *first, const char *what, int n, const char *last)
{
    int at = snprintf(out, 512, "%s", first);
    for (int i = 0; i < n; i++)
        at += snprintf(out + at, 512 - (size_t)at, "%s", what);
    snprintf(out + at, 512 - (size_t)at, "%s", last);
}

static void check_as_libjpeg(const PenBuf *b)
{
    PenBuf t = {0};
    PenBuf ref = {0};
    PenError err = {0};
    const char *why = "";
    CHECK_INT(pen__jpeg_baseline(b->data, b->bytes, limits, &t, &why, &err), PEN_OK);
    reference_transcode(b->data, b->bytes, 0, &ref);
    CHECK_INT(t.bytes, ref.bytes);
    CHECK_MEM(t.data, ref.data, ref.bytes);
    pen__buf_free(&t);
    pen__buf_free(&ref);
}

TEST(odd_codings_are_read_as_libjpeg_reads_them)
{
    char code[512];
    PenBuf b = {0};
    const char *const simple[] = {
        "0"
        "00", /* nothing at all */
        "0"
        "1001"
        "00", /* one coefficient */
        "0"
        "01"
        "00", /* a run that ends in nothing */
        "0"
        "01"
        "01"
        "01"
        "00", /* three of them */
        "0"
        "1000"
        "01"
        "01"
        "00", /* behind a coefficient */
        "0"
        "01"
        "01"
        "01"
        "1001"
        "00", /* a run with a coefficient behind it */
        "0"
        "01"
        "01"
        "01"
        "01", /* a run over the end of the block */
        "0"
        "1011"
        "1011"
        "1011"
        "1011", /* a coefficient beyond the last */
        "0"
        "1011"
        "1011"
        "1011"
        "01",
    };
    for (size_t i = 0; i < PEN_LEN(simple); i++) {
        make_block_jpeg(simple[i], &b);
        check_as_libjpeg(&b);
        CHECK_OK_SO_FAR();
    }
    repeat(code, "0", "1001", 63, ""); /* full: no end of block */
    make_block_jpeg(code, &b);
    check_as_libjpeg(&b);
    CHECK_OK_SO_FAR();
    repeat(code, "0", "1001", 62, "00"); /* all but the last */
    make_block_jpeg(code, &b);
    check_as_libjpeg(&b);
    CHECK_OK_SO_FAR();
    repeat(code, "0", "1001", 47, "01"); /* a run up to the end of the block */
    make_block_jpeg(code, &b);
    check_as_libjpeg(&b);
    pen__buf_free(&b);
}

TEST(a_table_with_a_code_of_all_ones_is_refused)
{
    PenBuf b = {0};
    PenBuf t = {0};
    PenError err;
    const char *why;
    make_block_jpeg("000", &b);
    size_t dht = find_marker_offset(b.data, b.bytes, 0xC4, 1);
    CHECK_INT(pen__jpeg_baseline(b.data, b.bytes, limits, &t, &why, &err), PEN_OK);
    b.data[dht + 5] = b.data[dht + 6] = 1; /* 0, 10, 110 and 111 */
    CHECK_INT(pen__jpeg_baseline(b.data, b.bytes, limits, &t, &why, &err), PEN_E_DECODE);
    CHECK(strstr(err.message, "Huffman"));
    pen__buf_free(&t);
    pen__buf_free(&b);
}

/* ---- coefficients at the limits ---- */

static int tokens_of_one_block(int16_t dc, int16_t ac)
{
    PenBlock block = {dc, ac}, *row = &block, **rows = &row;
    PenBuf buf = {0};
    PenJpegFrame frame = {.width = 8,
                          .height = 8,
                          .n_planes = 1,
                          .planes = {{.blocks_x = 1, .blocks_y = 1, .rows = rows}}};
    PenBaselinePlan plan = {.frame = &frame, .h_samp = 1, .v_samp = 1, .geometry = {8, 8, 1, 1, 1}};
    PenTokens *t = calloc(1, sizeof *t);
    if (!t)
        abort();
    t->buf = &buf;
    int r = pen__tokens_of_blocks(t, &plan, NULL);
    free(t);
    pen__buf_free(&buf);
    return r;
}

TEST(baseline_holds_coefficients_up_to_its_limits)
{
    CHECK_INT(tokens_of_one_block(2047, 1023), PEN_OK);
    CHECK_INT(tokens_of_one_block(-2047, -1023), PEN_OK);
    CHECK_INT(tokens_of_one_block(2048, 0), PEN_END);
    CHECK_INT(tokens_of_one_block(-2048, 0), PEN_END);
    CHECK_INT(tokens_of_one_block(0, 1024), PEN_END);
    CHECK_INT(tokens_of_one_block(0, -1024), PEN_END);
    CHECK_INT(tokens_of_one_block(INT16_MIN, INT16_MIN), PEN_END);
}

/* Grey, one row of blocks whose DC grows by `step`: each difference fits, the sum may not. */
static void make_ramp(int step, PenBuf *out)
{
    enum { BLOCKS = 12 };
    struct jpeg_compress_struct c;
    struct jpeg_error_mgr errors;
    unsigned char *buf = NULL;
    unsigned long bytes = 0;
    c.err = jpeg_std_error(&errors);
    jpeg_create_compress(&c);
    jpeg_mem_dest(&c, &buf, &bytes);
    c.image_width = BLOCKS * 8;
    c.image_height = 8;
    c.input_components = 1;
    c.in_color_space = JCS_GRAYSCALE;
    jpeg_set_defaults(&c);
    c.optimize_coding = TRUE;
    jvirt_barray_ptr array =
        c.mem->request_virt_barray((j_common_ptr)&c, JPOOL_IMAGE, TRUE, BLOCKS, 1, 1);
    jpeg_write_coefficients(&c, &array);
    JBLOCKARRAY rows = c.mem->access_virt_barray((j_common_ptr)&c, array, 0, 1, TRUE);
    for (int i = 0; i < BLOCKS; i++)
        rows[0][i][0] = (JCOEF)(i * step);
    jpeg_finish_compress(&c);
    jpeg_destroy_compress(&c);
    out->bytes = 0;
    pen__buf_add(out, buf, bytes);
    free(buf);
}

TEST(dc_may_grow_beyond_what_one_difference_holds)
{
    PenBuf b = {0};
    for (int step = -300; step <= 300; step += 100) {
        make_ramp(step, &b);
        check_as_libjpeg(&b);
        CHECK_OK_SO_FAR();
    }
    pen__buf_free(&b);
}

/* ---- structure ---- */

/* Copies `b` with `n` bytes at `at` replaced. */
static void splice(const PenBuf *b, size_t at, size_t n, const void *with, size_t with_bytes,
                   PenBuf *out)
{
    out->bytes = 0;
    pen__buf_add(out, b->data, at);
    pen__buf_add(out, with, with_bytes);
    pen__buf_add(out, b->data + at + n, b->bytes - at - n);
}

TEST(tables_that_change_between_scans_are_left)
{
    PenBuf b = {0}, changed = {0};
    PenBuf t = {0};
    uint8_t dqt[69] = {0xFF, 0xDB, 0, 67, 1};
    const char *why = "";
    memset(dqt + 5, 9, 64);
    make_jpeg(&(JpegSpec){.width = 97, .height = 61, .separate = true}, &b);
    splice(&b, find_marker_offset(b.data, b.bytes, 0xDA, 2), 0, dqt, sizeof dqt, &changed);
    CHECK_INT(pen__jpeg_baseline(changed.data, changed.bytes, limits, &t, &why, NULL), PEN_END);
    CHECK_STR(why, "quantization");
    /* The same before the second scan changes both planes that use it: that can be transcoded. */
    PenPixels p, q;
    splice(&b, find_marker_offset(b.data, b.bytes, 0xDA, 1), 0, dqt, sizeof dqt, &changed);
    CHECK_INT(pen__jpeg_baseline(changed.data, changed.bytes, limits, &t, &why, NULL), PEN_OK);
    CHECK_INT(reference_decode(changed.data, changed.bytes, &p), 0);
    CHECK_INT(reference_decode(t.data, t.bytes, &q), 0);
    CHECK_MEM(p.data, q.data, (size_t)97 * 61 * 3);
    pen__pixels_free(&p);
    pen__pixels_free(&q);
    pen__buf_free(&t);
    pen__buf_free(&b);
    pen__buf_free(&changed);
}

static void expect_damage(const PenBuf *b, const char *text)
{
    PenBuf t = {0};
    PenPixels p = {0};
    PenError err = {0};
    const char *why;
    CHECK_INT(pen__image_decode(b->data, b->bytes, limits, &p, &err), PEN_E_DECODE);
    CHECK(p.data == NULL && strstr(err.message, text));
    err = (PenError){0};
    CHECK_INT(pen__jpeg_baseline(b->data, b->bytes, limits, &t, &why, &err), PEN_E_DECODE);
    CHECK(strstr(err.message, text));
    pen__buf_free(&t);
}

TEST(data_that_end_before_a_marker_are_damage)
{
    PenBuf b = {0}, cut = {0};
    for (int progressive = 0; progressive < 2; progressive++) {
        /* Large, so that reading on without end would leave every buffer. */
        make_jpeg(&(JpegSpec){.width = 700, .height = 500, .progressive = progressive}, &b);
        size_t at = find_marker_offset(b.data, b.bytes, 0xDA, 0) + 200;
        size_t next = progressive ? find_marker_offset(b.data, b.bytes, 0xC4, 1) : b.bytes - 2;
        splice(&b, at, next - at, "", 0, &cut);
        CHECK_INT(pen__jpeg_check(cut.data, cut.bytes, limits, NULL), PEN_OK); /* not seen there */
        expect_damage(&cut, "damaged near byte");
        CHECK_OK_SO_FAR();
    }
    pen__buf_free(&b);
    pen__buf_free(&cut);
}

TEST(restart_markers_out_of_turn_are_damage)
{
    PenBuf b = {0};
    make_jpeg(&(JpegSpec){.width = 97, .height = 61, .restart_interval = 4}, &b);
    b.data[find_marker_offset(b.data, b.bytes, 0xD2, 0) + 1] = 0xD6;
    expect_damage(&b, "marker");
    pen__buf_free(&b);
}

/* Codes of all ones do not exist; only arithmetic and progressive decoders look at each. */
TEST(codes_that_do_not_exist_are_damage)
{
    PenBuf b = {0};
    make_jpeg(&(JpegSpec){.width = 97, .height = 61, .progressive = true}, &b);
    size_t at = find_marker_offset(b.data, b.bytes, 0xDA, 1) + 60;
    for (size_t i = 0; i < 20; i++)
        memcpy(b.data + at + 2 * i, "\xFF\x00", 2);
    expect_damage(&b, "bad Huffman code");
    pen__buf_free(&b);
}

TEST(scans_out_of_order_are_damage)
{
    PenBuf b = {0}, cut = {0};
    make_jpeg(&(JpegSpec){.width = 97, .height = 61, .progressive = true, .channels = 1}, &b);
    /* Grey has 6 scans; without the second, a later one refines what never came. Its tables go
     * with it, but each scan has its own. */
    size_t from = find_marker_offset(b.data, b.bytes, 0xC4, 1);
    size_t to = find_marker_offset(b.data, b.bytes, 0xC4, 2);
    CHECK(from && to > from);
    splice(&b, from, to - from, "", 0, &cut);
    expect_damage(&cut, "progression");
    pen__buf_free(&b);
    pen__buf_free(&cut);
}

TEST(an_end_that_is_missing_behind_the_last_row_is_found)
{
    PenBuf b = {0}, cut = {0};
    make_jpeg(&(JpegSpec){.width = 97, .height = 61}, &b);
    splice(&b, b.bytes - 2, 2, "\xFF\xFE\x00\x06note", 8, &cut);
    expect_damage(&cut, "truncated");
    CHECK_INT(pen__jpeg_check(cut.data, cut.bytes, limits, NULL), PEN_E_DECODE);
    pen__buf_free(&b);
    pen__buf_free(&cut);
}

int main(int argc, char **argv)
{
    TEST_START(argc, argv);
    RUN(odd_codings_are_read_as_libjpeg_reads_them);
    RUN(a_table_with_a_code_of_all_ones_is_refused);
    RUN(baseline_holds_coefficients_up_to_its_limits);
    RUN(dc_may_grow_beyond_what_one_difference_holds);
    RUN(tables_that_change_between_scans_are_left);
    RUN(data_that_end_before_a_marker_are_damage);
    RUN(restart_markers_out_of_turn_are_damage);
    RUN(codes_that_do_not_exist_are_damage);
    RUN(scans_out_of_order_are_damage);
    RUN(an_end_that_is_missing_behind_the_last_row_is_found);
    return TEST_END();
}
