/* SPDX-License-Identifier: Apache-2.0 */
/* The public calls: the objects below a prefix. */
#include <string.h>

#include "base/error.h"
#include "net/remote/fetch.h"

#define WHERE "net/remote"

/* ---- listing --------------------------------------------------------------------------------- */

typedef struct Listed {
    PenRemoteListFn each;
    void *ctx;
    int is_ended;
} Listed;

static int pass_on(void *ctx, const char *name, const PenObject *object)
{
    Listed *l = ctx;
    l->is_ended = l->each(l->ctx, name, object->bytes) != 0;
    return l->is_ended ? PEN_E_CANCELLED : PEN_OK;
}

int pen_remote_list(const char *prefix, const PenRemoteSettings *settings, PenRemoteListFn each,
                    void *ctx, PenError *reterr)
{
    PenRemote *remote = NULL;
    Listed l = {.each = each, .ctx = ctx};
    int r = pen__remote_open(prefix, settings, &remote, reterr);
    if (r == PEN_OK && !pen__remote_is_s3(remote))
        r = pen__fail(reterr, PEN_E_UNSUPPORTED, WHERE,
                      "%s: expected an s3:// URL: web servers do not list their files",
                      pen__remote_text(remote));
    if (r == PEN_OK)
        r = pen__remote_list(remote, pass_on, &l, reterr);
    if (l.is_ended)
        r = pen__fail(reterr, PEN_E_CANCELLED, WHERE, "%s: the caller has ended the list",
                      pen__remote_text(remote));
    pen__remote_close(&remote);
    return r;
}

/* ---- reading --------------------------------------------------------------------------------- */

typedef struct Reading {
    PenRemoteMemoryFn memory;
    void *ctx;
    const char *name;
    uint8_t *to;
} Reading;

static int begin(void *ctx, uint64_t bytes, PenError *reterr)
{
    Reading *r = ctx;
    r->to = r->memory(r->ctx, bytes);
    return r->to ? PEN_OK : pen__fail_memory(reterr, WHERE, r->name);
}

static int take(void *ctx, const void *data, size_t bytes, uint64_t offset, PenError *reterr)
{
    const Reading *r = ctx;
    (void)reterr;
    memcpy(r->to + offset, data, bytes);
    return PEN_OK;
}

int pen_remote_read(const char *prefix, const char *name, const PenRemoteSettings *settings,
                    uint64_t most_bytes, PenRemoteMemoryFn memory, void *ctx, PenError *reterr)
{
    PenRemote *remote = NULL;
    PenObject object;
    Reading reading = {.memory = memory, .ctx = ctx, .name = name};
    PenFetch fetch = {.most_bytes = most_bytes, .begin = begin, .take = take, .ctx = &reading};
    int r = pen__remote_open(prefix, settings, &remote, reterr);
    if (r == PEN_OK)
        r = pen__remote_fetch(remote, name, &fetch, &object, reterr);
    pen__remote_close(&remote);
    return r;
}
