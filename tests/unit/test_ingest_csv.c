/* SPDX-License-Identifier: Apache-2.0 */
#include "ingest/source/csv.h"

#include "fault_sweep.h"
#include "ingest_help.h"

/* All rows as one text: cells in brackets, rows ended by their line number. */
static int render(const char *data, size_t bytes, char separator, char *out, size_t cap,
                  PenError *err)
{
    PenSource *source = NULL;
    PenCsv *csv = NULL;
    size_t used = 0;
    out[0] = 0;
    int r = pen__source_open_memory("t.csv", data, bytes, &source, err);
    if (r == 0)
        r = pen__csv_open(source, separator, &csv, err);
    while (r == 0) {
        PenCsvRow row;
        r = pen__csv_next(csv, &row, err);
        for (uint32_t i = 0; r == 0 && i < row.n_cells; i++) {
            if (strlen(row.cells[i].text) != row.cells[i].bytes)
                abort();
            if (used < cap)
                used += (size_t)snprintf(out + used, cap - used, "[%s]", row.cells[i].text);
        }
        if (r == 0 && used < cap)
            used += (size_t)snprintf(out + used, cap - used, "%d;", (int)row.line);
    }
    pen__csv_close(&csv);
    pen__source_close(&source);
    return r;
}

#define CHECK_ROWS(text, separator, expected)                                                      \
    do {                                                                                           \
        char rows[512];                                                                            \
        PenError err = {0};                                                                        \
        CHECK_INT(render(text, sizeof(text) - 1, separator, rows, sizeof rows, &err), PEN_END);    \
        CHECK_STR(rows, expected);                                                                 \
    } while (0)

#define CHECK_BAD(text, status, message)                                                           \
    do {                                                                                           \
        char rows[512];                                                                            \
        CHECK_FAILS(render(text, sizeof(text) - 1, ',', rows, sizeof rows, &err), status,          \
                    message);                                                                      \
    } while (0)

TEST(plain)
{
    CHECK_ROWS("a,b\n1,2\n", ',', "[a][b]1;[1][2]2;");
    CHECK_ROWS("a,b\r\n1,2", ',', "[a][b]1;[1][2]2;");
    CHECK_ROWS("a,b\r\n1,2\r", ',', "[a][b]1;[1][2]2;");
    CHECK_ROWS("a\tb,c\n", '\t', "[a][b,c]1;");
    CHECK_ROWS("a,,\n,\n", ',', "[a][][]1;[][]2;");
    CHECK_ROWS("a,", ',', "[a][]1;");
    CHECK_ROWS("", ',', "");
    CHECK_ROWS("\n\r\n\n", ',', "");
    CHECK_ROWS("a\n\n\nb\n\n", ',', "[a]1;[b]4;");
}

TEST(byte_order_mark)
{
    CHECK_ROWS("\xef\xbb\xbfpath\n", ',', "[path]1;");
    CHECK_ROWS("x\xef\xbb\xbf\n", ',', "[x\xef\xbb\xbf]1;");
}

TEST(quotes)
{
    CHECK_ROWS("\"a,b\",c\n", ',', "[a,b][c]1;");
    CHECK_ROWS("\"a\"\"b\",\"\"\n", ',', "[a\"b][]1;");
    CHECK_ROWS("\"a\nb\r\n\",c\nd\n", ',', "[a\nb\r\n][c]1;[d]4;");
    CHECK_ROWS("\"a\"", ',', "[a]1;");
    CHECK_ROWS("5\" x,b\n", ',', "[5\" x][b]1;"); /* a quote inside a cell is itself */
    CHECK_ROWS("\"a\tb\"\tc\n", '\t', "[a\tb][c]1;");
}

TEST(errors_name_line_and_column)
{
    CHECK_BAD("a,b\n1,\"x\n\n", PEN_E_INVALID, "t.csv: line 2, column 2: expected a closing quote");
    CHECK_BAD("a,b\n1,\"x\"y\n", PEN_E_INVALID, "line 2, column 2: expected a separator");
    CHECK_BAD("a,b\n1,x\ry\n", PEN_E_INVALID, "line 2, column 2: expected a line feed");
    CHECK_BAD("a,b\nc\0d,x\n", PEN_E_INVALID, "line 2, column 1: expected text, found a NUL");
    CHECK_BAD("a\n\xff\n", PEN_E_INVALID, "expected UTF-8");
    CHECK_BAD("a\n\xc0\x80\n", PEN_E_INVALID, "expected UTF-8");
    CHECK_BAD("a\n\xed\xa0\x80\n", PEN_E_INVALID, "expected UTF-8");
}

