/* SPDX-License-Identifier: Apache-2.0 */
#include "codec/jpeg/quality.h"

#include "base/bytes.h"

/* The example tables of ITU-T T.81 annex K.1, in zigzag order. */
static const uint8_t luma_base[64] = {
    16, 11, 12,  14,  12,  10, 16, 14,  13,  14,  18,  17,  16, 19,  24,  40,
    26, 24, 22,  22,  24,  49, 35, 37,  29,  40,  58,  51,  61, 60,  57,  51,
    56, 55, 64,  72,  92,  78, 64, 68,  87,  69,  55,  56,  80, 109, 81,  87,
    95, 98, 103, 104, 103, 62, 77, 113, 121, 112, 100, 120, 92, 101, 103, 99,
};
static const uint8_t chroma_base[64] = {
    17, 18, 18, 24, 21, 24, 47, 26, 26, 47, 99, 66, 56, 66, 99, 99, 99, 99, 99, 99, 99, 99,
    99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99,
    99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99,
};

static unsigned percent_of(int quality)
{
    return (unsigned)(quality < 50 ? 5000 / quality : 200 - quality * 2);
}

/* The value that the IJG's software makes of one in a base table. */
static unsigned scaled(unsigned base, unsigned percent)
{
    unsigned v = (base * percent + 50) / 100;
    return v < 1 ? 1 : v;
}

/* Are these the IJG's tables of that quality, held to 8 bits or (as its tools can) to 15? */
static bool is_scaled(const uint16_t table[64], const uint8_t base[64], int quality)
{
    unsigned percent = percent_of(quality);
    for (size_t i = 0; i < 64; i++) {
        unsigned v = scaled(base[i], percent);
        if (table[i] != v && !(v > 255 && table[i] == 255))
            return false;
    }
    return true;
}

/* Mean over the table of value / base, in percent. */
static double mean_percent(const uint16_t table[64], const uint8_t base[64])
{
    double sum = 0;
    for (size_t i = 0; i < 64; i++)
        sum += 100.0 * table[i] / base[i];
    return sum / 64;
}

int pen__quant_quality(const uint16_t luma[64], const uint16_t *chroma)
{
    for (int q = 1; q <= 100; q++)
        if (is_scaled(luma, luma_base, q) && (!chroma || is_scaled(chroma, chroma_base, q)))
            return q;
    double percent = mean_percent(luma, luma_base);
    if (chroma)
        percent = (percent + mean_percent(chroma, chroma_base)) / 2;
    double q = percent <= 100 ? (200 - percent) / 2 : 5000 / percent;
    return q < 1 ? 1 : q > 100 ? 100 : (int)(q + 0.5);
}

static void load_values(const PenQuantSpec *table, uint16_t ret[64])
{
    for (size_t i = 0; i < 64; i++)
        ret[i] = table->wide ? (uint16_t)pen__load16be(table->values + 2 * i) : table->values[i];
}

int pen__jpeg_quality(const PenJpegHeader *header)
{
    uint16_t luma[64], chroma[64];
    uint8_t first = header->quant_slot[0], second = header->quant_slot[1];
    if (!header->quant[first].values)
        return 0;
    load_values(&header->quant[first], luma);
    if (header->info.components < 3 || second == first || !header->quant[second].values)
        return pen__quant_quality(luma, NULL);
    load_values(&header->quant[second], chroma);
    return pen__quant_quality(luma, chroma);
}

/* ---- quality factor -------------------------------------------------------------------------- */

/* How coarse tables are: their sum, and that of some values. With two tables or more, the values
 * of the first two count; with only the first, its own. */
typedef struct Coarseness {
    unsigned some, all;
} Coarseness;

enum { SOME_A = 5, SOME_B = 56 }; /* in zigzag order: the values 2 and 53 of a row by row table */

static unsigned baseline(unsigned base, int quality)
{
    return PEN_MIN(scaled(base, percent_of(quality)), 255u);
}

static Coarseness of_quality(int quality, bool two)
{
    Coarseness c = {.some = baseline(luma_base[SOME_A], quality) +
                            baseline(luma_base[SOME_B], quality)};
    if (two)
        c.some += baseline(chroma_base[0], quality) + baseline(chroma_base[63], quality);
    for (size_t i = 0; i < 64; i++)
        c.all += baseline(luma_base[i], quality) + (two ? baseline(chroma_base[i], quality) : 0);
    return c;
}

static Coarseness of_file(const PenJpegHeader *header, bool two)
{
    Coarseness c = {0};
    uint16_t tables[4][64] = {0};
    for (size_t t = 0; t < 4; t++) {
        if (!header->quant[t].values)
            continue;
        load_values(&header->quant[t], tables[t]);
        for (size_t i = 0; i < 64; i++)
            c.all += tables[t][i];
    }
    c.some = (unsigned)tables[0][SOME_A] + tables[0][SOME_B];
    if (two)
        c.some += (unsigned)tables[1][0] + tables[1][63];
    return c;
}

/* The lowest quality whose tables are finer in one of the two measures decides. Below 51 it counts
 * only if the file is at most as coarse in the other measure. */
int pen__jpeg_quality_factor(const PenJpegHeader *header)
{
    if (!header->quant[0].values)
        return 0;
    bool two = header->quant[1].values != NULL;
    Coarseness file = of_file(header, two);
    for (int q = 1; q <= 100; q++) {
        Coarseness ijg = of_quality(q, two);
        if (file.some < ijg.some && file.all < ijg.all)
            continue;
        bool fits = file.some <= ijg.some && file.all <= ijg.all;
        return fits || q > 50 ? q : 0;
    }
    return 0;
}
