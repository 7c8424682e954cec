/* SPDX-License-Identifier: Apache-2.0 */
/* Tokens from blocks of coefficients. */
#include "codec/jpeg/transcode/tokens.h"

static const char where[] = "codec/jpeg";

const uint8_t pen__zigzag[64] = {
    0,  1,  8,  16, 9,  2,  3,  10, 17, 24, 32, 25, 18, 11, 4,  5,  12, 19, 26, 33, 40, 48,
    41, 34, 27, 20, 13, 6,  7,  14, 21, 28, 35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23,
    30, 37, 44, 51, 58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63,
};

typedef struct Writer {
    PenTokens *tokens;
    uint32_t *at;
    int last_dc[3];
    uint32_t worst; /* how far any coefficient is over the size allowed */
} Writer;

/* Room for `n` more tokens: NULL when there is no memory. */
static uint32_t *room_for(PenTokens *t, size_t n)
{
    if (t->buf->cap - t->buf->bytes < n * sizeof(uint32_t) &&
        pen__buf_reserve(t->buf, n * sizeof(uint32_t)) < 0)
        return NULL;
    return (uint32_t *)(void *)(t->buf->data + t->buf->bytes);
}

static void put_dc(Writer *w, size_t plane, uint32_t table, int dc)
{
    int diff = dc - w->last_dc[plane];
    uint32_t size = pen__bit_size(diff);
    w->worst |= size > PEN_DC_BITS;
    w->last_dc[plane] = dc;
    w->at = pen__token_value(w->tokens, w->at, table + PEN_TOKEN_DC, diff, size & 15);
}

/* Which of the 63 AC coefficients, in zigzag order, are not zero. */
static uint64_t order(const int16_t *block, int16_t ordered[64])
{
    uint64_t mask = 0;
    for (size_t k = 1; k < 64; k++) {
        ordered[k] = block[pen__zigzag[k]];
        mask |= (uint64_t)(ordered[k] != 0) << k;
    }
    return mask;
}

static void put_ac(Writer *w, uint32_t table, const int16_t *block)
{
    int16_t ordered[64];
    PenTokens *t = w->tokens;
    uint32_t *at = w->at, index = table + PEN_TOKEN_AC, last = 0;
    for (uint64_t mask = order(block, ordered); mask; mask &= mask - 1) {
        uint32_t k = (uint32_t)__builtin_ctzll(mask), run = k - last - 1;
        for (; run > 15; run -= 16)
            at = pen__token_put(t, at, index + PEN_ZRL, 0);
        uint32_t size = pen__bit_size(ordered[k]);
        w->worst |= size > PEN_AC_BITS;
        at = pen__token_value(t, at, index + (run << 4), ordered[k], size & 15);
        last = k;
    }
    if (last < 63)
        at = pen__token_put(t, at, index + PEN_EOB, 0);
    w->at = at;
}

static void put_mcu(Writer *w, const PenBaselinePlan *plan, uint32_t mx, uint32_t my)
{
    for (size_t i = 0; i < plan->frame->n_planes; i++) {
        const PenJpegPlane *p = &plan->frame->planes[i];
        uint32_t h = i ? 1 : plan->h_samp, v = i ? 1 : plan->v_samp;
        uint32_t table = i ? PEN_TOKEN_CHROMA : 0;
        for (uint32_t b = 0; b < h * v; b++) {
            uint32_t x = mx * h + b % h, y = my * v + b / h;
            if (x < p->blocks_x && y < p->blocks_y) {
                put_dc(w, i, table, p->rows[y][x][0]);
                put_ac(w, table, p->rows[y][x]);
            } else { /* padding to a whole MCU: cheapest when it repeats the block before */
                put_dc(w, i, table, w->last_dc[i]);
                w->at = pen__token_put(w->tokens, w->at, table + PEN_TOKEN_AC + PEN_EOB, 0);
            }
        }
    }
}

int pen__tokens_of_blocks(PenTokens *t, const PenBaselinePlan *plan, PenError *reterr)
{
    enum { MCUS = 8 }; /* there is room for so many at a time */
    const PenTileGeometry *g = &plan->geometry;
    uint32_t n_mcus = g->mcus_x * g->mcus_y;
    Writer w = {.tokens = t};
    for (uint32_t first = 0; first < n_mcus; first += MCUS) {
        uint32_t n = PEN_MIN(n_mcus - first, (uint32_t)MCUS);
        uint32_t *start = room_for(t, (size_t)n * PEN_MCU_TOKENS);
        if (!start)
            return pen__fail_memory(reterr, where, "tokens");
        w.at = start;
        for (uint32_t i = first; i < first + n; i++)
            put_mcu(&w, plan, i % g->mcus_x, i / g->mcus_x);
        t->buf->bytes += (size_t)(w.at - start) * sizeof *start;
    }
    return w.worst ? PEN_END : PEN_OK;
}
