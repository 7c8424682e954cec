/* SPDX-License-Identifier: Apache-2.0 */
#include "load/epoch/state.h"

#include "lib/order_help.h"
#include "load/epoch/split.h"
#include "test.h"

static PenState example(void)
{
    PenState s = {.epoch = 3,
                  .position = 1280,
                  .order = {.kind = PEN_ORDER_SHUFFLE,
                            .n = 1281167,
                            .seed = 42,
                            .block_samples = 32,
                            .streams = 96},
                  .pipeline = 0xabc,
                  .subset = 0};
    for (size_t i = 0; i < sizeof s.pack_id; i++)
        s.pack_id[i] = (uint8_t)(i * 17);
    return s;
}

/* The hash comes from another program. */
static const char example_text[] =
    "version=2 epoch=3 position=1280 samples=1281167 seed=42 order=shuffle shuffle_buffer=3072 "
    "block=32 pack=00112233445566778899aabbccddeeff pipeline=0000000000000abc "
    "subset=0000000000000000 hash=80e103d1fe51ce58";

/* ---- writing --------------------------------------------------------------------------------- */

TEST(is_one_line_of_text)
{
    PenState s = example();
    char text[PEN_STATE_BYTES], with_more[PEN_STATE_BYTES];
    CHECK_INT(pen__state_write(&s, text, NULL), PEN_OK);
    CHECK_STR(text, example_text);
    CHECK(strlen(text) < 260);
    s.global_batch = 1024;
    s.place = 4096;
    CHECK_INT(pen__state_write(&s, with_more, NULL), PEN_OK);
    CHECK(strstr(with_more, " hash=") && strstr(with_more, " global_batch=1024 place=4096"));
    CHECK(!strstr(with_more, " hash=80e103d1fe51ce58"));
    s.by_step = true;
    s.step = 7;
    CHECK_INT(pen__state_write(&s, with_more, NULL), PEN_OK);
    CHECK(strstr(with_more, " global_batch=1024 step=7"));
    CHECK(!strstr(with_more, "place="));
}

TEST(a_buffer_is_written_for_streams_only)
{
    PenState s = example();
    char text[PEN_STATE_BYTES];
    s.order.kind = PEN_ORDER_STICKY;
    CHECK_INT(pen__state_write(&s, text, NULL), PEN_OK);
    CHECK(strstr(text, " order=sticky shuffle_buffer=3072 block=32 ") != NULL);
    s.order.kind = PEN_ORDER_RANDOM;
    CHECK_INT(pen__state_write(&s, text, NULL), PEN_OK);
    CHECK(strstr(text, " order=random shuffle_buffer=0 block=0 ") != NULL);
    s.order.kind = PEN_ORDER_SEQUENTIAL;
    CHECK_INT(pen__state_write(&s, text, NULL), PEN_OK);
    CHECK(strstr(text, " order=sequential shuffle_buffer=0 block=0 ") != NULL);
}

static void refuse_to_write(PenState s, const char *message)
{
    PenError err = {0};
    char text[PEN_STATE_BYTES] = "untouched";
    CHECK_INT(pen__state_write(&s, text, &err), PEN_E_INVALID);
    CHECK(strstr(err.message, message) != NULL);
    CHECK_STR(text, "untouched");
}

TEST(refuses_to_write_what_it_would_not_read)
{
    PenState s = example();
    s.position = s.order.n + 1;
    refuse_to_write(s, "state: position is 1281168, expected at most 1281167");
    s = example();
    s.order.kind = 9;
    refuse_to_write(s, "order 9");
    s = example();
    s.order.streams = 0;
    refuse_to_write(s, "0 streams");
    s = example();
    s.position = s.order.n = 0;
    refuse_to_write(s, "order of 0 samples");
}

/* ---- the hash of the order ------------------------------------------------------------------- */

