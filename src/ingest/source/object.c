/* SPDX-License-Identifier: Apache-2.0 */
#include "ingest/source/object.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <string.h>
#include <strings.h>

#include "base/bytes.h"
#include "base/team.h"
#include "ingest/source/input.h"
#include "io/ahead.h"
#include "io/remote_source.h"
#include "net/address/address.h"

#define WHERE "ingest/read"
/* A request has a time limit, so large objects are read by several. */
#define PIECE_BYTES ((uint64_t)8 << 20)

/* Parts of a name that lead elsewhere, or that no URL can have. */
static bool is_plain_name(const char *name)
{
    for (const char *part = name;; part++) {
        size_t n = strcspn(part, "/");
        if (!n || (n == 1 && part[0] == '.') || (n == 2 && part[0] == '.' && part[1] == '.'))
            return false;
        part += n;
        if (!*part)
            return true;
    }
}

int pen__object_beneath(const char *root, const char *path, const char **ret, PenError *reterr)
{
    const char *name = path;
    size_t n = strlen(root);
    while (n && root[n - 1] == '/')
        n--;
    if (pen_is_remote(path)) {
        bool is_s3 = strncasecmp(path, "s3://", 5) == 0;
        bool below = strncmp(path, root, n) == 0 && path[n] == '/';
        name = below && !strpbrk(path, is_s3 ? "?#" : "?#%") ? path + n + 1 : "";
    }
    if (!is_plain_name(name))
        return pen__fail(reterr, PEN_E_UNSUPPORTED, "ingest/list",
                         "expected an object below %.*s, found %.*s; write paths relative to it, "
                         "or pass --root with a URL that all objects of the list are below",
                         (int)PEN_MIN(n, 300u), root, (int)PEN_MIN(strcspn(path, "?#@"), 300u),
                         path);
    *ret = name;
    return PEN_OK;
}

int pen__object_address(const char *root, const char *name, PenBuf *ret, PenError *reterr)
{
    PenAddress base = {0}, joined = {0};
    int r = pen__address_parse(root, &base, reterr);
    if (r == PEN_OK && name && base.scheme == PEN_SCHEME_S3 && strpbrk(name, "?#"))
        r = pen__fail(reterr, PEN_E_UNSUPPORTED, WHERE,
                      "object '%.300s' in s3://%s: the name of an object that is read in place "
                      "cannot have '?' or '#'; rename the object",
                      name, base.bucket);
    if (r == PEN_OK && name)
        r = pen__address_join(&base, name, &joined, reterr);
    ret->bytes = 0;
    if (r == PEN_OK && pen__address_text(name ? &joined : &base, ret) < 0)
        r = pen__fail_memory(reterr, WHERE, root);
    pen__address_free(&base);
    pen__address_free(&joined);
    return r;
}

static int fail_changed(const char *title, const PenExpected *expected, PenError *reterr)
{
    return pen__fail(reterr, PEN_E_INVALID, WHERE,
                     "%s: changed since the plan was made: its ETag differs; %s", title,
                     expected->advice);
}

static int fail_gone(const char *title, const PenExpected *expected, PenError *reterr)
{
    if (!expected->bytes && !pen__stamp_is_set(&expected->stamp))
        return pen__fail(reterr, PEN_E_NOT_FOUND, WHERE, "%s: no such object", title);
    return pen__fail(reterr, PEN_E_NOT_FOUND, WHERE,
                     "%s: changed since the plan was made: no such object; %s", title,
                     expected->advice);
}

int pen__object_check(const char *title, const PenExpected *expected, const PenObject *found,
                      PenError *reterr)
{
    PenStamp stamp = pen__stamp_of_object(found);
    if (found->bytes != expected->bytes)
        return pen__fail(reterr, PEN_E_INVALID, WHERE,
                         "%s: changed since the plan was made: expected %" PRIu64
                         " bytes, found %" PRIu64 "; %s",
                         title, expected->bytes, found->bytes, expected->advice);
    if (pen__stamp_is_set(&expected->stamp) && memcmp(&stamp, &expected->stamp, sizeof stamp) != 0)
        return fail_changed(title, expected, reterr);
    return PEN_OK;
}

