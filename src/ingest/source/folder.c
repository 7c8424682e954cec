/* SPDX-License-Identifier: Apache-2.0 */
/* A folder: every image in it (or video) is a sample, the key is its path below the folder, the
 * class the first directory of that path. Other files are counted; hidden folders and packs are
 * passed over. Of frames, every folder with images in it is a sample. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/sys.h"
#include "ingest/source/beneath.h"
#include "ingest/source/frames.h"
#include "ingest/source/input.h"

#define WHERE "ingest/folder"
#define MAX_DEPTH 64

typedef struct Walk {
    PenInputs *inputs;
    const char *root;
    uint32_t source;
    bool has_column;
    uint16_t column;
    PenBuf dead;          /* paths of links to nothing, each with its NUL */
    PenBuf path;          /* relative to the root, with a NUL behind it that is not counted */
    char first_flat[256]; /* a file directly in a root, "" when there is none */
    char first_deep[256]; /* one in a subfolder */
} Walk;

static int set_path(Walk *w, size_t dir_bytes, const char *name, PenError *reterr)
{
    w->path.bytes = dir_bytes;
    if ((dir_bytes && pen__buf_add(&w->path, "/", 1) < 0) ||
        pen__buf_add(&w->path, name, strlen(name) + 1) < 0)
        return pen__fail_memory(reterr, WHERE, w->root);
    w->path.bytes--;
    return PEN_OK;
}

static int fail_depth(const Walk *w, PenError *reterr)
{
    return pen__fail(reterr, PEN_E_LIMIT, WHERE,
                     "%s/%.200s: expected at most %d nested folders, found more; check for a "
                     "symbolic link to a parent folder",
                     w->root, (const char *)w->path.data, MAX_DEPTH);
}

/* Does the link lead to itself? Else there are too many links in the path before it. */
static bool is_loop(const char *full)
{
    char real[PEN_REAL_PATH_BYTES];
    PenFileStat st;
    const char *slash = strrchr(full, '/');
    char *parent = pen__strndup(full, (size_t)(slash - full));
    char *again = NULL;
    if (parent && pen__sys->real_path(parent, real, sizeof real) >= 0)
        again = pen__path_join(real, slash + 1);
    bool loop = again && pen__sys->stat_path(again, &st) == -ELOOP;
    pen__free(parent);
    pen__free(again);
    return loop;
}

/* 1: a link to nothing, which is one broken input. */
static int stat_here(const Walk *w, PenFileStat *ret, PenError *reterr)
{
    const char *path = (const char *)w->path.data;
    char *full = pen__path_join(w->root, path);
    if (!full)
        return pen__fail_memory(reterr, WHERE, w->root);
    *ret = (PenFileStat){0};
    int r = pen__sys->stat_path(full, ret);
    if (r == -ELOOP && !is_loop(full))
        r = fail_depth(w, reterr);
    else if (pen__leads_nowhere(r) && w->inputs->settings->skip_bad)
        r = 1;
    else if (pen__leads_nowhere(r))
        r = pen__fail(reterr, PEN_E_NOT_FOUND, WHERE,
                      "%s: expected a file, found a symbolic link to %s; remove it, or skip "
                      "broken inputs with --on-bad skip",
                      full, r == -ELOOP ? "itself" : "nothing");
    else if (r < 0)
        r = pen__fail_os(reterr, -r, WHERE, "%s: cannot stat", full);
    pen__free(full);
    return r;
}

/* Is the folder at the path a pack? It may be the very one that is being made. */
static int is_pack(Walk *w, PenError *reterr)
{
    static const char *const signs[] = {"manifest", ".work"};
    size_t bytes = w->path.bytes;
    int r = 0;
    if (!pen__text_ends((const char *)w->path.data, ".pen"))
        return 0;
    for (size_t i = 0; r == PEN_OK && i < PEN_LEN(signs); i++) {
        char *full = NULL;
        r = set_path(w, bytes, signs[i], reterr);
        if (r == PEN_OK)
            full = pen__path_join(w->root, (const char *)w->path.data);
        if (full)
            r = pen__file_exists(full, reterr);
        else if (r == PEN_OK)
            r = pen__fail_memory(reterr, WHERE, w->root);
        pen__free(full);
    }
    w->path.bytes = bytes;
    if (r >= 0)
        w->path.data[bytes] = 0;
    return r;
}

static int note_dead(Walk *w, PenError *reterr)
{
    return pen__buf_add(&w->dead, w->path.data, w->path.bytes + 1) < 0
               ? pen__fail_memory(reterr, WHERE, w->root)
               : PEN_OK;
}

static int walk(Walk *w, int depth, PenError *reterr);

