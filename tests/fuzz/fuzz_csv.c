/* SPDX-License-Identifier: Apache-2.0 */
/* A list: CSV when the first byte is even, TSV when it is odd. What was read is written down with
 * every cell quoted, and then reads the same. The list is scanned for inputs as well: images,
 * frames or videos, as bits 2 and 3 say; with bit 1 the separator is found out. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text/utf8.h"
#include "help.h"
#include "ingest/source/input.h"
#include "memory_fs.h"

typedef struct Table {
    PenBuf text;  /* every cell quoted */
    PenBuf cells; /* every cell with its NUL, rows end in a byte 1 */
} Table;

static void add_cell(Table *t, const PenCsvCell *c, const char *before)
{
    REQUIRE(strlen(c->text) == c->bytes && pen__text_is_utf8(c->text, c->bytes));
    int r = pen__buf_add(&t->cells, c->text, c->bytes + 1);
    r += pen__buf_add(&t->text, before, strlen(before));
    for (size_t i = 0; i < c->bytes; i++)
        r += pen__buf_add(&t->text, c->text[i] == '"' ? "\"\"" : &c->text[i],
                          c->text[i] == '"' ? 2 : 1);
    r += pen__buf_add(&t->text, "\"", 1);
    REQUIRE(r == 0);
}

/* The text as a number: the same as the C library reads it. */
static void read_number(const char *text)
{
    int64_t i;
    double d;
    char *end;
    if (pen__text_i64(text, &i))
        REQUIRE(strtoll(text, &end, 10) == i && !*end && pen__text_f64(text, &d));
    if (pen__text_f64(text, &d)) {
        double expected = strtod(text, &end);
        REQUIRE(!*end && memcmp(&d, &expected, sizeof d) == 0);
    }
}

static int read_table(PenSource *source, char separator, Table *ret)
{
    PenError err;
    PenCsv *csv = NULL;
    PenCsvRow row;
    uint64_t line = 0;
    char before[] = {separator, '"', 0};
    int r = CALL(pen__csv_open(source, separator, &csv, &err));
    while (r == PEN_OK && (r = CALL(pen__csv_next(csv, &row, &err))) == PEN_OK) {
        REQUIRE(row.line > line && row.n_cells);
        line = row.line;
        for (uint32_t i = 0; i < row.n_cells; i++) {
            add_cell(ret, &row.cells[i], i ? before : "\"");
            read_number(row.cells[i].text);
        }
        REQUIRE(pen__buf_add(&ret->text, "\r\n", 2) == 0);
        REQUIRE(pen__buf_add(&ret->cells, "\1", 1) == 0);
    }
    pen__csv_close(&csv);
    return r;
}

static void free_table(Table *t)
{
    pen__buf_free(&t->text);
    pen__buf_free(&t->cells);
}

static void read_again(const Table *t, char separator)
{
    PenError err;
    Table again = {.text = {0}};
    PenSource *source = NULL;
    uint8_t *exact = copy_of(t->text.data, t->text.bytes);
    MUST(pen__source_open_memory("again", exact, t->text.bytes, &source, &err));
    int r = read_table(source, separator, &again);
    /* Quotes make a row longer, perhaps too long. */
    REQUIRE(r == PEN_END || (r == PEN_E_LIMIT && t->text.bytes > PEN_CSV_ROW_BYTES));
    if (r == PEN_END)
        REQUIRE(again.cells.bytes == t->cells.bytes &&
                (!again.cells.bytes ||
                 memcmp(again.cells.data, t->cells.data, again.cells.bytes) == 0));
    pen__source_close(&source);
    free_table(&again);
    free(exact);
}

/* All rows become inputs, or none. */
static void scan(PenSource *source, char separator, int kind)
{
    PenError err;
    PenIngestSettings settings;
    pen_ingest_settings_init(&settings);
    settings.skip_bad = 1; /* so that the files need not be there */
    PenInputs *in = calloc(1, sizeof *in);
    in->settings = &settings;
    in->kind = PEN_ROOT_LIST;
    in->what = (uint8_t)kind;
    int r = CALL(pen__scan_list_from(in, source, separator, &err));
    for (uint64_t i = 0; r == PEN_OK && i < in->n; i++) {
        PenInput input;
        PenCell cell;
        char name[64];
        pen__inputs_get(in, i, &input);
        REQUIRE(input.key_bytes && input.key_bytes <= PEN_KEY_LIMIT);
        const uint8_t *at = input.cells;
        for (uint32_t c = 0; c < input.n_cells; c++) {
            pen__cell_next(&at, &cell);
            REQUIRE(cell.column < in->n_columns && cell.source < in->n_roots);
            REQUIRE(cell.kind != PEN_PART_VIDEO || cell.offset < cell.end);
            REQUIRE(cell.kind != PEN_PART_FRAMES || cell.offset <= 2);
        }
        pen__input_name(in, &input, name, sizeof name);
    }
    pen__inputs_free(in);
    free(in);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    PenError err;
    Table t = {.text = {0}};
    PenSource *source = NULL;
    if (!bytes)
        return 0;
    char separator = data[0] & 1 ? '\t' : ',';
    uint8_t *exact = copy_of(data + 1, bytes - 1);
    fs_begin(0);
    fs_folder("folder");
    fs_folder("folder/f");
    fs_file("folder/f/2.jpg", "two", 3);
    fs_file("folder/f/10.jpg", "ten", 3);
    fs_folder("folder/e");
    fs_file("folder/v.mp4", "video", 5);
    MUST(pen__source_open_memory("folder/list", exact, bytes - 1, &source, &err));
    if (read_table(source, separator, &t) == PEN_END)
        read_again(&t, separator);
    scan(source, data[0] & 2 ? 0 : separator, data[0] >> 2 & 3);
    pen__source_close(&source);
    fs_end();
    free_table(&t);
    free(exact);
    return 0;
}
