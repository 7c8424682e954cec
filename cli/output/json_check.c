/* SPDX-License-Identifier: Apache-2.0 */
/* Checks that a text is JSON, so that texts found in packs can be put into JSON output as they are.
 */
#include "output/text.h"

#include <ctype.h>
#include <string.h>

enum { MAX_DEPTH = 64 };

static const char *skip_space(const char *s)
{
    return s + strspn(s, " \t\r\n");
}

static const char *skip_string(const char *s)
{
    for (s++; *s != '"'; s++) {
        if ((unsigned char)*s < 0x20)
            return NULL; /* the end of the text, too */
        if (*s != '\\')
            continue;
        s++;
        if (*s == 'u') {
            if (strspn(s + 1, "0123456789abcdefABCDEF") < 4)
                return NULL;
            s += 4;
        } else if (*s == '\0' || !strchr("\"\\/bfnrt", *s)) {
            return NULL;
        }
    }
    return s + 1;
}

static const char *skip_digits(const char *s)
{
    size_t n = strspn(s, "0123456789");
    return n > 0 ? s + n : NULL;
}

static const char *skip_number(const char *s)
{
    s += *s == '-';
    if (*s == '0' && isdigit((unsigned char)s[1]))
        return NULL;
    s = skip_digits(s);
    if (s && *s == '.')
        s = skip_digits(s + 1);
    if (s && (*s == 'e' || *s == 'E')) {
        s++;
        s = skip_digits(s + (*s == '+' || *s == '-'));
    }
    return s;
}

static const char *skip_value(const char *s, int depth);

static const char *skip_member(const char *s, int depth, int is_object)
{
    s = skip_space(s);
    if (is_object) {
        s = *s == '"' ? skip_string(s) : NULL;
        s = s ? skip_space(s) : NULL;
        if (!s || *s != ':')
            return NULL;
        s++;
    }
    return skip_value(s, depth);
}

static const char *skip_members(const char *s, int depth, char close)
{
    s = skip_space(s + 1);
    if (*s == close)
        return s + 1;
    for (;;) {
        s = skip_member(s, depth, close == '}');
        if (!s)
            return NULL;
        s = skip_space(s);
        if (*s == close)
            return s + 1;
        if (*s++ != ',')
            return NULL;
    }
}

static const char *skip_word(const char *s)
{
    static const char *const words[] = {"true", "false", "null"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strncmp(s, words[i], strlen(words[i])) == 0)
            return s + strlen(words[i]);
    return NULL;
}

static const char *skip_value(const char *s, int depth)
{
    s = skip_space(s);
    if (depth >= MAX_DEPTH)
        return NULL;
    if (*s == '{')
        return skip_members(s, depth + 1, '}');
    if (*s == '[')
        return skip_members(s, depth + 1, ']');
    if (*s == '"')
        return skip_string(s);
    return *s == '-' || isdigit((unsigned char)*s) ? skip_number(s) : skip_word(s);
}

int cli_json_valid(const char *s)
{
    const char *end = cli_utf8_valid(s, strlen(s)) ? skip_value(s, 0) : NULL;
    return end && *skip_space(end) == '\0';
}
