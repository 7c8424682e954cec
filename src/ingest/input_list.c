/* SPDX-License-Identifier: Apache-2.0 */
/* A list: a header line, then one sample in each row. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/sys.h"
#include "ingest/input.h"

#define WHERE "ingest/list"

/* What a column of the list is to the sample. */
enum { AS_PATH, AS_LABEL, AS_FILE, AS_VALUE };

typedef struct Role {
    uint8_t as;
    uint16_t column; /* of the inputs; not of a label */
} Role;

typedef struct List {
    PenInputs *inputs;
    PenSource *source;
    PenCsv *csv;
    uint32_t root;
    uint32_t n_roles;
    uint32_t path_at;
    int64_t label_at; /* -1 = none */
    Role *roles;
    PenCell *cells; /* of the row being read */
    PenBuf path;
} List;

/* ---- header ---------------------------------------------------------------------------------- */

static int64_t find(const PenCsvRow *row, const char *const *names, size_t n)
{
    for (size_t i = 0; i < n; i++)
        for (uint32_t k = 0; k < row->n_cells; k++)
            if (strcmp(row->cells[k].text, names[i]) == 0)
                return k;
    return -1;
}

static int check_names(const List *l, const PenCsvRow *row, PenError *reterr)
{
    for (uint32_t i = 0; i < row->n_cells; i++) {
        const PenCsvCell *c = &row->cells[i];
        if (!c->bytes)
            return pen__fail(reterr, PEN_E_INVALID, WHERE,
                             "%s: line %" PRIu64 ", column %" PRIu32
                             ": expected a name for every column, found none; the first line is "
                             "the header",
                             l->source->name, row->line, i + 1);
        if (c->text[0] == ' ' || c->text[c->bytes - 1] == ' ')
            return pen__fail(reterr, PEN_E_INVALID, WHERE,
                             "%s: line %" PRIu64 ", column %" PRIu32
                             ": expected a name without spaces around it, found \"%.60s\"",
                             l->source->name, row->line, i + 1, c->text);
        for (uint32_t k = 0; k < i; k++)
            if (strcmp(row->cells[k].text, c->text) == 0)
                return pen__fail(reterr, PEN_E_INVALID, WHERE,
                                 "%s: line %" PRIu64 ", columns %" PRIu32 " and %" PRIu32
                                 ": expected different names, found %.60s twice",
                                 l->source->name, row->line, k + 1, i + 1, c->text);
    }
    return PEN_OK;
}

static int add_role(List *l, const PenCsvRow *row, uint32_t i, PenError *reterr)
{
    const char *name = row->cells[i].text;
    bool is_path = i == l->path_at;
    bool is_mask = !is_path && strcmp(name, "mask") == 0;
    Role *role = &l->roles[i];
    *role = (Role){i == l->label_at ? AS_LABEL
                   : is_path        ? AS_PATH
                   : is_mask        ? AS_FILE
                                    : AS_VALUE,
                   0};
    if (role->as == AS_LABEL)
        return PEN_OK;
    if (role->as == AS_VALUE && strcmp(name, "image") == 0)
        return pen__fail(reterr, PEN_E_INVALID, WHERE,
                         "%s: line %" PRIu64 ", column %" PRIu32
                         ": expected another name than image, which the files of column %.60s "
                         "get; rename one of the two",
                         l->source->name, row->line, i + 1, row->cells[l->path_at].text);
    int r = pen__inputs_add_column(l->inputs, is_path ? "image" : name,
                                   role->as == AS_VALUE ? 0 : PEN_TYPE_IMAGE,
                                   is_mask ? PEN_FIELD_MASK : 0, &role->column, reterr);
    if (r < 0)
        pen__error_prefix(reterr, "%s: line %" PRIu64 ", column %" PRIu32, l->source->name,
                          row->line, i + 1);
    return r;
}

