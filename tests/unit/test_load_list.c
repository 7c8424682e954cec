/* SPDX-License-Identifier: Apache-2.0 */
/* Text, JSON, bytes and keys in batches: what the pack holds, one value after another. */
#include "fault_sweep.h"
#include "load_help.h"

enum { N = 43, BATCH = 8, LONG = 20, BAD_TEXT = 31, BAD_IMAGE = 11 };
#define LISTS "caption: text; meta: json; blob: bytes; id: key"

static PenPack *pack;

/* ---- the pack ---- */

typedef struct Value {
    char data[400];
    size_t bytes;
    int missing;
} Value;

static Value caption_of(uint64_t i)
{
    Value v = {0};
    if (i == BAD_TEXT)
        v.bytes = (size_t)snprintf(v.data, sizeof v.data, "not UTF-8: \xc3(");
    else if (i != 5) /* that one is empty, and not missing */
        v.bytes = (size_t)snprintf(v.data, sizeof v.data, "caption %u \xe2\x82\xac %.*s",
                                   (unsigned)i, (int)(i % 9), "abcdefghi");
    if (i == LONG) {
        memset(v.data, 'x', 300);
        v.bytes = 300;
    }
    return v;
}

static Value meta_of(uint64_t i)
{
    Value v = {.missing = i % 4 == 3};
    if (!v.missing)
        v.bytes = (size_t)snprintf(v.data, sizeof v.data, "{\"number\": %u}", (unsigned)i);
    return v;
}

static Value blob_of(uint64_t i)
{
    Value v = {.bytes = (size_t)(i * 37 % 300)};
    for (size_t k = 0; k < v.bytes; k++)
        v.data[k] = (char)(i + k);
    return v;
}

static Value key_of(uint64_t i)
{
    Value v = {0};
    v.bytes =
        (size_t)snprintf(v.data, sizeof v.data, "%skey-%u", i == 3 ? "\xff" : "", (unsigned)i);
    return v;
}

static PenPack *make_pack(void)
{
    static const PenField fields[] = {
        {.name = "image", .type = PEN_TYPE_IMAGE},
        {.name = "caption", .type = PEN_TYPE_TEXT},
        {.name = "meta", .type = PEN_TYPE_JSON, .flags = PEN_FIELD_OPTIONAL},
        {.name = "blob", .type = PEN_TYPE_BYTES},
        {.name = "label", .type = PEN_TYPE_I64}};
    PenError err = {0};
    PenWriterSettings s;
    PenWriter *w = NULL;
    PenBuf jpeg = {0};
    pen_writer_settings_init(&s);
    s.fields = fields;
    s.n_fields = PEN_LEN(fields);
    s.no_index = 1; /* it would refuse what is broken */
    s.block_samples = 5;
    s.shard_bytes = 60000;
    int r = help_writer_open("lists.pen", &s, &w, &err);
    for (uint32_t i = 0; i < N && r == PEN_OK; i++) {
        JpegSpec spec = {.width = 40 + i % 7 * 8, .height = 40, .h = 2, .v = 2};
        Value caption = caption_of(i), meta = meta_of(i), blob = blob_of(i), key = key_of(i);
        int64_t label = i;
        make_jpeg(&spec, &jpeg);
        if (i == BAD_IMAGE)
            memset(jpeg.data + jpeg.bytes / 2, 0xD9, jpeg.bytes / 2 - 2);
        PenValue values[] = {{.data = jpeg.data, .bytes = jpeg.bytes},
                             {.data = caption.data, .bytes = caption.bytes},
                             {.data = meta.missing ? NULL : meta.data, .bytes = meta.bytes},
                             {.data = blob.data, .bytes = blob.bytes},
                             {.data = &label, .bytes = sizeof label}};
        r = pen_writer_add(w, key.data, key.bytes, values, PEN_LEN(values), &err);
    }
    pen__buf_free(&jpeg);
    return help_writer_end("lists.pen", &s, w, r, &err);
}

/* All samples but the one whose text cannot be loaded. */
static PenLoaderSettings settings(const char *pipeline)
{
    PenLoaderSettings s = help_loader_settings(BATCH);
    s.pipeline = pipeline;
    s.order = PEN_ORDER_SEQUENTIAL;
    s.last_batch = PEN_LAST_PAD;
    s.first = 0;
    s.count = BAD_TEXT;
    return s;
}

