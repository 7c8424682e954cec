/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/arguments.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/attr.h"
#include "base/error.h"
#include "ops/language/near.h"

#define WHERE "sim/arguments"

enum { MAX_RANKS = 1 << 20 };

typedef enum Kind {
    TEXT,
    NUMBER, /* uint32_t */
    COUNT,  /* uint64_t: 1000000, 1e6 */
    BYTES,  /* uint64_t: 512MiB */
    REAL,   /* double */
    MB,     /* uint64_t: bytes per second, from MB/s */
    GBIT    /* the same, from Gbit/s */
} Kind;

typedef struct Key {
    const char *name, *initial; /* initial: the default; NULL: none */
    Kind kind;
    size_t at; /* in the settings */
    double min, max;
    const char *help;
} Key;

#define AT(member) offsetof(PenSimSettings, member)
#define COUNT_MAX 0x1p48
#define BYTES_MAX 1e18
#define MS_MAX 3600e3
#define S_MAX 1e6

static const Key KEYS[] = {
    {"pack", NULL, TEXT, AT(pack), 0, 0, "path or URL of the pack; the numbers below, without it"},
    {"samples", "0", COUNT, AT(n_samples), 0, COUNT_MAX, "number of samples, as in 1e9"},
    {"sample_bytes", "0", BYTES, AT(sample_bytes), 0, 0x1p40, "size of a sample"},
    {"block_samples", "32", NUMBER, AT(block_samples), 1, 0x1p20, "samples per block"},
    {"shard_bytes", "512MiB", BYTES, AT(shard_bytes), 1, BYTES_MAX, "size of a shard"},

    {"nodes", "1", NUMBER, AT(nodes), 1, 0x1p16, "machines"},
    {"ranks", "8", NUMBER, AT(ranks), 1, MAX_RANKS, "training processes per machine"},
    {"batch", "256", NUMBER, AT(batch), 1, 0x1p20, "samples per batch of a rank"},
    {"step_ms", "100", REAL, AT(step_ms), 0, MS_MAX, "milliseconds of a training step"},
    {"decode_ms", "0", REAL, AT(decode_ms), 0, MS_MAX, "milliseconds to decode a batch"},
    {"epoch", "0", NUMBER, AT(epoch), 0, UINT32_MAX,
     "epoch to simulate; a cache has an effect from 1 on"},
    {"spread", "0", REAL, AT(spread_s), 0, S_MAX, "seconds within which the ranks start"},
    {"opened", "0", NUMBER, AT(opened), 0, 1, "1: start the clock when the manifest has been read"},

    {"memory", "2GiB", BYTES, AT(memory_bytes), 0, BYTES_MAX, "of the loader of a rank"},
    {"batch_bytes", "0", BYTES, AT(batch_bytes), 0, BYTES_MAX,
     "tensors of a batch, part of memory; 0: 224 x 224 x 3 bytes per sample"},
    {"prefetch", "2", NUMBER, AT(prefetch), 1, 1024, "batches to prepare in advance"},
    {"shuffle_buffer", "0", COUNT, AT(shuffle_buffer), 0, COUNT_MAX,
     "samples mixed, of all ranks together; 0: 1 GiB of the pack, at least 3072"},
    {"in_flight", "0", NUMBER, AT(in_flight), 0, 0x1p16,
     "concurrent requests per machine; 0: 512, but at most 256 per rank"},
    {"cache_bytes", "0", BYTES, AT(cache_bytes), 0, BYTES_MAX, "cache of a machine; 0: none"},
    {"sticky", "0", NUMBER, AT(sticky), 0, 1, "1: a machine reads the same blocks in every epoch"},

    {"latency_ms", "100", REAL, AT(latency_ms), 0, MS_MAX,
     "median time to the first byte of a response"},
    {"latency_p99_ms", "0", REAL, AT(latency_p99_ms), 0, MS_MAX,
     "99th percentile of that time (log-normal); 0: three times the median"},
    {"connect_ms", "30", REAL, AT(connect_ms), 0, MS_MAX, "time to open a connection"},
    {"connection_mb", "90", MB, AT(connection_bytes_per_s), 0, 1e6,
     "MB/s per connection; 0: no limit"},
    {"node_gbit", "100", GBIT, AT(node_bytes_per_s), 0, 1e6,
     "Gbit/s of the network of a machine; 0: no limit"},
    {"store_gbit", "0", GBIT, AT(store_bytes_per_s), 0, 1e9,
     "Gbit/s of the store, shared by all machines; 0: no limit"},
    {"prefixes", "256", NUMBER, AT(prefixes), 1, 256,
     "key prefixes over which the store distributes the load; a new bucket has few"},
    {"prefix_rate", "5500", NUMBER, AT(prefix_per_s), 0, UINT32_MAX,
     "requests per second and prefix; the store throttles the rest; 0: no limit"},
    {"failures", "0.1", REAL, AT(failures), 0, 1000,
     "requests per thousand that fail with status 500"},

    {"seconds", "60", REAL, AT(seconds), 0.001, S_MAX,
     "seconds of training to simulate, from the start of the epoch"},
    {"effort", "30", REAL, AT(effort), 0.001, S_MAX,
     "CPU seconds to spend, approximately: fewer machines or seconds are simulated"},
    {"seed", "0", COUNT, AT(seed), 0, COUNT_MAX, "of the sample order and of all random events"},
};

