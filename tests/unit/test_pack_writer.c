/* SPDX-License-Identifier: Apache-2.0 */
/* Every type of field, in and out again. */
#include "pack/write/roll.h"
#include "pack_help.h"

static const PenField fields[] = {
    {.name = "image", .type = PEN_TYPE_IMAGE},
    {.name = "mask", .type = PEN_TYPE_IMAGE, .flags = PEN_FIELD_MASK},
    {.name = "clip", .type = PEN_TYPE_CLIP},
    {.name = "blob", .type = PEN_TYPE_BYTES},
    {.name = "note", .type = PEN_TYPE_JSON},
    {.name = "text", .type = PEN_TYPE_TEXT},
    {.name = "label", .type = PEN_TYPE_I64},
    {.name = "box", .type = PEN_TYPE_F32, .n_dims = 2, .dims = {2, 2}},
    {.name = "score", .type = PEN_TYPE_F64},
};
enum { N_FIELDS = sizeof fields / sizeof *fields, N = 10 };

typedef struct Sample {
    PenBuf image, mask, frame[2];
    char blob[64], note[64], text[64], key[32];
    int64_t label;
    float box[4];
    double score;
    PenValue frames[2], values[N_FIELDS];
} Sample;

static Sample samples[N];

static void make_mask(uint32_t number, PenBuf *out)
{
    PenPixels p;
    PenError err;
    make_pixels(40, 30, 1, number, &p);
    CHECK_INT(pen__png_encode(&p, out, &err), PEN_OK);
    pen__pixels_free(&p);
}

static void make_sample(uint32_t i)
{
    Sample *s = &samples[i];
    help_jpeg(i, &s->image);
    make_mask(i, &s->mask);
    help_jpeg(100 + i, &s->frame[0]);
    help_jpeg(200 + i, &s->frame[1]);
    snprintf(s->blob, sizeof s->blob, "blob %u", i);
    snprintf(s->note, sizeof s->note, "{\"n\":%u}", i);
    snprintf(s->text, sizeof s->text, "text %u", i);
    snprintf(s->key, sizeof s->key, "key/%u", i);
    s->label = -(int64_t)i;
    for (int k = 0; k < 4; k++)
        s->box[k] = (float)i + (float)k / 4;
    s->score = i / 3.0;
    for (int k = 0; k < 2; k++)
        s->frames[k] = (PenValue){.data = s->frame[k].data, .bytes = s->frame[k].bytes};
    PenValue *v = s->values;
    v[0] = (PenValue){.data = s->image.data, .bytes = s->image.bytes};
    if (i % 3) /* some have no mask */
        v[1] = (PenValue){.data = s->mask.data, .bytes = s->mask.bytes};
    v[2] = (PenValue){.frames = s->frames, .n_frames = i % 3};
    v[3] = (PenValue){.data = s->blob, .bytes = strlen(s->blob)};
    v[4] = (PenValue){.data = s->note, .bytes = strlen(s->note)};
    v[5] = (PenValue){.data = s->text, .bytes = i == 4 ? 0 : strlen(s->text)};
    v[6] = (PenValue){.data = &s->label, .bytes = 8};
    v[7] = (PenValue){.data = s->box, .bytes = sizeof s->box};
    v[8] = (PenValue){.data = &s->score, .bytes = 8};
}

static PenWriterSettings settings(int mode)
{
    PenWriterSettings s;
    pen_writer_settings_init(&s);
    s.fields = fields;
    s.n_fields = N_FIELDS;
    s.mode = mode;
    s.block_samples = 4;
    s.shard_bytes = 20000;
    return s;
}

static int add(PenWriter *w, uint32_t i, PenError *err)
{
    const Sample *s = &samples[i];
    return pen_writer_add(w, s->key, strlen(s->key), s->values, N_FIELDS, err);
}

static int64_t no_space(int fd, const struct iovec *iov, int n, uint64_t offset)
{
    (void)fd, (void)iov, (void)n, (void)offset;
    return -ENOSPC;
}

static int write_all(const char *path, const PenWriterSettings *s, PenError *err)
{
    PenWriter *w = NULL;
    uint64_t n = 0;
    int r = pen_writer_open(path, s, &w, err);
    for (uint32_t i = 0; i < N && r == PEN_OK; i++)
        r = add(w, i, err);
    if (r == PEN_OK)
        r = pen_writer_finish(w, &n, err);
    if (r == PEN_OK && pen_writer_finish(w, &n, NULL) != PEN_E_INVALID)
        r = PEN_E_EXISTS; /* once only */
    pen_writer_close(&w);
    return r;
}

