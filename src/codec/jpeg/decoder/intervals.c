/* SPDX-License-Identifier: Apache-2.0 */
/* Which parts of a scan a box needs, by the entry index of the file: intervals, or the parts of an
 * interval between its restart markers. Nothing that the index says is believed: what is outside of
 * the data, or is not next to the marker that has to be there, is left to libjpeg. */
#include <string.h>

#include "codec/jpeg/decoder/decoder_impl.h"

/* A part, in MCUs and in bytes of the scan. */
typedef struct Part {
    uint32_t entry; /* of the interval */
    uint32_t mcu, n;
    uint64_t from, end; /* bits */
    bool padded;        /* a marker or the end of the scan follows */
} Part;

/* Are these bytes of the scan present? */
static bool is_present(const PenEncoded *image, uint64_t from, uint64_t end)
{
    uint64_t present = image->bytes - image->head_bytes;
    return from <= end && from >= image->scan_offset && end - image->scan_offset <= present;
}

static const uint8_t *byte_at(const PenEncoded *image, uint64_t at)
{
    return image->data + image->head_bytes + (at - image->scan_offset);
}

/* The place of the next marker, which has to be this one; 0 if it is not. */
static uint64_t find_marker(const PenEncoded *image, uint64_t from, uint64_t end, uint8_t code)
{
    while (from + 2 <= end) {
        const uint8_t *at = byte_at(image, from), *ff = memchr(at, 0xFF, end - from - 1);
        if (!ff)
            return 0;
        from += (uint64_t)(ff - at);
        if (ff[1] != 0)
            return ff[1] == code ? from : 0;
        from += 2;
    }
    return 0;
}

/* Is there a marker of this code before the byte? */
static bool has_marker(const PenEncoded *image, uint64_t end, uint8_t code)
{
    if (end < 2 || !is_present(image, end - 2, end))
        return false;
    const uint8_t *p = byte_at(image, end - 2);
    return p[0] == 0xFF && p[1] == code;
}

/* An interval; false if the markers around it are not there. */
static bool find_interval(const PenEncoded *image, uint32_t entry, Part *ret)
{
    const PenJpegEntries *e = image->entries;
    const PenEntryPlan *plan = &e->plan;
    uint32_t mcu = pen__entry_first(plan, entry), n = pen__entry_mcus(plan, entry);
    *ret = (Part){.entry = entry,
                  .mcu = mcu,
                  .n = n,
                  .from = e->at[entry].bit,
                  .end = pen__entry_bit(e, entry + 1),
                  .padded = pen__entry_is_restart(plan, entry + 1)};
    if (entry + 1 == plan->n_entries || !ret->padded)
        return true;
    ret->end -= 16;
    return has_marker(image, ret->end / 8 + 2, pen__entry_marker(plan, mcu + n));
}

/* The part of an interval of several restart intervals that has MCU `wanted`. */
static bool find_part(const PenOwnJobs *jobs, uint32_t wanted, Part *p)
{
    const PenEncoded *image = jobs->image;
    const PenEntryPlan *plan = &image->entries->plan;
    uint32_t behind = p->mcu + p->n;
    uint64_t at = p->from / 8, end = p->end / 8;
    if (!is_present(image, at, end))
        return false;
    if (jobs->mcu > p->mcu && jobs->mcu <= wanted) { /* it is known where that begins */
        p->mcu = jobs->mcu;
        at = jobs->at;
    }
    for (;; p->mcu += plan->restart) {
        p->n = PEN_MIN(plan->restart, behind - p->mcu);
        p->from = at * 8;
        if (p->mcu + p->n == behind)
            return true;
        uint64_t marker = find_marker(image, at, end, pen__entry_marker(plan, p->mcu + p->n));
        if (!marker)
            return false;
        at = marker + 2;
        if (wanted >= p->mcu + p->n)
            continue;
        p->end = marker * 8;
        return true;
    }
}

