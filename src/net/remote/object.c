/* SPDX-License-Identifier: Apache-2.0 */
/* One object: its size, its bytes, storing and removing it. */
#include <inttypes.h>
#include <string.h>

#include "base/iov.h"
#include "net/remote/remote_impl.h"

#define WHERE "net/remote"

static void object_of(const PenRemoteOp *op, uint64_t bytes, PenObject *ret)
{
    ret->bytes = bytes;
    memcpy(ret->etag, op->ret_etag, sizeof ret->etag);
}

/* "bytes=-N" of an object without bytes cannot be satisfied, and is answered 416. */
static int empty_tail(PenRemote *r, const char *name, size_t *ret_bytes, PenObject *ret,
                      PenError *reterr)
{
    PenObject object;
    int e = pen__remote_stat(r, name, &object, reterr);
    if (e == PEN_OK && object.bytes)
        e = pen__fail(reterr, PEN_E_IO, WHERE,
                      "%s/%s: the server returned no bytes for the end of an object of %" PRIu64
                      " bytes",
                      pen__remote_text(r), name, object.bytes);
    if (e == PEN_OK) {
        *ret = object;
        *ret_bytes = 0;
    }
    return e;
}

int pen__remote_tail(PenRemote *r, const char *name, void *buf, size_t bytes, size_t *ret_bytes,
                     PenObject *ret, PenError *reterr)
{
    PenRemoteOp op = {.r = r,
                      .method = "GET",
                      .name = name,
                      .into = buf,
                      .into_bytes = bytes,
                      .ranged = 1,
                      .suffix = 1,
                      .range_bytes = bytes};
    int e = pen__remote_run(&op, reterr);
    if (e == PEN_E_CORRUPT)
        return empty_tail(r, name, ret_bytes, ret, reterr);
    if (e < 0)
        return e;
    *ret_bytes = (size_t)op.bytes;
    object_of(&op, op.range_total, ret);
    return PEN_OK;
}

/* A GET of exactly the bytes that the places hold. */
static int read_places(PenRemoteOp *op, const PenObject *of, PenError *reterr)
{
    uint64_t bytes = pen__iov_bytes(op->into_v, op->n_into);
    op->method = "GET";
    op->into_bytes = (size_t)bytes;
    op->ranged = 1;
    op->range_bytes = bytes;
    op->etag = of->etag;
    if (!bytes)
        return PEN_OK;
    int e = pen__remote_run(op, reterr);
    if (e == PEN_OK && op->range_total != of->bytes)
        e = pen__fail(reterr, PEN_E_CHANGED, WHERE,
                      "%s: expected an object of %" PRIu64 " bytes, found one of %" PRIu64
                      ": it was overwritten",
                      op->title, of->bytes, op->range_total);
    return e;
}

int pen__remote_read_v(PenRemote *r, const char *name, PenObject *of, const struct iovec *v, int n,
                       uint64_t offset, const PenArrival *arrival, PenError *reterr)
{
    PenRemoteOp op = {.r = r,
                      .name = name,
                      .into_v = v,
                      .n_into = n,
                      .arrival = arrival,
                      .range_first = offset,
                      .fresh = pen__arrival_is_again(arrival)};
    int e = read_places(&op, of, reterr);
    if (e == PEN_OK && !of->etag[0])
        memcpy(of->etag, op.ret_etag, sizeof of->etag);
    return e;
}

int pen__remote_read(PenRemote *r, const char *name, const PenObject *of, void *buf, size_t bytes,
                     uint64_t offset, int fresh, PenError *reterr)
{
    struct iovec one = {buf, bytes};
    PenRemoteOp op = {.r = r,
                      .name = name,
                      .into_v = &one,
                      .n_into = 1,
                      .range_first = offset,
                      .fresh = fresh != 0};
    return read_places(&op, of, reterr);
}

int pen__remote_stat(PenRemote *r, const char *name, PenObject *ret, PenError *reterr)
{
    PenRemoteOp op = {.r = r, .method = "HEAD", .name = name};
    int e = pen__remote_run(&op, reterr);
    if (e == PEN_OK && op.content_length == PEN_HTTP_NONE)
        e = pen__fail(reterr, PEN_E_IO, WHERE,
                      "%s: expected the length of the object, found no Content-Length", op.title);
    if (e == PEN_OK)
        object_of(&op, op.content_length, ret);
    return e;
}

int pen__remote_store(PenRemote *r, const char *name, const void *data, size_t bytes, PenIf when,
                      const PenObject *than, PenObject *ret, PenError *reterr)
{
    struct iovec body = {(void *)data, bytes};
    PenRemoteOp op = {.r = r,
                      .method = "PUT",
                      .name = name,
                      .body = &body,
                      .n_body = 1,
                      .when = when,
                      .etag = when == PEN_IF_SAME ? than->etag : NULL};
    int e = pen__remote_run(&op, reterr);
    if (e == PEN_OK && ret)
        object_of(&op, bytes, ret);
    return e;
}

int pen__remote_remove(PenRemote *r, const char *name, PenError *reterr)
{
    PenRemoteOp op = {.r = r, .method = "DELETE", .name = name};
    int e = pen__remote_run(&op, reterr);
    return e == PEN_E_NOT_FOUND ? PEN_OK : e;
}
