/* SPDX-License-Identifier: Apache-2.0 */
#include "slow_scan.h"

#include <stdlib.h>

#include "base/attr.h"

typedef struct Slow {
    const uint8_t *data;
    size_t bytes;
    size_t at; /* byte of the next bit */
    uint32_t bit;
    bool bad;
} Slow;

static uint32_t next_bit(Slow *s)
{
    if (s->at + 1 >= s->bytes || (s->data[s->at] == 0xFF && s->data[s->at + 1] != 0)) {
        s->bad = true;
        return 0;
    }
    uint32_t v = s->data[s->at] >> (7 - s->bit) & 1;
    if (++s->bit == 8) {
        s->at += s->data[s->at] == 0xFF ? 2 : 1;
        s->bit = 0;
    }
    return v;
}

static uint32_t next_symbol(Slow *s, const PenHuffSpec *h)
{
    uint32_t code = 0, first = 0, place = 0;
    for (uint32_t length = 1; length <= 16; length++) {
        code = code << 1 | next_bit(s);
        if (code - first < h->n_codes[length])
            return h->symbols[place + code - first];
        place += h->n_codes[length];
        first = (first + h->n_codes[length]) << 1;
    }
    s->bad = true;
    return 0;
}

static int next_value(Slow *s, uint32_t size)
{
    int v = 0;
    for (uint32_t i = 0; i < size; i++)
        v = 2 * v + (int)next_bit(s);
    return size && v < 1 << (size - 1) ? v - (1 << size) + 1 : v;
}

static int read_block(Slow *s, const PenHuffSpec *dc, const PenHuffSpec *ac)
{
    int d = next_value(s, next_symbol(s, dc) & 15);
    for (uint32_t k = 1; k < 64 && !s->bad;) {
        uint32_t symbol = next_symbol(s, ac);
        if (!(symbol & 15) && symbol != 0xF0)
            break;
        k += (symbol >> 4) + 1;
        s->bad |= k > 64;
        next_value(s, symbol & 15);
    }
    return d;
}

static void read_mcu(Slow *s, const PenJpegHeader *h, int dc[3])
{
    for (uint32_t c = 0; c < h->info.components; c++) {
        uint32_t blocks = h->info.components == 1 ? 1u : h->info.h_samp[c] * h->info.v_samp[c];
        uint8_t tables = h->scan[2 + 2 * c];
        for (uint32_t i = 0; i < blocks; i++)
            dc[c] += read_block(s, &h->dc[tables >> 4], &h->ac[tables & 15]);
    }
}

/* Bits that fill the last byte, and the marker. */
static void read_marker(Slow *s, uint8_t code)
{
    while (s->bit && !s->bad)
        next_bit(s);
    s->bad |= s->at + 2 > s->bytes || s->data[s->at] != 0xFF || s->data[s->at + 1] != code;
    s->at += 2;
}

static uint32_t count_mcus(const PenJpegInfo *info)
{
    uint32_t h = 8, v = 8;
    for (uint32_t c = 0; c < info->components && info->components > 1; c++) {
        h = PEN_MAX(h, 8u * info->h_samp[c]);
        v = PEN_MAX(v, 8u * info->v_samp[c]);
    }
    return (info->width + h - 1) / h * ((info->height + v - 1) / v);
}

bool read_slowly(const uint8_t *data, size_t bytes, const PenJpegHeader *header, SlowScan *ret)
{
    size_t head = header->info.head_bytes;
    uint32_t restart = header->info.restart_interval, n = count_mcus(&header->info);
    Slow s = {.data = data + head, .bytes = bytes - head};
    int dc[3] = {0};
    *ret = (SlowScan){.mcus = calloc(n, sizeof(PenEntry)), .n_mcus = n};
    if (!ret->mcus)
        abort();
    for (uint32_t i = 0; i < n && !s.bad; i++) {
        if (restart && i && i % restart == 0) {
            read_marker(&s, (uint8_t)(0xD0 + (i / restart - 1) % 8));
            dc[0] = dc[1] = dc[2] = 0;
        }
        ret->mcus[i] =
            (PenEntry){s.at * 8 + s.bit, {(int16_t)dc[0], (int16_t)dc[1], (int16_t)dc[2]}};
        read_mcu(&s, header, dc);
        for (int c = 0; c < 3; c++)
            s.bad |= dc[c] != (int16_t)dc[c];
    }
    read_marker(&s, 0xD9);
    ret->scan_bytes = s.at - 2;
    return !s.bad;
}
