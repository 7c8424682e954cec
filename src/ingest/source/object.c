/* SPDX-License-Identifier: Apache-2.0 */
#include "ingest/source/object.h"

#include <inttypes.h>
#include <string.h>

#include "base/bytes.h"
#include "base/sha256.h"
#include "io/ahead.h"
#include "io/remote_source.h"

#define WHERE "ingest/read"
/* A request has a time limit, so large objects are read by several. */
#define PIECE_BYTES ((uint64_t)8 << 20)

PenStamp pen__stamp_of_object(const PenObject *object)
{
    uint8_t hash[32];
    if (!*object->etag)
        return (PenStamp){0};
    pen__sha256(object->etag, strlen(object->etag), hash);
    return pen__stamp_load(hash);
}

static int fail_changed(const char *title, const PenExpected *expected, PenError *reterr)
{
    return pen__fail(reterr, PEN_E_INVALID, WHERE,
                     "%s: changed since the plan was made: its ETag differs; %s", title,
                     expected->advice);
}

static int fail_gone(const char *title, const PenExpected *expected, PenError *reterr)
{
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
                     const PenExpected *expected, uint8_t *to, PenError *reterr)
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
