/* SPDX-License-Identifier: Apache-2.0 */
/* Names for the class numbers of a list: LIST.classes.csv beside LIST.csv has a row label,class for
 * each class, from 0 on. 'penstock extract' writes it, so that its list gives the same pack again:
 * names alone say neither the numbers of classes nor which classes have no samples. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "ingest/source/list.h"
#include "ingest/source/object.h"
#include "io/dir.h"

#define WHERE "ingest/list"
#define SUFFIX ".classes.csv"

char *pen__list_classes_path(const char *list)
{
    size_t n = strlen(list);
    if (pen__text_ends(list, ".csv") || pen__text_ends(list, ".tsv"))
        n -= 4;
    char *name = pen__alloc(n + sizeof SUFFIX);
    if (!name)
        return NULL;
    memcpy(name, list, n);
    memcpy(name + n, SUFFIX, sizeof SUFFIX);
    return name;
}

static int fail_row(const char *name, uint64_t line, const char *expected, const PenCsvRow *row,
                    PenError *reterr)
{
    return pen__fail(reterr, PEN_E_INVALID, WHERE,
                     "%s: line %" PRIu64 ": expected %s, found \"%.60s\"%s; fix or remove this "
                     "file: it names the classes of the list next to it",
                     name, line, expected, row->cells[0].text,
                     row->n_cells == 2 ? "" : " and a number of columns other than 2");
}

/* The names in a set: what it does not take as new is there twice. */
static int add_name(PenClassNames *to, PenNameSet *seen, const char *name, const PenCsvRow *row,
                    PenError *reterr)
{
    const PenCsvCell *cell = &row->cells[1];
    uint32_t number;
    bool is_new = false;
    if (!cell->bytes)
        return fail_row(name, row->line, "a name after the number", row, reterr);
    int r = pen__name_set_add(seen, cell->text, cell->bytes, &number, &is_new, reterr);
    if (r < 0)
        return r;
    if (!is_new)
        return pen__fail(reterr, PEN_E_INVALID, WHERE,
                         "%s: line %" PRIu64
                         ": expected a name that differs from those before it, found "
                         "\"%.60s\", which is also class %" PRIu32 "; fix or remove this file",
                         name, row->line, cell->text, number);
    if (to->n == to->cap) {
        uint32_t cap = to->cap ? to->cap * 2 : 64;
        char **grown = pen__resize(to->names, cap * sizeof *grown);
        if (!grown)
            return pen__fail_memory(reterr, WHERE, name);
        to->names = grown;
        to->cap = cap;
    }
    to->names[to->n] = pen__strndup(cell->text, cell->bytes);
    return to->names[to->n] ? (to->n++, PEN_OK) : pen__fail_memory(reterr, WHERE, name);
}

static int read_rows(PenCsv *csv, const char *name, PenClassNames *to, PenNameSet *seen,
                     PenError *reterr)
{
    PenCsvRow row;
    int r = pen__csv_next(csv, &row, reterr);
    if (r == PEN_END)
        return pen__fail(reterr, PEN_E_INVALID, WHERE,
                         "%s: expected the header label,class, found an empty file", name);
    if (r == PEN_OK && (row.n_cells != 2 || strcmp(row.cells[0].text, "label") != 0 ||
                        strcmp(row.cells[1].text, "class") != 0))
        r = fail_row(name, row.line, "the header label,class", &row, reterr);
    while (r == PEN_OK) {
        int64_t number;
        r = pen__csv_next(csv, &row, reterr);
        if (r)
            break;
        if (row.n_cells != 2 || !pen__text_i64(row.cells[0].text, &number) || number != to->n) {
            char expected[64];
            snprintf(expected, sizeof expected, "the number %" PRIu32 " and its class", to->n);
            r = fail_row(name, row.line, expected, &row, reterr);
        } else {
            r = add_name(to, seen, name, &row, reterr);
        }
    }
    return r == PEN_END ? PEN_OK : r;
}

int pen__list_open(PenInputs *in, const char *list, PenSource **ret, PenError *reterr)
{
    return pen_is_remote(list) ? pen__object_open(in->places, list, NULL, ret, NULL, reterr)
                               : pen__source_open_file(list, ret, reterr);
}

/* 1 yes, 0 no. */
static int exists(PenInputs *in, const char *name, PenError *reterr)
{
    PenObject object;
    if (!pen_is_remote(name))
        return pen__file_exists(name, reterr);
    int r = pen__places_object(in->places, name, &object, reterr);
    return r == PEN_OK ? 1 : pen__error_accept(r, PEN_E_NOT_FOUND, reterr);
}

static int read_names(PenInputs *in, const char *name, PenClassNames *to, PenError *reterr)
{
    PenSource *source = NULL;
    PenCsv *csv = NULL;
    PenNameSet seen = {0};
    int r = pen__list_open(in, name, &source, reterr);
    if (r == PEN_OK)
        r = pen__csv_open(source, ',', &csv, reterr);
    if (r == PEN_OK)
        r = read_rows(csv, name, to, &seen, reterr);
    pen__name_set_free(&seen);
    pen__csv_close(&csv);
    pen__source_close(&source);
    return r;
}

static bool same(const PenClassNames *a, const PenClassNames *b)
{
    if (a->n != b->n || !a->from != !b->from)
        return false;
    for (uint32_t i = 0; i < a->n; i++)
        if (strcmp(a->names[i], b->names[i]) != 0)
            return false;
    return true;
}

int pen__list_classes(PenInputs *in, const char *list, bool first, PenError *reterr)
{
    PenClassNames found = {0};
    char *name = pen__list_classes_path(list);
    int r = name ? exists(in, name, reterr) : pen__fail_memory(reterr, WHERE, list);
    if (r == 1) {
        found.from = name;
        name = NULL;
        r = read_names(in, found.from, &found, reterr);
        if (r == PEN_OK)
            r = pen__inputs_add_list(in, found.from, reterr);
    }
    pen__free(name);
    if (r == PEN_OK && first) {
        in->classes = found;
        return PEN_OK;
    }
    if (r == PEN_OK && !same(&found, &in->classes))
        r = pen__fail(reterr, PEN_E_INVALID, WHERE,
                      "%s: expected the same classes for every list, found other classes than in "
                      "the lists before it; every list needs a file such as samples" SUFFIX
                      " with the same content, or none does",
                      list);
    pen__class_names_free(&found);
    return r;
}
