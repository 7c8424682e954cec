/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdlib.h>

#include "base/rng.h"
#include "ops/operations/boxes.h"
#include "ops/operations/op.h"
#include "ops/pipeline/spec.h"
#include "test.h"

TEST(draw_counter_is_sample_operation_draw)
{
    PenDrawKey key = pen__draw_key(5, 6);
    PenDraw d = pen__draw_start(key, 0x123456789abcdefu, PEN_DRAW_ID_hflip, 0);
    CHECK_INT(d.counter[0], 0x89abcdefu);
    CHECK_INT(d.counter[1], 0x1234567u);
    CHECK_INT(d.counter[2], 9 << 16);
    for (uint32_t i = 0; i < 3; i++) {
        uint32_t counter[4] = {d.counter[0], d.counter[1], d.counter[2], i}, x[4];
        pen__philox(key.key, counter, x);
        CHECK_INT(pen__draw_bits(&d), x[0] | (uint64_t)x[1] << 32);
    }
}

/* Seed and epoch are not exchangeable, and neighbours share nothing. */
TEST(draw_key_is_no_sum)
{
    enum { N = 64 };
    static uint64_t keys[N * N];
    uint64_t ones = 0;
    for (uint64_t s = 0; s < N; s++) {
        for (uint64_t e = 0; e < N; e++) {
            PenDrawKey k = pen__draw_key(s, e);
            keys[s * N + e] = k.key[0] | (uint64_t)k.key[1] << 32;
        }
    }
    for (size_t i = 0; i < N * N; i++) {
        ones += (uint64_t)__builtin_popcountll(keys[i] ^ keys[(i + 1) % (N * N)]);
        for (size_t k = 0; k < i; k++)
            CHECK(keys[i] != keys[k]);
    }
    CHECK(ones > N * N * 31 && ones < N * N * 33);
}

/* Views have keys of their own, which the order of what is mixed in does not change by chance. */
TEST(draw_key_of_views)
{
    static const char *names[] = {"global1", "global2", "local", "", "a", "b"};
    static uint64_t keys[64 * PEN_LEN(names)];
    size_t n = 0;
    for (uint32_t o = 0; o < 64; o++)
        for (size_t i = 0; i < PEN_LEN(names); i++) {
            PenDrawKey key = pen__draw_key_of(pen__draw_key(3, 4), o);
            PenDrawKey view = pen__draw_key_view(key, pen__draw_name(names[i]));
            keys[n++] = view.key[0] | (uint64_t)view.key[1] << 32;
            PenDrawKey none = pen__draw_key_view(key, 0);
            CHECK(none.key[0] == key.key[0] && none.key[1] == key.key[1]);
            CHECK(view.key[0] != key.key[0] || view.key[1] != key.key[1]);
        }
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < i; k++)
            CHECK(keys[i] != keys[k]);
    /* States of earlier runs continue with the same draws. */
    PenDrawKey fixed = pen__draw_key_view(pen__draw_key(1, 2), pen__draw_name("global1"));
    CHECK_INT(fixed.key[0], 0x590ce52b);
    CHECK_INT(fixed.key[1], 0x6befa658);
}

/* The first repeat of a sample keeps the key; the others have keys that no epoch has. */
TEST(draw_key_of_repeats)
{
    enum { N = 64 };
    static uint64_t keys[N * N];
    for (uint64_t e = 0; e < N; e++) {
        PenDrawKey first = pen__draw_key(3, e);
        for (uint32_t o = 0; o < N; o++) {
            PenDrawKey k = pen__draw_key_of(first, o);
            keys[e * N + o] = k.key[0] | (uint64_t)k.key[1] << 32;
            CHECK((o == 0) == (k.key[0] == first.key[0] && k.key[1] == first.key[1]));
        }
    }
    for (size_t i = 0; i < N * N; i++)
        for (size_t k = 0; k < i; k++)
            CHECK(keys[i] != keys[k]);
    PenDrawKey fixed = pen__draw_key_of(pen__draw_key(1, 2), 7);
    CHECK_INT(fixed.key[0] | (uint64_t)fixed.key[1] << 32, 0xea45a2d35b143f7du);
}

