/* SPDX-License-Identifier: Apache-2.0 */
/* How many requests go at once.
 *
 * What counts is how many bytes come in a second, less something for every answer that says "slow
 * down". At first the number doubles with each round of answers, for as long as that brings more.
 * From then on it is tried now and then whether an eighth more, or less, is better: more has to
 * bring at least a quarter of what it could, less may cost no more than that. Where the way to the
 * server or the server is full, more requests only wait longer for the same bytes, so this finds
 * the least number that fills it; and a server that refuses one request in twenty whatever we do is
 * not taken for one that we overload.
 *
 * Where a quarter of the last answers or more say "slow down", there is no time for trying: the
 * number is cut at once by as great a part, at most by half, and grows back quickly up to where it
 * was known to be safe.
 *
 * A round counts only if the limit was what held requests back. */
#include "net/retry/policy_impl.h"

#include "base/attr.h"

enum {
    FIRST = 24,      /* at the beginning */
    LEAST = 4,       /* fewer only when told to slow down */
    ROUND_FEW = 32,  /* answers in a round that is compared, at the least */
    ROUND_MANY = 96, /* so many are enough, or three for each place */
    FAST_LEAST = 8,  /* while the number doubles */
    STEP = 8,        /* a trial changes the number by one part in so many */
    CALM_LEAST = 2,  /* rounds between trials, at first */
    CALM_PAID = 16,  /* where more always paid, up to the most */
    CALM_MOST = 32,
    THROTTLED_ONE = 65536, /* all answers */
    THROTTLED_LAST = 16,   /* over about so many, two for each place, and a second's */
    THROTTLED_CUT = THROTTLED_ONE / 4,
    THROTTLED_WARY = THROTTLED_ONE / 256,
};

/* So long it is remembered that a server has said "slow down". */
#define WARY_NS (60 * PEN_NS_PER_S)
/* A request that brings few bytes is work, too. */
#define WORK_EACH 16384u
/* An answer that says "slow down" is as bad as so many that did not come. */
#define PENALTY 3.0
/* Of what a change of the number could bring or cost at most. */
#define PART 0.25
/* A doubling has to bring a quarter more at least. */
#define FAST_GAIN 1.25

static uint32_t least_of(const PenPace *pace)
{
    return PEN_MIN((uint32_t)LEAST, pace->most);
}

/* After a change the answers to what is under way say nothing about it. */
static void begin_round(PenPace *pace, uint32_t skip)
{
    pace->skip = skip;
    pace->begun = pace->limit;
    pace->n = pace->refused = 0;
    pace->work = 0;
    pace->start_ns = 0;
}

void pen__pace_init(PenPace *pace, uint32_t most, uint64_t now_ns)
{
    *pace = (PenPace){.most = most, .limit = PEN_MIN(most, (uint32_t)FIRST), .calm = CALM_LEAST};
    pace->worked = pace->limit;
    pace->mode = PEN_PACE_FAST;
    pace->last = PEN_PACE_DOWN;
    begin_round(pace, 0);
    pace->start_ns = now_ns;
}

void pen__pace_anew(PenPace *pace)
{
    pace->mode = PEN_PACE_FAST;
    pace->base = 0;
    begin_round(pace, 0);
}

/* The number stays for some rounds; fewer when something has just been found. */
static void hold(PenPace *pace, uint32_t rounds)
{
    pace->mode = PEN_PACE_HOLD;
    pace->hold = rounds;
}

static uint32_t step_of(uint32_t limit)
{
    return PEN_MAX(limit / STEP, 1u);
}

/* Tries another number, or where there is none in this direction, says so. */
static bool try_other(PenPace *pace, PenPaceMode mode)
{
    uint32_t step = step_of(pace->limit);
    pace->from = pace->limit;
    if (mode == PEN_PACE_UP)
        pace->limit = PEN_MIN(pace->limit + step, pace->most);
    else if (pace->limit > least_of(pace))
        pace->limit = PEN_MAX(pace->limit - step, least_of(pace));
    pace->mode = mode;
    return pace->limit != pace->from;
}

static double share(uint32_t a, uint32_t b)
{
    return ((double)a - (double)b) / (double)b;
}

/* A trial has ended. */
static void classify_trial(PenPace *pace, double rate)
{
    double could = share(pace->limit, pace->from); /* below 0 for fewer */
    PenPaceMode mode = pace->mode;
    if (rate >= pace->base * (1 + could * PART)) {
        pace->base = rate;
        pace->calm = CALM_LEAST;
        pace->last = mode;
        if (!try_other(pace, mode))
            hold(pace, pace->calm);
        return;
    }
    pace->limit = pace->from;
    if (mode == pace->last && try_other(pace, mode == PEN_PACE_UP ? PEN_PACE_DOWN : PEN_PACE_UP))
        return; /* the other way, then */
    hold(pace, pace->calm);
    pace->calm = PEN_MIN(pace->calm * 2, (uint32_t)CALM_MOST);
}

