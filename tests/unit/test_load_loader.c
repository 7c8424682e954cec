/* SPDX-License-Identifier: Apache-2.0 */
/* The loader as a whole: the same batches whatever the circumstances, and an error in all others.
 */
#include <errno.h>
#include <glob.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <unistd.h>

#include "load_help.h"

static PenPack *pack;
enum { N = 43 };

TEST(a_batch_is_what_the_pack_holds)
{
    PenError err = {0};
    PenLoader *l = NULL;
    PenBatch *b = NULL;
    PenLoaderSettings s = help_loader_settings(8);
    s.order = PEN_ORDER_SEQUENTIAL;
    CHECK_INT(pen_loader_open(pack, &s, &l, &err), PEN_OK);
    CHECK_INT(pen_loader_len(l), N / 8);
    CHECK_INT(pen_loader_fields(l), 2);
    CHECK_STR(pen_loader_field_name(l, 0), "image");
    CHECK_STR(pen_loader_field_name(l, 1), "label");
    for (uint32_t g = 0; g < N / 8; g++) {
        CHECK_INT(pen_loader_next(l, -1, &b, &err), PEN_OK);
        CHECK_INT(b->n_samples, 8);
        CHECK_INT(b->n_valid, 8);
        CHECK_INT(b->position, g * 8);
        CHECK_INT(b->fields[0].shape[1], 32);
        CHECK_INT(b->fields[0].shape[3], 3);
        CHECK_INT(b->fields[1].dtype, PEN_I64);
        const int64_t *labels = b->fields[1].data;
        for (uint32_t i = 0; i < 8; i++) {
            CHECK_INT(b->samples[i], g * 8 + i);
            CHECK_INT(labels[i], g * 8 + i);
        }
        pen_batch_unref(&b);
    }
    CHECK_INT(pen_loader_next(l, -1, &b, &err), PEN_END);
    CHECK_INT(pen_loader_epoch(l), 1);
    pen_loader_close(&l);
}

/* Of 43 samples in blocks of 5: six streams, and some blocks behind them. */
static PenLoaderSettings settings_of(int order, uint32_t batch)
{
    PenLoaderSettings s = help_loader_settings(batch);
    s.order = order;
    s.shuffle_buffer = 30;
    return s;
}

TEST(the_same_whatever_the_threads_and_memory)
{
    for (int order = 0; order <= PEN_ORDER_STICKY; order++) {
        PenLoaderSettings s = settings_of(order, 7);
        s.threads = 1;
        s.prefetch = 0;
        uint64_t expected = help_epoch_hash(pack, &s);
        CHECK(expected);
        for (int threads = 1; threads <= 8; threads *= 2) {
            s.threads = threads;
            s.io_threads = 1 + threads / 3;
            s.prefetch = threads == 2 ? 1 : 4;
            s.memory_bytes = threads == 4 ? 18 << 20 : 256 << 20;
            CHECK_INT(help_epoch_hash(pack, &s), expected);
        }
        s.seed++;
        CHECK(order == 0 || help_epoch_hash(pack, &s) != expected);
    }
}

/* The order of an epoch, and which of its positions were delivered. */
typedef struct Epoch {
    uint64_t place[N]; /* of each sample */
    uint32_t times[N]; /* of each position */
    uint64_t start;
    char state[PEN_STATE_BYTES];
} Epoch;

static void list_epoch(int order, Epoch *e)
{
    PenLoaderSettings s = settings_of(order, 4);
    PenLoader *l = NULL;
    PenBatch *b = NULL;
    uint64_t p = 0;
    s.pipeline = NULL;
    s.last_batch = PEN_LAST_PAD;
    memset(e, 0, sizeof *e);
    CHECK_INT(pen_loader_open(pack, &s, &l, NULL), PEN_OK);
    while (pen_loader_next(l, -1, &b, NULL) == PEN_OK) {
        CHECK_INT(b->position, p);
        for (uint32_t i = 0; i < b->n_valid; i++)
            e->place[b->samples[i]] = p++;
        pen_batch_unref(&b);
    }
    CHECK_INT(p, N);
    pen_loader_close(&l);
}

/* Some steps of one rank, each of the next positions of all ranks; `after` is its state. */
static void deliver_rank(const PenLoaderSettings *s, uint64_t steps, Epoch *e, char *after)
{
    PenLoader *l = NULL;
    PenBatch *b = NULL;
    uint64_t global = (uint64_t)s->batch_size * s->world, first = e->start;
    CHECK_INT(pen_loader_open(pack, s, &l, NULL), PEN_OK);
    if (e->state[0])
        CHECK_INT(pen_loader_restore(l, e->state, 1, NULL), PEN_OK);
    for (uint64_t g = 0; g < steps && first < N; g++, first += global) {
        CHECK_INT(pen_loader_next(l, -1, &b, NULL), PEN_OK);
        CHECK_INT(b->n_samples, s->batch_size);
        for (uint32_t i = 0; i < b->n_samples; i++) {
            uint64_t p = e->place[b->samples[i]];
            CHECK_INT(b->valid[i], i < b->n_valid);
            CHECK(!b->valid[i] || (p >= first && p < first + global));
            e->times[p] += b->valid[i];
        }
        pen_batch_unref(&b);
    }
    if (steps == UINT64_MAX)
        CHECK_INT(pen_loader_next(l, -1, &b, NULL), PEN_END);
    CHECK_INT(pen_loader_save(l, after, NULL), PEN_OK);
    pen_loader_close(&l);
}

