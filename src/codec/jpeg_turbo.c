/* SPDX-License-Identifier: Apache-2.0 */
#include "codec/jpeg_turbo.h"

#include <setjmp.h>
#include <stdio.h>
#include <string.h>

#include <jpeglib.h>
/* behind jpeglib.h, which it needs */
#include <jerror.h>

#include "codec/codec_impl.h"

static const char where[] = "codec/jpeg";

/* One use of libjpeg. Reached from its callbacks through client_data. */
typedef struct Session {
    struct jpeg_error_mgr errors;
    struct jpeg_progress_mgr progress;
    jmp_buf jump;
    int status;
    PenError *reterr;
    const PenLimits *limits;

    struct jpeg_decompress_struct d;
    size_t in_bytes;
    struct jpeg_compress_struct c;
    struct jpeg_destination_mgr out;
    PenBuf *buf;

    /* What the bodies below hand over; freed by whoever started the session. */
    PenPixels pixels;
    uint8_t *row;
    const PenPixels *source;
    int quality;
    uint32_t restart_interval;
    PenBlock **rows[4];
    const PenTurboUser *user;
} Session;

/* ---- errors ---- */

static int status_of(int code)
{
    switch (code) {
    case JERR_OUT_OF_MEMORY:
        return PEN_E_NO_MEMORY;
    case JERR_NO_BACKING_STORE: /* what it says when max_memory_to_use is not enough */
    case JERR_IMAGE_TOO_BIG:
    case JERR_WIDTH_OVERFLOW:
        return PEN_E_LIMIT;
    case JERR_ARITH_NOTIMPL:
    case JERR_BAD_PRECISION:
    case JERR_CCIR601_NOTIMPL:
    case JERR_COMPONENT_COUNT:
    case JERR_CONVERSION_NOTIMPL:
    case JERR_FRACT_SAMPLE_NOTIMPL:
    case JERR_NOT_COMPILED:
    case JERR_NOTIMPL:
    case JERR_SOF_UNSUPPORTED:
        return PEN_E_UNSUPPORTED;
    default:
        return PEN_E_DECODE;
    }
}

static _Noreturn void give_up(Session *s, int status)
{
    s->status = status;
    longjmp(s->jump, 1);
}

static _Noreturn void on_error(j_common_ptr cinfo)
{
    Session *s = cinfo->client_data;
    char text[JMSG_LENGTH_MAX];
    int code = cinfo->err->msg_code, status = status_of(code);
    cinfo->err->format_message(cinfo, text);
    if (code == JERR_NO_BACKING_STORE)
        pen__fail(s->reterr, status, where,
                  "jpeg: expected to need at most %llu bytes of memory, found more",
                  (unsigned long long)s->limits->max_memory_bytes);
    else if (cinfo->is_decompressor)
        pen__fail(s->reterr, status, where, "jpeg: near byte %zu: libjpeg: %s",
                  s->d.src ? s->in_bytes - s->d.src->bytes_in_buffer : 0, text);
    else
        pen__fail(s->reterr, status, where, "jpeg: encoder: %s", text);
    give_up(s, status);
}

/* Warnings behind which pixels or coefficients are lost or made up. */
static bool loses_data(int code)
{
    switch (code) {
    case JWRN_ARITH_BAD_CODE:
    case JWRN_BOGUS_PROGRESSION:
    case JWRN_HIT_MARKER:
    case JWRN_HUFF_BAD_CODE:
    case JWRN_JPEG_EOF:
    case JWRN_MUST_RESYNC:
    case JWRN_TOO_MUCH_DATA:
        return true;
    default: /* stray bytes, odd JFIF, Adobe or ICC markers, odd SOS parameters */
        return false;
    }
}

static void on_message(j_common_ptr cinfo, int level)
{
    Session *s = cinfo->client_data;
    int code = cinfo->err->msg_code;
    if (level >= 0 || !loses_data(code))
        return;
    char text[JMSG_LENGTH_MAX];
    if (code == JWRN_JPEG_EOF) {
        pen__fail(s->reterr, PEN_E_DECODE, where,
                  "jpeg: truncated: expected more data, found the end of the file at byte %zu",
                  s->in_bytes);
    } else {
        cinfo->err->format_message(cinfo, text);
        pen__fail(s->reterr, PEN_E_DECODE, where, "jpeg: damaged near byte %zu: %s",
                  s->in_bytes - s->d.src->bytes_in_buffer, text);
    }
    give_up(s, PEN_E_DECODE);
}

static void on_progress(j_common_ptr cinfo)
{
    Session *s = cinfo->client_data;
    if (!cinfo->is_decompressor || (uint32_t)s->d.input_scan_number <= s->limits->max_scans)
        return;
    pen__fail(s->reterr, PEN_E_LIMIT, where, "jpeg: expected at most %u scans, found more",
              s->limits->max_scans);
    give_up(s, PEN_E_LIMIT);
}

/* The only setjmp: everything that may jump runs inside `body`, and all it changes lives in *s,
 * which belongs to the caller, so that no variable is left undefined by the jump. */
