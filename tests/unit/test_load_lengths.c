/* SPDX-License-Identifier: Apache-2.0 */
/* Steps of a token budget: the closed form against counting. */
#include "load/epoch/lengths.h"

#include <string.h>

#include "base/rng.h"
#include "load/epoch/order.h"
#include "load/epoch/pass.h"
#include "test.h"

enum { MOST = 700 };

static PenLengths lengths_of(PenRng *rng)
{
    PenLengths l = {.n = 1 + (uint32_t)pen__rng_below(rng, pen__rng_below(rng, 4) ? 6 : 64),
                    .seed = pen__rng_next(rng)};
    for (uint32_t i = 0; i < l.n; i++) {
        l.batch[i] = 1 + (uint32_t)pen__rng_below(rng, 9);
        l.round += l.batch[i];
    }
    return l;
}

TEST(every_round_has_each_length_once)
{
    PenRng rng = pen__rng_init(1, 0);
    bool differs = false;
    for (int i = 0; i < 50; i++) {
        PenLengths l = lengths_of(&rng);
        for (uint64_t round = 0; round < 5; round++) {
            uint64_t seen = 0;
            for (uint32_t k = 0; k < l.n; k++) {
                uint32_t at = pen__lengths_at(&l, 3, round * l.n + k);
                CHECK(at < l.n);
                CHECK(!(seen >> at & 1));
                seen |= UINT64_C(1) << at;
                differs |= at != pen__lengths_at(&l, 4, round * l.n + k);
            }
        }
    }
    CHECK(differs);
}

TEST(samples_and_steps_are_those_that_are_counted)
{
    PenRng rng = pen__rng_init(2, 0);
    for (int i = 0; i < 400; i++) {
        PenLengths l = lengths_of(&rng);
        uint64_t epoch = pen__rng_below(&rng, 3), first = pen__rng_below(&rng, 200);
        uint64_t wanted = pen__rng_below(&rng, MOST), sum = 0, n = 0;
        if (i % 10 == 0)
            first += UINT64_MAX / 2; /* as a hostile state may say */
        while (sum < wanted) {
            CHECK_INT(pen__lengths_samples(&l, epoch, first, n), sum);
            uint64_t more = sum + l.batch[pen__lengths_at(&l, epoch, first + n)];
            if (more > wanted)
                CHECK_INT(pen__lengths_steps(&l, epoch, first, wanted, false), n);
            sum = more;
            n++;
        }
        CHECK_INT(pen__lengths_steps(&l, epoch, first, wanted, true), n);
        if (sum == wanted)
            CHECK_INT(pen__lengths_steps(&l, epoch, first, wanted, false), n);
        CHECK_OK_SO_FAR();
    }
}

/* All ranks have batches of one length, and together every position from the start on once. */
static void check_pass(const PenSplit *given, uint64_t *ret_end)
{
    static uint32_t seen[MOST];
    PenSplit s = *given;
    uint64_t steps = pen__split_steps(&s), most = 0;
    memset(seen, 0, sizeof seen);
    for (s.rank = 0; s.rank < s.world; s.rank++) {
        PenEpochPass pass = {.split = s, .steps = steps, .order = {.plan = {.n = s.n}}};
        pen__epoch_pass_init(&pass);
        CHECK_INT(pen__split_steps(&s), steps);
        while (pen__epoch_pass_has_next(&pass)) {
            uint64_t g = pass.next_batch;
            PenPassSample at = pen__epoch_pass_peek(&pass);
            CHECK_INT(pass.step.length, pen__lengths_at(s.lengths, s.epoch, s.step + g));
            CHECK_INT(pass.step.batch, s.lengths->batch[pass.step.length]);
            CHECK_INT(pass.step.first, s.start + pen__split_places(&s, g) * s.world);
            if (pen__epoch_pass_is_empty(&pass)) {
                CHECK(s.last_batch == PEN_LAST_SHORT && g + 1 == steps);
                pen__epoch_pass_advance(&pass);
                continue;
            }
            CHECK(at.position < s.n && (at.valid || g + 1 == steps));
            CHECK(at.valid || s.last_batch == PEN_LAST_PAD);
            CHECK_INT(at.chosen, at.position); /* the order is sequential */
            CHECK_INT(at.index, pass.next_sample);
            seen[at.position] += at.valid;
            pen__epoch_pass_advance(&pass);
        }
        CHECK_INT(pass.assigned, pen__split_samples(&pass.split, steps));
        most = s.lengths->batch[pen__lengths_at(s.lengths, s.epoch, s.step + steps)];
    }
    uint64_t end = s.start + pen__split_places(&s, steps) * s.world;
    CHECK(s.last_batch == PEN_LAST_DROP ? end <= s.n : end >= s.n);
    for (uint64_t p = 0; p < s.n; p++)
        CHECK_INT(seen[p], p >= s.start && p < end);
    if (s.last_batch == PEN_LAST_DROP)
        CHECK(s.n - end < most * s.world);
    *ret_end = end;
}

TEST(a_pass_has_every_position_once_on_any_number_of_ranks)
{
    PenRng rng = pen__rng_init(3, 0);
    for (int i = 0; i < 200; i++) {
        PenLengths l = lengths_of(&rng);
        uint64_t n = 1 + pen__rng_below(&rng, MOST - 1), end;
        PenSplit s = {.n = n,
                      .batch = 9,
                      .world = 1 + (uint32_t)pen__rng_below(&rng, 5),
                      .last_batch = PEN_LAST_SHORT + i % 3,
                      .deal = (PenDeal)(i / 3 % 3),
                      .streams = 6u << pen__rng_below(&rng, 5),
                      .lengths = &l,
                      .epoch = (uint64_t)i % 3};
        check_pass(&s, &end);
        CHECK_OK_SO_FAR();
        uint64_t steps = pen__split_steps(&s), at = pen__rng_below(&rng, steps + 1);
        PenSplit rest = s;
        rest.step = at;
        rest.start = pen__split_places(&s, at) * s.world;
        if (rest.start < n) { /* the same steps, when it continues on as many ranks */
            CHECK_INT(pen__split_steps(&rest), steps - at);
            rest.world = 1 + (uint32_t)pen__rng_below(&rng, 5);
            check_pass(&rest, &end);
        }
        CHECK_OK_SO_FAR();
    }
}

TEST(a_position_of_the_state_follows_the_batches_delivered)
{
    PenLengths l = {.n = 2, .batch = {3, 5}, .round = 8, .seed = 1};
    PenSplit s = {.n = 100, .batch = 5, .world = 2, .lengths = &l, .epoch = 1};
    PenEpochPass pass = {.split = s, .steps = pen__split_steps(&s)};
    pen__epoch_pass_init(&pass);
    CHECK_INT(pass.steps, 13); /* six rounds of 16 samples, and one step with the rest */
    pass.delivered = 2;
    CHECK_INT(pen__epoch_pass_position(&pass), 16);
    pass.delivered = 13;
    CHECK_INT(pen__epoch_pass_position(&pass), 100);
}

int main(void)
{
    RUN(every_round_has_each_length_once);
    RUN(samples_and_steps_are_those_that_are_counted);
    RUN(a_pass_has_every_position_once_on_any_number_of_ranks);
    RUN(a_position_of_the_state_follows_the_batches_delivered);
    return TEST_END();
}
