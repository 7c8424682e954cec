/* SPDX-License-Identifier: Apache-2.0 */
/* Slots: filled in any order, delivered in theirs, and never more of them than the memory allows.
 */
#include "load/ring.h"

#include "test.h"

enum { BATCH = 2, SLOT = 4096 };

typedef struct Rig {
    PenLoadPlan plan;
    PenOutField field;
    PenLoadLock lock;
    PenRing ring;
} Rig;

static void rig_init(Rig *rig, uint32_t slots, uint32_t most)
{
    *rig = (Rig){.field = {.bytes = 8}};
    rig->plan = (PenLoadPlan){.set = {.batch_size = BATCH},
                              .n_fields = 1,
                              .fields = &rig->field,
                              .slots = slots,
                              .slot_bytes = 64,
                              .slot_cost = SLOT,
                              .shares = {.ring = (uint64_t)most * SLOT}};
    CHECK_INT(pen__load_lock_init(&rig->lock, NULL), PEN_OK);
    pen__ring_init(&rig->ring, &rig->plan, &rig->lock, rig);
}

static void rig_fini(Rig *rig)
{
    pen__ring_fini(&rig->ring);
    pen__load_lock_fini(&rig->lock);
}

/* A slot with all its samples assigned: number 10 * first and the next. */
static PenSlot *fill(Rig *rig, uint64_t first)
{
    PenSlot *s = pen__ring_open(&rig->ring, NULL);
    for (uint32_t i = 0; i < BATCH; i++)
        pen__ring_add_sample(&rig->ring, i, 10 * first + i, true);
    return s;
}

static void finish(Rig *rig, PenSlot *s)
{
    for (uint32_t i = 0; i < BATCH; i++)
        pen__ring_sample_done(&rig->ring, s, i, PEN_OK, NULL);
}

static PenSlot *lease(Rig *rig)
{
    PenSlot *s = pen__ring_pop(&rig->ring);
    pen__ring_lease(&rig->ring, s);
    return s;
}

TEST(batches_keep_their_order)
{
    Rig rig;
    rig_init(&rig, 4, 4);
    PenSlot *a = pen__ring_open(&rig.ring, NULL);
    CHECK(a && rig.ring.open == a);
    pen__ring_add_sample(&rig.ring, 0, 10, true);
    CHECK(rig.ring.open == a);
    pen__ring_add_sample(&rig.ring, 1, 11, false);
    CHECK(!rig.ring.open);
    PenSlot *b = fill(&rig, 2);
    finish(&rig, b);
    CHECK(!pen__ring_is_ready(&rig.ring));
    CHECK_INT(rig.ring.n_full, 1);
    pen__ring_sample_done(&rig.ring, a, 1, PEN_OK, NULL);
    CHECK(!pen__ring_is_ready(&rig.ring));
    pen__ring_sample_done(&rig.ring, a, 0, PEN_OK, NULL);
    CHECK(pen__ring_is_ready(&rig.ring));
    CHECK(lease(&rig) == a);
    CHECK_INT(a->batch.samples[1], 11);
    CHECK_INT(a->batch.n_valid, 1);
    CHECK(lease(&rig) == b);
    CHECK(!pen__ring_is_ready(&rig.ring));
    CHECK_INT(rig.ring.n_full, 0);
    CHECK_INT(rig.ring.n_leased, 2);
    pen__ring_return(&rig.ring, a);
    pen__ring_return(&rig.ring, b);
    CHECK_INT(rig.ring.n_leased, 0);
    rig_fini(&rig);
}

/* The error of a batch does not depend on which thread was first. */
TEST(first_error_in_order_counts)
{
    Rig rig;
    PenError one = {.message = "one"}, two = {.message = "two"};
    rig_init(&rig, 4, 4);
    for (int late = 0; late < 2; late++) {
        PenSlot *s = fill(&rig, 0);
        CHECK_INT(s->status, PEN_OK);
        if (late)
            pen__ring_sample_done(&rig.ring, s, 1, PEN_E_IO, &two);
        pen__ring_sample_done(&rig.ring, s, 0, PEN_E_DECODE, &one);
        if (!late)
            pen__ring_sample_done(&rig.ring, s, 1, PEN_E_IO, &two);
        CHECK_INT(s->status, PEN_E_DECODE);
        CHECK_STR(s->error.message, "one");
        pen__ring_recycle(&rig.ring, pen__ring_pop(&rig.ring));
    }
    rig_fini(&rig);
}

TEST(grows_to_the_memory_and_shrinks)
{
    enum { SLOTS = 2, MOST = 5 };
    Rig rig;
    PenSlot *held[MOST];
    rig_init(&rig, SLOTS, MOST);
    for (int i = 0; i < MOST; i++) {
        CHECK(!pen__ring_is_exhausted(&rig.ring));
        CHECK(pen__ring_can_open(&rig.ring));
        finish(&rig, fill(&rig, 0));
        CHECK(!pen__ring_can_open(&rig.ring)); /* one slot is left for the caller */
        held[i] = lease(&rig);
    }
    CHECK(pen__ring_is_exhausted(&rig.ring));
    CHECK_INT(rig.ring.bytes, MOST * SLOT);
    for (int i = 0; i < MOST; i++)
        pen__ring_return(&rig.ring, held[i]);
    CHECK_INT(rig.ring.n_slots, MOST);
    fill(&rig, 0);
    pen__ring_clear(&rig.ring);
    CHECK_INT(rig.ring.n_pending, 0);
    CHECK_INT(rig.ring.n_slots, SLOTS + 1);
    CHECK_INT(rig.ring.bytes, (SLOTS + 1) * SLOT);
    rig_fini(&rig);
}

/* After the loader is closed, a slot that comes back is freed. */
TEST(returned_after_stop)
{
    Rig rig;
    rig_init(&rig, 4, 4);
    finish(&rig, fill(&rig, 0));
    PenSlot *s = lease(&rig);
    rig.lock.stop = true;
    pen__ring_return(&rig.ring, s);
    CHECK_INT(rig.ring.n_slots, 0);
    CHECK_INT(rig.ring.bytes, 0);
    rig_fini(&rig);
}

int main(int argc, char **argv)
{
    TEST_START(argc, argv);
    RUN(batches_keep_their_order);
    RUN(first_error_in_order_counts);
    RUN(grows_to_the_memory_and_shrinks);
    RUN(returned_after_stop);
    return TEST_END();
}