static int guard(Session *s, int (*body)(Session *s))
{
    if (setjmp(s->jump))
        return s->status;
    return body(s);
}

static void start_session(Session *s, const PenLimits *limits, PenError *reterr)
{
    memset(s, 0, sizeof *s);
    s->limits = limits;
    s->reterr = reterr;
    jpeg_std_error(&s->errors);
    s->errors.error_exit = on_error;
    s->errors.emit_message = on_message;
    s->progress.progress_monitor = on_progress;
    s->d.err = s->c.err = &s->errors;
    s->d.client_data = s->c.client_data = s;
}

static void limit_memory(Session *s, struct jpeg_memory_mgr *mem)
{
    mem->max_memory_to_use = (long)PEN_MIN(s->limits->max_memory_bytes, (uint64_t)INT64_MAX);
}

/* Opens the source and reads its header; limits are checked here again on what libjpeg found. */
static int read_header(Session *s, const uint8_t *data)
{
    jpeg_create_decompress(&s->d);
    s->d.progress = &s->progress;
    limit_memory(s, s->d.mem);
    jpeg_mem_src(&s->d, data, s->in_bytes);
    jpeg_read_header(&s->d, TRUE);
    return pen__limits_check(s->limits, s->d.image_width, s->d.image_height, where, s->reterr);
}

/* ---- decoding ---- */

static int choose_output(Session *s)
{
    switch (s->d.jpeg_color_space) {
    case JCS_GRAYSCALE:
        s->d.out_color_space = JCS_GRAYSCALE;
        return 1;
    case JCS_RGB:
    case JCS_YCbCr:
        s->d.out_color_space = JCS_RGB;
        return 3;
    case JCS_CMYK:
    case JCS_YCCK:
        s->d.out_color_space = JCS_CMYK;
        return 3;
    default:
        return pen__fail(s->reterr, PEN_E_UNSUPPORTED, where,
                         "jpeg: expected grey, YCbCr, RGB, CMYK or YCCK, found %d components of "
                         "unknown colour",
                         s->d.num_components);
    }
}

static uint8_t multiply(uint8_t a, uint8_t b)
{
    unsigned t = (unsigned)a * b + 128;
    return (uint8_t)((t + (t >> 8)) >> 8);
}

/* CMYK is stored inverted, as Adobe does it and everyone after; the arithmetic is Pillow's. */
static void cmyk_to_rgb(const uint8_t *cmyk, uint8_t *rgb, size_t pixels)
{
    for (size_t i = 0; i < pixels; i++, cmyk += 4, rgb += 3)
        for (size_t j = 0; j < 3; j++)
            rgb[j] = (uint8_t)(cmyk[3] - multiply((uint8_t)(255 - cmyk[j]), cmyk[3]));
}

static void read_rows(Session *s)
{
    enum { ROWS = 16 };
    size_t stride = (size_t)s->pixels.width * s->pixels.channels;
    while (s->d.output_scanline < s->d.output_height) {
        JSAMPROW rows[ROWS];
        uint32_t y = s->d.output_scanline, n = PEN_MIN(s->d.output_height - y, (uint32_t)ROWS);
        for (uint32_t i = 0; i < n; i++)
            rows[i] = s->pixels.data + (y + i) * stride;
        if (s->row)
            rows[0] = s->row;
        jpeg_read_scanlines(&s->d, rows, s->row ? 1 : n);
        if (s->row)
            cmyk_to_rgb(s->row, s->pixels.data + y * stride, s->pixels.width);
    }
}

static int decode_body(Session *s)
{
    int channels = choose_output(s);
    if (channels < 0)
        return channels;
    int r = pen__pixels_alloc(s->limits, s->d.image_width, s->d.image_height, (uint32_t)channels,
                              where, &s->pixels, s->reterr);
    if (r < 0)
        return r;
    if (s->d.out_color_space == JCS_CMYK) {
        s->row = pen__alloc_array(s->d.image_width, 4);
        if (!s->row)
            return pen__fail_memory(s->reterr, where, "row of pixels");
    }
    s->d.dct_method = JDCT_ISLOW;
    s->d.do_fancy_upsampling = TRUE;
    jpeg_start_decompress(&s->d);
    read_rows(s);
    /* Reads on to EOI, so that a file cut behind its last row is found too. */
    jpeg_finish_decompress(&s->d);
    return PEN_OK;
}

typedef struct Input {
    Session s; /* first: a Session pointer to it is an Input pointer */
    const uint8_t *data;
    int (*body)(Session *s);
} Input;

static int input_body(Session *s)
{
    Input *in = (Input *)s;
    int r = read_header(s, in->data);
    return r < 0 ? r : in->body(s);
}