/* Numbers that must never change: every random pixel depends on them. Add lines, and change none;
 * an operation that is removed keeps its line, so that its number is not used again. */
typedef struct DrawId {
    const char *name;
    uint32_t draw_id;
} DrawId;

static const DrawId draw_ids[] = {
    {"decode", 1},
    {"resize", 2},
    {"center_crop", 3},
    {"random_crop", 4},
    {"three_crop", 5},
    {"random_resized_crop", 6},
    {"cover", 7},
    {"patches", 8},
    {"hflip", 9},
    {"vflip", 10},
    {"random_rotation", 11},
    {"random_affine", 12},
    {"random_perspective", 13},
    {"pad", 14},
    {"five_crop", 15},
    {"ten_crop", 16},
    {"color_jitter", 17},
    {"grayscale", 18},
    {"random_invert", 19},
    {"random_posterize", 20},
    {"random_solarize", 21},
    {"random_equalize", 22},
    {"random_autocontrast", 23},
    {"random_adjust_sharpness", 24},
    {"adjust_gamma", 25},
    {"gaussian_blur", 26},
    {"random_channel_permutation", 27},
    {"jpeg", 28},
    {"random_apply", 29},
    {"random_choice", 30},
    {"random_order", 31},
    {"rand_augment", 32},
    {"trivial_augment", 33},
    {"auto_augment", 34},
    {"aug_mix", 35},
    {"three_augment", 36},
    {"clip", 37},
    {"normalize", 38},
    {"random_erasing", 39},
    {"tensor", 40},
    {"repeat", 41},
    {"pad_batch", 42},
    {"mixup", 43},
    {"cutmix", 44},
    {"one_hot", 45},
    {"text", 46},
    {"json", 47},
    {"bytes", 48},
    {"key", 49},
    {"ragged", 50},
    {"boxes", 51},
    {"points", 52},
    {"keep", 53},
};
static const DrawId moves_draw_ids[] = {
    {"random_apply", 54},
    {"random_choice", 55},
    {"random_order", 56},
};

TEST(draw_ids_never_change)
{
    uint32_t n;
    const PenOp *ops = pen_ops(&n);
    for (uint32_t i = 0; i < n; i++) {
        const DrawId *found = NULL;
        for (size_t k = 0; k < PEN_LEN(draw_ids); k++)
            if (strcmp(draw_ids[k].name, ops[i].name) == 0)
                found = &draw_ids[k];
        if (!found)
            test__fail(__FILE__, __LINE__, "%s is not in draw_ids", ops[i].name);
        else
            CHECK_INT(pen__op_work(&ops[i])->draw_id, found->draw_id);
    }
    static const DrawId moves[] = {
#define XX(name, draw_id) {#name, draw_id},
        PEN_MOVES_MAP(XX)
#undef XX
    };
    CHECK_INT(PEN_LEN(moves), PEN_LEN(moves_draw_ids));
    for (size_t i = 0; i < PEN_LEN(moves_draw_ids); i++) {
        CHECK_STR(moves[i].name, moves_draw_ids[i].name);
        CHECK_INT(moves[i].draw_id, moves_draw_ids[i].draw_id);
    }
}

/* Those of operations that were removed, too. */
TEST(draw_ids_are_unique)
{
    enum { N = PEN_LEN(draw_ids) + PEN_LEN(moves_draw_ids) };
    uint32_t ids[N], n = 0;
    for (size_t i = 0; i < PEN_LEN(draw_ids); i++)
        ids[n++] = draw_ids[i].draw_id;
    for (size_t i = 0; i < PEN_LEN(moves_draw_ids); i++)
        ids[n++] = moves_draw_ids[i].draw_id;
    for (uint32_t i = 0; i < N; i++) {
        CHECK(ids[i] > 0 && ids[i] < 1 << 16);
        for (uint32_t k = 0; k < i; k++)
            CHECK(ids[i] != ids[k]);
    }
}