static void deliver(int order, uint32_t world, uint32_t batch, uint64_t steps, Epoch *e)
{
    char first[PEN_STATE_BYTES], after[PEN_STATE_BYTES];
    PenLoaderSettings s = settings_of(order, batch);
    s.pipeline = NULL;
    s.last_batch = PEN_LAST_PAD;
    s.world = world;
    for (s.rank = 0; s.rank < world; s.rank++) {
        deliver_rank(&s, steps, e, s.rank ? after : first);
        CHECK_OK_SO_FAR();
        if (s.rank)
            CHECK_STR(after, first);
    }
    memcpy(e->state, first, sizeof first);
    e->start += steps * batch * world;
}

TEST(a_state_goes_on_with_another_number_of_ranks)
{
    for (int order = 0; order <= PEN_ORDER_STICKY; order++) {
        Epoch all, e;
        list_epoch(order, &all);
        CHECK_OK_SO_FAR();
        for (uint32_t before = 1; before <= 4; before++)
            for (uint32_t after = 1; after <= 4; after++)
                for (uint64_t steps = 0; steps < 4; steps++) {
                    e = all;
                    deliver(order, before, 3, steps, &e);
                    CHECK_OK_SO_FAR();
                    deliver(order, after, 2, UINT64_MAX, &e);
                    CHECK_OK_SO_FAR();
                    for (uint64_t p = 0; p < N; p++)
                        CHECK_INT(e.times[p], 1);
                    CHECK(strstr(e.state, "epoch=1 "));
                }
    }
}

/* Ranks whose hashes are equal deliver parts of one order, whatever else is set. */
TEST(the_hash_of_the_order_is_that_of_every_rank)
{
    uint64_t hashes[8];
    for (size_t i = 0; i < PEN_LEN(hashes); i++) {
        PenLoader *l = NULL;
        PenLoaderStats stats;
        PenLoaderSettings s = settings_of(PEN_ORDER_SHUFFLE, i == 1 ? 7 : 4);
        s.world = i == 2 ? 5 : 1;
        s.rank = i == 2 ? 3 : 0;
        s.threads = i == 3 ? 1 : 2;
        s.memory_bytes = i == 3 ? 18 << 20 : 64 << 20;
        s.seed = i == 4;
        s.order = i == 5 ? PEN_ORDER_STICKY : PEN_ORDER_SHUFFLE;
        s.shuffle_buffer = i == 6 ? 60 : 30;
        s.count = i == 7 ? 40 : 0;
        CHECK_INT(pen_loader_open(pack, &s, &l, NULL), PEN_OK);
        pen_loader_stats(l, &stats);
        hashes[i] = stats.order_hash;
        pen_loader_close(&l);
        CHECK_INT(hashes[i] == hashes[0], i < 4);
    }
}

static void check_buffer(uint64_t asked, uint64_t expected)
{
    char state[PEN_STATE_BYTES], text[80];
    PenLoader *l = NULL;
    PenLoaderSettings s = settings_of(PEN_ORDER_SHUFFLE, 4);
    s.shuffle_buffer = asked;
    snprintf(text, sizeof text, " shuffle_buffer=%" PRIu64 " block=5 ", expected);
    CHECK_INT(pen_loader_open(pack, &s, &l, NULL), PEN_OK);
    CHECK_INT(pen_loader_save(l, state, NULL), PEN_OK);
    pen_loader_close(&l);
    CHECK(strstr(state, text));
}

/* The default is 1 GiB of the pack: 2^17 blocks or so of these samples. */
TEST(a_shuffle_buffer_is_rounded_up)
{
    static const uint64_t cases[][2] = {{1, 30},   {29, 30},   {30, 30},     {31, 60},    {60, 60},
                                        {61, 120}, {120, 120}, {3840, 3840}, {3841, 7680}};
    for (size_t i = 0; i < PEN_LEN(cases); i++) {
        check_buffer(cases[i][0], cases[i][1]);
        CHECK_OK_SO_FAR();
    }
    const PenPackInfo *info = pen_pack_info(pack);
    uint64_t samples = (1u << 30) / (info->stats.payload_bytes / N + 1), expected = 30;
    while (expected < samples)
        expected *= 2;
    check_buffer(0, expected);
}

