/* SPDX-License-Identifier: Apache-2.0 */
/* Ragged fields in batches: the rows of the samples one after another, or padded with a mask. */
#include "fault_sweep.h"
#include "load_help.h"

enum { N = 41, BATCH = 8, LONG = 17, BAD_IMAGE = 11, MOST = 9 };
#define LISTS "boxes: ragged 8; tokens: ragged"
#define PADDED "boxes: ragged 8 pad=-1; tokens: ragged 20 pad=7"

static PenPack *pack;

/* ---- the pack ---- */

static uint32_t boxes_of(uint64_t i)
{
    return i == LONG ? MOST : (uint32_t)(i * 5 % 8);
}

static float coordinate(uint64_t i, uint32_t k)
{
    return (float)(100 * i + k);
}

static bool is_missing(uint64_t i)
{
    return i % 6 == 4;
}

static uint32_t tokens_of(uint64_t i)
{
    return is_missing(i) ? 0 : (uint32_t)(i * 7 % 20);
}

static PenPack *make_pack(void)
{
    static const PenField fields[] = {
        {.name = "image", .type = PEN_TYPE_IMAGE},
        {.name = "boxes", .type = PEN_TYPE_F32, .n_dims = 2, .dims = {PEN_DIM_ANY, 4}},
        {.name = "tokens", .type = PEN_TYPE_I64, .flags = PEN_FIELD_OPTIONAL, .n_dims = 1},
        {.name = "curves", .type = PEN_TYPE_F64, .n_dims = 4, .dims = {PEN_DIM_ANY, 2, 3, 1}},
        {.name = "text", .type = PEN_TYPE_TEXT},
        {.name = "boxes_mask", .type = PEN_TYPE_I64}};
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
    int r = help_writer_open("ragged.pen", &s, &w, &err);
    for (uint32_t i = 0; i < N && r == PEN_OK; i++) {
        JpegSpec spec = {.width = 40, .height = 40, .h = 2, .v = 2};
        float boxes[4 * MOST];
        int64_t tokens[20], label = i;
        double curves[12] = {i};
        for (uint32_t k = 0; k < PEN_LEN(boxes); k++)
            boxes[k] = coordinate(i, k);
        for (uint32_t k = 0; k < PEN_LEN(tokens); k++)
            tokens[k] = (int64_t)i - k;
        make_jpeg(&spec, &jpeg);
        if (i == BAD_IMAGE)
            memset(jpeg.data + jpeg.bytes / 2, 0xD9, jpeg.bytes / 2 - 2);
        PenValue values[] = {{.data = jpeg.data, .bytes = jpeg.bytes},
                             {.data = boxes, .bytes = boxes_of(i) * 16ul},
                             {.data = is_missing(i) ? NULL : tokens, .bytes = tokens_of(i) * 8ul},
                             {.data = curves, .bytes = i % 3 * 48ul},
                             {.data = "x", .bytes = 1},
                             {.data = &label, .bytes = sizeof label}};
        char key = (char)('0' + i);
        r = pen_writer_add(w, &key, 1, values, PEN_LEN(values), &err);
    }
    pen__buf_free(&jpeg);
    return help_writer_end("ragged.pen", &s, w, r, &err);
}

/* All samples but the one with too many rows, and those after it. */
static PenLoaderSettings settings(const char *pipeline)
{
    PenLoaderSettings s = help_loader_settings(BATCH);
    s.pipeline = pipeline;
    s.order = PEN_ORDER_SEQUENTIAL;
    s.last_batch = PEN_LAST_PAD;
    s.first = 0;
    s.count = LONG;
    return s;
}

/* ---- what is in a batch ---- */

static void check_boxes(const PenBatch *b, uint32_t field)
{
    const PenList *list = &b->lists[field];
    const PenTensor *t = &b->fields[field];
    CHECK_INT(list->kind, PEN_LIST_RAGGED);
    CHECK_INT(t->dtype, PEN_F32);
    CHECK_INT(t->n_dims, 2);
    CHECK_INT(t->shape[1], 4);
    CHECK_INT(list->offsets[0], 0);
    CHECK_INT(list->offsets[b->n_samples], t->shape[0]);
    for (uint32_t i = 0; i < b->n_samples; i++) {
        const float *rows = (const float *)t->data + 4 * list->offsets[i];
        CHECK_INT(list->offsets[i + 1] - list->offsets[i], boxes_of(b->samples[i]));
        for (uint32_t k = 0; k < 4 * boxes_of(b->samples[i]); k++)
            CHECK(rows[k] == coordinate(b->samples[i], k));
        CHECK_INT(list->validity[i / 8] >> i % 8 & 1, 1);
    }
}