int pen__turbo_decode(const uint8_t *data, size_t bytes, const PenLimits *limits, PenPixels *ret,
                      PenError *reterr)
{
    Input in;
    start_session(&in.s, limits, reterr);
    in.s.in_bytes = bytes;
    in.data = data;
    in.body = decode_body;
    int r = guard(&in.s, input_body);
    jpeg_destroy_decompress(&in.s.d);
    pen__free(in.s.row);
    if (r < 0)
        pen__pixels_free(&in.s.pixels);
    else
        *ret = in.s.pixels;
    return r;
}

/* ---- coefficients ---- */

/* As libjpeg's block smoothing asks: is any coefficient's last bit still to come? */
static bool scans_missing(const struct jpeg_decompress_struct *d)
{
    for (int i = 0; i < d->num_components; i++) {
        if (!d->comp_info[i].quant_table)
            return true;
        for (int k = 0; d->progressive_mode && k < DCTSIZE2; k++)
            if (d->coef_bits[i][k] != 0)
                return true;
    }
    return false;
}

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

static PenHuffSpec huff_spec(JHUFF_TBL *const *tables, int i)
{
    const JHUFF_TBL *t = i >= 0 && i < NUM_HUFF_TBLS ? tables[i] : NULL;
    return t ? (PenHuffSpec){.n_codes = t->bits, .symbols = t->huffval} : (PenHuffSpec){0};
}

/* Gives the user the scan when it is the only one; PEN_END when it is not, or not wanted. */
static int offer_scan(Session *s, const PenJpegFrame *frame)
{
    const struct jpeg_decompress_struct *d = &s->d;
    if (!s->user->scan || d->progressive_mode || d->arith_code ||
        d->comps_in_scan != d->num_components)
        return PEN_END;
    PenJpegScan scan = {
        .restart_interval = d->restart_interval,
        .data_offset = s->in_bytes - d->src->bytes_in_buffer,
    };
    for (int i = 0; i < d->comps_in_scan; i++) {
        const jpeg_component_info *ci = d->cur_comp_info[i];
        if (ci != &d->comp_info[i])
            return PEN_END;
        scan.dc[i] = huff_spec(d->dc_huff_tbl_ptrs, ci->dc_tbl_no);
        scan.ac[i] = huff_spec(d->ac_huff_tbl_ptrs, ci->ac_tbl_no);
    }
    return s->user->scan(s->user->ctx, frame, &scan, s->reterr);
}

/* libjpeg clears rows that no scan has touched only when they are asked for, one by one. */
static int collect_rows(Session *s, int i, jvirt_barray_ptr array, uint32_t n)
{
    PenBlock **rows = s->rows[i] = pen__alloc_array(n, sizeof *rows);
    if (!rows)
        return pen__fail_memory(s->reterr, where, "block rows");
    for (uint32_t y = 0; y < n; y++)
        rows[y] = *s->d.mem->access_virt_barray((j_common_ptr)&s->d, array, y, 1, FALSE);
    return PEN_OK;
}

static int read_body(Session *s)
{
    struct jpeg_decompress_struct *d = &s->d;
    if (d->num_components > 4)
        return pen__fail(s->reterr, PEN_E_UNSUPPORTED, where,
                         "jpeg: expected at most 4 components, found %d", d->num_components);
    PenJpegFrame frame;
    describe_frame(d, &frame);
    int r = offer_scan(s, &frame);
    if (r != PEN_END)
        return r;
    jvirt_barray_ptr *arrays = jpeg_read_coefficients(d);
    describe_frame(d, &frame);
    frame.incomplete = scans_missing(d);
    for (int i = 0; i < d->num_components; i++) {
        r = collect_rows(s, i, arrays[i], frame.planes[i].blocks_y);
        if (r < 0)
            return r;
        frame.planes[i].rows = s->rows[i];
    }
    return s->user->blocks(s->user->ctx, &frame, s->reterr);
}

int pen__turbo_read(const uint8_t *data, size_t bytes, const PenLimits *limits,
                    const PenTurboUser *user, PenError *reterr)
{
    Input in;
    start_session(&in.s, limits, reterr);
    in.s.in_bytes = bytes;
    in.s.user = user;
    in.data = data;
    in.body = read_body;
    int r = guard(&in.s, input_body);
    jpeg_destroy_decompress(&in.s.d);
    for (size_t i = 0; i < PEN_LEN(in.s.rows); i++)
        pen__free(in.s.rows[i]);
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
        give_up(s, pen__fail_memory(s->reterr, where, "encoded image"));
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

static int encode_body(Session *s)
{
    struct jpeg_compress_struct *c = &s->c;
    jpeg_create_compress(c);
    limit_memory(s, c->mem);
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
    c->restart_interval = s->restart_interval;
    jpeg_start_compress(c, TRUE);
    write_rows(s);
    jpeg_finish_compress(c);
    return PEN_OK;
}

int pen__turbo_encode(const PenPixels *pixels, int quality, uint32_t restart_interval,
                      const PenLimits *limits, PenBuf *out, PenError *reterr)
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
    s.restart_interval = restart_interval;
    s.buf = out;
    r = guard(&s, encode_body);
    jpeg_destroy_compress(&s.c);
    if (r < 0)
        out->bytes = start;
    return r;
}
