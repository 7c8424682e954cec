/* SPDX-License-Identifier: Apache-2.0 */
/* A gulp directory, as GulpIO and GulpIO2 write it: pairs of files data_N.gulp and meta_N.gmeta.
 *
 * A .gulp holds JPEGs one behind another, each filled up with NULs to a multiple of four bytes. A
 * .gmeta is JSON: for each clip, under its id,
 *
 *     {"frame_info": [[offset, fill, bytes with the fill], ...], "meta_data": [{"label": ...,
 * ...}]}
 *
 * The id becomes the key, "label" the label, and all of the first of meta_data the field meta. */
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/json.h"
#include "base/sys.h"
#include "ingest/source/gulp.h"
#include "ingest/source/gulp_table.h"

#define WHERE "ingest/gulp"
#define MAX_DEPTH 64

typedef struct Gulp {
    PenInputs *inputs;
    const char *name; /* of the .gmeta, for messages */
    uint32_t root;
    uint64_t data_bytes;
    uint16_t video, meta;
    PenBuf table, text; /* of the clip at hand */
} Gulp;

static int fail(const Gulp *g, const char *id, const char *what, PenError *reterr)
{
    return pen__fail(reterr, PEN_E_FORMAT, WHERE, "%s: clip %.100s: %s", g->name, id, what);
}

/* ---- one clip -------------------------------------------------------------------------------- */

static int add_frame(Gulp *g, const char *id, const json_t *info, uint64_t *at, uint64_t *bytes,
                     PenError *reterr)
{
    json_int_t numbers[3] = {-1, -1, -1}; /* offset, fill, bytes */
    for (size_t i = 0; i < 3 && json_array_size(info) == 3; i++) {
        const json_t *n = json_array_get(info, i);
        numbers[i] = json_is_integer(n) ? json_integer_value(n) : -1;
    }
    if (numbers[0] < 0 || numbers[1] < 0 || numbers[2] <= numbers[1])
        return fail(g, id, "expected frames as [offset, fill, bytes], found something else",
                    reterr);
    PenGulpFrame f = {(uint64_t)numbers[0], (uint64_t)(numbers[2] - numbers[1])};
    if (!pen__range_ok(f.offset, (uint64_t)numbers[2], g->data_bytes))
        return fail(g, id,
                    "expected frames inside the .gulp file, found one after its end; the file may "
                    "be truncated",
                    reterr);
    if (pen__add_over(*bytes, f.bytes, bytes))
        return fail(g, id, "the frames exceed 2^64 bytes", reterr);
    return pen__gulp_table_add(&g->table, at, &f) < 0 ? pen__fail_memory(reterr, WHERE, g->name)
                                                      : PEN_OK;
}

static int add_frames(Gulp *g, const char *id, const json_t *frames, PenCell *ret, PenError *reterr)
{
    uint64_t at = 0, bytes = 0;
    size_t n = json_array_size(frames);
    g->table.bytes = 0;
    if (!json_is_array(frames) || n < 1 || n > PEN_CLIP_FRAMES)
        return fail(g, id, "expected a list of frames under frame_info, found none", reterr);
    int r = PEN_OK;
    for (size_t i = 0; r == PEN_OK && i < n; i++)
        r = add_frame(g, id, json_array_get(frames, i), &at, &bytes, reterr);
    *ret = (PenCell){.kind = PEN_PART_GULP,
                     .column = g->video,
                     .source = g->root,
                     .offset = n,
                     .bytes = bytes,
                     .text = (const char *)g->table.data,
                     .text_bytes = (uint32_t)g->table.bytes};
    return r;
}

/* A label is a text or a number; `number` has room for it. */
static const char *label_of(const json_t *meta, char number[32])
{
    const json_t *label = json_object_get(meta, "label");
    if (json_is_integer(label)) {
        snprintf(number, 32, "%" JSON_INTEGER_FORMAT, json_integer_value(label));
        return number;
    }
    const char *text = json_string_value(label);
    return text && *text ? text : NULL;
}

static int add_text(const char *text, size_t bytes, void *buf)
{
    return pen__buf_add(buf, text, bytes) < 0 ? -1 : 0;
}

static int add_clip(Gulp *g, const char *id, const json_t *clip, PenError *reterr)
{
    PenCell cells[2];
    char number[32];
    int r = add_frames(g, id, json_object_get(clip, "frame_info"), &cells[0], reterr);
    if (r < 0)
        return r;
    const json_t *meta = json_array_get(json_object_get(clip, "meta_data"), 0);
    if (!json_is_object(meta))
        return fail(g, id, "expected a list with an object under meta_data, found something else",
                    reterr);
    g->text.bytes = 0;
    if (json_dump_callback(meta, add_text, &g->text, JSON_COMPACT) < 0)
        return pen__fail_memory(reterr, WHERE, g->name);
    cells[1] = (PenCell){.kind = PEN_PART_INLINE,
                         .column = g->meta,
                         .source = g->root,
                         .text = (const char *)g->text.data,
                         .text_bytes = (uint32_t)g->text.bytes};
    return pen__inputs_add(g->inputs, id, strlen(id), label_of(meta, number), cells, 2, reterr);
}

