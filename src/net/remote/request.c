/* SPDX-License-Identifier: Apache-2.0 */
/* Making a request of an operation: URL, headers, signature; anew for every attempt, because the
 * date, the keys and the region may be others by then. All on the loop. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/attr.h"
#include "base/thread.h"
#include "net/remote/remote_impl.h"

#define WHERE "net/remote"

/* ---- where ----------------------------------------------------------------------------------- */

static int s3_url(PenRemoteOp *op, PenError *reterr)
{
    PenRemote *r = op->r;
    PenAddress at = {0};
    PenBuf query = {0};
    int e = PEN_OK;
    if (!op->at_bucket)
        e = pen__address_join(&r->address, op->name, &at, reterr);
    if (e == PEN_OK && op->n_query && pen__query_make(op->query, op->n_query, &query) < 0)
        e = pen__fail_memory(reterr, WHERE, "query");
    if (e == PEN_OK &&
        pen__endpoint_url(&r->shared->endpoint, r->address.bucket, op->at_bucket ? "" : at.path,
                          op->n_query ? (const char *)query.data : NULL, &op->url, NULL) < 0)
        e = pen__fail_memory(reterr, WHERE, "URL");
    pen__buf_free(&query);
    pen__address_free(&at);
    return e;
}

static int plain_url(PenRemoteOp *op, PenError *reterr)
{
    PenAddress at = {0};
    int e = *op->name ? pen__address_join(&op->r->address, op->name, &at, reterr) : PEN_OK;
    if (e == PEN_OK && pen__address_text(*op->name ? &at : &op->r->address, &op->url) < 0)
        e = pen__fail_memory(reterr, WHERE, "URL");
    pen__address_free(&at);
    return e;
}

/* ---- headers --------------------------------------------------------------------------------- */

static void put(PenRemoteOp *op, size_t *n, const char *name, const char *value)
{
    op->headers[(*n)++] = (PenHttpHeader){name, value};
}

/* Without its quotes: Ceph and some others compare it as it is when storing. */
static const char *bare_etag(PenRemoteOp *op)
{
    size_t n = strlen(op->etag);
    if (n < 2 || op->etag[0] != '"')
        return op->etag;
    memcpy(op->match, op->etag + 1, n - 2);
    op->match[n - 2] = 0;
    return op->match;
}

static size_t headers_of(PenRemoteOp *op)
{
    size_t n = 0;
    if (op->ranged) {
        if (op->suffix)
            snprintf(op->range, sizeof op->range, "bytes=-%" PRIu64, op->range_bytes);
        else
            snprintf(op->range, sizeof op->range, "bytes=%" PRIu64 "-%" PRIu64, op->range_first,
                     op->range_first + op->range_bytes - 1);
        put(op, &n, "Range", op->range);
    }
    if (pen__remote_has_strong_etag(op))
        put(op, &n, "If-Match", op->when == PEN_IF_SAME ? bare_etag(op) : op->etag);
    if (op->when == PEN_IF_ABSENT)
        put(op, &n, "If-None-Match", "*");
    if (op->r->shared->endpoint.requester_pays)
        put(op, &n, "x-amz-request-payer", "requester");
    for (size_t i = 0; i < op->n_extra && n < OP_HEADERS; i++)
        op->headers[n++] = op->extra[i];
    return n;
}

/* The body's hash is signed over http, where it is the only seal; https has its own, and the
 * payload's checksums are the format's. */
static const char *hash_of(PenRemoteOp *op)
{
    if (op->payload_hash)
        return op->payload_hash;
    if (op->n_body && strcmp(op->r->shared->endpoint.scheme, "https") == 0)
        return "UNSIGNED-PAYLOAD";
    if (!op->hash[0])
        pen__sha256_hex(op->n_body ? op->body[0].iov_base : NULL,
                        op->n_body ? op->body[0].iov_len : 0, op->hash);
    return op->hash;
}

