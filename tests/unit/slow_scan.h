/* SPDX-License-Identifier: Apache-2.0 */
/* A JPEG scan read bit by bit from the bytes of the file, straight from ITU-T T.81: what entry
 * indexes are compared with. It shares no code with the library but the parsed header. */
#ifndef PEN_TESTS_UNIT_SLOW_SCAN_H
#define PEN_TESTS_UNIT_SLOW_SCAN_H

#include "codec/jpeg/entries.h"
#include "codec/jpeg/header.h"

typedef struct SlowScan {
    PenEntry *mcus; /* where each begins, from the start of the scan, and its predictors */
    uint32_t n_mcus;
    uint64_t scan_bytes; /* up to EOI */
} SlowScan;

/* False if the file is damaged. free() the MCUs. */
bool read_slowly(const uint8_t *data, size_t bytes, const PenJpegHeader *header, SlowScan *ret);

#endif