/* ---- what is in a batch ---- */

static void check_list(const PenBatch *b, uint32_t field, int kind, Value (*value_of)(uint64_t))
{
    const PenList *list = &b->lists[field];
    const PenTensor *t = &b->fields[field];
    CHECK_INT(list->kind, kind);
    CHECK_INT(t->dtype, PEN_U8);
    CHECK_INT(t->n_dims, 1);
    CHECK_INT(list->offsets[0], 0);
    CHECK_INT(list->offsets[b->n_samples], t->shape[0]);
    for (uint32_t i = 0; i < b->n_samples; i++) {
        Value v = value_of(b->samples[i]);
        CHECK_INT(list->offsets[i + 1] - list->offsets[i], v.bytes);
        CHECK_MEM((const char *)t->data + list->offsets[i], v.data, v.bytes);
        CHECK_INT(list->validity[i / 8] >> i % 8 & 1, !v.missing);
    }
}

TEST(a_batch_has_the_values_of_its_samples)
{
    PenError err = {0};
    PenLoader *l = NULL;
    PenBatch *b = NULL;
    PenLoaderSettings s = settings("label: tensor; " LISTS);
    CHECK_INT(pen_loader_open(pack, &s, &l, &err), PEN_OK);
    CHECK_INT(pen_loader_fields(l), 5);
    CHECK_INT(pen_loader_field_list(l, 0), PEN_LIST_NONE);
    CHECK_INT(pen_loader_field_list(l, 1), PEN_LIST_TEXT);
    CHECK_INT(pen_loader_field_list(l, 5), PEN_LIST_NONE);
    CHECK_INT(pen_loader_field_tensor(l, 1).shape[0], -1);
    CHECK_STR(pen_loader_field_name(l, 4), "id");
    int n = 0;
    while (pen_loader_next(l, -1, &b, &err) == PEN_OK) {
        CHECK_INT(b->lists[0].kind, PEN_LIST_NONE);
        check_list(b, 1, PEN_LIST_TEXT, caption_of);
        check_list(b, 2, PEN_LIST_JSON, meta_of);
        check_list(b, 3, PEN_LIST_BYTES, blob_of);
        check_list(b, 4, PEN_LIST_KEY, key_of);
        CHECK_INT(((const int64_t *)b->fields[0].data)[1], b->samples[1]);
        pen_batch_unref(&b);
        n++;
    }
    CHECK_INT(n, BAD_TEXT / BATCH + 1);
    pen_loader_close(&l);
}

TEST(a_pipeline_without_lists_has_none)
{
    PenError err = {0};
    PenLoader *l = NULL;
    PenBatch *b = NULL;
    PenLoaderSettings s = settings("decode | center_crop 8");
    CHECK_INT(pen_loader_open(pack, &s, &l, &err), PEN_OK);
    CHECK_INT(pen_loader_fields(l), 2);
    CHECK_INT(pen_loader_next(l, -1, &b, &err), PEN_OK);
    CHECK(!b->lists);
    pen_batch_unref(&b);
    pen_loader_close(&l);
}

/* A list may have any of the three types. */
TEST(every_operation_reads_every_type)
{
    PenError err = {0};
    PenLoader *l = NULL;
    PenBatch *b = NULL;
    PenLoaderSettings s = settings("caption: json; meta: bytes; key: key");
    CHECK_INT(pen_loader_open(pack, &s, &l, &err), PEN_OK);
    CHECK_INT(pen_loader_next(l, -1, &b, &err), PEN_OK);
    check_list(b, 0, PEN_LIST_JSON, caption_of);
    check_list(b, 1, PEN_LIST_BYTES, meta_of);
    check_list(b, 2, PEN_LIST_KEY, key_of);
    pen_batch_unref(&b);
    pen_loader_close(&l);
}

TEST(the_same_whatever_the_threads_and_memory)
{
    PenLoaderSettings s = settings("image: decode | random_resized_crop 16; " LISTS);
    s.first = BAD_IMAGE + 1;
    s.count = BAD_TEXT - s.first;
    for (int order = 0; order <= PEN_ORDER_STICKY; order++) {
        s.order = order;
        s.threads = s.io_threads = 1;
        s.memory_bytes = 64 << 20;
        s.shuffle_buffer = 2;
        uint64_t expected = help_epoch_hash(pack, &s);
        CHECK(expected);
        for (int threads = 2; threads <= 8; threads *= 2) {
            s.threads = threads;
            s.io_threads = 1 + threads / 3;
            s.prefetch = threads == 2 ? 1 : 4;
            s.memory_bytes = 128 << 20;
            CHECK_INT(help_epoch_hash(pack, &s), expected);
        }
    }
}

