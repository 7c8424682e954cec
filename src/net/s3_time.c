/* SPDX-License-Identifier: Apache-2.0 */
/* Times as S3, STS and metadata services write them. */
#include "net/s3_answer.h"

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

static int is_leap(int year)
{
    return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
}

int64_t pen__days_since_1970(int year, int month, int day)
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

int pen__s3_time(const char *text, uint64_t *ret_unix_s)
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
    int64_t days = pen__days_since_1970(v[0], v[1], v[2]);
    if (days < 0 || v[3] > 23 || v[4] > 59 || v[5] > 60 || !read_offset(at, &offset_s))
        return 0;
    int64_t s = days * 86400 + v[3] * 3600 + v[4] * 60 + v[5] - offset_s;
    if (s < 0)
        return 0;
    *ret_unix_s = (uint64_t)s;
    return 1;
}
