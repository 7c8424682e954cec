/* SPDX-License-Identifier: Apache-2.0 */
/* The names of the counters, for everything that prints them. */
#include <stddef.h>
#include <string.h>

#include "tools.h"

typedef enum Kind { U32, U64, SECONDS, NUMBER } Kind;

typedef struct Stat {
    const char *name;
    size_t offset;
    Kind kind;
} Stat;

#define STAT(name, member, kind)                                                                   \
    {                                                                                              \
        name, offsetof(PenLoaderStats, member), kind                                               \
    }
#define STAGE(name, stage)                                                                         \
    {                                                                                              \
        name "_seconds", offsetof(PenLoaderStats, stage_ns[stage]), SECONDS                        \
    }

static const Stat stats_table[] = {
    STAT("threads", threads, U32),
    STAT("io_threads", io_threads, U32),
    STAT("io_threads_wanted", io_threads_wanted, U32),
    STAT("node_ranks", node_ranks, U32),
    STAT("slots", slots, U32),
    STAT("slots_limit", slots_limit, U64),
    STAT("slots_ready", slots_ready, U32),
    STAT("slots_leased", slots_leased, U32),
    STAT("samples_ready", samples_ready, U32),
    STAT("memory_bytes", memory_bytes, U64),
    STAT("memory_peak_bytes", memory_peak_bytes, U64),
    STAT("memory_wanted_bytes", memory_wanted_bytes, U64),
    STAT("batches", batches, U64),
    STAT("samples", samples, U64),
    STAT("padded_samples", padded_samples, U64),
    STAT("substituted", substituted, U64),
    STAT("bytes_read", bytes_read, U64),
    STAT("ready_mean", ready_mean, NUMBER),
    STAT("elapsed_seconds", ns_elapsed, SECONDS),
    STAT("wait_seconds", ns_wait, SECONDS),
    STAT("wait_p50_seconds", wait_p50_ns, SECONDS),
    STAT("wait_p95_seconds", wait_p95_ns, SECONDS),
    STAT("wait_p99_seconds", wait_p99_ns, SECONDS),
    STAT("wait_max_seconds", wait_max_ns, SECONDS),
    STAGE("fetch", PEN_LOAD_STAGE_FETCH),
    STAGE("read", PEN_LOAD_STAGE_READ),
    STAGE("verify", PEN_LOAD_STAGE_VERIFY),
    STAGE("decode", PEN_LOAD_STAGE_DECODE),
    STAGE("resample", PEN_LOAD_STAGE_RESAMPLE),
    STAGE("store", PEN_LOAD_STAGE_STORE),
    STAT("fetch_idle_seconds", ns_fetch_idle, SECONDS),
    STAT("read_idle_seconds", ns_read_idle, SECONDS),
    STAT("decode_idle_seconds", ns_decode_idle, SECONDS),
    STAT("memory_wait_seconds", ns_memory_wait, SECONDS),
    STAT("decode_cpu_seconds", ns_decode_cpu, SECONDS),
};

enum { N_STATS = sizeof stats_table / sizeof *stats_table };

const char *pen_stat_name(int stat)
{
    return stat >= 0 && stat < N_STATS ? stats_table[stat].name : NULL;
}

int pen_stat_is_count(int stat)
{
    return stat >= 0 && stat < N_STATS && stats_table[stat].kind <= U64;
}

double pen_stat_value(const PenLoaderStats *stats, int stat)
{
    if (stat < 0 || stat >= N_STATS)
        return 0;
    const Stat *s = &stats_table[stat];
    const char *at = (const char *)stats + s->offset;
    uint32_t small;
    uint64_t large;
    double number;
    memcpy(&small, at, sizeof small);
    if (s->kind == U32)
        return small;
    memcpy(&large, at, sizeof large);
    memcpy(&number, at, sizeof number);
    if (s->kind == NUMBER)
        return number;
    return s->kind == SECONDS ? (double)large / 1e9 : (double)large;
}
