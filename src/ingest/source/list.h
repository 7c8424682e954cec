/* SPDX-License-Identifier: Apache-2.0 */
/* A look at a list before it is read. */
#ifndef PEN_INGEST_SOURCE_LIST_H
#define PEN_INGEST_SOURCE_LIST_H

#include "ingest/source/input.h"

typedef struct PenListLook {
    char separator;
    bool has_header;
    uint8_t what;     /* a PenInputKind, by the settings or the first sample */
    PenCsvRow header; /* of a list without one: the columns it has */
} PenListLook;

/* `kind`: the PenInputKind that was asked for. Separator 0: to be found out. */
int pen__list_look(PenSource *source, const char *root, int kind, char separator, PenListLook *ret,
                   PenError *reterr);

/* A path or an address; pen__source_close. */
int pen__list_open(PenInputs *inputs, const char *list, PenSource **ret, PenError *reterr);
/* "dir/samples.classes.csv" of "dir/samples.csv"; NULL when out of memory. */
char *pen__list_classes_path(const char *list);
/* Reads the file that names the classes of the list, if there is one. `first`: no list came before;
 * the others have to have the same names. */
int pen__list_classes(PenInputs *inputs, const char *list, bool first, PenError *reterr);

int pen__list_separator(PenSource *source, char *ret, PenError *reterr);
/* The column with the first of these names that there is; -1 = none. */
int64_t pen__list_column(const PenCsvRow *row, const char *const *names, size_t n);
int64_t pen__list_path_column(const PenCsvRow *row);

#endif
