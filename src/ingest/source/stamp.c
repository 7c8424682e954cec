/* SPDX-License-Identifier: Apache-2.0 */
#include "ingest/source/stamp.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/sha256.h"

#define WHERE "ingest/read"

/* The finaliser of SplitMix64: a bijection that spreads every bit. */
static uint64_t mix(uint64_t v)
{
    v = (v ^ v >> 30) * 0xbf58476d1ce4e5b9u;
    v = (v ^ v >> 27) * 0x94d049bb133111ebu;
    return v ^ v >> 31;
}

void pen__stamp_add(PenStamp *sum, const char *name, const PenFileStat *st)
{
    uint64_t h = 0x9e3779b97f4a7c15u ^ st->bytes;
    for (; *name; name++)
        h = mix(h + (uint8_t)*name);
    sum->mtime_ns = (int64_t)((uint64_t)sum->mtime_ns + mix(h ^ mix((uint64_t)st->mtime_ns)));
    sum->ctime_ns = (int64_t)((uint64_t)sum->ctime_ns + mix(h ^ mix((uint64_t)st->ctime_ns)));
    sum->inode += mix(h ^ mix(st->inode));
}

void pen__stamp_store(uint8_t to[PEN_STAMP_BYTES], const PenStamp *stamp)
{
    pen__store64(to, (uint64_t)stamp->mtime_ns);
    pen__store64(to + 8, (uint64_t)stamp->ctime_ns);
    pen__store64(to + 16, stamp->inode);
}

PenStamp pen__stamp_load(const uint8_t from[PEN_STAMP_BYTES])
{
    return (PenStamp){(int64_t)pen__load64(from), (int64_t)pen__load64(from + 8),
                      pen__load64(from + 16)};
}

PenStamp pen__stamp_of_object(const PenObject *object)
{
    uint8_t hash[32];
    if (!*object->etag)
        return (PenStamp){0};
    pen__sha256(object->etag, strlen(object->etag), hash);
    return pen__stamp_load(hash);
}

int pen__expected_check(const char *name, const PenExpected *expected, uint64_t bytes,
                        const PenStamp *found, PenError *reterr)
{
    const PenStamp *s = &expected->stamp;
    if (bytes == expected->bytes && found->mtime_ns == s->mtime_ns &&
        found->ctime_ns == s->ctime_ns)
        return PEN_OK;
    if (bytes != expected->bytes)
        return pen__fail(reterr, PEN_E_INVALID, WHERE,
                         "%s: changed since the plan was made: expected %" PRIu64
                         " bytes, found %" PRIu64 "; %s",
                         name, expected->bytes, bytes, expected->advice);
    return pen__fail(reterr, PEN_E_INVALID, WHERE,
                     "%s: changed since the plan was made: its %s differs; %s", name,
                     found->mtime_ns != s->mtime_ns ? "modification time" : "change time (ctime)",
                     expected->advice);
}

int pen__expected_gone(const char *path, int code, const char *advice, PenError *reterr)
{
    int r =
        pen__fail_os(reterr, code, WHERE, "%s: changed since the plan was made: cannot open", path);
    if (reterr) {
        size_t used = strlen(reterr->message);
        snprintf(reterr->message + used, sizeof reterr->message - used, "; %s", advice);
    }
    return r;
}

int pen__expected_check_path(const char *path, const PenExpected *expected, PenError *reterr)
{
    PenFileStat st;
    int r = pen__sys->stat_path(path, &st);
    if (r < 0)
        return pen__expected_gone(path, -r, expected->advice, reterr);
    PenStamp found = pen__stamp_of(&st);
    return pen__expected_check(path, expected, st.bytes, &found, reterr);
}
