/* SPDX-License-Identifier: Apache-2.0 */
#include "codec/jpeg/entries.h"

#include "base/attr.h"
#include "base/bytes.h"
#include "codec/jpeg/markers.h"

static const char where[] = "codec/jpeg";

enum { ESCAPE = 0xFFFF, MARKER_BITS = 16, DISTANCE_BYTES = 2 };

/* ---- plan ---- */

static uint32_t ceil_div(uint32_t a, uint32_t b)
{
    return a / b + (a % b != 0);
}

void pen__entry_plan(uint32_t n_mcus, uint32_t restart, uint32_t unit, uint32_t components,
                     PenEntryPlan *ret)
{
    uint32_t group = !restart ? n_mcus : restart < unit ? unit / restart * restart : restart;
    uint32_t per_group = ceil_div(group, unit);
    *ret = (PenEntryPlan){.n_mcus = n_mcus,
                          .restart = restart,
                          .unit = unit,
                          .components = components,
                          .group = group,
                          .per_group = per_group,
                          .n_entries = n_mcus / group * per_group + ceil_div(n_mcus % group, unit)};
}

uint32_t pen__entry_of(const PenEntryPlan *plan, uint32_t mcu)
{
    return mcu / plan->group * plan->per_group + mcu % plan->group / plan->unit;
}

uint32_t pen__entry_first(const PenEntryPlan *plan, uint32_t entry)
{
    return entry / plan->per_group * plan->group + entry % plan->per_group * plan->unit;
}

uint32_t pen__entry_mcus(const PenEntryPlan *plan, uint32_t entry)
{
    uint32_t first = pen__entry_first(plan, entry);
    uint32_t in_group = PEN_MIN(plan->unit, plan->group - first % plan->group);
    return PEN_MIN(in_group, plan->n_mcus - first);
}

uint8_t pen__entry_marker(const PenEntryPlan *plan, uint32_t mcu)
{
    return (uint8_t)(PEN_MARKER_RST0 + (mcu / plan->restart - 1) % 8);
}

/* ---- writing ---- */

static uint8_t *put_distance(uint8_t *at, uint64_t bits)
{
    pen__store16(at, (uint16_t)PEN_MIN(bits, (uint64_t)ESCAPE));
    if (bits < ESCAPE)
        return at + DISTANCE_BYTES;
    pen__store32(at + DISTANCE_BYTES, (uint32_t)bits);
    return at + DISTANCE_BYTES + 4;
}

static uint8_t *put_difference(uint8_t *at, int32_t d)
{
    uint32_t v = d < 0 ? 2 * (uint32_t)-d - 1 : 2 * (uint32_t)d;
    for (; v >= 0x80; v >>= 7)
        *at++ = (uint8_t)(v | 0x80);
    *at++ = (uint8_t)v;
    return at;
}

int pen__entries_write(const PenJpegEntries *entries, PenBuf *out, PenError *reterr)
{
    enum { MOST_BYTES = DISTANCE_BYTES + 4 + 3 * 3 };
    const PenEntryPlan *plan = &entries->plan;
    if (pen__buf_reserve(out, (size_t)plan->n_entries * MOST_BYTES) < 0)
        return pen__fail_memory(reterr, where, "entry index");
    uint8_t *at = out->data + out->bytes;
    for (uint32_t i = 1; i < plan->n_entries; i++) {
        const PenEntry *e = &entries->at[i];
        uint64_t distance = e->bit - e[-1].bit;
        if (distance > UINT32_MAX)
            return pen__fail(reterr, PEN_E_LIMIT, where,
                             "entry index: expected less than 4 Gi bits in an interval, found %llu",
                             (unsigned long long)distance);
        at = put_distance(at, distance);
        for (uint32_t c = 0; c < plan->components && !pen__entry_is_restart(plan, i); c++)
            at = put_difference(at, e->dc[c] - e[-1].dc[c]);
    }
    out->bytes = (size_t)(at - out->data);
    return PEN_OK;
}

/* ---- parsing ---- */

typedef struct Parser {
    const uint8_t *at, *end;
} Parser;

static bool take_distance(Parser *p, uint64_t *ret)
{
    if (p->end - p->at < DISTANCE_BYTES)
        return false;
    *ret = pen__load16(p->at);
    p->at += DISTANCE_BYTES;
    if (*ret < ESCAPE)
        return *ret > 0;
    if (p->end - p->at < 4)
        return false;
    *ret = pen__load32(p->at);
    p->at += 4;
    return *ret >= ESCAPE;
}

static bool take_difference(Parser *p, int32_t *ret)
{
    uint32_t v = 0;
    for (uint32_t shift = 0; p->at < p->end && shift <= 14; shift += 7) {
        uint8_t byte = *p->at++;
        v |= (uint32_t)(byte & 0x7F) << shift;
        if (byte & 0x80)
            continue;
        *ret = v & 1 ? -(int32_t)(v / 2) - 1 : (int32_t)(v / 2);
        return byte || !shift; /* not longer than it has to be */
    }
    return false;
}

static bool take_predictors(Parser *p, uint32_t components, PenEntry *e)
{
    for (uint32_t c = 0; c < components; c++) {
        int32_t d;
        if (!take_difference(p, &d))
            return false;
        d += e[-1].dc[c];
        if (d < INT16_MIN || d > INT16_MAX)
            return false;
        e->dc[c] = (int16_t)d;
    }
    return true;
}

static bool take_entry(Parser *p, const PenEntryPlan *plan, uint32_t i, PenEntry *e)
{
    uint64_t distance;
    if (!take_distance(p, &distance))
        return false;
    *e = (PenEntry){.bit = e[-1].bit + distance};
    if (!pen__entry_is_restart(plan, i))
        return take_predictors(p, plan->components, e);
    return e->bit % 8 == 0 && distance > MARKER_BITS;
}

static int bad_entry(uint32_t i, uint32_t n, PenError *reterr)
{
    return pen__fail(reterr, PEN_E_DECODE, where,
                     "entry index: expected %u entries in increasing order inside the scan, found "
                     "something else at entry %u",
                     n, i);
}

int pen__entries_parse(const uint8_t *data, size_t bytes, const PenEntryPlan *plan,
                       uint64_t scan_bytes, PenBuf *buf, PenJpegEntries *ret, PenError *reterr)
{
    Parser p = {data, data + bytes};
    uint32_t n = plan->n_entries;
    /* Few bytes cannot make us allocate for many entries. */
    if (n - 1 > bytes / DISTANCE_BYTES || scan_bytes > UINT64_MAX / 8)
        return bad_entry(0, n, reterr);
    buf->bytes = 0;
    if (pen__buf_reserve(buf, (size_t)n * sizeof(PenEntry)) < 0)
        return pen__fail_memory(reterr, where, "entry index");
    PenEntry *e = (PenEntry *)(void *)buf->data;
    e[0] = (PenEntry){.bit = 0};
    for (uint32_t i = 1; i < n; i++)
        if (!take_entry(&p, plan, i, &e[i]))
            return bad_entry(i, n, reterr);
    if (e[n - 1].bit >= scan_bytes * 8)
        return bad_entry(n - 1, n, reterr);
    if (p.at != p.end)
        return pen__fail(reterr, PEN_E_DECODE, where,
                         "entry index: expected %u entries, found %zu bytes after them", n,
                         (size_t)(p.end - p.at));
    buf->bytes = (size_t)n * sizeof *e;
    *ret = (PenJpegEntries){.plan = *plan, .at = e, .scan_bytes = scan_bytes};
    return PEN_OK;
}
