/* SPDX-License-Identifier: Apache-2.0 */
/* The orders at every small size, at random larger ones and at 10^12: permutations, their time, and
 * how well they mix compared with a list that was shuffled. */
#include <inttypes.h>

#include "base/sys.h"
#include "lib/order_help.h"
#include "lib/sweep.h"
#include "unit/test.h"

#define HUGE_N UINT64_C(1000000000000)
#define MOST_US 1.0 /* asked for, of one position */
enum { SMALL_N = 2000, ROUNDS = 5 };

static const Shape huge_shapes[] = {{32, 12}, {32, 3072}, {1, 6}, {1000, 768}};

static void look_at(Sweep *sweep, const PenOrder *o, uint8_t *seen)
{
    const PenOrderPlan *p = &o->plan;
    sweep->n++;
    if (!order_is_whole(o, seen))
        sweep_bad(sweep, "%s n %" PRIu64 " K %" PRIu64 " G %" PRIu32, pen__order_name(p->kind),
                  p->n, p->block_samples, p->streams);
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
            o = shuffle_order(n, n, 1, shapes[i]);
            look_at(&sweep, &o, seen);
            o = order_of(PEN_ORDER_STICKY, n, n, 1, shapes[i]);
            look_at(&sweep, &o, seen);
        }
    }
    sweep_end(&sweep, "%" PRIu64 " orders of 1 to %d samples", sweep.n, SMALL_N);
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
        Shape s = {any_size(&rng, 1, 300), 6u << pen__rng_below(&rng, 8)};
        PenOrder o = random_order(n, 1, (uint64_t)i);
        look_at(&sweep, &o, seen);
        o = shuffle_order(n, 1, (uint64_t)i, s);
        look_at(&sweep, &o, seen);
        o = order_of(PEN_ORDER_STICKY, n, 1, (uint64_t)i, s);
        look_at(&sweep, &o, seen);
        positions += 3 * n;
    }
    free(seen);
    sweep_end(&sweep, "%" PRIu64 " orders up to %" PRIu64 " samples, %" PRIu64 " positions",
              sweep.n, most, positions);
    CHECK_INT(sweep.bad, 0);
}

TEST(is_injective_at_a_million_millions)
{
    uint64_t count = scaled(2000000, 50000);
    PenRng rng = pen__rng_init(12, 12);
    Sweep sweep = sweep_begin("positions at 10^12");
    PenOrder o = random_order(HUGE_N, 1, 2);
    CHECK(order_is_injective(&o, count, &rng));
    for (size_t i = 0; i < PEN_LEN(huge_shapes); i++) {
        o = shuffle_order(HUGE_N + i * 333, 1, 2, huge_shapes[i]);
        CHECK(order_is_injective(&o, count, &rng));
        o = order_of(PEN_ORDER_STICKY, HUGE_N + i * 333, 1, 2, huge_shapes[i]);
        CHECK(order_is_injective(&o, count, &rng));
    }
    sweep.n = count * (1 + 2 * PEN_LEN(huge_shapes));
    sweep_end(&sweep, "%" PRIu64 " positions", sweep.n);
}

/* ---- time ------------------------------------------------------------------------------------ */

/* Microseconds of a position, the best of a few rounds. Each position depends on the sample before,
 * as if it were asked for alone. */
static double time_of(const PenOrder *o)
{
    enum { COUNT = 200000 };
    double best = 1e9;
    uint64_t p = 1;
    for (int k = 0; k < ROUNDS; k++) {
        uint64_t start = pen__sys_real.now_ns();
        for (int i = 0; i < COUNT; i++)
            p = pen__order_at(o, p);
        best = PEN_MIN(best, (double)(pen__sys_real.now_ns() - start) / COUNT / 1e3);
    }
    MUST(p < o->plan.n);
    return best;
}

TEST(takes_less_than_a_microsecond)
{
    PenOrder o = random_order(HUGE_N, 1, 2);
    double at = time_of(&o);
    printf("order: random %.3f us at 10^12\n", at);
    CHECK(at < MOST_US);
    for (int32_t kind = PEN_ORDER_SHUFFLE; kind <= PEN_ORDER_STICKY; kind++)
        for (size_t i = 0; i < PEN_LEN(huge_shapes); i++) {
            Shape s = huge_shapes[i];
            o = order_of(kind, HUGE_N, 1, 2, s);
            at = time_of(&o);
            printf("order: %s K %" PRIu64 " G %" PRIu32 " %.3f us at 10^12\n",
                   pen__order_name(kind), s.k, s.streams, at);
            CHECK(at < MOST_US);
        }
}