static void check_sample(PenPack *pack, uint32_t i)
{
    const Sample *s = &samples[i];
    PenError err = {0};
    PenBuf buf = {0};
    char key[64] = {0};
    size_t bytes;
    uint64_t found = 99;
    CHECK_INT(pen_pack_key(pack, i, key, sizeof key, &bytes, &err), PEN_OK);
    CHECK_STR(key, s->key);
    CHECK_INT(pen_pack_find(pack, s->key, strlen(s->key), &found, &err), PEN_OK);
    CHECK_INT(found, i);
    for (uint32_t f = 0; f < N_FIELDS; f++) {
        help_read(pack, i, f, &buf);
        CHECK_OK_SO_FAR();
        if (f == 2) {
            uint32_t n = 0;
            CHECK_INT(pen_pack_frame_count(pack, i, f, &n, &err), PEN_OK);
            CHECK_INT(n, s->values[f].n_frames);
            continue;
        }
        CHECK_INT(buf.bytes, s->values[f].bytes);
        CHECK_MEM(buf.data, s->values[f].data, buf.bytes);
    }
    pen__buf_free(&buf);
}

TEST(every_type_comes_back)
{
    PenError err = {0};
    PenPack *pack = NULL;
    PenWriterSettings s = settings(PEN_MODE_KEEP);
    static const char *const classes[] = {"no", "yes"};
    s.class_field = "label";
    s.classes = classes;
    s.n_classes = 2;
    CHECK_INT(write_all(at("all.pen"), &s, &err), PEN_OK);
    CHECK_INT(pen_pack_open(at("all.pen"), NULL, &pack, &err), PEN_OK);
    const PenPackInfo *info = pen_pack_info(pack);
    CHECK_INT(info->n_samples, N);
    CHECK_INT(info->n_blocks, 3);
    CHECK(info->n_shards > 1);
    CHECK_INT(info->n_fields, N_FIELDS);
    CHECK_INT(info->fields[7].dims[1], 2);
    CHECK_INT(info->fields[1].flags, PEN_FIELD_MASK);
    CHECK_INT(info->class_field, 6);
    CHECK_STR(info->classes[1], "yes");
    for (uint32_t i = 0; i < N; i++)
        check_sample(pack, i);
    uint64_t found;
    CHECK_INT(pen_pack_find(pack, "key/10", 6, &found, &err), PEN_E_NOT_FOUND);
    CHECK_INT(pen_pack_read(pack, N, 0, NULL, 0, &(size_t){0}, &err), PEN_E_NOT_FOUND);
    CHECK_INT(pen_pack_read(pack, 0, N_FIELDS, NULL, 0, &(size_t){0}, &err), PEN_E_NOT_FOUND);
    uint8_t small[4];
    CHECK_INT(pen_pack_read(pack, 0, 0, small, sizeof small, &(size_t){0}, &err), PEN_E_LIMIT);
    pen_pack_close(&pack);
}

TEST(every_mode_verifies)
{
    for (int mode = PEN_MODE_KEEP; mode <= PEN_MODE_MIX; mode++) {
        PenError err = {0};
        PenPack *pack = NULL;
        PenVerifySettings v;
        PenVerifyResult result;
        PenWriterSettings s = settings(mode);
        char name[32];
        if (mode >= PEN_MODE_ENCODE)
            s.max_side = 100;
        snprintf(name, sizeof name, "mode%d.pen", mode);
        CHECK_INT(write_all(at(name), &s, &err), PEN_OK);
        CHECK_INT(pen_pack_open(at(name), NULL, &pack, &err), PEN_OK);
        pen_verify_settings_init(&v);
        v.decode = 1;
        CHECK_INT(pen_pack_verify(pack, &v, &result, &err), PEN_OK);
        CHECK_INT(result.samples, N);
        PenImage image;
        CHECK_INT(pen_pack_image(pack, 1, 0, 0, &image, &err), PEN_OK);
        CHECK_INT(PEN_MAX(image.width, image.height) <= 100, mode >= PEN_MODE_ENCODE);
        CHECK_INT(pen_pack_image(pack, 1, 1, 0, &image, &err), PEN_OK);
        CHECK(image.codec != PEN_STORED_JPEG); /* a mask is never encoded with loss */
        pen_pack_close(&pack);
    }
}

