/* SPDX-License-Identifier: Apache-2.0 */
/* Which kind of source each of the given names is, and the scan that goes with it. */
#include <errno.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/sys.h"
#include "ingest/source/beneath.h"
#include "ingest/source/input.h"
#include "ingest/tar/summary.h"
#include "io/objects.h"
#include "net/remote/list.h"

#define WHERE "ingest/plan"
#define MOST_PAGES 100

static const char *kind_name(uint8_t kind)
{
    static const char *const names[] = {[PEN_ROOT_FOLDER] = "a folder",
                                        [PEN_ROOT_LIST] = "a list",
                                        [PEN_ROOT_TAR] = "a tar",
                                        [PEN_ROOT_GULP] = "a gulp directory"};
    return names[kind];
}

static uint8_t kind_of_name(const char *path)
{
    if (pen__text_ends(path, ".csv") || pen__text_ends(path, ".tsv"))
        return PEN_ROOT_LIST;
    return pen__name_is_tar(path) ? PEN_ROOT_TAR : 0;
}

/* What is a folder, and a pack: 1 yes, 0 no. */
static int is_pack(const char *path, PenError *reterr)
{
    static const char magic[] = "PENSTOCK";
    char head[sizeof magic - 1];
    char *manifest = pen__path_join(path, "manifest");
    PenSource *source = NULL;
    if (!manifest)
        return pen__fail_memory(reterr, WHERE, path);
    int r = pen__source_open_file(manifest, &source, NULL);
    if (r == PEN_OK && source->bytes >= sizeof head)
        r = pen__source_read(source, head, sizeof head, 0, NULL) == PEN_OK &&
            memcmp(head, magic, sizeof head) == 0;
    pen__source_close(&source);
    pen__free(manifest);
    return r > 0;
}

static int fail_kind(const char *path, PenError *reterr)
{
    static const char *const tables[] = {".parquet", ".jsonl", ".json", ".ndjson", ".arrow",
                                         ".feather", ".lmdb",  ".h5",   ".hdf5",   ".tfrecord"};
    for (size_t i = 0; i < PEN_LEN(tables); i++)
        if (pen__text_ends(path, tables[i]))
            return pen__fail(
                reterr, PEN_E_UNSUPPORTED, WHERE,
                "%s: expected a folder, a .csv or .tsv list or a .tar file, found a "
                "%s file; write it from Python: penstock.write(\"NAME.pen\", "
                "samples(), schema) with a generator of its rows (docs/reference/python.md, "
                "Write)",
                path, tables[i]);
    return pen__fail(reterr, PEN_E_INVALID, WHERE,
                     "%s: expected a folder, a .csv or .tsv list or a .tar file, found something "
                     "else",
                     path);
}

/* Of an address: by its name alone, nothing is requested. */
static int kind_of_address(const char *address, uint8_t *ret, PenError *reterr)
{
    uint8_t kind = kind_of_name(address);
    size_t n = strlen(address);
    while (n && address[n - 1] == '/')
        n--;
    if (kind) {
        *ret = kind;
        return PEN_OK;
    }
    if (strncasecmp(address, "s3://", 5) != 0)
        return pen__fail(
            reterr, PEN_E_UNSUPPORTED, WHERE,
            "%.300s: expected an s3:// prefix, a list or a .tar file, found an address "
            "whose objects cannot be listed; use s3://, or download the files",
            address);
    if (n >= 4 && strncasecmp(address + n - 4, ".pen", 4) == 0)
        return pen__fail(reterr, PEN_E_INVALID, WHERE,
                         "%.300s: expected a prefix of images, found the name of a pack; 'penstock "
                         "copy' copies packs",
                         address);
    *ret = PEN_ROOT_FOLDER;
    return PEN_OK;
}

