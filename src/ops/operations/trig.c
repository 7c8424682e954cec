/* SPDX-License-Identifier: Apache-2.0 */
/* Built without fused multiply-add (meson.build). Numbers are sums of two doubles, of 106 bits;
 * the sums and products of two doubles are those of Knuth and Dekker. */
#include "ops/operations/trig.h"

#include <math.h>

#define PI 3.141592653589793

typedef struct Pair {
    double high, low;
} Pair;

static Pair sum(double a, double b)
{
    double high = a + b, part = high - a;
    return (Pair){high, (a - (high - part)) + (b - part)};
}

/* The upper 26 bits. */
static double upper(double x)
{
    double wide = 134217729.0 * x;
    return wide - (wide - x);
}

static Pair product(double a, double b)
{
    double high = a * b, a1 = upper(a), a2 = a - a1, b1 = upper(b), b2 = b - b1;
    return (Pair){high, ((a1 * b1 - high) + a1 * b2 + a2 * b1) + a2 * b2};
}

static Pair add(Pair a, Pair b)
{
    Pair high = sum(a.high, b.high), low = sum(a.low, b.low);
    high = sum(high.high, high.low + low.high);
    return sum(high.high, high.low + low.low);
}

static Pair multiply(Pair a, Pair b)
{
    Pair p = product(a.high, b.high);
    return sum(p.high, p.low + (a.high * b.low + a.low * b.high));
}

static Pair negative(Pair a)
{
    return (Pair){-a.high, -a.low};
}

static Pair divide(Pair a, Pair b)
{
    double first = a.high / b.high;
    Pair rest = add(a, negative(multiply(b, (Pair){first, 0})));
    double second = rest.high / b.high;
    rest = add(rest, negative(multiply(b, (Pair){second, 0})));
    return add(sum(first, second), (Pair){rest.high / b.high, 0});
}

/* ---- sine and cosine ------------------------------------------------------------------------- */

/* 1 - z / (first (first + 1)) (1 - z / ((first + 2) (first + 3)) (...)) */
static Pair series(Pair z, int first)
{
    Pair all = {1, 0};
    for (int i = first + 24; i >= first; i -= 2)
        all =
            add((Pair){1, 0}, negative(divide(multiply(z, all), (Pair){(double)(i * (i + 1)), 0})));
    return all;
}

/* x - turns * pi / 2, whose first parts have 33 bits: their products are exact. */
static Pair reduce(double x, double turns)
{
    Pair r = sum(x, -turns * 0x1.921fb544p+0);
    r = add(r, (Pair){-turns * 0x1.0b4611a6p-34, 0});
    r = add(r, (Pair){-turns * 0x1.3198a2ep-69, 0});
    return add(r, (Pair){-turns * 0x1.b839a252049c1p-104, 0});
}

/* Of x + a quarter of a turn times `quarters`. */
static Pair sine(double x, int quarters)
{
    double turns = floor(x / (PI / 2) + 0.5);
    Pair r = reduce(x, turns), z = multiply(r, r), value;
    int quarter = ((int)turns + quarters) & 3;
    value = quarter & 1 ? series(z, 1) : multiply(r, series(z, 2));
    return quarter & 2 ? negative(value) : value;
}

static double rounded(Pair p)
{
    return p.high + p.low;
}

double pen__real_sin(double x)
{
    return rounded(sine(x, 0));
}

double pen__real_cos(double x)
{
    return rounded(sine(x, 1));
}

double pen__real_tan(double x)
{
    return rounded(divide(sine(x, 0), sine(x, 1)));
}

/* ---- arc tangent ----------------------------------------------------------------------------- */

/* A rough angle y, then atan x = y + atan((x - tan y) / (1 + x tan y)), of which the second is so
 * small that two terms of its series do. */
double pen__real_atan(double x)
{
    double a = fabs(x), y = a > 1 ? PI / 2 - a / (a * a + 0.28) : a / (1 + 0.28 * a * a);
    Pair rest = {0, 0};
    y = x < 0 ? -y : y;
    for (int i = 0; i < 4; i++) {
        Pair s = sine(y, 0), c = sine(y, 1), wide = {x, 0};
        rest = divide(add(multiply(wide, c), negative(s)), add(c, multiply(wide, s)));
        if (i < 3)
            y += rest.high;
    }
    return rounded(add((Pair){y, 0}, rest));
}

double pen__real_radians(double degrees)
{
    return degrees * (PI / 180);
}

double pen__real_degrees(double radians)
{
    return radians * (180 / PI);
}
