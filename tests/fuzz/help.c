/* SPDX-License-Identifier: Apache-2.0 */
#include "help.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"

#ifdef __has_feature
#if __has_feature(memory_sanitizer)
#include <sanitizer/msan_interface.h>
#define HAS_MSAN
#endif
#endif

_Noreturn void require_failed(const char *file, int line, const char *condition,
                              const PenError *error)
{
    fprintf(stderr, "%s:%d: does not hold: %s\n", file, line, condition);
    if (error)
        fprintf(stderr, "%d %s: %s\n", error->status, error->where, error->message);
    abort();
}

int checked(int r, const PenError *err, const char *file, int line, const char *call)
{
    bool fine = r < 0 ? err->status == r && err->where[0] && err->message[0] : !err->status;
    if (!fine)
        require_failed(file, line, call, err);
    return r;
}

void require_written(const void *data, size_t bytes)
{
#ifdef HAS_MSAN
    __msan_check_mem_is_initialized(data, bytes);
#else
    (void)data;
    (void)bytes;
#endif
}

void *copy_of(const void *data, size_t bytes)
{
    void *p = malloc(bytes);
    REQUIRE(p || !bytes);
    if (bytes)
        memcpy(p, data, bytes);
    return p;
}

const uint8_t *take_bytes(Input *in, size_t bytes, size_t *ret_bytes)
{
    const uint8_t *p = in->data;
    *ret_bytes = bytes < in->bytes ? bytes : in->bytes;
    in->data += *ret_bytes;
    in->bytes -= *ret_bytes;
    return p;
}

uint8_t take_byte(Input *in)
{
    size_t n;
    const uint8_t *p = take_bytes(in, 1, &n);
    return n ? *p : 0;
}

uint32_t take_below(Input *in, uint32_t end)
{
    uint32_t v = take_byte(in);
    if (end > 256)
        v |= (uint32_t)take_byte(in) << 8;
    return v % end;
}

uint32_t roll(Dice *dice, size_t end)
{
    /* splitmix64 */
    uint64_t z = dice->state += 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    z ^= z >> 31;
    return end ? (uint32_t)(z % end) : 0;
}

void put_awkward(Dice *dice, uint8_t *data, size_t bytes)
{
    static const uint64_t values[] = {
        0,          1,          2,          0x7F,       0x80,       0xFF,
        0xFFFF,     0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0xFFFFFFFE, 1ull << 31,
        1ull << 32, 1ull << 63, UINT64_MAX, 4096,       65536,      UINT64_MAX / 2};
    size_t width = (size_t)1 << roll(dice, 4);
    if (bytes < width)
        return;
    size_t at = roll(dice, bytes - width + 1);
    if (roll(dice, 4))
        at -= at % width; /* most fields are aligned */
    uint64_t old = 0;
    memcpy(&old, data + at, width);
    uint64_t v = values[roll(dice, sizeof values / sizeof *values)];
    switch (roll(dice, 4)) {
    case 0:
        v = old + 1 + roll(dice, 1 + roll(dice, 16));
        break;
    case 1:
        v = old - 1 - roll(dice, 1 + roll(dice, 16));
        break;
    case 2:
        v = (uint64_t)1 << roll(dice, 64) ^ old;
        break;
    default:
        break;
    }
    memcpy(data + at, &v, width);
}

uint32_t crc32_of(const uint8_t *data, size_t bytes)
{
    uint32_t crc = 0xFFFFFFFF;
    for (size_t i = 0; i < bytes; i++) {
        crc ^= data[i];
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? 0xEDB88320 : 0);
    }
    return ~crc;
}