/* What is to be decoded of a part. */
static bool make_job(const PenOwnJobs *jobs, const Part *p, uint32_t wanted, PenOwnJob *ret)
{
    const PenEncoded *image = jobs->image;
    const PenEntry *entries = image->entries->at;
    uint32_t last = pen__own_last_wanted(jobs, p->mcu + p->n - 1), shared = p->end % 8 != 0;
    uint64_t from = p->from / 8, end = p->end / 8;
    if (!is_present(image, from, end + shared))
        return false;
    /* The stuffed byte behind the last one belongs to it. */
    end += shared && *byte_at(image, end) == 0xFF;
    end += shared;
    if (end - from > PEN_OWN_MAX_SEGMENT_BYTES || !is_present(image, from, end))
        return false;
    *ret = (PenOwnJob){.data = byte_at(image, from),
                       .bytes = (uint32_t)(end - from),
                       .from = {.bit = p->from % 8},
                       .spare = shared ? 8 - p->end % 8 : 0,
                       .mcu = p->mcu,
                       .n_mcus = last - p->mcu + 1,
                       .first_block = (image->entries->plan.unit - p->n) * jobs->mcu_blocks,
                       .first_row = wanted / jobs->g->mcus_x,
                       .last_row = last / jobs->g->mcus_x};
    if (p->mcu == pen__entry_first(&image->entries->plan, p->entry))
        memcpy(ret->from.dc, entries[p->entry].dc, sizeof ret->from.dc);
    if (ret->n_mcus == p->n)
        ret->end = p->padded ? PEN_OWN_END_PADDED : PEN_OWN_END_ENTRY;
    if (ret->end == PEN_OWN_END_ENTRY)
        memcpy(ret->dc_end, entries[p->entry + 1].dc, sizeof ret->dc_end);
    return true;
}

int pen__own_next_interval(PenOwnJobs *jobs, PenOwnJob *ret)
{
    const PenEntryPlan *plan = &jobs->image->entries->plan;
    uint32_t wanted = pen__own_first_wanted(jobs, jobs->mcu);
    if (jobs->over || wanted / jobs->g->mcus_x > jobs->wanted->bottom)
        return PEN_OWN_NO_JOB;
    Part p;
    if (!find_interval(jobs->image, pen__entry_of(plan, wanted), &p))
        return PEN_END;
    if (plan->restart && plan->restart < plan->unit && !find_part(jobs, wanted, &p))
        return PEN_END;
    if (!make_job(jobs, &p, wanted, ret))
        return PEN_END;
    jobs->mcu = p.mcu + p.n;
    jobs->at = p.end / 8 + 2;
    jobs->over = jobs->mcu == plan->n_mcus;
    return PEN_OK;
}

static void want(const PenJpegInfo *info, const PenOwnBox *box, PenTileGeometry *g,
                 PenOwnWanted *ret)
{
    bool grey = info->components == 1;
    PenOwnHead head = {.components = info->components,
                       .h = grey ? 1 : info->h_samp[0],
                       .v = grey ? 1 : info->v_samp[0]};
    pen__tile_geometry(info, g);
    pen__own_want(g, &head, box, info->width, info->height, ret);
}

uint32_t pen__own_last_mcu(const PenJpegInfo *info, const PenOwnBox *box)
{
    PenTileGeometry g;
    PenOwnWanted w;
    want(info, box, &g, &w);
    /* Of one component it reads as many rows at once as its factor says. */
    uint32_t at_once = info->components == 1 ? info->v_samp[0] : 1;
    uint32_t end = w.bottom + 1 + (g.mcu_height > 8);
    end = (end + at_once - 1) / at_once * at_once;
    return PEN_MIN(end, g.mcus_y) * g.mcus_x - 1;
}

void pen__own_scan_bytes(const PenJpegInfo *info, const PenJpegEntries *entries,
                         const PenOwnBox *box, uint64_t *ret_from, uint64_t *ret_end)
{
    const PenEntryPlan *plan = &entries->plan;
    PenTileGeometry g;
    PenOwnWanted w;
    want(info, box, &g, &w);
    uint32_t first = pen__entry_of(plan, w.top * g.mcus_x + w.left);
    uint32_t last = pen__entry_of(plan, w.bottom * g.mcus_x + w.right);
    /* The last bits may share a byte with the next interval, and a stuffed byte may follow it. */
    uint64_t end = (pen__entry_bit(entries, last + 1) + 7) / 8 + 1;
    *ret_from = entries->at[first].bit / 8;
    *ret_end = PEN_MIN(end, entries->scan_bytes);
}