TEST(only_modes_with_an_index_can_leave_it_out)
{
    for (int mode = PEN_MODE_TILE; mode <= PEN_MODE_SMART; mode++) {
        PenError err = {0};
        PenWriter *w = NULL;
        PenWriterSettings s = settings(mode);
        s.no_index = 1;
        int r = pen_writer_open(at("no_index.pen"), &s, &w, &err);
        int has = mode == PEN_MODE_KEEP || mode == PEN_MODE_ENCODE || mode == PEN_MODE_SMART;
        CHECK_INT(r, has ? PEN_OK : PEN_E_INVALID);
        const char *text = mode == PEN_MODE_TILE ? "are no longer written; use the mode keep"
                                                 : "only the modes keep, encode and smart can do";
        CHECK(has || strstr(err.message, text));
        pen_writer_close(&w);
    }
}

TEST(a_key_twice_is_an_error_and_leaves_no_pack)
{
    PenError err = {0};
    PenWriter *w = NULL;
    PenPack *pack = NULL;
    uint64_t n;
    PenWriterSettings s = settings(PEN_MODE_KEEP);
    CHECK_INT(pen_writer_open(at("twice.pen"), &s, &w, &err), PEN_OK);
    for (uint32_t i = 0; i < N; i++)
        CHECK_INT(add(w, i, &err), PEN_OK);
    CHECK_INT(add(w, 3, &err), PEN_OK);
    CHECK_INT(pen_writer_finish(w, &n, &err), PEN_E_EXISTS);
    CHECK(strstr(err.message, "key 'key/3' occurs twice: samples 3 and 10"));
    CHECK_INT(pen_writer_finish(w, &n, &err), PEN_E_INVALID);
    CHECK(strstr(err.message, "an earlier call has failed; close the writer and start again"));
    pen_writer_close(&w);
    CHECK_INT(pen_pack_open(at("twice.pen"), NULL, &pack, &err), PEN_E_NOT_FOUND);
}

/* What is said of a key is one line whatever is in it. */
TEST(keys_in_messages_are_printable)
{
    PenError err = {0};
    PenPack *pack = NULL;
    uint64_t found;
    CHECK_INT(pen_pack_open(at("all.pen"), NULL, &pack, &err), PEN_OK);
    CHECK_INT(pen_pack_find(pack, "a\nb\x7f", 4, &found, &err), PEN_E_NOT_FOUND);
    CHECK(strstr(err.message, "the key 'a?b?'"));
    char shard[PEN_SHARD_NAME_BYTES + 16] = "all.pen/";
    pen__shard_name(pen__pack_manifest(pack)->shards[1].id, shard + 8);
    pen_pack_close(&pack);
    CHECK_INT(pen_pack_open(at("all.pen"), NULL, &pack, &err), PEN_OK);
    CHECK_INT(rename(at(shard), at("away")), 0);
    int r = pen_pack_find(pack, "no such key", 11, &found, &err);
    CHECK_INT(rename(at("away"), at(shard)), 0);
    CHECK_INT(r, PEN_E_CORRUPT); /* a missing shard is damage, not a missing key */
    pen_pack_close(&pack);
}

TEST(a_writer_that_failed_does_not_publish)
{
    static PenSys sys;
    PenError err = {0};
    PenWriter *w = NULL;
    PenPack *pack = NULL;
    uint64_t n;
    PenWriterSettings s = settings(PEN_MODE_KEEP);
    CHECK_INT(pen_writer_open(at("failed.pen"), &s, &w, &err), PEN_OK);
    sys = pen__sys_real;
    sys.pwritev = no_space;
    pen__sys = &sys;
    int r = PEN_OK;
    for (uint32_t i = 0; i < 4; i++)
        r = add(w, i, &err);
    pen__sys = &pen__sys_real;
    CHECK_INT(r, PEN_E_IO);
    CHECK_INT(pen_writer_finish(w, &n, &err), PEN_E_INVALID);
    pen_writer_close(&w);
    CHECK_INT(pen_pack_open(at("failed.pen"), NULL, &pack, &err), PEN_E_NOT_FOUND);
}

