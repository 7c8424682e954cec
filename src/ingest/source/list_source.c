/* SPDX-License-Identifier: Apache-2.0 */
/* A list: a header line, then one sample in each row. Lists without a header have the columns path,
 * label, start and end, as many of them as there are. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/sys.h"
#include "ingest/source/beneath.h"
#include "ingest/source/frames.h"
#include "ingest/source/list.h"
#include "ingest/source/object.h"

#define WHERE "ingest/list"

/* What a column of the list is to the sample. */
enum { AS_PATH, AS_LABEL, AS_FILE, AS_VALUE, AS_START, AS_END };

typedef struct Role {
    uint8_t as;
    uint16_t column; /* of the inputs; not of a label, a start or an end */
} Role;

typedef struct List {
    PenInputs *inputs;
    PenSource *source;
    PenCsv *csv;
    uint32_t root;
    uint32_t n_roles;
    uint32_t path_at;
    int64_t label_at, start_at, end_at; /* -1 = none */
    uint8_t what;                       /* a PenInputKind */
    bool has_header;
    Role *roles;
    PenCell *cells; /* of the row being read */
    PenBuf path, key;
} List;

/* ---- header ---------------------------------------------------------------------------------- */

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

static uint8_t role_of(const List *l, const char *name, uint32_t i)
{
    if (i == l->path_at)
        return AS_PATH;
    if (i == l->label_at)
        return AS_LABEL;
    if (i == l->start_at)
        return AS_START;
    if (i == l->end_at)
        return AS_END;
    return l->what == PEN_INPUT_IMAGES && strcmp(name, "mask") == 0 ? AS_FILE : AS_VALUE;
}

static int add_role(List *l, const PenCsvRow *row, uint32_t i, PenError *reterr)
{
    const char *name = row->cells[i].text;
    const char *field = pen__what_field(l->what);
    Role *role = &l->roles[i];
    *role = (Role){role_of(l, name, i), 0};
    if (role->as == AS_LABEL || role->as == AS_START || role->as == AS_END)
        return PEN_OK;
    if (role->as == AS_VALUE && strcmp(name, field) == 0)
        return pen__fail(reterr, PEN_E_INVALID, WHERE,
                         "%s: line %" PRIu64 ", column %" PRIu32
                         ": expected a name other than %s, which is the field of column %.60s; "
                         "rename one of the two",
                         l->source->name, row->line, i + 1, field, row->cells[l->path_at].text);
    bool is_path = role->as == AS_PATH, is_mask = role->as == AS_FILE;
    int32_t type = is_path ? pen__what_type(l->what) : is_mask ? PEN_TYPE_IMAGE : 0;
    int r = pen__inputs_add_column(l->inputs, is_path ? field : name, type,
                                   is_mask ? PEN_FIELD_MASK : 0, &role->column, reterr);
    if (r < 0)
        pen__error_prefix(reterr, "%s: line %" PRIu64 ", column %" PRIu32, l->source->name,
                          row->line, i + 1);
    return r;
}

static int find_roles(List *l, const PenCsvRow *row, PenError *reterr)
{
    static const char *const labels[] = {"label", "class"};
    static const char *const starts[] = {"start"}, *const ends[] = {"end"};
    int64_t path_at = pen__list_path_column(row);
    if (path_at < 0)
        return pen__fail(reterr, PEN_E_INVALID, WHERE,
                         "%s: line %" PRIu64 ": expected a header with a column path, image, file, "
                         "filename, video, clip or id, found \"%.60s\" and %" PRIu32
                         " more; add a line such as path,label",
                         l->source->name, row->line, row->cells[0].text, row->n_cells - 1);
    l->path_at = (uint32_t)path_at;
    l->label_at = pen__list_column(row, labels, PEN_LEN(labels));
    if (l->what == PEN_INPUT_VIDEOS) {
        l->start_at = pen__list_column(row, starts, 1);
        l->end_at = pen__list_column(row, ends, 1);
    }
    int r = PEN_OK;
    for (uint32_t i = 0; r == PEN_OK && i < row->n_cells; i++)
        r = add_role(l, row, i, reterr);
    return r;
}

