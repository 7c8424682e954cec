/* SPDX-License-Identifier: Apache-2.0 */
/* Write, then read: the input says which fields there are, what is in them and how the pack is cut.
 * All that went in has to come out. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <penstock/penstock.h>

#include "base/attr.h"
#include "codec/jpeg/metadata.h"
#include "codec/jpeg/turbo/turbo.h"
#include "help.h"
#include "memory_fs.h"

enum { MAX_FIELDS = 6, MAX_SAMPLES = 12, MAX_FRAMES = 4, N_IMAGES = 12 };

#define PACK "p.pen"
#define PACK_AGAIN "q.pen"

typedef struct Sample {
    uint8_t *key;
    size_t key_bytes;
    PenValue values[MAX_FIELDS];
    PenValue frames[MAX_FIELDS][MAX_FRAMES];
    int64_t times[MAX_FRAMES];
} Sample;

typedef struct Case {
    PenField fields[MAX_FIELDS];
    char names[MAX_FIELDS][16];
    PenWriterSettings settings;
    Sample samples[MAX_SAMPLES]; /* that the writer took */
    uint32_t n;
    bool duplicates;
} Case;

/* ---- images ---------------------------------------------------------------------------------- */

static PenBuf images[N_IMAGES];

static void draw(PenPixels *p, uint32_t width, uint32_t height, uint32_t channels)
{
    Dice dice = {width * 31 + height * 7 + channels};
    *p = (PenPixels){malloc((size_t)width * height * channels), width, height, channels};
    for (size_t i = 0; i < (size_t)width * height * channels; i++)
        p->data[i] = (uint8_t)(i * 3 + roll(&dice, 40));
}

/* EXIF with orientation 6, and a comment. */
static void add_metadata(PenBuf *jpeg)
{
    static const uint8_t meta[] = "\xFF\xE1\0\x22"
                                  "Exif\0\0II*\0\x08\0\0\0\1\0\x12\1\3\0\1\0\0\0\6\0\0\0\0\0\0\0"
                                  "\xFF\xFE\0\5abc";
    PenError err;
    PenBuf plain = *jpeg;
    *jpeg = (PenBuf){0};
    MUST(pen__jpeg_with_metadata(plain.data, plain.bytes, meta, sizeof meta - 1, jpeg, &err));
    pen__buf_free(&plain);
}

static void make_image(PenBuf *out, int kind, uint32_t width, uint32_t height, uint32_t channels)
{
    PenError err;
    PenPixels p;
    draw(&p, width, height, channels);
    if (kind == 0) {
        MUST(pen__png_encode(&p, out, &err));
    } else {
        MUST(pen__turbo_encode(&p, kind == 2 ? 95 : 80, &pen__limits_default, out, &err));
    }
    if (kind == 3)
        add_metadata(out);
    free(p.data);
}

/* They stay for all runs. The last is larger than one run of segments. */
static void make_images(void)
{
    static const uint32_t sizes[][4] = {{0, 1, 1, 1},   {0, 9, 5, 1},   {0, 7, 7, 3},
                                        {0, 6, 11, 4},  {1, 1, 1, 3},   {1, 33, 17, 3},
                                        {1, 20, 40, 1}, {2, 50, 30, 3}, {2, 16, 8, 1},
                                        {3, 90, 60, 3}, {3, 8, 8, 1},   {2, 99, 90, 3}};
    for (size_t i = 0; i < N_IMAGES && !images[i].bytes; i++)
        make_image(&images[i], (int)sizes[i][0], sizes[i][1], sizes[i][2], sizes[i][3]);
}

static PenValue take_image(Input *in)
{
    uint32_t which = take_below(in, N_IMAGES + 2);
    if (which < N_IMAGES)
        return (PenValue){.data = images[which].data, .bytes = images[which].bytes};
    if (which == N_IMAGES)
        return (PenValue){.bytes = 0}; /* no image */
    size_t n;
    const uint8_t *data = take_bytes(in, take_below(in, 64), &n); /* hardly ever a good one */
    return (PenValue){.data = data, .bytes = n};
}

/* ---- the case -------------------------------------------------------------------------------- */