TEST(a_restored_place_is_kept_by_naming_its_epoch)
{
    PenError err = {0};
    PenLoader *l = NULL;
    PenBatch *b = NULL;
    char state[PEN_STATE_BYTES];
    PenLoaderSettings s = help_loader_settings(4);
    s.pipeline = NULL;
    CHECK_INT(pen_loader_open(pack, &s, &l, &err), PEN_OK);
    CHECK_INT(pen_loader_set_epoch(l, 5, &err), PEN_OK);
    for (int i = 0; i < 3; i++) {
        CHECK_INT(pen_loader_next(l, -1, &b, &err), PEN_OK);
        CHECK_INT(b->epoch, 5);
        pen_batch_unref(&b);
    }
    CHECK_INT(pen_loader_save(l, state, &err), PEN_OK);
    pen_loader_close(&l);
    CHECK_INT(pen_loader_open(pack, &s, &l, &err), PEN_OK);
    CHECK_INT(pen_loader_restore(l, state, 1, &err), PEN_OK);
    CHECK_INT(pen_loader_epoch(l), 5);
    CHECK_INT(pen_loader_set_epoch(l, 5, &err), PEN_OK);
    CHECK_INT(pen_loader_next(l, -1, &b, &err), PEN_OK);
    CHECK_INT(b->position, 12);
    pen_batch_unref(&b);
    /* Begun again without a name: the next epoch, from its start. */
    CHECK_INT(pen_loader_begin(l, &err), PEN_OK);
    CHECK_INT(pen_loader_next(l, -1, &b, &err), PEN_OK);
    CHECK_INT(b->epoch, 6);
    CHECK_INT(b->position, 0);
    pen_batch_unref(&b);
    pen_loader_close(&l);
}

static void check_peek(PenLoader *l, uint64_t position)
{
    PenError err = {0};
    PenBatch *b = NULL;
    char before[PEN_STATE_BYTES], after[PEN_STATE_BYTES];
    CHECK_INT(pen_loader_save(l, before, &err), PEN_OK);
    for (int i = 0; i < 2; i++) {
        CHECK_INT(pen_loader_peek(l, -1, &b, &err), PEN_OK);
        CHECK_INT(b->position, position);
        pen_batch_unref(&b);
        CHECK_INT(pen_loader_save(l, after, &err), PEN_OK);
        CHECK_STR(after, before);
    }
}

TEST(a_batch_that_was_not_delivered_is_the_next_one)
{
    PenError err = {0};
    PenLoader *l = NULL;
    PenBatch *b = NULL;
    PenLoaderSettings s = help_loader_settings(4);
    uint64_t steps, n = 0;
    s.pipeline = NULL;
    CHECK_INT(pen_loader_open(pack, &s, &l, &err), PEN_OK);
    CHECK_INT(pen_loader_begin(l, &err), PEN_OK);
    for (steps = pen_loader_len(l); n < steps; n++) {
        check_peek(l, 4 * n);
        CHECK_INT(pen_loader_epoch(l), 0);
        CHECK_INT(pen_loader_next(l, 0, &b, &err), PEN_OK);
        CHECK_INT(b->position, 4 * n);
        pen_batch_unref(&b);
    }
    CHECK_INT(pen_loader_peek(l, -1, &b, &err), PEN_END);
    /* The first batch waits: its epoch may still be set, and another pass begun. */
    check_peek(l, 0);
    CHECK_INT(pen_loader_set_epoch(l, 1, &err), PEN_OK);
    check_peek(l, 0);
    CHECK_INT(pen_loader_set_epoch(l, 6, &err), PEN_OK);
    CHECK_INT(pen_loader_begin(l, &err), PEN_OK);
    check_peek(l, 0);
    CHECK_INT(pen_loader_next(l, 0, &b, &err), PEN_OK);
    CHECK_INT(b->epoch, 6);
    pen_batch_unref(&b);
    check_peek(l, 4);
    CHECK_INT(pen_loader_begin(l, &err), PEN_OK);
    check_peek(l, 0);
    CHECK_INT(pen_loader_epoch(l), 7);
    pen_loader_close(&l);
}

TEST(an_epoch_can_be_named_after_its_pass_was_begun)
{
    PenError err = {0};
    PenLoader *l = NULL;
    PenBatch *b = NULL;
    char state[PEN_STATE_BYTES];
    PenLoaderSettings s = help_loader_settings(4);
    s.pipeline = NULL;
    CHECK_INT(pen_loader_open(pack, &s, &l, &err), PEN_OK);
    CHECK_INT(pen_loader_next(l, -1, &b, &err), PEN_OK);
    pen_batch_unref(&b);
    CHECK_INT(pen_loader_save(l, state, &err), PEN_OK);
    CHECK_INT(pen_loader_restore(l, state, 1, &err), PEN_OK);
    CHECK_INT(pen_loader_begin(l, &err), PEN_OK);
    CHECK_INT(pen_loader_set_epoch(l, 0, &err), PEN_OK);
    CHECK_INT(pen_loader_next(l, -1, &b, &err), PEN_OK);
    CHECK_INT(b->position, 4); /* the restored place */
    pen_batch_unref(&b);
    CHECK_INT(pen_loader_begin(l, &err), PEN_OK);
    CHECK_INT(pen_loader_set_epoch(l, 7, &err), PEN_OK);
    CHECK_INT(pen_loader_next(l, -1, &b, &err), PEN_OK);
    CHECK_INT(b->epoch, 7);
    CHECK_INT(b->position, 0);
    pen_batch_unref(&b);
    pen_loader_close(&l);
}

