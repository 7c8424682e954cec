/* SPDX-License-Identifier: Apache-2.0 */
/* Batches of clips: what images would be, frame by frame; one read for each clip. */
#include <stdatomic.h>

#include "clip_frame.h"
#include "clip_help.h"
#include "pack/format/block_read.h"

enum { N = 12, T = 6 };

static const int modes[] = {PEN_MODE_KEEP, PEN_MODE_TILE, PEN_MODE_RAW};
static const char *const names[] = {"kept.pen", "tiled.pen", "raw.pen"};
static PenPack *packs[3];

/* ---- what is in them ---- */

/* Every frame is what the same pipeline makes of it alone, with the draws of its sample. */
TEST(a_batch_is_its_frames)
{
    FrameCook *cook = frame_cook_new("decode | random_resized_crop 16,20 | hflip | tensor u8");
    CHECK(cook);
    for (int m = 0; m < 3; m++) {
        PenError err = {0};
        PenLoader *l = NULL;
        PenBatch *b = NULL;
        PenLoaderSettings s = clip_settings(4, CLIP_PIPELINE);
        s.seed = 11 + (uint64_t)m;
        CHECK_INT(pen_loader_open(packs[m], &s, &l, &err), PEN_OK);
        CHECK_INT(pen_loader_fields(l), 3);
        CHECK_STR(pen_loader_field_name(l, 0), "video");
        CHECK_STR(pen_loader_field_name(l, 1), "video_times");
        CHECK_STR(pen_loader_field_name(l, 2), "label");
        for (int g = 0; g < N / 4; g++) {
            CHECK_INT(pen_loader_next(l, -1, &b, &err), PEN_OK);
            const PenTensor *v = &b->fields[0], *t = &b->fields[1];
            CHECK_INT(v->n_dims, 5);
            CHECK_MEM(v->shape, ((int64_t[]){4, T, 16, 20, 3}), 5 * sizeof *v->shape);
            CHECK_INT(t->n_dims, 2);
            CHECK_INT(t->dtype, PEN_I64);
            CHECK_MEM(t->shape, ((int64_t[]){4, T}), 2 * sizeof *t->shape);
            for (uint32_t i = 0; i < 4; i++)
                for (uint32_t k = 0; k < T; k++) {
                    uint8_t frame[16 * 20 * 3];
                    int64_t time = ((const int64_t *)t->data)[i * T + k];
                    CHECK_INT(time % CLIP_GAP_NS, 0);
                    CHECK_INT(frame_cook(cook, packs[m], b->samples[i],
                                         (uint32_t)(time / CLIP_GAP_NS), s.seed, frame),
                              PEN_OK);
                    CHECK_MEM((const uint8_t *)v->data + (i * T + k) * sizeof frame, frame,
                              sizeof frame);
                }
            pen_batch_unref(&b);
        }
        pen_loader_close(&l);
    }
    frame_cook_free(&cook);
}

static uint8_t *epoch_of(PenPack *pack, const char *pipeline, uint64_t *ret_bytes)
{
    PenError err = {0};
    PenLoader *l = NULL;
    PenBatch *b = NULL;
    PenLoaderSettings s = clip_settings(N, pipeline);
    uint8_t *all = NULL;
    if (pen_loader_open(pack, &s, &l, &err) < 0 || pen_loader_next(l, -1, &b, &err) != PEN_OK) {
        printf("%s\n", err.message);
    } else {
        const PenTensor *t = &b->fields[0];
        *ret_bytes = pen_dtype_bytes(t->dtype);
        for (uint32_t i = 0; i < t->n_dims; i++)
            *ret_bytes *= (uint64_t)t->shape[i];
        all = malloc(*ret_bytes);
        memcpy(all, t->data, *ret_bytes);
    }
    pen_batch_unref(&b);
    pen_loader_close(&l);
    return all;
}