static bool is_ragged(const PenField *f)
{
    return f->n_dims && f->dims[0] == PEN_DIM_ANY;
}

static void take_field(Input *in, Case *c, uint32_t i)
{
    PenField *f = &c->fields[i];
    f->type = (int32_t)(PEN_TYPE_IMAGE + take_below(in, 8));
    snprintf(c->names[i], sizeof c->names[i], "f%u", i);
    f->name = c->names[i];
    if (f->type == PEN_TYPE_IMAGE)
        f->flags = take_byte(in) & PEN_FIELD_MASK;
    if (f->type >= PEN_TYPE_I64)
        f->n_dims = take_below(in, 4);
    for (uint32_t d = 0; d < f->n_dims; d++)
        f->dims[d] = (d > 0) + take_below(in, 3 + (d == 0));
    if (is_ragged(f) && f->type == PEN_TYPE_F32 && f->n_dims > 1 && f->dims[f->n_dims - 1] == 2)
        f->flags = PEN_FIELD_POINTS | (take_byte(in) & 1 ? PEN_FIELD_RELATIVE : 0);
    if (f->type == PEN_TYPE_I64 && !f->n_dims)
        c->settings.class_field = f->name;
}

static void take_settings(Input *in, Case *c)
{
    static const char *const classes[] = {"cat", "", "dog"};
    PenWriterSettings *s = &c->settings;
    pen_writer_settings_init(s);
    s->fields = c->fields;
    s->n_fields = 1 + take_below(in, MAX_FIELDS);
    for (uint32_t i = 0; i < s->n_fields; i++)
        take_field(in, c, i);
    if (s->class_field) {
        s->classes = classes;
        s->n_classes = take_below(in, 4);
    }
    s->mode = PEN_MODE_KEEP + (int32_t)take_below(in, 5);
    s->quality = 1 + (int32_t)take_below(in, 100);
    if (s->mode >= PEN_MODE_ENCODE && take_byte(in) & 1)
        *(take_byte(in) & 1 ? &s->max_side : &s->short_side) = 1 + take_below(in, 40);
    s->raw_share = take_below(in, 5) / 4.0;
    uint8_t flags = take_byte(in);
    s->check_decode = flags & 1;
    s->no_index = s->mode != PEN_MODE_RAW && s->mode != PEN_MODE_MIX && flags & 2;
    s->codec = flags & 4 ? PEN_ENCODING_WEBP : PEN_ENCODING_JPEG;
    s->smart_threshold = (uint64_t)1 << (flags >> 4);
    s->block_samples = 1 + take_below(in, 5);
    s->shard_bytes = (uint64_t)1 << take_below(in, 16);
}

/* Bytes of the numbers, or of a row of them. */
static size_t width_of(const PenField *f)
{
    size_t n = f->type == PEN_TYPE_F32 ? 4 : 8;
    for (uint32_t d = is_ragged(f); d < f->n_dims; d++)
        n *= f->dims[d];
    return n;
}

static void take_clip(Input *in, Sample *s, uint32_t f)
{
    PenValue *v = &s->values[f];
    v->n_frames = take_below(in, MAX_FRAMES + 1);
    v->frames = s->frames[f];
    v->timestamps_ns = take_byte(in) & 1 ? s->times : NULL;
    for (uint32_t i = 0; i < v->n_frames; i++) {
        s->frames[f][i] = take_image(in);
        s->times[i] = (int64_t)i * 40000000 - take_byte(in);
    }
}

static void take_value(Input *in, const PenField *field, Sample *s, uint32_t f)
{
    PenValue *v = &s->values[f];
    if (field->type == PEN_TYPE_IMAGE) {
        *v = take_image(in);
    } else if (field->type == PEN_TYPE_CLIP) {
        take_clip(in, s, f);
    } else if (field->type >= PEN_TYPE_I64) {
        /* Copied, because there may not be enough left of the input. */
        size_t n, bytes = width_of(field) * (is_ragged(field) ? take_below(in, 4) : 1);
        uint8_t *numbers = calloc(1, bytes + 1);
        const uint8_t *from = take_bytes(in, bytes, &n);
        if (n)
            memcpy(numbers, from, n);
        *v = (PenValue){.data = numbers, .bytes = bytes};
    } else {
        v->data = take_bytes(in, take_below(in, 100), &v->bytes);
    }
}