TEST(states_of_other_runs_are_refused)
{
    PenError err = {0};
    PenLoader *l = NULL;
    char state[PEN_STATE_BYTES];
    PenLoaderSettings s = help_loader_settings(4);
    CHECK_INT(pen_loader_open(pack, &s, &l, &err), PEN_OK);
    CHECK_INT(pen_loader_save(l, state, &err), PEN_OK);
    pen_loader_close(&l);
    s.pipeline = "decode | center_crop 32 | tensor u8 nhwc";
    CHECK_INT(pen_loader_open(pack, &s, &l, &err), PEN_OK);
    CHECK_INT(pen_loader_restore(l, state, 1, &err), PEN_E_INVALID);
    CHECK(strstr(err.message, "pipeline"));
    CHECK_INT(pen_loader_restore(l, state, 0, &err), PEN_OK);
    pen_loader_close(&l);
    s = help_loader_settings(4);
    s.count = 20;
    CHECK_INT(pen_loader_open(pack, &s, &l, &err), PEN_OK);
    CHECK_INT(pen_loader_restore(l, state, 1, &err), PEN_E_INVALID);
    pen_loader_close(&l);
}

TEST(subsets_by_list_and_range)
{
    PenError err = {0};
    PenLoader *l = NULL;
    PenBatch *b = NULL;
    static const uint64_t list[] = {40, 2, 17, 2};
    PenLoaderSettings s = help_loader_settings(4);
    s.pipeline = NULL;
    s.order = PEN_ORDER_SEQUENTIAL;
    s.subset = list;
    s.n_subset = 4;
    CHECK_INT(pen_loader_open(pack, &s, &l, &err), PEN_OK);
    CHECK_INT(pen_loader_next(l, -1, &b, &err), PEN_OK);
    CHECK_MEM(b->samples, list, sizeof list);
    pen_batch_unref(&b);
    pen_loader_close(&l);
    s.subset = NULL;
    s.first = 39;
    s.count = 4;
    CHECK_INT(pen_loader_open(pack, &s, &l, &err), PEN_OK);
    CHECK_INT(pen_loader_next(l, -1, &b, &err), PEN_OK);
    CHECK_INT(b->samples[0], 39);
    CHECK_INT(b->samples[3], 42);
    pen_batch_unref(&b);
    pen_loader_close(&l);
    s.count = 5;
    CHECK_INT(pen_loader_open(pack, &s, &l, &err), PEN_E_INVALID);
    CHECK(strstr(err.message, "0 to 43"));
    s.count = 0;
    s.subset = (const uint64_t[]){43};
    s.n_subset = 1;
    CHECK_INT(pen_loader_open(pack, &s, &l, &err), PEN_E_INVALID);
    CHECK(strstr(err.message, "found 43"));
}

TEST(weights_choose_samples)
{
    static double weights[N];
    PenLoaderSettings s = help_loader_settings(4);
    PenLoader *loader = NULL;
    PenError err = {0};
    weights[7] = 2;
    s.weights = weights;
    s.n_weights = N;
    CHECK_INT(pen_loader_open(pack, &s, &loader, &err), PEN_OK);
    PenBatch *batch = NULL;
    CHECK_INT(pen_loader_next(loader, -1, &batch, &err), PEN_OK);
    for (uint32_t i = 0; i < 4; i++)
        CHECK_INT(batch->samples[i], 7);
    pen_batch_unref(&batch);
    pen_loader_close(&loader);
    s.n_weights = N - 1;
    CHECK_INT(pen_loader_open(pack, &s, &loader, &err), PEN_E_INVALID);
    CHECK(strstr(err.message, "one for each sample, found"));
    s.n_weights = N;
    weights[7] = 0;
    CHECK_INT(pen_loader_open(pack, &s, &loader, &err), PEN_E_INVALID);
    CHECK(strstr(err.message, "at least one that is not 0"));
}

/* Repeats of a sample are cropped differently in an epoch, and the first one as ever. */
TEST(repeats_in_a_subset_differ)
{
    enum { BATCH = 4, BYTES = 32 * 32 * 3 };
    static const uint64_t list[BATCH] = {7, 9, 7, 7};
    PenError err = {0};
    PenLoader *l = NULL;
    PenBatch *b = NULL, *alone = NULL;
    PenLoaderSettings s = help_loader_settings(BATCH);
    s.order = PEN_ORDER_SEQUENTIAL;
    s.subset = list;
    s.n_subset = BATCH;
    CHECK_INT(pen_loader_open(pack, &s, &l, &err), PEN_OK);
    CHECK_INT(pen_loader_next(l, -1, &b, &err), PEN_OK);
    pen_loader_close(&l);
    s.n_subset = s.batch_size = 2;
    CHECK_INT(pen_loader_open(pack, &s, &l, &err), PEN_OK);
    CHECK_INT(pen_loader_next(l, -1, &alone, &err), PEN_OK);
    pen_loader_close(&l);
    const uint8_t *pixels = b->fields[0].data;
    CHECK_MEM(pixels, alone->fields[0].data, 2 * BYTES);
    CHECK(memcmp(pixels, pixels + 2 * BYTES, BYTES) != 0);
    CHECK(memcmp(pixels, pixels + 3 * BYTES, BYTES) != 0);
    CHECK(memcmp(pixels + 2 * BYTES, pixels + 3 * BYTES, BYTES) != 0);
    pen_batch_unref(&b);
    pen_batch_unref(&alone);
}

