/* SPDX-License-Identifier: Apache-2.0 */
/* Tar files as WebDataset writes them: members next to each other whose names are the same up to
 * the first dot are the parts of one sample, and what follows the dot says what each part is. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "ingest/source/input.h"
#include "ingest/source/object.h"
#include "ingest/tar/summary.h"

#define WHERE "ingest/tar"
#define LABEL_BYTES 1024

/* Members come from a tar, or from the summary of one. */
typedef struct Members {
    const char *name; /* of the tar */
    PenTar *tar;      /* or */
    PenSummary *summary;
    uint64_t place; /* in the summary */
    PenBuf record;
    PenMemberRecord at; /* the member that was returned last */
} Members;

typedef struct Sample {
    PenInputs *inputs;
    Members *from;
    uint32_t root;
    bool compressed;
    PenBuf stem;  /* key of the open sample, with a NUL that is not counted; empty = none is open */
    PenBuf texts; /* suffixes of its parts, one behind another */
    PenBuf label; /* NUL-terminated; empty = none */
    PenCell cells[PEN_FIELD_LIMIT];
    uint32_t n_cells;
} Sample;

size_t pen__member_stem(const char *name)
{
    const char *slash = strrchr(name, '/');
    const char *base = slash ? slash + 1 : name;
    const char *dot = strchr(base, '.');
    return dot ? (size_t)(dot - name) : strlen(name);
}

bool pen__member_hidden(const char *name)
{
    const char *slash = strrchr(name, '/');
    return (slash ? slash + 1 : name)[0] == '.';
}

/* What a suffix stands for. `name` gets the name of the field. */
typedef struct Kind {
    char name[256];
    int32_t type; /* 0 = a label */
    uint32_t flags;
} Kind;

static bool is_image(const char *suffix)
{
    return strcmp(suffix, "jpg") == 0 || strcmp(suffix, "jpeg") == 0 ||
           strcmp(suffix, "png") == 0 || strcmp(suffix, "webp") == 0;
}

/* "jpg" is the field image, "left.jpg" the image field left; json and txt likewise; all else are
 * bytes in a field of the suffix's name. `suffix` is in lower case and fits. */
static void kind_of(const char *suffix, Kind *ret)
{
    const char *dot = strrchr(suffix, '.');
    const char *last = dot ? dot + 1 : suffix;
    int stem = dot && dot > suffix ? (int)(dot - suffix) : 0;
    *ret = (Kind){.type = PEN_TYPE_BYTES};
    const char *alone = suffix;
    if (strcmp(suffix, "cls") == 0) {
        ret->type = 0;
        alone = "label";
    } else if (is_image(last)) {
        ret->type = PEN_TYPE_IMAGE;
        alone = "image";
    } else if (strcmp(last, "json") == 0) {
        ret->type = PEN_TYPE_JSON;
        alone = "json";
    } else if (strcmp(last, "txt") == 0) {
        ret->type = PEN_TYPE_TEXT;
        alone = "text";
    }
    if (stem && ret->type != PEN_TYPE_BYTES)
        snprintf(ret->name, sizeof ret->name, "%.*s", stem, suffix);
    else
        snprintf(ret->name, sizeof ret->name, "%s", alone);
    bool is_mask = strcmp(ret->name, "mask") == 0 || strcmp(ret->name, "seg") == 0;
    if (ret->type == PEN_TYPE_IMAGE && is_mask && strcmp(last, "png") == 0)
        ret->flags = PEN_FIELD_MASK;
}

/* The suffix in lower case; false: there is none, or it is too long. */
static bool lower_suffix(const char *name, char ret[256])
{
    size_t stem = pen__member_stem(name), i = 0;
    const char *suffix = name[stem] ? name + stem + 1 : "";
    if (!*suffix || strlen(suffix) > 255)
        return false;
    for (; suffix[i]; i++)
        ret[i] = suffix[i] >= 'A' && suffix[i] <= 'Z' ? (char)(suffix[i] | 0x20) : suffix[i];
    ret[i] = 0;
    return true;
}

bool pen__member_is_image(const char *name, bool *ret_mask)
{
    char suffix[256];
    Kind kind;
    if (!lower_suffix(name, suffix))
        return false;
    kind_of(suffix, &kind);
    *ret_mask = (kind.flags & PEN_FIELD_MASK) != 0;
    return kind.type == PEN_TYPE_IMAGE;
}

static int fail(const Sample *s, const char *name, int status, const char *what, PenError *reterr)
{
    return pen__fail(reterr, status, WHERE, "%s: %.200s: %s", s->from->name, name, what);
}

/* ---- members --------------------------------------------------------------------------------- */

static int next_member(Members *f, PenMember *ret, PenError *reterr)
{
    if (f->tar)
        return pen__tar_next(f->tar, ret, reterr);
    int r = pen__summary_next(f->summary, &f->place, &f->record, &f->at, reterr);
    *ret = f->at.member;
    return r;
}

