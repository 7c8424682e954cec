/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the entries of a JPEG file. Its tokens are read one after another with the tables of the
 * decoder, and nothing is kept of them but the sums of DC. */
#include "codec/jpeg/decoder/scan.h"

#include <string.h>

#include "base/bytes.h"
#include "codec/jpeg/decoder/decoder_impl.h"
#include "codec/jpeg/markers.h"

static const char where[] = "codec/jpeg";

enum {
    LENGTH_AT = 0,
    SKIP_AT = 8,
    VALUE_AT = 16,
    LENGTH_MASK = 63,
    SKIP_MASK = 255,
    END_OF_BLOCK = 128, /* to skip: more than any run */
    /* What an MCU can read beyond the end before it is noticed: 6 blocks of 64 tokens of 31 bits.
     */
    PAD_BYTES = 2048,
    KEEP_BYTES = 1 << 20 /* of each buffer, from file to file */
};

static const PenOwnLayout scan_layout = {.length = LENGTH_AT,
                                         .skip = SKIP_AT,
                                         .value = VALUE_AT,
                                         .value_bits = 16,
                                         .end_of_block = (uint32_t)END_OF_BLOCK << SKIP_AT};

struct PenEntryScan {
    PenOwnTables tables;
    PenBuf copy, entries;
};

/* A restart interval without stuffed bytes, and how far it has been read. */
typedef struct Bits {
    const uint8_t *start, *at;
    uint64_t next; /* the next bits, from the top */
    uint32_t n;    /* how many of them are there */
    size_t bytes;
    size_t counted, stuffed; /* bytes of the copy, and zeros stuffed behind them in the file */
} Bits;

typedef struct Reader {
    PenEntryScan *scan;
    const PenOwnHead *head;
    const PenEntryPlan *plan;
    const uint8_t *data; /* from the start of the scan */
    size_t bytes;
    size_t from, end; /* the restart interval in the data, up to its marker */
    Bits bits;
    int32_t dc[3];
} Reader;

uint32_t pen__entry_unit(const PenJpegInfo *info)
{
    uint32_t blocks = info->components == 1 ? 1 : info->h_samp[0] * info->v_samp[0] + 2u;
    return PEN_OWN_SLOT_BLOCKS / blocks;
}

int pen__entry_scan_new(PenEntryScan **ret, PenError *reterr)
{
    PenEntryScan *scan = pen__zalloc(sizeof *scan);
    if (!scan)
        return pen__fail_memory(reterr, where, "entry index");
    *ret = scan;
    return PEN_OK;
}

void pen__entry_scan_free(PenEntryScan **scan)
{
    if (!scan || !*scan)
        return;
    pen__buf_free(&(*scan)->copy);
    pen__buf_free(&(*scan)->entries);
    pen__free(*scan);
    *scan = NULL;
}

/* ---- tokens ---- */

static inline void refill(Bits *b)
{
    b->next |= __builtin_bswap64(pen__load64(b->at)) >> b->n;
    b->at += (63 - b->n) >> 3;
    b->n |= 56;
}

static uint64_t bits_used(const Bits *b)
{
    return (uint64_t)(b->at - b->start) * 8 - b->n;
}

/* A token that a lookup does not have whole, as an entry; 0 if there is no such code. */
static __attribute__((noinline, cold)) uint32_t find_more(const PenOwnTables *t, uint32_t table,
                                                          uint64_t bits)
{
    uint32_t more = t->more[table * PEN_OWN_ENTRIES + (bits >> (64 - PEN_OWN_BITS))];
    PenOwnToken k = {more & 255, more >> PEN_OWN_MORE_SIZE & 255, more >> PEN_OWN_MORE_SKIP};
    if (!more)
        pen__own_long_token(t, table, bits, &k);
    if (!k.length)
        return 0;
    uint32_t value = (uint32_t)pen__own_value(bits << k.length, k.size) & 0xFFFF;
    return (k.length + k.size) << LENGTH_AT | (k.skip ? k.skip : END_OF_BLOCK) << SKIP_AT |
           value << VALUE_AT;
}

/* After a refill there are bits for four tokens that a lookup has whole. */
enum { TOKENS_AT_ONCE = 4 };
_Static_assert(TOKENS_AT_ONCE *PEN_OWN_BITS <= 56, "more bits than a refill gives");

