/* SPDX-License-Identifier: Apache-2.0 */
#include "codec/jpeg/turbo/turbo.h"

#include <string.h>

#include "codec/codec_impl.h"
#include "codec/jpeg/turbo/session.h"

static const char where[] = "codec/jpeg";

typedef struct Session Session;

/* One use of libjpeg; what the bodies below hand over is freed by whoever started it. */
struct Session {
    PenTurbo t; /* first: a PenTurbo pointer to it is a Session pointer */
    const uint8_t *data;
    int (*body)(Session *s);
    struct jpeg_compress_struct c;
    struct jpeg_destination_mgr out;
    PenBuf *buf;

    PenPixels pixels;
    uint8_t *row;
    const PenPixels *source;
    int quality;
    PenBlock **rows[4];
    const PenTurboUser *user;
};

static void start_session(Session *s, const PenLimits *limits, PenError *reterr)
{
    memset(s, 0, sizeof *s);
    pen__turbo_start(&s->t, limits, reterr);
    s->c.err = &s->t.errors;
    s->c.client_data = s;
}

/* Opens the source and reads its header; limits are checked here again on what libjpeg found. */
static int read_header(Session *s)
{
    jpeg_create_decompress(&s->t.d);
    s->t.d.progress = &s->t.progress;
    pen__turbo_limit_memory(&s->t, s->t.d.mem);
    jpeg_mem_src(&s->t.d, s->data, s->t.in_bytes);
    jpeg_read_header(&s->t.d, TRUE);
    return pen__limits_check(s->t.limits, s->t.d.image_width, s->t.d.image_height, where,
                             s->t.reterr);
}

/* ---- decoding ---- */

static void read_rows(Session *s)
{
    enum { ROWS = 16 };
    size_t stride = (size_t)s->pixels.width * s->pixels.channels;
    while (s->t.d.output_scanline < s->t.d.output_height) {
        JSAMPROW rows[ROWS];
        uint32_t y = s->t.d.output_scanline, n = PEN_MIN(s->t.d.output_height - y, (uint32_t)ROWS);
        for (uint32_t i = 0; i < n; i++)
            rows[i] = s->pixels.data + (y + i) * stride;
        if (s->row)
            rows[0] = s->row;
        jpeg_read_scanlines(&s->t.d, rows, s->row ? 1 : n);
        if (s->row)
            pen__cmyk_to_rgb(s->row, s->pixels.data + y * stride, s->pixels.width);
    }
}

static int decode_body(Session *s)
{
    int channels = pen__turbo_choose_output(&s->t);
    if (channels < 0)
        return channels;
    int r = pen__pixels_alloc(s->t.limits, s->t.d.image_width, s->t.d.image_height,
                              (uint32_t)channels, where, &s->pixels, s->t.reterr);
    if (r < 0)
        return r;
    if (s->t.d.out_color_space == JCS_CMYK) {
        s->row = pen__alloc_array(s->t.d.image_width, 4);
        if (!s->row)
            return pen__fail_memory(s->t.reterr, where, "row of pixels");
    }
    s->t.d.dct_method = JDCT_ISLOW;
    s->t.d.do_fancy_upsampling = TRUE;
    jpeg_start_decompress(&s->t.d);
    read_rows(s);
    /* Reads on to EOI, so that a file cut behind its last row is found too. */
    jpeg_finish_decompress(&s->t.d);
    return PEN_OK;
}

static int input_body(PenTurbo *t)
{
    Session *s = (Session *)t;
    int r = read_header(s);
    return r < 0 ? r : s->body(s);
}

int pen__turbo_decode(const uint8_t *data, size_t bytes, const PenLimits *limits, PenPixels *ret,
                      PenError *reterr)
{
    Session s;
    start_session(&s, limits, reterr);
    s.t.in_bytes = bytes;
    s.data = data;
    s.body = decode_body;
    int r = pen__turbo_guard(&s.t, input_body);
    jpeg_destroy_decompress(&s.t.d);
    pen__free(s.row);
    if (r < 0)
        pen__pixels_free(&s.pixels);
    else
        *ret = s.pixels;
    return r;
}

/* ---- coefficients ---- */

static uint8_t colour_of(J_COLOR_SPACE space)
{
    switch (space) {
    case JCS_GRAYSCALE:
        return PEN_JPEG_GREY;
    case JCS_YCbCr:
        return PEN_JPEG_YCC;
    case JCS_CMYK:
    case JCS_YCCK:
        return PEN_JPEG_CMYK;
    default:
        return PEN_JPEG_RGB;
    }
}

static void describe_plane(const struct jpeg_decompress_struct *d, int i, PenJpegPlane *ret)
{
    const jpeg_component_info *ci = &d->comp_info[i];
    const JQUANT_TBL *quant = ci->quant_table;
    /* The table is bound to the component when its first scan starts. */
    if (!quant && ci->quant_tbl_no >= 0 && ci->quant_tbl_no < NUM_QUANT_TBLS)
        quant = d->quant_tbl_ptrs[ci->quant_tbl_no];
    *ret = (PenJpegPlane){
        .id = (uint8_t)ci->component_id,
        .h_samp = (uint8_t)ci->h_samp_factor,
        .v_samp = (uint8_t)ci->v_samp_factor,
        .quant_slot = (uint8_t)ci->quant_tbl_no,
        .blocks_x = ci->width_in_blocks,
        .blocks_y = ci->height_in_blocks,
        .quant = quant ? quant->quantval : NULL,
    };
}