TEST(epochs_and_buffers_have_limits)
{
    PenError err = {0};
    PenLoader *l = NULL;
    PenLoaderSettings s = help_loader_settings(4);
    CHECK_INT(pen_loader_open(pack, &s, &l, &err), PEN_OK);
    CHECK_INT(pen_loader_set_epoch(l, UINT64_C(1) << 63, &err), PEN_E_INVALID);
    CHECK(strstr(err.message, "epoch: expected 0 to 9223372036854775807"));
    CHECK_INT(pen_loader_set_epoch(l, INT64_MAX, &err), PEN_OK);
    pen_loader_close(&l);
    s.order = PEN_ORDER_SHUFFLE;
    s.shuffle_buffer = UINT64_C(1) << 62;
    CHECK_INT(pen_loader_open(pack, &s, &l, &err), PEN_OK);
    pen_loader_close(&l);
    s.shuffle_buffer++;
    CHECK_INT(pen_loader_open(pack, &s, &l, &err), PEN_E_INVALID);
    CHECK(strstr(err.message, "shuffle_buffer: expected 0 to 2^62, found 4611686018427387905"));
}

/* Samples of rank 0 to world - 1 in their batches, and those that only pad. */
static void count_last(int32_t last_batch, uint32_t world, uint32_t *ret_valid, uint32_t *ret_pads)
{
    PenLoaderSettings s = help_loader_settings(8);
    PenLoaderStats stats;
    s.pipeline = NULL;
    s.last_batch = last_batch;
    s.world = world;
    *ret_valid = *ret_pads = 0;
    for (s.rank = 0; s.rank < world; s.rank++) {
        PenLoader *l = NULL;
        PenBatch *b = NULL;
        uint64_t n = 0;
        CHECK_INT(pen_loader_open(pack, &s, &l, NULL), PEN_OK);
        while (pen_loader_next(l, -1, &b, NULL) == PEN_OK) {
            CHECK_INT(b->fields[0].shape[0], b->n_samples);
            *ret_valid += b->n_valid;
            *ret_pads += b->n_samples - b->n_valid;
            n++;
            pen_batch_unref(&b);
        }
        CHECK_INT(n, pen_loader_len(l));
        pen_loader_stats(l, &stats);
        *ret_pads -= (uint32_t)stats.padded_samples;
        pen_loader_close(&l);
    }
}

TEST(the_last_batch_is_short_padded_or_dropped)
{
    for (uint32_t world = 1; world <= 50; world += world < 8 ? 1 : 21) {
        uint32_t valid, pads;
        for (int32_t last = PEN_LAST_AUTO; last <= PEN_LAST_DROP; last++) {
            count_last(last, world, &valid, &pads);
            CHECK_INT(valid, last == PEN_LAST_DROP ? N - N % (8 * world) : N);
            CHECK_INT(pads, 0);
            CHECK_OK_SO_FAR();
        }
    }
}

TEST(a_loader_chooses_its_last_batch)
{
    for (int32_t order = PEN_ORDER_SEQUENTIAL; order <= PEN_ORDER_STICKY; order++)
        for (uint32_t world = 1; world <= 2; world++)
            for (int32_t last = PEN_LAST_AUTO; last <= PEN_LAST_DROP; last++) {
                PenLoader *l = NULL;
                PenLoaderSettings s = help_loader_settings(8);
                s.order = order;
                s.world = world;
                s.last_batch = last;
                int found = last                                          ? last
                            : order == PEN_ORDER_SEQUENTIAL || world == 1 ? PEN_LAST_SHORT
                                                                          : PEN_LAST_PAD;
                CHECK_INT(pen_loader_open(pack, &s, &l, NULL), PEN_OK);
                CHECK_INT(pen_loader_last_batch(l), found);
                pen_loader_close(&l);
            }
    for (int32_t last = -1; last <= 4; last += 5) {
        PenError err = {0};
        PenLoader *l = NULL;
        PenLoaderSettings s = help_loader_settings(8);
        s.last_batch = last;
        CHECK_INT(pen_loader_open(pack, &s, &l, &err), PEN_E_INVALID);
        CHECK(strstr(err.message, "last_batch: expected 0, 1, 2 or 3, found"));
    }
}