TEST(a_bad_image_leaves_the_writer_as_it_was)
{
    PenError err = {0};
    PenWriter *w = NULL;
    PenPack *pack = NULL;
    uint64_t n = 0;
    PenWriterSettings s = settings(PEN_MODE_KEEP);
    PenValue values[N_FIELDS];
    memcpy(values, samples[1].values, sizeof values);
    values[0].bytes /= 2;
    CHECK_INT(pen_writer_open(at("bad.pen"), &s, &w, &err), PEN_OK);
    CHECK_INT(pen_writer_add(w, "x", 1, values, N_FIELDS, &err), PEN_E_DECODE);
    CHECK(strstr(err.message, "key 'x', field 'image'"));
    CHECK_INT(pen_writer_add(w, "", 0, values, N_FIELDS, &err), PEN_E_INVALID);
    CHECK_INT(pen_writer_add(w, "x", 1, values, 2, &err), PEN_E_INVALID);
    values[6].bytes = 4;
    CHECK_INT(pen_writer_add(w, "x", 1, values, N_FIELDS, &err), PEN_E_INVALID);
    for (uint32_t i = 0; i < N; i++)
        CHECK_INT(add(w, i, &err), PEN_OK);
    CHECK_INT(pen_writer_finish(w, &n, &err), PEN_OK);
    CHECK_INT(n, N);
    pen_writer_close(&w);
    CHECK_INT(pen_pack_open(at("bad.pen"), NULL, &pack, &err), PEN_OK);
    for (uint32_t i = 0; i < N; i++)
        check_sample(pack, i);
    pen_pack_close(&pack);
    CHECK_INT(pen_writer_open(at("bad.pen"), &s, &w, &err), PEN_E_EXISTS);
}

TEST(closing_without_finish_leaves_nothing)
{
    PenError err = {0};
    PenWriter *w = NULL;
    PenGcResult gc;
    PenWriterSettings s = settings(PEN_MODE_KEEP);
    CHECK_INT(pen_writer_open(at("none.pen"), &s, &w, &err), PEN_OK);
    for (uint32_t i = 0; i < N; i++)
        CHECK_INT(add(w, i, &err), PEN_OK);
    pen_writer_close(&w);
    CHECK_INT(pen_ingest_gc(at("none.pen"), NULL, NULL, 0, &gc, &err), PEN_OK);
    CHECK_INT(gc.files, 0);
}

TEST(settings_that_make_no_sense_are_refused)
{
    PenError err = {0};
    PenWriter *w = NULL;
    PenWriterSettings s = settings(PEN_MODE_KEEP);
    PenField f[2] = {{.name = "a", .type = PEN_TYPE_IMAGE}, {.name = "a", .type = PEN_TYPE_I64}};
    s.fields = f;
    s.n_fields = 2;
    CHECK_INT(pen_writer_open(at("e.pen"), &s, &w, &err), PEN_E_INVALID);
    f[1] = (PenField){.name = "b", .type = 9};
    CHECK_INT(pen_writer_open(at("e.pen"), &s, &w, &err), PEN_E_INVALID);
    f[1] = (PenField){.name = "b", .type = PEN_TYPE_F32, .n_dims = 2, .dims = {1000, 1000}};
    CHECK_INT(pen_writer_open(at("e.pen"), &s, &w, &err), PEN_E_INVALID);
    f[1] = (PenField){.name = "b", .type = PEN_TYPE_TEXT, .n_dims = 1, .dims = {2}};
    CHECK_INT(pen_writer_open(at("e.pen"), &s, &w, &err), PEN_E_INVALID);
    f[1] = (PenField){.name = "b", .type = PEN_TYPE_TEXT, .flags = PEN_FIELD_MASK};
    CHECK_INT(pen_writer_open(at("e.pen"), &s, &w, &err), PEN_E_INVALID);
    f[1] = (PenField){.name = "b", .type = PEN_TYPE_I64, .flags = PEN_FIELD_OPTIONAL};
    CHECK_INT(pen_writer_open(at("e.pen"), &s, &w, &err), PEN_E_INVALID);
    CHECK(strstr(err.message, "field 'b': flags 0x2 are not valid for type i64"));
    f[1] = (PenField){.name = "b", .type = PEN_TYPE_TEXT};
    s.class_field = "b";
    CHECK_INT(pen_writer_open(at("e.pen"), &s, &w, &err), PEN_E_INVALID);
    s.class_field = NULL;
    s.quality = 0;
    CHECK_INT(pen_writer_open(at("e.pen"), &s, &w, &err), PEN_E_INVALID);
    s.quality = 90;
    s.max_side = 100;
    CHECK_INT(pen_writer_open(at("e.pen"), &s, &w, &err), PEN_E_INVALID);
}

