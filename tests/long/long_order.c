/* SPDX-License-Identifier: Apache-2.0 */
/* The orders at every small size, at random larger ones and at 10^12: permutations, their inverse,
 * their time, and how well they mix compared with a list that was shuffled. */
#include <inttypes.h>

#include "base/sys.h"
#include "lib/order_help.h"
#include "lib/sweep.h"
#include "unit/test.h"

#define HUGE_N UINT64_C(1000000000000)
#define MOST_US 1.0 /* asked for, of one position */
enum { SMALL_N = 2000, ROUNDS = 5 };

/* Twelve lanes: ranks of 1, 2, 3, 4, 6 and 12 have their own. */
static const Shape huge_shapes[] = {{32, 12, 8}, {32, 192, 16}, {1, 1, 1}, {1000, 768, 10}};

static void look_at(Sweep *sweep, const PenOrder *o, uint8_t *seen)
{
    const PenOrderPlan *p = &o->plan;
    sweep->n++;
    if (!order_is_whole(o, seen))
        sweep_bad(sweep, "%s n %" PRIu64 " K %" PRIu64 " C %" PRIu32 " W %" PRIu32,
                  pen__order_name(p->kind), p->n, p->block_samples, p->lanes, p->window);
}

TEST(every_small_size_is_whole)
{
    static uint8_t seen[SMALL_N];
    uint64_t step = scaled(1, 9);
    Sweep sweep = sweep_begin("small sizes");
    for (uint64_t n = 1; n <= SMALL_N; n++) {
        PenOrder o = random_order(n, n, 1);
        look_at(&sweep, &o, seen);
        for (size_t i = n % step ? PEN_LEN(shapes) : 0; i < PEN_LEN(shapes); i++) {
            o = block_order(n, n, 1, shapes[i]);
            look_at(&sweep, &o, seen);
        }
    }
    sweep_end(&sweep, "%" PRIu64 " orders of 1 to %d samples and their inverse", sweep.n, SMALL_N);
    CHECK_INT(sweep.bad, 0);
}

/* Up to `most`, small ones as often as large ones. */
static uint64_t any_size(PenRng *rng, uint64_t least, uint64_t most)
{
    double x = (double)pen__rng_below(rng, 1 << 30) / (1 << 30);
    return (uint64_t)((double)least * pow((double)most / (double)least, x));
}

TEST(random_larger_sizes_are_whole)
{
    uint64_t most = scaled(4000000, 60000);
    uint8_t *seen = malloc(most);
    uint64_t positions = 0;
    PenRng rng = pen__rng_init(11, 11);
    MUST(seen);
    Sweep sweep = sweep_begin("larger sizes");
    for (int i = 0; i < 200; i++) {
        uint64_t n = any_size(&rng, SMALL_N + 1, most);
        Shape s = {any_size(&rng, 1, 300), (uint32_t)any_size(&rng, 1, 400),
                   (uint32_t)any_size(&rng, 1, 40)};
        PenOrder o = random_order(n, 1, (uint64_t)i);
        look_at(&sweep, &o, seen);
        o = block_order(n, 1, (uint64_t)i, s);
        look_at(&sweep, &o, seen);
        positions += 2 * n;
    }
    free(seen);
    sweep_end(&sweep, "%" PRIu64 " orders up to %" PRIu64 " samples, %" PRIu64 " positions",
              sweep.n, most, positions);
    CHECK_INT(sweep.bad, 0);
}

TEST(inverts_at_a_million_millions)
{
    uint64_t count = scaled(2000000, 50000);
    PenRng rng = pen__rng_init(12, 12);
    Sweep sweep = sweep_begin("inverse at 10^12");
    PenOrder o = random_order(HUGE_N, 1, 2);
    CHECK(order_inverts(&o, count, &rng));
    for (size_t i = 0; i < PEN_LEN(huge_shapes); i++) {
        o = block_order(HUGE_N + i * 333, 1, 2, huge_shapes[i]);
        CHECK(order_inverts(&o, count, &rng));
    }
    sweep.n = count * (1 + PEN_LEN(huge_shapes));
    sweep_end(&sweep, "%" PRIu64 " positions and samples", sweep.n);
}

