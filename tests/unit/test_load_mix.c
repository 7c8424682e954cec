/* SPDX-License-Identifier: Apache-2.0 */
/* Loaders of several packs: what is refused, single samples, and no memory. */
#include <penstock/mix.h>
#include <penstock/preload.h>

#include "fault_sweep.h"
#include "load_help.h"
#include "tools.h"

enum { N = 23, FEW = 7 };
#define FIELDS "image: decode | random_resized_crop 32 | hflip; id: key; label: tensor"

static PenPack *packs[3];
static const double WEIGHTS[] = {2, 1, 1, 1, 1, 1};
static const uint64_t STARTS[] = {0, 12};

static PenMixSettings mixed(void)
{
    PenMixSettings mix;
    pen_mix_settings_init(&mix);
    mix.n_sources = 3;
    mix.packs = packs;
    mix.weights = WEIGHTS;
    return mix;
}

static PenLoaderSettings settings(uint32_t batch)
{
    PenLoaderSettings s = help_loader_settings(batch);
    s.pipeline = FIELDS;
    s.seed = 5;
    return s;
}

static int try_open(const PenMixSettings *mix, const PenLoaderSettings *s, PenError *err)
{
    PenLoader *l = NULL;
    int r = pen_loader_open_mix(mix, s, &l, err);
    pen_loader_close(&l);
    return r;
}

#define REFUSED(change, says)                                                                      \
    do {                                                                                           \
        PenMixSettings mix = mixed();                                                              \
        PenLoaderSettings s = settings(4);                                                         \
        PenError why = {0};                                                                        \
        change;                                                                                    \
        CHECK_INT(try_open(&mix, &s, &why), PEN_E_INVALID);                                        \
        CHECK(strstr(why.message, says));                                                          \
        (void)s;                                                                                   \
    } while (0)

TEST(wrong_settings_are_refused)
{
    static const uint64_t zero[1], falling[] = {0, 0}, late[] = {1, 2}, huge[] = {0, UINT64_MAX};
    static const double one[1] = {1};
    PenError err = {0};
    CHECK_INT(try_open(NULL, NULL, &err), PEN_E_INVALID);
    CHECK(strstr(err.message, "mix: expected a PenMixSettings, found NULL"));
    REFUSED(mix.n_sources = 0, "expected 1 to 1024 sources, found 0");
    REFUSED(mix.n_sources = 1025, "expected 1 to 1024 sources, found 1025");
    REFUSED(mix.n_stages = 0, "expected 1 to 64 stages, found 0");
    REFUSED(mix.n_stages = 65, "expected 1 to 64 stages, found 65");
    REFUSED(mix.packs = NULL, "expected packs, weights and starts, found NULL");
    REFUSED(mix.weights = NULL, "expected packs, weights and starts, found NULL");
    REFUSED(mix.n_stages = 2, "expected packs, weights and starts, found NULL");
    REFUSED(mix.stop = 3, "stop: expected 0, 1 or 2, found 3");
    REFUSED(mix.unit = -1, "unit: expected 0, 1 or 2, found -1");
    REFUSED(mix.stop = PEN_MIX_STOP_STEPS, "steps: expected 1 or more");
    REFUSED((mix.stop = PEN_MIX_STOP_STEPS, mix.steps = UINT64_MAX / 2), "steps: expected 1");
    REFUSED((mix.n_stages = 2, mix.starts = falling), "start of stage 1: expected starts that");
    REFUSED((mix.n_stages = 2, mix.starts = late), "start of stage 0: expected starts that");
    REFUSED((mix.n_stages = 2, mix.starts = huge, mix.unit = PEN_MIX_IN_STEPS), "start of stage 1");
    REFUSED(mix.field = "label", "found 'label'");
    REFUSED(mix.field = "", "expected a name");
    REFUSED((s.subset = zero, s.n_subset = 1), "neither a subset nor weights");
    REFUSED(s.count = 1, "neither a subset nor weights");
    REFUSED((s.weights = one, s.n_weights = 1), "neither a subset nor weights");
    REFUSED(s.batch_size = 0, "batch_size: expected");
}

