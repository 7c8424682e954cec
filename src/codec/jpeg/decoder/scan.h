/* SPDX-License-Identifier: Apache-2.0 */
/* Makes the entry index of a JPEG file that the own decoder can decode (codec/jpeg/entries.h). */
#ifndef PEN_CODEC_JPEG_DECODER_SCAN_H
#define PEN_CODEC_JPEG_DECODER_SCAN_H

#include "codec/jpeg/entries.h"
#include "codec/jpeg/header.h"

/* MCUs of an interval, by what the file is: docs/explanation/adr/0003-jpegs-with-an-entry-index.md
 * has the figures. */
uint32_t pen__entry_unit(const PenJpegInfo *info);

/* Working memory for one thread at a time, kept from file to file. */
typedef struct PenEntryScan PenEntryScan;

int pen__entry_scan_new(PenEntryScan **ret, PenError *reterr);
void pen__entry_scan_free(PenEntryScan **scan); /* accepts NULL */

/* Releases large buffers, and with them the last index. */
void pen__entry_scan_trim(PenEntryScan *scan); /* accepts NULL */

/* The most memory that the scan of a file takes, with what is kept from earlier ones. */
uint64_t pen__entry_scan_memory(const PenJpegInfo *info, size_t bytes);

/* Reads the scan of a file, whose header has been parsed, from its first bit to its last.
 * PEN_OK: *ret is the index, valid until the next call.
 * PEN_END: the file has none, and *ret_why says why in a word or two: "12 bit", "arithmetic",
 * "CMYK", "damaged", "large" (512 MiB), "not YCbCr", "progressive", "sampling", "several scans",
 * "small" (one interval), "truncated", "unusual header". Whether such a file is good is for libjpeg
 * to say. < 0: no memory. */
int pen__entry_scan(PenEntryScan *scan, const PenJpegHeader *header, const uint8_t *data,
                    size_t bytes, uint32_t unit, PenJpegEntries *ret, const char **ret_why,
                    PenError *reterr);

/* The same with the distance of pen__entry_unit, and only as far as the interval that has MCU
 * `last` and the entry behind it. Entries further on equal that one: they are not of the file. */
int pen__entry_scan_to(PenEntryScan *scan, const PenJpegHeader *header, const uint8_t *data,
                       size_t bytes, uint32_t last, PenJpegEntries *ret, PenError *reterr);

#endif