/* The last piece comes first: its response brings size and ETag, whatever the size is by now. */
static int read_end(PenRemote *remote, const char *name, uint64_t bytes, uint8_t *to,
                    PenObject *ret, PenError *reterr)
{
    size_t piece = (size_t)PEN_MIN(bytes, PIECE_BYTES), got = 0;
    if (!bytes)
        return pen__remote_stat(remote, name, ret, reterr);
    return pen__remote_tail(remote, name, to + (bytes - piece), piece, &got, ret, reterr);
}

int pen__object_read(PenRemote *remote, const char *name, const char *title,
                     const PenExpected *expected, uint8_t *to, PenObject *ret, PenError *reterr)
{
    PenObject found;
    uint64_t bytes = expected->bytes, rest = bytes - PEN_MIN(bytes, PIECE_BYTES);
    int r = read_end(remote, name, bytes, to, &found, reterr);
    if (r == PEN_E_NOT_FOUND)
        return fail_gone(title, expected, reterr);
    if (r == PEN_OK)
        r = pen__object_check(title, expected, &found, reterr);
    for (uint64_t at = 0; r == PEN_OK && at < rest; at += PIECE_BYTES)
        r = pen__remote_read(remote, name, &found, to + at, (size_t)PEN_MIN(rest - at, PIECE_BYTES),
                             at, 0, reterr);
    if (r == PEN_OK)
        *ret = found;
    return r == PEN_E_CHANGED ? fail_changed(title, expected, reterr) : r;
}

/* ---- tars ------------------------------------------------------------------------------------ */

int pen__object_read_range(PenPlaces *places, const char *address, const PenExpected *expected,
                           uint8_t *to, uint64_t bytes, uint64_t offset, PenError *reterr)
{
    PenObjectPlace place;
    PenObject object;
    int r = pen__places_object(places, address, &object, reterr);
    if (r == PEN_OK)
        r = pen__object_check(address, expected, &object, reterr);
    if (r == PEN_OK)
        r = pen__places_find(places, address, &place, reterr);
    for (uint64_t at = 0; r == PEN_OK && at < bytes; at += PIECE_BYTES)
        r = pen__remote_read(place.remote, place.name, &object, to + at,
                             (size_t)PEN_MIN(bytes - at, PIECE_BYTES), offset + at, 0, reterr);
    if (r == PEN_E_NOT_FOUND)
        return fail_gone(address, expected, reterr);
    return r == PEN_E_CHANGED ? fail_changed(address, expected, reterr) : r;
}

int pen__object_open(PenPlaces *places, const char *address, const PenExpected *expected,
                     PenSource **ret, PenObject *ret_object, PenError *reterr)
{
    PenObjectPlace place;
    PenSource *source = NULL;
    int r = pen__places_find(places, address, &place, reterr);
    if (r == PEN_OK)
        r = pen__source_open_remote(place.remote, place.name, 0, &source, reterr);
    if (r == PEN_E_NOT_FOUND && expected)
        return fail_gone(address, expected, reterr);
    if (r == PEN_OK && expected)
        r = pen__object_check(address, expected, pen__source_object(source), reterr);
    if (r < 0) {
        pen__source_close(&source);
        return r;
    }
    if (ret_object)
        *ret_object = *pen__source_object(source);
    r = pen__source_ahead(place.remote, &source, reterr);
    if (r == PEN_OK)
        *ret = source;
    return r;
}

/* ---- objects that lists name ----------------------------------------------------------------- */

enum { MEASURE_THREADS = 64 };

typedef struct Measuring {
    PenInputs *inputs;
    atomic_uint_least64_t next;
    atomic_bool stop;
    pthread_mutex_t mutex; /* of the error */
    PenError error;        /* the first one; status 0 = none */
    bool is_cancelled;
} Measuring;

