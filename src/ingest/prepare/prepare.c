/* SPDX-License-Identifier: Apache-2.0 */
#include "ingest/prepare/prepare.h"

#include <string.h>

#include "base/bytes.h"
#include "base/sha256.h"
#include "codec/jpeg/markers.h"
#include "codec/jpeg/metadata.h"
#include "codec/jpeg/quality.h"
#include "codec/jpeg/turbo/turbo.h"
#include "dsp/resample.h"

#define WHERE "ingest/prepare"

int pen__prepare_settings_check(const PenPrepareSettings *s, PenError *reterr)
{
    int resizes = s->max_side || s->short_side;
    if (s->mode < PEN_MODE_TILE || s->mode > PEN_MODE_SMART)
        return pen__fail(reterr, PEN_E_INVALID, WHERE, "mode %d: expected 0 to 5", s->mode);
    if (s->mode == PEN_MODE_TILE)
        return pen__fail(reterr, PEN_E_INVALID, WHERE,
                         "mode tile: tiles can be read, but are no longer written; use the mode "
                         "keep (the default) or encode");
    if (s->quality < 1 || s->quality > 100)
        return pen__fail(reterr, PEN_E_INVALID, WHERE, "quality %d: expected 1 to 100", s->quality);
    if (s->max_side && s->short_side)
        return pen__fail(reterr, PEN_E_INVALID, WHERE,
                         "max_side and short_side are both set; choose one");
    if (resizes && s->mode == PEN_MODE_KEEP)
        return pen__fail(reterr, PEN_E_INVALID, WHERE,
                         "max_side, short_side: the mode keep does not resize images; choose the "
                         "mode encode, raw, mix or smart");
    if (s->progressive != PEN_PROGRESSIVE_KEEP && s->progressive != PEN_PROGRESSIVE_CONVERT)
        return pen__fail(reterr, PEN_E_INVALID, WHERE, "progressive %d: expected 0 or 1",
                         s->progressive);
    if (s->progressive == PEN_PROGRESSIVE_CONVERT && (s->mode != PEN_MODE_KEEP || !s->index))
        return pen__fail(reterr, PEN_E_INVALID, WHERE,
                         "progressive convert: expected the mode keep with an entry index, found "
                         "%s",
                         s->mode == PEN_MODE_KEEP ? "no_index" : "another mode");
    if (s->sixteen_bit != PEN_SIXTEEN_REFUSE && s->sixteen_bit != PEN_SIXTEEN_REDUCE)
        return pen__fail(reterr, PEN_E_INVALID, WHERE, "16-bit setting %d: expected 0 or 1",
                         s->sixteen_bit);
    if (s->codec != PEN_ENCODING_JPEG && s->codec != PEN_ENCODING_WEBP)
        return pen__fail(reterr, PEN_E_INVALID, WHERE, "codec %d: expected 0 or 1", s->codec);
    if (!(s->raw_share >= 0 && s->raw_share <= 1))
        return pen__fail(reterr, PEN_E_INVALID, WHERE, "raw share %g: expected 0 to 1",
                         s->raw_share);
    return PEN_OK;
}

/* ---- sizes ---------------------------------------------------------------------------------- */

static uint32_t scaled(uint32_t side, uint32_t to, uint32_t from)
{
    uint64_t v = ((uint64_t)side * to * 2 + from) / (2 * (uint64_t)from);
    return v ? (uint32_t)v : 1;
}

/* Only ever smaller. Returns whether it changes. */
static int target_size(const PenPrepareSettings *s, uint32_t w, uint32_t h, uint32_t *ret_w,
                       uint32_t *ret_h)
{
    uint32_t from = s->max_side ? PEN_MAX(w, h) : PEN_MIN(w, h);
    uint32_t to = s->max_side ? s->max_side : s->short_side;
    *ret_w = w;
    *ret_h = h;
    if (!to || from <= to)
        return 0;
    *ret_w = scaled(w, to, from);
    *ret_h = scaled(h, to, from);
    return 1;
}