static void check_tokens(const PenBatch *b, uint32_t field)
{
    const PenList *list = &b->lists[field];
    const PenTensor *t = &b->fields[field];
    CHECK_INT(t->dtype, PEN_I64);
    CHECK_INT(t->n_dims, 1);
    for (uint32_t i = 0; i < b->n_samples; i++) {
        const int64_t *rows = (const int64_t *)t->data + list->offsets[i];
        CHECK_INT(list->offsets[i + 1] - list->offsets[i], tokens_of(b->samples[i]));
        for (uint32_t k = 0; k < tokens_of(b->samples[i]); k++)
            CHECK_INT(rows[k], (int64_t)b->samples[i] - k);
        CHECK_INT(list->validity[i / 8] >> i % 8 & 1, !is_missing(b->samples[i]));
    }
}

TEST(a_batch_has_the_rows_of_its_samples)
{
    PenError err = {0};
    PenLoader *l = NULL;
    PenBatch *b = NULL;
    PenLoaderSettings s = settings("boxes_mask: tensor; " LISTS "; curves: ragged 3");
    CHECK_INT(pen_loader_open(pack, &s, &l, &err), PEN_OK);
    CHECK_INT(pen_loader_fields(l), 4);
    CHECK_INT(pen_loader_field_list(l, 1), PEN_LIST_RAGGED);
    CHECK_INT(pen_loader_field_tensor(l, 3).shape[0], -1);
    CHECK_INT(pen_loader_field_tensor(l, 3).n_dims, 4);
    CHECK_INT(pen_loader_field_tensor(l, 3).shape[2], 3);
    int n = 0;
    while (pen_loader_next(l, -1, &b, &err) == PEN_OK) {
        check_boxes(b, 1);
        check_tokens(b, 2);
        pen_batch_unref(&b);
        n++;
    }
    CHECK_INT(n, LONG / BATCH + 1);
    pen_loader_close(&l);
}

static void check_padded(const PenBatch *b)
{
    const float *boxes = b->fields[0].data;
    const int64_t *tokens = b->fields[2].data;
    const uint8_t *of_boxes = b->fields[1].data, *of_tokens = b->fields[3].data;
    CHECK(!b->lists);
    CHECK_INT(b->fields[1].dtype, PEN_BOOL);
    for (uint32_t i = 0; i < b->n_samples; i++)
        for (uint32_t k = 0; k < 8; k++) {
            bool is_row = k < boxes_of(b->samples[i]);
            CHECK_INT(of_boxes[i * 8 + k], is_row);
            for (uint32_t c = 0; c < 4; c++)
                CHECK(boxes[(i * 8 + k) * 4 + c] ==
                      (is_row ? coordinate(b->samples[i], 4 * k + c) : -1));
        }
    for (uint32_t i = 0; i < b->n_samples; i++)
        for (uint32_t k = 0; k < 20; k++) {
            bool is_row = k < tokens_of(b->samples[i]);
            CHECK_INT(of_tokens[i * 20 + k], is_row);
            CHECK_INT(tokens[i * 20 + k], is_row ? (int64_t)b->samples[i] - k : 7);
        }
}

TEST(padded_rows_have_a_mask)
{
    PenError err = {0};
    PenLoader *l = NULL;
    PenBatch *b = NULL;
    PenLoaderSettings s = settings(PADDED);
    CHECK_INT(pen_loader_open(pack, &s, &l, &err), PEN_OK);
    CHECK_INT(pen_loader_fields(l), 4);
    CHECK_INT(pen_loader_field_list(l, 0), PEN_LIST_NONE);
    CHECK_STR(pen_loader_field_name(l, 3), "tokens_mask");
    PenTensor t = pen_loader_field_tensor(l, 0);
    CHECK_INT(t.n_dims, 3);
    CHECK(t.shape[0] == BATCH && t.shape[1] == 8 && t.shape[2] == 4);
    int n = 0;
    while (pen_loader_next(l, -1, &b, &err) == PEN_OK) {
        check_padded(b);
        pen_batch_unref(&b);
        n++;
    }
    CHECK_INT(n, LONG / BATCH + 1);
    pen_loader_close(&l);
}

/* Of one sample, without threads. */
TEST(one_sample_by_its_number)
{
    static const char *const pipelines[2] = {LISTS, PADDED};
    PenError err = {0};
    for (int i = 0; i < 2; i++) {
        PenLoader *l = NULL;
        PenBatch *b = NULL;
        PenLoaderSettings s = settings(pipelines[i]);
        s.batch_size = 1;
        CHECK_INT(pen_loader_open(pack, &s, &l, &err), PEN_OK);
        CHECK_INT(pen_loader_get(l, 0, 9, &b, &err), PEN_OK);
        CHECK_INT(b->samples[0], 9);
        if (i) {
            check_padded(b);
        } else {
            check_boxes(b, 0);
            check_tokens(b, 1);
        }
        pen_batch_unref(&b);
        pen_loader_close(&l);
    }
}

