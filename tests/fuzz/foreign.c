/* SPDX-License-Identifier: Apache-2.0 */
/* For the memory sanitizer alone, which sees what our code writes but not what libraries do. Their
 * memory counts as written from the start; ours is had through the system interface and does not.
 * What they write into ours is said here: the linker puts these functions before the real ones
 * (--wrap). */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <archive.h>
#include <archive_entry.h>
#include <jpeglib.h>
#include <sanitizer/msan_interface.h>
#include <spng.h>
#include <webp/decode.h>

#include "base/sys.h"
#include "codec/codec.h"
#include "codec/jpeg/decoder/decoder_impl.h"
#include "codec/jpeg/turbo/turbo.h"
#include "help.h"

/* ---- memory ---------------------------------------------------------------------------------- */

const char *__msan_default_options(void);

const char *__msan_default_options(void)
{
    return "poison_in_malloc=0:poison_in_free=0";
}

static void *alloc_unwritten(size_t bytes)
{
    void *p = malloc(bytes);
    if (p)
        __msan_poison(p, bytes);
    return p;
}

/* Who gets it next may be a library. */
static void release_written(void *p)
{
    __msan_unpoison(p, malloc_usable_size(p));
    free(p);
}

static void *resize_unwritten(void *p, size_t bytes)
{
    void *q = alloc_unwritten(bytes);
    if (q && p) {
        size_t before = malloc_usable_size(p);
        memcpy(q, p, before < bytes ? before : bytes);
        release_written(p);
    }
    return q;
}

/* Of vectors it knows no more than whether all of them is written, and their kernels compute some
 * pixels too many at the end of a row. */
__attribute__((constructor)) static void begin(void)
{
    static PenSys sys;
    setenv("PENSTOCK_CPU", "c", 1);
    setenv("PENSTOCK_JPEG", "own", 1);
    sys = pen__sys_real;
    sys.alloc = alloc_unwritten;
    sys.resize = resize_unwritten;
    sys.release = release_written;
    pen__sys = &sys;
}

/* ---- what libraries write -------------------------------------------------------------------- */

#define WRAPPED(type, name, ...)                                                                   \
    type __real_##name(__VA_ARGS__);                                                               \
    type __wrap_##name(__VA_ARGS__);                                                               \
    type __wrap_##name(__VA_ARGS__)

/* Where variables of functions that are over were is still unwritten, and libraries put theirs
 * there. */
static __attribute__((noinline)) void clean_stack(void)
{
    char space[64 << 10];
    __msan_unpoison(space, sizeof space);
    __asm__ volatile("" : : "r"(space) : "memory");
}

WRAPPED(JDIMENSION, jpeg_read_scanlines, j_decompress_ptr d, JSAMPARRAY rows, JDIMENSION max)
{
    JDIMENSION n = __real_jpeg_read_scanlines(d, rows, max);
    for (JDIMENSION i = 0; i < n; i++)
        __msan_unpoison(rows[i], (size_t)d->output_width * (size_t)d->output_components);
    return n;
}

WRAPPED(int, pen__turbo_encode, const PenPixels *pixels, int quality, const PenLimits *limits,
        PenBuf *out, PenError *reterr)
{
    int r = __real_pen__turbo_encode(pixels, quality, limits, out, reterr);
    if (r >= 0)
        __msan_unpoison(out->data, out->bytes);
    return r;
}

WRAPPED(int, pen__png_encode, const PenPixels *pixels, PenBuf *out, PenError *reterr)
{
    int r = __real_pen__png_encode(pixels, out, reterr);
    if (r >= 0)
        __msan_unpoison(out->data, out->bytes);
    return r;
}

/* Its memory would be ours. */
WRAPPED(spng_ctx *, spng_ctx_new2, struct spng_alloc *alloc, int flags)
{
    *alloc = (struct spng_alloc){malloc, realloc, calloc, free};
    return __real_spng_ctx_new2(alloc, flags);
}

WRAPPED(int, spng_decode_image, spng_ctx *ctx, void *out, size_t bytes, int fmt, int flags)
{
    clean_stack();
    __msan_unpoison(out, bytes); /* it looks at rows that it has made */
    int r = __real_spng_decode_image(ctx, out, bytes, fmt, flags);
    __msan_unpoison(out, bytes);
    return r;
}

WRAPPED(int, spng_decoded_image_size, spng_ctx *ctx, int fmt, size_t *bytes)
{
    int r = __real_spng_decoded_image_size(ctx, fmt, bytes);
    __msan_unpoison(bytes, sizeof *bytes);
    return r;
}

WRAPPED(int, WebPInitDecoderConfigInternal, WebPDecoderConfig *config, int version)
{
    int r = __real_WebPInitDecoderConfigInternal(config, version);
    __msan_unpoison(config, sizeof *config);
    return r;
}

WRAPPED(VP8StatusCode, WebPGetFeaturesInternal, const uint8_t *data, size_t bytes,
        WebPBitstreamFeatures *features, int version)
{
    VP8StatusCode r = __real_WebPGetFeaturesInternal(data, bytes, features, version);
    __msan_unpoison(features, sizeof *features);
    return r;
}

WRAPPED(VP8StatusCode, WebPDecode, const uint8_t *data, size_t bytes, WebPDecoderConfig *config)
{
    VP8StatusCode r = __real_WebPDecode(data, bytes, config);
    if (r == VP8_STATUS_OK)
        __msan_unpoison(config->output.u.RGBA.rgba, config->output.u.RGBA.size);
    return r;
}

WRAPPED(const char *, archive_entry_pathname_utf8, struct archive_entry *entry)
{
    clean_stack();
    return __real_archive_entry_pathname_utf8(entry);
}

WRAPPED(int, archive_read_next_header2, struct archive *a, struct archive_entry *entry)
{
    clean_stack();
    return __real_archive_read_next_header2(a, entry);
}

WRAPPED(la_ssize_t, archive_read_data, struct archive *a, void *out, size_t bytes)
{
    la_ssize_t n = __real_archive_read_data(a, out, bytes);
    if (n > 0)
        __msan_unpoison(out, (size_t)n);
    return n;
}

/* ---- what is used again ---------------------------------------------------------------------- */

static void forget(const PenBuf *b)
{
    __msan_poison(b->data, b->cap);
}

/* What the own decoder keeps from one image to the next is as good as new. */
WRAPPED(int, pen__own_begin, PenOwn *own, const PenOwnRequest *request, PenError *reterr)
{
    int r = __real_pen__own_begin(own, request, reterr);
    if (r == PEN_OK) {
        forget(&own->lists_buf);
        forget(&own->copies_buf);
        forget(&own->planes_buf);
        forget(&own->rows_buf);
    }
    return r;
}

/* In mutators, where what is mutated is a copy in memory of the target's own. */
WRAPPED(size_t, LLVMFuzzerMutate, uint8_t *data, size_t bytes, size_t max_bytes)
{
    bytes = __real_LLVMFuzzerMutate(data, bytes, max_bytes);
    __msan_unpoison(data, bytes);
    return bytes;
}