TEST(holding_every_batch_is_an_error)
{
    PenError err = {0};
    PenLoader *l = NULL;
    static PenBatch *held[4096];
    int n = 0, r;
    PenLoaderSettings s = help_loader_settings(32);
    s.memory_bytes = 16 << 20;
    CHECK_INT(pen_loader_open(pack, &s, &l, &err), PEN_OK);
    while ((r = pen_loader_next(l, -1, &held[n], &err)) >= 0)
        n += r == PEN_OK;
    CHECK_INT(r, PEN_E_LIMIT);
    if (!strstr(err.message, "held by the caller"))
        CHECK_STR(err.message, "... held by the caller");
    CHECK(n > 8);
    pen_batch_unref(&held[--n]);
    CHECK_INT(pen_loader_next(l, -1, &held[n], &err), PEN_OK);
    n++;
    /* What is out stays valid when the loader is gone. */
    pen_loader_close(&l);
    uint32_t sum = 0;
    for (int i = 0; i < n; i++) {
        sum += *(const uint8_t *)held[i]->fields[0].data;
        pen_batch_unref(&held[i]);
    }
    CHECK(sum > 0);
}

TEST(too_little_memory_is_said_at_once)
{
    PenError err = {0};
    PenLoader *l = NULL;
    PenLoaderSettings s = help_loader_settings(1024);
    s.memory_bytes = 4 << 20;
    CHECK_INT(pen_loader_open(pack, &s, &l, &err), PEN_E_LIMIT);
    CHECK(strstr(err.message, "memory: expected at least"));
}

TEST(a_broken_sample_is_named)
{
    PenError err = {0};
    PenLoader *l = NULL;
    PenBatch *b = NULL;
    PenPack *broken = help_load_pack("broken.pen", 12, 9, PEN_MODE_KEEP);
    CHECK(broken);
    PenLoaderSettings s = help_loader_settings(4);
    s.order = PEN_ORDER_SEQUENTIAL;
    CHECK_INT(pen_loader_open(broken, &s, &l, &err), PEN_OK);
    pen_pack_close(&broken); /* the loader has it for itself */
    for (int i = 0; i < 2; i++) {
        CHECK_INT(pen_loader_next(l, -1, &b, &err), PEN_OK);
        pen_batch_unref(&b);
    }
    CHECK_INT(pen_loader_next(l, -1, &b, &err), PEN_E_DECODE);
    CHECK_INT(err.sample, 9);
    CHECK(strstr(err.message, "sample 9 'key-9'"));
    CHECK_INT(pen_loader_next(l, -1, &b, &err), PEN_END);
    pen_loader_close(&l);
}

TEST(a_broken_sample_is_replaced)
{
    PenError err = {0};
    PenLoader *l = NULL;
    PenBadSample bad;
    PenPack *broken = help_load_pack("replaced.pen", 12, 9, PEN_MODE_KEEP);
    CHECK(broken);
    PenLoaderSettings s = help_loader_settings(4);
    s.on_bad = PEN_BAD_SUBSTITUTE;
    uint64_t expected = help_epoch_hash(broken, &s);
    CHECK(expected);
    s.threads = 5;
    CHECK_INT(help_epoch_hash(broken, &s), expected);
    CHECK_INT(pen_loader_open(broken, &s, &l, &err), PEN_OK);
    PenSha256 hash;
    pen__sha256_init(&hash);
    CHECK_INT(help_drain(l, &hash, -1, &err), 3);
    CHECK_INT(pen_loader_bad_sample(l, 0, &bad), PEN_OK);
    CHECK_INT(bad.sample, 9);
    CHECK(bad.instead != 9 && bad.instead < 12);
    CHECK(strstr(bad.message, "key-9"));
    CHECK_INT(pen_loader_bad_sample(l, 1, &bad), PEN_END);
    PenLoaderStats stats;
    pen_loader_stats(l, &stats);
    CHECK_INT(stats.substituted, 1);
    pen_loader_close(&l);
    s.max_bad = 0;
    CHECK_INT(pen_loader_open(broken, &s, &l, &err), PEN_OK);
    CHECK_INT(help_drain(l, &hash, -1, &err), PEN_E_CORRUPT);
    CHECK(strstr(err.message, "max_bad"));
    pen_loader_close(&l);
    pen_pack_close(&broken);
}

TEST(a_mask_has_the_geometry_of_its_image)
{
    PenError err = {0};
    PenLoader *l = NULL;
    PenBatch *b = NULL;
    PenLoaderSettings s = help_loader_settings(8);
    s.pipeline = "image: decode | random_crop 32 | hflip | tensor u8; "
                 "mask: decode | random_crop 32 | hflip | tensor u8; label: tensor";
    s.last_batch = PEN_LAST_DROP;
    CHECK_INT(pen_loader_open(pack, &s, &l, &err), PEN_OK);
    CHECK_INT(pen_loader_next(l, -1, &b, &err), PEN_OK);
    CHECK_INT(b->n_fields, 3);
    CHECK_INT(b->fields[1].n_dims, 3);
    CHECK_INT(b->fields[1].shape[2], 32);
    pen_batch_unref(&b);
    pen_loader_close(&l);
}

