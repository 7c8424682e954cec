/* SPDX-License-Identifier: Apache-2.0 */
#include "output/text.h"

#include <inttypes.h>
#include <string.h>

#include <penstock/loader.h>

static size_t utf8_expected(uint8_t first)
{
    if (first < 0x80)
        return 1;
    if (first >= 0xC2 && first <= 0xDF)
        return 2;
    if (first >= 0xE0 && first <= 0xEF)
        return 3;
    return first >= 0xF0 && first <= 0xF4 ? 4 : 0;
}

size_t cli_utf8_length(const uint8_t *s, size_t bytes)
{
    size_t n = bytes > 0 ? utf8_expected(s[0]) : 0;
    if (n == 0 || n > bytes)
        return 0;
    for (size_t i = 1; i < n; i++)
        if ((s[i] & 0xC0) != 0x80)
            return 0;
    /* Overlong forms, surrogates, and values above U+10FFFF. */
    if ((s[0] == 0xE0 && s[1] < 0xA0) || (s[0] == 0xED && s[1] > 0x9F) ||
        (s[0] == 0xF0 && s[1] < 0x90) || (s[0] == 0xF4 && s[1] > 0x8F))
        return 0;
    return n;
}

int cli_utf8_valid(const void *s, size_t bytes)
{
    const uint8_t *p = s;
    for (size_t i = 0; i < bytes;) {
        size_t n = cli_utf8_length(p + i, bytes - i);
        if (n == 0)
            return 0;
        i += n;
    }
    return 1;
}

/* C0 and C1 controls and DEL: a terminal may act on them. */
static int is_control(const uint8_t *s, size_t n)
{
    return s[0] < 0x20 || s[0] == 0x7F || (n == 2 && s[0] == 0xC2 && s[1] < 0xA0);
}

static void put_escaped(FILE *to, const uint8_t *s, size_t n)
{
    for (size_t i = 0; i < n; i++)
        fprintf(to, "\\x%02x", s[i]);
}

static void put_text(FILE *to, const void *s, size_t bytes, int backslash)
{
    const uint8_t *p = s;
    for (size_t i = 0; i < bytes;) {
        size_t n = cli_utf8_length(p + i, bytes - i);
        if (n == 0)
            put_escaped(to, p + i, n = 1);
        else if (is_control(p + i, n))
            put_escaped(to, p + i, n);
        else if (backslash && p[i] == '\\')
            fputs("\\\\", to);
        else
            fwrite(p + i, 1, n, to);
        i += n;
    }
}

void cli_text_print(FILE *to, const void *s, size_t bytes)
{
    put_text(to, s, bytes, 0);
}

void cli_text_tsv(FILE *to, const void *s, size_t bytes)
{
    put_text(to, s, bytes, 1);
}

void cli_text_json(FILE *to, const void *s, size_t bytes)
{
    const uint8_t *p = s;
    int utf8 = cli_utf8_valid(s, bytes);
    fputc('"', to);
    for (size_t i = 0; i < bytes; i++) {
        if (p[i] == '"' || p[i] == '\\')
            fprintf(to, "\\%c", p[i]);
        else if (p[i] < 0x20 || p[i] == 0x7F || (p[i] > 0x7F && !utf8))
            fprintf(to, "\\u%04x", p[i]);
        else
            fputc(p[i], to);
    }
    fputc('"', to);
}

const char *cli_text_number(int64_t number, char buf[CLI_NUMBER_TEXT])
{
    char digits[24];
    uint64_t size = number < 0 ? 0 - (uint64_t)number : (uint64_t)number;
    int n = snprintf(digits, sizeof digits, "%" PRIu64, size);
    char *to = buf;
    if (number < 0)
        *to++ = '-';
    for (int i = 0; i < n; i++) {
        if (i > 0 && (n - i) % 3 == 0)
            *to++ = ',';
        *to++ = digits[i];
    }
    *to = '\0';
    return buf;
}

const char *cli_text_count(uint64_t n, const char *noun, char buf[CLI_NUMBER_TEXT])
{
    cli_text_number((int64_t)n, buf);
    size_t used = strlen(buf);
    snprintf(buf + used, CLI_NUMBER_TEXT - used, " %s%s", noun, n == 1 ? "" : "s");
    return buf;
}

const char *cli_text_size(double bytes, char buf[CLI_NUMBER_TEXT])
{
    static const char units[][4] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    size_t u = 0;
    while ((bytes >= 1023.95 || bytes <= -1023.95) && u + 1 < sizeof units / sizeof *units) {
        bytes /= 1024;
        u++;
    }
    snprintf(buf, CLI_NUMBER_TEXT, "%.*f %s", u == 0 ? 0 : 1, bytes, units[u]);
    return buf;
}

const char *cli_text_time(double seconds, char buf[CLI_NUMBER_TEXT])
{
    const double most = 3.6e9; /* a million hours */
    uint64_t whole = seconds < most ? (uint64_t)seconds : (uint64_t)most;
    if (seconds < 9.95)
        snprintf(buf, CLI_NUMBER_TEXT, "%.*f s", seconds < 0.995 ? 2 : 1, seconds);
    else if (seconds < 119.5)
        snprintf(buf, CLI_NUMBER_TEXT, "%.0f s", seconds);
    else if (whole < 7200)
        snprintf(buf, CLI_NUMBER_TEXT, "%u min %02u s", (unsigned)(whole / 60),
                 (unsigned)(whole % 60));
    else
        snprintf(buf, CLI_NUMBER_TEXT, "%u h %02u min", (unsigned)(whole / 3600),
                 (unsigned)(whole % 3600 / 60));
    return buf;
}

const char *cli_text_fetch_unit(uint32_t unit)
{
    switch (unit) {
    case PEN_FETCH_BLOCKS:
        return "blocks";
    case PEN_FETCH_RUNS:
        return "runs";
    case PEN_FETCH_SAMPLES:
        return "samples";
    default:
        return "none";
    }
}

size_t cli_text_words(FILE *to, const char *text, size_t column, size_t indent)
{
    int first = 1;
    while (*text) {
        size_t n = strcspn(text, " \n");
        if (*text == '\n' || (!first && column + 1 + n > CLI_TEXT_COLUMNS)) {
            fprintf(to, "\n%*s", (int)indent, "");
            column = indent;
            first = 1;
        }
        if (*text == '\n') {
            text++;
            continue;
        }
        if (n > 0) {
            column += (size_t)fprintf(to, "%s%.*s", first ? "" : " ", (int)n, text);
            first = 0;
        }
        text += n;
        text += *text == ' ';
    }
    return column;
}