TEST(the_same_whatever_the_threads_and_memory)
{
    static const char *const pipelines[2] = {"image: decode | random_resized_crop 16; " LISTS,
                                             PADDED};
    for (int i = 0; i < 8; i++) {
        PenLoaderSettings s = settings(pipelines[i % 2]);
        s.first = BAD_IMAGE + 1 + 6;
        s.count = N - s.first;
        s.order = i / 2;
        s.threads = s.io_threads = 1;
        s.memory_bytes = 64 << 20;
        s.shuffle_buffer = 2;
        uint64_t expected = help_epoch_hash(pack, &s);
        CHECK(expected);
        for (int threads = 2; threads <= 8; threads *= 2) {
            s.threads = threads;
            s.io_threads = 1 + threads / 3;
            s.memory_bytes = 128 << 20;
            CHECK_INT(help_epoch_hash(pack, &s), expected);
        }
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

TEST(too_many_rows_are_named)
{
    PenError err = {0};
    PenLoaderSettings s = settings("boxes: ragged 8");
    s.count = N;
    for (int i = 0; i < 2; i++) {
        CHECK_INT(first_error(&s, &err), PEN_E_LIMIT);
        CHECK_STR(err.message,
                  "sample 17 'A': field 'boxes': expected at most 8 rows (max_rows), found 9; "
                  "increase max_rows in the pipeline, or leave the sample out with a subset");
        CHECK_INT(err.sample, LONG);
        s.on_bad = PEN_BAD_SUBSTITUTE; /* it is no damage */
        s.pipeline = "boxes: ragged 8 pad=0";
    }
    s.pipeline = "boxes: ragged 9";
    CHECK_INT(first_error(&s, &err), N / BATCH + 1);
    s.pipeline = "boxes: ragged 16777216";
    CHECK_INT(first_error(&s, &err), PEN_E_LIMIT);
    CHECK(strstr(err.message, "memory: expected at least"));
}

/* The rows of a sample whose image is broken were in its place before. */
TEST(a_replaced_sample_brings_its_rows)
{
    PenError err = {0};
    PenLoader *l = NULL;
    PenBatch *b = NULL;
    PenLoaderSettings s = settings(LISTS "; image: decode | center_crop 16");
    s.on_bad = PEN_BAD_SUBSTITUTE;
    CHECK_INT(pen_loader_open(pack, &s, &l, &err), PEN_OK);
    for (int i = 0; i < 2; i++) {
        CHECK_INT(pen_loader_next(l, -1, &b, &err), PEN_OK);
        CHECK_INT(b->n_substituted, i);
        check_boxes(b, 0);
        check_tokens(b, 1);
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
    refuses("boxes: tensor", "pipeline: column 8: tensor: the number of rows in the field differs "
                             "between samples; use 'ragged'");
    refuses("tokens: bytes", "pipeline: column 9: bytes: the number of rows in the field differs "
                             "between samples; use 'ragged'");
    refuses("boxes: ragged | tensor", "pipeline: column 17: tensor after ragged: ragged must be "
                                      "the last operation");
    refuses("text: ragged", "pipeline: column 7: ragged: the field holds text; use 'text', 'json' "
                            "or 'bytes'");
    refuses("image: ragged", "pipeline: column 8: ragged cannot be applied to an image");
    refuses("ragged", "pipeline: column 1: ragged: name the field: 'caption: ragged'");
    refuses("boxes: ragged 0",
            "pipeline: column 15: ragged: max_rows: expected 1 to 16777216, found '0'");
    refuses("tokens: ragged 8 pad=0.5", "pipeline: column 9: ragged: pad: expected an integer, "
                                        "which the field holds");
    refuses("boxes_mask: tensor; boxes: ragged pad=0",
            "pipeline: the name of the mask of rows, 'boxes_mask', is also a field of the pack; "
            "leave one of them out");
}

static int open_and_close(PenError *err)
{
    PenLoader *l = NULL;
    PenLoaderSettings s = settings(PADDED "; curves: ragged");
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
    RUN(a_batch_has_the_rows_of_its_samples);
    RUN(padded_rows_have_a_mask);
    RUN(one_sample_by_its_number);
    RUN(the_same_whatever_the_threads_and_memory);
    RUN(too_many_rows_are_named);
    RUN(a_replaced_sample_brings_its_rows);
    RUN(pipelines_that_do_not_fit_are_refused);
    RUN(every_allocation_may_fail);
    pen_pack_close(&pack);
    help_end();
    return TEST_END();
}
