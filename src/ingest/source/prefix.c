/* SPDX-License-Identifier: Apache-2.0 */
/* A prefix of an object store: the same samples as the folder that a download of it would give.
 * Every image is a sample, the key is its name below the prefix, the class the first part of that
 * name; other objects are counted. Passed over are the empty objects that stand for folders, and
 * what lies below a part that begins with a dot, is excluded, or ends in .pen: it may be the pack
 * that is being made. */
#include <stdio.h>
#include <string.h>

#include "ingest/source/input.h"
#include "ingest/source/object.h"

#define WHERE "ingest/prefix"

typedef struct Prefix {
    PenInputs *inputs;
    const char *address;
    uint32_t source;
    bool has_column;
    uint16_t column;
    uint64_t class_bytes;
    char first_flat[256]; /* the least name of an object directly below the prefix, "": none */
    char first_deep[256]; /* the same of those with a class */
    PenError *reterr;     /* of the present object */
} Prefix;

static int fail_name(const Prefix *p, const char *name, const char *what)
{
    return pen__fail(p->reterr, PEN_E_INVALID, WHERE, "%.300s/%.300s: %s", p->address, name, what);
}

/* 1: it lies in a folder that is passed over, or is one. */
static int passed_over(const Prefix *p, const char *name)
{
    int r = 0;
    char *path = pen__strdup(name); /* up to the end of the present part */
    if (!path)
        return pen__fail_memory(p->reterr, WHERE, p->address);
    for (const char *part = name, *slash; !r && (slash = strchr(part, '/')); part = slash + 1) {
        path[slash - name] = 0;
        if (slash == part)
            r = fail_name(p, name,
                          "expected a name without empty parts, found // or / at its start; "
                          "rename the object");
        else
            r = *part == '.' || !slash[1] || pen__text_ends(path, ".pen") ||
                pen__name_is_excluded(p->inputs->settings, path);
        path[slash - name] = '/';
    }
    pen__free(path);
    return r;
}

/* 1: it is a sample. */
static int takes(const Prefix *p, const char *name)
{
    PenInputs *in = p->inputs;
    const char *slash = strrchr(name, '/');
    int r = passed_over(p, name);
    if (r)
        return PEN_MIN(r, 0);
    if ((slash ? slash[1] : *name) == '.' || pen__name_is_excluded(in->settings, name))
        return pen__inputs_ignore(in, name, p->reterr);
    return pen__inputs_takes(in, p->address, name, p->reterr);
}

static int take_column(Prefix *p, const char *name)
{
    PenInputs *in = p->inputs;
    if (p->has_column)
        return PEN_OK;
    if (in->what == PEN_INPUT_AUTO)
        in->what = pen__name_is_video(name) ? PEN_INPUT_VIDEOS : PEN_INPUT_IMAGES;
    if (in->what != PEN_INPUT_IMAGES)
        return pen__fail(p->reterr, PEN_E_UNSUPPORTED, WHERE,
                         "%.300s: videos and frames are read from disk only; download them and "
                         "pack the folder",
                         p->address);
    p->has_column = true;
    return pen__inputs_add_column(in, pen__what_field(in->what), pen__what_type(in->what), 0,
                                  &p->column, p->reterr);
}

/* Names come in any order. Long ones are cut. */
static void note_least(const char *name, char least[256])
{
    if (!*least || strncmp(name, least, 255) < 0)
        snprintf(least, 256, "%s", name);
}

/* Inputs are kept on disk, and the names of classes in memory. */
static int count_class(Prefix *p, size_t bytes)
{
    p->class_bytes += bytes + PEN_LISTED_BYTES;
    if (p->class_bytes <= (uint64_t)PEN_LIST_MIB << 20)
        return PEN_OK;
    return pen__fail(p->reterr, PEN_E_LIMIT, WHERE,
                     "%.300s: expected at most %d MiB of class names (what is before the first / "
                     "of a name), found more; use a prefix with fewer objects",
                     p->address, PEN_LIST_MIB);
}

static int add(void *ctx, const char *name, const PenObject *object, PenError *reterr)
{
    Prefix *p = ctx;
    size_t bytes = strlen(name);
    const char *slash = strchr(name, '/');
    p->reterr = reterr;
    int r = takes(p, name);
    if (r != 1)
        return r;
    r = take_column(p, name);
    if (r < 0)
        return r;
    note_least(name, slash ? p->first_deep : p->first_flat);
    uint32_t n_classes = p->inputs->labels.n;
    char *label = slash ? pen__strndup(name, (size_t)(slash - name)) : NULL;
    if (slash && !label)
        return pen__fail_memory(p->reterr, WHERE, p->address);
    PenCell cell = {.kind = PEN_PART_FILE,
                    .path = PEN_PATH_KEY,
                    .column = p->column,
                    .source = p->source,
                    .bytes = object->bytes,
                    .stamp = pen__stamp_of_object(object)};
    r = pen__inputs_add(p->inputs, name, bytes, label, &cell, 1, p->reterr);
    pen__free(label);
    return r == PEN_OK && p->inputs->labels.n > n_classes ? count_class(p, (size_t)(slash - name))
                                                          : r;
}

/* What the inputs are is decided by the first of them in order. */
static int is_ready(void *ctx)
{
    const Prefix *p = ctx;
    p->inputs->is_quiet = p->has_column;
    return p->has_column;
}

static int report(void *ctx, PenError *reterr)
{
    const PenInputs *in = ((const Prefix *)ctx)->inputs;
    return pen__inputs_report(in, "list", in->n, 0, reterr);
}

static int check_depths(const Prefix *p, uint64_t first, PenError *reterr)
{
    char flat[256] = "", deep[256] = "";
    if (*p->first_flat)
        pen__root_path(p->address, p->first_flat, strlen(p->first_flat), flat, sizeof flat);
    if (*p->first_deep)
        pen__root_path(p->address, p->first_deep, strlen(p->first_deep), deep, sizeof deep);
    return pen__inputs_check_depths(p->inputs, first, flat, deep, reterr);
}

int pen__scan_prefix(PenInputs *in, const char *address, PenError *reterr)
{
    uint64_t first = in->n;
    Prefix p = {.inputs = in, .address = address};
    PenWideList list = {.each = add, .is_ready = is_ready, .tick = report, .ctx = &p};
    PenRemote *remote = NULL;
    pen__inputs_sort_begin(in);
    int r =
        pen__inputs_add_root(in, PEN_ROOT_FOLDER, address, strlen(address), 0, &p.source, reterr);
    if (r == PEN_OK)
        r = pen__places_get(in->places, address, &remote, reterr);
    if (r == PEN_OK)
        r = pen__remote_list_wide(remote, &list, reterr);
    in->is_quiet = false;
    if (r == PEN_OK)
        r = check_depths(&p, first, reterr);
    return r < 0 ? r : pen__inputs_sort_end(in, reterr);
}