/* The number has doubled, or nearly. What the second round brings was requested before that. */
static void classify_fast(PenPace *pace, double rate)
{
    if (pace->base > 0 && pace->begun > pace->from && rate < pace->base * FAST_GAIN) {
        pace->limit = pace->from; /* which brought as much */
        hold(pace, 0);
        return;
    }
    pace->base = rate;
    pace->from = pace->begun;
    if (pace->limit == pace->most && pace->begun == pace->most)
        hold(pace, CALM_PAID); /* it has paid up to here */
}

static void end_round(PenPace *pace, uint64_t now_ns)
{
    double seconds = (double)PEN_MAX(now_ns - pace->start_ns, 1u) / 1e9;
    double refused = (double)pace->refused / (double)(pace->n + pace->refused);
    double rate = (double)pace->work / seconds * PEN_MAX(1 - PENALTY * refused, 0);
    uint32_t before = pace->limit;
    if (pace->mode == PEN_PACE_FAST) {
        classify_fast(pace, rate);
    } else if (pace->mode != PEN_PACE_HOLD) {
        classify_trial(pace, rate);
    } else {
        pace->base = rate;
        if (pace->hold)
            pace->hold--;
        else if (!try_other(pace, pace->last) &&
                 !try_other(pace, pace->last == PEN_PACE_UP ? PEN_PACE_DOWN : PEN_PACE_UP))
            hold(pace, CALM_MOST); /* there is no other number */
    }
    bool changed = pace->limit != before;
    begin_round(pace, changed && pace->mode != PEN_PACE_FAST ? PEN_MAX(before, pace->limit) : 0);
    pace->start_ns = now_ns;
}

static uint32_t round_of(const PenPace *pace)
{
    uint32_t n = PEN_MIN(pace->limit * 6, PEN_MAX(pace->limit * 3, (uint32_t)ROUND_MANY));
    return pace->mode == PEN_PACE_FAST ? PEN_MAX(pace->begun, (uint32_t)FAST_LEAST)
                                       : PEN_MAX(n, (uint32_t)ROUND_FEW);
}

/* Stores count requests by the second: what is refused at the end of one is to be seen against all
 * that was not. */
static uint32_t throttled_over(PenPace *pace, uint64_t now_ns)
{
    pace->in_second++;
    if (now_ns - pace->second_ns >= PEN_NS_PER_S) {
        pace->per_second = pace->in_second;
        pace->in_second = 0;
        pace->second_ns = now_ns;
    }
    return PEN_MAX(PEN_MAX(pace->limit * 2, pace->per_second), (uint32_t)THROTTLED_LAST);
}

/* Likewise a round. */
static bool is_over(const PenPace *pace, uint64_t now_ns)
{
    if (pace->n < round_of(pace))
        return false;
    return pace->mode == PEN_PACE_FAST || !pace->throttled_ns ||
           now_ns - pace->throttled_ns >= WARY_NS || now_ns - pace->start_ns >= PEN_NS_PER_S;
}

void pen__pace_success(PenPace *pace, uint64_t bytes, bool wanted, uint64_t now_ns)
{
    pace->throttled -= pace->throttled / throttled_over(pace, now_ns);
    if (pace->worked < UINT32_MAX)
        pace->worked++;
    /* In the first round connections are made: what it brings is no measure. */
    bool fast = pace->mode == PEN_PACE_FAST && wanted && pace->base > 0;
    if (pace->limit < pace->most && (fast || pace->limit < pace->safe))
        pace->limit++;
    if (pace->skip) {
        if (--pace->skip == 0)
            pace->start_ns = now_ns;
        return;
    }
    if (!pace->start_ns)
        pace->start_ns = now_ns;
    pace->work += bytes + WORK_EACH;
    pace->n++;
    if (is_over(pace, now_ns))
        end_round(pace, now_ns);
}

void pen__pace_idle(PenPace *pace)
{
    if (pace->n || pace->refused || pace->start_ns)
        begin_round(pace, pace->skip);
    if (pace->mode == PEN_PACE_FAST)
        pace->base = 0;
}

void pen__pace_throttle(PenPace *pace, uint64_t started_ns, uint64_t now_ns)
{
    pace->throttled += (THROTTLED_ONE - pace->throttled) / throttled_over(pace, now_ns);
    pace->throttled_ns = now_ns;
    pace->refused += !pace->skip;
    if (started_ns < pace->cut_ns || pace->throttled < THROTTLED_CUT)
        return;
    /* Half of what worked until now is safe. Cuts one after another, with less than a round of
     * successes between them, are the same trouble still and say nothing new. */
    if (pace->worked >= pace->limit)
        pace->safe = PEN_MAX(pace->limit / 2, 1u);
    uint64_t works = THROTTLED_ONE - PEN_MIN(pace->throttled, (uint32_t)THROTTLED_ONE / 2);
    pace->limit = PEN_MAX((uint32_t)(pace->limit * works / THROTTLED_ONE), 1u);
    pace->throttled = THROTTLED_CUT / 2; /* for the next time there is to be something new */
    pace->worked = 0;
    pace->cut_ns = now_ns;
    pace->calm = CALM_LEAST;
    pace->last = PEN_PACE_UP;
    hold(pace, CALM_LEAST);
    begin_round(pace, pace->limit);
}

bool pen__pace_is_throttled(const PenPace *pace)
{
    return pace->throttled >= THROTTLED_WARY;
}