/* ---- time ------------------------------------------------------------------------------------ */

/* Microseconds of a position, the best of a few rounds. Each position depends on the sample before,
 * as if it were asked for alone. */
static double time_of(const PenOrder *o, uint64_t (*call)(const PenOrder *, uint64_t))
{
    enum { COUNT = 200000 };
    double best = 1e9;
    uint64_t p = 1;
    for (int k = 0; k < ROUNDS; k++) {
        uint64_t start = pen__sys_real.now_ns();
        for (int i = 0; i < COUNT; i++)
            p = call(o, p);
        best = PEN_MIN(best, (double)(pen__sys_real.now_ns() - start) / COUNT / 1e3);
    }
    MUST(p < o->plan.n);
    return best;
}

TEST(takes_less_than_a_microsecond)
{
    PenOrder o = random_order(HUGE_N, 1, 2);
    double at = time_of(&o, pen__order_at);
    double find = time_of(&o, pen__order_find);
    printf("order: random %.3f us, inverse %.3f us at 10^12\n", at, find);
    CHECK(at < MOST_US && find < MOST_US);
    for (size_t i = 0; i < PEN_LEN(huge_shapes); i++) {
        Shape s = huge_shapes[i];
        o = block_order(HUGE_N, 1, 2, s);
        at = time_of(&o, pen__order_at);
        find = time_of(&o, pen__order_find);
        printf("order: block K %" PRIu64 " C %" PRIu32 " W %" PRIu32
               " %.3f us, inverse %.3f us at 10^12\n",
               s.k, s.lanes, s.window, at, find);
        CHECK(at < MOST_US && find < MOST_US);
    }
}

/* ---- quality: all seeds are fixed ------------------------------------------------------------ */

/* What 2 GiB give for blocks of 4 MiB. */
static const Shape usual = {32, 24, 10};
enum { N = 1000000, BATCH = 256, CLASSES = 100, BLOCKS = N / 32 };

typedef struct Mix {
    double chi;         /* of the classes in a batch, in units of its degrees of freedom */
    double n_classes;   /* in a batch */
    double n_blocks;    /* in a batch */
    double same_block;  /* share of neighbours that are from one block */
    double correlation; /* of position and sample */
} Mix;

static uint32_t *samples; /* of the epoch, in order */
static uint8_t *classes;  /* of each sample */

static void measure_batch(const uint32_t *batch, Mix *m)
{
    static uint32_t last_batch_of[BLOCKS + 1];
    static uint32_t number;
    uint32_t counts[CLASSES] = {0};
    number++;
    for (size_t i = 0; i < BATCH; i++) {
        uint32_t block = batch[i] / 32;
        counts[classes[batch[i]]]++;
        m->n_blocks += last_batch_of[block] != number;
        last_batch_of[block] = number;
    }
    for (size_t c = 0; c < CLASSES; c++) {
        double expected = (double)BATCH / CLASSES;
        m->chi += (counts[c] - expected) * (counts[c] - expected) / expected / (CLASSES - 1);
        m->n_classes += counts[c] > 0;
    }
}

static Mix measure(const char *name)
{
    Mix m = {0};
    double n_batches = N / BATCH;
    for (size_t g = 0; g < N / BATCH; g++)
        measure_batch(samples + g * BATCH, &m);
    for (size_t p = 0; p < N; p++) {
        m.correlation += ((double)p / N - 0.5) * ((double)samples[p] / N - 0.5) * 12 / N;
        m.same_block += p && samples[p] / 32 == samples[p - 1] / 32;
    }
    m.chi /= n_batches;
    m.n_classes /= n_batches;
    m.n_blocks /= n_batches;
    m.same_block /= N;
    printf("mix: %-22s chi2/dof %7.3f, %5.1f classes and %5.1f blocks in a batch of %d, neighbours "
           "of one block %.4f %%, correlation %+.4f\n",
           name, m.chi, m.n_classes, m.n_blocks, BATCH, 100 * m.same_block, m.correlation);
    return m;
}

