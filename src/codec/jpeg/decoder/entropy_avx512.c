/* SPDX-License-Identifier: Apache-2.0 */
/* Entropy decoding of 32 segments at once, each in a lane of two groups of 16: while one group
 * waits for its gather the other works. A token is gathered from the tables and its value scattered
 * to the coefficients, 32 bits at a time: the upper half, zero, falls on the next coefficient,
 * which is not written yet, because those of a segment come in their order. */
#include <immintrin.h>

#include "base/bytes.h"
#include "codec/jpeg/decoder/decoder_impl.h"

enum {
    GROUP = 16,
    SKIP_AT = 24,
    LENGTH_AT = 16,
    END_OF_BLOCK = 128 /* to skip: more than any run */
};

static const PenOwnLayout lanes_layout = {.length = LENGTH_AT,
                                          .skip = SKIP_AT,
                                          .value_bits = 16,
                                          .end_of_block = (uint32_t)END_OF_BLOCK << SKIP_AT};

/* ---- stuffed bytes ---- */

static bool unstuff(const uint8_t *data, size_t bytes, uint8_t *to, size_t *ret_bytes)
{
    const uint8_t *start = to;
    uint64_t behind = 0, wrong = 0; /* is the byte before the next one 0xFF? */
    for (size_t i = 0; i < bytes; i += 64) {
        uint64_t there = bytes - i >= 64 ? UINT64_MAX : (1ull << (bytes - i)) - 1;
        __m512i v = _mm512_maskz_loadu_epi8(there, data + i);
        uint64_t ff = _mm512_mask_cmpeq_epi8_mask(there, v, _mm512_set1_epi8(-1));
        uint64_t stuffed = (ff << 1 | behind) & there;
        wrong |= _mm512_mask_test_epi8_mask(stuffed, v, v);
        behind = there >> 63 ? ff >> 63 : ff && ff >> (bytes - i - 1);
        uint64_t kept = there & ~stuffed;
        _mm512_storeu_si512(to, _mm512_maskz_compress_epi8(kept, v));
        to += __builtin_popcountll(kept);
    }
    _mm512_storeu_si512(to, _mm512_setzero_si512());
    *ret_bytes = (size_t)(to - start);
    return !wrong && !behind;
}

/* ---- lanes ---- */

typedef struct Group {
    __m512i bit, limit;   /* where it is in the copies */
    __m512i window, more; /* the next bits, at the top, and those behind them */
    __m512i k;            /* the last coefficient of the block, -1 before DC */
    __m512i block, end;   /* its first coefficient */
    __m512i state;        /* number of the block in its MCU, and where its AC table begins */
    __mmask16 started, live, bad;
} Group;

/* What does not change. */
typedef struct Fixed {
    const PenOwnTables *tables;
    const uint8_t *copies;
    int16_t *coefs;
    __m512i next; /* state of the block behind one */
} Fixed;

#define INLINE static inline __attribute__((always_inline))

INLINE __m512i set(int32_t v)
{
    return _mm512_set1_epi32(v);
}

/* At least 57 bits. */
INLINE void open_window(Group *g, const Fixed *f)
{
    const __m512i swap =
        _mm512_broadcast_i32x4(_mm_setr_epi8(3, 2, 1, 0, 7, 6, 5, 4, 11, 10, 9, 8, 15, 14, 13, 12));
    __m512i at = _mm512_srli_epi32(g->bit, 3), used = _mm512_and_si512(g->bit, set(7));
    __m512i first = _mm512_i32gather_epi32(at, f->copies, 1);
    __m512i second = _mm512_i32gather_epi32(at, f->copies + 4, 1);
    first = _mm512_shuffle_epi8(first, swap);
    second = _mm512_shuffle_epi8(second, swap);
    g->window = _mm512_shldv_epi32(first, second, used);
    g->more = _mm512_sllv_epi32(second, used);
}

INLINE void use_bits(Group *g, __m512i n)
{
    g->bit = _mm512_add_epi32(g->bit, n);
    g->window = _mm512_shldv_epi32(g->window, g->more, n);
    g->more = _mm512_sllv_epi32(g->more, n);
}

/* Where the next token is looked up: DC tables stand before those for AC. */
INLINE __m512i place_of(const Group *g)
{
    __m512i bits = _mm512_srli_epi32(g->window, 32 - PEN_OWN_BITS);
    return _mm512_ternarylogic_epi32(bits, g->state, set(-PEN_OWN_ENTRIES), 0xF8); /* a | b & c */
}

INLINE __m512i look_up(const Group *g, const Fixed *f, __m512i place)
{
    return _mm512_mask_i32gather_epi32(_mm512_setzero_si512(), g->live, place, f->tables->fast, 4);
}