static int shrink(const PenPrepareSettings *s, int mask, PenPixels *pixels, PenError *reterr)
{
    uint32_t w, h;
    if (!target_size(s, pixels->width, pixels->height, &w, &h))
        return PEN_OK;
    PenPixels to = {NULL, w, h, pixels->channels};
    size_t bytes = (size_t)w * h * to.channels; /* no larger than what was decoded */
    to.data = pen__alloc(bytes + PEN_SLACK);
    if (!to.data)
        return pen__fail_memory(reterr, WHERE, "resized image");
    memset(to.data + bytes, 0, PEN_SLACK);
    PenRaster src = {pixels->data, pixels->width, pixels->height, pixels->channels};
    PenRaster dst = {to.data, w, h, to.channels};
    int ret =
        pen__raster_resample(&src, &dst, mask ? PEN_FILTER_NEAREST : PEN_FILTER_BILINEAR, reterr);
    if (ret < 0) {
        pen__free(to.data);
        return ret;
    }
    pen__pixels_free(pixels);
    *pixels = to;
    return PEN_OK;
}

/* ---- ways of storing ------------------------------------------------------------------------ */

static int decode(const PenPrepareSettings *s, int mask, PenPreparedImage *p, PenError *reterr)
{
    return mask
               ? pen__mask_decode(p->source.data, p->source.bytes, &s->limits, &p->pixels, reterr)
               : pen__image_decode(p->source.data, p->source.bytes, &s->limits, &p->pixels, reterr);
}

/* Decodes to find out whether it can be decoded. */
static int try_decode(const PenPrepareSettings *s, int mask, PenPreparedImage *p, PenError *reterr)
{
    int ret = decode(s, mask, p, reterr);
    pen__pixels_free(&p->pixels);
    return ret;
}

static void store_source(PenPreparedImage *p, const PenImageInfo *info, int how)
{
    p->image.data = p->source.data;
    p->image.bytes = p->source.bytes;
    p->image.width = info->width;
    p->image.height = info->height;
    p->image.codec = info->codec;
    p->image.channels = info->channels;
    p->image.how = (uint8_t)how;
}

/* A JPEG that is stored as it is. One of 12 bits cannot be decoded. */
static int check_jpeg(const PenPrepareSettings *s, PenPreparedImage *p, PenError *reterr)
{
    PenJpegInfo jpeg;
    int ret = pen__jpeg_info(p->source.data, p->source.bytes, &s->limits, &jpeg, reterr);
    if (ret < 0)
        return ret;
    return jpeg.precision == 8
               ? try_decode(s, 0, p, reterr)
               : pen__image_check(p->source.data, p->source.bytes, &s->limits, reterr);
}

static int keep(const PenPrepareSettings *s, int mask, const PenImageInfo *info, int decoding,
                PenPreparedImage *p, PenError *reterr)
{
    int ret = decoding ? try_decode(s, mask, p, reterr)
                       : pen__image_check(p->source.data, p->source.bytes, &s->limits, reterr);
    if (ret == PEN_OK)
        store_source(p, info, PEN_HOW_KEPT);
    return ret;
}

/* ---- entries -------------------------------------------------------------------------------- */

static PenStoredEntries describe(const PenJpegHeader *header, const PenJpegEntries *found,
                                 const PenBuf *coded)
{
    const PenJpegInfo *info = &header->info;
    bool grey = info->components == 1;
    return (PenStoredEntries){.lead_bytes = (uint32_t)info->lead_bytes,
                              .head_bytes = (uint32_t)info->head_bytes,
                              .scan_bytes = (uint32_t)found->scan_bytes,
                              .h_samp = grey ? 1 : info->h_samp[0],
                              .v_samp = grey ? 1 : info->v_samp[0],
                              .plan = found->plan,
                              .coded = coded->data,
                              .coded_bytes = coded->bytes};
}

