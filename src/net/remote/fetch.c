/* SPDX-License-Identifier: Apache-2.0 */
#include "net/remote/fetch.h"

#include <inttypes.h>

#include "base/error.h"
#include "base/team.h"

#define WHERE "net/remote"
/* A request has a time limit. */
#define PIECE_BYTES ((size_t)4 << 20)

enum { AT_ONCE = 8 };

typedef struct Fetching {
    PenRemote *remote;
    const char *name;
    const PenFetch *fetch;
    PenObject object;
    uint64_t rest; /* bytes before those that the first response brought */
} Fetching;

static int fetch_piece(void *ctx, uint64_t number, PenError *reterr)
{
    const Fetching *f = ctx;
    uint64_t at = number * PIECE_BYTES;
    size_t bytes = (size_t)PEN_MIN(f->rest - at, (uint64_t)PIECE_BYTES);
    uint8_t *data = pen__alloc(bytes);
    if (!data)
        return pen__fail_memory(reterr, WHERE, f->name);
    int r = pen__remote_read(f->remote, f->name, &f->object, data, bytes, at, 0, reterr);
    if (r == PEN_OK)
        r = f->fetch->take(f->fetch->ctx, data, bytes, at, reterr);
    pen__free(data);
    return r;
}

static int check_interrupted(void *ctx, PenError *reterr)
{
    const Fetching *f = ctx;
    return pen__remote_interrupted(f->remote)
               ? pen__fail(reterr, PEN_E_CANCELLED, WHERE, "%s/%s: interrupted",
                           pen__remote_text(f->remote), f->name)
               : PEN_OK;
}

static void stop(void *ctx, int stop)
{
    const Fetching *f = ctx;
    pen__remote_stop(f->remote, stop);
}

static int fetch_rest(Fetching *f, PenError *reterr)
{
    PenEach each = {.name = "pen-fetch",
                    .n = (f->rest + PIECE_BYTES - 1) / PIECE_BYTES,
                    .threads = AT_ONCE,
                    .step = fetch_piece,
                    .tick = check_interrupted,
                    .stop = stop,
                    .ctx = f};
    return pen__each(&each, reterr);
}

/* Its end comes first: that response brings size and ETag. */
static int fetch_end(Fetching *f, uint8_t *data, PenError *reterr)
{
    size_t got = 0;
    int r = pen__remote_tail(f->remote, f->name, data, PIECE_BYTES, &got, &f->object, reterr);
    if (r < 0)
        return r;
    if (f->object.bytes > f->fetch->most_bytes)
        return pen__fail(
            reterr, PEN_E_LIMIT, WHERE, "%s/%s: expected at most %" PRIu64 " bytes, found %" PRIu64,
            pen__remote_text(f->remote), f->name, f->fetch->most_bytes, f->object.bytes);
    f->rest = f->object.bytes - got;
    r = f->fetch->begin(f->fetch->ctx, f->object.bytes, reterr);
    return r < 0 ? r : f->fetch->take(f->fetch->ctx, data, got, f->rest, reterr);
}

int pen__remote_fetch(PenRemote *remote, const char *name, const PenFetch *fetch, PenObject *ret,
                      PenError *reterr)
{
    Fetching f = {.remote = remote, .name = name, .fetch = fetch};
    uint8_t *data = pen__alloc(PIECE_BYTES);
    int r = data ? fetch_end(&f, data, reterr) : pen__fail_memory(reterr, WHERE, name);
    pen__free(data);
    if (r == PEN_OK)
        r = fetch_rest(&f, reterr);
    if (r == PEN_E_CHANGED)
        return pen__fail(reterr, r, WHERE,
                         "%s/%s: changed while it was read; run the same command again",
                         pen__remote_text(remote), name);
    if (r == PEN_OK)
        *ret = f.object;
    return r;
}
