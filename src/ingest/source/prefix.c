/* SPDX-License-Identifier: Apache-2.0 */
/* A prefix of an object store: the same samples as the folder that a download of it would give.
 * Every object is a sample, the key is its name below the prefix, the class the first part of that
 * name. Passed over are names with a part that begins with a dot, the empty objects that stand for
 * folders, and what lies below a part that ends in .pen: it may be the pack that is being made. */
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
    char first_flat[256]; /* an object directly below the prefix, "" when there is none */
    char first_deep[256]; /* one with a class */
    PenError *reterr;
} Prefix;

static int fail_name(const Prefix *p, const char *name, const char *what)
{
    return pen__fail(p->reterr, PEN_E_INVALID, WHERE, "%.300s/%.300s: %s", p->address, name, what);
}

/* 1: the object is no sample. */
static int passed_over(const Prefix *p, const char *name)
{
    for (const char *part = name;;) {
        const char *slash = strchr(part, '/');
        if (*part == '.')
            return 1;
        if (!slash)
            return !*part; /* a name that ends in a slash stands for a folder */
        if (slash == part)
            return fail_name(p, name,
                             "expected a name without empty parts, found // or / at its start; "
                             "rename the object");
        if (slash - part >= 4 && strncasecmp(slash - 4, ".pen", 4) == 0)
            return 1;
        part = slash + 1;
    }
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

static int add(void *ctx, const char *name, const PenObject *object)
{
    Prefix *p = ctx;
    size_t bytes = strlen(name);
    const char *slash = strchr(name, '/');
    int r = passed_over(p, name);
    if (r)
        return PEN_MIN(r, 0);
    r = take_column(p, name);
    if (r < 0)
        return r;
    char *seen = slash ? p->first_deep : p->first_flat;
    if (!*seen)
        pen__root_path(p->address, name, bytes, seen, sizeof p->first_flat);
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
    return r;
}

int pen__scan_prefix(PenInputs *in, const char *address, PenError *reterr)
{
    uint64_t first = in->n;
    Prefix p = {.inputs = in, .address = address, .reterr = reterr};
    PenRemote *remote = NULL;
    pen__inputs_sort_begin(in);
    int r =
        pen__inputs_add_root(in, PEN_ROOT_FOLDER, address, strlen(address), 0, &p.source, reterr);
    if (r == PEN_OK)
        r = pen__places_get(in->places, address, &remote, reterr);
    if (r == PEN_OK)
        r = pen__remote_list(remote, add, &p, reterr);
    if (r == PEN_OK)
        r = pen__inputs_check_depths(in, first, p.first_flat, p.first_deep, reterr);
    return r < 0 ? r : pen__inputs_sort_end(in, reterr);
}
