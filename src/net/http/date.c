/* SPDX-License-Identifier: Apache-2.0 */
/* libcurl can parse HTTP dates too, but not when it is built with --disable-dateparse. */
#include "net/http/date.h"

#include <string.h>

static int is_leap(int year)
{
    return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
}

/* -1: there is no such day, or it was before 1970. Months and days count from 1. */
static int64_t days_since_1970(int year, int month, int day)
{
    static const int before[] = {0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334, 365};
    if (year < 1970 || month < 1 || month > 12 || day < 1)
        return -1;
    int leap_day = month == 2 && is_leap(year);
    if (day > before[month] - before[month - 1] + leap_day)
        return -1;
    int past = year - 1; /* whole years before this one */
    int64_t leaps = (past / 4 - past / 100 + past / 400) - (1969 / 4 - 1969 / 100 + 1969 / 400);
    return (int64_t)(year - 1970) * 365 + leaps + before[month - 1] + (month > 2 && is_leap(year)) +
           day - 1;
}

/* ---- HTTP ------------------------------------------------------------------------------------ */

typedef struct Parts {
    int year, month, day, hour, minute, second;
} Parts;

/* Two or four digits; -1 when they are not there. A day may have a space for its first digit. */
static int take_digits(const char **at, int n, int space)
{
    int v = 0;
    for (int i = 0; i < n; i++, (*at)++) {
        int digit = space && i == 0 && **at == ' ' ? 0 : **at - '0';
        if (digit < 0 || digit > 9)
            return -1;
        v = v * 10 + digit;
    }
    return v;
}

static int take_month(const char **at)
{
    static const char names[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    for (int i = 0; i < 12; i++)
        if (strncmp(*at, names + (size_t)3 * (size_t)i, 3) == 0) {
            *at += 3;
            return i + 1;
        }
    return -1;
}

/* The name of a day is not compared with the date. */
static int take_weekday(const char **at)
{
    const char *start = *at;
    while ((**at >= 'A' && **at <= 'Z') || (**at >= 'a' && **at <= 'z'))
        (*at)++;
    return *at - start >= 3 ? 0 : -1;
}

static int take_short_year(const char **at)
{
    int year = take_digits(at, 2, 0);
    return year < 0 ? -1 : year < 70 ? 2000 + year : 1900 + year;
}

/* The part that a letter of a form stands for; < 0 when it is not there. */
static int take_part(const char **at, char letter, Parts *p)
{
    switch (letter) {
    case 'w':
        return take_weekday(at);
    case 'd':
        return p->day = take_digits(at, 2, 1);
    case 'b':
        return p->month = take_month(at);
    case 'Y':
        return p->year = take_digits(at, 4, 0);
    case 'y':
        return p->year = take_short_year(at);
    case 'h':
        return p->hour = take_digits(at, 2, 0);
    case 'm':
        return p->minute = take_digits(at, 2, 0);
    case 's':
        return p->second = take_digits(at, 2, 0);
    default:
        return *(*at)++ == letter ? 0 : -1;
    }
}

static int has_form(const char *text, const char *form, Parts *ret)
{
    for (; *form; form++)
        if (!*text || take_part(&text, *form, ret) < 0)
            return 0;
    return !*text;
}

int pen__http_date(const char *text, uint64_t *ret_unix_s)
{
    static const char *const forms[] = {"w, d b Y h:m:s GMT", "w, d-b-y h:m:s GMT",
                                        "w b d h:m:s Y"};
    Parts p = {0};
    int found = 0;
    for (size_t i = 0; !found && i < sizeof forms / sizeof *forms; i++)
        found = has_form(text, forms[i], &p);
    int64_t days = found ? days_since_1970(p.year, p.month, p.day) : -1;
    if (days < 0 || p.hour > 23 || p.minute > 59 || p.second > 60)
        return 0;
    *ret_unix_s = (uint64_t)(days * 86400 + p.hour * 3600 + p.minute * 60 + p.second);
    return 1;
}

/* ---- ISO 8601 -------------------------------------------------------------------------------- */

/* `n` digits at *at, which moves on; -1 when they are not there. */
static int digits(const char **at, int n)
{
    int v = 0;
    for (; n > 0; n--, (*at)++) {
        if (**at < '0' || **at > '9')
            return -1;
        v = v * 10 + (**at - '0');
    }
    return v;
}

static int take(const char **at, char c)
{
    if (**at != c)
        return 0;
    (*at)++;
    return 1;
}

/* Z, +hh:mm, +hhmm, -hh:mm or nothing, to the end of the text; 1 when it is that. */
static int read_offset(const char *at, int64_t *ret_s)
{
    *ret_s = 0;
    if (!*at || (*at == 'Z' && !at[1]))
        return 1;
    int sign = *at == '+' ? 1 : *at == '-' ? -1 : 0;
    if (!sign)
        return 0;
    at++;
    int hours = digits(&at, 2);
    (void)take(&at, ':');
    int minutes = hours < 0 ? -1 : digits(&at, 2);
    if (hours < 0 || hours > 23 || minutes < 0 || minutes > 59 || *at)
        return 0;
    *ret_s = sign * (hours * 3600 + minutes * 60);
    return 1;
}

/* Six numbers, in the places of a text that has this form; the rest of the text, NULL when it has
 * not. */
static const char *read_numbers(const char *text, int ret[6])
{
    static const char form[] = "4-2-2T2:2:2";
    int n = 0;
    for (const char *f = form; *f; f++) {
        if (*f != '2' && *f != '4') {
            if (*text != *f && !(*f == 'T' && *text == ' '))
                return NULL;
            text++;
            continue;
        }
        ret[n] = digits(&text, *f - '0');
        if (ret[n++] < 0)
            return NULL;
    }
    return text;
}

int pen__iso_date(const char *text, uint64_t *ret_unix_s)
{
    int v[6];
    int64_t offset_s;
    const char *at = read_numbers(text, v);
    if (!at)
        return 0;
    if (take(&at, '.')) {
        if (digits(&at, 1) < 0)
            return 0;
        while (*at >= '0' && *at <= '9')
            at++;
    }
    int64_t days = days_since_1970(v[0], v[1], v[2]);
    if (days < 0 || v[3] > 23 || v[4] > 59 || v[5] > 60 || !read_offset(at, &offset_s))
        return 0;
    int64_t s = days * 86400 + v[3] * 3600 + v[4] * 60 + v[5] - offset_s;
    if (s < 0)
        return 0;
    *ret_unix_s = (uint64_t)s;
    return 1;
}
