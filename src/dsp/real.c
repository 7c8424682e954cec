/* SPDX-License-Identifier: Apache-2.0 */
/* Built without fused multiply-add (meson.build). */
#include "dsp/real.h"

#include <stdint.h>
#include <string.h>

static const double ln2_high = 0x1.62e42fee00000p-1; /* 33 bits: k * ln2_high is exact */
static const double ln2_low = 0x1.a39ef35793c76p-33;

/* x = m * 2^k with m in [sqrt(1/2), sqrt(2)); ln m = 2 atanh((m - 1) / (m + 1)). */
double pen__real_log(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    int k = (int)(bits >> 52) - 1023;
    bits = (bits & 0xfffffffffffffu) | 0x3ff0000000000000u;
    double m;
    memcpy(&m, &bits, sizeof m);
    if (m > 1.4142135623730951) {
        m = m / 2;
        k++;
    }
    double f = m - 1, s = f / (m + 1), z = s * s, sum = 0;
    for (int i = 23; i >= 3; i -= 2)
        sum = (sum + 1.0 / i) * z;
    /* 2s + 2s * sum, of which 2s = f - s * f loses least. */
    double tail = s * (2 * sum - f) + k * ln2_low;
    return k * ln2_high + (f + tail);
}

/* x = k ln 2 + r with |r| <= ln 2 / 2; the series of e^r. */
double pen__real_exp(double x)
{
    double n = x * 1.4426950408889634;
    int k = (int)(n < 0 ? n - 0.5 : n + 0.5);
    double r = (x - k * ln2_high) - k * ln2_low, sum = 1;
    for (int i = 17; i >= 2; i--)
        sum = 1 + sum * (r / i);
    sum = 1 + r * sum;
    uint64_t bits = (uint64_t)(k + 1023) << 52;
    double power;
    memcpy(&power, &bits, sizeof power);
    return sum * power;
}
