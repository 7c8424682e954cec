/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/store.h"

#include <math.h>
#include <string.h>

#include "base/attr.h"

enum { SHARDS_MOST = 1 << 22 }; /* more are as these */

static const double P99 = 2.3263478740408408; /* of the normal distribution */
static const double PI = 3.14159265358979323846;

static void take_shares(PenSimStore *s, const PenSimPack *pack)
{
    uint64_t n = PEN_MIN(pack->n_shards, (uint64_t)SHARDS_MOST);
    for (uint64_t i = 0; i < n; i++)
        s->share[pen__sim_pack_prefix(pack, i)] += 1 / (double)n;
}

void pen__sim_store_init(PenSimStore *s, const PenSimSettings *settings, const PenSimPack *pack,
                         double weight)
{
    *s = (PenSimStore){
        .latency_ns = settings->latency_ms * 1e6,
        .connect_ns = (uint64_t)(settings->connect_ms * 1e6),
        .per_s = settings->prefix_per_s,
        .failures = settings->failures / 1000,
        .weight = weight,
    };
    take_shares(s, pack);
    if (settings->latency_p99_ms > settings->latency_ms && settings->latency_ms > 0)
        s->sigma = log(settings->latency_p99_ms / settings->latency_ms) / P99;
}

static double uniform(PenSimNet *net) /* above 0, at most 1 */
{
    return (double)((pen__sim_net_random(net) >> 11) + 1) * 0x1p-53;
}

/* Log-normal: most answers come in about the median, a few take several times as long. */
static uint64_t draw_latency(const PenSimStore *s)
{
    if (s->sigma <= 0)
        return (uint64_t)s->latency_ns;
    double u = uniform(s->net), v = uniform(s->net);
    double normal = sqrt(-2 * log(u)) * cos(2 * PI * v);
    return (uint64_t)(s->latency_ns * exp(s->sigma * normal));
}

/* Requests of this second for a prefix. Where some nodes stand for all, what is counted is
 * multiplied; it varies more than the sum of all would, by the root of the weight, which is taken
 * off again. */
static double rate_of(const PenSimStore *s, unsigned prefix)
{
    double n = s->in_second[prefix];
    if (prefix == PEN_SIM_MANIFEST || s->weight <= 1)
        return n * s->weight;
    double expected = s->all_in_second * s->share[prefix];
    return s->weight * (expected + (n - expected) / sqrt(s->weight));
}

/* Second by second. */
static bool is_over(PenSimStore *s, unsigned prefix)
{
    uint64_t second = pen__sim_net_now(s->net) / PEN_SIM_S;
    if (second != s->second) {
        s->second = second;
        s->all_in_second = 0;
        memset(s->in_second, 0, sizeof s->in_second);
    }
    s->in_second[prefix]++;
    s->all_in_second += prefix != PEN_SIM_MANIFEST;
    double rate = rate_of(s, prefix);
    double *most = prefix == PEN_SIM_MANIFEST ? &s->most_of_manifest : &s->most_in_a_s;
    *most = PEN_MAX(*most, rate);
    return s->per_s && rate > s->per_s;
}

static unsigned digit(char c)
{
    return (unsigned)(c <= '9' ? c - '0' : c - 'a' + 10);
}

void pen__sim_store_answer(void *ctx, const PenSimAsk *ask, PenSimAnswer *ret)
{
    PenSimStore *s = ctx;
    const char *url = ask->request->url;
    s->requests++;
    ret->connect_ns = ask->reused ? 0 : s->connect_ns;
    ret->after_ns = draw_latency(s);
    if (is_over(s, digit(url[0]) * 16 + digit(url[1]))) {
        s->refused++;
        ret->status = 503;
        ret->error = "<Error><Code>SlowDown</Code></Error>";
    } else if (s->failures > 0 && uniform(s->net) <= s->failures) {
        s->failed++;
        ret->status = 500;
    }
}

const char *pen__sim_store_url(unsigned prefix)
{
#define ROW(a)                                                                                     \
    a "0", a "1", a "2", a "3", a "4", a "5", a "6", a "7", a "8", a "9", a "a", a "b", a "c",     \
        a "d", a "e", a "f"
    static const char *const urls[PEN_SIM_PREFIXES + 1] = {
        ROW("0"), ROW("1"), ROW("2"), ROW("3"), ROW("4"), ROW("5"), ROW("6"), ROW("7"), ROW("8"),
        ROW("9"), ROW("a"), ROW("b"), ROW("c"), ROW("d"), ROW("e"), ROW("f"), "g0"};
#undef ROW
    return urls[PEN_MIN(prefix, (unsigned)PEN_SIM_MANIFEST)];
}
