/* SPDX-License-Identifier: Apache-2.0 */
/* Two neighbouring streams are a pair, and share the first and the last of their blocks: one begins
 * with h samples of the first block and the other with the rest, and where h differs from pair to
 * pair, blocks are needed evenly over time. Full blocks are dealt to pairs by a permutation. What
 * cannot be dealt evenly (fewer than G blocks, and the short last one) is cut into one piece for
 * each stream, which it delivers last. */
#include "load/epoch/order.h"

#include <inttypes.h>

#include "base/attr.h"
#include "base/error.h"
#include "load/epoch/purpose.h"

enum { BUFFER_BYTES = 1 << 30, BUFFER_LEAST = 3072 };

/* ---- streams --------------------------------------------------------------------------------- */

const char *pen__order_name(int32_t kind)
{
    static const char *const names[] = {"sequential", "random", "shuffle", "sticky"};
    return kind >= 0 && kind < (int32_t)PEN_LEN(names) ? names[kind] : NULL;
}

bool pen__order_has_streams(int32_t kind)
{
    return kind == PEN_ORDER_SHUFFLE || kind == PEN_ORDER_STICKY;
}

/* As many samples as fit into 1 GiB, but enough of them to be mixed well. */
uint64_t pen__order_buffer(uint64_t bytes, uint64_t samples)
{
    uint64_t each = PEN_MIN(bytes / PEN_MAX(samples, 1u), (uint64_t)BUFFER_BYTES) + 1;
    return PEN_MAX(BUFFER_BYTES / each, (uint64_t)BUFFER_LEAST);
}

uint32_t pen__streams_for(uint64_t samples, uint64_t block_samples)
{
    uint64_t blocks = (samples - 1) / block_samples + 1, streams = PEN_STREAMS_LEAST;
    while (streams < blocks && streams < PEN_STREAMS_MOST)
        streams *= 2;
    return (uint32_t)streams;
}

uint32_t pen__order_streams(const PenOrderPlan *p)
{
    uint32_t streams = p->streams;
    if (!pen__order_has_streams(p->kind))
        return 0;
    uint64_t blocks = p->n / p->block_samples;
    /* Blocks stay with a rank also in a small pack, as long as there are enough of them. */
    while (p->kind == PEN_ORDER_STICKY && streams > blocks && streams > PEN_STREAMS_LEAST)
        streams /= 2;
    if (p->kind == PEN_ORDER_STICKY)
        return blocks >= streams ? streams : 0;
    return blocks > streams || (blocks == streams && p->n % p->block_samples) ? streams : 0;
}

static uint32_t reverse_bits(uint32_t x, uint32_t below)
{
    uint32_t r = 0;
    for (; below > 1; below /= 2, x /= 2)
        r = r * 2 + x % 2;
    return r;
}

/* The digits of p mod G in base 3, 2, 2, ... in reverse. */
uint32_t pen__stream_lane(uint32_t streams, uint64_t position)
{
    uint32_t at = (uint32_t)(position % streams);
    return at % 3 * (streams / 3) + reverse_bits(at / 3, streams / 3);
}

int pen__order_check(const PenOrderPlan *p, PenError *reterr)
{
    uint32_t g = p->streams;
    if (!pen__order_name(p->kind))
        return pen__fail(reterr, PEN_E_INVALID, "load/order",
                         "order %d: expected sequential, random, shuffle or sticky", (int)p->kind);
    if (p->n == 0 || p->n > PEN_PERMUTE_MOST)
        return pen__fail(reterr, PEN_E_INVALID, "load/order",
                         "order of %" PRIu64 " samples: expected 1 to 2^63", p->n);
    if (!pen__order_has_streams(p->kind))
        return PEN_OK;
    if (g < PEN_STREAMS_LEAST || g % 3 || (g / 3 & (g / 3 - 1)) || !p->block_samples)
        return pen__fail(reterr, PEN_E_INVALID, "load/order",
                         "order of %" PRIu32 " streams of blocks with %" PRIu64
                         " samples: expected 3 * 2^k streams, and 1 sample or more",
                         g, p->block_samples);
    return PEN_OK;
}

/* ---- an epoch -------------------------------------------------------------------------------- */

static void init_streams(PenOrder *o)
{
    const PenOrderPlan *p = &o->plan;
    bool sticky = p->kind == PEN_ORDER_STICKY;
    o->full_blocks = p->n / p->block_samples;
    o->stream_blocks = o->full_blocks / o->streams;
    o->body = o->stream_blocks * o->streams * p->block_samples;
    /* Sticky: dealt once for all epochs; then the blocks of each pair are mixed. */
    pen__permute_init(&o->blocks, o->full_blocks,
                      pen__permute_key(p->seed, sticky ? 0 : o->epoch, PEN_FOR_BLOCKS, 0));
    if (sticky)
        pen__permute_init(&o->pair, 2 * o->stream_blocks, 0);
}

