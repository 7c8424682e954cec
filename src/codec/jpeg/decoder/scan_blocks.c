/* SPDX-License-Identifier: Apache-2.0 */
/* Lanes that read a scan: where they begin, and where they meet. */
#include <string.h>

#include "base/bytes.h"
#include "base/machine/cpu.h"
#include "codec/jpeg/decoder/scan_impl.h"

enum {
    TO_END = PEN_OWN_STEP_BLOCK - 1,
    LAST_PAIR = 63 - 16,   /* from here on the first of two tokens could end the block */
    LEAST_BITS = 16 << 10, /* of a lane: more than any MCU has */
    MOST_BITS = 192 << 10, /* of a lane: what is read stays in the cache */
    MEET_BITS = 2 << 10    /* read by two lanes before the first is asked whether it has met */
};

const PenOwnLayout pen__scan_layout = {.length = PEN_SCAN_LENGTH,
                                       .skip = PEN_SCAN_SKIP,
                                       .dc = TO_END << PEN_SCAN_TO_END,
                                       .end_of_block = TO_END << PEN_SCAN_TO_END};

/* Does the DC token of the next block follow? */
static bool is_end(uint64_t place)
{
    return place % PEN_OWN_STEP_BLOCK == 63 || place % PEN_OWN_STEP_BLOCK == TO_END;
}

/* ---- pairs ---- */

/* What follows a token, by the `left` bits of a lookup behind it: 1 << left entries from there on.
 */
static void make_patterns(const PenOwnTables *t, uint32_t table, PenScanPairs *p)
{
    const uint32_t *fast = t->fast + (size_t)table * PEN_OWN_ENTRIES;
    const uint32_t *more = t->more + (size_t)table * PEN_OWN_ENTRIES;
    for (uint32_t left = 1; left < PEN_OWN_BITS; left++)
        for (uint32_t i = 0, n = 1u << left; i < n; i++) {
            uint32_t second = i << (PEN_OWN_BITS - left), e = fast[second];
            bool seen = e && (more[second] & 255) <= left;
            p->add[n + i] = seen ? e : 0;
            p->keep[n + i] = seen && e >> PEN_SCAN_TO_END & 255 ? 255 : UINT32_MAX;
        }
}

static void make_pairs(const PenOwnTables *t, uint32_t table, PenScanPairs *p, uint32_t *ret)
{
    const uint32_t *fast = t->fast + (size_t)table * PEN_OWN_ENTRIES;
    make_patterns(t, table, p);
    for (uint32_t i = 0, n; i < PEN_OWN_ENTRIES; i += n) {
        uint32_t e = fast[i], length = e & 255;
        bool alone = !e || e >> PEN_SCAN_TO_END & 255 || length >= PEN_OWN_BITS;
        n = alone ? 1 : PEN_OWN_ENTRIES >> length;
        for (uint32_t k = 0; k < n; k++)
            ret[i + k] = alone ? e : (e & p->keep[n + k]) + p->add[n + k];
    }
}

static bool is_same(const PenHuffTable *a, const PenHuffTable *b)
{
    return a->n_symbols == b->n_symbols &&
           memcmp(a->n_codes + 1, b->n_codes + 1, sizeof a->n_codes - 1) == 0 &&
           memcmp(a->symbols, b->symbols, a->n_symbols) == 0;
}

static void set_pairs(PenScanPairs *p, const PenOwnTables *t, uint32_t components)
{
    for (uint32_t i = 0; i < (components == 1 ? 1 : 2); i++) {
        uint32_t table = i ? PEN_OWN_AC_CHROMA : PEN_OWN_AC_LUMA;
        if (is_same(&p->made_of[i], &t->built[table]))
            continue;
        make_pairs(t, table, p, p->entries[i]);
        p->made_of[i] = t->built[table];
    }
}

/* ---- steps ---- */

static const uint32_t *table_of(const PenScanBlocks *scan, const PenOwnHead *head, uint32_t slot,
                                uint32_t k)
{
    static const uint32_t none[PEN_OWN_ENTRIES];
    bool ends = is_end(k);
    uint32_t luma = head->h * head->v, block = (slot + ends + scan->steps.period - 1);
    if (k >= 63 && !ends)
        return none;
    bool chroma = block % scan->steps.mcu_blocks >= luma;
    uint32_t table = chroma ? PEN_OWN_DC_CHROMA : PEN_OWN_DC_LUMA;
    if (k < LAST_PAIR)
        return scan->pairs.entries[chroma];
    return scan->steps.tables->fast + (table + !ends) * PEN_OWN_ENTRIES;
}