/* Finds the entries of a JPEG file. PEN_END: it has no index, and p->no_index is the reason. */
static int find_entries(const PenPrepareSettings *s, const PenBuf *jpeg, PenPreparedImage *p,
                        PenError *reterr)
{
    PenEntryScan *mine = NULL, **scan = s->scan ? s->scan : &mine;
    PenJpegHeader header;
    PenJpegEntries found;
    if (jpeg->bytes > UINT32_MAX) {
        p->no_index = "over 4 GiB";
        return PEN_END;
    }
    int ret = pen__jpeg_header(jpeg->data, jpeg->bytes, &s->limits, &header, reterr);
    if (ret == PEN_OK && !*scan)
        ret = pen__entry_scan_new(scan, reterr);
    if (ret == PEN_OK)
        ret = pen__entry_scan(*scan, &header, jpeg->data, jpeg->bytes,
                              pen__entry_unit(&header.info), &found, &p->no_index, reterr);
    if (ret == PEN_OK)
        ret = pen__entries_write(&found, &p->index, reterr);
    if (ret == PEN_OK)
        p->image.entries = describe(&header, &found, &p->index);
    pen__entry_scan_free(&mine);
    return ret;
}

/* What a new file does not have of its source. */
static int store_meta(PenPreparedImage *p, PenError *reterr)
{
    if (!p->source.bytes || pen__image_sniff(p->source.data, p->source.bytes) != PEN_STORED_JPEG)
        return PEN_OK;
    int ret = pen__jpeg_metadata(p->source.data, p->source.bytes, &p->meta, reterr);
    p->image.meta = p->meta.data;
    p->image.meta_bytes = p->meta.bytes;
    return ret;
}

/* Several scans keep a decoder from starting anywhere, and nothing else need do so. */
static bool has_several_scans(const PenPrepareSettings *s, const PenPreparedImage *p)
{
    PenJpegInfo info;
    if (pen__jpeg_info(p->source.data, p->source.bytes, &s->limits, &info, NULL) < 0)
        return false;
    return info.sof == PEN_MARKER_SOF2 || info.scan_components != info.components;
}

/* Makes a baseline file of the same coefficients, with an entry index. PEN_END: that cannot be, and
 * p->no_index is the reason. */
static int convert(const PenPrepareSettings *s, const PenImageInfo *info, PenPreparedImage *p,
                   PenError *reterr)
{
    int ret = pen__jpeg_baseline(p->source.data, p->source.bytes, &s->limits, &p->encoded,
                                 &p->no_index, reterr);
    if (ret == PEN_OK)
        ret = find_entries(s, &p->encoded, p, reterr);
    if (ret != PEN_OK) {
        pen__buf_free(&p->encoded);
        return ret;
    }
    p->no_index = NULL;
    store_source(p, info, PEN_HOW_CONVERTED);
    p->image.data = p->encoded.data;
    p->image.bytes = p->encoded.bytes;
    return store_meta(p, reterr);
}

/* As it is, with an entry index where there can be one. A JPEG that gets one has been read to its
 * last bit; all else is decoded to find damage. */
static int keep_indexed(const PenPrepareSettings *s, int mask, const PenImageInfo *info,
                        PenPreparedImage *p, PenError *reterr)
{
    if (mask || info->codec != PEN_STORED_JPEG)
        return keep(s, mask, info, 1, p, reterr);
    int ret = find_entries(s, &p->source, p, reterr);
    if (ret == PEN_OK)
        store_source(p, info, PEN_HOW_INDEXED);
    if (ret != PEN_END)
        return ret;
    bool converts = s->progressive == PEN_PROGRESSIVE_CONVERT && has_several_scans(s, p);
    ret = converts ? convert(s, info, p, reterr) : PEN_END;
    if (ret != PEN_END)
        return ret;
    ret = check_jpeg(s, p, reterr);
    if (ret == PEN_OK)
        store_source(p, info, PEN_HOW_KEPT);
    return ret;
}

/* ---- other ways of storing ------------------------------------------------------------------ */

/* What was made of the pixels. */
static void store_file(PenPreparedImage *p, int codec)
{
    p->image.data = p->encoded.data;
    p->image.bytes = p->encoded.bytes;
    p->image.width = p->pixels.width;
    p->image.height = p->pixels.height;
    p->image.codec = (uint8_t)codec;
    p->image.how = PEN_HOW_ENCODED;
    p->image.channels = (uint8_t)p->pixels.channels;
}

static int store_png(PenPreparedImage *p, PenError *reterr)
{
    int ret = pen__png_encode(&p->pixels, &p->encoded, reterr);
    store_file(p, PEN_STORED_PNG);
    return ret;
}