/* Where a run stands, and what the pixels are, does not count; all that defines the order does. */
TEST(the_hash_is_that_of_the_order)
{
    PenState first = example(), s = first;
    uint64_t hashes[9] = {pen__state_hash(&s)};
    s.epoch = 9;
    s.position = s.place = s.step = 5;
    s.pipeline = 1;
    CHECK_INT(pen__state_hash(&s), hashes[0]);
    size_t n = 1;
#define OTHER(change)                                                                              \
    do {                                                                                           \
        s = first;                                                                                 \
        change;                                                                                    \
        hashes[n++] = pen__state_hash(&s);                                                         \
    } while (0)
    OTHER(s.order.kind = PEN_ORDER_STICKY);
    OTHER(s.order.n++);
    OTHER(s.order.seed++);
    OTHER(s.order.streams *= 2);
    OTHER(s.order.block_samples *= 2);
    OTHER(s.subset++);
    OTHER(s.global_batch = 4);
    OTHER(s.pack_id[15]++);
    CHECK_INT(n, PEN_LEN(hashes));
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < i; k++)
            CHECK(hashes[i] != hashes[k]);
    s = first;
    s.global_batch = 4;
    uint64_t with_places = pen__state_hash(&s);
    s.by_step = true;
    CHECK(pen__state_hash(&s) != with_places);
    s = first;
    s.order.kind = PEN_ORDER_RANDOM; /* it has no buffer */
    uint64_t random = pen__state_hash(&s);
    s.order.streams = 0;
    s.order.block_samples = 0;
    CHECK_INT(pen__state_hash(&s), random);
}

/* ---- reading --------------------------------------------------------------------------------- */

static void check_same(const PenState *a, const PenState *b)
{
    CHECK_INT(a->epoch, b->epoch);
    CHECK_INT(a->position, b->position);
    CHECK_INT(a->order.kind, b->order.kind);
    CHECK_INT(a->order.n, b->order.n);
    CHECK_INT(a->order.seed, b->order.seed);
    CHECK_INT(a->order.block_samples, b->order.block_samples);
    CHECK_INT(a->order.streams, b->order.streams);
    CHECK_MEM(a->pack_id, b->pack_id, sizeof a->pack_id);
    CHECK_INT(a->pipeline, b->pipeline);
    CHECK_INT(a->subset, b->subset);
    CHECK_INT(a->global_batch, b->global_batch);
    CHECK_INT(a->by_step, b->by_step);
    CHECK_INT(a->by_step ? a->step : a->place, b->by_step ? b->step : b->place);
    CHECK_INT(pen__state_hash(a), pen__state_hash(b));
    CHECK_INT(pen__state_match(a, b, NULL), PEN_OK);
}

static void round_trip(const PenState *s)
{
    PenState again = {0};
    char text[PEN_STATE_BYTES];
    CHECK_INT(pen__state_write(s, text, NULL), PEN_OK);
    CHECK_INT(pen__state_read(text, &again, NULL), PEN_OK);
    check_same(&again, s);
}

TEST(reads_what_it_wrote)
{
    PenState s = example();
    round_trip(&s);
    CHECK_OK_SO_FAR();
    s.epoch = INT64_MAX;
    s.order.seed = s.pipeline = s.subset = UINT64_MAX;
    s.position = s.order.n = PEN_PERMUTE_MOST;
    s.order.block_samples = UINT64_C(1) << 31;
    s.order.streams = PEN_STREAMS_MOST;
    memset(s.pack_id, 0xff, sizeof s.pack_id);
    round_trip(&s);
    CHECK_OK_SO_FAR();
    s.global_batch = UINT64_C(1) << 47;
    s.place = PEN_PERMUTE_MOST;
    round_trip(&s);
    CHECK_OK_SO_FAR();
    s.by_step = true;
    s.step = s.position;
    round_trip(&s);
    CHECK_OK_SO_FAR();
    s = (PenState){.order = {.kind = PEN_ORDER_SEQUENTIAL, .n = 1}};
    round_trip(&s);
    CHECK_OK_SO_FAR();
    s.order.kind = PEN_ORDER_RANDOM;
    round_trip(&s);
}

TEST(keys_come_in_any_order)
{
    PenState expected = example();
    PenState s = {0};
    CHECK_INT(pen__state_read("  subset=0000000000000000 pack=00112233445566778899aabbccddeeff "
                              "hash=80e103d1fe51ce58 pipeline=0000000000000abc block=32   "
                              "shuffle_buffer=3072 order=shuffle "
                              "seed=42 samples=1281167 position=1280 epoch=3 version=2 ",
                              &s, NULL),
              PEN_OK);
    check_same(&s, &expected);
}

