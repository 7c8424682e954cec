/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "ingest/video/nal.h"

/* The first start code (0, 0, 1) from `at` on; `bytes` if there is none. */
static size_t find_start(const uint8_t *data, size_t bytes, size_t at)
{
    while (at + 3 <= bytes) {
        const uint8_t *one = memchr(data + at + 2, 1, bytes - at - 2);
        if (!one)
            break;
        at = (size_t)(one - data) - 2;
        if (!data[at] && !data[at + 1])
            return at;
        at++;
    }
    return bytes;
}

PenNal pen__nal_next(const uint8_t *data, size_t bytes, size_t *at, unsigned length_bytes)
{
    PenNal none = {0};
    if (!length_bytes) {
        size_t start = find_start(data, bytes, *at);
        if (bytes - start <= 3)
            return none;
        *at = find_start(data, bytes, start + 3);
        return (PenNal){data + start + 3, *at - start - 3};
    }
    if (bytes - *at < length_bytes)
        return none;
    uint32_t n = 0;
    for (unsigned i = 0; i < length_bytes; i++)
        n = n << 8 | data[*at + i];
    *at += length_bytes;
    if (n > bytes - *at)
        n = (uint32_t)(bytes - *at); /* as ffmpeg does */
    PenNal nal = {data + *at, n};
    *at += n;
    return nal;
}
