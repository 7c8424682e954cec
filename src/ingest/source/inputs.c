/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/text/utf8.h"
#include "ingest/source/input.h"

#define WHERE "ingest/plan"

#define ITEM_HEAD PEN_INPUT_HEAD
#define CELL_HEAD 28 /* 8 more for a video: where it ends; then the stamp, if it has one */

void pen__class_names_free(PenClassNames *names)
{
    for (uint32_t i = 0; i < names->n; i++)
        pen__free(names->names[i]);
    pen__free(names->names);
    pen__free(names->from);
    *names = (PenClassNames){0};
}

void pen__inputs_free(PenInputs *in)
{
    for (uint32_t i = 0; i < in->n_roots; i++)
        pen__free((char *)in->roots[i].path);
    pen__free(in->roots);
    for (uint32_t i = 0; i < in->n_lists; i++)
        pen__free((char *)in->lists[i].path);
    pen__free(in->lists);
    for (uint32_t i = 0; i < in->n_columns; i++)
        pen__free(in->columns[i].name);
    pen__name_set_free(&in->labels);
    pen__class_names_free(&in->classes);
    pen__free(in->items);
    pen__buf_free(&in->arena);
    pen__sorter_close(&in->spilled);
    pen__names_free(&in->tars);
    *in = (PenInputs){0};
}

void pen__inputs_trim(PenInputs *in)
{
    uint8_t *arena = in->arena.bytes ? pen__resize(in->arena.data, in->arena.bytes) : NULL;
    if (!arena)
        return;
    in->arena.data = arena;
    in->arena.cap = in->arena.bytes;
}

int pen__inputs_add_root(PenInputs *in, uint8_t kind, const char *path, size_t path_bytes,
                         uint64_t bytes, uint32_t *ret, PenError *reterr)
{
    if (in->n_roots == in->cap_roots) {
        uint32_t cap = in->cap_roots ? in->cap_roots * 2 : 8;
        PenRoot *grown = pen__resize(in->roots, cap * sizeof *grown);
        if (!grown)
            return pen__fail_memory(reterr, WHERE, "list of sources");
        in->roots = grown;
        in->cap_roots = cap;
    }
    char *copy = pen__strndup(path, path_bytes);
    if (!copy)
        return pen__fail_memory(reterr, WHERE, "list of sources");
    in->roots[in->n_roots] = (PenRoot){kind, copy, bytes, {0}};
    *ret = in->n_roots++;
    return PEN_OK;
}

static int measure_list(PenInputs *in, const char *path, PenListed *ret, PenError *reterr)
{
    PenFileStat st;
    PenObject object;
    if (pen_is_remote(path)) {
        int r = pen__places_object(in->places, path, &object, reterr);
        if (r == PEN_OK)
            *ret = (PenListed){NULL, object.bytes, pen__stamp_of_object(&object)};
        return r;
    }
    int r = pen__sys->stat_path(path, &st);
    if (r < 0)
        return pen__fail_os(reterr, -r, WHERE, "%s: cannot stat", path);
    *ret = (PenListed){NULL, st.bytes, pen__stamp_of(&st)};
    return PEN_OK;
}

int pen__inputs_add_list(PenInputs *in, const char *path, PenError *reterr)
{
    PenListed listed = {0};
    int r = measure_list(in, path, &listed, reterr);
    if (r < 0)
        return r;
    if (in->n_lists == in->cap_lists) {
        uint32_t cap = in->cap_lists ? in->cap_lists * 2 : 8;
        PenListed *grown = pen__resize(in->lists, cap * sizeof *grown);
        if (!grown)
            return pen__fail_memory(reterr, WHERE, path);
        in->lists = grown;
        in->cap_lists = cap;
    }
    char *copy = pen__strdup(path);
    if (!copy)
        return pen__fail_memory(reterr, WHERE, path);
    listed.path = copy;
    in->lists[in->n_lists++] = listed;
    return PEN_OK;
}

static const char *kind_name(int32_t type, uint32_t flags)
{
    return flags & PEN_FIELD_MASK ? "mask" : pen_type_name(type);
}