/* The example with `old` replaced by `new`. */
static void refuse(const char *old, const char *new, const char *message)
{
    PenError err = {0};
    PenState s = {.epoch = 77};
    char text[1200];
    const char *at = strstr(example_text, old);
    CHECK(at != NULL);
    snprintf(text, sizeof text, "%.*s%s%s", (int)(at - example_text), example_text, new,
             at + strlen(old));
    CHECK_INT(pen__state_read(text, &s, &err), PEN_E_INVALID);
    CHECK_INT(err.status, PEN_E_INVALID);
    CHECK_STR(err.where, "load/state");
    if (!strstr(err.message, message))
        CHECK_STR(err.message, message);
    CHECK_INT(s.epoch, 77);
    CHECK_INT(pen__state_read(text, &s, NULL), PEN_E_INVALID);
}

static const char *const keys[] = {"version", "epoch",    "position",       "samples",
                                   "seed",    "order",    "shuffle_buffer", "block",
                                   "pack",    "pipeline", "subset",         "hash"};

TEST(every_key_is_needed_once)
{
    for (size_t i = 0; i < PEN_LEN(keys); i++) {
        char old[80], twice[200], message[80];
        snprintf(old, sizeof old, "%s=", keys[i]);
        const char *at = strstr(example_text, old);
        snprintf(old, sizeof old, "%.*s", (int)strcspn(at, " "), at);
        snprintf(message, sizeof message, "state: %s is missing", keys[i]);
        refuse(old, "", message);
        CHECK_OK_SO_FAR();
        snprintf(twice, sizeof twice, "%s %s", old, old);
        snprintf(message, sizeof message, "state: %s occurs twice, expected once", keys[i]);
        refuse(old, twice, message);
        CHECK_OK_SO_FAR();
        snprintf(twice, sizeof twice, "%s=", keys[i]);
        snprintf(message, sizeof message, "state: expected key=value, found \"%s=\"", keys[i]);
        refuse(old, twice, message);
        CHECK_OK_SO_FAR();
    }
}

TEST(refuses_values_out_of_range)
{
    static const char *const cases[][3] = {
        {"epoch=3", "epoch=18446744073709551616",
         "expected a number from 0 to 9223372036854775807"},
        {"epoch=3", "epoch=9223372036854775808", "epoch is \"9223372036854775808\", expected"},
        {"epoch=3", "epoch=99999999999999999999", "epoch is \"99999999999999999999\", expected"},
        {"epoch=3", "epoch=-3", "epoch is \"-3\", expected a number from 0"},
        {"epoch=3", "epoch=+3", "epoch is \"+3\""},
        {"epoch=3", "epoch=3.0", "epoch is \"3.0\""},
        {"epoch=3", "epoch=0x3", "epoch is \"0x3\""},
        {"epoch=3", "epoch=3\t", "epoch is \"3?\""},
        {"position=1280", "position=1281168", "expected a number from 0 to 1281167"},
        {"samples=1281167", "samples=0", "samples is \"0\", expected a number from 1"},
        {"samples=1281167", "samples=9223372036854775809", "to 9223372036854775808"},
        {"samples=1281167", "samples=1279",
         "position is \"1280\", expected a number from 0 to 1279"},
        {"order=shuffle", "order=shuffled", "order is \"shuffled\", expected sequential, random"},
        {"order=shuffle", "order=block", "order is \"block\", expected sequential, random"},
        {"order=shuffle", "order=shuffl", "order is \"shuffl\""},
        {"order=shuffle", "order=random", "block is \"32\", expected a number from 0 to 0"},
        {"order=shuffle shuffle_buffer=3072 block=32", "order=random shuffle_buffer=3072 block=0",
         "shuffle_buffer is \"3072\", expected a number from 0 to 0"},
        {"buffer=3072", "buffer=0", "shuffle_buffer is \"0\", expected a number from 1"},
        {"buffer=3072", "buffer=96", "shuffle_buffer is \"96\", expected 3 * 2^k blocks"},
        {"buffer=3072", "buffer=3071", "shuffle_buffer is \"3071\", expected 3 * 2^k blocks"},
        {"buffer=3072", "buffer=2048", "shuffle_buffer is \"2048\", expected 3 * 2^k blocks"},
        {"buffer=3072", "buffer=9223372036854775809", "to 9223372036854775808"},
        {"buffer=3072", "buffer=9223372036854775808", "expected 3 * 2^k blocks of samples, 6 or"},
        {"block=32", "block=0", "block is \"0\""},
        {"block=32", "block=2147483649", "block is \"2147483649\", expected a number from 1"},
        {"seed=42", "seed=18446744073709551616", "seed is \"18446744073709551616\""},
        {"pack=00", "pack=0", "pack is \"0112233445566778899aabbccddeeff\", expected 32 hex"},
        {"pack=00", "pack=000", "expected 32 hexadecimal digits"},
        {"pack=00", "pack=0G", "expected 32 hexadecimal digits"},
        {"aabbccddeeff", "AABBCCDDEEFF", "expected 32 hexadecimal digits"},
        {"pipeline=0", "pipeline=", "pipeline is \"000000000000abc\", expected 16 hexadecimal"},
        {"pipeline=0", "pipeline=00", "expected 16 hexadecimal digits"},
        {"pipeline=0", "pipeline=z", "expected 16 hexadecimal digits"},
        {"subset=0", "subset=-", "subset is \"-000000000000000\""},
        {"hash=8", "hash=", "hash is \"0e103d1fe51ce58\", expected 16 hexadecimal digits"},
    };
    for (size_t i = 0; i < PEN_LEN(cases); i++) {
        refuse(cases[i][0], cases[i][1], cases[i][2]);
        CHECK_OK_SO_FAR();
    }
}