/* The same values in another order of dimensions; behind it two bytes of an element. */
TEST(layouts_are_turned_and_no_more)
{
    static const struct {
        const char *last, *planes, *frames;
        uint32_t element;
    } kinds[] = {{"u8 nthwc", "u8 ncthw", "u8 ntchw", 1},
                 {"f16 nhwc", "f16 nchw", "f16 ntchw", 2},
                 {"f32 nhwc", "f32 nchw", "f32 ntchw", 4}};
    enum { H = 9, W = 7, C = 3 };
    for (int k = 0; k < 3; k++) {
        char text[200];
        const char *begin = "decode | clip 6 3 center | random_resized_crop 9,7 | color_jitter 0.3 "
                            "hue=0.1 | normalize | random_erasing 0.7 value=1 | tensor";
        if (k == 0)
            begin = "decode | clip 6 3 center | random_resized_crop 9,7 | random_erasing | tensor";
        uint64_t bytes = 0, e = kinds[k].element;
        snprintf(text, sizeof text, "%s %s", begin, kinds[k].last);
        uint8_t *last = epoch_of(packs[0], text, &bytes);
        snprintf(text, sizeof text, "%s %s", begin, kinds[k].planes);
        uint8_t *planes = epoch_of(packs[0], text, &bytes);
        snprintf(text, sizeof text, "%s %s", begin, kinds[k].frames);
        uint8_t *frames = epoch_of(packs[0], text, &bytes);
        CHECK(last && planes && frames);
        CHECK_INT(bytes, (uint64_t)N * T * H * W * C * e);
        for (uint32_t i = 0; i < N * T * H * W * C; i++) {
            uint32_t c = i % C, x = i / C % W, y = i / C / W % H, t = i / C / W / H % T,
                     n = i / C / W / H / T;
            CHECK_MEM(last + i * e, planes + ((((n * C + c) * T + t) * H + y) * W + x) * e, e);
            CHECK_MEM(last + i * e, frames + ((((n * T + t) * C + c) * H + y) * W + x) * e, e);
        }
        free(last);
        free(planes);
        free(frames);
    }
}

/* Three boxes are those of three loaders that cut each of them. */
TEST(three_crops_are_three_clips)
{
    uint64_t bytes = 0, one = 0;
    const uint64_t view = (uint64_t)T * 32 * 32 * 3;
    uint8_t *all =
        epoch_of(packs[0], "decode | clip 6 offset=0 n=2 | resize 32 | three_crop 32", &bytes);
    uint8_t *centre =
        epoch_of(packs[0], "decode | clip 6 offset=0 n=2 | resize 32 | center_crop 32", &one);
    CHECK(all && centre);
    CHECK_INT(bytes, 3 * one);
    for (uint64_t i = 0; i < N; i++)
        for (uint64_t k = 0; k < 2; k++)
            CHECK_MEM(all + (i * 6 + k * 3 + 1) * view, centre + (i * 2 + k) * view, view);
    CHECK(memcmp(all, all + view, view) != 0 && memcmp(all, all + 2 * view, view) != 0);
    free(all);
    free(centre);
}

/* ---- what is read ---- */

static atomic_uint_fast64_t reads, read_bytes;

static int64_t counting_pread(int fd, void *buf, size_t bytes, uint64_t offset)
{
    atomic_fetch_add(&reads, 1);
    atomic_fetch_add(&read_bytes, bytes);
    return pen__sys_real.pread(fd, buf, bytes, offset);
}

/* Bytes from the first of these frames to the last. */
static uint64_t span_of(PenPack *pack, uint64_t sample, uint32_t first, uint32_t last)
{
    uint64_t bytes = 0;
    PenImage im;
    for (uint32_t f = first; f <= last; f++)
        if (pen_pack_image(pack, sample, 0, f, &im, NULL) == PEN_OK)
            bytes += im.bytes;
    return bytes;
}

static uint32_t all_frames(uint32_t sample)
{
    (void)sample;
    return CLIP_FRAMES;
}