static int measure_cell(const Measuring *m, const PenInput *input, const PenCell *cell, uint8_t *at,
                        PenError *reterr)
{
    const PenInputs *in = m->inputs;
    const char *root = in->roots[cell->source].path, *name = NULL;
    bool is_key = cell->path == PEN_PATH_KEY;
    char *path = pen__strndup(is_key ? (const char *)input->key : cell->text,
                              is_key ? input->key_bytes : cell->text_bytes);
    PenRemote *remote = NULL;
    PenObject object;
    if (!path)
        return pen__fail_memory(reterr, WHERE, root);
    int r = pen__object_beneath(root, path, &name, reterr);
    if (r == PEN_OK)
        r = pen__places_get(in->places, root, &remote, reterr);
    if (r == PEN_OK)
        r = pen__remote_stat(remote, name, &object, reterr);
    if (r == PEN_OK) {
        PenStamp stamp = pen__stamp_of_object(&object);
        pen__cell_measured(at, object.bytes, &stamp);
    }
    pen__free(path);
    bool is_bad = r == PEN_E_NOT_FOUND || r == PEN_E_UNSUPPORTED;
    return is_bad && in->settings->skip_bad ? PEN_OK : r;
}

static int measure_input(const Measuring *m, uint64_t i, PenError *reterr)
{
    PenInput input;
    PenCell cell;
    int r = PEN_OK;
    pen__inputs_get(m->inputs, i, &input);
    const uint8_t *next = input.cells;
    for (uint32_t k = 0; r == PEN_OK && k < input.n_cells; k++) {
        uint8_t *at = (uint8_t *)next;
        pen__cell_next(&next, &cell);
        if (cell.kind == PEN_PART_FILE && pen_is_remote(m->inputs->roots[cell.source].path))
            r = measure_cell(m, &input, &cell, at, reterr);
    }
    return r;
}

static void measure(void *ctx, unsigned number)
{
    Measuring *m = ctx;
    (void)number;
    while (!atomic_load(&m->stop)) {
        PenError e = {0};
        uint64_t i = atomic_fetch_add(&m->next, 1);
        if (i >= m->inputs->n_items)
            return;
        if (measure_input(m, i, &e) == PEN_OK)
            continue;
        pthread_mutex_lock(&m->mutex);
        if (m->error.status == PEN_OK)
            m->error = e;
        pthread_mutex_unlock(&m->mutex);
        atomic_store(&m->stop, true);
        pen__places_stop(m->inputs->places, 1);
    }
}

static void report_measuring(void *ctx)
{
    Measuring *m = ctx;
    const PenIngestSettings *s = m->inputs->settings;
    PenIngestProgress p = {.stage = "list",
                           .done = m->inputs->n - m->inputs->n_items +
                                   PEN_MIN(atomic_load(&m->next), m->inputs->n_items)};
    if (m->is_cancelled || !s->progress || !s->progress(s->ctx, &p))
        return;
    m->is_cancelled = true;
    atomic_store(&m->stop, true);
    pen__places_stop(m->inputs->places, 1);
}

int pen__inputs_measure(PenInputs *in, uint64_t first, PenError *reterr)
{
    Measuring m = {.inputs = in};
    PenTeamWork team_work = {
        .name = "pen-measure", .run = measure, .tick = report_measuring, .ctx = &m};
    uint64_t n = in->n_items - first;
    if (!n)
        return PEN_OK;
    atomic_init(&m.next, first);
    atomic_init(&m.stop, false);
    pthread_mutex_init(&m.mutex, NULL);
    int r = pen__team_run(&team_work, (unsigned)PEN_MIN(n, (uint64_t)MEASURE_THREADS), reterr);
    pthread_mutex_destroy(&m.mutex);
    pen__places_stop(in->places, 0);
    if (r == PEN_OK && m.is_cancelled)
        return pen__fail(reterr, PEN_E_CANCELLED, WHERE, "cancelled while inputs were measured");
    if (r == PEN_OK && m.error.status < 0) {
        r = m.error.status;
        if (reterr)
            *reterr = m.error;
    }
    return r;
}