static int read_member(Members *f, PenBuf *out, PenError *reterr)
{
    if (f->tar)
        return pen__tar_read(f->tar, out, reterr);
    if (f->at.kind != PEN_MEMBER_DATA)
        return pen__fail(reterr, PEN_E_CORRUPT, WHERE, "%s: %.200s: expected data, found an image",
                         f->name, f->at.member.name);
    out->bytes = 0;
    return pen__buf_add(out, f->at.data, f->at.data_bytes) < 0
               ? pen__fail_memory(reterr, WHERE, f->name)
               : PEN_OK;
}

/* ---- samples --------------------------------------------------------------------------------- */

/* The label as text, without what surrounds it. */
static int read_label(Sample *s, const PenMember *m, PenError *reterr)
{
    if (s->label.bytes)
        return fail(s, m->name, PEN_E_INVALID, "expected one label, found a second one", reterr);
    if (m->bytes > LABEL_BYTES)
        return fail(s, m->name, PEN_E_LIMIT,
                    "expected a class number of at most 1024 bytes, found more", reterr);
    PenBuf raw = {0};
    int r = read_member(s->from, &raw, reterr);
    if (r < 0)
        goto out;
    static const char space[] = " \t\r\n";
    const char *text = (const char *)raw.data;
    size_t begin = 0, end = raw.bytes;
    while (end > begin && strchr(space, text[end - 1]) && text[end - 1])
        end--;
    while (begin < end && strchr(space, text[begin]) && text[begin])
        begin++;
    if (begin == end || memchr(text + begin, 0, end - begin)) {
        r = fail(s, m->name, PEN_E_INVALID, "expected a class number as text, found none", reterr);
        goto out;
    }
    if (pen__buf_add(&s->label, text + begin, end - begin) < 0 ||
        pen__buf_add(&s->label, "", 1) < 0)
        r = pen__fail_memory(reterr, WHERE, s->from->name);
out:
    pen__buf_free(&raw);
    return r;
}

static int add_part(Sample *s, const PenMember *m, const char *suffix, const Kind *kind,
                    PenError *reterr)
{
    uint16_t column;
    int r = pen__inputs_add_column(s->inputs, kind->name, kind->type, kind->flags, &column, reterr);
    if (r < 0) {
        pen__error_prefix(reterr, "%s: %.200s (the key ends at the first dot)", s->from->name,
                          m->name);
        return r;
    }
    for (uint32_t i = 0; i < s->n_cells; i++)
        if (s->cells[i].column == column)
            return pen__fail(reterr, PEN_E_INVALID, WHERE,
                             "%s: %.200s: expected one part for field %s in a sample, found a "
                             "second one; name it KEY.OTHER.%s",
                             s->from->name, m->name, kind->name, suffix);
    size_t bytes = strlen(suffix);
    if (pen__buf_add(&s->texts, suffix, bytes) < 0)
        return pen__fail_memory(reterr, WHERE, s->from->name);
    /* One part per column, so there are never more than fit. The text is set when the sample is
     * complete: the buffer may still move. */
    s->cells[s->n_cells++] = (PenCell){.kind = s->compressed ? PEN_PART_STREAM : PEN_PART_RANGE,
                                       .path = PEN_PATH_SUFFIX,
                                       .column = column,
                                       .source = s->root,
                                       .offset = m->offset,
                                       .bytes = m->bytes,
                                       .text_bytes = (uint32_t)bytes};
    return PEN_OK;
}

/* Adds the open sample, if there is one. */
static int close_sample(Sample *s, PenError *reterr)
{
    if (!s->stem.bytes)
        return PEN_OK;
    const char *text = (const char *)s->texts.data;
    for (uint32_t i = 0; i < s->n_cells; i++) {
        s->cells[i].text = text;
        text += s->cells[i].text_bytes;
    }
    const char *label = s->label.bytes ? (const char *)s->label.data : NULL;
    int r = pen__inputs_add(s->inputs, (const char *)s->stem.data, s->stem.bytes, label, s->cells,
                            s->n_cells, reterr);
    if (r < 0 && r != PEN_E_CANCELLED)
        pen__error_prefix(reterr, "%s", s->from->name);
    s->stem.bytes = s->texts.bytes = s->label.bytes = 0;
    s->n_cells = 0;
    return r;
}

static int open_sample(Sample *s, const char *name, size_t stem, PenError *reterr)
{
    if (s->stem.bytes == stem && memcmp(s->stem.data, name, stem) == 0)
        return PEN_OK;
    int r = close_sample(s, reterr);
    if (r < 0)
        return r;
    if (pen__buf_add(&s->stem, name, stem) < 0 || pen__buf_add(&s->stem, "", 1) < 0)
        return pen__fail_memory(reterr, WHERE, s->from->name);
    s->stem.bytes--;
    return PEN_OK;
}

