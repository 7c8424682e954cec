/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/language/decimal.h"

#include <float.h>
#include <inttypes.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LONGEST = 40 };

static const char *skip_digits(const char *s)
{
    while (*s >= '0' && *s <= '9')
        s++;
    return s;
}

static int is_decimal(const char *s)
{
    s += *s == '+' || *s == '-';
    const char *end = skip_digits(s);
    long n = end - s;
    if (*end == '.') {
        s = end + 1;
        end = skip_digits(s);
        n += end - s;
    }
    if (n == 0)
        return 0;
    if (*end == 'e' || *end == 'E') {
        s = end + 1;
        s += *s == '+' || *s == '-';
        end = skip_digits(s);
        if (end == s)
            return 0;
    }
    return *end == '\0';
}

int pen__decimal_parse(const char *text, size_t bytes, double *ret)
{
    char buf[LONGEST + 1];
    if (bytes > LONGEST || memchr(text, '\0', bytes))
        return -1;
    memcpy(buf, text, bytes);
    buf[bytes] = '\0';
    if (!is_decimal(buf))
        return -1;
    locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (!c)
        return -1;
    double v = strtod_l(buf, NULL, c);
    freelocale(c);
    if (!(v >= -DBL_MAX && v <= DBL_MAX))
        return -1;
    *ret = v + 0.0; /* there is no -0 */
    return 0;
}

/* Whatever stands between the digits (a comma, in some locales) becomes a point. */
static void put_point(char *s)
{
    char *to = s;
    for (; *s; s++) {
        if ((*s >= '0' && *s <= '9') || *s == 'e' || *s == '+' || *s == '-')
            *to++ = *s;
        else if (to[-1] != '.')
            *to++ = '.';
    }
    *to = '\0';
}

void pen__decimal_write(double v, char buf[PEN_DECIMAL_TEXT])
{
    double back = 0;
    if (v > -1e15 && v < 1e15 && v == (double)(int64_t)v) {
        snprintf(buf, PEN_DECIMAL_TEXT, "%" PRId64, (int64_t)v);
        return;
    }
    for (int digits = 1; digits <= 17; digits++) {
        snprintf(buf, PEN_DECIMAL_TEXT, "%.*g", digits, v);
        put_point(buf);
        if (pen__decimal_parse(buf, strlen(buf), &back) == 0 && back == v)
            return;
    }
}