/* Reads of a second pass: the indexes are in memory by then. */
static void count_reads(PenPack *pack, const char *pipeline, uint64_t expected, uint64_t bytes)
{
    PenError err = {0};
    PenLoader *l = NULL;
    PenSha256 hash;
    PenLoaderSettings s = clip_settings(4, pipeline);
    pen__sha256_init(&hash);
    CHECK_INT(pen_loader_open(pack, &s, &l, &err), PEN_OK);
    CHECK_INT(help_drain(l, &hash, -1, &err), N / 4);
    reads = read_bytes = 0;
    int n = help_drain(l, &hash, -1, &err);
    pen_loader_close(&l);
    CHECK_INT(n, N / 4);
    CHECK_INT(reads, expected);
    if (bytes)
        CHECK_INT(read_bytes, bytes);
}

TEST(a_clip_is_one_read)
{
    for (int m = 0; m < 3; m++) {
        ClipSpec spec = {.n = N, .mode = modes[m], .frames = all_frames, .bad_sample = -1};
        PenPack *pack = clip_pack(m ? m == 1 ? "long-t.pen" : "long-r.pen" : "long.pen", &spec);
        CHECK(pack);
        uint64_t some = 0, strided = 0, all = 0;
        for (uint64_t i = 0; i < N; i++) {
            some += span_of(pack, i, 10, 17);
            strided += span_of(pack, i, 3, 3 + 17 * 2);
            all += span_of(pack, i, 0, CLIP_FRAMES - 1);
        }
        count_reads(pack, "decode | clip 8 1 10 | center_crop 16", N, some);
        CHECK_OK_SO_FAR();
        count_reads(pack, "decode | clip 18 2 3 | center_crop 16", N, strided);
        CHECK_OK_SO_FAR();
        count_reads(pack, "decode | clip 4 7 random | center_crop 16", N, 0);
        CHECK_OK_SO_FAR();
        count_reads(pack, "decode | clip 80 1 loop offset=3 | center_crop 16", N, all);
        CHECK_OK_SO_FAR();
        count_reads(pack, "decode | clip indices=17,10,12,17 | center_crop 16", N, some);
        CHECK_OK_SO_FAR();
        count_reads(pack, "decode | clip 8 fps=25 offset=0.4 | center_crop 16", N, some);
        CHECK_OK_SO_FAR();
        /* Several clips near each other share one. */
        count_reads(pack, "decode | clip 4 2 3 n=2 | three_crop 16", N, 0);
        CHECK_OK_SO_FAR();
        pen_pack_close(&pack);
    }
}

/* ---- damage ---- */

TEST(a_broken_frame_is_named_and_replaced)
{
    PenError err = {0};
    PenLoader *l = NULL;
    PenBatch *b = NULL;
    PenBadSample bad;
    PenSha256 hash;
    ClipSpec spec = {
        .n = N, .mode = PEN_MODE_KEEP, .frames = all_frames, .bad_sample = 6, .bad_frame = 21};
    PenPack *pack = clip_pack("broken.pen", &spec);
    CHECK(pack);
    PenLoaderSettings s = clip_settings(4, "decode | clip 4 1 20 | center_crop 16");
    CHECK_INT(pen_loader_open(pack, &s, &l, &err), PEN_OK);
    CHECK_INT(pen_loader_next(l, -1, &b, &err), PEN_OK);
    pen_batch_unref(&b);
    CHECK_INT(pen_loader_next(l, -1, &b, &err), PEN_E_DECODE);
    CHECK_INT(err.sample, 6);
    if (!strstr(err.message, "sample 6 'clip-6': frame 21: "))
        CHECK_STR(err.message, "sample 6 'clip-6': frame 21: ...");
    CHECK_INT(pen_loader_next(l, -1, &b, &err), PEN_OK);
    pen_batch_unref(&b);
    pen_loader_close(&l);

    s.on_bad = PEN_BAD_SUBSTITUTE;
    uint64_t expected = help_epoch_hash(pack, &s);
    CHECK(expected);
    s.threads = 5;
    CHECK_INT(help_epoch_hash(pack, &s), expected);
    pen__sha256_init(&hash);
    CHECK_INT(pen_loader_open(pack, &s, &l, &err), PEN_OK);
    CHECK_INT(help_drain(l, &hash, -1, &err), N / 4);
    CHECK_INT(pen_loader_bad_sample(l, 0, &bad), PEN_OK);
    CHECK_INT(bad.sample, 6);
    CHECK(strstr(bad.message, "frame 21"));
    CHECK_INT(pen_loader_bad_sample(l, 1, &bad), PEN_END);
    pen_loader_close(&l);
    /* Nobody asks for that frame. */
    s.on_bad = PEN_BAD_RAISE;
    s.pipeline = "decode | clip 4 1 22 | center_crop 16";
    CHECK(help_epoch_hash(pack, &s));
    pen_pack_close(&pack);
}

