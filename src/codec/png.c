/* SPDX-License-Identifier: Apache-2.0 */
/* PNG through libspng. */
#include <limits.h>
#include <string.h>

#include <spng.h>

#include "base/bytes.h"
#include "base/sys.h"
#include "codec/codec_impl.h"
#include "codec/png_chunks.h"

static const char where[] = "codec/png";

/* libspng reports memory that zlib did not get as a damaged stream, and hands no context to its
 * allocator: this is how a call learns that it was memory. Set and read within one call. */
static _Thread_local bool out_of_memory;

static void *noted(void *p)
{
    out_of_memory |= !p;
    return p;
}

static void *plain_alloc(size_t bytes)
{
    return noted(pen__alloc(bytes));
}

static void *plain_resize(void *p, size_t bytes)
{
    return noted(pen__resize(p, bytes));
}

static void *zeroed_array(size_t n, size_t each)
{
    void *p = noted(pen__alloc_array(n, each));
    if (p)
        memset(p, 0, n * each);
    return p;
}

static spng_ctx *new_context(int flags)
{
    struct spng_alloc alloc = {.malloc_fn = plain_alloc,
                               .realloc_fn = plain_resize,
                               .calloc_fn = zeroed_array,
                               .free_fn = pen__free};
    out_of_memory = false;
    return spng_ctx_new2(&alloc, flags);
}

static int fail_spng(int code, int status, PenError *reterr)
{
    if (out_of_memory)
        return pen__fail_memory(reterr, where, "png");
    if (code == SPNG_ECHUNK_LIMITS)
        status = PEN_E_LIMIT;
    return pen__fail(reterr, status, where, "png: libspng: %s", spng_strerror(code));
}

static uint8_t channels_of(const PenPngHead *h)
{
    if (h->has_trns || h->colour == PEN_PNG_GREY_ALPHA || h->colour == PEN_PNG_RGBA)
        return 4;
    return h->colour == PEN_PNG_GREY ? 1 : 3;
}

static int probe(const uint8_t *data, size_t bytes, const PenLimits *limits, PenImageInfo *ret,
                 PenError *reterr)
{
    PenPngHead head;
    int r = pen__png_head(data, bytes, limits, &head, reterr);
    if (r < 0)
        return r;
    *ret = (PenImageInfo){
        .width = head.width,
        .height = head.height,
        .codec = PEN_STORED_PNG,
        .channels = channels_of(&head),
        .orientation = head.orientation,
        .is_16_bit = head.depth == 16,
    };
    return PEN_OK;
}

/* Decodes to `out` in the format `fmt`, which is to take exactly `out_bytes`. */
static int decode_into(const uint8_t *data, size_t bytes, const PenLimits *limits, int fmt,
                       uint8_t *out, size_t out_bytes, PenError *reterr)
{
    int flags = fmt == SPNG_FMT_RGBA8 ? SPNG_DECODE_TRNS : 0;
    size_t need = 0;
    spng_ctx *ctx = new_context(0);
    if (!ctx)
        return pen__fail_memory(reterr, where, "png decoder");
    size_t cache = (size_t)PEN_MIN(limits->max_memory_bytes, PEN_PNG_CACHE_BYTES);
    int e = spng_set_image_limits(ctx, INT32_MAX, INT32_MAX);
    if (!e)
        e = spng_set_chunk_limits(ctx, PEN_MIN(bytes, cache),
                                  cache); /* never more than the cache */
    if (!e)
        e = spng_set_png_buffer(ctx, data, bytes);
    if (!e)
        e = spng_decoded_image_size(ctx, fmt, &need);
    if (!e && need != out_bytes)
        e = SPNG_EBUFSIZ;
    if (!e)
        e = spng_decode_image(ctx, out, out_bytes, fmt, flags);
    spng_ctx_free(ctx);
    return e ? fail_spng(e, PEN_E_DECODE, reterr) : PEN_OK;
}

/* As stored: rows of packed samples, of two bytes each at depth 16. */
static int decode_stored(const uint8_t *data, size_t bytes, const PenLimits *limits,
                         const PenPngHead *head, uint8_t **ret, PenError *reterr)
{
    uint64_t stride = ((uint64_t)head->width * head->depth + 7) / 8, total = stride * head->height;
    if (total > limits->max_memory_bytes)
        return pen__fail(reterr, PEN_E_LIMIT, where,
                         "png: expected pixels of at most %llu bytes, found %llu",
                         (unsigned long long)limits->max_memory_bytes, (unsigned long long)total);
    uint8_t *rows = pen__alloc((size_t)total);
    if (!rows)
        return pen__fail_memory(reterr, where, "rows");
    int r = decode_into(data, bytes, limits, SPNG_FMT_RAW, rows, (size_t)total, reterr);
    if (r < 0) {
        pen__free(rows);
        return r;
    }
    *ret = rows;
    return PEN_OK;
}

/* One sample a byte; of 16 bits the upper 8, which are stored first. */
static void unpack_rows(const PenPngHead *head, const uint8_t *rows, uint8_t *out)
{
    size_t width = head->width, depth = head->depth, stride = (width * depth + 7) / 8;
    for (size_t y = 0; y < head->height; y++, rows += stride, out += width) {
        if (depth >= 8) {
            for (size_t x = 0; x < width; x++)
                out[x] = rows[x * depth / 8];
            continue;
        }
        unsigned mask = (1u << depth) - 1;
        for (size_t x = 0; x < width; x++) {
            size_t bit = x * depth;
            out[x] = (uint8_t)((unsigned)rows[bit / 8] >> (8 - depth - bit % 8) & mask);
        }
    }
}