/* ---- quality: all seeds are fixed ------------------------------------------------------------ */

/* What 1 GiB gives of samples of 110 KiB, in blocks of 32. */
static const Shape usual = {32, 384};
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
    o = shuffle_order(N, 1, 1, usual);
    list_order(&o);
    Mix shuffled = measure("shuffle");
    CHECK(is_close(random.chi, chance.chi, 0.02) && is_close(shuffled.chi, chance.chi, 0.02));
    CHECK(is_close(random.n_classes, chance.n_classes, 0.005));
    CHECK(is_close(shuffled.n_classes, chance.n_classes, 0.005));
    CHECK(is_close(random.n_blocks, chance.n_blocks, 0.002));
    CHECK(is_close(shuffled.n_blocks, chance.n_blocks, 0.01));
    CHECK(random.same_block < 2.0 * 32 / N && shuffled.same_block < 2.0 * 32 / N);
    CHECK(fabs(random.correlation) < 0.005 && fabs(shuffled.correlation) < 0.02);
}

/* Of a pack in which each class is a stretch, shuffle mixes as many blocks as it has streams: of
 * the usual number almost as by chance, of few ones not. Random order does not care. */
TEST(a_sorted_pack_needs_many_streams)
{
    for (size_t s = 0; s < N; s++)
        classes[s] = (uint8_t)(s * CLASSES / N);
    PenOrder o = random_order(N, 1, 1);
    list_order(&o);
    Mix random = measure("random, sorted pack");
    o = shuffle_order(N, 1, 1, usual);
    list_order(&o);
    Mix shuffled = measure("shuffle, sorted pack");
    o = shuffle_order(N, 1, 1, (Shape){32, 24});
    list_order(&o);
    Mix few = measure("24 streams, sorted");
    CHECK(is_close(random.chi, 1, 0.02));
    CHECK(is_close(shuffled.chi, 1, 0.1) && is_close(shuffled.n_classes, random.n_classes, 0.01));
    CHECK(few.chi > 1.2 && few.n_classes < 30); /* else what is measured means nothing */
}

/* Over many epochs, any sample comes first as often as any other. */
TEST(samples_are_everywhere_over_the_epochs)
{
    enum { EPOCHS = 40000, BINS = 40, STREAMS = 24, SMALL = STREAMS * 32 * 25, PLACES = 4 };
    static const uint64_t places[PLACES] = {0, 7, SMALL / 3, SMALL - 1};
    static const char *const names[] = {"random", "shuffle", "sticky"};
    for (int32_t kind = PEN_ORDER_RANDOM; kind <= PEN_ORDER_STICKY; kind++)
        for (size_t i = 0; i < PLACES; i++) {
            uint32_t counts[BINS] = {0};
            for (uint64_t e = 0; e < EPOCHS; e++) {
                /* Sticky has the same blocks in a pair of streams in all epochs of a seed. */
                PenOrder o = order_of(kind, SMALL, e, e, (Shape){32, STREAMS});
                counts[pen__order_at(&o, places[i]) * BINS / SMALL]++;
            }
            double deviation = chi_deviation(counts, BINS);
            printf("samples at position %" PRIu64 " over %d epochs: %s %+.2f deviations\n",
                   places[i], EPOCHS, names[kind - PEN_ORDER_RANDOM], deviation);
            CHECK(fabs(deviation) < 4);
        }
}

int main(int argc, char **argv)
{
    TEST_START(argc, argv);
    samples = calloc(N, sizeof *samples);
    classes = calloc(N, sizeof *classes);
    MUST(samples && classes);
    RUN(every_small_size_is_whole);
    RUN(random_larger_sizes_are_whole);
    RUN(is_injective_at_a_million_millions);
    RUN(takes_less_than_a_microsecond);
    RUN(batches_are_mixed_as_by_chance);
    RUN(a_sorted_pack_needs_many_streams);
    RUN(samples_are_everywhere_over_the_epochs);
    free(samples);
    free(classes);
    return TEST_END();
}
