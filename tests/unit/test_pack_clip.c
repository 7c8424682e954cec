/* SPDX-License-Identifier: Apache-2.0 */
/* Clips: written through the writer, read frame by frame with one read. */
#include "load_help.h"

enum { FRAMES = 18 };

static PenBuf frames[FRAMES];
static uint64_t reads;

static int64_t counting_pread(int fd, void *buf, size_t bytes, uint64_t offset)
{
    reads++;
    return pen__sys_real.pread(fd, buf, bytes, offset);
}

/* Sample 0: a clip of 18 frames; sample 1: one of none; sample 2: one of 3. */
static PenPack *make(const char *name, int mode)
{
    static const PenField fields[] = {{.name = "video", .type = PEN_TYPE_CLIP},
                                      {.name = "label", .type = PEN_TYPE_I64}};
    static const uint32_t counts[] = {FRAMES, 0, 3};
    PenError err = {0};
    PenWriterSettings s;
    PenWriter *w = NULL;
    pen_writer_settings_init(&s);
    s.fields = fields;
    s.n_fields = 2;
    s.mode = mode;
    int r = help_writer_open(name, &s, &w, &err);
    for (int i = 0; i < 3 && r == PEN_OK; i++) {
        PenValue parts[FRAMES];
        int64_t times[FRAMES];
        int64_t label = i;
        for (uint32_t f = 0; f < counts[i]; f++) {
            parts[f] = (PenValue){.data = frames[f].data, .bytes = frames[f].bytes};
            times[f] = (int64_t)f * 40000000;
        }
        PenValue values[2] = {
            {.frames = parts, .n_frames = counts[i], .timestamps_ns = times},
            {.data = &label, .bytes = sizeof label},
        };
        r = pen_writer_add(w, &i, sizeof i, values, 2, &err);
    }
    return help_writer_end(name, &s, w, r, &err);
}

/* Says how many bytes the frames of sample 0 have. */
static int measure(PenPack *pack, uint32_t field, uint32_t first, uint32_t step, uint32_t n,
                   PenError *err)
{
    PenFrameRange range = {.first = first, .step = step, .n = n};
    size_t bytes;
    return pen_pack_read_frames(pack, 0, field, &range, NULL, 0, &bytes, err);
}

TEST(frames_3_5_7_are_one_read)
{
    static PenSys sys;
    PenError err = {0};
    PenPack *pack = make("kept.pen", PEN_MODE_KEEP);
    CHECK(pack);
    size_t want = frames[3].bytes + frames[5].bytes + frames[7].bytes;
    size_t bytes = 0;
    size_t each[3] = {0};
    PenFrameRange range = {3, 2, 3, each};
    uint8_t *buf = malloc(want);
    uint32_t n = 0;
    CHECK_INT(pen_pack_frame_count(pack, 0, 0, &n, &err), PEN_OK); /* brings the index */
    CHECK_INT(n, FRAMES);
    sys = pen__sys_real;
    sys.pread = counting_pread;
    pen__sys = &sys;
    reads = 0;
    CHECK_INT(pen_pack_read_frames(pack, 0, 0, &range, buf, want, &bytes, &err), PEN_OK);
    CHECK_INT(reads, 1);
    pen__sys = &pen__sys_real;
    CHECK_INT(bytes, want);
    const uint8_t *p = buf;
    for (int i = 0; i < 3; i++) {
        CHECK_INT(each[i], frames[3 + 2 * i].bytes);
        CHECK_MEM(p, frames[3 + 2 * i].data, each[i]);
        p += each[i];
    }
    free(buf);
    pen_pack_close(&pack);
}

TEST(all_frames_and_none)
{
    PenError err = {0};
    PenBuf all = {0};
    PenPack *pack = make("all.pen", PEN_MODE_KEEP);
    CHECK(pack);
    help_read(pack, 0, 0, &all);
    CHECK_OK_SO_FAR();
    const uint8_t *p = all.data;
    for (int i = 0; i < FRAMES; i++) {
        CHECK_MEM(p, frames[i].data, frames[i].bytes);
        p += frames[i].bytes;
    }
    CHECK_INT(p - all.data, all.bytes);
    help_read(pack, 1, 0, &all);
    CHECK_OK_SO_FAR();
    CHECK_INT(all.bytes, 0);
    PenImage image;
    CHECK_INT(pen_pack_image(pack, 0, 0, 17, &image, &err), PEN_OK);
    CHECK_INT(image.timestamp_ns, 17 * 40000000);
    CHECK_INT(image.bytes, frames[17].bytes);
    CHECK_INT(image.codec, PEN_STORED_JPEG);
    pen__buf_free(&all);
    pen_pack_close(&pack);
}

TEST(frames_that_are_not_there_are_errors)
{
    PenError err = {0};
    PenImage image;
    PenPack *pack = make("errors.pen", PEN_MODE_KEEP);
    CHECK(pack);
    CHECK_INT(pen_pack_image(pack, 0, 0, 18, &image, &err), PEN_E_NOT_FOUND);
    CHECK(strstr(err.message, "frame 18: expected a number below 18"));
    CHECK_INT(pen_pack_image(pack, 1, 0, 0, &image, &err), PEN_E_NOT_FOUND);
    CHECK_INT(measure(pack, 0, 3, 8, 3, &err), PEN_E_NOT_FOUND);
    CHECK_INT(measure(pack, 0, 0, 0, 2, &err), PEN_E_INVALID);
    CHECK_INT(measure(pack, 1, 0, 1, 1, &err), PEN_E_INVALID);
    CHECK_INT(measure(pack, 0, 1, UINT32_MAX, 3, &err), PEN_E_NOT_FOUND);
    pen_pack_close(&pack);
}

TEST(tiled_and_raw_clips_verify)
{
    static const int modes[] = {PEN_MODE_TILE, PEN_MODE_RAW};
    for (int i = 0; i < 2; i++) {
        PenError err = {0};
        PenVerifySettings v;
        PenVerifyResult result;
        PenPack *pack = make(i ? "raw.pen" : "tiled.pen", modes[i]);
        CHECK(pack);
        pen_verify_settings_init(&v);
        v.decode = 1;
        v.threads = 1;
        CHECK_INT(pen_pack_verify(pack, &v, &result, &err), PEN_OK);
        CHECK_INT(result.images, FRAMES + 3);
        pen_pack_close(&pack);
    }
}

int main(int argc, char **argv)
{
    TEST_START(argc, argv);
    help_begin();
    for (uint32_t i = 0; i < FRAMES; i++)
        help_jpeg(i, &frames[i]);
    RUN(frames_3_5_7_are_one_read);
    RUN(all_frames_and_none);
    RUN(frames_that_are_not_there_are_errors);
    RUN(tiled_and_raw_clips_verify);
    for (uint32_t i = 0; i < FRAMES; i++)
        pen__buf_free(&frames[i]);
    help_end();
    return TEST_END();
}
