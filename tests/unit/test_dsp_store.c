/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include <penstock/loader.h>

#include "base/attr.h"
#include "base/mem.h"
#include "dsp/dsp.h"
#include "test.h"

static const float mean[4] = {0.485f, 0.456f, 0.406f, 0.5f};
static const float std[4] = {0.229f, 0.224f, 0.225f, 0.25f};

/* ---- values --------------------------------------------------------------------------------- */

TEST(f32_is_divided_and_shifted_in_single_precision)
{
    PenStoreTable t;
    pen__store_table_init(&t, PEN_F32, 3, mean, std);
    CHECK_INT(t.channels, 3);
    CHECK_INT(t.element_bytes, 4);
    for (uint32_t c = 0; c < 3; c++)
        for (int x = 0; x < 256; x++) {
            volatile float v = (float)x / 255.0f; /* each step is rounded */
            v = v - mean[c];
            v = v / std[c];
            float expected = v;
            CHECK_MEM(&t.f32[c][x], &expected, 4);
        }
    pen__store_table_init(&t, PEN_F32, 4, NULL, NULL);
    for (uint32_t c = 0; c < 4; c++)
        for (int x = 0; x < 256; x++)
            CHECK(t.f32[c][x] == (float)x / 255.0f);
}

/* By search: the nearest value that 16 bits can say, the even one of two. */
static double f16_value(uint16_t bits)
{
    int exponent = bits >> 10 & 31, fraction = bits & 1023;
    double v = exponent ? ldexp(1024 + fraction, exponent - 25) : ldexp(fraction, -24);
    return bits & 0x8000 ? -v : v;
}

static double bf16_value(uint16_t bits)
{
    uint32_t wide = (uint32_t)bits << 16;
    float v;
    memcpy(&v, &wide, 4);
    return (double)v;
}

/* Neither neighbour is nearer, and none that is as near is even while this one is odd. */
static bool is_nearest(uint16_t bits, double wanted, double (*value)(uint16_t bits))
{
    double off = fabs(value(bits) - wanted);
    for (int d = -1; d <= 1; d += 2) {
        uint16_t other = (uint16_t)(bits + d);
        if ((bits & 0x7fff) == 0 && d < 0)
            other = (uint16_t)((bits ^ 0x8000) + 1); /* on the other side of 0 */
        double other_off = fabs(value(other) - wanted);
        if (other_off < off || (other_off == off && (bits & 1)))
            return false;
    }
    return true;
}

/* Small deviations make subnormal numbers of 16 bits, too; 0.25 makes ties. */
TEST(halves_are_rounded_to_the_nearest_even)
{
    static const float means[] = {0.485f, 0.0f, 0.0f, 1.0f / 255};
    static const float stds[] = {0.229f, 4096.0f, 70000.0f, 12345.0f};
    for (int dtype = PEN_F16; dtype <= PEN_BF16; dtype++) {
        PenStoreTable t;
        pen__store_table_init(&t, dtype, 4, means, stds);
        CHECK_INT(t.element_bytes, 2);
        for (uint32_t c = 0; c < 4; c++)
            for (int x = 0; x < 256; x++)
                CHECK(is_nearest(t.u16[c][x], (double)t.f32[c][x],
                                 dtype == PEN_F16 ? f16_value : bf16_value));
    }
}

TEST(halves_of_known_values)
{
    static const struct {
        float value;
        uint16_t f16, bf16;
    } known[] = {{0.0f, 0, 0},
                 {1.0f, 0x3c00, 0x3f80},
                 {-2.0f, 0xc000, 0xc000},
                 {65504.0f, 0x7bff, 0x4780},
                 {65519.0f, 0x7bff, 0x4780},
                 {65520.0f, 0x7c00, 0x4780}, /* ties to infinity */
                 {1e10f, 0x7c00, 0x5015},
                 {-1e10f, 0xfc00, 0xd015},
                 {0x1p-24f, 1, 0x3380},
                 {0x1p-25f, 0, 0x3300},   /* ties to 0 */
                 {0x1.8p-24f, 2, 0x33c0}, /* ties to even */
                 {0x1.000002p-25f, 1, 0x3300},
                 {0x1p-26f, 0, 0x3280},
                 {0x1.004p0f, 0x3c01, 0x3f80},
                 {0x1.002p0f, 0x3c00, 0x3f80},
                 {0x1.006p0f, 0x3c02, 0x3f80},
                 {0x1.01p0f, 0x3c04, 0x3f80},
                 {0x1.03p0f, 0x3c0c, 0x3f82},
                 {0x1.ffep-15f, 0x0400, 0x3880}}; /* up to the smallest normal one */
    for (size_t i = 0; i < PEN_LEN(known); i++) {
        PenStoreTable t;
        float minus = -known[i].value, one = 1.0f;
        pen__store_table_init(&t, PEN_F16, 1, &minus, &one); /* x = 0: 0 - mean */
        CHECK_INT(t.u16[0][0], known[i].f16);
        pen__store_table_init(&t, PEN_BF16, 1, &minus, &one);
        CHECK_INT(t.u16[0][0], known[i].bf16);
    }
}

