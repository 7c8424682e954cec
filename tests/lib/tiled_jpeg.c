/* SPDX-License-Identifier: Apache-2.0 */
#include "tiled_jpeg.h"

#include <stdio.h>
#include <stdlib.h>

#include <jpeglib.h>

#include "codec/jpeg/transcode/baseline.h"

void reference_transcode(const uint8_t *data, size_t bytes, uint32_t restart_interval, PenBuf *out)
{
    struct jpeg_decompress_struct d;
    struct jpeg_compress_struct c;
    struct jpeg_error_mgr errors;
    unsigned char *buf = NULL;
    unsigned long buf_bytes = 0;
    d.err = c.err = jpeg_std_error(&errors);
    jpeg_create_decompress(&d);
    jpeg_create_compress(&c);
    jpeg_mem_src(&d, data, bytes);
    jpeg_read_header(&d, TRUE);
    jvirt_barray_ptr *coefficients = jpeg_read_coefficients(&d);
    jpeg_copy_critical_parameters(&d, &c);
    jpeg_mem_dest(&c, &buf, &buf_bytes);
    c.optimize_coding = TRUE;
    c.restart_interval = restart_interval;
    jpeg_write_coefficients(&c, coefficients);
    jpeg_finish_compress(&c);
    jpeg_finish_decompress(&d);
    jpeg_destroy_compress(&c);
    jpeg_destroy_decompress(&d);
    out->bytes = 0;
    if (pen__buf_add(out, buf, buf_bytes) < 0)
        abort();
    free(buf);
}

int tile_jpeg(const uint8_t *data, size_t bytes, TiledJpeg *ret)
{
    const PenLimits *limits = &pen__limits_default;
    PenJpegInfo source;
    int r = pen__jpeg_info(data, bytes, limits, &source, NULL);
    if (r < 0)
        return r;
    /* It leaves out sampling factors that all components share, as the writer of tiles did. */
    PenBuf baseline = {0};
    const char *why;
    r = pen__jpeg_baseline(data, bytes, limits, &baseline, &why, NULL);
    if (r == PEN_OK)
        reference_transcode(baseline.data, baseline.bytes, PEN_TILE_MCUS, &ret->jpeg);
    pen__buf_free(&baseline);
    if (r != PEN_OK)
        return r;
    pen__free(ret->segment_bytes);
    ret->segment_bytes = NULL;
    r = pen__jpeg_info(ret->jpeg.data, ret->jpeg.bytes, limits, &ret->info, NULL);
    if (r < 0)
        return r;
    ret->info.orientation = source.orientation;
    return pen__jpeg_segments(ret->jpeg.data, ret->jpeg.bytes, limits, &ret->head_bytes,
                              &ret->segment_bytes, &ret->n_segments, NULL);
}

void tiled_free(TiledJpeg *t)
{
    pen__buf_free(&t->jpeg);
    pen__free(t->segment_bytes);
    *t = (TiledJpeg){0};
}