#define ONE_OF "expected global_batch with place (of buckets) or with step (of a token budget)"

TEST(refuses_a_global_batch_that_is_not_placed)
{
    static const char *const cases[][2] = {
        {"global_batch=8", ONE_OF},
        {"place=4", ONE_OF},
        {"step=4", ONE_OF},
        {"place=4 step=4", ONE_OF},
        {"global_batch=8 place=4 step=4", ONE_OF},
        {"global_batch=0 place=4", "global_batch is \"0\", expected a number from 1 to 1407374883"},
        {"global_batch=140737488355329 place=4", "global_batch is \"140737488355329\""},
        {"global_batch=8 place=-4", "place is \"-4\""},
        {"global_batch=8 place=9223372036854775809", "place is \"9223372036854775809\""},
        {"global_batch=8 global_batch=8 place=4", "global_batch occurs twice"},
        {"global_batch=8 step=1281", "step is \"1281\", expected a number from 0 to 1280"},
        {"global_batch=8 step=", "expected key=value"},
        {"global_batch=8 place=4", "the hash of the other values"}, /* as it was without them */
    };
    for (size_t i = 0; i < PEN_LEN(cases); i++) {
        char text[200];
        snprintf(text, sizeof text, "epoch=3 %s", cases[i][0]);
        refuse("epoch=3", text, cases[i][1]);
        CHECK_OK_SO_FAR();
    }
}

/* Of what defines the order, a damaged digit is found. */
TEST(refuses_values_that_do_not_fit_the_hash)
{
    static const char *const cases[][2] = {{"samples=1281167", "samples=1281168"},
                                           {"seed=42", "seed=43"},
                                           {"order=shuffle", "order=sticky"},
                                           {"buffer=3072", "buffer=6144"},
                                           {"3072 block=32", "3072 block=64"},
                                           {"pack=00", "pack=01"},
                                           {"subset=0", "subset=1"},
                                           {"hash=8", "hash=9"}};
    for (size_t i = 0; i < PEN_LEN(cases); i++) {
        refuse(cases[i][0], cases[i][1], "expected the hash of the other values, as saved");
        CHECK_OK_SO_FAR();
    }
}

TEST(refuses_what_is_no_state)
{
    PenError err = {0};
    PenState s;
    char text[PEN_STATE_BYTES + 1];
    refuse("epoch=3", "epoch=3 colour=red", "state: \"colour\" is not a key of version 2");
    refuse("epoch=3", "epoch", "state: expected key=value, found \"epoch\"");
    refuse("epoch=3", "=3", "state: expected key=value, found \"=3\"");
    refuse("version=2", "version=3", "state: version is \"3\", expected 2; load it with");
    /* The version is the better explanation of keys that are not known or missing. */
    refuse("version=2 epoch=3", "colour=red version=3", "version is \"3\", expected 2");
    CHECK_OK_SO_FAR();
    CHECK_INT(pen__state_read(NULL, &s, &err), PEN_E_INVALID);
    CHECK(strstr(err.message, "state: empty") != NULL);
    CHECK_INT(pen__state_read("", &s, &err), PEN_E_INVALID);
    CHECK(strstr(err.message, "state: empty") != NULL);
    CHECK_INT(pen__state_read("   ", &s, &err), PEN_E_INVALID);
    CHECK(strstr(err.message, "version is missing") != NULL);
    memset(text, ' ', PEN_STATE_BYTES);
    memcpy(text, example_text, strlen(example_text));
    text[PEN_STATE_BYTES] = 0;
    CHECK_INT(pen__state_read(text, &s, &err), PEN_E_INVALID);
    CHECK(strstr(err.message, "too long, expected fewer than 512 bytes") != NULL);
    text[PEN_STATE_BYTES - 1] = 0;
    CHECK_INT(pen__state_read(text, &s, &err), PEN_OK);
}

