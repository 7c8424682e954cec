/* SPDX-License-Identifier: Apache-2.0 */
/* Gamma and beta variables against their distribution functions. */
#include <math.h>
#include <stdlib.h>

#include "base/attr.h"
#include "ops/operations/beta.h"
#include "ops/operations/op.h"
#include "test.h"

enum { N = TEST_SANITIZED ? 4000 : 40000 };

typedef double (*Cdf)(double x);

static double uniform(double x)
{
    return x;
}
static double arcsine(double x)
{
    return 2 / M_PI * asin(sqrt(x));
}
static double beta_2_2(double x)
{
    return x * x * (3 - 2 * x);
}
static double beta_02_1(double x)
{
    return pow(x, 0.2);
}
static double beta_1_3(double x)
{
    return 1 - pow(1 - x, 3);
}
static double gamma_half(double x)
{
    return erf(sqrt(x));
}
static double gamma_1(double x)
{
    return 1 - exp(-x);
}
static double gamma_3(double x)
{
    return 1 - exp(-x) * (1 + x + x * x / 2);
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Kolmogorov and Smirnov: above 1.95 / sqrt(n) with probability 0.001. */
static double distance(double *values, Cdf cdf)
{
    double most = 0;
    qsort(values, N, sizeof *values, compare);
    for (int i = 0; i < N; i++) {
        double f = cdf(values[i]);
        most = fmax(most, fmax(f - (double)i / N, (double)(i + 1) / N - f));
    }
    return most;
}

static PenDraw start(uint64_t sample)
{
    return pen__draw_start(pen__draw_key(1, 2), sample, PEN_DRAW_ID_mixup, 0);
}

TEST(beta_is_distributed_as_published)
{
    static const struct {
        double a, b;
        Cdf cdf;
    } cases[] = {{1, 1, uniform},
                 {0.5, 0.5, arcsine},
                 {2, 2, beta_2_2},
                 {0.2, 1, beta_02_1},
                 {1, 3, beta_1_3}};
    static double values[N];
    for (size_t k = 0; k < PEN_LEN(cases); k++) {
        for (int i = 0; i < N; i++) {
            PenDraw d = start((uint64_t)i);
            values[i] = pen__draw_beta(&d, cases[k].a, cases[k].b);
            CHECK(values[i] >= 0 && values[i] <= 1);
        }
        CHECK(distance(values, cases[k].cdf) < 1.95 / sqrt(N));
    }
}

TEST(gamma_is_distributed_as_published)
{
    static const struct {
        double shape;
        Cdf cdf;
    } cases[] = {{0.5, gamma_half}, {1, gamma_1}, {3, gamma_3}};
    static double values[N];
    for (size_t k = 0; k < PEN_LEN(cases); k++) {
        for (int i = 0; i < N; i++) {
            PenDraw d = start((uint64_t)i);
            values[i] = pen__draw_gamma(&d, cases[k].shape);
        }
        CHECK(distance(values, cases[k].cdf) < 1.95 / sqrt(N));
    }
}

/* Mean and variance where the distribution function has no simple form. */
TEST(beta_moments_of_any_parameters)
{
    static const double of[][2] = {{0.8, 0.8}, {0.2, 0.2}, {30, 1.5}, {1e6, 1e6}, {0.01, 0.05}};
    for (size_t k = 0; k < PEN_LEN(of); k++) {
        double a = of[k][0], b = of[k][1], sum = 0, squares = 0;
        double mean = a / (a + b), variance = a * b / ((a + b) * (a + b) * (a + b + 1));
        for (int i = 0; i < N; i++) {
            PenDraw d = start((uint64_t)i);
            double x = pen__draw_beta(&d, a, b);
            sum += x;
            squares += (x - mean) * (x - mean);
        }
        CHECK(fabs(sum / N - mean) < 4 * sqrt(variance / N));
        CHECK(fabs(squares / N / variance - 1) < 12 / sqrt(N));
    }
}

/* Where both variables are too small for a double, one of them is still the larger. */
TEST(beta_of_tiny_parameters_is_0_or_1)
{
    int ones = 0;
    for (uint64_t i = 0; i < 1000; i++) {
        PenDraw d = start(i);
        double x = pen__draw_beta(&d, 1e-3, 1e-3);
        CHECK(x >= 0 && x <= 1);
        ones += x > 0.5;
    }
    CHECK(ones > 400 && ones < 600);
    PenDraw d = start(0);
    CHECK(pen__draw_gamma(&d, 1e-3) >= 0);
}

/* Batches of earlier runs are mixed with the same numbers after a resume. */
TEST(beta_is_the_same_for_ever)
{
    PenDraw d = start(7);
    CHECK(pen__draw_beta(&d, 0.8, 0.8) == 0x1.607fca78e3f44p-2);
    CHECK(pen__draw_beta(&d, 1, 1) == 0x1.f992818f2fd91p-2);
    CHECK(pen__draw_gamma(&d, 2.5) == 0x1.63a919407de71p+0);
}

int main(int argc, char **argv)
{
    TEST_START(argc, argv);
    RUN(beta_is_distributed_as_published);
    RUN(gamma_is_distributed_as_published);
    RUN(beta_moments_of_any_parameters);
    RUN(beta_of_tiny_parameters_is_0_or_1);
    RUN(beta_is_the_same_for_ever);
    return TEST_END();
}