TEST(draw_operations_have_counters_of_their_own)
{
    static const uint32_t some[] = {1, 2, 56, 65535};
    uint32_t words[PEN_LEN(some) * PEN_MAX_OPS], n = 0;
    for (size_t i = 0; i < PEN_LEN(some); i++)
        for (uint32_t k = 0; k < PEN_MAX_OPS; k++) {
            PenDraw d = pen__draw_start((PenDrawKey){{0, 0}}, 0, some[i], k);
            for (uint32_t j = 0; j < n; j++)
                CHECK(words[j] != d.counter[2]);
            words[n++] = d.counter[2];
        }
}

/* Numbers that must never change: a saved state has to go on with the same pixels. */
TEST(draw_is_the_same_for_ever)
{
    PenDraw d = pen__draw_start(pen__draw_key(1, 2), 3, PEN_DRAW_ID_random_resized_crop, 0);
    PenSampleRule rule = {.scale = {0.08, 1}, .ratio = {0.75, 1.3333333333333333}};
    CHECK_INT(pen__draw_bits(&d), 0x55817af983f3fb17u);
    PenBox b = pen__sample_crop(&d, 500, 375, &rule);
    CHECK_INT(b.x, 43);
    CHECK_INT(b.y, 57);
    CHECK_INT(b.w, 291);
    CHECK_INT(b.h, 243);
}

TEST(draw_uniform_fills_its_range)
{
    PenDraw d = pen__draw_start(pen__draw_key(1, 0), 0, 1, 0);
    double sum = 0, square = 0, low = 1, high = 0;
    enum { N = 100000 };
    for (int i = 0; i < N; i++) {
        double v = pen__draw_uniform(&d, 0, 1);
        CHECK(v >= 0 && v < 1);
        sum += v;
        square += v * v;
        low = PEN_MIN(low, v);
        high = PEN_MAX(high, v);
    }
    CHECK(fabs(sum / N - 0.5) < 0.004);
    CHECK(fabs(square / N - 1.0 / 3) < 0.004);
    CHECK(low < 1e-3 && high > 1 - 1e-3);
    CHECK(!pen__draw_happens(&d, 0));
    CHECK(pen__draw_happens(&d, 1));
}

TEST(draw_below_has_no_bias)
{
    PenDraw d = pen__draw_start(pen__draw_key(1, 0), 1, 1, 0);
    uint64_t n[7] = {0}, large = 3ull << 62, thirds = 0;
    double chi = 0;
    for (int i = 0; i < 70000; i++)
        n[pen__draw_below(&d, 7)]++;
    for (int i = 0; i < 7; i++)
        chi += ((double)n[i] - 10000) * ((double)n[i] - 10000) / 10000;
    CHECK(chi < 22.5); /* 6 degrees, 0.001 */
    /* If nothing were drawn again, every third number would come half of the time. */
    for (int i = 0; i < 10000; i++) {
        uint64_t v = pen__draw_below(&d, large);
        CHECK(v < large);
        thirds += v % 3 == 0;
    }
    CHECK(thirds > 3100 && thirds < 3560);
    CHECK_INT(pen__draw_below(&d, 0), 0);
    CHECK_INT(pen__draw_below(&d, 1), 0);
}

static double ulps(double found, double expected)
{
    double step = nextafter(fabs(expected), INFINITY) - fabs(expected);
    return fabs(found - expected) / step;
}

TEST(real_log_and_exp_are_right)
{
    PenDraw d = pen__draw_start(pen__draw_key(3, 0), 1, 1, 0);
    CHECK(pen__real_log(1) == 0);
    CHECK(pen__real_exp(0) == 1);
    for (int i = 0; i < 50000; i++) {
        double x = pow(10, pen__draw_uniform(&d, -3, 3));
        CHECK(ulps(pen__real_log(x), log(x)) <= 2);
        double y = pen__draw_uniform(&d, -7, 7);
        CHECK(ulps(pen__real_exp(y), exp(y)) <= 2);
    }
}

/* torchvision's algorithm as published, with the C library and another generator. */
static uint64_t other_state;