static void list_order(const PenOrder *o)
{
    for (uint64_t p = 0; p < N; p++)
        samples[p] = (uint32_t)pen__order_at(o, p);
}

static void list_shuffled(PenRng *rng)
{
    for (uint32_t p = 0; p < N; p++) {
        uint64_t at = pen__rng_below(rng, p + 1);
        samples[p] = samples[at];
        samples[at] = p;
    }
}

static bool is_close(double found, double expected, double share)
{
    return fabs(found - expected) <= share * expected;
}

/* Classes are spread over the pack by chance, as packing does it. */
TEST(batches_are_mixed_as_by_chance)
{
    PenRng rng = pen__rng_init(13, 13);
    for (size_t s = 0; s < N; s++)
        classes[s] = (uint8_t)pen__rng_below(&rng, CLASSES);
    list_shuffled(&rng);
    Mix chance = measure("a shuffled list");
    PenOrder o = random_order(N, 1, 1);
    list_order(&o);
    Mix random = measure("random");
    o = block_order(N, 1, 1, usual);
    list_order(&o);
    Mix block = measure("block");
    CHECK(is_close(random.chi, chance.chi, 0.02) && is_close(block.chi, chance.chi, 0.02));
    CHECK(is_close(random.n_classes, chance.n_classes, 0.005));
    CHECK(is_close(block.n_classes, chance.n_classes, 0.005));
    CHECK(is_close(random.n_blocks, chance.n_blocks, 0.002));
    CHECK(block.n_blocks > BATCH / 2);
    CHECK(random.same_block < 2.0 * 32 / N && block.same_block < 2.0 * 32 / N);
    CHECK(fabs(random.correlation) < 0.005 && fabs(block.correlation) < 0.02);
}

/* Of a pack in which each class is a stretch, block order mixes as many classes as it has blocks:
 * better than its lanes alone, worse than chance. Random order does not care. */
TEST(a_sorted_pack_needs_random_order)
{
    for (size_t s = 0; s < N; s++)
        classes[s] = (uint8_t)(s * CLASSES / N);
    PenOrder o = random_order(N, 1, 1);
    list_order(&o);
    Mix random = measure("random, sorted pack");
    o = block_order(N, 1, 1, usual);
    list_order(&o);
    Mix block = measure("block, sorted pack");
    CHECK(is_close(random.chi, 1, 0.02));
    CHECK(block.chi > 1.2); /* else what is measured means nothing */
    CHECK(block.n_classes > 60);
}

/* Over many epochs a sample is everywhere, and two samples of a block are near each other only as
 * often as the window says. */
TEST(samples_are_everywhere_over_the_epochs)
{
    enum { EPOCHS = 40000, BINS = 40, SMALL = 24 * 32 * 25 };
    static uint32_t random[BINS], block[BINS];
    for (uint64_t e = 0; e < EPOCHS; e++) {
        PenOrder a = random_order(SMALL, 1, e);
        PenOrder b = block_order(SMALL, 1, e, usual);
        random[pen__order_find(&a, 7) * BINS / SMALL]++;
        block[pen__order_find(&b, 7) * BINS / SMALL]++;
    }
    double r = chi_deviation(random, BINS);
    double b = chi_deviation(block, BINS);
    printf("place of a sample over %d epochs: random %+.2f, block %+.2f deviations\n", EPOCHS, r,
           b);
    CHECK(fabs(r) < 4 && fabs(b) < 4);
}

int main(int argc, char **argv)
{
    TEST_START(argc, argv);
    samples = calloc(N, sizeof *samples);
    classes = calloc(N, sizeof *classes);
    MUST(samples && classes);
    RUN(every_small_size_is_whole);
    RUN(random_larger_sizes_are_whole);
    RUN(inverts_at_a_million_millions);
    RUN(takes_less_than_a_microsecond);
    RUN(batches_are_mixed_as_by_chance);
    RUN(a_sorted_pack_needs_random_order);
    RUN(samples_are_everywhere_over_the_epochs);
    free(samples);
    free(classes);
    return TEST_END();
}
