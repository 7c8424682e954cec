/* SPDX-License-Identifier: Apache-2.0 */
#include "ingest/prepare/video_copies.h"

#include <stdio.h>
#include <string.h>

#include "ingest/spill/spill.h"
#include "io/places.h"
#include "manage/work.h"
#include "net/remote/fetch.h"

#define WHERE "ingest/video"

typedef struct Slot {
    PenVideoCopy copy; /* address NULL: there is none */
    PenSpill file;
    char *path;
} Slot;

struct PenVideoCopies {
    PenPlaces *places;
    uint32_t n;
    Slot slots[]; /* of the fields */
};

static void drop(Slot *s)
{
    pen__spill_close(&s->file);
    pen__video_list_free(&s->copy.list);
    pen__free(s->copy.address);
    s->copy = (PenVideoCopy){.path = s->path};
}

int pen__video_copies_new(const PenRemoteSettings *settings, const char *home, uint32_t n_fields,
                          PenVideoCopies **ret, PenError *reterr)
{
    char name[32];
    PenVideoCopies *c = pen__zalloc(sizeof *c + n_fields * sizeof *c->slots);
    if (!c)
        return pen__fail_memory(reterr, WHERE, home);
    int r = pen__places_new(settings, &c->places, reterr);
    for (; r == PEN_OK && c->n < n_fields; c->n++) {
        Slot *s = &c->slots[c->n];
        snprintf(name, sizeof name, "video-%u", c->n);
        s->path = pen__work_path(home, name);
        s->file = (PenSpill){.path = s->path, .is_named = true};
        s->copy.path = s->path;
        if (!s->path)
            r = pen__fail_memory(reterr, WHERE, home);
    }
    if (r < 0)
        pen__video_copies_free(&c);
    else
        *ret = c;
    return r;
}

void pen__video_copies_free(PenVideoCopies **copies)
{
    PenVideoCopies *c = *copies;
    *copies = NULL;
    if (!c)
        return;
    for (uint32_t i = 0; i < c->n; i++) {
        drop(&c->slots[i]);
        pen__free(c->slots[i].path);
    }
    pen__places_free(&c->places);
    pen__free(c);
}

void pen__video_copy_rename(const PenVideoCopy *copy, PenError *err)
{
    char text[sizeof err->message];
    size_t n = 0, path_bytes = strlen(copy->path);
    if (!err)
        return;
    memcpy(text, err->message, sizeof text);
    err->message[0] = 0;
    for (const char *from = text, *at; *from && n < sizeof text; from = at + path_bytes) {
        at = strstr(from, copy->path);
        int before = at ? (int)(at - from) : (int)strlen(from);
        n += (size_t)snprintf(err->message + n, sizeof text - n, "%.*s%s", before, from,
                              at ? copy->address : "");
        if (!at)
            return;
    }
}

/* ---- fetching -------------------------------------------------------------------------------- */

static int begin(void *ctx, uint64_t bytes, PenError *reterr)
{
    (void)bytes;
    return pen__spill_write(ctx, "", 0, reterr);
}

static int take(void *ctx, const void *data, size_t bytes, uint64_t offset, PenError *reterr)
{
    return pen__spill_put(ctx, data, bytes, offset, reterr);
}

static int fetch(PenVideoCopies *c, Slot *s, PenError *reterr)
{
    PenObjectPlace place;
    PenFetch fetch = {
        .most_bytes = PEN_MAX_VIDEO_BYTES, .begin = begin, .take = take, .ctx = &s->file};
    int r = pen__places_find(c->places, s->copy.address, &place, reterr);
    if (r == PEN_OK)
        r = pen__remote_fetch(place.remote, place.name, &fetch, &s->copy.object, reterr);
    pen__spill_finish(&s->file);
    return r;
}

int pen__video_copies_get(PenVideoCopies *c, const PenVideoSettings *settings, uint32_t field,
                          const char *address, const PenVideoCopy **ret, PenError *reterr)
{
    Slot *s = &c->slots[field];
    *ret = &s->copy;
    if (s->copy.address && strcmp(s->copy.address, address) == 0)
        return PEN_OK;
    drop(s);
    s->copy.address = pen__strdup(address);
    int r = s->copy.address ? fetch(c, s, reterr) : pen__fail_memory(reterr, WHERE, address);
    if (r == PEN_OK) {
        r = pen__video_list_again(settings, s->path, &s->copy.list, reterr);
        if (r < 0)
            pen__video_copy_rename(&s->copy, reterr);
    }
    if (r < 0)
        drop(s);
    return r;
}