int pen__order_init(PenOrder *ret, const PenOrderPlan *plan, uint64_t epoch, PenError *reterr)
{
    int r = pen__order_check(plan, reterr);
    if (r < 0)
        return r;
    PenOrder o = {.plan = *plan, .epoch = epoch, .streams = pen__order_streams(plan)};
    if (o.streams)
        init_streams(&o);
    else if (plan->kind != PEN_ORDER_SEQUENTIAL)
        pen__permute_init(&o.samples, plan->n,
                          pen__permute_key(plan->seed, epoch, PEN_FOR_SAMPLES, 0));
    *ret = o;
    return PEN_OK;
}

/* Which of the blocks of a pair is its `nth` in this epoch? Returns its number in the pack. */
static uint64_t block_of(const PenOrder *o, uint32_t pair, uint64_t nth)
{
    if (o->plan.kind == PEN_ORDER_STICKY) {
        PenPermutation mix = o->pair;
        pen__permute_rekey(&mix, pen__permute_key(o->plan.seed, o->epoch, PEN_FOR_PAIR, pair));
        nth = pen__permute_at(&mix, nth);
    }
    return pen__permute_at(&o->blocks, nth * (o->streams / 2) + pair);
}

static uint64_t key_in_block(const PenOrder *o, uint64_t block)
{
    return pen__permute_key(o->plan.seed, o->epoch, PEN_FOR_IN_BLOCK, block);
}

/* The sample of a block that is delivered at `time`: halves are swapped or not, then their halves,
 * and so on. */
static uint64_t mix_in_block(uint64_t key, uint64_t n, uint64_t time)
{
    uint64_t first = 0, node = 1;
    while (n > 1) {
        uint64_t half = n / 2; /* of the samples, the lower ones */
        bool swap = pen__permute_bit(key, node);
        uint64_t sooner = swap ? n - half : half;
        bool later = time >= sooner;
        if (later != swap)
            first += half;
        node = node * 2 + (later != swap);
        time -= later ? sooner : 0;
        n = later != swap ? n - half : half;
    }
    return first;
}

/* One end of a piece, or the other, comes first. */
static uint64_t mix_piece(uint64_t key, uint32_t side, uint64_t n, uint64_t time)
{
    return pen__permute_bit(key, side) ? n - 1 - time : time;
}

typedef struct Stream {
    uint32_t pair, side; /* 0 or 1 */
    uint64_t cut;        /* h: samples of the first block that side 0 begins with */
} Stream;

static Stream stream_of(const PenOrder *o, uint64_t position)
{
    uint32_t half = o->streams / 2, at = (uint32_t)(position % o->streams);
    uint32_t lane = pen__stream_lane(o->streams, position);
    return (Stream){lane / 2, lane % 2, at % half * o->plan.block_samples / half};
}

static uint64_t body_at(const PenOrder *o, uint64_t position)
{
    uint64_t k = o->plan.block_samples, time = position / o->streams, block;
    Stream s = stream_of(o, position);
    uint64_t head = s.side ? k - s.cut : s.cut;
    if (time < head) {
        block = block_of(o, s.pair, 0);
        return block * k + (s.side ? s.cut : 0) +
               mix_piece(key_in_block(o, block), s.side, head, time);
    }
    time -= head;
    if (time / k < o->stream_blocks - 1) {
        block = block_of(o, s.pair, 2 + 2 * (time / k) + s.side);
        return block * k + mix_in_block(key_in_block(o, block), k, time % k);
    }
    time -= (o->stream_blocks - 1) * k;
    block = block_of(o, s.pair, 1);
    return block * k + (s.side ? 0 : s.cut) +
           mix_piece(key_in_block(o, block), s.side, k - head, time);
}

/* Behind the body: the blocks left over when dealing, then the short one. */
static uint64_t rest_at(const PenOrder *o, uint64_t position)
{
    uint64_t k = o->plan.block_samples, at = position - o->body;
    uint64_t each = (o->plan.n - o->body) / o->streams, time = at / o->streams;
    if (time < each) {
        uint64_t lane = pen__stream_lane(o->streams, position);
        uint64_t key = key_in_block(o, o->full_blocks + lane);
        at = lane * each + mix_piece(key, 0, each, time);
    }
    uint64_t dealt = o->stream_blocks * o->streams + at / k;
    if (dealt >= o->full_blocks)
        return o->body + at; /* the short block is behind as many samples in both counts */
    return pen__permute_at(&o->blocks, dealt) * k + at % k;
}

uint64_t pen__order_at(const PenOrder *o, uint64_t position)
{
    if (o->table)
        return pen__bucket_table_at(o->table, position);
    if (o->streams)
        return position < o->body ? body_at(o, position) : rest_at(o, position);
    if (o->plan.kind == PEN_ORDER_SEQUENTIAL)
        return position;
    return pen__permute_at(&o->samples, position);
}