static int sign(PenRemoteOp *op, size_t *n, PenError *reterr)
{
    PenRemote *r = op->r;
    pen__credentials_put(&op->secret);
    pen__signed_free(&op->sign);
    int e = pen__keyring_now(r->keyring, &op->secret, reterr);
    if (e < 0)
        return e;
    uint64_t now_s = r->transport->class_->unix_ns(r->transport) / 1000000000u;
    PenSigning with = {.key_id = pen__credentials_key_id(op->secret),
                       .secret = pen__credentials_secret(op->secret),
                       .token = pen__credentials_token(op->secret),
                       .region = r->shared->endpoint.region,
                       .service = "s3",
                       .unix_s = now_s + (uint64_t)r->shared->skew_s};
    PenToSign what = {.method = op->method,
                      .url = (const char *)op->url.data,
                      .headers = op->headers,
                      .n_headers = *n,
                      .payload_hash = hash_of(op)};
    e = pen__sign(&with, &what, &op->sign, reterr);
    if (e < 0)
        return e;
    put(op, n, "x-amz-date", op->sign.date);
    put(op, n, "x-amz-content-sha256", op->sign.content_sha256);
    if (with.token)
        put(op, n, "x-amz-security-token", with.token);
    put(op, n, "Authorization", (const char *)op->sign.authorization.data);
    return PEN_OK;
}

static int prepare(void *ctx, unsigned attempt, PenHttpRequest *ret, PenError *reterr)
{
    PenRemoteOp *op = ctx;
    (void)attempt;
    op->url.bytes = 0;
    int e = pen__remote_is_s3(op->r) ? s3_url(op, reterr) : plain_url(op, reterr);
    if (e < 0)
        return e;
    size_t n = headers_of(op);
    if (op->r->keyring)
        e = sign(op, &n, reterr);
    if (e < 0)
        return e;
    ret->method = op->method;
    ret->url = (const char *)op->url.data;
    ret->headers = op->headers;
    ret->n_headers = n;
    ret->body = op->body;
    ret->n_body = op->n_body;
    ret->into = op->into;
    ret->into_bytes = op->into_bytes;
    ret->into_v = op->into_v;
    ret->n_into = op->n_into;
    ret->arrival = op->arrival;
    ret->fresh = op->fresh || op->wrong;
    return PEN_OK;
}

/* ---- from beginning to end ------------------------------------------------------------------- */

int pen__remote_begin(PenRemoteOp *op, PenError *reterr)
{
    const char *slash = *op->name && !op->at_bucket ? "/" : "";
    snprintf(op->title, sizeof op->title, "%s%s%s", pen__remote_text(op->r), slash,
             op->at_bucket ? "" : op->name);
    if (pen__remote_is_s3(op->r) || strcmp(op->method, "GET") == 0 ||
        strcmp(op->method, "HEAD") == 0)
        return PEN_OK;
    return pen__fail(reterr, PEN_E_UNSUPPORTED, WHERE,
                     "%s: packs can only be read over http(s); write to s3:// or a directory",
                     op->title);
}

static int interrupted(void *ctx)
{
    const PenRemoteOp *op = ctx;
    return pen__arrival_is_stopped(op->arrival) || pen__remote_interrupted(op->r);
}

PenOperationSpec pen__remote_spec(PenRemoteOp *op)
{
    return (PenOperationSpec){.prepare = prepare,
                              .classify = pen__remote_classify,
                              .interrupted = interrupted,
                              .ctx = op,
                              .name = op->title,
                              .offset = op->suffix ? 0 : op->range_first,
                              .bytes = op->suffix ? 0 : op->range_bytes,
                              .may_hedge = strcmp(op->method, "GET") == 0};
}

void pen__remote_end(PenRemoteOp *op)
{
    pen__credentials_put(&op->secret);
    pen__credentials_put(&op->refused);
    pen__signed_free(&op->sign);
    pen__buf_free(&op->url);
}

void pen__remote_hide(PenRemote *r, PenError *err)
{
    if (err && r->keyring)
        pen__keyring_hide(r->keyring, err->message);
}

int pen__remote_run(PenRemoteOp *op, PenError *reterr)
{
    int e = pen__remote_begin(op, reterr);
    if (e < 0)
        return e;
    PenOperationSpec spec = pen__remote_spec(op);
    /* The budget is the policy's; a minute more is for an attempt that is under way. */
    uint64_t deadline = pen__deadline_after((op->r->outage_ms + 60000ull) * 1000000u);
    e = pen__policy_wait(op->r->policy, &spec, deadline, reterr);
    pen__remote_end(op);
    return e;
}