/* Two fields of text, of which the second is optional: empty, missing, a value. */
TEST(a_missing_value_is_not_an_empty_one)
{
    static const int32_t expected[3] = {0, 1, 0};
    PenError err = {0};
    PenWriter *w = NULL;
    PenPack *pack = NULL;
    PenWriterSettings s = settings(PEN_MODE_KEEP);
    PenField f[2] = {{.name = "a", .type = PEN_TYPE_TEXT},
                     {.name = "b", .type = PEN_TYPE_TEXT, .flags = PEN_FIELD_OPTIONAL}};
    PenValue second[3] = {{.data = ""}, {.data = NULL}, {.data = "x", .bytes = 1}};
    uint64_t n = 0;
    int32_t missing = -1;
    s.fields = f;
    s.n_fields = 2;
    s.class_field = NULL;
    CHECK_INT(pen_writer_open(at("missing.pen"), &s, &w, &err), PEN_OK);
    for (int i = 0; i < 3; i++) {
        PenValue values[2] = {{.data = NULL}, second[i]};
        CHECK_INT(pen_writer_add(w, &"abc"[i], 1, values, 2, &err), PEN_OK);
    }
    CHECK_INT(pen_writer_finish(w, &n, &err), PEN_OK);
    pen_writer_close(&w);
    CHECK_INT(pen_pack_open(at("missing.pen"), NULL, &pack, &err), PEN_OK);
    CHECK_INT(pen_pack_info(pack)->fields[1].flags, PEN_FIELD_OPTIONAL);
    CHECK_INT(pen_pack_info(pack)->stats.missing[0], 0);
    CHECK_INT(pen_pack_info(pack)->stats.missing[1], 1);
    for (uint64_t i = 0; i < 3; i++) {
        CHECK_INT(pen_pack_missing(pack, i, 0, &missing, &err), PEN_OK);
        CHECK_INT(missing, 0); /* no value for a field that is not optional is an empty one */
        CHECK_INT(pen_pack_missing(pack, i, 1, &missing, &err), PEN_OK);
        CHECK_INT(missing, expected[i]);
    }
    CHECK_INT(pen_pack_missing(pack, 0, 2, &missing, &err), PEN_E_NOT_FOUND);
    CHECK_INT(pen_pack_missing(pack, 3, 1, &missing, &err), PEN_E_NOT_FOUND);
    pen_pack_close(&pack);
}

TEST(verify_checks_its_settings)
{
    PenError err = {0};
    PenPack *pack = NULL;
    PenVerifyResult result = {.samples = 77};
    PenWriterSettings s = settings(PEN_MODE_KEEP);
    CHECK_INT(write_all(at("checked.pen"), &s, &err), PEN_OK);
    CHECK_INT(pen_pack_open(at("checked.pen"), NULL, &pack, &err), PEN_OK);
    PenVerifySettings v;
    pen_verify_settings_init(&v);
    v.threads = -1;
    CHECK_INT(pen_pack_verify(pack, &v, &result, &err), PEN_E_INVALID);
    CHECK(strstr(err.message, "threads: expected a number, 0 or more, found -1"));
    pen_verify_settings_init(&v);
    v.decode = 2;
    CHECK_INT(pen_pack_verify(pack, &v, &result, &err), PEN_E_INVALID);
    CHECK(strstr(err.message, "decode: expected 0 or 1, found 2"));
    CHECK_INT(result.samples, 77);
    pen_pack_close(&pack);
}

/* SHA-256 of "penstock shard", the plan's id and three numbers: the same inputs give the same names
 * for ever, or a run that was stopped would not find its shards. */
TEST(names_of_shards_stay)
{
    static const uint8_t expected[PEN_ID_BYTES] = {0xa3, 0xd0, 0x6a, 0xb8, 0xe8, 0x26, 0x44, 0x10,
                                                   0xa8, 0xc5, 0xb8, 0x29, 0x55, 0xc9, 0x7c, 0xbf};
    uint8_t plan[32], id[PEN_ID_BYTES];
    for (int i = 0; i < 32; i++)
        plan[i] = (uint8_t)i;
    pen__shard_id(plan, 3, 5, 7, id);
    CHECK_MEM(id, expected, sizeof id);
}

int main(int argc, char **argv)
{
    TEST_START(argc, argv);
    help_begin();
    for (uint32_t i = 0; i < N; i++)
        make_sample(i);
    RUN(every_type_comes_back);
    RUN(every_mode_verifies);
    RUN(only_modes_with_an_index_can_leave_it_out);
    RUN(a_key_twice_is_an_error_and_leaves_no_pack);
    RUN(keys_in_messages_are_printable);
    RUN(a_writer_that_failed_does_not_publish);
    RUN(a_bad_image_leaves_the_writer_as_it_was);
    RUN(closing_without_finish_leaves_nothing);
    RUN(settings_that_make_no_sense_are_refused);
    RUN(a_missing_value_is_not_an_empty_one);
    RUN(verify_checks_its_settings);
    RUN(names_of_shards_stay);
    for (uint32_t i = 0; i < N; i++) {
        pen__buf_free(&samples[i].image);
        pen__buf_free(&samples[i].mask);
        pen__buf_free(&samples[i].frame[0]);
        pen__buf_free(&samples[i].frame[1]);
    }
    help_end();
    return TEST_END();
}
