/* SPDX-License-Identifier: Apache-2.0 */
/* Entry tables: JPEG files that are stored as they are, with places at which decoding can start,
 * and checksums of parts, so that some bytes can be fetched and checked without the rest. */
#ifndef PEN_PACK_FORMAT_ENTRY_TABLE_H
#define PEN_PACK_FORMAT_ENTRY_TABLE_H

#include "pack/format/place.h"
#include "pack/format/stored.h"

/* A table as it lies in a block's index; checked by pen__entry_table_read. */
typedef struct PenEntryTable {
    PenStoredEntries stored; /* `coded` points into the index */
    uint64_t payload_bytes;
    uint32_t n_parts;    /* lead, tables, runs, tail */
    const uint8_t *sums; /* of all parts but the lead, u32 each */
} PenEntryTable;

/* Is it an entry table, not a segment table? */
bool pen__is_entry_table(const uint8_t *data, uint64_t bytes);

/* Appends the sums of PenStoredEntries. */
int pen__entry_table_sums(const PenStoredEntries *stored, const uint8_t *data, uint64_t bytes,
                          PenBuf *out);
/* Appends the table of a file with the checksums of its parts; `place` is that of the image. `data`
 * NULL: the checksums follow from those in `stored`. */
int pen__entry_table_write(const PenStoredEntries *stored, const uint8_t *data, uint64_t bytes,
                           PenPlace place, PenBuf *out);

/* Parses the table of an image of this size, and takes all of `bytes`. Returns NULL, or what is
 * wrong with it. Its entries are not looked at: pen__entries_parse does that. */
const char *pen__entry_table_read(PenEntryTable *ret, const uint8_t *data, uint64_t bytes,
                                  uint64_t payload_bytes, uint32_t width, uint32_t height);

/* A part of the payload. Its checksum has the part's number as run. */
typedef struct PenFilePart {
    uint64_t offset, bytes;
} PenFilePart;

enum { PEN_FILE_LEAD, PEN_FILE_TABLES, PEN_FILE_RUNS };

PenFilePart pen__entry_table_part(const PenEntryTable *t, uint32_t part);
/* Of any part but the lead, whose checksum the image's entry has. */
uint32_t pen__entry_table_sum(const PenEntryTable *t, uint32_t part);

#endif
