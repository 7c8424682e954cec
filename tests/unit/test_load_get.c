/* SPDX-License-Identifier: Apache-2.0 */
/* Single samples on the thread of the caller: those of the loader's batches, whoever calls. */
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fault_sweep.h"
#include "load_help.h"

enum { N = 23, BAD = 11, CALLERS = 4 };
#define FIELDS "image: decode | random_resized_crop 32 | hflip; id: key; label: tensor"

static PenPack *pack;
static const uint64_t repeated[] = {3, 7, 3, 0, 22, 3};

static PenLoaderSettings settings(void)
{
    PenLoaderSettings s = help_loader_settings(1);
    s.pipeline = FIELDS;
    s.order = PEN_ORDER_SEQUENTIAL;
    s.seed = 5;
    s.subset = repeated;
    s.n_subset = PEN_LEN(repeated);
    return s;
}

static bool same_tensor(const PenTensor *a, const PenTensor *b)
{
    size_t bytes = pen_dtype_bytes(a->dtype);
    for (uint32_t i = 0; i < a->n_dims; i++) {
        if (a->shape[i] != b->shape[i])
            return false;
        bytes *= (size_t)a->shape[i];
    }
    return memcmp(a->data, b->data, bytes) == 0;
}

static bool same_batch(const PenBatch *a, const PenBatch *b)
{
    if (a->n_fields != b->n_fields || a->samples[0] != b->samples[0] || a->epoch != b->epoch ||
        a->n_valid != b->n_valid || a->n_samples != b->n_samples)
        return false;
    for (uint32_t i = 0; i < a->n_fields; i++)
        if (!same_tensor(&a->fields[i], &b->fields[i]) || a->lists[i].kind != b->lists[i].kind)
            return false;
    return true;
}

TEST(samples_are_those_of_the_passes)
{
    PenError err = {0};
    PenLoader *l = NULL;
    PenLoaderSettings s = settings();
    CHECK_INT(pen_loader_open(pack, &s, &l, &err), PEN_OK);
    for (uint64_t epoch = 0; epoch < 2; epoch++) {
        PenBatch *want = NULL, *got = NULL;
        for (uint64_t i = 0; i < PEN_LEN(repeated); i++) {
            CHECK_INT(pen_loader_next(l, -1, &want, &err), PEN_OK);
            CHECK_INT(pen_loader_get(l, epoch, i, &got, &err), PEN_OK);
            CHECK(same_batch(want, got));
            CHECK_INT(got->position, i);
            CHECK_INT(got->ordinals[0], i == 2 ? 1 : i == 5 ? 2 : 0);
            CHECK_INT(want->ordinals[0], got->ordinals[0]);
            pen_batch_unref(&want);
            pen_batch_unref(&got);
        }
        CHECK_INT(pen_loader_next(l, -1, &want, &err), PEN_END);
    }
    pen_loader_close(&l);
}

TEST(a_repeated_sample_has_its_own_draws)
{
    PenError err = {0};
    PenLoader *l = NULL;
    PenLoaderSettings s = settings();
    PenBatch *a = NULL, *b = NULL;
    CHECK_INT(pen_loader_open(pack, &s, &l, &err), PEN_OK);
    CHECK_INT(pen_loader_get(l, 0, 0, &a, &err), PEN_OK);
    CHECK_INT(pen_loader_get(l, 0, 2, &b, &err), PEN_OK);
    CHECK_INT(a->samples[0], b->samples[0]);
    CHECK(!same_tensor(&a->fields[0], &b->fields[0]));
    pen_loader_close(&l); /* the samples stay */
    CHECK(same_tensor(&a->fields[2], &b->fields[2]));
    pen_batch_unref(&a);
    pen_batch_unref(&b);
}

TEST(what_cannot_be_loaded_is_refused)
{
    PenError err = {0};
    PenLoader *l = NULL;
    PenLoaderSettings s = settings();
    PenBatch *b = NULL;
    CHECK_INT(pen_loader_open(pack, &s, &l, &err), PEN_OK);
    CHECK_INT(pen_loader_get(l, 0, PEN_LEN(repeated), &b, &err), PEN_E_INVALID);
    CHECK(strstr(err.message, "below 6"));
    CHECK_INT(pen_loader_get(l, UINT64_MAX, 0, &b, &err), PEN_E_INVALID);
    pen_loader_close(&l);
    s.batch_size = 2;
    CHECK_INT(pen_loader_open(pack, &s, &l, &err), PEN_OK);
    CHECK_INT(pen_loader_get(l, 0, 0, &b, &err), PEN_E_INVALID);
    CHECK(strstr(err.message, "batch_size: expected 1"));
    pen_loader_close(&l);
    CHECK(!b);
}