static inline uint32_t take_token(const PenOwnTables *t, uint32_t table, Bits *b)
{
    uint32_t e = t->fast[table * PEN_OWN_ENTRIES + (b->next >> (64 - PEN_OWN_BITS))];
    bool is_long = PEN_UNLIKELY(!e);
    if (is_long) {
        refill(b);
        e = find_more(t, table, b->next);
    }
    b->next <<= e >> LENGTH_AT & LENGTH_MASK;
    b->n -= e >> LENGTH_AT & LENGTH_MASK;
    if (is_long)
        refill(b);
    return e;
}

/* False if it is not a block that libjpeg would read without a word, or goes over its end. */
static bool read_block(const PenOwnTables *t, uint32_t table, Bits *bits, int32_t *dc)
{
    Bits b = *bits;
    refill(&b);
    uint32_t e = take_token(t, table, &b), k = 0;
    if (!e)
        return false;
    *dc += (int16_t)(e >> VALUE_AT);
    for (uint32_t n = 1; k < 63; n++) {
        if (n % TOKENS_AT_ONCE == 0)
            refill(&b);
        e = take_token(t, table + 1, &b);
        if (PEN_UNLIKELY(!e))
            return false;
        k += e >> SKIP_AT & SKIP_MASK;
    }
    *bits = b;
    return k == 63 || k >= END_OF_BLOCK;
}

static bool read_mcu(Reader *r)
{
    const PenOwnTables *t = &r->scan->tables;
    uint32_t luma = r->head->h * r->head->v;
    for (uint32_t i = 0; i < luma; i++)
        if (!read_block(t, PEN_OWN_DC_LUMA, &r->bits, &r->dc[0]))
            return false;
    for (uint32_t i = 1; i < r->head->components; i++)
        if (!read_block(t, PEN_OWN_DC_CHROMA, &r->bits, &r->dc[i]))
            return false;
    for (uint32_t i = 0; i < r->head->components; i++)
        if (r->dc[i] < INT16_MIN || r->dc[i] > INT16_MAX)
            return false;
    return bits_used(&r->bits) <= (uint64_t)r->bits.bytes * 8;
}

/* ---- restart intervals ---- */

/* The next byte 0xFF that is no stuffed one; the end of the data if there is none. */
static size_t find_marker(const uint8_t *data, size_t bytes, size_t at)
{
    while (at < bytes) {
        const uint8_t *p = memchr(data + at, 0xFF, bytes - at);
        if (!p)
            break;
        at = (size_t)(p - data);
        if (at + 1 < bytes && p[1] != 0)
            return at;
        at += 2;
    }
    return bytes;
}

/* NULL, or why there is no index. */
static const char *open_interval(Reader *r, PenBuf *copy)
{
    size_t bytes;
    r->end = find_marker(r->data, r->bytes, r->from);
    if (r->end == r->bytes)
        return "truncated";
    if (!pen__own_entropy_c.unstuff(r->data + r->from, r->end - r->from, copy->data, &bytes))
        return "damaged";
    memset(copy->data + bytes, 0, PAD_BYTES);
    r->bits = (Bits){.start = copy->data, .at = copy->data, .bytes = bytes};
    memset(r->dc, 0, sizeof r->dc);
    return NULL;
}

/* The bits are used up to the last byte, and the marker expected follows. */
static const char *close_interval(Reader *r, uint8_t code)
{
    bool good = r->bits.bytes * 8 - bits_used(&r->bits) < 8 && r->data[r->end + 1] == code;
    r->from = r->end + 2;
    return good ? NULL : "damaged";
}

static const char *next_interval(Reader *r, uint32_t mcu)
{
    const char *why = mcu ? close_interval(r, pen__entry_marker(r->plan, mcu)) : NULL;
    return why ? why : open_interval(r, &r->scan->copy);
}

/* Where the next MCU begins in the file. */
static uint64_t place_of(Reader *r)
{
    Bits *b = &r->bits;
    uint64_t used = bits_used(b);
    size_t byte = (size_t)(used / 8), stuffed = 0;
    for (size_t i = b->counted; i < byte; i++)
        stuffed += b->start[i] == 0xFF;
    b->stuffed += stuffed;
    b->counted = PEN_MAX(b->counted, byte);
    return (r->from + byte + b->stuffed) * 8 + used % 8;
}

