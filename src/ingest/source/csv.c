/* SPDX-License-Identifier: Apache-2.0 */
#include "ingest/source/csv.h"

#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#include "base/text/utf8.h"

#define WHERE "ingest/csv"
#define CHUNK_BYTES ((size_t)64 << 10)

struct PenCsv {
    PenSource *source;
    char separator;
    uint8_t *chunk;
    size_t at, have;   /* in the chunk */
    uint64_t offset;   /* of what follows the chunk */
    uint64_t line;     /* where reading stands, from 1 */
    size_t row_bytes;  /* of the row so far, as written */
    PenBuf text;       /* cells of the row, each with a NUL behind it */
    size_t cell_at;    /* where the open cell begins in it */
    PenCsvCell *cells; /* text is set when the row is complete: the buffer may still move */
    uint32_t n_cells, cap;
};

static int fail(const PenCsv *c, int status, const char *what, PenError *reterr)
{
    return pen__fail(reterr, status, WHERE, "%s: line %" PRIu64 ", column %" PRIu32 ": %s",
                     c->source->name, c->line, c->n_cells + 1, what);
}

/* The next byte without taking it: 1 and *ret, 0 at the end, < 0 failure. */
static int peek(PenCsv *c, uint8_t *ret, PenError *reterr)
{
    if (c->at == c->have) {
        uint64_t left = c->source->bytes - c->offset;
        if (!left)
            return 0;
        size_t bytes = left < CHUNK_BYTES ? (size_t)left : CHUNK_BYTES;
        int r = pen__source_read(c->source, c->chunk, bytes, c->offset, reterr);
        if (r < 0)
            return r;
        c->offset += bytes;
        c->at = 0;
        c->have = bytes;
    }
    *ret = c->chunk[c->at];
    return 1;
}

/* Takes the byte that peek has shown. */
static int take(PenCsv *c, PenError *reterr)
{
    if (c->chunk[c->at] == '\n')
        c->line++;
    c->at++;
    if (++c->row_bytes > PEN_CSV_ROW_BYTES)
        return fail(c, PEN_E_LIMIT,
                    "expected a row of at most 1 MiB, found a longer one; check for a quote that "
                    "is not closed",
                    reterr);
    return PEN_OK;
}

static int cell_push(PenCsv *c, uint8_t byte, PenError *reterr)
{
    if (c->text.bytes - c->cell_at >= PEN_CSV_CELL_BYTES)
        return fail(c, PEN_E_LIMIT, "expected a cell of at most 64 KiB, found a longer one",
                    reterr);
    if (!byte)
        return fail(c, PEN_E_INVALID, "expected text, found a NUL byte", reterr);
    if (pen__buf_add(&c->text, &byte, 1) < 0)
        return pen__fail_memory(reterr, WHERE, c->source->name);
    return PEN_OK;
}

static int cell_end(PenCsv *c, PenError *reterr)
{
    size_t bytes = c->text.bytes - c->cell_at;
    if (!pen__text_is_utf8(c->text.data + c->cell_at, bytes))
        return fail(c, PEN_E_INVALID, "expected UTF-8, found other bytes; save the list as UTF-8",
                    reterr);
    if (c->n_cells == PEN_CSV_COLUMNS)
        return fail(c, PEN_E_LIMIT, "expected at most 4096 columns, found more", reterr);
    if (c->n_cells == c->cap) {
        uint32_t cap = c->cap ? c->cap * 2 : 16;
        PenCsvCell *grown = pen__resize(c->cells, cap * sizeof *grown);
        if (!grown)
            return pen__fail_memory(reterr, WHERE, c->source->name);
        c->cells = grown;
        c->cap = cap;
    }
    if (pen__buf_add(&c->text, "", 1) < 0)
        return pen__fail_memory(reterr, WHERE, c->source->name);
    c->cells[c->n_cells++].bytes = bytes;
    c->cell_at = c->text.bytes;
    return PEN_OK;
}

/* Takes what ends a cell. *ret_last: it ends the row too. 1 when there is nothing of the kind here.
 */
static int take_end(PenCsv *c, bool *ret_last, PenError *reterr)
{
    uint8_t byte;
    int r = peek(c, &byte, reterr);
    if (r < 0)
        return r;
    if (r > 0 && byte != (uint8_t)c->separator && byte != '\n' && byte != '\r')
        return 1;
    *ret_last = r == 0 || byte != (uint8_t)c->separator;
    if (r == 0)
        return PEN_OK;
    r = take(c, reterr);
    if (r < 0 || byte != '\r')
        return r;
    r = peek(c, &byte, reterr);
    if (r > 0 && byte != '\n')
        return fail(c, PEN_E_INVALID,
                    "expected a line feed after a carriage return, found another byte", reterr);
    return r > 0 ? take(c, reterr) : r;
}