static int decode_unpacked(const uint8_t *data, size_t bytes, const PenLimits *limits,
                           const PenPngHead *head, PenPixels *pixels, PenError *reterr)
{
    uint8_t *rows = NULL;
    int r = decode_stored(data, bytes, limits, head, &rows, reterr);
    if (r < 0)
        return r;
    unpack_rows(head, rows, pixels->data);
    pen__free(rows);
    return PEN_OK;
}

static int decode(const uint8_t *data, size_t bytes, const PenLimits *limits, PenPixels *ret,
                  PenError *reterr)
{
    PenPngHead head;
    PenPixels pixels;
    int r = pen__png_check(data, bytes, limits, reterr);
    if (r >= 0)
        r = pen__png_head(data, bytes, limits, &head, reterr);
    if (r >= 0)
        r = pen__pixels_alloc(limits, head.width, head.height, channels_of(&head), where, &pixels,
                              reterr);
    if (r < 0)
        return r;
    size_t total = (size_t)pixels.width * pixels.height * pixels.channels;
    /* libspng has no 8-bit grey of 16 bits. */
    if (pixels.channels == 1 && head.depth == 16) {
        r = decode_unpacked(data, bytes, limits, &head, &pixels, reterr);
    } else {
        int fmt = pixels.channels == 1   ? SPNG_FMT_G8
                  : pixels.channels == 3 ? SPNG_FMT_RGB8
                                         : SPNG_FMT_RGBA8;
        r = decode_into(data, bytes, limits, fmt, pixels.data, total, reterr);
    }
    if (r < 0)
        pen__pixels_free(&pixels);
    else
        *ret = pixels;
    return r;
}

static int mask(const uint8_t *data, size_t bytes, const PenLimits *limits, PenPixels *ret,
                PenError *reterr)
{
    PenPngHead head;
    PenPixels pixels;
    int r = pen__png_check(data, bytes, limits, reterr);
    if (r >= 0)
        r = pen__png_head(data, bytes, limits, &head, reterr);
    if (r < 0)
        return r;
    if (head.colour != PEN_PNG_GREY && head.colour != PEN_PNG_PALETTE)
        return pen__fail(reterr, PEN_E_DECODE, where,
                         "mask: expected 1 channel (gray or palette), found color type %u",
                         head.colour);
    if (head.depth == 16)
        return pen__fail(reterr, PEN_E_UNSUPPORTED, where,
                         "mask: expected at most 8 bits per pixel, found 16");
    r = pen__pixels_alloc(limits, head.width, head.height, 1, where, &pixels, reterr);
    if (r < 0)
        return r;
    r = decode_unpacked(data, bytes, limits, &head, &pixels, reterr);
    if (r < 0)
        pen__pixels_free(&pixels);
    else
        *ret = pixels;
    return r;
}

/* ---- encoding ---- */

static int append(spng_ctx *ctx, void *user, void *from, size_t bytes)
{
    (void)ctx;
    int r = pen__buf_add(user, from, bytes);
    out_of_memory |= r < 0;
    return r < 0 ? SPNG_IO_ERROR : 0;
}

static int encode_with(spng_ctx *ctx, const PenPixels *pixels, PenBuf *out)
{
    static const uint8_t colours[] = {[1] = PEN_PNG_GREY, [3] = PEN_PNG_RGB, [4] = PEN_PNG_RGBA};
    struct spng_ihdr ihdr = {.width = pixels->width,
                             .height = pixels->height,
                             .bit_depth = 8,
                             .color_type = colours[pixels->channels]};
    /* Every setting is given, so that the bytes do not follow the library's defaults. */
    int e = spng_set_png_stream(ctx, append, out);
    if (!e)
        e = spng_set_option(ctx, SPNG_IMG_COMPRESSION_LEVEL, 6);
    if (!e)
        e = spng_set_option(ctx, SPNG_IMG_WINDOW_BITS, 15);
    if (!e)
        e = spng_set_option(ctx, SPNG_IMG_MEM_LEVEL, 8);
    if (!e)
        e = spng_set_option(ctx, SPNG_IMG_COMPRESSION_STRATEGY, 1 /* Z_FILTERED */);
    if (!e)
        e = spng_set_option(ctx, SPNG_FILTER_CHOICE, SPNG_FILTER_CHOICE_ALL);
    if (!e)
        e = spng_set_ihdr(ctx, &ihdr);
    size_t total = (size_t)pixels->width * pixels->height * pixels->channels;
    if (!e)
        e = spng_encode_image(ctx, pixels->data, total, SPNG_FMT_PNG, SPNG_ENCODE_FINALIZE);
    return e;
}

int pen__png_encode(const PenPixels *pixels, PenBuf *out, PenError *reterr)
{
    if (pixels->channels != 1 && pixels->channels != 3 && pixels->channels != 4)
        return pen__fail(reterr, PEN_E_INVALID, where,
                         "encode: expected 1, 3 or 4 channels, found %u", pixels->channels);
    spng_ctx *ctx = new_context(SPNG_CTX_ENCODER);
    if (!ctx)
        return pen__fail_memory(reterr, where, "png encoder");
    size_t start = out->bytes;
    int e = encode_with(ctx, pixels, out);
    spng_ctx_free(ctx);
    if (!e)
        return PEN_OK;
    out->bytes = start;
    return fail_spng(e, PEN_E_INVALID, reterr);
}

const PenCodecOps pen__png_ops = {
    .codec = PEN_STORED_PNG,
    .name = "png",
    .suffix = ".png",
    .probe = probe,
    .check = pen__png_check,
    .decode = decode,
    .mask = mask,
};
