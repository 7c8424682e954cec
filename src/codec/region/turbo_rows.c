/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of a box through libjpeg-turbo's crop and skip calls. */
#include "codec/codec_impl.h"
#include "codec/region/region_impl.h"

static const char where[] = "codec/jpeg";

/* Columns that libjpeg is to give. */
typedef struct Columns {
    JDIMENSION x, w;
} Columns;

static int read_header(PenDecoder *d)
{
    PenTurbo *t = &d->turbo;
    const PenJpegInput *in = &d->input;
    if (!t->d.mem) {
        jpeg_create_decompress(&t->d);
        pen__turbo_own_coefs(t);
    }
    t->d.progress = &t->progress;
    pen__turbo_limit_memory(t, t->d.mem);
    pen__region_source(d);
    jpeg_read_header(&t->d, TRUE);
    if (t->d.image_width != in->width || t->d.image_height != in->height)
        return pen__fail(t->reterr, PEN_E_DECODE, where,
                         "jpeg: expected %u x %u pixels as in the index, found a file of %u x %u",
                         in->width, in->height + in->top, t->d.image_width,
                         t->d.image_height + in->top);
    return pen__limits_check(t->limits, t->d.image_width, t->d.image_height, where, t->reterr);
}

/* libjpeg upsamples chroma as if the columns it is asked for were all there are: it makes something
 * else of the outermost ones, and of all of them when there are only a few. So it is asked for
 * more, up to the next MCU on each side. */
static void choose_columns(const PenDecoder *d, Columns *ret)
{
    const PenBox *box = &d->region->box;
    uint32_t mcu = (DCTSIZE >> d->region->shrink) * (uint32_t)d->turbo.d.max_h_samp_factor;
    uint32_t width = d->turbo.d.output_width, first = box->x / mcu;
    uint32_t end = ((box->x + box->w) / mcu + 1) * mcu;
    ret->x = first ? (first - 1) * mcu : 0;
    ret->w = PEN_MIN(end, width) - ret->x;
}

/* Rows of libjpeg's, as many as are asked for, into the buffer; none are given out. */
static void read_rows(PenDecoder *d, size_t stride, uint32_t n)
{
    JSAMPROW rows[PEN_REGION_ROWS];
    for (uint32_t i = 0; i < n; i++)
        rows[i] = d->rows.data + i * stride;
    for (uint32_t got = 0; got < n;)
        got += jpeg_read_scanlines(&d->turbo.d, rows + got, n - got);
}

static void pass_over(PenDecoder *d, size_t stride, uint32_t n)
{
    for (uint32_t step; n; n -= step) {
        step = PEN_MIN(n, (uint32_t)PEN_REGION_ROWS);
        read_rows(d, stride, step);
    }
}

/* The box's part of each row becomes RGB at the row's beginning. */
static void convert_cmyk(PenDecoder *d, size_t stride, size_t offset, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        uint8_t *row = d->rows.data + i * stride;
        pen__cmyk_to_rgb(row + offset, row, d->region->box.w);
    }
}

static int give_rows(PenDecoder *d, const Columns *columns, size_t stride)
{
    const PenRegion *region = d->region;
    bool cmyk = d->turbo.d.out_color_space == JCS_CMYK;
    size_t offset = (region->box.x - columns->x) * (size_t)d->turbo.d.output_components;
    PenRowSpan span = {.stride = stride,
                       .channels = cmyk ? 3 : (uint32_t)d->turbo.d.output_components};
    int r = PEN_OK;
    for (uint32_t left = region->box.h; left && r >= 0; left -= span.n) {
        span.n = PEN_MIN(left, (uint32_t)PEN_REGION_ROWS);
        read_rows(d, stride, span.n);
        if (cmyk)
            convert_cmyk(d, stride, offset, span.n);
        span.data = d->rows.data + (cmyk ? 0 : offset);
        r = pen__rows_give(d, region, &span, d->turbo.reterr);
    }
    return r;
}

/* Are cropped rows those of the entire image? What libjpeg makes up for missing scans depends on
 * the blocks around, cropped ones too. And at a smaller size it mistakes the width of components
 * that are brought to the image's in an unusual way. */
static bool crops_exactly(const PenDecoder *d)
{
    const struct jpeg_decompress_struct *c = &d->turbo.d;
    bool usual = c->num_components == 1 || c->num_components == 3;
    for (int i = 0; i < c->num_components; i++) {
        const jpeg_component_info *p = &c->comp_info[i];
        usual &= p->h_samp_factor <= (i ? 1 : 2) && p->v_samp_factor <= (i ? 1 : 2);
    }
    return !pen__turbo_scans_missing(&d->turbo.d) && (usual || !d->region->shrink);
}

static int decode_body(PenTurbo *t)
{
    PenDecoder *d = (PenDecoder *)t;
    int r = read_header(d);
    if (r >= 0)
        r = pen__turbo_choose_output(t);
    if (r >= 0)
        r = pen__region_check_mask(d->region, (uint32_t)t->d.num_components, t->reterr);
    if (r < 0)
        return r;
    t->d.dct_method = JDCT_ISLOW;
    t->d.do_fancy_upsampling = TRUE;
    t->d.scale_num = 1;
    t->d.scale_denom = 1u << d->region->shrink;
    jpeg_start_decompress(&t->d);
    d->started = true;
    bool exact = crops_exactly(d);
    Columns columns = {.x = 0, .w = t->d.output_width};
    if (exact) {
        choose_columns(d, &columns);
        jpeg_crop_scanline(&t->d, &columns.x, &columns.w);
    }
    size_t stride = (size_t)columns.w * (size_t)t->d.output_components;
    r = pen__region_reserve(&d->rows, stride * PEN_REGION_ROWS, t->reterr);
    if (r < 0)
        return r;
    uint32_t above = d->region->box.y - (d->input.top >> d->region->shrink);
    if (exact)
        jpeg_skip_scanlines(&t->d, above);
    else
        pass_over(d, stride, above);
    return give_rows(d, &columns, stride);
}

/* The tables of one image must not be there for the next: a file without tables of its own would
 * give pixels that depend on what came before it. libjpeg frees them only with the decompressor, so
 * that is made anew now and then. */
static void end_image(PenDecoder *d, int r)
{
    enum { TABLES_OF = 16 };
    struct jpeg_decompress_struct *c = &d->turbo.d;
    if (r < 0 || ++d->images >= TABLES_OF) {
        jpeg_destroy_decompress(c);
        d->images = 0;
        return;
    }
    jpeg_abort_decompress(c);
    for (int i = 0; i < NUM_QUANT_TBLS; i++)
        c->quant_tbl_ptrs[i] = NULL;
    for (int i = 0; i < NUM_HUFF_TBLS; i++)
        c->dc_huff_tbl_ptrs[i] = c->ac_huff_tbl_ptrs[i] = NULL;
}

int pen__region_turbo(PenDecoder *d, const PenJpegInput *input, const PenRegion *region,
                      PenError *reterr)
{
    pen__turbo_start(&d->turbo, region->limits, reterr);
    d->input = *input;
    d->region = region;
    d->started = false;
    int r = pen__turbo_guard(&d->turbo, decode_body);
    end_image(d, r);
    return r;
}

int pen__region_jpeg(PenDecoder *d, const PenImageHeader *header, const PenRegion *region,
                     PenError *reterr)
{
    const PenEncoded *image = header->image;
    PenJpegInput input = {
        .data = image->data, .bytes = image->bytes, .width = image->width, .height = image->height};
    return pen__region_turbo(d, &input, region, reterr);
}