static const char *read_scan(Reader *r, PenEntry *entries)
{
    const PenEntryPlan *plan = r->plan;
    uint32_t interval = plan->restart ? plan->restart : UINT32_MAX, n = 0, next = 0;
    for (uint32_t mcu = 0; mcu < plan->n_mcus; mcu++) {
        const char *why = mcu % interval ? NULL : next_interval(r, mcu);
        if (why)
            return why;
        if (mcu == next) {
            PenEntry *e = &entries[n++];
            *e = (PenEntry){.bit = place_of(r)};
            for (uint32_t c = 0; c < r->head->components; c++)
                e->dc[c] = (int16_t)r->dc[c];
            next = n < plan->n_entries ? pen__entry_first(plan, n) : UINT32_MAX;
        }
        if (!read_mcu(r))
            return "damaged";
    }
    return close_interval(r, PEN_MARKER_EOI);
}

/* ---- files ---- */

/* Why a file has no index whatever its scan is; NULL if it may have one. */
static const char *judge(const PenJpegHeader *header, PenOwnHead *ret)
{
    const PenJpegInfo *info = &header->info;
    if (info->sof == PEN_MARKER_SOF9 || info->sof == PEN_MARKER_SOF10)
        return "arithmetic";
    if (info->sof == PEN_MARKER_SOF2)
        return "progressive";
    if (info->precision != 8)
        return "12 bit";
    if (info->components == 4)
        return "CMYK";
    if (info->scan_components != info->components)
        return "several scans";
    if (!pen__own_takes(info))
        return "sampling";
    if (pen__own_head(header, ret) == PEN_OK)
        return NULL;
    return info->components == 3 && !pen__own_is_ycc(header) ? "not YCbCr" : "unusual header";
}

static int read_entries(Reader *r, size_t bytes, PenJpegEntries *ret, const char **ret_why,
                        PenError *reterr)
{
    PenEntryScan *scan = r->scan;
    pen__buf_trim(&scan->copy, KEEP_BYTES);
    pen__buf_trim(&scan->entries, KEEP_BYTES);
    scan->copy.bytes = scan->entries.bytes = 0;
    if (pen__buf_reserve(&scan->copy, bytes + PAD_BYTES) < 0 ||
        pen__buf_reserve(&scan->entries, (size_t)r->plan->n_entries * sizeof(PenEntry)) < 0)
        return pen__fail_memory(reterr, where, "entry index");
    PenEntry *entries = (PenEntry *)(void *)scan->entries.data;
    *ret_why = read_scan(r, entries);
    if (*ret_why)
        return PEN_END;
    *ret = (PenJpegEntries){.plan = *r->plan, .at = entries, .scan_bytes = r->end};
    return PEN_OK;
}

int pen__entry_scan(PenEntryScan *scan, const PenJpegHeader *header, const uint8_t *data,
                    size_t bytes, uint32_t unit, PenJpegEntries *ret, const char **ret_why,
                    PenError *reterr)
{
    const PenJpegInfo *info = &header->info;
    PenOwnHead head;
    PenTileGeometry g;
    PenEntryPlan plan;
    *ret_why = judge(header, &head);
    if (!*ret_why && pen__own_tables(&scan->tables, &scan_layout, &head) != PEN_OK)
        *ret_why = "unusual header";
    if (*ret_why)
        return PEN_END;
    pen__tile_geometry(info, &g);
    pen__entry_plan(g.mcus_x * g.mcus_y, info->restart_interval, unit, info->components, &plan);
    size_t scan_bytes = bytes - info->head_bytes;
    /* A block has 2 bits at least: a small file cannot make us allocate for a huge one. */
    if (plan.n_entries == 1 || plan.n_mcus / 4 > scan_bytes) {
        *ret_why = plan.n_entries == 1 ? "small" : "truncated";
        return PEN_END;
    }
    Reader r = {.scan = scan,
                .head = &head,
                .plan = &plan,
                .data = data + info->head_bytes,
                .bytes = scan_bytes};
    return read_entries(&r, scan_bytes, ret, ret_why, reterr);
}