/* Up to the quote that ends the cell, which is taken. */
static int quoted_cell(PenCsv *c, PenError *reterr)
{
    uint64_t line = c->line;
    int r = take(c, reterr);
    while (r == PEN_OK) {
        uint8_t byte;
        r = peek(c, &byte, reterr);
        if (r < 0)
            return r;
        if (r == PEN_OK) {
            c->line = line;
            return fail(c, PEN_E_INVALID, "expected a closing quote, found the end of the file",
                        reterr);
        }
        r = take(c, reterr);
        if (r < 0)
            return r;
        if (byte == '"') {
            r = peek(c, &byte, reterr);
            if (r <= 0 || byte != '"')
                return r < 0 ? r : PEN_OK;
            r = take(c, reterr);
            if (r < 0)
                return r;
        }
        r = cell_push(c, byte, reterr);
    }
    return r;
}

static int plain_cell(PenCsv *c, bool *ret_last, PenError *reterr)
{
    int r;
    while ((r = take_end(c, ret_last, reterr)) > 0) {
        uint8_t byte = c->chunk[c->at];
        r = take(c, reterr);
        if (r == PEN_OK)
            r = cell_push(c, byte, reterr);
        if (r < 0)
            return r;
    }
    return r;
}

static int read_cell(PenCsv *c, bool *ret_last, PenError *reterr)
{
    uint8_t byte;
    int r = peek(c, &byte, reterr);
    if (r < 0)
        return r;
    if (r > 0 && byte == '"') {
        r = quoted_cell(c, reterr);
        if (r == PEN_OK)
            r = take_end(c, ret_last, reterr);
        if (r > 0)
            return fail(c, PEN_E_INVALID,
                        "expected a separator after the closing quote, found another byte; "
                        "write a quote inside a quoted cell twice",
                        reterr);
    } else {
        r = plain_cell(c, ret_last, reterr);
    }
    return r < 0 ? r : cell_end(c, reterr);
}

static int read_row(PenCsv *c, PenError *reterr)
{
    uint8_t byte;
    int r = peek(c, &byte, reterr);
    if (r <= 0)
        return r < 0 ? r : PEN_END;
    c->n_cells = 0;
    c->text.bytes = 0;
    c->cell_at = 0;
    c->row_bytes = 0;
    bool last = false;
    while (!last) {
        r = read_cell(c, &last, reterr);
        if (r < 0)
            return r;
    }
    return PEN_OK;
}

int pen__csv_next(PenCsv *c, PenCsvRow *ret, PenError *reterr)
{
    uint64_t line;
    do {
        line = c->line;
        int r = read_row(c, reterr);
        if (r)
            return r;
    } while (c->n_cells == 1 && c->cells[0].bytes == 0);
    const char *text = (const char *)c->text.data;
    for (uint32_t i = 0; i < c->n_cells; i++) {
        c->cells[i].text = text;
        text += c->cells[i].bytes + 1;
    }
    *ret = (PenCsvRow){line, c->n_cells, c->cells};
    return PEN_OK;
}

int pen__csv_open(PenSource *source, char separator, PenCsv **ret, PenError *reterr)
{
    PenCsv *c = pen__zalloc(sizeof *c);
    uint8_t *chunk = pen__alloc(CHUNK_BYTES);
    if (!c || !chunk) {
        pen__free(c);
        pen__free(chunk);
        return pen__fail_memory(reterr, WHERE, source->name);
    }
    *c = (PenCsv){.source = source, .separator = separator, .chunk = chunk, .line = 1};
    uint8_t byte;
    int r = peek(c, &byte, reterr);
    /* So that an empty first cell has an address too. */
    if (r >= 0 && pen__buf_reserve(&c->text, 1) < 0)
        r = pen__fail_memory(reterr, WHERE, source->name);
    if (r < 0) {
        pen__csv_close(&c);
        return r;
    }
    if (c->have >= 3 && memcmp(chunk, "\xef\xbb\xbf", 3) == 0)
        c->at = 3;
    *ret = c;
    return PEN_OK;
}

void pen__csv_close(PenCsv **csv)
{
    if (!csv || !*csv)
        return;
    PenCsv *c = *csv;
    pen__buf_free(&c->text);
    pen__free(c->cells);
    pen__free(c->chunk);
    pen__free(c);
    *csv = NULL;
}