/* For 20 s at most, so that a check that fails does not leave threads behind. */
static void wait_while(atomic_bool *flag)
{
    for (int i = 0; i < 2000 && atomic_load(flag); i++)
        usleep(10000);
}

/* Some reads wait for the flag; the others are as they should be. */
static atomic_bool reads_hang;

static int64_t hanging_pread(int fd, void *buf, size_t bytes, uint64_t offset)
{
    static int calls;
    int call = __atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED);
    if (call == 4 || call == 5)
        wait_while(&reads_hang);
    return pen__sys_real.pread(fd, buf, bytes, offset);
}

TEST(storage_that_does_not_answer_is_reported)
{
    static PenSys sys;
    PenError err = {0};
    PenLoader *l = NULL;
    PenBatch *b = NULL;
    PenLoaderSettings s = help_loader_settings(8);
    s.stall_ms = 200;
    CHECK_INT(pen_loader_open(pack, &s, &l, &err), PEN_OK);
    sys = pen__sys_real;
    sys.pread = hanging_pread;
    pen__sys = &sys;
    atomic_store(&reads_hang, true);
    int r = pen_loader_next(l, -1, &b, &err);
    atomic_store(&reads_hang, false);
    CHECK_INT(r, PEN_E_TIMEOUT);
    CHECK(strstr(err.message, ": no batch for "));
    CHECK(strstr(err.message, "reading sample") || strstr(err.message, "locating sample"));
    /* The call may be made again, and the batch comes when the storage does. */
    for (int i = 0; i < 400 && r == PEN_E_TIMEOUT; i++)
        r = pen_loader_next(l, 100, &b, &err);
    CHECK_INT(r, PEN_OK);
    pen_batch_unref(&b);
    pen_loader_close(&l);
    pen__sys = &pen__sys_real;
}

/* The third thread cannot be started, and the others begin only when the flag says so. */
static atomic_int n_started;
static atomic_bool is_late, is_held;

static void *begin_late(void *arg)
{
    void *(*run)(void *) = ((void *(**)(void *))arg)[0];
    void *real_arg = ((void **)arg)[1];
    pen__free(arg);
    wait_while(&is_held);
    return run(real_arg);
}

static int start_late(pthread_t *ret, void *(*run)(void *), void *arg)
{
    if (!atomic_load(&is_late))
        return pen__sys_real.thread_start(ret, run, arg);
    if (atomic_fetch_add(&n_started, 1) == 2)
        return -EAGAIN;
    void **pair = pen__alloc(2 * sizeof *pair);
    memcpy(&pair[0], &run, sizeof run);
    pair[1] = arg;
    return pen__sys_real.thread_start(ret, begin_late, pair);
}

TEST(a_start_waits_for_threads_of_a_failed_one)
{
    static PenSys sys;
    PenError err = {0};
    PenLoader *l = NULL;
    PenBatch *b = NULL;
    PenLoaderSettings s = help_loader_settings(8);
    CHECK_INT(pen_loader_open(pack, &s, &l, &err), PEN_OK);
    sys = pen__sys_real;
    sys.thread_start = start_late;
    pen__sys = &sys;
    atomic_store(&is_late, true);
    atomic_store(&is_held, true);
    CHECK(pen_loader_next(l, -1, &b, &err) < 0);
    atomic_store(&is_late, false);
    int r = pen_loader_next(l, -1, &b, &err);
    atomic_store(&is_held, false);
    CHECK_INT(r, PEN_E_LIMIT);
    CHECK(strstr(err.message, "threads of a failed start"));
    for (int i = 0; i < 3000 && r == PEN_E_LIMIT; i++) {
        usleep(10000);
        r = pen_loader_next(l, -1, &b, &err);
    }
    CHECK_INT(r, PEN_OK);
    pen_batch_unref(&b);
    pen_loader_close(&l);
    pen__sys = &pen__sys_real; /* its threads have ended */
}

TEST(a_child_process_is_told)
{
    PenError err = {0};
    PenLoader *l = NULL;
    PenBatch *b = NULL;
    PenLoaderSettings s = help_loader_settings(8);
    CHECK_INT(pen_loader_open(pack, &s, &l, &err), PEN_OK);
    CHECK_INT(pen_loader_next(l, -1, &b, &err), PEN_OK);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        PenBatch *mine = NULL;
        int bad = pen_loader_next(l, -1, &mine, &err) != PEN_E_CLOSED;
        pen_batch_unref(&b);
        pen_loader_close(&l);
        _exit(bad);
    }
    int status = 0;
    CHECK_INT(waitpid(child, &status, 0), child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    pen_batch_unref(&b);
    CHECK_INT(pen_loader_next(l, -1, &b, &err), PEN_OK);
    pen_batch_unref(&b);
    pen_loader_close(&l);
}

static void cut_shards(const char *name)
{
    char pattern[4600];
    glob_t found;
    snprintf(pattern, sizeof pattern, "%s/*/*.shard", at(name));
    CHECK_INT(glob(pattern, 0, NULL, &found), 0);
    for (size_t i = 0; i < found.gl_pathc; i++)
        CHECK_INT(truncate(found.gl_pathv[i], 100), 0);
    globfree(&found);
}

