/* SPDX-License-Identifier: Apache-2.0 */
/* Huffman tables as tables of whole tokens: the next 12 bits give the code, and the value behind it
 * when that is in them too, as it is in 98 of 100 cases. */
#include <string.h>

#include "codec/jpeg/decoder/decoder_impl.h"

/* One code, and the entries that begin with it. */
typedef struct Code {
    uint32_t first, n; /* entries */
    uint32_t length, symbol;
} Code;

static void fill(uint32_t *at, uint32_t n, uint32_t value)
{
    for (uint32_t i = 0; i < n; i++)
        at[i] = value;
}

/* Each value of `size` bits fills 1 << spare entries, the negative ones first. Values grow by one:
 * plain loops over the entries, which the compiler makes of vectors. */
static void fill_values(const PenOwnLayout *l, uint32_t *at, uint32_t entry, uint32_t size,
                        uint32_t spare)
{
    uint32_t half = 1u << (size - 1 + spare), shift = l->value, mask = (1u << l->value_bits) - 1;
    uint32_t least = 1u - (1u << size), above = 1u << (size - 1);
    for (uint32_t i = 0; i < half; i++)
        at[i] = entry | (((i >> spare) + least) & mask) << shift;
    for (uint32_t i = 0; i < half; i++)
        at[half + i] = entry | (((i >> spare) + above) & mask) << shift;
}

static bool is_dc(uint32_t table)
{
    return table == PEN_OWN_DC_LUMA || table == PEN_OWN_DC_CHROMA;
}

/* libjpeg takes all symbols without a value as the end of the block, but that for 16 zeros. */
static uint32_t skip_of(uint32_t table, uint32_t symbol)
{
    if (is_dc(table))
        return 1;
    return symbol & 15 || symbol == 0xF0 ? (symbol >> 4) + 1 : 0;
}

static void fill_code(PenOwnTables *t, uint32_t table, const Code *c)
{
    const PenOwnLayout *l = t->layout;
    uint32_t *at = t->fast + table * PEN_OWN_ENTRIES + c->first;
    uint32_t size = c->symbol & 15, left = PEN_OWN_BITS - c->length;
    uint32_t skip = skip_of(table, c->symbol);
    uint32_t entry = (c->length + size) << l->length | skip << l->skip | (is_dc(table) ? l->dc : 0);
    bool known = !size || !l->value_bits, fits = size <= left && size < l->value_bits;
    if (!skip)
        fill(at, c->n, c->length << l->length | l->end_of_block);
    else if (known)
        fill(at, c->n, entry);
    else if (fits)
        fill_values(l, at, entry, size, left - size);
    else
        fill(at, c->n, l->unfinished);
    if (!l->value_bits || (skip && !known && !fits))
        fill(t->more + table * PEN_OWN_ENTRIES + c->first, c->n,
             c->length << PEN_OWN_MORE_LENGTH | size << PEN_OWN_MORE_SIZE |
                 skip << PEN_OWN_MORE_SKIP);
}

/* As libjpeg checks them. */
static bool symbols_fit(uint32_t table, const PenHuffTable *h)
{
    for (uint32_t i = 0; is_dc(table) && i < h->n_symbols; i++)
        if (h->symbols[i] > 15)
            return false;
    return true;
}

static bool build(PenOwnTables *t, uint32_t table, const PenHuffTable *h)
{
    PenOwnCodes *codes = &t->codes[table];
    uint32_t code = 0, place = 0, at = 0;
    if (!symbols_fit(table, h))
        return false;
    memcpy(codes->symbols, h->symbols, sizeof codes->symbols);
    for (uint32_t length = 1; length <= 16; length++, code <<= 1) {
        codes->first[length] = (int32_t)place - (int32_t)code;
        for (uint32_t i = 0; i < h->n_codes[length]; i++, code++, place++) {
            if (code + 1 >= 1u << length) /* all ones, or more than there are */
                return false;
            if (length > PEN_OWN_BITS)
                continue;
            Code c = {at, PEN_OWN_ENTRIES >> length, length, h->symbols[place]};
            fill_code(t, table, &c);
            at += c.n;
        }
        codes->limit[length] = code << (16 - length);
    }
    fill(t->fast + table * PEN_OWN_ENTRIES + at, PEN_OWN_ENTRIES - at, t->layout->unfinished);
    fill(t->more + table * PEN_OWN_ENTRIES + at, PEN_OWN_ENTRIES - at, 0);
    return true;
}

/* A copy: the file is released before the next image. */
static void copy_table(const PenHuffSpec *from, PenHuffTable *to)
{
    *to = (PenHuffTable){.n_symbols = 0};
    for (size_t k = 1; k <= 16; k++)
        to->n_symbols += to->n_codes[k] = from->n_codes[k];
    memcpy(to->symbols, from->symbols, to->n_symbols);
}

/* Images that were encoded alike have the same tables. */
static bool is_built(const PenOwnTables *t, uint32_t table, const PenHuffSpec *h)
{
    const PenHuffTable *b = &t->built[table];
    return b->n_symbols && memcmp(b->n_codes + 1, h->n_codes + 1, 16) == 0 &&
           memcmp(b->symbols, h->symbols, b->n_symbols) == 0;
}

int pen__own_tables(PenOwnTables *t, const PenOwnLayout *layout, const PenOwnHead *head)
{
    uint32_t n = head->components == 1 ? 2 : PEN_OWN_TABLES;
    if (t->layout != layout) {
        memset(t->built, 0, sizeof t->built);
        t->layout = layout;
        fill(t->fast + PEN_OWN_TABLES * PEN_OWN_ENTRIES, PEN_OWN_ENTRIES,
             1u << layout->skip | layout->dc);
    }
    for (uint32_t i = 0; i < n; i++) {
        if (is_built(t, i, &head->huff[i]))
            continue;
        copy_table(&head->huff[i], &t->built[i]);
        if (build(t, i, &t->built[i]))
            continue;
        t->built[i].n_symbols = 0;
        return PEN_END;
    }
    return PEN_OK;
}

void pen__own_long_token(const PenOwnTables *t, uint32_t table, uint64_t bits, PenOwnToken *ret)
{
    const PenOwnCodes *codes = &t->codes[table];
    uint32_t code = (uint32_t)(bits >> 48), length = PEN_OWN_BITS + 1;
    while (length <= 16 && code >= codes->limit[length])
        length++;
    if (length > 16) {
        *ret = (PenOwnToken){.length = 0};
        return;
    }
    uint32_t place = (uint32_t)((int32_t)(code >> (16 - length)) + codes->first[length]);
    uint32_t symbol = codes->symbols[place & 255];
    *ret = (PenOwnToken){length, symbol & 15, skip_of(table, symbol)};
}