TEST(a_restored_position_has_the_same_values)
{
    PenError err = {0};
    PenLoaderSettings s = settings(LISTS);
    char state[PEN_STATE_BYTES];
    s.order = PEN_ORDER_RANDOM;
    for (int steps = 0; steps < 4; steps++) {
        PenLoader *l[2] = {NULL, NULL};
        PenSha256 before, rest[2];
        uint8_t sums[2][32];
        pen__sha256_init(&before);
        for (int i = 0; i < 2; i++) {
            s.threads = 1 + 2 * i;
            CHECK_INT(pen_loader_open(pack, &s, &l[i], &err), PEN_OK);
            pen__sha256_init(&rest[i]);
        }
        CHECK_INT(help_drain(l[0], &before, steps, &err), steps);
        CHECK_INT(pen_loader_save(l[0], state, &err), PEN_OK);
        CHECK_INT(pen_loader_restore(l[1], state, 1, &err), PEN_OK);
        for (int i = 0; i < 2; i++) {
            CHECK_INT(help_drain(l[i], &rest[i], -1, &err), BAD_TEXT / BATCH + 1 - steps);
            pen__sha256_final(&rest[i], sums[i]);
            pen_loader_close(&l[i]);
        }
        CHECK_MEM(sums[0], sums[1], 32);
    }
}

/* ---- limits and damage ---- */

static int first_error(const PenLoaderSettings *s, PenError *err)
{
    PenLoader *l = NULL;
    PenSha256 hash;
    pen__sha256_init(&hash);
    int r = pen_loader_open(pack, s, &l, err);
    if (r == PEN_OK)
        r = help_drain(l, &hash, -1, err);
    pen_loader_close(&l);
    return r;
}

TEST(a_value_that_is_too_long_is_named)
{
    PenError err = {0};
    PenLoaderSettings s = settings("caption: text 299");
    CHECK_INT(first_error(&s, &err), PEN_E_LIMIT);
    CHECK_STR(err.message,
              "sample 20 'key-20': field 'caption': expected at most 299 bytes (max_bytes), found "
              "300; increase max_bytes in the pipeline, or leave the sample out with a subset");
    CHECK_INT(err.sample, LONG);
    s.on_bad = PEN_BAD_SUBSTITUTE; /* it is no damage */
    CHECK_INT(first_error(&s, &err), PEN_E_LIMIT);
    s.pipeline = "caption: text 300";
    CHECK_INT(first_error(&s, &err), BAD_TEXT / BATCH + 1);
    s.pipeline = "id: key 5";
    CHECK_INT(first_error(&s, &err), PEN_E_LIMIT);
    CHECK_INT(err.sample, 3);
    /* The slots have a place of this size for each sample, which the memory has to hold. */
    s.pipeline = "caption: text 1073741824";
    CHECK_INT(first_error(&s, &err), PEN_E_LIMIT);
    CHECK(strstr(err.message, "memory: expected at least"));
}

TEST(what_is_not_utf8_is_named_and_replaced)
{
    PenError err = {0};
    PenLoader *l = NULL;
    PenBatch *b = NULL;
    PenBadSample bad;
    PenLoaderSettings s = settings("caption: text");
    s.first = BAD_TEXT - 3;
    s.count = s.batch_size = 6;
    CHECK_INT(first_error(&s, &err), PEN_E_DECODE);
    CHECK_STR(err.message, "sample 31 'key-31': field 'caption': expected UTF-8, found other "
                           "bytes; use 'bytes' to load them");
    CHECK_INT(err.sample, BAD_TEXT);
    s.pipeline = "caption: json";
    CHECK_INT(first_error(&s, &err), PEN_E_DECODE);
    s.pipeline = "caption: bytes";
    CHECK_INT(first_error(&s, &err), 1);
    s.pipeline = "caption: text; id: key";
    s.on_bad = PEN_BAD_SUBSTITUTE;
    CHECK_INT(pen_loader_open(pack, &s, &l, &err), PEN_OK);
    CHECK_INT(pen_loader_next(l, -1, &b, &err), PEN_OK);
    CHECK_INT(b->n_substituted, 1);
    CHECK(b->samples[3] != BAD_TEXT);
    check_list(b, 0, PEN_LIST_TEXT, caption_of);
    check_list(b, 1, PEN_LIST_KEY, key_of);
    CHECK_INT(pen_loader_bad_sample(l, 0, &bad), PEN_OK);
    CHECK_INT(bad.sample, BAD_TEXT);
    pen_batch_unref(&b);
    pen_loader_close(&l);
}