TEST(a_file_that_shrinks_is_an_error)
{
    PenError err = {0};
    PenLoader *l = NULL;
    PenPack *cut = help_load_pack("cut.pen", 40, -1, PEN_MODE_KEEP);
    CHECK(cut);
    PenLoaderSettings s = help_loader_settings(4);
    s.order = PEN_ORDER_SEQUENTIAL;
    CHECK_INT(pen_loader_open(cut, &s, &l, &err), PEN_OK);
    PenSha256 hash;
    pen__sha256_init(&hash);
    CHECK_INT(help_drain(l, &hash, 1, &err), 1);
    cut_shards("cut.pen");
    CHECK_OK_SO_FAR();
    int r = PEN_OK;
    while (r >= 0 && r != PEN_END) {
        PenBatch *b = NULL;
        r = pen_loader_next(l, -1, &b, &err);
        pen_batch_unref(&b);
    }
    CHECK_INT(r, PEN_E_CORRUPT);
    pen_loader_close(&l);
    pen_pack_close(&cut);
}

static void check_limit(PenLoaderSettings *s, const char *name, int64_t most, bool refused)
{
    char expected[64];
    PenError err = {0};
    PenLoader *l = NULL;
    snprintf(expected, sizeof expected, "%s: expected ", name);
    int r = pen_loader_open(pack, s, &l, &err);
    pen_loader_close(&l);
    /* With the largest number something else may be short: memory, samples, threads. */
    bool named = r == PEN_E_INVALID && strncmp(err.message, expected, strlen(expected)) == 0;
    if (named != refused)
        printf("%s %lld: %d %s\n", name, (long long)most, r, err.message);
    CHECK(named == refused);
}

TEST(numbers_have_limits)
{
    for (uint32_t over = 0; over < 2; over++) {
        PenLoaderSettings s = help_loader_settings(4);
        s.prefetch = 1024 + over;
        check_limit(&s, "prefetch", s.prefetch, over);
        s = help_loader_settings((1 << 20) + over);
        check_limit(&s, "batch_size", s.batch_size, over);
        s = help_loader_settings(4);
        s.world = (1 << 20) + over;
        check_limit(&s, "world", s.world, over);
        s = help_loader_settings(4);
        s.threads = over ? -1 : 1;
        check_limit(&s, "threads", s.threads, over);
        s.threads = 2;
        s.io_threads = over ? 1025 : 1;
        check_limit(&s, "io_threads", s.io_threads, over);
        CHECK_OK_SO_FAR();
    }
}

TEST(many_loaders_leave_nothing_behind)
{
    PenError err = {0};
    PenLoaderSettings s = help_loader_settings(4);
    for (int i = 0; i < 60; i++) {
        PenLoader *l = NULL;
        PenBatch *b = NULL;
        CHECK_INT(pen_loader_open(pack, &s, &l, &err), PEN_OK);
        if (i % 3)
            CHECK_INT(pen_loader_next(l, -1, &b, &err), PEN_OK);
        if (i % 2)
            pen_batch_unref(&b);
        pen_loader_close(&l);
        pen_batch_unref(&b);
    }
}

int main(int argc, char **argv)
{
    TEST_START(argc, argv);
    help_begin();
    pack = help_load_pack("pack.pen", N, -1, PEN_MODE_KEEP);
    RUN(a_batch_is_what_the_pack_holds);
    RUN(the_same_whatever_the_threads_and_memory);
    RUN(a_state_goes_on_with_another_number_of_ranks);
    RUN(the_hash_of_the_order_is_that_of_every_rank);
    RUN(a_shuffle_buffer_is_rounded_up);
    RUN(a_restored_place_is_kept_by_naming_its_epoch);
    RUN(an_epoch_can_be_named_after_its_pass_was_begun);
    RUN(states_of_other_runs_are_refused);
    RUN(subsets_by_list_and_range);
    RUN(weights_choose_samples);
    RUN(repeats_in_a_subset_differ);
    RUN(epochs_and_buffers_have_limits);
    RUN(the_last_batch_is_short_padded_or_dropped);
    RUN(a_loader_chooses_its_last_batch);
    RUN(a_batch_that_was_not_delivered_is_the_next_one);
    RUN(holding_every_batch_is_an_error);
    RUN(too_little_memory_is_said_at_once);
    RUN(a_broken_sample_is_named);
    RUN(a_broken_sample_is_replaced);
    RUN(a_mask_has_the_geometry_of_its_image);
    RUN(storage_that_does_not_answer_is_reported);
    RUN(a_start_waits_for_threads_of_a_failed_one);
    RUN(a_child_process_is_told);
    RUN(a_file_that_shrinks_is_an_error);
    RUN(numbers_have_limits);
    RUN(many_loaders_leave_nothing_behind);
    pen_pack_close(&pack);
    help_end();
    return TEST_END();
}