void pen__scan_steps(PenScanBlocks *scan, const PenOwnTables *tables, const PenOwnHead *head)
{
    PenScanSteps *s = &scan->steps;
    uint32_t blocks = head->components == 1 ? 1 : head->h * head->v + 2u;
    set_pairs(&scan->pairs, tables, head->components);
    scan->kernels = &pen__scan_c;
#ifdef __x86_64__
    if (pen__cpu() != PEN_CPU_C)
        scan->kernels = &pen__scan_avx2;
#endif
    if (s->tables == tables && s->mcu_blocks == blocks)
        return;
    s->tables = tables;
    s->pairs = &scan->pairs;
    s->mcu_blocks = blocks;
    s->period = PEN_SCAN_PERIOD / blocks * blocks;
    for (uint32_t i = 0; i < PEN_LEN(s->table); i++)
        s->table[i] = table_of(scan, head, i / PEN_OWN_STEP_BLOCK, i % PEN_OWN_STEP_BLOCK);
}

/* ---- tokens ---- */

/* A lane that has begun at some place may have come to what is no code; it begins again. */
static void give_up(const PenScanSteps *s, PenScanLane *l)
{
    l->is_over = l->is_sure || l->bit + 8 > s->end;
    if (l->is_over) {
        l->stop = -1;
        return;
    }
    l->bit = (l->bit / 8 + 1) * 8;
    l->at = TO_END;
    l->list = l->first;
}

/* Of the table of the next token. */
static uint32_t number_of(const PenScanSteps *s, uint64_t place)
{
    const uint32_t *table = s->table[place];
    if (table == s->pairs->entries[0])
        return PEN_OWN_AC_LUMA;
    if (table == s->pairs->entries[1])
        return PEN_OWN_AC_CHROMA;
    return (uint32_t)((size_t)(table - s->tables->fast) / PEN_OWN_ENTRIES);
}

__attribute__((noinline, cold)) void pen__scan_slowly(const PenScanSteps *s, PenScanLane *l)
{
    bool ends = is_end(l->at);
    PenOwnToken k = {.length = 0};
    if (ends || l->at % PEN_OWN_STEP_BLOCK < 63) {
        uint64_t bits = __builtin_bswap64(pen__load64(s->data + l->bit / 8)) << l->bit % 8;
        pen__own_long_token(s->tables, number_of(s, l->at), bits, &k);
    }
    if (!k.length) {
        give_up(s, l);
        return;
    }
    l->bit += k.length + k.size;
    l->at = (l->at | (ends || !k.skip ? TO_END : 0)) + k.skip;
}

/* ---- lanes ---- */

static void start_lane(PenScanBlocks *scan, uint32_t i, uint64_t bit, uint64_t stop, bool is_sure)
{
    uint32_t *list = scan->lists[i];
    scan->lanes[i] = (PenScanLane){.bit = bit,
                                   .at = TO_END,
                                   .stop = (int64_t)PEN_MIN(stop, scan->steps.end),
                                   .list = list,
                                   .first = list,
                                   .limit = list + PEN_SCAN_LIST,
                                   .is_sure = is_sure};
}

static bool is_running(const PenScanLane *l)
{
    return l->stop >= (int64_t)l->bit && l->list <= l->limit;
}

/* All lanes from `first` on, to their ends. */
static void run_lanes(PenScanBlocks *scan, uint32_t first, uint32_t end)
{
    for (;;) {
        PenScanLane *lanes[PEN_SCAN_LANES];
        uint32_t n = 0;
        for (uint32_t i = first; i < end; i++)
            if (is_running(&scan->lanes[i]))
                lanes[n++] = &scan->lanes[i];
        if (!n)
            return;
        scan->kernels->run(&scan->steps, lanes, n);
    }
}

/* Blocks of which the beginning is known. */
static uint32_t known(const PenScanLane *l)
{
    return (uint32_t)(l->list - l->first) + (uint32_t)(l->at / PEN_OWN_STEP_BLOCK) +
           (l->is_over && is_end(l->at));
}

