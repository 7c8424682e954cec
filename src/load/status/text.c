/* SPDX-License-Identifier: Apache-2.0 */
#include "load/status/text.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/crc32c.h"

#define HEAD "penstock-loader 1\n"
#define PACK "pack"
#define END "end "

enum { END_BYTES = sizeof END - 1 + 8 + 1 };

typedef struct Number {
    const char *name;
    size_t offset, bytes;
} Number;

#define NUMBER(member)                                                                             \
    {                                                                                              \
#member, offsetof(PenLoadStatus, member), sizeof((PenLoadStatus *)0)->member               \
    }
#define STAT(name, member)                                                                         \
    {                                                                                              \
        name, offsetof(PenLoadStatus, stats.member), sizeof((PenLoadStatus *)0)->stats.member      \
    }

/* Whole numbers alone: how others are written depends on the locale. */
static const Number numbers[] = {
    NUMBER(process),
    NUMBER(rank),
    NUMBER(world),
    NUMBER(epoch),
    NUMBER(batch),
    NUMBER(batches),
    NUMBER(clock_ns),
    NUMBER(memory_limit_bytes),
    NUMBER(requests_in_flight),
    NUMBER(cache_hits),
    NUMBER(cache_misses),
    STAT("threads", threads),
    STAT("io_threads", io_threads),
    STAT("io_threads_wanted", io_threads_wanted),
    STAT("node_ranks", node_ranks),
    STAT("slots_limit", slots_limit),
    STAT("slots_ready", slots_ready),
    STAT("slots_leased", slots_leased),
    STAT("samples_ready", samples_ready),
    STAT("memory_bytes", memory_bytes),
    STAT("batches_delivered", batches),
    STAT("samples", samples),
    STAT("bytes_read", bytes_read),
    STAT("elapsed_ns", ns_elapsed),
    STAT("wait_ns", ns_wait),
    STAT("fetch_ns", stage_ns[PEN_LOAD_STAGE_FETCH]),
    STAT("read_ns", stage_ns[PEN_LOAD_STAGE_READ]),
    STAT("verify_ns", stage_ns[PEN_LOAD_STAGE_VERIFY]),
    STAT("decode_ns", stage_ns[PEN_LOAD_STAGE_DECODE]),
    STAT("resample_ns", stage_ns[PEN_LOAD_STAGE_RESAMPLE]),
    STAT("store_ns", stage_ns[PEN_LOAD_STAGE_STORE]),
    STAT("fetch_idle_ns", ns_fetch_idle),
    STAT("read_idle_ns", ns_read_idle),
    STAT("decode_idle_ns", ns_decode_idle),
    STAT("memory_wait_ns", ns_memory_wait),
};

enum { N_NUMBERS = sizeof numbers / sizeof *numbers, NAME_BYTES = 24, DIGITS = 20 };

/* The longest text fits. */
_Static_assert(sizeof HEAD + N_NUMBERS * (NAME_BYTES + 1 + DIGITS + 1) + sizeof PACK +
                       PEN_STATUS_PACK_BYTES + END_BYTES <
                   PEN_STATUS_BYTES,
               "the text of a status can be too long");

/* ---- writing ---- */

static uint64_t get(const PenLoadStatus *s, const Number *n)
{
    uint32_t small;
    uint64_t large;
    const char *at = (const char *)s + n->offset;
    memcpy(&small, at, sizeof small);
    memcpy(&large, at, n->bytes == sizeof large ? sizeof large : sizeof small);
    return n->bytes == sizeof large ? large : small;
}

void pen__status_set_pack(PenLoadStatus *s, const char *path)
{
    size_t n = strlen(path), most = sizeof s->pack - 1;
    snprintf(s->pack, sizeof s->pack, "%s", n > most ? path + n - most : path);
    for (char *c = s->pack; *c; c++)
        if ((unsigned char)*c < ' ' || *c == 0x7f)
            *c = '?';
}

void pen__status_write(const PenLoadStatus *s, char ret[PEN_STATUS_BYTES])
{
    memset(ret, 0, PEN_STATUS_BYTES);
    size_t n = (size_t)snprintf(ret, PEN_STATUS_BYTES, HEAD);
    for (int i = 0; i < N_NUMBERS; i++)
        n += (size_t)snprintf(ret + n, PEN_STATUS_BYTES - n, "%s %" PRIu64 "\n", numbers[i].name,
                              get(s, &numbers[i]));
    n += (size_t)snprintf(ret + n, PEN_STATUS_BYTES - n, PACK " %s\n", s->pack);
    snprintf(ret + n, PEN_STATUS_BYTES - n, END "%08" PRIx32 "\n", pen__crc32c(0, ret, n));
}

/* ---- reading ---- */

static void set(PenLoadStatus *s, const Number *n, uint64_t value)
{
    uint32_t small = (uint32_t)value;
    char *at = (char *)s + n->offset;
    memcpy(at, n->bytes == sizeof value ? (const void *)&value : &small, n->bytes);
}

/* Length of the text before its end line, if its checksum is right; otherwise 0. */
static size_t checked_bytes(const char text[PEN_STATUS_BYTES])
{
    char end[END_BYTES + 1];
    size_t n = strnlen(text, PEN_STATUS_BYTES);
    if (n <= END_BYTES)
        return 0;
    n -= END_BYTES;
    snprintf(end, sizeof end, END "%08" PRIx32 "\n", pen__crc32c(0, text, n));
    return text[n - 1] == '\n' && memcmp(text + n, end, END_BYTES) == 0 ? n : 0;
}

/* At most 20 digits; more than fits into 64 bits is no number. */
static bool parse_number(const char *text, size_t bytes, uint64_t *ret)
{
    uint64_t value = 0;
    for (size_t i = 0; i < bytes; i++) {
        unsigned digit = (unsigned)(text[i] - '0');
        if (digit > 9 || __builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, digit, &value))
            return false;
    }
    *ret = value;
    return bytes > 0;
}

/* One line, without its end. */
static bool read_line(const char *line, size_t bytes, PenLoadStatus *s)
{
    uint64_t value;
    const char *space = memchr(line, ' ', bytes);
    if (!space)
        return false;
    size_t name = (size_t)(space - line), rest = bytes - name - 1;
    if (name == sizeof PACK - 1 && memcmp(line, PACK, name) == 0) {
        if (rest >= sizeof s->pack)
            return false;
        memcpy(s->pack, space + 1, rest);
        s->pack[rest] = 0;
        return true;
    }
    for (int i = 0; i < N_NUMBERS; i++)
        if (strlen(numbers[i].name) == name && memcmp(line, numbers[i].name, name) == 0) {
            if (!parse_number(space + 1, rest, &value))
                return false;
            set(s, &numbers[i], value);
        }
    return true;
}

bool pen__status_read(const char text[PEN_STATUS_BYTES], PenLoadStatus *ret)
{
    PenLoadStatus s = {0};
    size_t n = checked_bytes(text), at = sizeof HEAD - 1;
    if (n < at || memcmp(text, HEAD, at) != 0)
        return false;
    while (at < n) {
        size_t bytes = (size_t)((const char *)memchr(text + at, '\n', n - at) - (text + at));
        if (!read_line(text + at, bytes, &s))
            return false;
        at += bytes + 1;
    }
    *ret = s;
    return true;
}