TEST(a_broken_sample_is_named_or_replaced)
{
    PenError err = {0};
    PenLoader *l = NULL;
    PenLoaderSettings s = settings();
    PenBatch *b = NULL;
    s.pipeline = "image: decode | resize 16,16; label: tensor"; /* all of each image */
    s.subset = NULL;
    s.n_subset = 0;
    CHECK_INT(pen_loader_open(pack, &s, &l, &err), PEN_OK);
    CHECK_INT(pen_loader_get(l, 0, BAD, &b, &err), PEN_E_DECODE);
    CHECK_INT(err.sample, BAD);
    CHECK(strstr(err.message, "sample 11 'key-11'"));
    CHECK_INT(pen_loader_get(l, 0, BAD, &b, NULL), PEN_E_DECODE);
    pen_loader_close(&l);
    s.on_bad = PEN_BAD_SUBSTITUTE;
    CHECK_INT(pen_loader_open(pack, &s, &l, &err), PEN_OK);
    CHECK_INT(pen_loader_get(l, 0, BAD, &b, &err), PEN_OK);
    CHECK_INT(b->n_substituted, 1);
    CHECK(!b->ordinals); /* no sample twice */
    CHECK(b->samples[0] != BAD);
    pen_batch_unref(&b);
    pen_loader_close(&l);
}

typedef struct Caller {
    PenLoader *loader;
    PenBatch *const *want;
    int wrong;
} Caller;

static void *call(void *arg)
{
    Caller *c = arg;
    for (uint64_t i = 0; i < 10 * PEN_LEN(repeated); i++) {
        PenBatch *b = NULL;
        uint64_t at = i % PEN_LEN(repeated);
        if (pen_loader_get(c->loader, 1, at, &b, NULL) < 0 || !same_batch(b, c->want[at]))
            c->wrong++;
        pen_batch_unref(&b);
    }
    return NULL;
}

TEST(several_threads_call_at_once)
{
    PenError err = {0};
    PenLoader *l = NULL;
    PenLoaderSettings s = settings();
    PenBatch *want[PEN_LEN(repeated)] = {0};
    Caller callers[CALLERS];
    pthread_t threads[CALLERS];
    CHECK_INT(pen_loader_open(pack, &s, &l, &err), PEN_OK);
    for (uint64_t i = 0; i < PEN_LEN(repeated); i++)
        CHECK_INT(pen_loader_get(l, 1, i, &want[i], &err), PEN_OK);
    for (int i = 0; i < CALLERS; i++) {
        callers[i] = (Caller){.loader = l, .want = want};
        CHECK_INT(pthread_create(&threads[i], NULL, call, &callers[i]), 0);
    }
    for (int i = 0; i < CALLERS; i++) {
        pthread_join(threads[i], NULL);
        CHECK_INT(callers[i].wrong, 0);
    }
    for (uint64_t i = 0; i < PEN_LEN(repeated); i++)
        pen_batch_unref(&want[i]);
    pen_loader_close(&l);
}

TEST(a_child_process_is_refused)
{
    PenError err = {0};
    PenLoader *l = NULL;
    PenLoaderSettings s = settings();
    PenBatch *b = NULL;
    int status = 1;
    CHECK_INT(pen_loader_open(pack, &s, &l, &err), PEN_OK);
    pid_t pid = fork();
    if (pid == 0)
        _exit(pen_loader_get(l, 0, 0, &b, &err) == PEN_E_CLOSED ? 0 : 1);
    CHECK(waitpid(pid, &status, 0) == pid);
    CHECK_INT(status, 0);
    pen_loader_close(&l);
}

static int get_one(PenError *err)
{
    PenLoader *l = NULL;
    PenBatch *b = NULL;
    PenLoaderSettings s = settings();
    int r = pen_loader_open(pack, &s, &l, err);
    if (r == PEN_OK)
        r = pen_loader_get(l, 0, 1, &b, err);
    pen_batch_unref(&b);
    pen_loader_close(&l);
    return r;
}

TEST(every_allocation_may_fail)
{
    int points = 0;
    PenError err = {0};
    CHECK_INT(get_one(&err), PEN_OK); /* the pack keeps what it reads */
    fault_sweep(get_one, &points);
    CHECK(points > 10);
}

int main(int argc, char **argv)
{
    TEST_START(argc, argv);
    help_begin();
    pack = help_load_pack("get.pen", N, BAD, PEN_MODE_KEEP);
    RUN(samples_are_those_of_the_passes);
    RUN(a_repeated_sample_has_its_own_draws);
    RUN(what_cannot_be_loaded_is_refused);
    RUN(a_broken_sample_is_named_or_replaced);
    RUN(several_threads_call_at_once);
    RUN(a_child_process_is_refused);
    RUN(every_allocation_may_fail);
    pen_pack_close(&pack);
    help_end();
    return TEST_END();
}