/* `given`: of a list without a header. */
static int read_header(List *l, const PenCsvRow *given, PenError *reterr)
{
    PenCsvRow row = *given;
    int r = l->has_header ? pen__csv_next(l->csv, &row, reterr) : PEN_OK;
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
    if (r == PEN_OK)
        r = find_roles(l, &row, reterr);
    if (r < 0)
        return r;
    uint32_t n_here = row.n_cells - (l->label_at >= 0) - (l->start_at >= 0) - (l->end_at >= 0);
    if (!first && (l->inputs->n_columns != n_before || n_here != n_before ||
                   l->inputs->has_label != (l->label_at >= 0)))
        return pen__fail(
            reterr, PEN_E_INVALID, WHERE,
            "%s: expected the same columns as in the lists before it, found different ones",
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

static int fail_missing(const List *l, const PenCsvRow *row, uint32_t i, bool as_folder,
                        PenError *reterr)
{
    const PenRoot *root = &l->inputs->roots[l->root];
    char what[400];
    snprintf(what, sizeof what, "no such %s: expected %s %.200s", as_folder ? "folder" : "file",
             root->kind == PEN_ROOT_LIST ? "a path below" : "an absolute path, or one relative to",
             *root->path ? root->path : "the working directory");
    return fail_cell(l, row, i, PEN_E_NOT_FOUND, what, reterr);
}

/* What a clip's folder has in it. */
static int measure_frames(const List *l, const PenCsvRow *row, const char *path, PenCell *ret,
                          PenError *reterr)
{
    PenError e = {0};
    PenFramesSize size = {0};
    int r = pen__frames_measure(path, &size, &e);
    if (r == PEN_OK) {
        ret->offset = size.n;
        ret->bytes = size.bytes;
        ret->stamp = size.stamp;
    }
    if (r == PEN_OK && !ret->offset)
        r = pen__fail(&e, PEN_E_INVALID, WHERE, "%s: expected frames, found an empty folder", path);
    if (r == PEN_OK ||
        ((r == PEN_E_INVALID || r == PEN_E_NOT_FOUND) && l->inputs->settings->skip_bad))
        return PEN_OK; /* told when it is read */
    pen__error_prefix(&e, "%s: line %" PRIu64, l->source->name, row->line);
    if (reterr)
        *reterr = e;
    return r;
}

/* Does the path in l->path lead to a place below the root? 1: no, which is told when it is read. A
 * path that leads nowhere is for the caller. */
static int check_beneath(const List *l, const PenCsvRow *row, PenError *reterr)
{
    const PenRoot *root = &l->inputs->roots[l->root];
    char real[PEN_REAL_PATH_BYTES];
    if (root->kind != PEN_ROOT_LIST)
        return PEN_OK;
    PenError e = {0};
    int r = pen__beneath(root->path, (const char *)l->path.data, real, &e);
    if (r == PEN_OK || r == PEN_E_NOT_FOUND)
        return PEN_OK;
    if (r == PEN_E_UNSUPPORTED && l->inputs->settings->skip_bad)
        return 1;
    pen__error_prefix(&e, "%s: line %" PRIu64, l->source->name, row->line);
    if (reterr)
        *reterr = e;
    return r;
}

/* The object is measured later, with all others. */
static int check_object(const List *l, const PenCsvRow *row, uint32_t i, PenError *reterr)
{
    const char *root = l->inputs->roots[l->root].path, *name = NULL;
    PenError e = {0};
    int r = PEN_OK;
    if (pen_is_remote(root))
        r = pen__object_beneath(root, row->cells[i].text, &name, &e);
    else
        r = pen__fail(&e, PEN_E_UNSUPPORTED, WHERE,
                      "expected a path, found a URL; pass --root with the URL that all objects of "
                      "the list are below, such as s3://BUCKET/PREFIX");
    if (r == PEN_OK || l->inputs->settings->skip_bad)
        return PEN_OK; /* what is wrong with it is reported when it is read */
    pen__error_prefix(&e, "%s: line %" PRIu64, l->source->name, row->line);
    if (reterr)
        *reterr = e;
    return r;
}

/* The size of the file. With skip_bad one that cannot be packed goes into the plan all the same: it
 * is counted and reported with the other broken ones when it is read. */
static int stat_cell(List *l, const PenCsvRow *row, uint32_t i, PenCell *ret, PenError *reterr)
{
    const char *root = l->inputs->roots[l->root].path;
    const PenCsvCell *c = &row->cells[i];
    if (pen_is_remote(root) || pen_is_remote(c->text))
        return check_object(l, row, i, reterr);
    l->path.bytes = 0;
    size_t need = strlen(root) + c->bytes + 2;
    if (pen__buf_reserve(&l->path, need) < 0)
        return pen__fail_memory(reterr, WHERE, l->source->name);
    pen__root_path(root, c->text, c->bytes, (char *)l->path.data, need);
    PenFileStat st = {0};
    int r = check_beneath(l, row, reterr);
    if (r != PEN_OK)
        return PEN_MIN(r, 0);
    r = pen__sys->stat_path((char *)l->path.data, &st);
    bool missing = pen__leads_nowhere(r) || r == -ENAMETOOLONG;
    if (r < 0 && !missing)
        return pen__fail_os(reterr, -r, WHERE, "%s: line %" PRIu64 ": %.200s: cannot stat",
                            l->source->name, row->line, c->text);
    bool as_folder = ret->kind == PEN_PART_FRAMES;
    ret->bytes = st.is_file && !as_folder ? st.bytes : 0;
    if (st.is_file && !as_folder)
        ret->stamp = pen__stamp_of(&st);
    bool right = as_folder ? st.is_dir : st.is_file;
    if (missing && !l->inputs->settings->skip_bad)
        return fail_missing(l, row, i, as_folder, reterr);
    if (!right && !l->inputs->settings->skip_bad)
        return fail_cell(l, row, i, PEN_E_INVALID,
                         as_folder ? "expected the path of a folder of frames"
                                   : "expected the path of a file",
                         reterr);
    return right && as_folder ? measure_frames(l, row, (char *)l->path.data, ret, reterr) : PEN_OK;
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

static int read_time(const List *l, const PenCsvRow *row, int64_t at, uint64_t *ret,
                     PenError *reterr)
{
    if (at < 0 || !row->cells[at].bytes || pen__text_seconds(row->cells[at].text, ret))
        return PEN_OK;
    return fail_cell(l, row, (uint32_t)at, PEN_E_INVALID, "expected a time in seconds", reterr);
}

static int read_times(const List *l, const PenCsvRow *row, PenCell *ret, PenError *reterr)
{
    ret->offset = 0;
    ret->end = PEN_NO_END;
    int r = read_time(l, row, l->start_at, &ret->offset, reterr);
    if (r == PEN_OK)
        r = read_time(l, row, l->end_at, &ret->end, reterr);
    if (r == PEN_OK && ret->end <= ret->offset)
        r = fail_cell(l, row, (uint32_t)l->end_at, PEN_E_INVALID, "expected an end after the start",
                      reterr);
    return r;
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
    bool as_key = role->as == AS_PATH && l->start_at < 0 && l->end_at < 0;
    ret->kind = role->as == AS_FILE || l->what == PEN_INPUT_IMAGES ? PEN_PART_FILE
                : l->what == PEN_INPUT_FRAMES                      ? PEN_PART_FRAMES
                                                                   : PEN_PART_VIDEO;
    ret->path = as_key ? PEN_PATH_KEY : PEN_PATH_TEXT;
    if (!as_key) {
        ret->text = c->text;
        ret->text_bytes = (uint32_t)c->bytes;
    }
    int r = ret->kind == PEN_PART_VIDEO ? read_times(l, row, ret, reterr) : PEN_OK;
    return r < 0 ? r : stat_cell(l, row, i, ret, reterr);
}

/* Several parts of one video have different keys: what was cut out is written behind the path as in
 * the fragment of a media address. */
static int make_key(List *l, const PenCsvRow *row, const PenCsvCell **ret, PenCsvCell *timed)
{
    const PenCsvCell *start = l->start_at >= 0 ? &row->cells[l->start_at] : NULL;
    const PenCsvCell *end = l->end_at >= 0 ? &row->cells[l->end_at] : NULL;
    *ret = &row->cells[l->path_at];
    if ((!start || !start->bytes) && (!end || !end->bytes))
        return PEN_OK;
    l->key.bytes = 0;
    int r = pen__buf_add(&l->key, (*ret)->text, (*ret)->bytes);
    if (r == PEN_OK)
        r = pen__buf_add(&l->key, "#t=", 3);
    if (r == PEN_OK && start)
        r = pen__buf_add(&l->key, start->text, start->bytes);
    if (r == PEN_OK && end && end->bytes)
        r = pen__buf_add(&l->key, ",", 1);
    if (r == PEN_OK && end)
        r = pen__buf_add(&l->key, end->text, end->bytes);
    if (r == PEN_OK)
        r = pen__buf_add(&l->key, "", 1);
    if (r < 0)
        return r;
    *timed = (PenCsvCell){(const char *)l->key.data, l->key.bytes - 1};
    *ret = timed;
    return PEN_OK;
}

static void note_extreme(const List *l, const PenCsvRow *row, int64_t value, PenLabelAt *to)
{
    to->value = value;
    snprintf(to->at, sizeof to->at, "%.200s: line %" PRIu64, l->source->name, row->line);
}

/* Remembers where labels are that a file of classes, which is read later, may not have. */
static void note_range(const List *l, const PenCsvRow *row, const char *label)
{
    PenInputs *in = l->inputs;
    int64_t v;
    if (!pen__text_i64(label, &v))
        return;
    if (!*in->lowest.at || v < in->lowest.value)
        note_extreme(l, row, v, &in->lowest);
    if (!*in->highest.at || v > in->highest.value)
        note_extreme(l, row, v, &in->highest);
}

/* Remembers the first line whose label is of another kind than the very first label. */
static void note_label(const List *l, const PenCsvRow *row, const char *label)
{
    PenInputs *in = l->inputs;
    int64_t number;
    if (*in->label_at || !in->labels.n ||
        pen__text_i64(label, &number) == pen__text_i64(in->labels.names[0], &number))
        return;
    snprintf(in->label_at, sizeof in->label_at, "%.200s: line %" PRIu64, l->source->name,
             row->line);
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
        note_label(l, row, label);
        note_range(l, row, label);
    }
    uint32_t n = 0;
    for (uint32_t i = 0; i < row->n_cells; i++) {
        uint8_t as = l->roles[i].as;
        if (as == AS_LABEL || as == AS_START || as == AS_END)
            continue;
        int r = read_cell(l, row, i, &l->cells[n], reterr);
        if (r < 0)
            return r;
        n += l->cells[n].kind != PEN_PART_NONE;
    }
    const PenCsvCell *key = NULL;
    PenCsvCell timed;
    if (make_key(l, row, &key, &timed) < 0)
        return pen__fail_memory(reterr, WHERE, l->source->name);
    int r = pen__inputs_add(l->inputs, key->text, key->bytes, label, l->cells, n, reterr);
    if (r < 0 && r != PEN_E_CANCELLED)
        pen__error_prefix(reterr, "%s: line %" PRIu64, l->source->name, row->line);
    return r;
}

/* Is what was given as --root a folder? */
static int check_root(const char *root, PenError *reterr)
{
    PenFileStat st = {0};
    if (pen_is_remote(root))
        return PEN_OK;
    int r = pen__sys->stat_path(*root ? root : ".", &st);
    if (r < 0 && !pen__leads_nowhere(r))
        return pen__fail_os(reterr, -r, WHERE, "--root %.300s: cannot stat", root);
    if (r == PEN_OK && st.is_dir)
        return PEN_OK;
    return pen__fail(
        reterr, r < 0 ? PEN_E_NOT_FOUND : PEN_E_INVALID, WHERE,
        "--root %.300s: %s; pass the folder that the paths in the list are relative to", root,
        r < 0 ? "no such folder" : "expected a folder, found a file");
}

/* What the paths start from. */
static int add_root(List *l, PenError *reterr)
{
    const char *name = l->source->name, *root = l->inputs->settings->root;
    const char *slash = strrchr(name, '/');
    size_t dir_bytes = !slash ? 0 : slash == name ? 1 : (size_t)(slash - name);
    uint8_t kind = l->inputs->settings->allow_outside ? PEN_ROOT_ANYWHERE : PEN_ROOT_LIST;
    int r = root ? check_root(root, reterr) : PEN_OK;
    if (r < 0)
        return r;
    return pen__inputs_add_root(l->inputs, kind, root ? root : name,
                                root ? strlen(root) : dir_bytes, 0, &l->root, reterr);
}

int pen__scan_list_from(PenInputs *in, PenSource *source, char separator, PenError *reterr)
{
    List l = {.inputs = in, .source = source, .label_at = -1, .start_at = -1, .end_at = -1};
    PenListLook look = {0};
    int r = add_root(&l, reterr);
    if (r == PEN_OK)
        r = pen__list_look(source, in->roots[l.root].path, in->what, separator, &look, reterr);
    l.what = in->what = look.what;
    l.has_header = look.has_header;
    if (r == PEN_OK && l.what != PEN_INPUT_IMAGES && pen_is_remote(in->roots[l.root].path))
        r = pen__fail(reterr, PEN_E_UNSUPPORTED, WHERE,
                      "%.300s: videos and frames are read from disk only; download them",
                      source->name);
    if (r == PEN_OK)
        r = pen__csv_open(source, look.separator, &l.csv, reterr);
    if (r == PEN_OK)
        r = read_header(&l, &look.header, reterr);
    while (r == PEN_OK) {
        PenCsvRow row;
        r = pen__csv_next(l.csv, &row, reterr);
        if (r == PEN_OK)
            r = read_row(&l, &row, reterr);
    }
    pen__csv_close(&l.csv);
    pen__buf_free(&l.path);
    pen__buf_free(&l.key);
    pen__free(l.roles);
    pen__free(l.cells);
    return r == PEN_END ? PEN_OK : r;
}

int pen__scan_list(PenInputs *in, const char *path, PenError *reterr)
{
    PenSource *source = NULL;
    bool first = in->n_roots == 0;
    uint32_t root = in->n_roots;
    int r = pen__list_open(in, path, &source, reterr);
    if (r < 0)
        return r;
    in->has_unmeasured = true;
    in->unmeasured = in->n_items;
    r = pen__inputs_add_list(in, path, reterr);
    if (r == PEN_OK)
        r = pen__scan_list_from(in, source, pen__text_ends(path, ".tsv") ? '\t' : 0, reterr);
    pen__source_close(&source);
    if (r == PEN_OK && pen_is_remote(in->roots[root].path))
        r = pen__inputs_measure(in, in->unmeasured, reterr);
    in->has_unmeasured = false;
    return r == PEN_OK && in->has_label ? pen__list_classes(in, path, first, reterr) : r;
}