static int walk_into(Walk *w, int depth, PenError *reterr)
{
    int r = is_pack(w, reterr);
    return r == PEN_OK ? walk(w, depth, reterr) : PEN_MIN(r, 0);
}

/* What the samples are is known with the first file. */
static int take_column(Walk *w, PenError *reterr)
{
    PenInputs *in = w->inputs;
    if (w->has_column)
        return PEN_OK;
    if (in->what == PEN_INPUT_AUTO)
        in->what =
            pen__name_is_video((const char *)w->path.data) ? PEN_INPUT_VIDEOS : PEN_INPUT_IMAGES;
    w->has_column = true;
    return pen__inputs_add_column(in, pen__what_field(in->what), pen__what_type(in->what), 0,
                                  &w->column, reterr);
}

/* The sample at the path; `cell` knows what it is. */
static int add_sample(Walk *w, PenCell *cell, PenError *reterr)
{
    const char *path = (const char *)w->path.data;
    const char *slash = strchr(path, '/');
    int r = take_column(w, reterr);
    if (r < 0)
        return r;
    char *seen = slash ? w->first_deep : w->first_flat;
    if (!*seen)
        pen__root_path(w->root, path, w->path.bytes, seen, sizeof w->first_flat);
    char *label = NULL;
    if (slash) {
        label = pen__strndup(path, (size_t)(slash - path));
        if (!label)
            return pen__fail_memory(reterr, WHERE, w->root);
    }
    cell->path = PEN_PATH_KEY;
    cell->column = w->column;
    cell->source = w->source;
    r = pen__inputs_add(w->inputs, path, w->path.bytes, label, cell, 1, reterr);
    pen__free(label);
    return r;
}

static int add_file(Walk *w, const PenFileStat *st, PenError *reterr)
{
    int r = take_column(w, reterr);
    PenCell cell = {.kind = PEN_PART_FILE, .bytes = st->bytes, .stamp = pen__stamp_of(st)};
    if (w->inputs->what == PEN_INPUT_VIDEOS) {
        cell.kind = PEN_PART_VIDEO;
        cell.end = PEN_NO_END;
    }
    return r < 0 ? r : add_sample(w, &cell, reterr);
}

/* The folder at the path, of `dir_bytes`, has these files in it. */
static int add_frames(Walk *w, size_t dir_bytes, const PenCell *frames, bool has_folders,
                      PenError *reterr)
{
    PenCell cell = *frames;
    if (!cell.offset)
        return PEN_OK;
    if (!dir_bytes || has_folders)
        return pen__fail(reterr, PEN_E_INVALID, WHERE,
                         "%s/%.200s: expected one folder of frames for each clip, found files%s",
                         w->root, (const char *)w->path.data,
                         dir_bytes ? " next to folders" : " outside any folder");
    w->path.bytes = dir_bytes;
    w->path.data[dir_bytes] = 0;
    return add_sample(w, &cell, reterr);
}

/* What a folder has in it. */
typedef struct Content {
    PenCell frames;
    uint64_t n_dead;  /* of the frames: links to nothing */
    uint64_t n_links; /* others of them */
    bool has_folders;
} Content;

static int ignore(Walk *w, PenError *reterr)
{
    return pen__inputs_ignore(w->inputs, (const char *)w->path.data, reterr);
}

static int add_frame(Walk *w, const PenFileStat *st, Content *c, PenError *reterr)
{
    const char *path = (const char *)w->path.data, *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    if (!pen__frames_has(name))
        return ignore(w, reterr);
    c->frames.offset++;
    c->frames.bytes += st->bytes;
    pen__stamp_add(&c->frames.stamp, name, st);
    return PEN_OK;
}

/* Hidden or excluded. What is in folders that are is not counted. */
static int leave_out(Walk *w, bool is_hidden, PenError *reterr)
{
    const char *path = (const char *)w->path.data;
    PenFileStat st = {0};
    char *full = pen__path_join(w->root, path);
    if (!full)
        return pen__fail_memory(reterr, WHERE, w->root);
    (void)pen__sys->stat_path(full, &st);
    pen__free(full);
    if (!st.is_dir && !is_hidden && w->inputs->what == PEN_INPUT_FRAMES && pen__frames_has(path))
        return pen__fail(reterr, PEN_E_UNSUPPORTED, WHERE,
                         "%s/%.200s: a single frame of a clip cannot be excluded; exclude folders, "
                         "or move the file",
                         w->root, path);
    return st.is_dir ? PEN_OK : ignore(w, reterr);
}