/* Does what the entries say; those that are 0 do nothing. */
INLINE void apply(Group *g, const Fixed *f, __m512i entry)
{
    const __m512i low = set(0xFFFF), last = set(63);
    g->k = _mm512_add_epi32(g->k, _mm512_srli_epi32(entry, SKIP_AT));
    _mm512_mask_i32scatter_epi32(f->coefs, _mm512_test_epi32_mask(entry, low),
                                 _mm512_add_epi32(g->block, _mm512_min_epi32(g->k, last)),
                                 _mm512_and_si512(entry, low), 2);
    __mmask16 ends = _mm512_cmpge_epi32_mask(g->k, last);
    g->block = _mm512_mask_add_epi32(g->block, ends, g->block, set(64));
    g->k = _mm512_mask_mov_epi32(g->k, ends, set(-1));
    __mmask16 done = _mm512_test_epi32_mask(entry, entry);
    __m512i ac = _mm512_mask_or_epi32(g->state, done, g->state, set(PEN_OWN_ENTRIES));
    g->state = _mm512_mask_permutexvar_epi32(ac, ends, g->state, f->next);
    g->live = _mm512_cmplt_epi32_mask(g->block, g->end);
}

INLINE __m512i length_of(__m512i entry)
{
    const __m512i pick = _mm512_broadcast_i32x4(
        _mm_setr_epi8(2, -1, -1, -1, 6, -1, -1, -1, 10, -1, -1, -1, 14, -1, -1, -1));
    return _mm512_shuffle_epi8(entry, pick);
}

/* A token in each lane whose token the lookup has whole; the others wait. */
INLINE void take_fast(Group *g, const Fixed *f)
{
    __m512i entry = look_up(g, f, place_of(g));
    use_bits(g, length_of(entry));
    apply(g, f, entry);
}

/* The lanes in `lanes` have codes longer than a lookup, or none. */
static __attribute__((noinline, cold)) __m512i find_long(Group *g, const Fixed *f, __m512i entry,
                                                         uint32_t lanes)
{
    int32_t bit[GROUP], place[GROUP], entries[GROUP];
    _mm512_storeu_si512(bit, g->bit);
    _mm512_storeu_si512(place, place_of(g));
    _mm512_storeu_si512(entries, entry);
    for (; lanes; lanes &= lanes - 1) {
        uint32_t i = (uint32_t)__builtin_ctz(lanes), at = (uint32_t)bit[i];
        uint64_t bits = __builtin_bswap64(pen__load64(f->copies + at / 8)) << at % 8;
        PenOwnToken t;
        pen__own_long_token(f->tables, (uint32_t)place[i] / PEN_OWN_ENTRIES, bits, &t);
        uint32_t value = (uint32_t)pen__own_value(bits << t.length, t.size) & 0xFFFF;
        uint32_t skip = t.skip ? t.skip : END_OF_BLOCK;
        entries[i] = (int32_t)(skip << SKIP_AT | (t.length + t.size) << LENGTH_AT | value);
        if (!t.length) {
            entries[i] = 0;
            g->bad |= (__mmask16)(1u << i);
        }
    }
    return _mm512_loadu_si512(entries);
}

/* The same for lanes that a lookup in `more` helps. */
INLINE __m512i find_more(const Fixed *f, __m512i window, __m512i place, __m512i entry,
                         __mmask16 lanes, __mmask16 *ret_long)
{
    __m512i more =
        _mm512_mask_i32gather_epi32(_mm512_setzero_si512(), lanes, place, f->tables->more, 4);
    __m512i length = _mm512_and_si512(more, set(255));
    __m512i size = _mm512_and_si512(_mm512_srli_epi32(more, PEN_OWN_MORE_SIZE), set(255));
    __m512i skip = _mm512_srli_epi32(more, PEN_OWN_MORE_SKIP);
    __m512i bits = _mm512_sllv_epi32(window, length);
    __m512i value = _mm512_srlv_epi32(bits, _mm512_sub_epi32(set(32), size));
    __m512i least = _mm512_sub_epi32(set(1), _mm512_sllv_epi32(set(1), size));
    value = _mm512_mask_add_epi32(value, (__mmask16)~_mm512_movepi32_mask(bits), value, least);
    __m512i found = _mm512_or_si512(
        _mm512_or_si512(_mm512_slli_epi32(skip, SKIP_AT), _mm512_and_si512(value, set(0xFFFF))),
        _mm512_slli_epi32(_mm512_add_epi32(length, size), LENGTH_AT));
    *ret_long = _mm512_mask_testn_epi32_mask(lanes, more, more);
    return _mm512_mask_mov_epi32(entry, lanes, found);
}

/* A token in every lane; the window is fresh. */
INLINE void take_any(Group *g, const Fixed *f)
{
    __m512i place = place_of(g), entry = look_up(g, f, place);
    __mmask16 waiting = _mm512_mask_testn_epi32_mask(g->live, entry, entry), is_long;
    entry = find_more(f, g->window, place, entry, waiting, &is_long);
    if (PEN_UNLIKELY(is_long))
        entry = find_long(g, f, entry, is_long);
    use_bits(g, length_of(entry));
    apply(g, f, entry);
}

/* Lanes that have reached their end, left their data, or met a code that does not exist. */
INLINE uint32_t ended(const Group *g)
{
    __mmask16 beyond = _mm512_cmpgt_epi32_mask(g->bit, g->limit);
    return (uint32_t)(g->started & ((__mmask16)~g->live | beyond | g->bad));
}