int pen__inputs_add_column(PenInputs *in, const char *name, int32_t type, uint32_t flags,
                           uint16_t *ret, PenError *reterr)
{
    for (uint32_t i = 0; i < in->n_columns; i++) {
        const PenColumn *c = &in->columns[i];
        if (strcmp(c->name, name) != 0)
            continue;
        if (c->type != type || c->flags != flags)
            return pen__fail(reterr, PEN_E_INVALID, WHERE,
                             "field %s: expected one type, found %s and %s", name,
                             kind_name(c->type, c->flags), kind_name(type, flags));
        *ret = (uint16_t)i;
        return PEN_OK;
    }
    size_t bytes = strlen(name);
    if (bytes < 1 || bytes > 255 || !pen__text_is_utf8(name, bytes))
        return pen__fail(reterr, PEN_E_INVALID, WHERE,
                         "field %.60s: expected a name of 1 to 255 bytes of UTF-8, found %zu", name,
                         bytes);
    if (in->n_columns == PEN_FIELD_LIMIT)
        return pen__fail(reterr, PEN_E_LIMIT, WHERE,
                         "field %.60s: expected at most %d fields, found more", name,
                         PEN_FIELD_LIMIT);
    char *copy = pen__strdup(name);
    if (!copy)
        return pen__fail_memory(reterr, WHERE, "list of fields");
    in->columns[in->n_columns] = (PenColumn){copy, type, flags, true, true};
    *ret = (uint16_t)in->n_columns++;
    return PEN_OK;
}

int pen__inputs_report(const PenInputs *in, const char *stage, uint64_t done, uint64_t total,
                       PenError *reterr)
{
    const PenIngestSettings *s = in->settings;
    if (!s->progress)
        return PEN_OK;
    PenIngestProgress p = {.stage = stage, .done = done, .total = total};
    if (s->progress(s->ctx, &p))
        return pen__fail(
            reterr, PEN_E_CANCELLED, WHERE,
            "stopped after %" PRIu64 " inputs; run the same command again to start anew", in->n);
    return PEN_OK;
}

static uint32_t cell_head(uint8_t kind)
{
    return CELL_HEAD + (kind == PEN_PART_VIDEO ? 8u : 0u) +
           (pen__kind_has_stamp(kind) ? PEN_STAMP_BYTES : 0u);
}

uint64_t pen__cell_bytes(const PenCell *c)
{
    return cell_head(c->kind) + (uint64_t)c->text_bytes;
}

uint8_t *pen__cell_store(uint8_t *p, const PenCell *c)
{
    uint32_t head = cell_head(c->kind);
    p[0] = c->kind;
    p[1] = c->path;
    pen__store16(p + 2, c->column);
    pen__store32(p + 4, c->source);
    pen__store64(p + 8, c->offset);
    pen__store64(p + 16, c->bytes);
    pen__store32(p + 24, c->text_bytes);
    if (c->kind == PEN_PART_VIDEO)
        pen__store64(p + CELL_HEAD, c->end);
    if (pen__kind_has_stamp(c->kind))
        pen__stamp_store(p + head - PEN_STAMP_BYTES, &c->stamp);
    if (c->text_bytes)
        memcpy(p + head, c->text, c->text_bytes);
    return p + head + c->text_bytes;
}

void pen__inputs_get(const PenInputs *in, uint64_t i, PenInput *ret)
{
    const uint8_t *p = in->arena.data + in->items[i].at;
    uint32_t key_bytes = pen__load32(p);
    *ret = (PenInput){i,
                      p + ITEM_HEAD,
                      key_bytes,
                      in->items[i].label,
                      pen__load32(p + 4),
                      p + ITEM_HEAD + key_bytes};
}

void pen__cell_next(const uint8_t **at, PenCell *ret)
{
    const uint8_t *p = *at;
    uint32_t text_bytes = pen__load32(p + 24), head = cell_head(p[0]);
    *ret = (PenCell){.kind = p[0],
                     .path = p[1],
                     .column = pen__load16(p + 2),
                     .source = pen__load32(p + 4),
                     .offset = pen__load64(p + 8),
                     .bytes = pen__load64(p + 16),
                     .end = p[0] == PEN_PART_VIDEO ? pen__load64(p + CELL_HEAD) : 0,
                     .text = (const char *)p + head,
                     .text_bytes = text_bytes};
    if (pen__kind_has_stamp(p[0]))
        ret->stamp = pen__stamp_load(p + head - PEN_STAMP_BYTES);
    *at = p + head + text_bytes;
}

