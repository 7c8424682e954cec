/* SPDX-License-Identifier: Apache-2.0 */
/* The entry index of a JPEG file: places of its scan at which decoding can start.
 * A sequential Huffman scan can be entered before any MCU whose first bit and DC predictors are
 * known. The index has them for one MCU of every `unit`, so that a crop is decoded from parts of
 * the file, and the file stays as it is. The MCUs from one entry to the next are an interval.
 *
 * Predictors are 0 behind a restart marker. So no interval of a file with restart markers goes over
 * one, unless they are closer than the unit: then an interval is as many restart intervals as fit
 * into the unit. */
#ifndef PEN_CODEC_JPEG_ENTRIES_H
#define PEN_CODEC_JPEG_ENTRIES_H

#include <stdbool.h>

#include "base/error.h"
#include "base/mem.h"

typedef struct PenEntry {
    uint64_t bit;  /* from the start of the scan, in the bytes of the file, stuffed ones counted */
    int16_t dc[3]; /* predictors of the components; 0 for those that the file does not have */
} PenEntry;

/* Which MCUs have an entry. */
typedef struct PenEntryPlan {
    uint32_t n_mcus;
    uint32_t restart; /* restart interval in MCUs; 0: there are no restart markers */
    uint32_t unit;    /* at most so many MCUs in an interval */
    uint32_t components;

    uint32_t group;     /* MCUs from one entry behind a restart marker to the next such entry */
    uint32_t per_group; /* entries */
    uint32_t n_entries;
} PenEntryPlan;

/* n_mcus and unit are at least 1; restart and unit are at most 65,535. */
void pen__entry_plan(uint32_t n_mcus, uint32_t restart, uint32_t unit, uint32_t components,
                     PenEntryPlan *ret);

/* The number of an interval that has this MCU, the first MCU of an interval, and how many it has.
 */
uint32_t pen__entry_of(const PenEntryPlan *plan, uint32_t mcu);
uint32_t pen__entry_first(const PenEntryPlan *plan, uint32_t entry);
uint32_t pen__entry_mcus(const PenEntryPlan *plan, uint32_t entry);

/* Does the entry follow a restart marker, or begin the scan? Then its predictors are 0, and it
 * begins with a byte. So does the end of the scan, which counts as an entry here. */
static inline bool pen__entry_is_restart(const PenEntryPlan *plan, uint32_t entry)
{
    return entry % plan->per_group == 0 || entry == plan->n_entries;
}

/* Code of the restart marker before an MCU that follows one. */
uint8_t pen__entry_marker(const PenEntryPlan *plan, uint32_t mcu);

/* The index of a file. */
typedef struct PenJpegEntries {
    PenEntryPlan plan;
    const PenEntry *at;  /* plan.n_entries of them */
    uint64_t scan_bytes; /* up to the marker that follows the last MCU */
} PenJpegEntries;

/* Where the interval before an entry ends: the entry itself, or the end of the scan. */
static inline uint64_t pen__entry_bit(const PenJpegEntries *e, uint32_t entry)
{
    return entry < e->plan.n_entries ? e->at[entry].bit : e->scan_bytes * 8;
}

/* ---- as bytes ----
 * Every entry but the first, which is at bit 0: the distance in bits to the entry before it, as a
 * u16, or as 0xFFFF and a u32 if it is 0xFFFF or more. Then, unless it follows a restart marker,
 * for each component the difference of its predictor to that of the entry before it: as zigzag
 * number (0, -1, 1, -2 become 0, 1, 2, 3) in groups of 7 bits, lowest first, each but the last with
 * the bit 0x80. Every index has one coding only. */

/* Appended to `out`. */
int pen__entries_write(const PenJpegEntries *entries, PenBuf *out, PenError *reterr);

/* PEN_E_DECODE unless it is the coding of an index in which entries follow each other inside the
 * scan. The entries replace what `buf` has; ret->at points to them. */
int pen__entries_parse(const uint8_t *data, size_t bytes, const PenEntryPlan *plan,
                       uint64_t scan_bytes, PenBuf *buf, PenJpegEntries *ret, PenError *reterr);

#endif
