/* SPDX-License-Identifier: Apache-2.0 */
#include "codec/jpeg/turbo/session.h"

#include <string.h>

#include "codec/codec_impl.h"

static const char where[] = "codec/jpeg";

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

_Noreturn void pen__turbo_leave(PenTurbo *t, int status)
{
    t->status = status;
    longjmp(t->jump, 1);
}

size_t pen__turbo_place(const PenTurbo *t)
{
    return t->d.src ? t->in_bytes - t->d.src->bytes_in_buffer : 0;
}

static _Noreturn void on_error(j_common_ptr cinfo)
{
    PenTurbo *t = cinfo->client_data;
    char text[JMSG_LENGTH_MAX];
    int code = cinfo->err->msg_code, status = status_of(code);
    cinfo->err->format_message(cinfo, text);
    if (code == JERR_NO_BACKING_STORE)
        pen__fail(t->reterr, status, where,
                  "jpeg: decoding needs more than the limit of %llu bytes of memory",
                  (unsigned long long)t->limits->max_memory_bytes);
    else if (cinfo->is_decompressor)
        pen__fail(t->reterr, status, where, "jpeg: near byte %zu: libjpeg: %s", pen__turbo_place(t),
                  text);
    else
        pen__fail(t->reterr, status, where, "jpeg: encoder: %s", text);
    pen__turbo_leave(t, status);
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
    PenTurbo *t = cinfo->client_data;
    int code = cinfo->err->msg_code;
    if (level >= 0 || !loses_data(code))
        return;
    char text[JMSG_LENGTH_MAX];
    if (code == JWRN_JPEG_EOF) {
        pen__fail(t->reterr, PEN_E_DECODE, where,
                  "jpeg: truncated: expected more data, found the end of the file at byte %zu",
                  t->in_bytes);
    } else {
        cinfo->err->format_message(cinfo, text);
        pen__fail(t->reterr, PEN_E_DECODE, where, "jpeg: damaged near byte %zu: %s",
                  pen__turbo_place(t), text);
    }
    pen__turbo_leave(t, PEN_E_DECODE);
}

static uint32_t most_scans(const PenTurbo *t)
{
    return pen__limits_scans(t->limits, (uint64_t)t->d.image_width * t->d.image_height);
}

static void on_progress(j_common_ptr cinfo)
{
    PenTurbo *t = cinfo->client_data;
    if (!cinfo->is_decompressor || (uint32_t)t->d.input_scan_number <= most_scans(t))
        return;
    pen__fail(t->reterr, PEN_E_LIMIT, where,
              "jpeg: expected at most %u scans of %u x %u pixels, found more", most_scans(t),
              t->d.image_width, t->d.image_height);
    pen__turbo_leave(t, PEN_E_LIMIT);
}

int pen__turbo_guard(PenTurbo *t, int (*body)(PenTurbo *t))
{
    if (setjmp(t->jump))
        return t->status;
    return body(t);
}

void pen__turbo_start(PenTurbo *t, const PenLimits *limits, PenError *reterr)
{
    t->limits = limits;
    t->reterr = reterr;
    t->status = PEN_OK;
    t->in_bytes = 0;
    jpeg_std_error(&t->errors);
    t->errors.error_exit = on_error;
    t->errors.emit_message = on_message;
    t->progress.progress_monitor = on_progress;
    t->d.err = &t->errors;
    t->d.client_data = t;
}

void pen__turbo_limit_memory(const PenTurbo *t, struct jpeg_memory_mgr *mem)
{
    mem->max_memory_to_use = (long)PEN_MIN(t->limits->max_memory_bytes, (uint64_t)INT64_MAX);
}

int pen__turbo_choose_output(PenTurbo *t)
{
    switch (t->d.jpeg_color_space) {
    case JCS_GRAYSCALE:
        t->d.out_color_space = JCS_GRAYSCALE;
        return 1;
    case JCS_RGB:
    case JCS_YCbCr:
        t->d.out_color_space = JCS_RGB;
        return 3;
    case JCS_CMYK:
    case JCS_YCCK:
        t->d.out_color_space = JCS_CMYK;
        return 3;
    default:
        return pen__fail(t->reterr, PEN_E_UNSUPPORTED, where,
                         "jpeg: expected gray, YCbCr, RGB, CMYK or YCCK, found %d components of an "
                         "unknown color space",
                         t->d.num_components);
    }
}

/* As libjpeg's block smoothing asks. */
bool pen__turbo_scans_missing(const struct jpeg_decompress_struct *d)
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

static uint8_t multiply(uint8_t a, uint8_t b)
{
    unsigned t = (unsigned)a * b + 128;
    return (uint8_t)((t + (t >> 8)) >> 8);
}

void pen__cmyk_to_rgb(const uint8_t *cmyk, uint8_t *rgb, size_t pixels)
{
    for (size_t i = 0; i < pixels; i++, cmyk += 4, rgb += 3)
        for (size_t j = 0; j < 3; j++)
            rgb[j] = (uint8_t)(cmyk[3] - multiply((uint8_t)(255 - cmyk[j]), cmyk[3]));
}
