/* SPDX-License-Identifier: Apache-2.0 */
#include "net/address/uri.h"

#include <stdbool.h>
#include <string.h>

#include "base/bytes.h"

static bool is_plain(unsigned char c)
{
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '.' || c == '_' || c == '~';
}

int pen__uri_encode(PenBuf *to, const char *text, size_t bytes, int keep_slash)
{
    static const char hex[] = "0123456789ABCDEF";
    uint64_t encoded_bytes;
    if (!bytes)
        return PEN_OK;
    if (pen__mul_over(bytes, 3, &encoded_bytes) || encoded_bytes > SIZE_MAX / 4)
        return PEN_E_NO_MEMORY;
    int r = pen__buf_reserve(to, (size_t)encoded_bytes);
    if (r < 0)
        return r;
    uint8_t *at = to->data + to->bytes;
    for (size_t i = 0; i < bytes; i++) {
        unsigned char c = (unsigned char)text[i];
        if (is_plain(c) || (c == '/' && keep_slash)) {
            *at++ = c;
        } else {
            *at++ = '%';
            *at++ = (uint8_t)hex[c >> 4];
            *at++ = (uint8_t)hex[c & 15];
        }
    }
    to->bytes = (size_t)(at - to->data);
    return PEN_OK;
}

static bool is_escape(const char *s, size_t bytes)
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
        else if (c && (is_plain((unsigned char)c) || strchr("!$&'()*+,;=:@/%", c)))
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