static void free_sample(const Case *c, Sample *s)
{
    for (uint32_t f = 0; f < c->settings.n_fields; f++)
        if (c->fields[f].type >= PEN_TYPE_I64)
            free((void *)s->values[f].data);
    free(s->key);
    *s = (Sample){.key = NULL};
}

static void take_sample(Input *in, const Case *c, Sample *s)
{
    size_t n;
    const uint8_t *key = take_bytes(in, take_below(in, 20), &n);
    /* Most keys are made unique by a number. */
    s->key_bytes = n + 1;
    s->key = malloc(s->key_bytes);
    if (n)
        memcpy(s->key, key, n);
    s->key[n] = take_below(in, 8) ? (uint8_t)c->n : 0;
    for (uint32_t f = 0; f < c->settings.n_fields; f++)
        take_value(in, &c->fields[f], s, f);
}

static void find_twins(Case *c)
{
    for (uint32_t i = 0; i < c->n; i++)
        for (uint32_t k = 0; k < i; k++)
            if (c->samples[i].key_bytes == c->samples[k].key_bytes &&
                memcmp(c->samples[i].key, c->samples[k].key, c->samples[i].key_bytes) == 0)
                c->duplicates = true;
}

/* ---- writing --------------------------------------------------------------------------------- */

/* Takes samples from the input until it ends, and writes those that the writer takes. */
static void write_taken(Case *c, Input *in)
{
    PenError err;
    PenWriter *w = NULL;
    uint64_t n = 0;
    MUST(pen_writer_open(PACK, &c->settings, &w, &err));
    while (in->bytes && c->n < MAX_SAMPLES) {
        Sample *s = &c->samples[c->n];
        take_sample(in, c, s);
        int r =
            CALL(pen_writer_add(w, s->key, s->key_bytes, s->values, c->settings.n_fields, &err));
        REQUIRE(r == PEN_OK || r == PEN_E_DECODE || r == PEN_E_LIMIT || r == PEN_E_UNSUPPORTED);
        if (r == PEN_OK)
            c->n++;
        else
            free_sample(c, s);
    }
    find_twins(c);
    int expected = !c->n ? PEN_E_INVALID : c->duplicates ? PEN_E_EXISTS : PEN_OK;
    REQUIRE(CALL(pen_writer_finish(w, &n, &err)) == expected);
    REQUIRE(expected < 0 || n == c->n);
    pen_writer_close(&w);
    if (expected < 0)
        REQUIRE(fs_count() == 0);
}

/* The same samples give the same pack. */
static void write_again(const Case *c, const uint8_t id[16])
{
    PenError err;
    PenWriter *w = NULL;
    PenPack *pack = NULL;
    uint64_t n = 0;
    MUST(pen_writer_open(PACK_AGAIN, &c->settings, &w, &err));
    for (uint32_t i = 0; i < c->n; i++)
        MUST(pen_writer_add(w, c->samples[i].key, c->samples[i].key_bytes, c->samples[i].values,
                            c->settings.n_fields, &err));
    MUST(pen_writer_finish(w, &n, &err));
    pen_writer_close(&w);
    MUST(pen_pack_open(PACK_AGAIN, NULL, &pack, &err));
    REQUIRE(memcmp(pen_pack_info(pack)->id, id, 16) == 0);
    pen_pack_close(&pack);
}

/* ---- reading --------------------------------------------------------------------------------- */

static void decode(const void *data, size_t bytes, bool mask, PenPixels *ret)
{
    PenError err;
    uint8_t *exact = copy_of(data, bytes);
    if (mask)
        MUST(pen__mask_decode(exact, bytes, &pen__limits_default, ret, &err));
    else
        MUST(pen__image_decode(exact, bytes, &pen__limits_default, ret, &err));
    free(exact);
}

static bool same(const PenPixels *a, const uint8_t *data, uint32_t width, uint32_t height)
{
    return a->width == width && a->height == height &&
           memcmp(a->data, data, (size_t)width * height * a->channels) == 0;
}