/* One bit of frame `frame` on disk. */
static void flip(PenPack *pack, uint64_t sample, uint32_t frame)
{
    PenBlock *b = NULL;
    uint32_t in_block = 0;
    CHECK_INT(pen__pack_locate(pack, sample, &b, &in_block, NULL), PEN_OK);
    PenImageEntry e = pen__block_image(&b->view, in_block, 0, frame);
    FILE *f = fopen(b->shard->shard.source->name, "r+b");
    CHECK(f);
    long place = (long)(b->offset + e.offset + e.bytes / 2);
    CHECK_INT(fseek(f, place, SEEK_SET), 0);
    int c = fgetc(f);
    CHECK_INT(fseek(f, place, SEEK_SET), 0);
    fputc(c ^ 4, f);
    fclose(f);
    pen__pack_block_put(pack, b);
}

TEST(a_damaged_frame_is_seen_when_it_is_needed)
{
    for (int m = 0; m < 3; m++) {
        PenError err = {0};
        PenLoader *l = NULL;
        PenBatch *b = NULL;
        ClipSpec spec = {.n = N, .mode = modes[m], .frames = all_frames, .bad_sample = -1};
        PenPack *pack = clip_pack(m ? m == 1 ? "dam-t.pen" : "dam-r.pen" : "dam.pen", &spec);
        CHECK(pack);
        flip(pack, 2, 25);
        CHECK_OK_SO_FAR();
        /* Between those that are needed it does not matter, though it is read. */
        PenLoaderSettings s = clip_settings(4, "decode | clip 5 2 20 | center_crop 16");
        CHECK(help_epoch_hash(pack, &s));
        s.pipeline = "decode | clip 5 1 23 | center_crop 16";
        CHECK_INT(pen_loader_open(pack, &s, &l, &err), PEN_OK);
        CHECK_INT(pen_loader_next(l, -1, &b, &err), PEN_E_CORRUPT);
        CHECK_INT(err.sample, 2);
        if (!strstr(err.message, "sample 2 'clip-2': frame 25: "))
            CHECK_STR(err.message, "sample 2 'clip-2': frame 25: ...");
        pen_loader_close(&l);
        s.on_bad = PEN_BAD_SUBSTITUTE;
        CHECK(help_epoch_hash(pack, &s));
        pen_pack_close(&pack);
    }
}

/* What no pad hides is an error for good, whatever is done about broken ones. */
static uint32_t none_at_3(uint32_t sample)
{
    return sample == 3 ? 0 : 1 + sample;
}

TEST(short_clips_and_empty_ones)
{
    PenError err = {0};
    PenLoader *l = NULL;
    PenBatch *b = NULL;
    ClipSpec spec = {.n = N, .mode = PEN_MODE_KEEP, .frames = none_at_3, .bad_sample = -1};
    PenPack *pack = clip_pack("short.pen", &spec);
    CHECK(pack);
    PenLoaderSettings s = clip_settings(4, "decode | clip 7 1 none | center_crop 16");
    s.on_bad = PEN_BAD_SUBSTITUTE;
    CHECK_INT(pen_loader_open(pack, &s, &l, &err), PEN_OK);
    CHECK_INT(pen_loader_next(l, -1, &b, &err), PEN_E_INVALID);
    CHECK_STR(
        err.message,
        "sample 0 'clip-0': clip: frame 1 requested (7 frames, stride 1), but the clip "
        "has 1, and pad is none; use pad=last or pad=loop, or leave the sample out with a subset");
    CHECK_INT(pen_loader_next(l, -1, &b, &err), PEN_E_INVALID);
    CHECK_INT(pen_loader_next(l, -1, &b, &err), PEN_OK);
    pen_batch_unref(&b);
    pen_loader_close(&l);
    s.pipeline = "decode | clip 7 1 last | center_crop 16";
    CHECK_INT(pen_loader_open(pack, &s, &l, &err), PEN_OK);
    CHECK_INT(pen_loader_next(l, -1, &b, &err), PEN_E_NOT_FOUND);
    CHECK_INT(err.sample, 3);
    CHECK_STR(err.message,
              "sample 3 'clip-3': clip: no frames; leave the sample out with a subset");
    pen_loader_close(&l);
    pen_pack_close(&pack);
}

