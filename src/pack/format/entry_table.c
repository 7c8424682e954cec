/* SPDX-License-Identifier: Apache-2.0 */
#include "pack/format/entry_table.h"

#include "base/attr.h"
#include "base/bytes.h"
#include "base/crc32c.h"
#include "base/error.h"

enum { KIND_AT = 14, KIND = 1, MAX_BLOCKS = 48 };

static uint64_t runs_of(uint64_t scan_bytes)
{
    return (scan_bytes + PEN_RUN_BYTES - 1) / PEN_RUN_BYTES;
}

bool pen__is_entry_table(const uint8_t *data, uint64_t bytes)
{
    return bytes > KIND_AT && data[KIND_AT] == KIND;
}

PenFilePart pen__entry_table_part(const PenEntryTable *t, uint32_t part)
{
    const PenStoredEntries *s = &t->stored;
    uint64_t scan_end = (uint64_t)s->head_bytes + s->scan_bytes;
    if (part == PEN_FILE_LEAD)
        return (PenFilePart){0, s->lead_bytes};
    if (part == PEN_FILE_TABLES)
        return (PenFilePart){s->lead_bytes, s->head_bytes - s->lead_bytes};
    if (part + 1 == t->n_parts)
        return (PenFilePart){scan_end, t->payload_bytes - scan_end};
    uint64_t offset = s->head_bytes + (uint64_t)(part - PEN_FILE_RUNS) * PEN_RUN_BYTES;
    return (PenFilePart){offset, PEN_MIN((uint64_t)PEN_RUN_BYTES, scan_end - offset)};
}

uint32_t pen__entry_table_sum(const PenEntryTable *t, uint32_t part)
{
    return pen__load32(t->sums + 4 * (size_t)(part - 1));
}

int pen__entry_table_sums(const PenStoredEntries *s, const uint8_t *data, uint64_t bytes,
                          PenBuf *out)
{
    PenEntryTable t = {
        .stored = *s, .payload_bytes = bytes, .n_parts = (uint32_t)runs_of(s->scan_bytes) + 3};
    int r = PEN_OK;
    for (uint32_t i = PEN_FILE_TABLES; i < t.n_parts && r == PEN_OK; i++) {
        PenFilePart part = pen__entry_table_part(&t, i);
        uint8_t sum[4];
        pen__store32(sum, pen__crc32c(0, data + part.offset, (size_t)part.bytes));
        r = pen__buf_add(out, sum, sizeof sum);
    }
    return r;
}

int pen__entry_table_write(const PenStoredEntries *s, const uint8_t *data, uint64_t bytes,
                           PenPlace place, PenBuf *out)
{
    PenEntryTable t = {
        .stored = *s, .payload_bytes = bytes, .n_parts = (uint32_t)runs_of(s->scan_bytes) + 3};
    int r = pen__buf_reserve(out, PEN_ENTRY_HEADER_BYTES + 4 * (size_t)t.n_parts + s->coded_bytes);
    if (r < 0)
        return r;
    uint8_t *h = out->data + out->bytes;
    pen__store32(h, s->head_bytes);
    pen__store32(h + 4, s->plan.n_entries);
    pen__store32(h + 8, t.n_parts - 1);
    pen__store16(h + 12, (uint16_t)s->plan.unit);
    h[KIND_AT] = KIND;
    h[15] = (uint8_t)s->plan.components;
    h[16] = s->h_samp;
    h[17] = s->v_samp;
    pen__store16(h + 18, (uint16_t)s->plan.restart);
    pen__store32(h + 20, s->lead_bytes);
    pen__store32(h + 24, s->scan_bytes);
    out->bytes += PEN_ENTRY_HEADER_BYTES;
    for (uint32_t i = PEN_FILE_TABLES; i < t.n_parts; i++) {
        PenFilePart part = pen__entry_table_part(&t, i);
        place.run = i;
        uint32_t sum = data ? pen__place_sum(&place, data + part.offset, (size_t)part.bytes)
                            : pen__place_sum_of(&place, pen__load32(s->sums + 4 * (size_t)(i - 1)),
                                                part.bytes);
        pen__store32(out->data + out->bytes, sum);
        out->bytes += 4;
    }
    return pen__buf_add(out, s->coded, s->coded_bytes);
}

/* What an MCU is, and how many of them there are; 0 if there can be no such file. */
static uint32_t count_mcus(const PenEntryTable *t, uint32_t width, uint32_t height,
                           uint32_t components)
{
    uint32_t h = t->stored.h_samp, v = t->stored.v_samp;
    bool grey = components == 1;
    if ((!grey && components != 3) || h < 1 || h > (grey ? 1 : 2) || v < 1 || v > (grey ? 1 : 2) ||
        !width || !height || width > UINT16_MAX || height > UINT16_MAX)
        return 0;
    return ((width + 8 * h - 1) / (8 * h)) * ((height + 8 * v - 1) / (8 * v));
}

static const char *check_plan(PenEntryTable *t, const uint8_t *data, uint32_t width,
                              uint32_t height)
{
    PenStoredEntries *s = &t->stored;
    uint32_t unit = pen__load16(data + 12), restart = pen__load16(data + 18), components = data[15];
    uint32_t n_mcus = count_mcus(t, width, height, components);
    uint32_t blocks = components == 1 ? 1 : s->h_samp * s->v_samp + 2u;
    if (!n_mcus)
        return "entry table does not match a JPEG of its size";
    if (!unit || unit * blocks > MAX_BLOCKS)
        return "intervals of an entry table are out of range";
    pen__entry_plan(n_mcus, restart, unit, components, &s->plan);
    if (s->plan.n_entries < 2 || s->plan.n_entries != pen__load32(data + 4))
        return "number of entries does not match the JPEG";
    return NULL;
}

const char *pen__entry_table_read(PenEntryTable *ret, const uint8_t *data, uint64_t bytes,
                                  uint64_t payload_bytes, uint32_t width, uint32_t height)
{
    if (bytes < PEN_ENTRY_HEADER_BYTES || data[KIND_AT] != KIND)
        return "entry table too short";
    uint64_t n_sums = pen__load32(data + 8), fixed = PEN_ENTRY_HEADER_BYTES + 4 * n_sums;
    PenEntryTable t = {.stored = {.lead_bytes = pen__load32(data + 20),
                                  .head_bytes = pen__load32(data),
                                  .scan_bytes = pen__load32(data + 24),
                                  .h_samp = data[16],
                                  .v_samp = data[17]},
                       .payload_bytes = payload_bytes,
                       .n_parts = (uint32_t)n_sums + 1,
                       .sums = data + PEN_ENTRY_HEADER_BYTES};
    PenStoredEntries *s = &t.stored;
    uint64_t scan_end = (uint64_t)s->head_bytes + s->scan_bytes;
    /* SOI before, EOI behind. */
    if (s->lead_bytes < 2 || s->head_bytes <= s->lead_bytes || !s->scan_bytes ||
        scan_end + 2 > payload_bytes)
        return "parts of an entry table do not add up to the payload";
    if (n_sums != runs_of(s->scan_bytes) + 2 || fixed > bytes)
        return "number of checksums of an entry table does not match the payload";
    const char *wrong = check_plan(&t, data, width, height);
    if (wrong)
        return wrong;
    s->coded = data + fixed;
    s->coded_bytes = (size_t)(bytes - fixed);
    *ret = t;
    return NULL;
}