/* ---- values ---------------------------------------------------------------------------------- */

static bool read_digits(const char *text, const char **end, uint64_t *ret)
{
    if (*text < '0' || *text > '9')
        return false;
    errno = 0;
    *ret = strtoull(text, (char **)(uintptr_t)end, 10);
    return errno == 0;
}

static bool read_real(const char *text, double *ret)
{
    char *end = NULL;
    if (!*text || strspn(text, "0123456789.eE+-") != strlen(text))
        return false;
    *ret = strtod(text, &end);
    return !*end && isfinite(*ret);
}

/* Above 2^53, not every number is a double. */
static bool read_count(const char *text, uint64_t *ret)
{
    const char *end = text;
    double real;
    if (read_digits(text, &end, ret) && !*end)
        return true;
    if (!read_real(text, &real) || !(real >= 0 && real <= 0x1p53) || real != floor(real))
        return false;
    *ret = (uint64_t)real;
    return true;
}

static bool read_bytes(const char *text, uint64_t *ret)
{
    static const char *const units[] = {"", "KiB", "MiB", "GiB", "TiB"};
    const char *end = text;
    if (!read_digits(text, &end, ret))
        return false;
    for (size_t i = 0; i < PEN_LEN(units); i++)
        if (strcmp(end, units[i]) == 0)
            return !__builtin_mul_overflow(*ret, UINT64_C(1) << 10 * i, ret);
    return false;
}

static double unit_of(const Key *key)
{
    return key->kind == GBIT ? 1e9 / 8 : key->kind == MB ? 1e6 : 1;
}

/* What the value of a key looks like; NULL: as it should, and it is set. */
static const char *set(PenSimSettings *s, const Key *key, const char *text)
{
    void *at = (char *)s + key->at;
    uint64_t count;
    double real;
    switch (key->kind) {
    case TEXT:
        *(const char **)at = text;
        return NULL;
    case BYTES:
        return read_bytes(text, at) ? NULL : "a size such as 512MiB, 1GiB or 110000";
    case COUNT:
        return read_count(text, at) ? NULL : "a whole number";
    case NUMBER:
        if (!read_count(text, &count) || count > UINT32_MAX)
            return "a whole number, at most 4294967295";
        *(uint32_t *)at = (uint32_t)count;
        return NULL;
    case REAL:
        return read_real(text, at) ? NULL : "a number";
    default:
        if (!read_real(text, &real) || real < 0 || real > 1e9)
            return "a number from 0 to 1e9";
        *(uint64_t *)at = (uint64_t)(real * unit_of(key));
        return NULL;
    }
}

static double value_of(const PenSimSettings *s, const Key *key)
{
    const void *at = (const char *)s + key->at;
    if (key->kind == NUMBER)
        return *(const uint32_t *)at;
    if (key->kind == REAL)
        return *(const double *)at;
    return (double)*(const uint64_t *)at / unit_of(key);
}

/* ---- arguments ------------------------------------------------------------------------------- */