void pen__cell_measured(uint8_t *cell, uint64_t bytes, const PenStamp *stamp)
{
    pen__store64(cell + 16, bytes);
    pen__stamp_store(cell + cell_head(cell[0]) - PEN_STAMP_BYTES, stamp);
}

/* Stored: number u64, label u32, and what is in the arena. */
#define STORED_HEAD 12

size_t pen__input_bytes(const PenInput *input)
{
    PenCell cell;
    const uint8_t *at = input->cells;
    for (uint32_t k = 0; k < input->n_cells; k++)
        pen__cell_next(&at, &cell);
    return STORED_HEAD + ITEM_HEAD + (size_t)(at - input->key);
}

void pen__input_store(uint8_t *to, const PenInput *input)
{
    pen__store64(to, input->number);
    pen__store32(to + 8, input->label);
    memcpy(to + STORED_HEAD, input->key - ITEM_HEAD, pen__input_bytes(input) - STORED_HEAD);
}

void pen__input_load(const uint8_t *from, PenInput *ret)
{
    const uint8_t *p = from + STORED_HEAD;
    uint32_t key_bytes = pen__load32(p);
    *ret = (PenInput){pen__load64(from),     p + ITEM_HEAD,      key_bytes,
                      pen__load32(from + 8), pen__load32(p + 4), p + ITEM_HEAD + key_bytes};
}

void pen__input_name(const PenInputs *in, const PenInput *input, char *buf, size_t cap)
{
    const char *key = (const char *)input->key;
    PenCell cell;
    const uint8_t *at = input->cells;
    for (uint32_t k = 0; k < input->n_cells; k++) {
        pen__cell_next(&at, &cell);
        if (cell.path == PEN_PATH_KEY) {
            pen__root_path(in->roots[cell.source].path, key, input->key_bytes, buf, cap);
            return;
        }
        if (cell.kind == PEN_PART_RANGE || cell.kind == PEN_PART_STREAM ||
            cell.kind == PEN_PART_GULP) {
            snprintf(buf, cap, "%s: %.*s", in->roots[cell.source].path, (int)input->key_bytes, key);
            return;
        }
    }
    snprintf(buf, cap, "%.*s", (int)input->key_bytes, key);
}

int pen__inputs_check_depths(const PenInputs *in, uint64_t first, const char *first_flat,
                             const char *first_deep, PenError *reterr)
{
    PenInput input;
    char before[256] = "";
    bool labelled_before = in->first_is_labelled;
    snprintf(before, sizeof before, "%s", in->first_name);
    if (first && !in->spilled) {
        pen__inputs_get(in, 0, &input);
        pen__input_name(in, &input, before, sizeof before);
        labelled_before = input.label != PEN_NO_LABEL;
    }
    const char *deep = *first_deep ? first_deep : first && labelled_before ? before : NULL;
    const char *flat = *first_flat ? first_flat : first && !labelled_before ? before : NULL;
    if (!deep || !flat)
        return PEN_OK;
    return pen__fail(reterr, PEN_E_INVALID, "ingest/folder",
                     "expected all files in class folders or none, found %.150s and %.150s; move "
                     "the first one away or into a folder, or pass a list of the files",
                     flat, deep);
}

size_t pen__root_path(const char *root, const char *path, size_t path_bytes, char *buf, size_t cap)
{
    bool alone = !*root || (path_bytes && (path[0] == '/' || pen_is_remote(path)));
    size_t n = strlen(root);
    bool slash = !alone && n && root[n - 1] != '/';
    int length =
        snprintf(buf, cap, "%s%s%.*s", alone ? "" : root, slash ? "/" : "", (int)path_bytes, path);
    return length < 0 ? 0 : (size_t)length;
}

/* ---- what an input is: an image, a folder of frames, a video ----------------------------------
 */

static bool is_clip(uint8_t what)
{
    return what == PEN_INPUT_FRAMES || what == PEN_INPUT_VIDEOS;
}

const char *pen__what_field(uint8_t what)
{
    return is_clip(what) ? "video" : "image";
}

int32_t pen__what_type(uint8_t what)
{
    return is_clip(what) ? PEN_TYPE_CLIP : PEN_TYPE_IMAGE;
}