static int find_roles(List *l, const PenCsvRow *row, PenError *reterr)
{
    static const char *const paths[] = {"path", "image", "file", "filename"};
    static const char *const labels[] = {"label", "class"};
    int64_t path_at = find(row, paths, PEN_LEN(paths));
    if (path_at < 0)
        return pen__fail(reterr, PEN_E_INVALID, WHERE,
                         "%s: line %" PRIu64 ": expected a header with a column path, image, file "
                         "or filename, found \"%.60s\" and %" PRIu32
                         " more; add a line such as path,label",
                         l->source->name, row->line, row->cells[0].text, row->n_cells - 1);
    l->path_at = (uint32_t)path_at;
    l->label_at = find(row, labels, PEN_LEN(labels));
    int r = PEN_OK;
    for (uint32_t i = 0; r == 0 && i < row->n_cells; i++)
        r = add_role(l, row, i, reterr);
    return r;
}

static int read_header(List *l, PenError *reterr)
{
    PenCsvRow row;
    int r = pen__csv_next(l->csv, &row, reterr);
    if (r < 0)
        return r;
    if (r == PEN_END)
        return pen__fail(reterr, PEN_E_INVALID, WHERE,
                         "%s: expected a header line, found an empty file", l->source->name);
    bool first = l->inputs->n_columns == 0;
    uint32_t n_before = l->inputs->n_columns;
    l->roles = pen__alloc_array(row.n_cells, sizeof *l->roles);
    l->cells = pen__alloc_array(row.n_cells, sizeof *l->cells);
    if (!l->roles || !l->cells)
        return pen__fail_memory(reterr, WHERE, l->source->name);
    l->n_roles = row.n_cells;
    r = check_names(l, &row, reterr);
    if (r == 0)
        r = find_roles(l, &row, reterr);
    if (r < 0)
        return r;
    uint32_t n_here = row.n_cells - (l->label_at >= 0);
    if (!first && (l->inputs->n_columns != n_before || n_here != n_before ||
                   l->inputs->has_label != (l->label_at >= 0)))
        return pen__fail(reterr, PEN_E_INVALID, WHERE,
                         "%s: expected the same columns as in the lists before it, found others",
                         l->source->name);
    l->inputs->has_label = l->label_at >= 0;
    return PEN_OK;
}

/* ---- rows ------------------------------------------------------------------------------------ */

static int fail_cell(const List *l, const PenCsvRow *row, uint32_t i, int status, const char *what,
                     PenError *reterr)
{
    return pen__fail(reterr, status, WHERE,
                     "%s: line %" PRIu64 ", column %" PRIu32 ": %s, found \"%.200s\"",
                     l->source->name, row->line, i + 1, what, row->cells[i].text);
}

/* The size of the file. With skip_bad one that cannot be packed goes into the plan all the same: it
 * is counted and reported with the other broken ones when it is read. */
static int stat_cell(List *l, const PenCsvRow *row, uint32_t i, uint64_t *ret, PenError *reterr)
{
    const char *root = l->inputs->roots[l->root].path;
    const PenCsvCell *c = &row->cells[i];
    l->path.bytes = 0;
    size_t need = strlen(root) + c->bytes + 2;
    if (pen__buf_reserve(&l->path, need) < 0)
        return pen__fail_memory(reterr, WHERE, l->source->name);
    pen__root_path(root, c->text, c->bytes, (char *)l->path.data, need);
    PenFileStat st = {0};
    int r = pen__sys->stat_path((char *)l->path.data, &st);
    bool missing = r == -ENOENT || r == -ENOTDIR || r == -ENAMETOOLONG;
    if (r < 0 && !missing)
        return pen__fail_os(reterr, -r, WHERE, "%s: line %" PRIu64 ": %.200s: cannot stat",
                            l->source->name, row->line, c->text);
    *ret = st.is_file ? st.bytes : 0;
    if ((missing || !st.is_file) && !l->inputs->settings->skip_bad)
        return fail_cell(l, row, i, missing ? PEN_E_NOT_FOUND : PEN_E_INVALID,
                         missing ? "no such file: expected a path below the list's folder"
                                 : "expected the path of a file",
                         reterr);
    return PEN_OK;
}