static double other_uniform(double low, double high)
{
    other_state += 0x9e3779b97f4a7c15u;
    uint64_t z = other_state;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    z ^= z >> 31;
    return low + (high - low) * ((double)(z >> 11) / 9007199254740992.0);
}

static uint32_t other_below(uint32_t n)
{
    return (uint32_t)(other_uniform(0, 1) * n);
}

static PenBox other_crop(uint32_t width, uint32_t height, const PenSampleRule *rule)
{
    double area = (double)width * height;
    for (int i = 0; i < 10; i++) {
        double target = area * other_uniform(rule->scale[0], rule->scale[1]);
        double ratio = exp(other_uniform(log(rule->ratio[0]), log(rule->ratio[1])));
        int w = (int)rint(sqrt(target * ratio)), h = (int)rint(sqrt(target / ratio));
        if (0 < w && w <= (int)width && 0 < h && h <= (int)height) {
            uint32_t y = other_below(height - (uint32_t)h + 1);
            uint32_t x = other_below(width - (uint32_t)w + 1);
            return (PenBox){x, y, (uint32_t)w, (uint32_t)h};
        }
    }
    double ratio = (double)width / height;
    int w = (int)width, h = (int)height;
    if (ratio < rule->ratio[0])
        h = (int)rint(w / rule->ratio[0]);
    else if (ratio > rule->ratio[1])
        w = (int)rint(h * rule->ratio[1]);
    return (PenBox){(width - (uint32_t)w) / 2, (height - (uint32_t)h) / 2, (uint32_t)w,
                    (uint32_t)h};
}

static PenBox other_erase(uint32_t width, uint32_t height, const PenSampleRule *rule)
{
    double area = (double)width * height;
    for (int i = 0; i < 10; i++) {
        double target = area * other_uniform(rule->scale[0], rule->scale[1]);
        double ratio = exp(other_uniform(log(rule->ratio[0]), log(rule->ratio[1])));
        int h = (int)rint(sqrt(target * ratio)), w = (int)rint(sqrt(target / ratio));
        if (h < (int)height && w < (int)width) {
            uint32_t y = other_below(height - (uint32_t)h + 1);
            uint32_t x = other_below(width - (uint32_t)w + 1);
            return (PenBox){x, y, (uint32_t)w, (uint32_t)h};
        }
    }
    return (PenBox){.w = 0};
}

enum { DRAWS = 20000, STATS = 4 };

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The largest distance of the two distributions. */
static double smirnov(double *a, double *b)
{
    double most = 0;
    size_t i = 0, k = 0;
    qsort(a, DRAWS, sizeof *a, compare_doubles);
    qsort(b, DRAWS, sizeof *b, compare_doubles);
    while (i < DRAWS && k < DRAWS) {
        double v = PEN_MIN(a[i], b[k]);
        while (i < DRAWS && a[i] <= v)
            i++;
        while (k < DRAWS && b[k] <= v)
            k++;
        most = fmax(most, fabs((double)i - (double)k) / DRAWS);
    }
    return most;
}

static void take_stats(const PenBox *b, size_t i, double stats[STATS][DRAWS])
{
    stats[0][i] = (double)b->w * b->h;
    stats[1][i] = b->w ? log((double)b->w / b->h) : 0;
    stats[2][i] = b->x;
    stats[3][i] = b->y;
}

typedef PenBox Ours(PenDraw *, uint32_t, uint32_t, const PenSampleRule *);
typedef PenBox Other(uint32_t, uint32_t, const PenSampleRule *);

static void compare_boxes(Ours *ours, Other *other, uint32_t width, uint32_t height,
                          const PenSampleRule *rule)
{
    static double a[STATS][DRAWS], b[STATS][DRAWS];
    PenDrawKey key = pen__draw_key(12, 0);
    other_state = 7;
    for (uint64_t i = 0; i < DRAWS; i++) {
        PenDraw d = pen__draw_start(key, i, PEN_DRAW_ID_random_resized_crop, 0);
        PenBox box = ours(&d, width, height, rule);
        CHECK(box.x + box.w <= width && box.y + box.h <= height);
        take_stats(&box, i, a);
        box = other(width, height, rule);
        take_stats(&box, i, b);
    }
    for (int s = 0; s < STATS; s++) {
        double found = smirnov(a[s], b[s]);
        /* 0.001 for two samples of this size */
        if (found >= 1.949 * sqrt(2.0 / DRAWS))
            test__fail(__FILE__, __LINE__, "%u x %u, statistic %d: distance %f", width, height, s,
                       found);
    }
}

