/* SPDX-License-Identifier: Apache-2.0 */
/* Everything in a pack as text, through the public calls alone: tests compare it with what the
 * plain reader finds. A pack that is not right ends it with a line "error STATUS message". */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <penstock/penstock.h>

static const char *status_name(int status)
{
    switch (status) {
#define XX(name, value, text)                                                                      \
    case value:                                                                                    \
        return #name;
        PEN_STATUS_MAP(XX)
#undef XX
    default:
        return "?";
    }
}

static void print_error(const char *what, const PenError *e)
{
    printf("%s %s %s\n", what, status_name(e->status), e->message);
}

static void on_problem(void *ctx, const PenError *e)
{
    (void)ctx;
    print_error("problem", e);
}

static void print_hex(const char *what, const void *data, size_t bytes)
{
    const uint8_t *p = data;
    printf("%s ", what);
    for (size_t i = 0; i < bytes; i++)
        printf("%02x", p[i]);
    printf("\n");
}

/* What is being looked at, and a buffer for its bytes. */
typedef struct Dump {
    PenPack *pack;
    uint64_t sample;
    uint32_t field;
    uint8_t *buf;
    size_t cap;
} Dump;

static void make_room(Dump *d, size_t bytes)
{
    if (bytes <= d->cap)
        return;
    free(d->buf);
    d->buf = malloc(bytes);
    d->cap = bytes;
    if (!d->buf)
        abort();
}

static int dump_metadata(Dump *d, uint32_t frame, PenError *e)
{
    size_t bytes = 0;
    int r = pen_pack_metadata(d->pack, d->sample, d->field, frame, NULL, 0, &bytes, e);
    if (r < 0 || bytes == 0)
        return r;
    make_room(d, bytes);
    r = pen_pack_metadata(d->pack, d->sample, d->field, frame, d->buf, d->cap, &bytes, e);
    if (r == PEN_OK)
        print_hex("    metadata", d->buf, bytes);
    return r;
}

static int dump_image(Dump *d, uint32_t frame, PenError *e)
{
    PenImage i;
    int r = pen_pack_image(d->pack, d->sample, d->field, frame, &i, e);
    if (r < 0)
        return r;
    printf("    image %u codec %u how %u orientation %u channels %u size %ux%u bytes %" PRIu64
           " source %" PRIu64 " time %" PRIi64 "\n",
           frame, i.codec, i.how, i.orientation, i.channels, i.width, i.height, i.bytes,
           i.source_bytes, i.timestamp_ns);
    return i.codec == PEN_STORED_NONE ? PEN_OK : dump_metadata(d, frame, e);
}

/* A clip that is stored as a video; 0: it is not. */
static int dump_video(Dump *d, PenError *e)
{
    PenClipVideo v;
    uint32_t n = 0;
    int r = pen_pack_video(d->pack, d->sample, d->field, &v, e);
    if (r != 1)
        return r;
    make_room(d, v.n_frames * sizeof(int64_t));
    r = pen_pack_frame_times(d->pack, d->sample, d->field, (int64_t *)(void *)d->buf, v.n_frames,
                             &n, e);
    if (r < 0)
        return r;
    printf("    video codec %u container %u orientation %u depth %u size %ux%u bytes %" PRIu64
           " source %" PRIu64 " times",
           v.codec, v.container, v.orientation, v.depth, v.width, v.height, v.bytes,
           v.source_bytes);
    for (uint32_t i = 0; i < n; i++)
        printf(" %" PRIi64, ((const int64_t *)(const void *)d->buf)[i]);
    printf("\n");
    return 1;
}

static int dump_missing(Dump *d, PenError *e)
{
    int32_t missing = 0;
    int r = pen_pack_missing(d->pack, d->sample, d->field, &missing, e);
    if (r == PEN_OK && missing)
        printf("    missing\n");
    return r;
}

static int dump_field(Dump *d, const PenField *f, PenError *e)
{
    size_t bytes = 0;
    uint32_t frames = 0;
    int r = pen_pack_read(d->pack, d->sample, d->field, NULL, 0, &bytes, e);
    if (r < 0)
        return r;
    make_room(d, bytes);
    r = pen_pack_read(d->pack, d->sample, d->field, d->buf, d->cap, &bytes, e);
    if (r < 0)
        return r;
    printf("  field %s %s\n", f->name, pen_type_name(f->type));
    print_hex("    bytes", d->buf, bytes);
    if (f->flags & PEN_FIELD_OPTIONAL)
        return dump_missing(d, e);
    if (f->type == PEN_TYPE_IMAGE)
        return dump_image(d, 0, e);
    if (f->type == PEN_TYPE_CLIP && (r = dump_video(d, e)))
        return r < 0 ? r : PEN_OK;
    if (f->type == PEN_TYPE_CLIP)
        r = pen_pack_frame_count(d->pack, d->sample, d->field, &frames, e);
    for (uint32_t frame = 0; frame < frames && r == PEN_OK; frame++)
        r = dump_image(d, frame, e);
    return r;
}

static int dump_sample(Dump *d, PenError *e)
{
    const PenPackInfo *info = pen_pack_info(d->pack);
    uint8_t key[4096];
    size_t bytes = 0;
    uint64_t found = 0;
    int r = pen_pack_key(d->pack, d->sample, key, sizeof key, &bytes, e);
    if (r == PEN_OK)
        r = pen_pack_find(d->pack, key, bytes, &found, e);
    if (r < 0)
        return r;
    printf("sample %" PRIu64 " found %" PRIu64 "\n", d->sample, found);
    print_hex("  key", key, bytes);
    for (d->field = 0; d->field < info->n_fields && r == PEN_OK; d->field++)
        r = dump_field(d, &info->fields[d->field], e);
    return r;
}

static int dump_pack(PenPack *pack, PenError *e)
{
    const PenPackInfo *info = pen_pack_info(pack);
    Dump d = {.pack = pack};
    int r = PEN_OK;
    printf("pack samples %" PRIu64 " blocks %" PRIu64 " of %" PRIu64 " shards %" PRIu64 "\n",
           info->n_samples, info->n_blocks, info->block_samples, info->n_shards);
    print_hex("id", info->id, sizeof info->id);
    for (uint32_t i = 0; i < info->n_classes; i++)
        print_hex("class", info->classes[i], strlen(info->classes[i]));
    for (; d.sample < info->n_samples && r == PEN_OK; d.sample++)
        r = dump_sample(&d, e);
    free(d.buf);
    return r;
}

static int run(const char *path, PenError *e)
{
    PenPack *pack = NULL;
    PenVerifySettings settings;
    PenVerifyResult result;
    pen_verify_settings_init(&settings);
    settings.decode = 1;
    settings.threads = 1;
    settings.problem = on_problem;
    int r = pen_pack_open(path, NULL, &pack, e);
    if (r == PEN_OK)
        r = pen_pack_verify(pack, &settings, &result, e);
    if (r == PEN_OK)
        r = dump_pack(pack, e);
    pen_pack_close(&pack);
    return r;
}

int main(int argc, char **argv)
{
    PenError e = {0};
    if (argc != 2) {
        fprintf(stderr, "usage: golden_dump NAME.pen\n");
        return 2;
    }
    if (run(argv[1], &e) == PEN_OK)
        return 0;
    print_error("error", &e);
    return 1;
}