/* Blocks [*from, end) of a lane are those of the scan. */
static void take(PenScanBlocks *scan, const PenScanLane *l, uint32_t *from, uint32_t end)
{
    uint32_t n = (uint32_t)PEN_MIN((uint64_t)(end - *from), scan->left);
    scan->take(scan->ctx, l->first + *from, n);
    *from += n;
    scan->left -= n;
    scan->bit = l->first[*from];
}

/* Whole MCUs; then the lane has read nothing behind them, and its list is empty. */
static void take_all(PenScanBlocks *scan, uint32_t i, uint32_t *from)
{
    PenScanLane *l = &scan->lanes[i];
    uint32_t n = known(l), end = n ? (n - 1) / scan->steps.mcu_blocks * scan->steps.mcu_blocks : 0;
    if (end <= *from && l->list <= l->limit)
        return;
    if (end > *from)
        take(scan, l, from, end);
    start_lane(scan, i, scan->bit, scan->bit, true);
    *from = 0;
}

/* Where an MCU of `a` from *x on is one of `b` from *y on. If there is none, *y is where to go on:
 * all before it is before what `a` has read. */
static bool find_same(const PenScanBlocks *scan, uint32_t a, uint32_t b, uint32_t *x, uint32_t *y)
{
    const uint32_t *p = scan->lanes[a].first, *q = scan->lanes[b].first;
    uint32_t i = *x, n = known(&scan->lanes[a]), k = *y, m = known(&scan->lanes[b]);
    uint32_t step = scan->steps.mcu_blocks;
    while (i < n && k < m && p[i] != q[k])
        if (p[i] < q[k])
            i += step;
        else
            k += step;
    *x = i;
    *y = k;
    return i < n && k < m;
}

/* The lane `a`, which is right, reads on until it meets `b`, and takes what is before. False: it
 * does not. */
static bool join(PenScanBlocks *scan, uint32_t a, uint32_t b, uint32_t *from)
{
    PenScanLane *l = &scan->lanes[a];
    uint32_t m = known(&scan->lanes[b]), x = *from, y = 0;
    while (!find_same(scan, a, b, &x, &y)) {
        take_all(scan, a, from);
        if (!scan->left || l->is_over || !m || l->bit > scan->lanes[b].first[m - 1] ||
            l->bit >= scan->steps.end)
            return false;
        l->stop = (int64_t)PEN_MIN(l->bit + MEET_BITS, scan->steps.end);
        run_lanes(scan, a, a + 1);
        x = *from;
    }
    take(scan, l, from, x);
    *from = y;
    scan->lanes[b].is_sure = true;
    return true;
}

/* Bits that each of the lanes is to read now. */
static uint64_t plan(const PenScanBlocks *scan, uint32_t *ret_lanes)
{
    uint64_t most = PEN_MIN(scan->dense * (uint64_t)(PEN_SCAN_LIST / 2), (uint64_t)MOST_BITS);
    uint64_t bits = PEN_MIN(scan->left * scan->dense, scan->steps.end - scan->bit);
    uint64_t lanes = PEN_MAX(PEN_MIN(bits / LEAST_BITS, (uint64_t)PEN_SCAN_LANES), 1u);
    uint64_t rounds = bits / (lanes * most) + 1;
    *ret_lanes = (uint32_t)lanes;
    return PEN_MAX(bits / (rounds * lanes) + 1, (uint64_t)LEAST_BITS);
}

static void read_some(PenScanBlocks *scan)
{
    uint32_t n, lane = 0, from = 0;
    uint64_t bits = plan(scan, &n), bit = scan->bit;
    for (uint32_t i = 0; i < n; i++) {
        uint64_t first = bit + i * bits, stop = first + bits + (i + 1 < n ? MEET_BITS : 0);
        start_lane(scan, i, i ? first / 8 * 8 : first, stop, !i);
    }
    run_lanes(scan, 0, n);
    for (uint32_t i = 1; i < n && scan->left; i++)
        if (join(scan, lane, i, &from))
            lane = i;
    if (scan->left)
        take_all(scan, lane, &from);
}

bool pen__scan_blocks(PenScanBlocks *scan, uint64_t n)
{
    scan->left = n;
    while (scan->left) {
        uint64_t bit = scan->bit;
        read_some(scan);
        if (scan->bit == bit)
            return false;
    }
    return scan->bit <= scan->steps.end;
}