/* `n` times `c`, with `head` before and `tail` behind. */
static char *many(const char *head, char c, size_t n, const char *tail, size_t *ret_bytes)
{
    size_t a = strlen(head), b = strlen(tail);
    char *p = malloc(a + n + b);
    memcpy(p, head, a);
    memset(p + a, c, n);
    memcpy(p + a + n, tail, b);
    *ret_bytes = a + n + b;
    return p;
}

static void check_many(const char *head, char c, size_t n, const char *tail, int status,
                       const char *message)
{
    char rows[8];
    size_t bytes;
    PenError err = {0};
    char *p = many(head, c, n, tail, &bytes);
    int r = render(p, bytes, ',', rows, sizeof rows, &err);
    free(p);
    CHECK_INT(r, status);
    CHECK(strstr(err.message, message));
}

TEST(limits)
{
    check_many("a\n", 'x', PEN_CSV_CELL_BYTES, "\n", PEN_END, "");
    check_many("a\n", 'x', PEN_CSV_CELL_BYTES + 1, "\n", PEN_E_LIMIT, "line 2, column 1");
    check_many("a\n", ',', PEN_CSV_COLUMNS - 1, "\n", PEN_END, "");
    check_many("a\n", ',', PEN_CSV_COLUMNS, "\n", PEN_E_LIMIT, "column 4097: expected at most");
    check_many("a\n\"", '\n', PEN_CSV_ROW_BYTES, "", PEN_E_LIMIT, "");
}

/* One row of many cells that are each in bounds. */
TEST(row_limit)
{
    size_t cell = 32768, n = 40;
    char *p = malloc(n * (cell + 1));
    memset(p, 'x', n * (cell + 1));
    for (size_t i = 0; i < n; i++)
        p[i * (cell + 1) + cell] = ',';
    char rows[8];
    PenError err = {0};
    int r = render(p, n * (cell + 1), ',', rows, sizeof rows, &err);
    free(p);
    CHECK_INT(r, PEN_E_LIMIT);
    CHECK(strstr(err.message, "1 MiB"));
}

/* Every kind of byte falls on the border between two reads once. */
TEST(cells_across_reads)
{
    static const char row[] = "ab,\"c\"\"d\r\n\",\xc3\xa4\r\n";
    for (size_t shift = 0; shift < sizeof row; shift++) {
        size_t n = 65536 - 30 + shift, bytes;
        char *p = many("", '\n', n, row, &bytes);
        char rows[128], expected[128];
        PenError err = {0};
        snprintf(expected, sizeof expected, "[ab][c\"d\r\n][\xc3\xa4]%zu;", n + 1);
        int r = render(p, bytes, ',', rows, sizeof rows, &err);
        free(p);
        CHECK_INT(r, PEN_END);
        CHECK_STR(rows, expected);
    }
}

/* Whatever the bytes, it ends with rows or a typed error. */
TEST(noise)
{
    static const char alphabet[] = "a,\"\n\r\t\xc3\xa4\xff\0b";
    uint32_t state = 1;
    int ended = 0;
    for (int i = 0; i < 20000; i++) {
        char text[64], rows[512];
        size_t n = (state >> 8) % sizeof text;
        for (size_t k = 0; k < n; k++) {
            state = state * 1664525 + 1013904223;
            text[k] = alphabet[(state >> 16) % (sizeof alphabet - (i % 2 ? 1 : 5))];
        }
        state = state * 1664525 + 1013904223;
        PenError err = {0};
        int r = render(text, n, ',', rows, sizeof rows, &err);
        CHECK(r == PEN_END || r == PEN_E_INVALID);
        ended += r == PEN_END;
    }
    CHECK(ended > 100 && ended < 19900);
}

static int sweep_body(PenError *err)
{
    char rows[512];
    static const char text[] = "a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q,r\n1,\"2\",3\n";
    int r = render(text, sizeof text - 1, ',', rows, sizeof rows, err);
    return r == PEN_END ? PEN_OK : r;
}

TEST(every_call_fails)
{
    int points = 0;
    fault_sweep(sweep_body, &points);
    CHECK_OK_SO_FAR();
    CHECK(points > 10);
}

int main(int argc, char **argv)
{
    TEST_START(argc, argv);
    RUN(plain);
    RUN(byte_order_mark);
    RUN(quotes);
    RUN(errors_name_line_and_column);
    RUN(limits);
    RUN(row_limit);
    RUN(cells_across_reads);
    RUN(noise);
    RUN(every_call_fails);
    return TEST_END();
}