/* The text of a sample whose image is broken was in its place before. */
TEST(a_replaced_sample_brings_its_text)
{
    PenError err = {0};
    PenLoader *l = NULL;
    PenBatch *b = NULL;
    PenLoaderSettings s = settings("image: decode | center_crop 16; caption: text; meta: json");
    s.on_bad = PEN_BAD_SUBSTITUTE;
    CHECK_INT(pen_loader_open(pack, &s, &l, &err), PEN_OK);
    for (int i = 0; i < 2; i++) {
        CHECK_INT(pen_loader_next(l, -1, &b, &err), PEN_OK);
        CHECK_INT(b->n_substituted, i);
        check_list(b, 1, PEN_LIST_TEXT, caption_of);
        check_list(b, 2, PEN_LIST_JSON, meta_of);
        pen_batch_unref(&b);
    }
    pen_loader_close(&l);
}

/* ---- pipelines ---- */

static void refuses(const char *pipeline, const char *message)
{
    PenError err = {0};
    PenLoader *l = NULL;
    PenLoaderSettings s = settings(pipeline);
    CHECK_INT(pen_loader_open(pack, &s, &l, &err), PEN_E_INVALID);
    CHECK_STR(err.message, message);
    pen_loader_close(&l);
}

TEST(pipelines_that_do_not_fit_are_refused)
{
    refuses("caption: tensor",
            "pipeline: column 10: tensor: the field holds text; use 'text', 'json' or 'bytes'");
    refuses("blob: decode",
            "pipeline: column 7: decode: the field holds bytes; use 'text', 'json' or 'bytes'");
    refuses("caption: text | tensor", "pipeline: column 17: tensor after text: text must be the "
                                      "only operation of its field");
    refuses("image: text", "pipeline: column 8: text cannot be applied to an image");
    refuses("image: decode | center_crop 8 | bytes",
            "pipeline: column 33: bytes cannot be applied to an image");
    refuses("label: json", "pipeline: column 8: json: the field holds numbers; only one_hot "
                           "and tensor can be used on them");
    refuses("text", "pipeline: column 1: text: name the field: 'caption: text'");
    refuses("label: key", "pipeline: column 1: key: 'label' is a field of the pack; use another "
                          "name for the keys of the samples");
    refuses("a: key; b: key", "pipeline: column 9: field 'a' occurs twice");
    refuses("caption: text 0",
            "pipeline: column 15: text: max_bytes: expected 1 to 1073741824, found '0'");
}

static int open_and_close(PenError *err)
{
    PenLoader *l = NULL;
    PenLoaderSettings s = settings(LISTS);
    int r = pen_loader_open(pack, &s, &l, err);
    pen_loader_close(&l);
    return r;
}

TEST(every_allocation_may_fail)
{
    int points = 0;
    fault_sweep(open_and_close, &points);
    CHECK(points > 10);
}

int main(int argc, char **argv)
{
    TEST_START(argc, argv);
    help_begin();
    pack = make_pack();
    RUN(a_batch_has_the_values_of_its_samples);
    RUN(a_pipeline_without_lists_has_none);
    RUN(every_operation_reads_every_type);
    RUN(the_same_whatever_the_threads_and_memory);
    RUN(a_restored_position_has_the_same_values);
    RUN(a_value_that_is_too_long_is_named);
    RUN(what_is_not_utf8_is_named_and_replaced);
    RUN(a_replaced_sample_brings_its_text);
    RUN(pipelines_that_do_not_fit_are_refused);
    RUN(every_allocation_may_fail);
    pen_pack_close(&pack);
    help_end();
    return TEST_END();
}
