/* SPDX-License-Identifier: Apache-2.0 */
#include "net/address/parts.h"

#include <arpa/inet.h>
#include <string.h>

#include <penstock/error.h>

#include "base/bytes.h"
#include "net/address/address.h"

static int is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static int is_alnum(char c)
{
    return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* The length of the character that begins at `s`, 0 when it is none or a control character. */
static size_t clean_at(const uint8_t *s, size_t bytes)
{
    static const uint32_t least[] = {0, 0, 0xA0, 0x800, 0x10000};
    if (*s < 0x80)
        return *s >= 0x20 && *s != 0x7F;
    size_t n = *s >= 0xF0 ? 4 : *s >= 0xE0 ? 3 : 2;
    if (*s < 0xC2 || *s > 0xF4 || n > bytes)
        return 0;
    uint32_t c = *s & (0x7Fu >> n);
    for (size_t i = 1; i < n; i++) {
        if ((s[i] & 0xC0) != 0x80)
            return 0;
        c = c << 6 | (s[i] & 0x3F);
    }
    return c < least[n] || c > 0x10FFFF || (c >= 0xD800 && c <= 0xDFFF) ? 0 : n;
}

int pen__text_is_clean(const char *text, size_t bytes)
{
    const uint8_t *s = (const uint8_t *)text, *end = s + bytes;
    while (s < end) {
        size_t n = clean_at(s, (size_t)(end - s));
        if (!n)
            return 0;
        s += n;
    }
    return 1;
}

int pen__text_has_dots(const char *text, size_t bytes)
{
    size_t dots = 0, others = 0;
    for (size_t i = 0; i <= bytes; i++) {
        if (i < bytes && text[i] != '/') {
            *(text[i] == '.' ? &dots : &others) += 1;
            continue;
        }
        if (!others && (dots == 1 || dots == 2))
            return 1;
        dots = others = 0;
    }
    return 0;
}

int pen__text_is_ipv4(const char *text, size_t bytes)
{
    char copy[16];
    struct in_addr a;
    if (bytes >= sizeof copy)
        return 0;
    memcpy(copy, text, bytes);
    copy[bytes] = 0;
    return inet_pton(AF_INET, copy, &a) == 1;
}

int pen__text_is_bucket(const char *text, size_t bytes)
{
    if (bytes < 3 || bytes > 63 || !is_alnum(text[0]) || !is_alnum(text[bytes - 1]))
        return 0;
    for (size_t i = 0; i < bytes; i++) {
        if (!is_alnum(text[i]) && text[i] != '.' && text[i] != '-' && text[i] != '_')
            return 0;
        if (text[i] == '.' && text[i + 1] == '.')
            return 0;
    }
    return !pen__text_is_ipv4(text, bytes);
}

/* What a resolver could take for a number, and with it the whole for an address: 0x7f.1, 127.1 */
static int is_number(const char *label, size_t bytes)
{
    if (bytes > 1 && label[0] == '0' && (label[1] | 32) == 'x')
        return 1;
    size_t n = 0;
    while (n < bytes && is_digit(label[n]))
        n++;
    return n == bytes;
}

int pen__text_is_host(const char *text, size_t bytes)
{
    size_t label = 0;
    if (!bytes || bytes > 253)
        return 0;
    for (size_t i = 0; i <= bytes; i++) {
        if (i < bytes && text[i] != '.') {
            if (!is_alnum(text[i]) && text[i] != '-' && text[i] != '_')
                return 0;
            continue;
        }
        if (i == label || i - label > 63)
            return 0;
        if (i < bytes)
            label = i + 1;
    }
    return !is_number(text + label, bytes - label) || pen__text_is_ipv4(text, bytes);
}

static int is_escape(const char *s, size_t bytes)
{
    return bytes >= 3 && *s == '%' && pen__hex_value(s[1]) >= 0 && pen__hex_value(s[2]) >= 0;
}

int pen__path_clean(PenBuf *to, const char *path, size_t bytes)
{
    size_t before = to->bytes;
    int r = PEN_OK;
    for (size_t i = 0; i < bytes && r == PEN_OK; i++) {
        char c = path[i];
        if (c == '%' && !is_escape(path + i, bytes - i))
            r = PEN_E_INVALID;
        else if (c && (is_alnum(c) || strchr("-._~!$&'()*+,;=:@/%", c)))
            r = pen__buf_add(to, &c, 1);
        else
            r = pen__uri_encode(to, &c, 1, 0);
    }
    if (r < 0)
        to->bytes = before;
    return r;
}

int pen__path_decode(PenBuf *to, const char *path, size_t bytes)
{
    int r = pen__buf_reserve(to, bytes);
    if (r < 0)
        return r;
    for (size_t i = 0; i < bytes; i++) {
        uint8_t c = (uint8_t)path[i];
        if (is_escape(path + i, bytes - i)) {
            c = (uint8_t)(pen__hex_value(path[i + 1]) << 4 | pen__hex_value(path[i + 2]));
            i += 2;
        }
        to->data[to->bytes++] = c;
    }
    return PEN_OK;
}