static int store_jpeg(const PenPrepareSettings *s, PenPreparedImage *p, PenError *reterr)
{
    int ret = pen__turbo_encode(&p->pixels, s->quality, &s->limits, &p->encoded, reterr);
    if (ret == PEN_OK && s->index)
        ret = find_entries(s, &p->encoded, p, reterr);
    if (ret >= 0) { /* PEN_END: it is too small for an entry index */
        store_file(p, PEN_STORED_JPEG);
        ret = store_meta(p, reterr);
    }
    pen__pixels_free(&p->pixels);
    return ret;
}

/* Metadata are not kept, as with raw pixels. */
static int store_webp(const PenPrepareSettings *s, PenPreparedImage *p, PenError *reterr)
{
    int ret = pen__webp_encode(&p->pixels, s->quality, &s->limits, &p->encoded, reterr);
    store_file(p, PEN_STORED_WEBP);
    p->image.channels = 3;
    pen__pixels_free(&p->pixels);
    return ret;
}

static int store_lossy(const PenPrepareSettings *s, PenPreparedImage *p, PenError *reterr)
{
    return s->codec == PEN_ENCODING_WEBP ? store_webp(s, p, reterr) : store_jpeg(s, p, reterr);
}

/* A JPEG that is not encoded again. The mode need not keep the bytes of a file, so that one with
 * several scans gets an entry index, too. Without an index, it is a kept file like any other. */
static int keep_quality(const PenPrepareSettings *s, const PenImageInfo *info, PenPreparedImage *p,
                        PenError *reterr)
{
    int ret = s->index ? find_entries(s, &p->source, p, reterr) : PEN_END;
    if (ret == PEN_OK)
        store_source(p, info, PEN_HOW_KEPT_QUALITY);
    if (ret == PEN_END && s->index && has_several_scans(s, p))
        ret = convert(s, info, p, reterr);
    if (ret != PEN_END)
        return ret;
    ret = check_jpeg(s, p, reterr);
    if (ret == PEN_OK)
        store_source(p, info, PEN_HOW_KEPT);
    return ret;
}

/* Masks and images with transparency stay without loss. */
static int encode(const PenPrepareSettings *s, int mask, const PenImageInfo *info,
                  PenPreparedImage *p, PenError *reterr)
{
    uint32_t w, h;
    int resize = target_size(s, info->width, info->height, &w, &h);
    if (mask && !resize)
        return keep(s, mask, info, 1, p, reterr);
    if (!resize && info->codec == PEN_STORED_JPEG) {
        PenJpegHeader jpeg;
        int ret = pen__jpeg_header(p->source.data, p->source.bytes, &s->limits, &jpeg, reterr);
        if (ret < 0)
            return ret;
        int quality = pen__jpeg_quality(&jpeg);
        if (quality && quality <= s->quality)
            return keep_quality(s, info, p, reterr);
    }
    int ret = decode(s, mask, p, reterr);
    if (ret == PEN_OK)
        ret = shrink(s, mask, &p->pixels, reterr);
    if (ret < 0)
        return ret;
    if (mask || p->pixels.channels == 4)
        return store_png(p, reterr);
    return store_lossy(s, p, reterr);
}

static void store_raw(PenPreparedImage *p)
{
    const PenPixels *x = &p->pixels;
    p->image.data = x->data;
    p->image.bytes = (uint64_t)x->width * x->height * x->channels;
    p->image.width = x->width;
    p->image.height = x->height;
    p->image.codec = PEN_STORED_RAW;
    p->image.how = PEN_HOW_RAW;
    p->image.channels = (uint8_t)x->channels;
    p->image.segments = (PenSegments){.n_segments = x->height};
}

static int raw(const PenPrepareSettings *s, int mask, PenPreparedImage *p, PenError *reterr)
{
    int ret = decode(s, mask, p, reterr);
    if (ret == PEN_OK)
        ret = shrink(s, mask, &p->pixels, reterr);
    if (ret == PEN_OK)
        store_raw(p);
    return ret;
}

/* The same key always falls on the same side, whatever else is in the pack. */
static int falls_raw(const PenPrepareSettings *s, const uint8_t *key, size_t key_bytes)
{
    uint8_t hash[32];
    PenSha256 sha;
    pen__sha256_init(&sha);
    pen__sha256_update(&sha, "penstock mix", 12);
    pen__sha256_update(&sha, key, key_bytes);
    pen__sha256_final(&sha, hash);
    return (double)(pen__load64(hash) >> 11) * 0x1p-53 < s->raw_share;
}