/* The path is in a folder at this depth. */
static int visit(Walk *w, const char *name, int depth, Content *c, PenError *reterr)
{
    const PenInputs *in = w->inputs;
    bool as_frames = in->what == PEN_INPUT_FRAMES;
    PenFileStat st;
    if (*name == '.' || pen__name_is_excluded(in->settings, (const char *)w->path.data))
        return leave_out(w, *name == '.', reterr);
    int r = stat_here(w, &st, reterr);
    if (r == 1 && as_frames && !pen__frames_has(name)) {
        c->n_links++;
        return note_dead(w, reterr); /* perhaps of a clip */
    }
    if (r == 1) {
        c->n_dead++;
        st.is_file = as_frames;
        r = note_dead(w, reterr);
    }
    if (r < 0)
        return r;
    if (st.is_dir) {
        c->has_folders = true;
        return walk_into(w, depth + 1, reterr);
    }
    if (st.is_file && as_frames)
        return add_frame(w, &st, c, reterr);
    if (!st.is_file)
        return PEN_OK;
    r = pen__inputs_takes(w->inputs, w->root, (const char *)w->path.data, reterr);
    return r == 1 ? add_file(w, &st, reterr) : r;
}

static int walk(Walk *w, int depth, PenError *reterr)
{
    if (depth > MAX_DEPTH)
        return fail_depth(w, reterr);
    size_t dir_bytes = w->path.bytes, dead_at = w->dead.bytes;
    char *full =
        dir_bytes ? pen__path_join(w->root, (const char *)w->path.data) : pen__strdup(w->root);
    if (!full)
        return pen__fail_memory(reterr, WHERE, w->root);
    PenNames names = {0};
    Content c = {.frames.kind = PEN_PART_FRAMES};
    int r = pen__dir_list(full, &names, reterr);
    pen__free(full);
    for (uint64_t i = 0; r == PEN_OK && i < names.n; i++) {
        r = set_path(w, dir_bytes, names.names[i], reterr);
        if (r == PEN_OK)
            r = visit(w, names.names[i], depth, &c, reterr);
    }
    pen__names_free(&names);
    if (c.frames.offset > c.n_dead) {
        w->dead.bytes = dead_at; /* they are broken frames of this clip */
        w->inputs->n_ignored += c.n_links;
    } else {
        c.frames.offset = 0;
    }
    return r < 0 ? r : add_frames(w, dir_bytes, &c.frames, c.has_folders, reterr);
}

/* The class that others have, too, or any: what a link to nothing would have been is not known, so
 * that it makes no class, and it is never packed. If it is mended, the plan is made again. */
static const char *dead_label(const PenInputs *in, const char *path)
{
    size_t n = strcspn(path, "/");
    for (uint32_t i = 0; i < in->labels.n; i++)
        if (strncmp(in->labels.names[i], path, n) == 0 && !in->labels.names[i][n])
            return in->labels.names[i];
    return in->labels.n ? in->labels.names[0] : NULL;
}

static int add_dead(Walk *w, const char *path, PenError *reterr)
{
    PenInputs *in = w->inputs;
    int r = set_path(w, 0, path, reterr);
    if (r == PEN_OK)
        r = take_column(w, reterr);
    if (r < 0)
        return r;
    PenCell cell = {.kind = in->what == PEN_INPUT_FRAMES   ? PEN_PART_FRAMES
                            : in->what == PEN_INPUT_VIDEOS ? PEN_PART_VIDEO
                                                           : PEN_PART_FILE,
                    .path = PEN_PATH_KEY,
                    .column = w->column,
                    .source = w->source,
                    .end = in->what == PEN_INPUT_VIDEOS ? PEN_NO_END : 0};
    return pen__inputs_add(in, path, strlen(path), dead_label(in, path), &cell, 1, reterr);
}

/* After all others, whose classes are known by then. */
static int add_all_dead(Walk *w, PenError *reterr)
{
    int r = PEN_OK;
    for (size_t at = 0; r == PEN_OK && at < w->dead.bytes;) {
        const char *path = (const char *)w->dead.data + at;
        at += strlen(path) + 1;
        r = add_dead(w, path, reterr);
    }
    return r;
}

int pen__scan_folder(PenInputs *in, const char *path, PenError *reterr)
{
    uint64_t first = in->n;
    pen__inputs_sort_begin(in);
    Walk w = {.inputs = in, .root = path};
    int r = pen__inputs_add_root(in, PEN_ROOT_FOLDER, path, strlen(path), 0, &w.source, reterr);
    if (r == PEN_OK)
        r = walk(&w, 0, reterr);
    if (r == PEN_OK)
        r = pen__inputs_check_depths(in, first, w.first_flat, w.first_deep, reterr);
    if (r == PEN_OK)
        r = add_all_dead(&w, reterr);
    pen__buf_free(&w.dead);
    pen__buf_free(&w.path);
    return r < 0 ? r : pen__inputs_sort_end(in, reterr);
}
