/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the entries of a JPEG file: where its blocks begin, and the sums of their DC. */
#include "codec/jpeg/decoder/scan.h"

#include <string.h>

#include "base/bytes.h"
#include "codec/jpeg/decoder/scan_impl.h"
#include "codec/jpeg/markers.h"

static const char where[] = "codec/jpeg";

/* Larger buffers are not kept for the next file. */
enum { KEEP_COPY = 512 << 10, KEEP_ENTRIES = 64 << 10 };

struct PenEntryScan {
    PenOwnTables tables;
    PenScanBlocks blocks;
    PenBuf copy, entries;
};

typedef struct Reader {
    PenEntryScan *scan;
    const PenOwnHead *head;
    const PenEntryPlan *plan;
    const uint8_t *data; /* from the start of the scan */
    size_t bytes;
    size_t from, end;        /* the restart interval in the data, up to its marker */
    size_t copied;           /* bytes of its copy, which has no stuffed bytes */
    size_t counted, stuffed; /* bytes of the copy, and zeros stuffed behind them in the file */
    PenEntry *entries;
    uint32_t n_entries; /* so far */
    uint32_t mcu, next; /* the MCU of the next block, and that of the next entry */
    uint32_t block;     /* of the MCU */
    int32_t dc[3];
    bool bad;
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

void pen__entry_scan_trim(PenEntryScan *scan)
{
    if (!scan)
        return;
    pen__buf_trim(&scan->copy, KEEP_COPY);
    pen__buf_trim(&scan->entries, KEEP_ENTRIES);
    scan->copy.bytes = scan->entries.bytes = 0;
}

uint64_t pen__entry_scan_memory(const PenJpegInfo *info, size_t bytes)
{
    PenTileGeometry g;
    PenEntryPlan plan;
    pen__tile_geometry(info, &g);
    pen__entry_plan(g.mcus_x * g.mcus_y, info->restart_interval, pen__entry_unit(info),
                    info->components, &plan);
    uint64_t copy = PEN_MAX((uint64_t)KEEP_COPY, (uint64_t)bytes + PEN_OWN_PAD);
    uint64_t entries = PEN_MAX((uint64_t)KEEP_ENTRIES, plan.n_entries * (uint64_t)sizeof(PenEntry));
    return sizeof(PenEntryScan) + copy + entries;
}

/* ---- blocks ---- */

/* Where a bit of the copy is in the file. */
static uint64_t place_of(Reader *r, uint32_t bit)
{
    const uint8_t *copy = r->scan->copy.data;
    size_t byte = bit / 8;
    r->stuffed += r->scan->blocks.kernels->count(copy + r->counted, byte - r->counted);
    r->counted = byte;
    return (r->from + byte + r->stuffed) * 8 + bit % 8;
}

static void add_entry(Reader *r, uint32_t bit)
{
    PenEntry *e = &r->entries[r->n_entries++];
    *e = (PenEntry){.bit = place_of(r, bit)};
    for (uint32_t c = 0; c < r->head->components; c++)
        e->dc[c] = (int16_t)r->dc[c];
    r->next =
        r->n_entries < r->plan->n_entries ? pen__entry_first(r->plan, r->n_entries) : UINT32_MAX;
}

/* The DC difference of the block that begins at a bit: its token is known to exist. */
static inline int32_t dc_at(const Reader *r, uint32_t table, uint32_t bit)
{
    const PenOwnTables *t = &r->scan->tables;
    uint64_t bits = __builtin_bswap64(pen__load64(r->scan->copy.data + bit / 8)) << bit % 8;
    uint32_t more = t->more[table * PEN_OWN_ENTRIES + (bits >> (64 - PEN_OWN_BITS))];
    PenOwnToken k = {more & 255, more >> PEN_OWN_MORE_SIZE & 255, 1};
    if (PEN_UNLIKELY(!more))
        pen__own_long_token(t, table, bits, &k);
    return pen__own_value(bits << k.length, k.size);
}

/* Sums outside of 16 bits are left to libjpeg. */
static void end_mcu(Reader *r)
{
    for (uint32_t c = 0; c < 3; c++) {
        if (r->dc[c] >= INT16_MIN && r->dc[c] <= INT16_MAX)
            continue;
        r->bad = true;
        r->dc[c] = 0; /* many of them would overflow */
    }
    r->block = 0;
    r->mcu++;
}

static void take_blocks(void *ctx, const uint32_t *starts, uint32_t n)
{
    Reader *r = ctx;
    uint32_t luma = r->head->h * r->head->v, blocks = r->scan->blocks.steps.mcu_blocks;
    for (uint32_t i = 0; i < n; i++) {
        if (r->block == 0 && r->mcu == r->next)
            add_entry(r, starts[i]);
        if (r->block < luma)
            r->dc[0] += dc_at(r, PEN_OWN_DC_LUMA, starts[i]);
        else
            r->dc[r->block - luma + 1] += dc_at(r, PEN_OWN_DC_CHROMA, starts[i]);
        if (++r->block == blocks)
            end_mcu(r);
    }
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
static const char *open_interval(Reader *r)
{
    PenBuf *copy = &r->scan->copy;
    PenScanBlocks *blocks = &r->scan->blocks;
    r->end = find_marker(r->data, r->bytes, r->from);
    if (r->end == r->bytes)
        return "truncated";
    if (!blocks->kernels->entropy->unstuff(r->data + r->from, r->end - r->from, copy->data,
                                           &r->copied))
        return "damaged";
    r->counted = r->stuffed = 0;
    memset(r->dc, 0, sizeof r->dc);
    blocks->steps.data = copy->data;
    blocks->steps.end = (uint64_t)r->copied * 8;
    blocks->bit = 0;
    return NULL;
}

/* The bits are used up to the last byte, and the marker expected follows. */
static const char *close_interval(Reader *r, uint8_t code)
{
    const PenScanBlocks *blocks = &r->scan->blocks;
    bool good = blocks->steps.end - blocks->bit < 8 && r->data[r->end + 1] == code;
    r->from = r->end + 2;
    return good ? NULL : "damaged";
}

/* MCUs of a restart interval up to `end`. */
static const char *read_interval(Reader *r, uint32_t end)
{
    PenScanBlocks *blocks = &r->scan->blocks;
    const char *why = open_interval(r);
    if (why)
        return why;
    uint32_t all = r->plan->restart ? r->plan->restart : r->plan->n_mcus;
    uint64_t in_all = (uint64_t)PEN_MIN(all, r->plan->n_mcus - r->mcu) * blocks->steps.mcu_blocks;
    blocks->dense = (uint32_t)(blocks->steps.end / in_all + 1);
    bool good = pen__scan_blocks(blocks, (uint64_t)(end - r->mcu) * blocks->steps.mcu_blocks);
    return good && !r->bad ? NULL : "damaged";
}

/* MCUs [0, end). */
static const char *read_scan(Reader *r, uint32_t end)
{
    const PenEntryPlan *plan = r->plan;
    const char *why = NULL;
    uint32_t interval = plan->restart ? plan->restart : plan->n_mcus;
    while (!why && r->mcu < end) {
        if (r->mcu)
            why = close_interval(r, pen__entry_marker(plan, r->mcu));
        if (!why)
            why = read_interval(r, r->mcu + PEN_MIN(interval, end - r->mcu));
    }
    if (!why && end == plan->n_mcus)
        return close_interval(r, PEN_MARKER_EOI);
    if (!why && end % interval == 0)
        return close_interval(r, pen__entry_marker(plan, end));
    return why;
}

/* The entry at which reading has ended; those behind it are not known, and equal it. */
static void fill_rest(Reader *r)
{
    const PenEntryPlan *plan = r->plan;
    if (pen__entry_is_restart(plan, r->n_entries))
        r->entries[r->n_entries++] = (PenEntry){.bit = r->from * 8};
    else
        add_entry(r, (uint32_t)r->scan->blocks.bit);
    for (; r->n_entries < plan->n_entries; r->n_entries++)
        r->entries[r->n_entries] = r->entries[r->n_entries - 1];
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

/* Up to the entry behind this MCU. */
static uint32_t read_to(const PenEntryPlan *plan, uint32_t last)
{
    uint32_t entry = pen__entry_of(plan, PEN_MIN(last, plan->n_mcus - 1));
    return pen__entry_first(plan, entry) + pen__entry_mcus(plan, entry);
}

/* The content is lost when it grows: a larger copy beside the old one would be more than
 * pen__entry_scan_memory says. */
static int reserve(PenBuf *b, size_t bytes)
{
    if (b->cap < bytes)
        pen__buf_free(b);
    return pen__buf_reserve(b, bytes);
}

static int read_entries(Reader *r, uint32_t last, PenJpegEntries *ret, const char **ret_why,
                        PenError *reterr)
{
    PenEntryScan *scan = r->scan;
    pen__entry_scan_trim(scan);
    if (reserve(&scan->copy, r->bytes + PEN_OWN_PAD) < 0 ||
        reserve(&scan->entries, (size_t)r->plan->n_entries * sizeof(PenEntry)) < 0)
        return pen__fail_memory(reterr, where, "entry index");
    r->entries = (PenEntry *)(void *)scan->entries.data;
    scan->blocks.take = take_blocks;
    scan->blocks.ctx = r;
    *ret_why = read_scan(r, read_to(r->plan, last));
    if (*ret_why)
        return PEN_END;
    *ret = (PenJpegEntries){.plan = *r->plan, .at = r->entries, .scan_bytes = r->end};
    if (r->n_entries < r->plan->n_entries) {
        fill_rest(r);
        ret->scan_bytes = r->entries[r->n_entries - 1].bit / 8 + 1;
    }
    return PEN_OK;
}

/* What has to be known before the scan is read. NULL, or why there is no index. */
static const char *prepare(PenEntryScan *scan, const PenJpegHeader *header, size_t bytes,
                           PenOwnHead *ret_head, PenEntryPlan *plan)
{
    const char *why = judge(header, ret_head);
    if (why)
        return why;
    if (pen__own_tables(&scan->tables, &pen__scan_layout, ret_head) != PEN_OK)
        return "unusual header";
    if (plan->n_entries == 1)
        return "small";
    if (bytes > UINT32_MAX / 8 - PEN_OWN_PAD) /* lanes read into the pad, and count bits in 32 */
        return "large";
    /* A block has 2 bits at least: a small file cannot make us allocate for a huge one. */
    return plan->n_mcus / 4 > bytes ? "truncated" : NULL;
}

typedef struct Request {
    const PenJpegHeader *header;
    const uint8_t *data;
    size_t bytes;
    uint32_t unit;
    uint32_t last; /* MCU that has to be in an interval */
} Request;

static int scan_file(PenEntryScan *scan, const Request *q, PenJpegEntries *ret,
                     const char **ret_why, PenError *reterr)
{
    const PenJpegInfo *info = &q->header->info;
    PenOwnHead head;
    PenTileGeometry g;
    PenEntryPlan plan;
    pen__tile_geometry(info, &g);
    pen__entry_plan(g.mcus_x * g.mcus_y, info->restart_interval, q->unit, info->components, &plan);
    Reader r = {.scan = scan,
                .head = &head,
                .plan = &plan,
                .data = q->data + info->head_bytes,
                .bytes = q->bytes - info->head_bytes};
    *ret_why = prepare(scan, q->header, r.bytes, &head, &plan);
    if (*ret_why)
        return PEN_END;
    pen__scan_steps(&scan->blocks, &scan->tables, &head);
    return read_entries(&r, q->last, ret, ret_why, reterr);
}

int pen__entry_scan(PenEntryScan *scan, const PenJpegHeader *header, const uint8_t *data,
                    size_t bytes, uint32_t unit, PenJpegEntries *ret, const char **ret_why,
                    PenError *reterr)
{
    Request q = {header, data, bytes, unit, UINT32_MAX};
    return scan_file(scan, &q, ret, ret_why, reterr);
}

int pen__entry_scan_to(PenEntryScan *scan, const PenJpegHeader *header, const uint8_t *data,
                       size_t bytes, uint32_t last, PenJpegEntries *ret, PenError *reterr)
{
    const char *why;
    Request q = {header, data, bytes, pen__entry_unit(&header->info), last};
    return scan_file(scan, &q, ret, &why, reterr);
}