TEST(refuses_a_state_of_lanes)
{
    PenError err = {0};
    PenState s;
    CHECK_INT(pen__state_read("version=1 epoch=3 position=1280 samples=1281167 seed=42 order=block "
                              "lanes=24 window=10 block=32 pack=00112233445566778899aabbccddeeff "
                              "pipeline=0000000000000abc subset=0000000000000000",
                              &s, &err),
              PEN_E_INVALID);
    CHECK_STR(err.message, "state: version is \"1\", expected 2; load it with the version of "
                           "penstock that wrote it");
}

/* What is shown of it is short and fit to be printed. */
TEST(messages_are_clean)
{
    PenError err = {0};
    PenState s;
    CHECK_INT(pen__state_read("a\x1b[31m\xff\n.", &s, &err), PEN_E_INVALID);
    CHECK_STR(err.message, "state: expected key=value, found \"a?[31m?\?.\"");
    refuse("seed=42", "seed=aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeee",
           "seed is \"aaaaaaaaaabbbbbbbbbbccccccccccdddddddddd...\", expected");
}

/* ---- comparing ------------------------------------------------------------------------------- */

static void check_differs(const PenState *theirs, const char *message)
{
    PenError err = {0};
    PenState mine = example();
    CHECK_INT(pen__state_match(&mine, theirs, &err), PEN_E_INVALID);
    CHECK_STR(err.message, message);
}

TEST(names_the_first_difference)
{
    PenState s = example();
#define NEXT "; pass strict=False to continue anyway"
    s.order.streams = 192;
    check_differs(&s, "state: saved with shuffle_buffer=6144, expected 3072" NEXT);
    s.order.block_samples = 16; /* as many samples in all */
    check_differs(&s, "state: saved with block=16, expected 32" NEXT);
    s.order.kind = PEN_ORDER_RANDOM;
    check_differs(&s, "state: saved with order=random, expected shuffle" NEXT);
    s.order.n = 5;
    check_differs(&s, "state: saved with samples=5, expected 1281167" NEXT);
    s.order.seed = 43;
    check_differs(&s, "state: saved with seed=43, expected 42" NEXT);
    s.subset = 1;
    check_differs(
        &s, "state: saved with another subset, weights, buckets or lengths (0000000000000001, "
            "expected 0000000000000000)" NEXT);
    s.pipeline = 0xdef;
    check_differs(&s, "state: saved with another pipeline (0000000000000def, expected "
                      "0000000000000abc)" NEXT);
    s.global_batch = 64;
    check_differs(&s, "state: saved with global_batch=64, expected 0" NEXT);
    s.by_step = true;
    check_differs(&s, "state: saved with a token budget (tokens, lengths), expected one without"
                      "" NEXT);
    s.pack_id[15] = 0;
    check_differs(&s, "state: saved with another pack (00112233445566778899aabbccddee00, "
                      "expected 00112233445566778899aabbccddeeff)" NEXT);
}

TEST(the_place_and_an_idle_buffer_do_not_count)
{
    PenState mine = example();
    PenState theirs = example();
    theirs.epoch = 9;
    theirs.position = 0;
    theirs.place = theirs.step = 4;
    CHECK_INT(pen__state_match(&mine, &theirs, NULL), PEN_OK);
    mine.order.kind = theirs.order.kind = PEN_ORDER_RANDOM;
    theirs.order.streams = 0;
    theirs.order.block_samples = 0;
    CHECK_INT(pen__state_match(&mine, &theirs, NULL), PEN_OK);
}

/* ---- resuming -------------------------------------------------------------------------------- */

enum { MOST_SAMPLES = 3000 };
static uint32_t delivered[MOST_SAMPLES];

