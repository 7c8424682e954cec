/* SPDX-License-Identifier: Apache-2.0 */
/* A loader with a token budget. test_py_tokens.py compares its patches with NumPy's. */
#include "base/attr.h"
#include "lib/fault_sys.h"
#include "load_help.h"

enum { N = 40, SIDE = 4 };

static PenPack *pack;
static const uint32_t lengths[] = {4, 12, 9};

static PenLoaderSettings settings(void)
{
    PenLoaderSettings s = help_loader_settings(0);
    s.batch_size = 256; /* it is not used */
    s.pipeline = "image: decode | patches 4 | tensor u8; label: tensor; key: key";
    s.tokens = 26;
    s.lengths = lengths;
    s.n_lengths = PEN_LEN(lengths);
    s.last_batch = PEN_LAST_PAD;
    return s;
}

static void check_batch(const PenBatch *b)
{
    uint32_t length = lengths[b->bucket], n = 26 / length;
    const int64_t *grid = b->fields[1].data;
    const uint8_t *mask = b->fields[2].data;
    CHECK_INT(b->n_samples, n);
    for (uint32_t i = 0; i < 4; i++)
        CHECK_INT(b->fields[i].shape[0], n);
    CHECK_INT(b->fields[0].shape[1], length);
    CHECK_INT(b->fields[0].shape[2], SIDE * SIDE * 3);
    CHECK_INT(b->fields[2].shape[1], length);
    for (uint32_t i = 0; i < n; i++) {
        int64_t patches = grid[2 * i] * grid[2 * i + 1];
        CHECK(patches >= 1 && patches <= length);
        for (uint32_t k = 0; k < length; k++)
            CHECK_INT(mask[i * length + k], k < patches);
        CHECK_INT(((const int64_t *)b->fields[3].data)[i], b->samples[i]);
    }
}

TEST(every_step_has_the_batch_of_its_length)
{
    PenLoaderSettings s = settings();
    PenLoader *l = NULL;
    PenBatch *b = NULL;
    uint32_t seen[N] = {0}, n = 0;
    CHECK_INT(pen_loader_open(pack, &s, &l, NULL), PEN_OK);
    PenTensor t = pen_loader_field_tensor(l, 0);
    CHECK(t.shape[0] == -1 && t.shape[1] == -1 && t.shape[2] == SIDE * SIDE * 3);
    CHECK_INT(pen_loader_field_tensor(l, 3).shape[0], -1);
    for (int r; (r = pen_loader_next(l, -1, &b, NULL)) == PEN_OK; n++) {
        check_batch(b);
        for (uint32_t i = 0; i < b->n_samples; i++)
            seen[b->samples[i]] += b->valid[i];
        pen_batch_unref(&b);
        CHECK_OK_SO_FAR();
    }
    CHECK_INT(n, pen_loader_len(l));
    for (uint32_t i = 0; i < N; i++)
        CHECK_INT(seen[i], 1);
    PenError err = {0};
    CHECK_INT(pen_loader_get(l, 0, 0, &b, &err), PEN_E_INVALID);
    CHECK(strstr(err.message, "tokens: single samples have no step"));
    pen_loader_close(&l);
}

static void refuse(const PenLoaderSettings *s, const char *says)
{
    PenError err = {0};
    PenLoader *l = NULL;
    CHECK_INT(pen_loader_open(pack, s, &l, &err), PEN_E_INVALID);
    CHECK(!l && strstr(err.message, says));
}

TEST(what_is_no_budget_is_refused)
{
    static const PenBucketSize size = {8, 8};
    static const uint32_t none = 0, one = 1;
    PenLoaderSettings s = settings();
    s.tokens = 11;
    refuse(&s, "lengths: entry 1: expected 1 to 11 (tokens), found 12");
    s.tokens = 0;
    refuse(&s, "tokens, lengths: expected both, found only lengths");
    s = settings();
    s.lengths = NULL;
    refuse(&s, "tokens, lengths: expected both, found only tokens");
    s = settings();
    s.n_lengths = 0;
    refuse(&s, "lengths: expected 1 to 64 numbers, found 0");
    s.n_lengths = 1;
    s.lengths = &none;
    refuse(&s, "lengths: entry 0: expected 1 to 26 (tokens), found 0");
    s.lengths = &one;
    s.tokens = UINT32_MAX;
    refuse(&s, "expected batches of at most 1048576 samples, found 4294967295 tokens / 1");
    s = settings();
    s.buckets = &size;
    s.n_buckets = 1;
    refuse(&s, "tokens: expected buckets or a token budget, found both");
    s = settings();
    s.pipeline = "decode | center_crop 8";
    refuse(&s, "tokens: no operation of the pipeline has the length of a step");
    s = settings();
    s.tokens = 0;
    s.lengths = NULL;
    refuse(&s, "patches: length is 'tokens', but there is no token budget");
}

/* Any call of the system may fail while a loader is opened: nothing is left behind. */
TEST(failures_leave_nothing_behind)
{
    PenLoaderSettings s = settings();
    int r = PEN_E_NO_MEMORY;
    for (uint64_t at = 1; at < 2000 && r != PEN_OK; at++) {
        PenLoader *l = NULL;
        fault_begin(&(FaultPlan){.at = at});
        r = pen_loader_open(pack, &s, &l, NULL);
        pen_loader_close(&l);
        FaultSeen seen = fault_end();
        CHECK(r < 0 || !seen.failed || seen.first != FAULT_ALLOC);
        if (r == PEN_OK && seen.failed)
            r = PEN_E_NO_MEMORY; /* it did without */
    }
    CHECK_INT(r, PEN_OK);
}

int main(int argc, char **argv)
{
    TEST_START(argc, argv);
    help_begin();
    pack = help_load_pack("pack.pen", N, -1, PEN_MODE_KEEP);
    RUN(every_step_has_the_batch_of_its_length);
    RUN(what_is_no_budget_is_refused);
    RUN(failures_leave_nothing_behind);
    pen_pack_close(&pack);
    help_end();
    return TEST_END();
}