TEST(sample_crop_is_distributed_as_published)
{
    PenSampleRule rule = {.scale = {0.08, 1}, .ratio = {0.75, 1.3333333333333333}};
    compare_boxes(pen__sample_crop, other_crop, 500, 375, &rule);
    compare_boxes(pen__sample_crop, other_crop, 333, 500, &rule);
    compare_boxes(pen__sample_crop, other_crop, 32, 32, &rule);
    /* Many tries do not fit, and often none of the ten. */
    compare_boxes(pen__sample_crop, other_crop, 1000, 200, &rule);
    rule = (PenSampleRule){.scale = {0.2, 0.6}, .ratio = {0.5, 3}};
    compare_boxes(pen__sample_crop, other_crop, 640, 480, &rule);
}

TEST(sample_erase_is_distributed_as_published)
{
    PenSampleRule rule = {.scale = {0.02, 0.33}, .ratio = {0.3, 3.3}};
    compare_boxes(pen__sample_erase, other_erase, 224, 224, &rule);
    compare_boxes(pen__sample_erase, other_erase, 32, 100, &rule);
}

TEST(sample_crop_takes_the_centre_when_nothing_fits)
{
    PenSampleRule rule = {.scale = {1, 1}, .ratio = {0.75, 1.3333333333333333}};
    PenDraw d = pen__draw_start(pen__draw_key(0, 0), 0, 1, 0);
    PenBox b = pen__sample_crop(&d, 900, 90, &rule);
    CHECK_INT(b.w, 120);
    CHECK_INT(b.h, 90);
    CHECK_INT(b.x, 390);
    CHECK_INT(b.y, 0);
    b = pen__sample_crop(&d, 75, 1001, &rule);
    CHECK_INT(b.w, 75);
    CHECK_INT(b.h, 100);
    CHECK_INT(b.x, 0);
    CHECK_INT(b.y, 450);
    /* One pixel stays, whatever the ratio. */
    rule = (PenSampleRule){.scale = {0.5, 0.6}, .ratio = {100, 100}};
    b = pen__sample_crop(&d, 1, 1, &rule);
    CHECK_INT(b.w, 1);
    CHECK_INT(b.h, 1);
}

TEST(sample_factors_are_fixed_point)
{
    PenDraw d = pen__draw_start(pen__draw_key(0, 0), 0, 1, 0);
    CHECK_INT(pen__sample_factor(&d, 1, 1), 65536);
    CHECK_INT(pen__sample_factor(&d, 0.5, 0.5), 32768);
    CHECK_INT(pen__sample_hue(&d, 0.5, 0.5), 127);
    CHECK_INT(pen__sample_hue(&d, -0.1, -0.1), 256 - 25);
    CHECK_INT(pen__sample_hue(&d, 0, 0), 0);
}

int main(int argc, char **argv)
{
    TEST_START(argc, argv);
    RUN(draw_counter_is_sample_operation_draw);
    RUN(draw_key_is_no_sum);
    RUN(draw_key_of_views);
    RUN(draw_key_of_repeats);
    RUN(draw_ids_never_change);
    RUN(draw_ids_are_unique);
    RUN(draw_operations_have_counters_of_their_own);
    RUN(draw_is_the_same_for_ever);
    RUN(draw_uniform_fills_its_range);
    RUN(draw_below_has_no_bias);
    RUN(real_log_and_exp_are_right);
    RUN(sample_crop_is_distributed_as_published);
    RUN(sample_erase_is_distributed_as_published);
    RUN(sample_crop_takes_the_centre_when_nothing_fits);
    RUN(sample_factors_are_fixed_point);
    return TEST_END();
}