static bool is_kept(const PenValue *source, const uint8_t *data, size_t bytes)
{
    return bytes == source->bytes && memcmp(data, source->data, bytes) == 0;
}

/* Are the stored bytes what they have to be for this source? */
static void require_image(const Case *c, const PenValue *source, const PenImage *image,
                          const uint8_t *data, size_t bytes, bool mask)
{
    const PenWriterSettings *s = &c->settings;
    bool may_shrink = s->max_side || s->short_side;
    PenPixels before, after = {0};
    REQUIRE(image->bytes == bytes && image->source_bytes == source->bytes);
    if (image->how == PEN_HOW_KEPT || image->how == PEN_HOW_INDEXED) {
        REQUIRE(is_kept(source, data, bytes));
        return;
    }
    decode(source->data, source->bytes, mask, &before);
    if (image->codec == PEN_STORED_RAW)
        REQUIRE(bytes == (size_t)image->width * image->height * image->channels);
    else
        decode(data, bytes, mask, &after);
    const uint8_t *pixels = after.data ? after.data : data;
    bool lossy = image->how == PEN_HOW_ENCODED &&
                 (image->codec == PEN_STORED_JPEG || image->codec == PEN_STORED_WEBP);
    bool resized = image->width != before.width || image->height != before.height;
    REQUIRE(may_shrink || !resized);
    REQUIRE(!after.data || (after.width == image->width && after.height == image->height));
    if (!lossy && !resized)
        REQUIRE(same(&before, pixels, image->width, image->height));
    pen__pixels_free(&before);
    pen__pixels_free(&after);
}

typedef struct Spot {
    PenPack *pack;
    uint64_t sample;
    uint32_t field, frame;
} Spot;

/* As a file of its own it has the same pixels. */
static void require_extract(const Spot *at, const PenImage *image, const uint8_t *data)
{
    PenError err;
    void *file = NULL;
    size_t bytes;
    const char *suffix;
    PenPixels pixels, stored = {0};
    MUST(
        pen_pack_extract(at->pack, at->sample, at->field, at->frame, &file, &bytes, &suffix, &err));
    decode(file, bytes, false, &pixels);
    if (image->codec != PEN_STORED_RAW)
        decode(data, (size_t)image->bytes, false, &stored);
    REQUIRE(same(&pixels, stored.data ? stored.data : data, image->width, image->height));
    pen__pixels_free(&pixels);
    pen__pixels_free(&stored);
    pen_free(file);
}

/* What is set aside is what the source has; of a file that is kept nothing is. */
static void require_metadata(const Spot *at, const PenImage *image, const PenValue *source,
                             const uint8_t *data)
{
    PenError err;
    PenBuf meta = {0};
    size_t bytes = 0;
    if (image->codec == PEN_STORED_JPEG && !is_kept(source, data, (size_t)image->bytes) &&
        pen__image_sniff(source->data, source->bytes) == PEN_STORED_JPEG)
        MUST(pen__jpeg_metadata(source->data, source->bytes, &meta, &err));
    MUST(pen_pack_metadata(at->pack, at->sample, at->field, at->frame, NULL, 0, &bytes, &err));
    REQUIRE(bytes == meta.bytes);
    uint8_t *found = malloc(bytes);
    MUST(pen_pack_metadata(at->pack, at->sample, at->field, at->frame, found, bytes, &bytes, &err));
    REQUIRE(!bytes || memcmp(found, meta.data, bytes) == 0);
    free(found);
    pen__buf_free(&meta);
}

static void require_frame(const Case *c, const Spot *at, const PenValue *source,
                          const uint8_t *data)
{
    PenError err;
    PenImage image;
    bool mask = c->fields[at->field].flags & PEN_FIELD_MASK;
    MUST(pen_pack_image(at->pack, at->sample, at->field, at->frame, &image, &err));
    if (!source->bytes) {
        REQUIRE(image.codec == PEN_STORED_NONE && !image.bytes);
        return;
    }
    require_image(c, source, &image, data, (size_t)image.bytes, mask);
    require_extract(at, &image, data);
    require_metadata(at, &image, source, data);
}