static int kind_of(const char *path, uint8_t *ret, PenError *reterr)
{
    PenFileStat st;
    if (pen_is_remote(path))
        return kind_of_address(path, ret, reterr);
    int r = pen__sys->stat_path(path, &st);
    if (pen__leads_nowhere(r) && strpbrk(path, "*?["))
        return pen__fail(reterr, PEN_E_NOT_FOUND, WHERE,
                         "%s: no such file; * is expanded by a shell, if it is not in quotes and a "
                         "file matches",
                         path);
    if (r < 0)
        return pen__fail_os(reterr, -r, WHERE, "%s: cannot open this source", path);
    uint8_t kind = st.is_dir ? PEN_ROOT_FOLDER : st.is_file ? kind_of_name(path) : 0;
    r = kind == PEN_ROOT_FOLDER ? is_pack(path, reterr) : 0;
    if (r == 1)
        r = pen__fail(reterr, PEN_E_INVALID, WHERE,
                      "%s: already a pack; 'penstock info %s' describes it, 'penstock extract %s "
                      "-o DIR' writes its files so that you can pack them again",
                      path, path, path);
    if (r < 0)
        return r;
    if (kind == PEN_ROOT_FOLDER) {
        r = pen__folder_is_gulp(path, reterr);
        if (r < 0)
            return r;
        kind = r ? PEN_ROOT_GULP : kind;
    }
    if (!kind)
        return fail_kind(path, reterr);
    *ret = kind;
    return PEN_OK;
}

static int scan_one(PenInputs *in, const char *path, const char *first, PenError *reterr)
{
    uint8_t kind = 0;
    int r = kind_of(path, &kind, reterr);
    if (r < 0)
        return r;
    if (in->kind && in->kind != kind)
        return pen__fail(reterr, PEN_E_INVALID, WHERE,
                         "expected sources of one kind, found %s (%.150s) and %s (%.150s); pack "
                         "them one after the other with --append",
                         kind_name(in->kind), first, kind_name(kind), path);
    in->kind = kind;
    if (kind != PEN_ROOT_FOLDER && in->settings->n_exclude)
        return pen__fail(reterr, PEN_E_INVALID, WHERE,
                         "%.200s: exclude: expected a folder or an s3:// prefix, found %s; leave "
                         "--exclude out",
                         path, kind_name(kind));
    switch (kind) {
    case PEN_ROOT_FOLDER:
        return pen_is_remote(path) ? pen__scan_prefix(in, path, reterr)
                                   : pen__scan_folder(in, path, reterr);
    case PEN_ROOT_LIST:
        return pen__scan_list(in, path, reterr);
    case PEN_ROOT_GULP:
        return pen__scan_gulp(in, path, reterr);
    default:
        return pen__scan_tar(in, path, reterr);
    }
}

