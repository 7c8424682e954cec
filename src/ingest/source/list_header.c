/* SPDX-License-Identifier: Apache-2.0 */
/* What kind of list this is, from its first lines: the separator, whether the first line is a
 * header, what the paths lead to. */
#include <errno.h>
#include <string.h>

#include "base/sys.h"
#include "ingest/source/list.h"

#define WHERE "ingest/list"
#define LOOK_BYTES ((size_t)4096)

static const char *const path_names[] = {"path",  "image", "file", "filename",
                                         "video", "clip",  "id"};

/* What stands for the header of a list without one: 20BN's lists are id;label. */
static const PenCsvCell no_header[] = {{"path", 4}, {"label", 5}, {"start", 5}, {"end", 3}};

int64_t pen__list_column(const PenCsvRow *row, const char *const *names, size_t n)
{
    for (size_t i = 0; i < n; i++)
        for (uint32_t k = 0; k < row->n_cells; k++)
            if (strcmp(row->cells[k].text, names[i]) == 0)
                return k;
    return -1;
}

int64_t pen__list_path_column(const PenCsvRow *row)
{
    return pen__list_column(row, path_names, PEN_LEN(path_names));
}

/* The first separator of the first line that is not inside quotes. */
int pen__list_separator(PenSource *source, char *ret, PenError *reterr)
{
    char text[LOOK_BYTES];
    size_t bytes = source->bytes < LOOK_BYTES ? (size_t)source->bytes : LOOK_BYTES;
    int r = bytes ? pen__source_read(source, text, bytes, 0, reterr) : PEN_OK;
    if (r < 0)
        return r;
    bool quoted = false;
    *ret = ',';
    for (size_t i = 0; i < bytes && (quoted || text[i] != '\n'); i++) {
        if (text[i] == '"')
            quoted = !quoted;
        if (!quoted && (text[i] == ',' || text[i] == ';' || text[i] == '\t')) {
            *ret = text[i];
            break;
        }
    }
    return PEN_OK;
}

enum { NOTHING, A_FILE, A_FOLDER };

/* What the path in a cell leads to. */
static int look_at(const char *root, const PenCsvCell *cell, PenError *reterr)
{
    PenFileStat st = {0};
    if (pen_is_remote(root))
        return NOTHING; /* so a list of objects needs a header */
    size_t need = strlen(root) + cell->bytes + 2;
    char *path = pen__alloc(need);
    if (!path)
        return pen__fail_memory(reterr, WHERE, cell->text);
    pen__root_path(root, cell->text, cell->bytes, path, need);
    int r = cell->bytes ? pen__sys->stat_path(path, &st) : -ENOENT;
    if (r == -ENOENT || r == -ENOTDIR || r == -ENAMETOOLONG)
        r = NOTHING;
    else if (r < 0)
        r = pen__fail_os(reterr, -r, WHERE, "%.200s: cannot stat", path);
    else
        r = st.is_dir ? A_FOLDER : A_FILE;
    pen__free(path);
    return r;
}

/* Is a first line, in which no name is known, a sample? When it was said that these are clips, and
 * when its path is there and the next line's is the same kind of thing: a column may be called like
 * a folder. */
static int is_sample(PenCsv *csv, const PenCsvRow *row, const char *root, int kind,
                     PenError *reterr)
{
    PenCsvRow next;
    if (row->n_cells > PEN_LEN(no_header))
        return 0;
    if (kind == PEN_INPUT_FRAMES || kind == PEN_INPUT_VIDEOS)
        return 1;
    int first = look_at(root, &row->cells[0], reterr);
    if (first <= NOTHING)
        return first;
    int r = pen__csv_next(csv, &next, reterr);
    if (r)
        return r; /* a list of one line */
    r = look_at(root, &next.cells[0], reterr);
    return r < 0 ? r : r == first;
}

static int what_is(const PenCsvRow *row, int64_t path_at, const char *root, PenListLook *ret,
                   PenError *reterr)
{
    if (row->n_cells <= path_at)
        return PEN_OK;
    int r = look_at(root, &row->cells[path_at], reterr);
    if (r == A_FOLDER)
        ret->what = PEN_INPUT_FRAMES;
    else if (r >= 0 && pen__name_is_video(row->cells[path_at].text))
        ret->what = PEN_INPUT_VIDEOS;
    return PEN_MIN(r, 0);
}

/* Empty lists, and headers without a path, are told of by who reads the header. */
static int look(PenCsv *csv, const char *root, int kind, PenListLook *ret, PenError *reterr)
{
    PenCsvRow row;
    int r = pen__csv_next(csv, &row, reterr);
    if (r)
        return r;
    int64_t path_at = pen__list_path_column(&row);
    if (path_at >= 0) {
        r = kind == PEN_INPUT_AUTO ? pen__csv_next(csv, &row, reterr) : PEN_END;
        return r ? r : what_is(&row, path_at, root, ret, reterr);
    }
    ret->header = (PenCsvRow){row.line, row.n_cells, no_header};
    if (kind == PEN_INPUT_AUTO)
        r = what_is(&row, 0, root, ret, reterr);
    if (r == PEN_OK)
        r = is_sample(csv, &row, root, kind, reterr);
    ret->has_header = r == PEN_OK;
    return r;
}

int pen__list_look(PenSource *source, const char *root, int kind, char separator, PenListLook *ret,
                   PenError *reterr)
{
    PenCsv *csv = NULL;
    *ret =
        (PenListLook){.has_header = true, .what = kind ? (uint8_t)kind : (uint8_t)PEN_INPUT_IMAGES};
    int r = separator ? PEN_OK : pen__list_separator(source, &separator, reterr);
    ret->separator = separator;
    if (r == PEN_OK)
        r = pen__csv_open(source, separator, &csv, reterr);
    if (r == PEN_OK)
        r = look(csv, root, kind, ret, reterr);
    pen__csv_close(&csv);
    return PEN_MIN(r, 0);
}