/* Epochs that are single samples, got in any order, are those of the passes. */
TEST(single_samples_are_those_of_the_passes)
{
    PenError err = {0};
    PenLoader *l = NULL;
    PenMixSettings mix = mixed();
    PenLoaderSettings s = settings(1);
    for (s.order = PEN_ORDER_SEQUENTIAL; s.order <= PEN_ORDER_STICKY; s.order++) {
        CHECK_INT(pen_loader_open_mix(&mix, &s, &l, &err), PEN_OK);
        CHECK_INT(pen_loader_sources(l), 3);
        for (uint64_t epoch = 0; epoch < 2; epoch++) {
            PenBatch *want = NULL, *got = NULL;
            for (uint64_t i = 0; pen_loader_next(l, -1, &want, &err) == PEN_OK; i++) {
                CHECK_INT(pen_loader_get(l, epoch, i, &got, &err), PEN_OK);
                CHECK(want->samples[0] == got->samples[0]);
                CHECK(want->ordinals[0] == got->ordinals[0]);
                for (uint32_t f = 0; f < want->n_fields; f += 2) /* image and label */
                    CHECK(memcmp(want->fields[f].data, got->fields[f].data,
                                 f ? 8 : (size_t)32 * 32 * 3) == 0);
                CHECK(*(int64_t *)want->fields[3].data == *(int64_t *)got->fields[3].data);
                pen_batch_unref(&want);
                pen_batch_unref(&got);
            }
        }
        pen_loader_close(&l);
    }
}

TEST(one_pack_has_no_sources)
{
    PenError err = {0};
    PenLoader *l = NULL;
    PenLoaderSettings s = settings(1);
    uint64_t counts = 7;
    CHECK_INT(pen_loader_open(packs[0], &s, &l, &err), PEN_OK);
    CHECK_INT(pen_loader_sources(l), 0);
    pen_loader_source_counts(l, &counts);
    CHECK_INT(counts, 7);
    pen_loader_close(&l);
}

/* The last test that reads: the first pack is in memory from then on. */
TEST(the_facts_are_of_all_packs)
{
    PenError err = {0};
    PenLoader *l = NULL;
    PenMixSettings mix = mixed();
    PenLoaderSettings s = settings(4);
    PenRunFacts facts;
    CHECK_INT(pen_pack_preload(packs[0], NULL, NULL, &err), PEN_OK);
    CHECK_INT(pen_loader_open_mix(&mix, &s, &l, &err), PEN_OK);
    pen_run_facts_of(l, &facts);
    CHECK_INT(facts.is_preloaded, 0);
    CHECK_INT(facts.is_remote, 0);
    CHECK_INT(facts.throttles, 0);
    CHECK_INT(facts.pack_bytes,
              pen_pack_info(packs[0])->total_bytes + 2 * pen_pack_info(packs[1])->total_bytes);
    pen_loader_close(&l);
    CHECK_INT(pen_loader_open(packs[0], &s, &l, &err), PEN_OK);
    pen_run_facts_of(l, &facts);
    CHECK_INT(facts.is_preloaded, 1);
    pen_loader_close(&l);
}

static int open_staged(PenError *err)
{
    PenMixSettings mix = mixed();
    PenLoaderSettings s = settings(4);
    mix.n_stages = 2;
    mix.starts = STARTS;
    mix.unit = PEN_MIX_IN_EPOCHS;
    return try_open(&mix, &s, err);
}

static int get_one(PenError *err)
{
    PenMixSettings mix = mixed();
    PenLoaderSettings s = settings(1);
    PenLoader *l = NULL;
    PenBatch *b = NULL;
    int r = pen_loader_open_mix(&mix, &s, &l, err);
    for (uint64_t i = 0; i < 2 && r == PEN_OK; i++) {
        r = pen_loader_get(l, 0, i, &b, err);
        pen_batch_unref(&b);
    }
    pen_loader_close(&l);
    return r;
}

TEST(without_memory_it_says_so)
{
    int points = 0;
    fault_sweep(open_staged, &points);
    CHECK(points > 30);
    fault_sweep(get_one, &points);
    CHECK(points > 30);
}

int main(int argc, char **argv)
{
    TEST_START(argc, argv);
    help_begin();
    packs[0] = help_load_pack("a.pen", N, -1, PEN_MODE_KEEP);
    packs[1] = help_load_pack("b.pen", FEW, -1, PEN_MODE_KEEP);
    packs[2] = packs[1];
    RUN(wrong_settings_are_refused);
    RUN(single_samples_are_those_of_the_passes);
    RUN(one_pack_has_no_sources);
    RUN(without_memory_it_says_so);
    RUN(the_facts_are_of_all_packs);
    pen_pack_close(&packs[0]);
    pen_pack_close(&packs[1]);
    help_end();
    return TEST_END();
}