/* ---- what does not matter ---- */

TEST(the_same_whatever_the_threads_and_memory)
{
    PenLoaderSettings s = clip_settings(
        5,
        "decode | clip 5 2 n=2 times=yes | random_resized_crop 16 | color_jitter 0.3 | tensor f16");
    for (int order = 0; order <= PEN_ORDER_STICKY; order++) {
        s.order = order;
        s.shuffle_buffer = 2;
        s.threads = s.io_threads = 1;
        s.memory_bytes = 64 << 20;
        uint64_t expected = help_epoch_hash(packs[1], &s);
        CHECK(expected);
        for (int threads = 2; threads <= 8; threads *= 2) {
            s.threads = threads;
            s.io_threads = threads / 2;
            s.memory_bytes = threads == 4 ? 18 << 20 : 256 << 20;
            CHECK_INT(help_epoch_hash(packs[1], &s), expected);
        }
    }
}

TEST(fields_are_found_and_refused)
{
    PenError err = {0};
    PenLoader *l = NULL;
    PenLoaderSettings s = clip_settings(4, "decode | center_crop 8");
    CHECK_INT(pen_loader_open(packs[0], &s, &l, &err), PEN_E_INVALID);
    CHECK(strstr(err.message, "select frames of the clip first"));
    s.pipeline = "label: tensor; video: decode | clip 2 times=yes | center_crop 8";
    CHECK_INT(pen_loader_open(packs[0], &s, &l, &err), PEN_OK);
    CHECK_STR(pen_loader_field_name(l, 0), "label");
    CHECK_STR(pen_loader_field_name(l, 2), "video_times");
    CHECK_INT(pen_loader_field_tensor(l, 2).n_dims, 2);
    pen_loader_close(&l);
    s.pipeline = "video: decode | clip 2 n=3 times=yes | three_crop 8";
    CHECK_INT(pen_loader_open(packs[0], &s, &l, &err), PEN_OK);
    CHECK_MEM(pen_loader_field_tensor(l, 1).shape, ((int64_t[]){4, 9, 2}), 3 * sizeof(int64_t));
    pen_loader_close(&l);
    s.pipeline = "video_times: tensor";
    CHECK_INT(pen_loader_open(packs[0], &s, &l, &err), PEN_E_INVALID);
}

int main(int argc, char **argv)
{
    static PenSys counting; /* for all of it: threads look at the system interface all the time */
    TEST_START(argc, argv);
    counting = pen__sys_real;
    counting.pread = counting_pread;
    pen__sys = &counting;
    help_begin();
    for (int m = 0; m < 3; m++) {
        ClipSpec spec = {.n = N, .mode = modes[m], .frames = clip_lengths, .bad_sample = -1};
        packs[m] = clip_pack(names[m], &spec);
    }
    RUN(a_batch_is_its_frames);
    RUN(layouts_are_turned_and_no_more);
    RUN(three_crops_are_three_clips);
    RUN(a_clip_is_one_read);
    RUN(a_broken_frame_is_named_and_replaced);
    RUN(a_damaged_frame_is_seen_when_it_is_needed);
    RUN(short_clips_and_empty_ones);
    RUN(the_same_whatever_the_threads_and_memory);
    RUN(fields_are_found_and_refused);
    for (int m = 0; m < 3; m++)
        pen_pack_close(&packs[m]);
    help_end();
    return TEST_END();
}