/* At most `steps` batches on all ranks from the place of the text; leaves the place behind them. */
static void run_ranks(char text[PEN_STATE_BYTES], uint32_t world, uint32_t batch, uint64_t steps)
{
    PenState state;
    PenOrder o;
    char after[PEN_STATE_BYTES] = "";
    for (uint32_t rank = 0; rank < world; rank++) {
        char mine[PEN_STATE_BYTES];
        CHECK_INT(pen__state_read(text, &state, NULL), PEN_OK);
        CHECK_INT(pen__order_init(&o, &state.order, state.epoch, NULL), PEN_OK);
        PenSplit split = {.n = o.plan.n,
                          .start = state.position,
                          .batch = batch,
                          .rank = rank,
                          .world = world,
                          .deal = pen__deal_for(&o, world),
                          .streams = o.streams};
        uint64_t n = PEN_MIN(steps, pen__split_steps(&split));
        for (uint64_t g = 0; g < n; g++) {
            PenPassStep step = pen__split_step(&split, g);
            for (uint32_t i = 0; i < batch; i++) {
                bool valid;
                uint64_t p = pen__split_position(&split, &step, i, &valid);
                delivered[pen__order_at(&o, p)] += valid;
            }
        }
        state.position = PEN_MIN(state.position + n * batch * world, o.plan.n);
        CHECK_INT(pen__state_write(&state, mine, NULL), PEN_OK);
        if (rank)
            CHECK_STR(mine, after);
        memcpy(after, mine, sizeof after);
    }
    memcpy(text, after, sizeof after);
}

static PenState random_state(PenRng *rng)
{
    return (PenState){.epoch = pen__rng_below(rng, 100),
                      .order = {.kind = (int32_t)pen__rng_below(rng, 4),
                                .n = 1 + pen__rng_below(rng, MOST_SAMPLES),
                                .seed = pen__rng_next(rng),
                                .block_samples = 1 + pen__rng_below(rng, 40),
                                .streams = 6u << pen__rng_below(rng, 5)}};
}

/* 200 runs, each cut into up to four passes with other ranks and batches. */
TEST(resumes_anywhere_without_loss_or_repetition)
{
    PenRng rng = pen__rng_init(200, 200);
    uint64_t cut = 0;
    for (int run = 0; run < 200; run++) {
        PenState state = random_state(&rng);
        char text[PEN_STATE_BYTES];
        memset(delivered, 0, sizeof delivered);
        CHECK_INT(pen__state_write(&state, text, NULL), PEN_OK);
        for (uint64_t pass = 0, n = 1 + pen__rng_below(&rng, 3); pass <= n; pass++) {
            uint32_t world = 1 + (uint32_t)pen__rng_below(&rng, 12);
            uint32_t batch = 1 + (uint32_t)pen__rng_below(&rng, 60);
            uint64_t whole = state.order.n / ((uint64_t)world * batch) + 1;
            run_ranks(text, world, batch, pass == n ? UINT64_MAX : pen__rng_below(&rng, whole));
            CHECK_OK_SO_FAR();
            CHECK_INT(pen__state_read(text, &state, NULL), PEN_OK);
            cut += state.position > 0 && state.position < state.order.n;
        }
        CHECK_INT(state.position, state.order.n);
        for (uint64_t s = 0; s < MOST_SAMPLES; s++)
            CHECK_INT(delivered[s], s < state.order.n);
    }
    CHECK(cut > 100); /* else nothing was resumed */
}

int main(int argc, char **argv)
{
    TEST_START(argc, argv);
    RUN(is_one_line_of_text);
    RUN(a_buffer_is_written_for_streams_only);
    RUN(refuses_to_write_what_it_would_not_read);
    RUN(the_hash_is_that_of_the_order);
    RUN(reads_what_it_wrote);
    RUN(keys_come_in_any_order);
    RUN(every_key_is_needed_once);
    RUN(refuses_values_out_of_range);
    RUN(refuses_a_global_batch_that_is_not_placed);
    RUN(refuses_values_that_do_not_fit_the_hash);
    RUN(refuses_what_is_no_state);
    RUN(refuses_a_state_of_lanes);
    RUN(messages_are_clean);
    RUN(names_the_first_difference);
    RUN(the_place_and_an_idle_buffer_do_not_count);
    RUN(resumes_anywhere_without_loss_or_repetition);
    return TEST_END();
}
