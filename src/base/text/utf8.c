/* SPDX-License-Identifier: Apache-2.0 */
#include "base/text/utf8.h"

#include <stdint.h>
#include <string.h>

/* Bytes of the character at p, 0 when it is none; `left` > 0. Refuses overlong forms, surrogates
 * and what is beyond U+10FFFF, by the range of the second byte (Unicode, table 3-7). */
static size_t utf8_step(const uint8_t *p, size_t left)
{
    if (p[0] < 0x80)
        return 1;
    size_t n = p[0] >= 0xc2 && p[0] <= 0xdf ? 2 : (p[0] & 0xf0) == 0xe0 ? 3 : 4;
    if (p[0] < 0xc2 || p[0] > 0xf4 || n > left)
        return 0;
    uint8_t low = p[0] == 0xe0 ? 0xa0 : p[0] == 0xf0 ? 0x90 : 0x80;
    uint8_t high = p[0] == 0xed ? 0x9f : p[0] == 0xf4 ? 0x8f : 0xbf;
    if (p[1] < low || p[1] > high)
        return 0;
    for (size_t i = 2; i < n; i++)
        if ((p[i] & 0xc0) != 0x80)
            return 0;
    return n;
}

/* ASCII at the beginning, in steps of eight bytes. */
static size_t ascii_bytes(const uint8_t *p, size_t bytes)
{
    size_t n = 0;
    for (uint64_t word; bytes - n >= sizeof word; n += sizeof word) {
        memcpy(&word, p + n, sizeof word);
        if (word & UINT64_C(0x8080808080808080))
            break;
    }
    return n;
}

bool pen__text_is_utf8(const void *text, size_t bytes)
{
    const uint8_t *p = text;
    while (bytes) {
        size_t n = ascii_bytes(p, bytes);
        if (!n)
            n = utf8_step(p, bytes);
        if (!n)
            return false;
        p += n;
        bytes -= n;
    }
    return true;
}
