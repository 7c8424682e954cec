/* SPDX-License-Identifier: Apache-2.0 */
/* Samples of a batch that are mixed, and their targets: threads, tiers, broken samples, memory. The
 * values are compared with NumPy in tests/python/test_py_mixup.py. */
#include "fault_sweep.h"
#include "load_help.h"

enum { N = 23, BATCH = 6, BAD = 7 };
#define CROP "decode | random_resized_crop 32"
#define MIX " | mixup 0.8 p=0.5 per=sample | cutmix p=0.4 per=sample"
#define TARGETS "; label: one_hot 23 label_smoothing=0.1 | tensor "

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

TEST(the_same_whatever_the_threads)
{
    static const char *const pipelines[] = {
        "image: " CROP " | tensor u8" MIX TARGETS "f32",
        "image: " CROP " | tensor f16 nchw" MIX TARGETS "f16",
        "image: " CROP " | normalize | tensor bf16" MIX TARGETS "bf16",
        "image: " CROP " | normalize | tensor f32 nchw | mixup" TARGETS "f32",
    };
    for (size_t i = 0; i < PEN_LEN(pipelines); i++) {
        PenLoaderSettings s = settings(pipelines[i]);
        s.threads = 1;
        uint64_t expected = help_epoch_hash(pack, &s);
        CHECK(expected);
        for (s.threads = 2; s.threads <= 8; s.threads *= 2)
            CHECK_INT(help_epoch_hash(pack, &s), expected);
    }
}

/* Before it is mixed. */
TEST(a_broken_sample_is_replaced)
{
    PenLoaderSettings s = settings("image: " CROP MIX TARGETS "f32");
    s.first = s.count = 0;
    CHECK_INT(help_epoch_hash(pack, &s), 0);
    s.on_bad = PEN_BAD_SUBSTITUTE;
    uint64_t expected = help_epoch_hash(pack, &s);
    CHECK(expected);
    s.threads = 4;
    CHECK_INT(help_epoch_hash(pack, &s), expected);
}

/* Labels are the numbers of the samples: none below 8 is a class of 8. */
TEST(a_class_that_there_is_not_is_a_bad_sample)
{
    PenError err = {0};
    PenLoader *l = NULL;
    PenLoaderSettings s = settings("image: " CROP "; label: one_hot 8");
    PenSha256 hash;
    pen__sha256_init(&hash);
    CHECK_INT(pen_loader_open(pack, &s, &l, &err), PEN_OK);
    CHECK_INT(pen_loader_begin(l, &err), PEN_OK);
    CHECK_INT(help_drain(l, &hash, 9, &err), PEN_E_DECODE);
    CHECK(err.sample > BAD);
    CHECK(
        strstr(err.message, "field 'label': one_hot: expected a class number from 0 to 7, found"));
    pen_loader_close(&l);
    s.on_bad = PEN_BAD_SUBSTITUTE;
    CHECK_INT(help_epoch_hash(pack, &s), 0);
    s.first = s.count = 0; /* there are samples with a class to take instead */
    CHECK(help_epoch_hash(pack, &s));
}

TEST(pairs_need_an_even_batch)
{
    for (uint32_t batch = 1; batch < 4; batch += 2) {
        PenError err = {0};
        PenLoader *l = NULL;
        PenLoaderSettings s = settings("image: " CROP MIX TARGETS "f32");
        s.batch_size = batch;
        CHECK_INT(pen_loader_open(pack, &s, &l, &err), PEN_E_INVALID);
        CHECK(strstr(err.message, batch == 1 ? "a single sample has no partner"
                                             : "expected an even number, found 3"));
    }
}

static int open_and_close(PenError *err)
{
    PenLoader *l = NULL;
    PenLoaderSettings s = settings("a = image: " CROP MIX "; b = image: " CROP " | cutmix"
                                   "; x = label: one_hot 23 of=a; y = label: one_hot 23 of=b");
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
    pack = help_load_pack("mixup.pen", N, BAD, PEN_MODE_KEEP);
    RUN(the_same_whatever_the_threads);
    RUN(a_broken_sample_is_replaced);
    RUN(a_class_that_there_is_not_is_a_bad_sample);
    RUN(pairs_need_an_even_batch);
    RUN(every_allocation_may_fail);
    pen_pack_close(&pack);
    help_end();
    return TEST_END();
}