static void narrow(PenColumn *column, const char *text)
{
    int64_t i;
    double d;
    if (column->all_i64)
        column->all_i64 = pen__text_i64(text, &i);
    if (column->all_f64)
        column->all_f64 = pen__text_f64(text, &d);
}

static int read_cell(List *l, const PenCsvRow *row, uint32_t i, PenCell *ret, PenError *reterr)
{
    const Role *role = &l->roles[i];
    const PenCsvCell *c = &row->cells[i];
    *ret = (PenCell){.column = role->column, .source = l->root};
    if (role->as == AS_VALUE) {
        narrow(&l->inputs->columns[role->column], c->text);
        ret->kind = PEN_PART_INLINE;
        ret->text = c->text;
        ret->text_bytes = (uint32_t)c->bytes;
        return PEN_OK;
    }
    if (role->as == AS_FILE && !c->bytes)
        return PEN_OK; /* no mask for this one */
    ret->kind = PEN_PART_FILE;
    ret->path = role->as == AS_PATH ? PEN_PATH_KEY : PEN_PATH_TEXT;
    if (role->as == AS_FILE) {
        ret->text = c->text;
        ret->text_bytes = (uint32_t)c->bytes;
    }
    return stat_cell(l, row, i, &ret->bytes, reterr);
}

static int read_row(List *l, const PenCsvRow *row, PenError *reterr)
{
    if (row->n_cells != l->n_roles)
        return pen__fail(reterr, PEN_E_INVALID, WHERE,
                         "%s: line %" PRIu64 ": expected %" PRIu32 " columns, found %" PRIu32,
                         l->source->name, row->line, l->n_roles, row->n_cells);
    if (!row->cells[l->path_at].bytes)
        return fail_cell(l, row, l->path_at, PEN_E_INVALID, "expected a path", reterr);
    const char *label = NULL;
    if (l->label_at >= 0) {
        label = row->cells[l->label_at].text;
        if (!*label)
            return fail_cell(l, row, (uint32_t)l->label_at, PEN_E_INVALID, "expected a label",
                             reterr);
    }
    uint32_t n = 0;
    for (uint32_t i = 0; i < row->n_cells; i++) {
        if (l->roles[i].as == AS_LABEL)
            continue;
        int r = read_cell(l, row, i, &l->cells[n], reterr);
        if (r < 0)
            return r;
        n += l->cells[n].kind != PEN_PART_NONE;
    }
    const PenCsvCell *key = &row->cells[l->path_at];
    int r = pen__inputs_add(l->inputs, key->text, key->bytes, label, l->cells, n, reterr);
    if (r < 0 && r != PEN_E_CANCELLED)
        pen__error_prefix(reterr, "%s: line %" PRIu64, l->source->name, row->line);
    return r;
}

int pen__scan_list_from(PenInputs *in, PenSource *source, char separator, PenError *reterr)
{
    List l = {.inputs = in, .source = source, .label_at = -1};
    const char *slash = strrchr(source->name, '/');
    size_t dir_bytes = !slash ? 0 : slash == source->name ? 1 : (size_t)(slash - source->name);
    int r = pen__inputs_add_root(in, PEN_ROOT_LIST, source->name, dir_bytes, 0, &l.root, reterr);
    if (r == 0)
        r = pen__csv_open(source, separator, &l.csv, reterr);
    if (r == 0)
        r = read_header(&l, reterr);
    while (r == 0) {
        PenCsvRow row;
        r = pen__csv_next(l.csv, &row, reterr);
        if (r == 0)
            r = read_row(&l, &row, reterr);
    }
    pen__csv_close(&l.csv);
    pen__buf_free(&l.path);
    pen__free(l.roles);
    pen__free(l.cells);
    return r == PEN_END ? PEN_OK : r;
}

int pen__scan_list(PenInputs *in, const char *path, PenError *reterr)
{
    PenSource *source = NULL;
    int r = pen__source_open_file(path, &source, reterr);
    if (r < 0)
        return r;
    r = pen__scan_list_from(in, source, pen__text_ends(path, ".tsv") ? '\t' : ',', reterr);
    pen__source_close(&source);
    return r;
}