/* From the header alone: only the resized image counts, and only its pixels. */
static bool is_small(const PenPrepareSettings *s, int mask, const PenImageInfo *info)
{
    uint32_t w, h;
    target_size(s, info->width, info->height, &w, &h);
    return (uint64_t)w * h * (mask ? 1 : info->channels) <= s->smart_threshold;
}

/* The mode of this image: a mixed pack has images of two. */
static int image_mode(const PenPrepareSettings *s, const uint8_t *key, size_t key_bytes, int mask,
                      const PenImageInfo *info)
{
    switch (s->mode) {
    case PEN_MODE_MIX:
        if (falls_raw(s, key, key_bytes))
            return PEN_MODE_RAW;
        return s->max_side || s->short_side ? PEN_MODE_ENCODE : PEN_MODE_KEEP;
    case PEN_MODE_SMART:
        return is_small(s, mask, info) ? PEN_MODE_RAW : PEN_MODE_ENCODE;
    default:
        return s->mode;
    }
}

static int by_mode(const PenPrepareSettings *s, int mode, int mask, const PenImageInfo *info,
                   PenPreparedImage *p, PenError *reterr)
{
    switch (mode) {
    case PEN_MODE_RAW:
        return raw(s, mask, p, reterr);
    case PEN_MODE_ENCODE:
        return encode(s, mask, info, p, reterr);
    default:
        return s->index ? keep_indexed(s, mask, info, p, reterr)
                        : keep(s, mask, info, s->check_decode, p, reterr);
    }
}

int pen__prepare_image(const PenPrepareSettings *s, const uint8_t *key, size_t key_bytes, int mask,
                       PenPreparedImage *p, PenError *reterr)
{
    PenImageInfo info;
    int ret = pen__image_probe(p->source.data, p->source.bytes, &s->limits, &info, reterr);
    if (ret < 0)
        return ret;
    if (info.is_16_bit && !mask && s->sixteen_bit == PEN_SIXTEEN_REFUSE)
        return pen__fail(
            reterr, PEN_E_UNSUPPORTED, WHERE,
            "image: expected 8 bits per channel, found a 16-bit PNG, of which the loader keeps "
            "only the upper 8; accept that with --sixteen-bit reduce, after "
            "'penstock gc' if a run was interrupted (Python: "
            "sixteen_bit=\"reduce\"), or store the file in a field of type bytes");
    p->image.orientation = info.orientation;
    p->image.source_bytes = p->source.bytes;
    return by_mode(s, image_mode(s, key, key_bytes, mask, &info), mask, &info, p, reterr);
}

int pen__prepare_pixels(const PenPrepareSettings *s, const uint8_t *key, size_t key_bytes,
                        const PenPixels *pixels, PenPreparedImage *p, PenError *reterr)
{
    size_t bytes = (size_t)pixels->width * pixels->height * pixels->channels;
    PenImageInfo info = {
        .width = pixels->width, .height = pixels->height, .channels = (uint8_t)pixels->channels};
    p->pixels = *pixels;
    p->pixels.data = pen__alloc(bytes + PEN_SLACK);
    if (!p->pixels.data)
        return pen__fail_memory(reterr, WHERE, "a frame");
    memcpy(p->pixels.data, pixels->data, bytes);
    memset(p->pixels.data + bytes, 0, PEN_SLACK);
    p->image.orientation = 1;
    int ret = shrink(s, 0, &p->pixels, reterr);
    if (ret < 0)
        return ret;
    if (image_mode(s, key, key_bytes, 0, &info) != PEN_MODE_RAW)
        return store_lossy(s, p, reterr);
    store_raw(p);
    return PEN_OK;
}

void pen__prepared_image_free(PenPreparedImage *p)
{
    pen__buf_free(&p->source);
    pen__buf_free(&p->encoded);
    pen__buf_free(&p->index);
    pen__pixels_free(&p->pixels);
    pen__buf_free(&p->meta);
    pen__buf_free(&p->origin);
    *p = (PenPreparedImage){0};
}
