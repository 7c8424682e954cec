/* SPDX-License-Identifier: Apache-2.0 */
/* Where the frames of a clip lie in a .gulp file, as the plan keeps it: for each frame the bytes
 * between the one before it and itself (signed: bit 0 is the sign), then its own, both as numbers
 * of 7 bits a byte, lowest first. Frames mostly follow each other, so four bytes are enough for
 * one. */
#ifndef PEN_INGEST_SOURCE_GULP_TABLE_H
#define PEN_INGEST_SOURCE_GULP_TABLE_H

#include <stdbool.h>

#include "base/mem.h"

typedef struct PenGulpFrame {
    uint64_t offset, bytes;
} PenGulpFrame;

typedef struct PenGulpTable {
    const uint8_t *p, *end;
    uint64_t at; /* behind the last frame */
} PenGulpTable;

/* `at` as in PenGulpTable; 0 at first. */
int pen__gulp_table_add(PenBuf *out, uint64_t *at, const PenGulpFrame *frame);
/* False at the end, and for what is no table. */
bool pen__gulp_table_next(PenGulpTable *table, PenGulpFrame *ret);

#endif
