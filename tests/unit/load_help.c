/* SPDX-License-Identifier: Apache-2.0 */
#include "load_help.h"

#include "lib/tiled_pack.h"

/* The name under which a pack is written first: tiles are made of kept files. */
static const char *first_name(const char *name, int mode, char ret[64])
{
    snprintf(ret, 64, "%s%s", mode == PEN_MODE_TILE ? "kept-" : "", name);
    return at(ret);
}

int help_writer_open(const char *name, const PenWriterSettings *s, PenWriter **ret, PenError *err)
{
    char first[64];
    PenWriterSettings of = *s;
    of.mode = s->mode == PEN_MODE_TILE ? PEN_MODE_KEEP : s->mode;
    of.no_index |= s->mode == PEN_MODE_TILE;
    return pen_writer_open(first_name(name, s->mode, first), &of, ret, err);
}

PenPack *help_writer_end(const char *name, const PenWriterSettings *s, PenWriter *w, int r,
                         PenError *err)
{
    char first[64];
    uint64_t total;
    PenPack *pack = NULL;
    if (r == PEN_OK)
        r = pen_writer_finish(w, &total, err);
    pen_writer_close(&w);
    if (r == PEN_OK && s->mode == PEN_MODE_TILE)
        tile_pack(first_name(name, s->mode, first), at(name), s->shard_bytes);
    if (r == PEN_OK)
        r = pen_pack_open(at(name), NULL, &pack, err);
    if (r < 0)
        printf("%s\n", err->message);
    return pack;
}

PenPack *help_load_pack(const char *name, uint32_t n, int bad, int mode)
{
    static const PenField fields[] = {
        {.name = "image", .type = PEN_TYPE_IMAGE},
        {.name = "mask", .type = PEN_TYPE_IMAGE, .flags = PEN_FIELD_MASK},
        {.name = "label", .type = PEN_TYPE_I64}};
    PenError err = {0};
    PenWriterSettings s;
    PenWriter *w = NULL;
    PenBuf jpeg = {0}, png = {0};
    pen_writer_settings_init(&s);
    s.fields = fields;
    s.n_fields = 3;
    s.mode = mode;
    s.no_index = bad >= 0; /* it would refuse what is broken */
    s.block_samples = 5;
    s.shard_bytes = 60000;
    int r = help_writer_open(name, &s, &w, &err);
    for (uint32_t i = 0; i < n && r == PEN_OK; i++) {
        JpegSpec spec = {.width = 60 + i % 7 * 8, .height = 50 + i % 5 * 9, .h = 2, .v = 2};
        PenPixels mask = {0};
        int64_t label = i;
        char key[32];
        int key_bytes = snprintf(key, sizeof key, "key-%u", i);
        make_jpeg(&spec, &jpeg);
        make_pixels(spec.width, spec.height, 1, i, &mask);
        png.bytes = 0;
        r = pen__png_encode(&mask, &png, &err);
        pen__pixels_free(&mask);
        if ((int)i == bad) /* a header that is right, and nothing behind it that is */
            memset(jpeg.data + jpeg.bytes / 2, 0xD9, jpeg.bytes / 2 - 2);
        PenValue values[3] = {{.data = jpeg.data, .bytes = jpeg.bytes},
                              {.data = png.data, .bytes = png.bytes},
                              {.data = &label, .bytes = sizeof label}};
        if (r == PEN_OK)
            r = pen_writer_add(w, key, (size_t)key_bytes, values, 3, &err);
    }
    pen__buf_free(&jpeg);
    pen__buf_free(&png);
    return help_writer_end(name, &s, w, r, &err);
}

PenLoaderSettings help_loader_settings(uint32_t batch)
{
    PenLoaderSettings s;
    pen_loader_settings_init(&s);
    s.last_batch = PEN_LAST_DROP;
    s.batch_size = batch;
    s.pipeline = PIPELINE;
    s.order = PEN_ORDER_RANDOM;
    s.threads = 2;
    s.io_threads = 1;
    s.memory_bytes = 64 << 20;
    s.stall_ms = 20000;
    return s;
}

static void add_list(PenSha256 *hash, const PenBatch *b, const PenList *list)
{
    pen__sha256_update(hash, list->offsets, (b->n_samples + 1) * sizeof *list->offsets);
    pen__sha256_update(hash, list->validity, (b->n_samples + 7) / 8);
}

int help_drain(PenLoader *l, PenSha256 *hash, int limit, PenError *err)
{
    int n = 0;
    for (;;) {
        PenBatch *b = NULL;
        if (n == limit)
            return n;
        int r = pen_loader_next(l, -1, &b, err);
        if (r == PEN_END)
            return n;
        if (r < 0)
            return r;
        pen__sha256_update(hash, b->samples, b->n_samples * sizeof *b->samples);
        pen__sha256_update(hash, b->valid, b->n_samples);
        for (uint32_t i = 0; i < b->n_fields; i++) {
            const PenTensor *t = &b->fields[i];
            size_t bytes = pen_dtype_bytes(t->dtype);
            for (uint32_t d = 0; d < t->n_dims; d++)
                bytes *= (size_t)t->shape[d];
            pen__sha256_update(hash, t->data, bytes);
            if (b->lists && b->lists[i].kind)
                add_list(hash, b, &b->lists[i]);
        }
        pen_batch_unref(&b);
        n++;
    }
}

uint64_t help_epoch_hash(PenPack *pack, const PenLoaderSettings *s)
{
    PenError err = {0};
    PenLoader *l = NULL;
    PenSha256 hash;
    uint8_t sum[32];
    uint64_t first;
    pen__sha256_init(&hash);
    int r = pen_loader_open(pack, s, &l, &err);
    if (r == PEN_OK)
        r = help_drain(l, &hash, -1, &err);
    pen_loader_close(&l);
    if (r < 0) {
        printf("%s\n", err.message);
        return 0;
    }
    pen__sha256_final(&hash, sum);
    memcpy(&first, sum, sizeof first);
    return first;
}