/* A name with braces in it that exists is itself, not a pattern. */
static int expand(const char *source, PenNames *names, PenError *reterr)
{
    if (!*source)
        return pen__fail(reterr, PEN_E_INVALID, WHERE, "expected a source, found an empty name");
    PenFileStat st;
    int r =
        strchr(source, '{') && !pen_is_remote(source) ? pen__sys->stat_path(source, &st) : -ENOENT;
    if (r == -ENOENT || r == -ENOTDIR || r == -ENAMETOOLONG)
        return pen__pattern_expand(source, names, reterr);
    if (r < 0)
        return pen__fail_os(reterr, -r, WHERE, "%.200s: cannot stat", source);
    char *copy = pen__strdup(source);
    char **grown = pen__resize(names->names, (size_t)(names->n + 1) * sizeof *grown);
    if (grown) {
        names->names = grown;
        names->cap = names->n + 1;
    }
    if (!copy || !grown) {
        pen__free(copy);
        return pen__fail_memory(reterr, WHERE, source);
    }
    names->names[names->n++] = copy;
    return PEN_OK;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* A tar that is given twice is refused when it is scanned; two threads must not read it at once. */
static void drop_same(PenNames *names)
{
    uint64_t n = 0;
    qsort(names->names, (size_t)names->n, sizeof *names->names, by_text);
    for (uint64_t i = 0; i < names->n; i++)
        if (!n || strcmp(names->names[n - 1], names->names[i]) != 0)
            names->names[n++] = names->names[i];
    names->n = n;
}

/* Remote tars are read before the first of them is scanned, several at a time. Their names are
 * checked before any of them is read. */
static int summarize(const PenInputs *in, const PenNames *names, PenError *reterr)
{
    PenNames tars = {0};
    char text[PEN_OUTSIDE_PATH_BYTES];
    int r = PEN_OK;
    if (!in->summaries)
        return PEN_OK;
    tars.names = pen__alloc_array(PEN_MAX(names->n, (uint64_t)1), sizeof *tars.names);
    if (!tars.names)
        return pen__fail_memory(reterr, WHERE, "sources");
    for (uint64_t i = 0; i < names->n && r == PEN_OK; i++)
        if (pen_is_remote(names->names[i]) && kind_of_name(names->names[i]) == PEN_ROOT_TAR) {
            tars.names[tars.n++] = names->names[i];
            r = pen__outside_address(names->names[i], text, reterr);
        }
    drop_same(&tars);
    if (r == PEN_OK && tars.n)
        r = in->summaries->make(in->summaries->ctx, &tars, reterr);
    pen__free(tars.names); /* the names themselves are not ours */
    return r;
}

/* ---- what does not exist ------------------------------------------------------------------------
 */
typedef struct Beside {
    const char *pattern; /* of names below the prefix */
    bool has_wildcard;
    uint64_t n;
    PenNames found; /* that match the pattern */
} Beside;

static int take_beside(void *ctx, const char *name, const PenObject *object, PenError *reterr)
{
    Beside *b = ctx;
    (void)object;
    b->n++;
    if (!b->has_wildcard || b->found.n == PEN_TARS_NOTED ||
        fnmatch(b->pattern, name, FNM_PATHNAME) != 0)
        return PEN_OK;
    return pen__names_add(&b->found, name) < 0 ? pen__fail_memory(reterr, WHERE, name) : PEN_OK;
}

static int list_beside(PenPlaces *places, const char *prefix, Beside *b, PenError *reterr)
{
    PenRemote *remote = NULL;
    PenListing *listing = NULL;
    int r = pen__places_get(places, prefix, &remote, reterr);
    if (r == PEN_OK)
        r = pen__listing_open(remote, NULL, &listing, reterr);
    for (int i = 0; r == PEN_OK && i < MOST_PAGES; i++) {
        r = pen__listing_next(listing, reterr);
        if (r != 1)
            break;
        r = pen__listing_each(listing, NULL, take_beside, b, reterr);
        if (r == PEN_OK && !pen__listing_more(listing))
            break;
    }
    pen__listing_close(&listing);
    return r;
}

static int fail_missing(const PenInputs *in, const char *address, const char *prefix, Beside *b,
                        PenError *reterr)
{
    char words[240];
    const PenIngestSettings *s = in->settings;
    if (!b->n)
        return pen__fail(reterr, PEN_E_NOT_FOUND, WHERE,
                         "%.150s: no such object: nothing lies below the prefix %.150s; check its "
                         "spelling",
                         address, prefix);
    if (!b->found.n)
        return pen__fail(reterr, PEN_E_NOT_FOUND, WHERE,
                         "%.150s: no such object: of the %" PRIu64 "%s objects below %.150s, none "
                         "has this name",
                         address, b->n, b->n >= MOST_PAGES * 1000 ? " first" : "", prefix);
    pen__names_as_words(prefix, &b->found, words, sizeof words);
    return pen__fail(reterr, PEN_E_NOT_FOUND, WHERE,
                     "%.80s: no such object, and * is not expanded in an address; name them: "
                     "penstock %s%s -o %.80s",
                     address, s->in_place ? "index" : "pack", words, s->out ? s->out : "NAME");
}

static int explain(const PenInputs *in, const char *address, PenError *reterr)
{
    PenError why = {0};
    Beside b = {.has_wildcard = address[strcspn(address, "*?[")] != 0};
    size_t n = strcspn(address, "*?[");
    while (n && address[n - 1] != '/')
        n--;
    char *prefix = pen__strndup(address, n);
    if (!prefix)
        return pen__fail_memory(reterr, WHERE, address);
    b.pattern = address + n;
    int r = list_beside(in->places, prefix, &b, &why);
    if (r == PEN_OK)
        (void)fail_missing(in, address, prefix, &b, reterr);
    else if (r == PEN_E_NOT_FOUND && reterr)
        *reterr = why; /* there is no such bucket */
    pen__names_free(&b.found);
    pen__free(prefix);
    return PEN_E_NOT_FOUND;
}

/* Requests have failed by PEN_E_NOT_FOUND, as *reterr says. In S3, lists what is beside the object
 * and says which part does not exist: the bucket, the prefix, the object, or a name with *, which
 * is not expanded. Returns the status. */
static int explain_missing(const PenInputs *in, const PenNames *names, PenError *reterr)
{
    for (uint64_t i = 0; reterr && i < names->n; i++)
        if (strncasecmp(names->names[i], "s3://", 5) == 0 &&
            strstr(reterr->message, names->names[i]))
            return explain(in, names->names[i], reterr);
    return PEN_E_NOT_FOUND;
}

/* ---- all sources --------------------------------------------------------------------------------
 */

/* Compressed tars can only be read from their beginnings. */
static const char *command_for(const PenInputs *in)
{
    for (uint64_t i = 0; i < in->tars.n; i++) {
        size_t n = strlen(in->tars.names[i]);
        if (n < 4 || strcasecmp(in->tars.names[i] + n - 4, ".tar") != 0)
            return "pack --order source";
    }
    return in->settings->in_place ? "index" : "pack";
}

/* No source has any input. */
static int fail_empty(PenInputs *in, const char *source, PenError *reterr)
{
    char words[240];
    const PenIngestSettings *s = in->settings;
    if (in->tars.n) {
        pen__names_as_words(source, &in->tars, words, sizeof words);
        return pen__fail(reterr, PEN_E_INVALID, WHERE,
                         "%.80s: expected images, found tar files; name them: penstock %s%s -o "
                         "%.80s",
                         source, command_for(in), words, s->out ? s->out : "NAME");
    }
    if (in->n_ignored)
        return pen__fail(reterr, PEN_E_NOT_FOUND, WHERE,
                         "%.150s: expected %s, found only other names (%" PRIu64
                         ", such as %.100s); to pack files of any name, list them in a .csv",
                         source,
                         in->what == PEN_INPUT_VIDEOS ? "videos (.mp4, .mkv, ...)"
                                                      : "images (.jpg, .jpeg, .png, .webp)",
                         in->n_ignored, in->first_ignored);
    return pen__fail(reterr, PEN_E_NOT_FOUND, WHERE, "%s: expected at least one input, found none",
                     source);
}

int pen__scan_sources(PenInputs *in, PenError *reterr)
{
    const PenIngestSettings *s = in->settings;
    PenNames names = {0};
    int r = PEN_OK;
    in->what = (uint8_t)s->kind;
    for (uint32_t i = 0; r == PEN_OK && i < s->n_sources; i++)
        r = expand(s->sources[i], &names, reterr);
    if (r == PEN_OK)
        r = summarize(in, &names, reterr);
    for (uint64_t i = 0; r == PEN_OK && i < names.n; i++)
        r = scan_one(in, names.names[i], names.names[0], reterr);
    if (r == PEN_E_NOT_FOUND && in->places)
        r = explain_missing(in, &names, reterr);
    if (r == PEN_OK && in->n == 0)
        r = fail_empty(in, names.n ? names.names[0] : "", reterr);
    pen__names_free(&names);
    return r;
}
