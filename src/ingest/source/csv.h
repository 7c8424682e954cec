/* SPDX-License-Identifier: Apache-2.0 */
/* CSV and TSV, read row by row (RFC 4180). Rows end in LF or CRLF; a byte order mark is skipped; a
 * cell that begins with a quote may hold separators, line ends and doubled quotes. Rows without
 * anything in them are left out. The text must be UTF-8 without NUL. Every error names the line and
 * the column. */
#ifndef PEN_INGEST_SOURCE_CSV_H
#define PEN_INGEST_SOURCE_CSV_H

#include "io/source.h"

/* Limits: what is over one of them is PEN_E_LIMIT. */
#define PEN_CSV_ROW_BYTES ((size_t)1 << 20)
#define PEN_CSV_CELL_BYTES ((size_t)64 << 10)
#define PEN_CSV_COLUMNS 4096

typedef struct PenCsv PenCsv;

typedef struct PenCsvCell {
    const char *text; /* NUL-terminated */
    size_t bytes;
} PenCsvCell;

typedef struct PenCsvRow { /* lives until the next call */
    uint64_t line;         /* its first one, from 1 */
    uint32_t n_cells;
    const PenCsvCell *cells;
} PenCsvRow;

/* `source` stays the caller's and must outlive the reader. */
int pen__csv_open(PenSource *source, char separator, PenCsv **ret, PenError *reterr);
/* 0, or PEN_END behind the last row. After a failure only closing is of use. */
int pen__csv_next(PenCsv *csv, PenCsvRow *ret, PenError *reterr);
void pen__csv_close(PenCsv **csv); /* accepts NULL */

#endif
