/* SPDX-License-Identifier: Apache-2.0 */
/* Dates of HTTP. libcurl can read them, too, but not when it is built with --disable-dateparse. */
#include <string.h>

#include "net/http_date.h"
#include "net/s3_answer.h"

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
    int64_t days = found ? pen__days_since_1970(p.year, p.month, p.day) : -1;
    if (days < 0 || p.hour > 23 || p.minute > 59 || p.second > 60)
        return 0;
    *ret_unix_s = (uint64_t)(days * 86400 + p.hour * 3600 + p.minute * 60 + p.second);
    return 1;
}
