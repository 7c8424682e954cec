/* SPDX-License-Identifier: Apache-2.0 */
/* Values of options: numbers, sizes, shares, words, tasks, ranges. */
#include "arguments/args.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "output/messages.h"

/* Digits alone: no sign, no space, no 0x. Returns what follows them, or NULL. */
static const char *parse_digits(const char *s, uint64_t *ret)
{
    uint64_t n = 0;
    if (*s < '0' || *s > '9')
        return NULL;
    for (; *s >= '0' && *s <= '9'; s++)
        if (__builtin_mul_overflow(n, 10u, &n) ||
            __builtin_add_overflow(n, (uint64_t)(*s - '0'), &n))
            return NULL;
    *ret = n;
    return s;
}

static int bad_value(const CliOption *o, const char *text, const char *expected, PenError *reterr)
{
    return cli_fail(reterr, PEN_E_INVALID, "--%s %s: expected %s", o->name, text, expected);
}

static int bad_number(const CliOption *o, const char *text, const char *kind, PenError *reterr)
{
    char expected[128];
    if (o->max >= UINT64_MAX - 1)
        snprintf(expected, sizeof expected, "a %s, %" PRIu64 " or more", kind, o->min);
    else
        snprintf(expected, sizeof expected, "a %s from %" PRIu64 " to %" PRIu64, kind, o->min,
                 o->max);
    return bad_value(o, text, expected, reterr);
}

static int parse_number(const CliOption *o, const char *text, CliValue *ret, PenError *reterr)
{
    const char *end = parse_digits(text, &ret->number);
    if (!end || *end != '\0' || ret->number < o->min || ret->number > o->max)
        return bad_number(o, text, "whole number", reterr);
    return PEN_OK;
}

/* K and KiB are 1024, KB is 1000, as in dd. */
static int unit_find(const char *s, uint64_t *ret_factor)
{
    static const char letters[] = "KMGT";
    uint64_t binary = 1, decimal = 1;
    if (*s == '\0' || strcasecmp(s, "B") == 0) {
        *ret_factor = 1;
        return 0;
    }
    for (size_t i = 0; letters[i]; i++) {
        binary *= 1024;
        decimal *= 1000;
        if (strncasecmp(s, &letters[i], 1) != 0)
            continue;
        int is_decimal = strcasecmp(s + 1, "B") == 0;
        *ret_factor = is_decimal ? decimal : binary;
        return is_decimal || s[1] == '\0' || strcasecmp(s + 1, "iB") == 0 ? 0 : -1;
    }
    return -1;
}

static int parse_bytes(const CliOption *o, const char *text, CliValue *ret, PenError *reterr)
{
    uint64_t n, factor;
    const char *end = parse_digits(text, &n);
    if (!end || unit_find(end, &factor) != 0)
        return bad_value(o, text, "a size such as 512MiB, 1GiB, 256M or 1048576", reterr);
    if (__builtin_mul_overflow(n, factor, &n) || n < o->min || n > o->max)
        return bad_number(o, text, "size", reterr);
    ret->number = n;
    return PEN_OK;
}

static int parse_share(const CliOption *o, const char *text, CliValue *ret, PenError *reterr)
{
    char *end = NULL;
    int plain = text[0] != '\0' && strspn(text, "0123456789.eE-") == strlen(text);
    ret->real = plain ? strtod(text, &end) : -1;
    if (!plain || *end != '\0' || !(ret->real >= 0 && ret->real <= 1) ||
        (o->min > 0 && !(ret->real > 0)))
        return bad_value(
            o, text, o->min > 0 ? "a number above 0, at most 1" : "a number from 0 to 1", reterr);
    return PEN_OK;
}

static int parse_real(const CliOption *o, const char *text, CliValue *ret, PenError *reterr)
{
    char *end = NULL;
    int plain = text[0] != '\0' && strspn(text, "0123456789.eE-+") == strlen(text);
    ret->real = plain ? strtod(text, &end) : -1;
    if (!plain || *end != '\0' || !(ret->real >= (double)o->min && ret->real <= (double)o->max))
        return bad_number(o, text, "number", reterr);
    return PEN_OK;
}

static int parse_rate(const CliOption *o, const char *text, CliValue *ret, PenError *reterr)
{
    char *end = NULL, right[64];
    int plain = strspn(text, "0123456789.") == strlen(text);
    ret->real = plain ? strtod(text, &end) : -1;
    if (plain && *end == '\0' && ret->real >= 0.001 && ret->real <= (double)o->max)
        return PEN_OK;
    snprintf(right, sizeof right, "a number from 0.001 to %llu", (unsigned long long)o->max);
    return bad_value(o, text, right, reterr);
}

static int parse_choice(const CliOption *o, const char *text, CliValue *ret, PenError *reterr)
{
    int number = cli_choice_find(o->choices, text);
    if (number < 0 && o->removed && strcmp(text, o->removed) == 0)
        return cli_fail(reterr, PEN_E_INVALID, "--%s %s: %s", o->name, text, o->instead);
    if (number < 0) {
        char list[128], buf[32];
        cli_choice_list(o->choices, UINT32_MAX, list, sizeof list);
        const char *near = cli_choice_near(o->choices, text, buf, sizeof buf);
        return cli_fail(reterr, PEN_E_INVALID, "--%s %s: expected %s%s%s%s", o->name, text, list,
                        near ? "; did you mean " : "", near ? near : "", near ? "?" : "");
    }
    ret->number = (uint64_t)number;
    return PEN_OK;
}

static int parse_task(const CliOption *o, const char *text, CliValue *ret, PenError *reterr)
{
    const char *s = parse_digits(text, &ret->number);
    s = s && *s == '/' ? parse_digits(s + 1, &ret->second) : NULL;
    if (!s || *s != '\0' || ret->number >= ret->second || ret->second > o->max)
        return bad_value(o, text,
                         "I/N, part I of N, with I from 0 to N-1 (0/3, 1/3, 2/3 for three parts)",
                         reterr);
    return PEN_OK;
}

static int parse_range(const CliOption *o, const char *text, CliValue *ret, PenError *reterr)
{
    const char *s = parse_digits(text, &ret->number);
    ret->second = ret->number;
    if (s && *s == '-')
        s = parse_digits(s + 1, &ret->second);
    if (!s || *s != '\0' || ret->second < ret->number || ret->second > o->max)
        return bad_value(o, text, "the index of a sample, or a range such as 5-9", reterr);
    return PEN_OK;
}

int cli_value_parse(const CliOption *option, const char *text, CliValue *ret, PenError *reterr)
{
    ret->text = text;
    if (text[0] == '\0' && option->kind != CLI_ARG_FLAG)
        return cli_fail(reterr, PEN_E_INVALID, "--%s has an empty value", option->name);
    switch (option->kind) {
    case CLI_ARG_NUMBER:
        return parse_number(option, text, ret, reterr);
    case CLI_ARG_BYTES:
        return parse_bytes(option, text, ret, reterr);
    case CLI_ARG_SHARE:
        return parse_share(option, text, ret, reterr);
    case CLI_ARG_REAL:
        return parse_real(option, text, ret, reterr);
    case CLI_ARG_RATE:
        return parse_rate(option, text, ret, reterr);
    case CLI_ARG_CHOICE:
        return parse_choice(option, text, ret, reterr);
    case CLI_ARG_TASK:
        return parse_task(option, text, ret, reterr);
    case CLI_ARG_RANGE:
        return parse_range(option, text, ret, reterr);
    case CLI_ARG_FLAG:
    case CLI_ARG_TEXT:
        break;
    }
    return PEN_OK;
}