/* ---- one pair of files ----------------------------------------------------------------------- */

static int parse(const char *name, const void *text, size_t bytes, json_t **ret, PenError *reterr)
{
    json_error_t why;
    if (pen__json_is_deep(text, bytes, MAX_DEPTH))
        return pen__fail(reterr, PEN_E_LIMIT, WHERE, "%s: JSON is nested more than %d levels deep",
                         name, MAX_DEPTH);
    json_t *root = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, &why);
    if (!root && json_error_code(&why) == json_error_out_of_memory)
        return pen__fail_memory(reterr, WHERE, name);
    if (!json_is_object(root)) {
        json_decref(root);
        return pen__fail(reterr, PEN_E_FORMAT, WHERE,
                         "%s: expected a JSON object of clips, found something else at line %d "
                         "column %d; convert pickled metadata to JSON",
                         name, root ? 1 : why.line, root ? 1 : why.column);
    }
    *ret = root;
    return PEN_OK;
}

int pen__scan_gmeta(PenInputs *in, const char *name, const void *text, size_t bytes,
                    const char *data_path, uint64_t data_bytes, PenError *reterr)
{
    Gulp g = {.inputs = in, .name = name, .data_bytes = data_bytes};
    json_t *root = NULL;
    int r = parse(name, text, bytes, &root, reterr);
    if (r == PEN_OK)
        r = pen__inputs_add_root(in, PEN_ROOT_GULP, data_path, strlen(data_path), data_bytes,
                                 &g.root, reterr);
    if (r == PEN_OK)
        r = pen__inputs_add_column(in, "video", PEN_TYPE_CLIP, 0, &g.video, reterr);
    if (r == PEN_OK)
        r = pen__inputs_add_column(in, "meta", PEN_TYPE_JSON, 0, &g.meta, reterr);
    const char *id;
    json_t *clip;
    if (r == PEN_OK)
        json_object_foreach(root, id, clip)
        {
            r = add_clip(&g, id, clip, reterr);
            if (r < 0)
                break;
        }
    json_decref(root);
    pen__buf_free(&g.table);
    pen__buf_free(&g.text);
    return r;
}

static int scan_pair(PenInputs *in, const char *meta, const char *data, PenError *reterr)
{
    PenFileStat st;
    PenBuf text = {0};
    int r = pen__sys->stat_path(data, &st);
    if (r < 0)
        return pen__fail_os(reterr, -r, WHERE, "%s: cannot find the data of %s", data, meta);
    uint32_t root = in->n_roots;
    r = pen__inputs_add_list(in, meta, reterr);
    if (r == PEN_OK)
        r = pen__file_load(meta, PEN_GMETA_BYTES, &text, reterr);
    if (r == PEN_OK)
        r = pen__scan_gmeta(in, meta, text.data ? (char *)text.data : "", text.bytes, data,
                            st.bytes, reterr);
    if (r == PEN_OK)
        in->roots[root].stamp = pen__stamp_of(&st);
    pen__buf_free(&text);
    return r;
}

/* ---- the directory --------------------------------------------------------------------------- */

/* meta_17.gmeta goes with data_17.gulp; a name without "meta" in front with the same name. */
static char *data_name(const char *folder, const char *meta)
{
    size_t stem = strlen(meta) - strlen(".gmeta");
    char name[512];
    bool renamed = strncmp(meta, "meta", 4) == 0;
    int n = snprintf(name, sizeof name, "%s%.*s.gulp", renamed ? "data" : "",
                     (int)(stem - (renamed ? 4 : 0)), meta + (renamed ? 4 : 0));
    return n < 0 || (size_t)n >= sizeof name ? NULL : pen__path_join(folder, name);
}

int pen__folder_is_gulp(const char *path, PenError *reterr)
{
    PenNames names = {0};
    int r = pen__dir_list(path, &names, reterr);
    for (uint64_t i = 0; r == PEN_OK && i < names.n; i++)
        r = names.names[i][0] != '.' && pen__text_ends(names.names[i], ".gmeta");
    pen__names_free(&names);
    return r;
}

int pen__scan_gulp(PenInputs *in, const char *path, PenError *reterr)
{
    PenNames names = {0};
    pen__inputs_sort_begin(in);
    int r = pen__dir_list(path, &names, reterr);
    for (uint64_t i = 0; r == PEN_OK && i < names.n; i++) {
        if (names.names[i][0] == '.' || !pen__text_ends(names.names[i], ".gmeta"))
            continue;
        char *meta = pen__path_join(path, names.names[i]);
        char *data = data_name(path, names.names[i]);
        r = meta && data ? scan_pair(in, meta, data, reterr)
                         : pen__fail_memory(reterr, WHERE, path);
        pen__free(meta);
        pen__free(data);
    }
    pen__names_free(&names);
    return r < 0 ? r : pen__inputs_sort_end(in, reterr);
}