static int unknown(const char *name, size_t bytes, PenError *reterr)
{
    PenNear near = {.typed = name, .bytes = bytes};
    for (size_t i = 0; i < PEN_LEN(KEYS); i++)
        pen__near_offer(&near, KEYS[i].name, strlen(KEYS[i].name));
    if (near.word)
        return pen__fail(reterr, PEN_E_INVALID, WHERE, "unknown key %.*s; did you mean %s?",
                         (int)bytes, name, near.word);
    return pen__fail(reterr, PEN_E_INVALID, WHERE, "unknown key %.*s; --help lists all", (int)bytes,
                     name);
}

static int take(PenSimSettings *s, const char *argument, PenError *reterr)
{
    const char *value = strchr(argument, '=');
    if (!value || !value[1])
        return pen__fail(reterr, PEN_E_INVALID, WHERE, "%s: expected KEY=VALUE", argument);
    size_t bytes = (size_t)(value - argument);
    for (size_t i = 0; i < PEN_LEN(KEYS); i++) {
        if (strlen(KEYS[i].name) != bytes || memcmp(KEYS[i].name, argument, bytes) != 0)
            continue;
        const char *expected = set(s, &KEYS[i], value + 1);
        return expected
                   ? pen__fail(reterr, PEN_E_INVALID, WHERE, "%s: expected %s", argument, expected)
                   : PEN_OK;
    }
    return unknown(argument, bytes, reterr);
}

int pen__sim_settings_parse(PenSimSettings *ret, char *const *arguments, int n, PenError *reterr)
{
    PenSimSettings s = {0};
    for (size_t i = 0; i < PEN_LEN(KEYS); i++)
        if (KEYS[i].initial)
            (void)set(&s, &KEYS[i], KEYS[i].initial);
    int r = PEN_OK;
    for (int i = 0; i < n && r == PEN_OK; i++)
        r = take(&s, arguments[i], reterr);
    if (s.latency_p99_ms == 0)
        s.latency_p99_ms = 3 * s.latency_ms;
    if (r == PEN_OK)
        r = pen__sim_settings_check(&s, reterr);
    if (r == PEN_OK)
        *ret = s;
    return r;
}

static int refuse(const Key *key, double found, PenError *reterr)
{
    return pen__fail(reterr, PEN_E_INVALID, WHERE, "%s: expected %.15g to %.15g, found %.15g",
                     key->name, key->min, key->max, found);
}

int pen__sim_settings_check(const PenSimSettings *s, PenError *reterr)
{
    for (const Key *key = KEYS; key < KEYS + PEN_LEN(KEYS); key++) {
        double value = key->kind == TEXT ? 0 : value_of(s, key);
        if (!(value >= key->min && value <= key->max))
            return refuse(key, value, reterr);
    }
    if ((uint64_t)s->nodes * s->ranks > MAX_RANKS)
        return pen__fail(reterr, PEN_E_INVALID, WHERE,
                         "%" PRIu32 " nodes of %" PRIu32 " ranks: expected at most %d ranks",
                         s->nodes, s->ranks, MAX_RANKS);
    if (!(s->step_ms + s->decode_ms > 0))
        return pen__fail(reterr, PEN_E_INVALID, WHERE,
                         "step_ms and decode_ms: expected more than 0 of one of them");
    if (s->latency_p99_ms < s->latency_ms)
        return pen__fail(reterr, PEN_E_INVALID, WHERE,
                         "latency_p99_ms: expected no less than latency_ms, %.15g, found %.15g",
                         s->latency_ms, s->latency_p99_ms);
    return PEN_OK;
}

void pen__sim_usage(FILE *to)
{
    fputs("usage: penstock-sim KEY=VALUE...\n\n"
          "Predicts how a multi-node training job performs when it reads a pack from an object "
          "store.\n"
          "Prints the result as JSON. The same arguments give the same numbers. The model and the\n"
          "result are described in docs/explanation/simulator.md.\n\n"
          "  penstock-sim samples=1e9 sample_bytes=110000 nodes=1000\n\n"
          "The keys, with their defaults:\n",
          to);
    for (const Key *key = KEYS; key < KEYS + PEN_LEN(KEYS); key++) {
        char name[48];
        snprintf(name, sizeof name, "%s=%s", key->name, key->initial ? key->initial : "NAME");
        fprintf(to, "  %-20s  %s\n", name, key->help);
    }
}