static void require_clip(const Case *c, PenPack *pack, uint32_t sample, uint32_t field)
{
    PenError err;
    const PenValue *v = &c->samples[sample].values[field];
    uint32_t n = 0;
    size_t bytes = 0, sizes[MAX_FRAMES];
    MUST(pen_pack_frame_count(pack, sample, field, &n, &err));
    REQUIRE(n == v->n_frames);
    for (uint32_t step = 1; step <= 2 && n; step++) {
        PenFrameRange range = {0, step, (n + step - 1) / step, sizes};
        MUST(pen_pack_read_frames(pack, sample, field, &range, NULL, 0, &bytes, &err));
        uint8_t *buf = malloc(bytes), *at = buf;
        MUST(pen_pack_read_frames(pack, sample, field, &range, buf, bytes, &bytes, &err));
        for (uint32_t i = 0; i < range.n; at += sizes[i++]) {
            uint8_t *exact = copy_of(at, sizes[i]);
            Spot spot = {pack, sample, field, i * step};
            require_frame(c, &spot, &v->frames[spot.frame], exact);
            free(exact);
        }
        REQUIRE(at == buf + bytes);
        free(buf);
    }
}

static void require_value(const Case *c, PenPack *pack, uint32_t sample, uint32_t field)
{
    PenError err;
    const PenValue *v = &c->samples[sample].values[field];
    size_t bytes = 0, again = 0;
    MUST(pen_pack_read(pack, sample, field, NULL, 0, &bytes, &err));
    uint8_t *buf = malloc(bytes);
    MUST(pen_pack_read(pack, sample, field, buf, bytes, &again, &err));
    REQUIRE(again == bytes);
    if (c->fields[field].type == PEN_TYPE_IMAGE)
        require_frame(c, &(Spot){pack, sample, field, 0}, v, buf);
    else if (c->fields[field].type == PEN_TYPE_CLIP)
        require_clip(c, pack, sample, field);
    else
        REQUIRE(bytes == v->bytes && (!bytes || memcmp(buf, v->data, bytes) == 0));
    free(buf);
}

static void require_sample(const Case *c, PenPack *pack, uint32_t i)
{
    PenError err;
    const Sample *s = &c->samples[i];
    size_t bytes = 0;
    uint64_t found = UINT64_MAX;
    uint8_t *key = malloc(s->key_bytes);
    MUST(pen_pack_key(pack, i, key, s->key_bytes, &bytes, &err));
    REQUIRE(bytes == s->key_bytes && memcmp(key, s->key, bytes) == 0);
    MUST(pen_pack_find(pack, key, bytes, &found, &err));
    REQUIRE(found == i);
    for (uint32_t f = 0; f < c->settings.n_fields; f++)
        require_value(c, pack, i, f);
    free(key);
}

static void require_pack(const Case *c)
{
    PenError err;
    PenPack *pack = NULL;
    PenVerifySettings settings;
    PenVerifyResult result;
    MUST(pen_pack_open(PACK, NULL, &pack, &err));
    const PenPackInfo *info = pen_pack_info(pack);
    REQUIRE(info->n_samples == c->n && info->block_samples == c->settings.block_samples);
    REQUIRE(info->n_fields == c->settings.n_fields && info->n_classes == c->settings.n_classes);
    for (uint32_t i = 0; i < info->n_classes; i++)
        REQUIRE(strcmp(info->classes[i], c->settings.classes[i]) == 0);
    for (uint32_t i = 0; i < c->n; i++)
        require_sample(c, pack, i);
    pen_verify_settings_init(&settings);
    settings.threads = 1;
    settings.decode = 1;
    MUST(pen_pack_verify(pack, &settings, &result, &err));
    REQUIRE(result.samples == c->n && result.bytes == info->total_bytes);
    write_again(c, info->id);
    pen_pack_close(&pack);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    Input in = {data, bytes};
    make_images();
    Case *c = calloc(1, sizeof *c);
    fs_begin((size_t)take_below(&in, 4) * 100);
    take_settings(&in, c);
    write_taken(c, &in);
    if (c->n && !c->duplicates)
        require_pack(c);
    fs_end();
    for (uint32_t i = 0; i < c->n; i++)
        free_sample(c, &c->samples[i]);
    free(c);
    return 0;
}
