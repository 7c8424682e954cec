/* SPDX-License-Identifier: Apache-2.0 */
/* Images of different sizes in batches: as a list, or padded to the largest. */
#include "fault_sweep.h"
#include "load_help.h"

enum { N = 23, BATCH = 5, BAD = 7 };
#define RESIZE "decode | resize min_side=24,32 max_side=48 | hflip"

static PenPack *pack;

static PenLoaderSettings settings(const char *pipeline)
{
    PenLoaderSettings s = help_loader_settings(BATCH);
    s.pipeline = pipeline;
    s.first = BAD + 1;
    s.count = N - s.first;
    s.seed = 3;
    return s;
}

static void open_loader(const char *pipeline, PenLoader **ret)
{
    PenError err = {0};
    PenLoaderSettings s = settings(pipeline);
    *ret = NULL;
    CHECK_INT(pen_loader_open(pack, &s, ret, &err), PEN_OK);
    CHECK_INT(pen_loader_begin(*ret, &err), PEN_OK);
}

/* ---- lists and padding ---- */

/* Bytes of the element of an image of `size` at channel c, row y, column x. */
static size_t element_at(const PenTensor *t, const int64_t *size, int64_t c, int64_t y, int64_t x)
{
    int64_t channels = t->channels_last ? t->shape[3] : t->n_dims == 4 ? t->shape[1] : 1;
    int64_t at =
        t->channels_last ? (y * size[1] + x) * channels + c : (c * size[0] + y) * size[1] + x;
    return (size_t)at * pen_dtype_bytes(t->dtype);
}

static int64_t channels_of(const PenTensor *t)
{
    return t->n_dims == 3 ? 1 : t->channels_last ? t->shape[3] : t->shape[1];
}

static int is_same(const uint8_t *a, const void *b, const PenTensor *t)
{
    return memcmp(a, b, pen_dtype_bytes(t->dtype)) == 0;
}

/* Image i of the list `a` is in the padded `b`, and all else is `fill`. */
static void compare_image(const PenBatch *a, const PenBatch *b, uint32_t i, const void *fill)
{
    const PenTensor *list = &a->fields[0], *all = &b->fields[0];
    const int64_t *size = (const int64_t *)a->fields[1].data + (size_t)2 * i;
    int64_t first = all->channels_last || all->n_dims == 3 ? 1 : 2;
    int64_t sides[2] = {all->shape[first], all->shape[first + 1]};
    size_t bytes = pen_dtype_bytes(list->dtype), wrong = 0;
    const uint8_t *image = (const uint8_t *)list->data + (size_t)a->lists[0].offsets[i] * bytes;
    size_t each = (size_t)(channels_of(all) * sides[0] * sides[1]) * bytes;
    const uint8_t *padded = (const uint8_t *)all->data + i * each;
    CHECK_INT((uintptr_t)image % 64, 0);
    CHECK(size[0] >= 1 && size[0] <= sides[0] && size[1] >= 1 && size[1] <= sides[1]);
    for (int64_t c = 0; c < channels_of(all); c++)
        for (int64_t y = 0; y < sides[0]; y++)
            for (int64_t x = 0; x < sides[1]; x++) {
                const uint8_t *found = padded + element_at(all, sides, c, y, x);
                bool inside = y < size[0] && x < size[1];
                wrong +=
                    !is_same(found, inside ? image + element_at(list, size, c, y, x) : fill, all);
            }
    CHECK_INT(wrong, 0);
}

static void compare(const char *list, const char *pad, const void *fill, int64_t unit)
{
    char text[200];
    PenError err = {0};
    snprintf(text, sizeof text, "%s | %s", list, pad);
    PenLoader *l, *p;
    open_loader(list, &l);
    open_loader(text, &p);
    CHECK_INT(pen_loader_field_list(l, 0), PEN_LIST_IMAGES);
    CHECK_INT(pen_loader_field_list(p, 0), PEN_LIST_NONE);
    for (uint64_t k = 0; k < pen_loader_len(l); k++) {
        PenBatch *a = NULL, *b = NULL;
        CHECK_INT(pen_loader_next(l, -1, &a, &err), PEN_OK);
        CHECK_INT(pen_loader_next(p, -1, &b, &err), PEN_OK);
        CHECK_MEM(a->fields[1].data, b->fields[1].data, BATCH * 2 * sizeof(int64_t));
        CHECK_INT(a->lists[0].validity[0], (1 << BATCH) - 1);
        CHECK_INT(b->fields[0].shape[2] % unit, 0);
        for (uint32_t i = 0; i < BATCH; i++)
            compare_image(a, b, i, fill);
        pen_batch_unref(&a);
        pen_batch_unref(&b);
    }
    pen_loader_close(&l);
    pen_loader_close(&p);
}