static void describe_frame(const struct jpeg_decompress_struct *d, PenJpegFrame *ret)
{
    *ret = (PenJpegFrame){
        .width = d->image_width,
        .height = d->image_height,
        .n_planes = (uint8_t)d->num_components,
        .colour = colour_of(d->jpeg_color_space),
        .arithmetic = d->arith_code,
        .progressive = d->progressive_mode,
        .has_jfif = d->saw_JFIF_marker,
        .jfif_version = {d->JFIF_major_version, d->JFIF_minor_version},
        .density_unit = d->density_unit,
        .density = {d->X_density, d->Y_density},
    };
    for (int i = 0; i < d->num_components; i++)
        describe_plane(d, i, &ret->planes[i]);
}

/* libjpeg clears rows that no scan has touched only when they are asked for, one by one. */
static int collect_rows(Session *s, int i, jvirt_barray_ptr array, uint32_t n)
{
    PenBlock **rows = s->rows[i] = pen__alloc_array(n, sizeof *rows);
    if (!rows)
        return pen__fail_memory(s->t.reterr, where, "block rows");
    for (uint32_t y = 0; y < n; y++)
        rows[y] = *s->t.d.mem->access_virt_barray((j_common_ptr)&s->t.d, array, y, 1, FALSE);
    return PEN_OK;
}

static int read_body(Session *s)
{
    struct jpeg_decompress_struct *d = &s->t.d;
    if (d->num_components > 4)
        return pen__fail(s->t.reterr, PEN_E_UNSUPPORTED, where,
                         "jpeg: expected at most 4 components, found %d", d->num_components);
    PenJpegFrame frame;
    jvirt_barray_ptr *arrays = jpeg_read_coefficients(d);
    describe_frame(d, &frame);
    frame.incomplete = pen__turbo_scans_missing(d);
    for (int i = 0; i < d->num_components; i++) {
        int r = collect_rows(s, i, arrays[i], frame.planes[i].blocks_y);
        if (r < 0)
            return r;
        frame.planes[i].rows = s->rows[i];
    }
    return s->user->blocks(s->user->ctx, &frame, s->t.reterr);
}

int pen__turbo_read(const uint8_t *data, size_t bytes, const PenLimits *limits,
                    const PenTurboUser *user, PenError *reterr)
{
    Session s;
    start_session(&s, limits, reterr);
    s.t.in_bytes = bytes;
    s.user = user;
    s.data = data;
    s.body = read_body;
    int r = pen__turbo_guard(&s.t, input_body);
    jpeg_destroy_decompress(&s.t.d);
    for (size_t i = 0; i < PEN_LEN(s.rows); i++)
        pen__free(s.rows[i]);
    return r;
}

/* ---- encoding ---- */

static void point_out(Session *s)
{
    s->out.next_output_byte = s->buf->data + s->buf->bytes;
    s->out.free_in_buffer = s->buf->cap - s->buf->bytes;
}

static void grow_out(Session *s)
{
    if (pen__buf_reserve(s->buf, 4096) < 0)
        pen__turbo_leave(&s->t, pen__fail_memory(s->t.reterr, where, "encoded image"));
    point_out(s);
}

static void out_start(j_compress_ptr c)
{
    grow_out(c->client_data);
}

static boolean out_full(j_compress_ptr c)
{
    Session *s = c->client_data;
    /* Full means all of it is used, whatever the counters say. */
    s->buf->bytes = s->buf->cap;
    grow_out(s);
    return TRUE;
}

static void out_end(j_compress_ptr c)
{
    Session *s = c->client_data;
    s->buf->bytes = s->buf->cap - s->out.free_in_buffer;
}

static void write_rows(Session *s)
{
    size_t stride = (size_t)s->source->width * s->source->channels;
    while (s->c.next_scanline < s->c.image_height) {
        /* The parameter is not const, but nothing is written through it. */
        JSAMPROW row = (JSAMPROW)(uintptr_t)(s->source->data + s->c.next_scanline * stride);
        jpeg_write_scanlines(&s->c, &row, 1);
    }
}

static int encode_body(PenTurbo *t)
{
    Session *s = (Session *)t;
    struct jpeg_compress_struct *c = &s->c;
    jpeg_create_compress(c);
    pen__turbo_limit_memory(&s->t, c->mem);
    s->out.init_destination = out_start;
    s->out.empty_output_buffer = out_full;
    s->out.term_destination = out_end;
    c->dest = &s->out;
    c->image_width = s->source->width;
    c->image_height = s->source->height;
    c->input_components = (int)s->source->channels;
    c->in_color_space = s->source->channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
    jpeg_set_defaults(c); /* 4:2:0 for colour */
    jpeg_set_quality(c, s->quality, TRUE);
    c->dct_method = JDCT_ISLOW;
    c->optimize_coding = TRUE;
    jpeg_start_compress(c, TRUE);
    write_rows(s);
    jpeg_finish_compress(c);
    return PEN_OK;
}

int pen__turbo_encode(const PenPixels *pixels, int quality, const PenLimits *limits, PenBuf *out,
                      PenError *reterr)
{
    if ((pixels->channels != 1 && pixels->channels != 3) || quality < 1 || quality > 100)
        return pen__fail(reterr, PEN_E_INVALID, where,
                         "encode: expected 1 or 3 channels and quality 1-100, found %u and %d",
                         pixels->channels, quality);
    int r = pen__limits_check(limits, pixels->width, pixels->height, where, reterr);
    if (r < 0)
        return r;
    Session s;
    size_t start = out->bytes;
    start_session(&s, limits, reterr);
    s.source = pixels;
    s.quality = quality;
    s.buf = out;
    r = pen__turbo_guard(&s.t, encode_body);
    jpeg_destroy_compress(&s.c);
    if (r < 0)
        out->bytes = start;
    return r;
}