TEST(usual_values_can_be_computed)
{
    PenStoreTable t;
    pen__store_table_init(&t, PEN_F32, 3, mean, std);
    CHECK_INT(t.by_steps, 1);
    pen__store_table_init(&t, PEN_F32, 3, NULL, NULL);
    CHECK_INT(t.by_steps, 1);
    float zero = 0;
    pen__store_table_init(&t, PEN_F32, 1, &zero, &zero); /* infinite: only the table knows */
    CHECK_INT(t.by_steps, 0);
}

/* ---- places --------------------------------------------------------------------------------- */

enum { N = 53 };

static void check_store(const PenDsp *d, int dtype, uint32_t channels, size_t plane)
{
    PenStoreTable t;
    uint8_t row[N * 4 + PEN_SLACK], dst[4 * 60 * 4 + 8];
    pen__store_table_init(&t, dtype, channels, mean, std);
    for (size_t i = 0; i < sizeof row; i++)
        row[i] = (uint8_t)(i * 37);
    memset(dst, 0xee, sizeof dst);
    d->store(&t, row, N, dst, plane);
    size_t used = 0;
    for (uint32_t c = 0; c < channels; c++)
        for (size_t i = 0; i < N; i++) {
            size_t at = (plane ? c * plane + i : i * channels + c) * t.element_bytes;
            uint8_t x = row[i * channels + c];
            const void *value = dtype == PEN_F32  ? (const void *)&t.f32[c][x]
                                : dtype == PEN_U8 ? (const void *)&x
                                                  : (const void *)&t.u16[c][x];
            CHECK_MEM(dst + at, value, t.element_bytes);
            used = PEN_MAX(used, at + t.element_bytes);
        }
    CHECK_INT(dst[used], 0xee);
    if (plane > N && channels > 1)
        CHECK_INT(dst[N * t.element_bytes], 0xee);
}

TEST(store_puts_every_value_in_its_place)
{
    static const char *const tiers[] = {"c", "avx2", "avx512"};
    for (size_t i = 0; i < PEN_LEN(tiers); i++) {
        const PenDsp *d = pen__dsp_tier(tiers[i]);
        for (int dtype = PEN_U8; d && dtype <= PEN_F32; dtype++)
            for (uint32_t channels = 1; channels <= 4; channels++) {
                check_store(d, dtype, channels, 0);
                check_store(d, dtype, channels, N);
                check_store(d, dtype, channels, 60);
                CHECK_OK_SO_FAR();
            }
    }
}

/* ---- tiers ---------------------------------------------------------------------------------- */

TEST(tier_is_chosen_by_name)
{
    const PenDsp *c = pen__dsp_tier("c"), *avx2 = pen__dsp_tier("avx2");
    const PenDsp *avx512 = pen__dsp_tier("avx512"), *best = avx512 ? avx512 : avx2 ? avx2 : c;
    CHECK(c != NULL);
    CHECK_STR(c->tier, "c");
    CHECK(pen__dsp_tier("sse") == NULL);
    CHECK(pen__dsp_choose("c") == c);
    CHECK(pen__dsp_choose("avx2") == (avx2 ? avx2 : c));
    CHECK(pen__dsp_choose("avx512") == best);
    CHECK(pen__dsp_choose(NULL) == best);
    CHECK(pen__dsp_choose("") == best);
    CHECK(pen__dsp_choose("avx1024") == best);
    CHECK(pen__dsp() == pen__dsp());
}

int main(int argc, char **argv)
{
    TEST_START(argc, argv);
    RUN(f32_is_divided_and_shifted_in_single_precision);
    RUN(halves_are_rounded_to_the_nearest_even);
    RUN(halves_of_known_values);
    RUN(usual_values_can_be_computed);
    RUN(store_puts_every_value_in_its_place);
    RUN(tier_is_chosen_by_name);
    return TEST_END();
}
