/* SPDX-License-Identifier: Apache-2.0 */
/* How often it is tried again.
 *
 * Retries pay with tokens, so that a server that is down gets few of them however many operations
 * wait; the seconds alone pay for one retry each, which is how the end of an outage is noticed. A
 * retry that succeeds has its tokens back, so that those who wait then follow ever faster. */
#include "net/retry/policy_impl.h"

#include "base/attr.h"

/* An outage, for those who may be woken by its end: this many failures and nothing else for so
 * long. Single failures among successes are none. */
enum { DOWN_FAILED = 4 };
#define DOWN_NS PEN_NS_PER_S

void pen__rate_init(PenRate *rate, const PenPolicySettings *s, uint64_t now_ns)
{
    *rate = (PenRate){
        .bucket = s->bucket,
        .tokens = s->bucket,
        .refilled_ns = now_ns,
        .success_ns = now_ns,
    };
}

static void add_tokens(PenRate *rate, uint64_t n)
{
    rate->tokens = (uint32_t)PEN_MIN((uint64_t)rate->tokens + n, rate->bucket);
}

static void refill(PenRate *rate, uint64_t now_ns)
{
    const uint64_t each = PEN_NS_PER_S / PEN_TOKENS_PER_S;
    if (now_ns <= rate->refilled_ns)
        return;
    uint64_t n = (now_ns - rate->refilled_ns) / each;
    add_tokens(rate, n);
    rate->refilled_ns += n * each;
}

bool pen__rate_take(PenRate *rate, uint32_t cost, uint64_t now_ns)
{
    refill(rate, now_ns);
    if (cost > rate->tokens)
        return false;
    rate->tokens -= cost;
    return true;
}

uint64_t pen__rate_when(const PenRate *rate, uint32_t cost)
{
    uint64_t lacking = cost > rate->tokens ? cost - rate->tokens : 0;
    return rate->refilled_ns + lacking * (PEN_NS_PER_S / PEN_TOKENS_PER_S);
}

bool pen__rate_success(PenRate *rate, uint32_t paid, uint64_t now_ns)
{
    bool was_down = rate->failed >= DOWN_FAILED && now_ns - rate->success_ns >= DOWN_NS;
    rate->failed = 0;
    rate->success_ns = now_ns;
    add_tokens(rate, paid ? paid : 1);
    return was_down;
}

void pen__rate_failure(PenRate *rate)
{
    if (rate->failed < UINT32_MAX)
        rate->failed++;
}

uint64_t pen__backoff_ns(uint32_t base_ms, uint32_t cap_ms, unsigned n, uint64_t random)
{
    uint64_t most_ms = cap_ms;
    if (n < 32 && (uint64_t)base_ms << n < cap_ms)
        most_ms = (uint64_t)base_ms << n;
    return random % (most_ms * PEN_NS_PER_MS + 1);
}

uint64_t pen__retry_after_ns(uint64_t asked_ms, uint32_t base_ms, uint32_t cap_ms, uint64_t random)
{
    /* Spread, or all who were told the same come at the same moment: a little later than asked for,
     * or where that is too long, a little earlier than the cap. */
    uint64_t least_ms = cap_ms - cap_ms / 4, most_ms = cap_ms;
    if (asked_ms < cap_ms) {
        least_ms = asked_ms;
        most_ms = PEN_MIN(asked_ms + base_ms, (uint64_t)cap_ms);
    }
    return (least_ms + random % (most_ms - least_ms + 1)) * PEN_NS_PER_MS;
}