/* Five tokens at most in each lane: so many can be read behind the limit before it is looked at. */
INLINE uint32_t run_groups(Group *g, const Fixed *f, int n)
{
    uint32_t over;
    do {
        for (int i = 0; i < n; i++)
            open_window(&g[i], f);
        for (int i = 0; i < n; i++)
            take_any(&g[i], f);
        for (int t = 0; t < 2; t++)
            for (int i = 0; i < n; i++)
                take_fast(&g[i], f);
        for (int i = 0; i < n; i++)
            open_window(&g[i], f);
        for (int t = 0; t < 4; t++)
            for (int i = 0; i < n; i++)
                take_fast(&g[i], f);
        over = ended(&g[0]);
        if (n > 1)
            over |= ended(&g[1]) << GROUP;
    } while (PEN_LIKELY(!over));
    return over;
}

/* ---- between lanes and memory ---- */

static void load_group(const PenOwnLanes *l, uint32_t i, uint32_t active, Group *ret)
{
    uint32_t at = i * GROUP;
    ret->bit = _mm512_loadu_si512(l->bit + at);
    ret->limit = _mm512_loadu_si512(l->limit + at);
    ret->k = _mm512_loadu_si512(l->k + at);
    ret->block = _mm512_loadu_si512(l->block + at);
    ret->end = _mm512_loadu_si512(l->end + at);
    ret->state = _mm512_loadu_si512(l->state + at);
    ret->started = (__mmask16)(active >> at);
    ret->live = _mm512_cmplt_epi32_mask(ret->block, ret->end);
    ret->bad = 0;
}

static void save_group(PenOwnLanes *l, uint32_t i, const Group *g)
{
    uint32_t at = i * GROUP;
    _mm512_storeu_si512(l->bit + at, g->bit);
    _mm512_storeu_si512(l->k + at, g->k);
    _mm512_storeu_si512(l->block + at, g->block);
    _mm512_storeu_si512(l->state + at, g->state);
    l->bad |= (uint32_t)g->bad << at;
}

static int32_t state_of(const PenOwn *own, uint32_t block)
{
    bool chroma = block >= (uint32_t)(own->head.h * own->head.v);
    uint32_t table = chroma ? PEN_OWN_DC_CHROMA : PEN_OWN_DC_LUMA;
    return (int32_t)(table * PEN_OWN_ENTRIES + block);
}

static Fixed make_fixed(const PenOwn *own)
{
    int32_t next[GROUP] = {0};
    for (uint32_t i = 0; i < own->mcu_blocks; i++)
        next[i] = state_of(own, (i + 1) % own->mcu_blocks);
    return (Fixed){.tables = own->tables,
                   .copies = own->copies,
                   .coefs = own->coefs,
                   .next = _mm512_loadu_si512(next)};
}

static uint32_t run(PenOwn *own, uint32_t active)
{
    Fixed f = make_fixed(own);
    Group g[2];
    uint32_t over;
    if (active >> GROUP && active & 0xFFFF) {
        load_group(&own->lanes, 0, active, &g[0]);
        load_group(&own->lanes, 1, active, &g[1]);
        over = run_groups(g, &f, 2);
        save_group(&own->lanes, 0, &g[0]);
        save_group(&own->lanes, 1, &g[1]);
        return over;
    }
    uint32_t i = active >> GROUP != 0;
    load_group(&own->lanes, i, active, &g[0]);
    over = run_groups(g, &f, 1) << i * GROUP;
    save_group(&own->lanes, i, &g[0]);
    return over;
}

static void start(PenOwn *own, uint32_t lane, const PenOwnJob *job, uint32_t slot, size_t bytes)
{
    PenOwnLanes *l = &own->lanes;
    l->bit[lane] = (int32_t)(lane * own->copy_bytes * 8 + job->from.bit);
    l->limit[lane] = (int32_t)((lane * own->copy_bytes + bytes) * 8);
    l->k[lane] = -1;
    l->block[lane] = (int32_t)((slot * own->slot_blocks + job->first_block) * 64);
    l->end[lane] = l->block[lane] + (int32_t)(job->n_mcus * own->mcu_blocks * 64);
    l->state[lane] = state_of(own, 0);
    l->bad &= ~(1u << lane);
}

static bool good(const PenOwn *own, uint32_t lane)
{
    const PenOwnLanes *l = &own->lanes;
    return l->block[lane] >= l->end[lane] && l->bit[lane] <= l->limit[lane] &&
           !(l->bad >> lane & 1);
}

static uint64_t used(const PenOwn *own, uint32_t lane)
{
    return (uint64_t)own->lanes.bit[lane] - lane * own->copy_bytes * 8;
}

const PenOwnEntropy pen__own_entropy_avx512 = {.tier = "avx512",
                                               .lanes = 2 * GROUP,
                                               .spare = PEN_OWN_SPARE,
                                               .order = PEN_JPEG_ZIGZAG,
                                               .layout = &lanes_layout,
                                               .unstuff = unstuff,
                                               .start = start,
                                               .run = run,
                                               .good = good,
                                               .used = used};