TEST(padded_images_are_those_of_the_list)
{
    compare("image: " RESIZE, "pad_batch", (const uint8_t[]){0}, 1);
    compare("image: " RESIZE " | tensor u8 nchw", "pad_batch value=200", (const uint8_t[]){200}, 1);
    compare("image: " RESIZE " | tensor f32 nchw", "pad_batch 32 value=-1.5",
            (const float[]){-1.5f}, 32);
    compare("image: " RESIZE " | normalize | tensor f32", "pad_batch 16", (const float[]){0}, 16);
    compare("image: " RESIZE " | tensor f16", "pad_batch value=1", (const uint16_t[]){0x3c00}, 1);
    compare("mask: " RESIZE " | tensor i64", "pad_batch value=-1", (const int64_t[]){-1}, 1);
}

TEST(fields_of_a_list_and_of_a_padded_tensor)
{
    PenLoader *l;
    open_loader("image: " RESIZE " | tensor f32 nchw; mask: " RESIZE " | pad_batch; label: tensor",
                &l);
    PenTensor image = pen_loader_field_tensor(l, 0), mask = pen_loader_field_tensor(l, 2);
    CHECK_INT(pen_loader_fields(l), 5);
    CHECK_STR(pen_loader_field_name(l, 1), "image_sizes");
    CHECK_STR(pen_loader_field_name(l, 3), "mask_sizes");
    CHECK_MEM(image.shape, ((int64_t[]){BATCH, 3, -1, -1}), 4 * sizeof(int64_t));
    CHECK_MEM(mask.shape, ((int64_t[]){BATCH, -1, -1}), 3 * sizeof(int64_t));
    CHECK_INT(pen_loader_field_tensor(l, 1).shape[1], 2);
    pen_loader_close(&l);
}

/* ---- one sample ---- */

TEST(a_sample_by_its_number)
{
    PenError err = {0};
    PenLoader *l = NULL;
    PenBatch *b = NULL;
    PenLoaderSettings s = settings(RESIZE " | pad_batch 64");
    s.batch_size = 1;
    CHECK_INT(pen_loader_open(pack, &s, &l, &err), PEN_OK);
    CHECK_INT(pen_loader_get(l, 0, 2, &b, &err), PEN_OK);
    CHECK_INT(b->fields[0].shape[1], 64);
    CHECK_INT(b->fields[0].shape[2], 64);
    CHECK(((const int64_t *)b->fields[1].data)[0] <= 48);
    pen_batch_unref(&b);
    pen_loader_close(&l);
}

/* ---- threads, broken samples, memory ---- */

TEST(the_same_whatever_the_threads)
{
    PenLoaderSettings s = settings(RESIZE " | pad_batch 8");
    s.threads = 1;
    uint64_t expected = help_epoch_hash(pack, &s);
    CHECK(expected);
    for (s.threads = 2; s.threads <= 8; s.threads *= 2)
        CHECK_INT(help_epoch_hash(pack, &s), expected);
}

TEST(a_broken_sample_is_replaced_with_its_size)
{
    PenLoaderSettings s = settings(RESIZE " | pad_batch 8");
    s.first = s.count = 0;
    CHECK_INT(help_epoch_hash(pack, &s), 0);
    s.on_bad = PEN_BAD_SUBSTITUTE;
    uint64_t expected = help_epoch_hash(pack, &s);
    CHECK(expected);
    s.threads = 4;
    CHECK_INT(help_epoch_hash(pack, &s), expected);
}

static int open_and_close(PenError *err)
{
    PenLoader *l = NULL;
    PenLoaderSettings s = settings("image: " RESIZE "; mask: " RESIZE " | pad_batch");
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

TEST(errors)
{
    static const struct {
        const char *pipeline, *message;
    } cases[] = {
        {RESIZE " | repeat 2", "repeat needs results of one size"},
        {"decode | resize min_side=8", "the size of the images has no bound"},
        {"decode | resize max_side=4000 | pad_batch", "memory: expected at least"},
        {"image: " RESIZE "; image_sizes = image: " RESIZE, "the name of the images' sizes"},
    };
    for (size_t i = 0; i < PEN_LEN(cases); i++) {
        PenError err = {0};
        PenLoader *l = NULL;
        PenLoaderSettings s = settings(cases[i].pipeline);
        CHECK(pen_loader_open(pack, &s, &l, &err) < 0);
        if (!strstr(err.message, cases[i].message))
            CHECK_STR(err.message, cases[i].message);
    }
}

int main(int argc, char **argv)
{
    TEST_START(argc, argv);
    help_begin();
    pack = help_load_pack("sizes.pen", N, BAD, PEN_MODE_KEEP);
    RUN(padded_images_are_those_of_the_list);
    RUN(fields_of_a_list_and_of_a_padded_tensor);
    RUN(a_sample_by_its_number);
    RUN(the_same_whatever_the_threads);
    RUN(a_broken_sample_is_replaced_with_its_size);
    RUN(every_allocation_may_fail);
    RUN(errors);
    pen_pack_close(&pack);
    help_end();
    return TEST_END();
}