static int take_member(Sample *s, const PenMember *m, PenError *reterr)
{
    if (pen__member_hidden(m->name))
        return PEN_OK;
    size_t stem = pen__member_stem(m->name);
    const char *suffix = m->name + stem + 1;
    if (!m->name[stem] || !*suffix)
        return fail(s, m->name, PEN_E_INVALID,
                    "expected a name such as 0017.jpg, found one without a suffix; rename it or "
                    "leave it out of the tar",
                    reterr);
    if (strlen(suffix) > 255)
        return fail(s, m->name, PEN_E_LIMIT, "expected a suffix of at most 255 bytes, found more",
                    reterr);
    char lower[256];
    lower_suffix(m->name, lower);
    int r = open_sample(s, m->name, stem, reterr);
    if (r < 0)
        return r;
    Kind kind;
    kind_of(lower, &kind);
    return kind.type ? add_part(s, m, suffix, &kind, reterr) : read_label(s, m, reterr);
}

static int check_order(const Sample *s, PenError *reterr)
{
    if (!s->compressed || s->inputs->settings->order == PEN_PACK_SOURCE)
        return PEN_OK;
    return pen__fail(
        reterr, PEN_E_INVALID, WHERE,
        "%s: expected an uncompressed tar for the shuffled order, found a compressed one; "
        "add --order source or unpack it",
        s->from->name);
}

/* All members, as samples of the root that was added last. */
static int scan_members(PenInputs *in, Members *from, bool compressed, PenError *reterr)
{
    Sample *s = pen__zalloc(sizeof *s);
    if (!s)
        return pen__fail_memory(reterr, WHERE, from->name);
    s->inputs = in;
    s->from = from;
    s->root = in->n_roots - 1;
    s->compressed = compressed;
    int r = check_order(s, reterr);
    while (r == PEN_OK) {
        PenMember m;
        r = next_member(from, &m, reterr);
        if (r == PEN_OK)
            r = take_member(s, &m, reterr);
    }
    if (r == PEN_END)
        r = close_sample(s, reterr);
    pen__buf_free(&s->stem);
    pen__buf_free(&s->texts);
    pen__buf_free(&s->label);
    pen__free(s);
    return r;
}

int pen__scan_tar_from(PenInputs *in, PenSource *source, PenError *reterr)
{
    Members from = {.name = source->name};
    uint32_t root;
    int r = pen__inputs_add_root(in, PEN_ROOT_TAR, source->name, strlen(source->name),
                                 source->bytes, &root, reterr);
    if (r == PEN_OK)
        r = pen__tar_open(source, &from.tar, reterr);
    if (r == PEN_OK)
        r = scan_members(in, &from, pen__tar_compressed(from.tar), reterr);
    pen__tar_close(&from.tar);
    return r;
}

/* The summary was made, or found to be of the tar as it is now, before the scan. */
static int scan_summary(PenInputs *in, const char *address, PenError *reterr)
{
    Members from = {.name = address};
    uint32_t root;
    int r = pen__summary_open(in->summaries, address, &from.summary, reterr);
    if (r < 0)
        return r;
    const PenObject *object = pen__summary_object(from.summary);
    r = pen__inputs_add_root(in, PEN_ROOT_TAR, address, strlen(address), object->bytes, &root,
                             reterr);
    if (r == PEN_OK)
        r = scan_members(in, &from, false, reterr);
    if (r == PEN_OK)
        in->roots[root].stamp = pen__stamp_of_object(object);
    pen__buf_free(&from.record);
    pen__summary_close(&from.summary);
    return r;
}

/* Streamed once, by several requests at a time. */
static int scan_remote(PenInputs *in, const char *address, PenError *reterr)
{
    PenSource *source = NULL;
    PenObject object;
    uint32_t root = in->n_roots;
    int r = pen__object_open(in->places, address, NULL, &source, &object, reterr);
    if (r < 0)
        return r;
    r = pen__scan_tar_from(in, source, reterr);
    if (r == PEN_OK)
        in->roots[root].stamp = pen__stamp_of_object(&object);
    pen__source_close(&source);
    return r;
}

int pen__scan_tar(PenInputs *in, const char *path, PenError *reterr)
{
    if (pen_is_remote(path))
        return in->summaries ? scan_summary(in, path, reterr) : scan_remote(in, path, reterr);
    PenSource *source = NULL;
    PenFileStat st; /* from before it is read: what changes then is noticed later */
    uint32_t root = in->n_roots;
    int r = pen__sys->stat_path(path, &st);
    if (r < 0)
        return pen__fail_os(reterr, -r, WHERE, "%s: cannot stat", path);
    r = pen__source_open_file(path, &source, reterr);
    if (r < 0)
        return r;
    r = pen__scan_tar_from(in, source, reterr);
    if (r == PEN_OK)
        in->roots[root].stamp = pen__stamp_of(&st);
    pen__source_close(&source);
    return r;
}
