/* SPDX-License-Identifier: Apache-2.0 */
/* What an answer means to who asked: nothing is believed that does not fit the request. On the
 * loop. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/attr.h"
#include "base/iov.h"
#include "net/remote/remote_impl.h"
#include "net/s3/response.h"

#define WHERE "net/remote"

/* Answers that contradict the request are asked for again so often, over new connections. */
enum { MOST_WRONG = 3, MOST_UNREACHED = 8 };

/* Causes that can be put right, each once. */
/* What can be corrected. Every further set of credentials is a cause of its own, up to the policy's
 * last one (7): while many requests share credentials that soon expire, one request may meet
 * several expired sets in a row. */
enum { CAUSE_CLOCK, CAUSE_REGION, CAUSE_CREDENTIALS };

static PenVerdict wrong(PenRemoteOp *op, PenError *err, int status)
{
    err->status = status;
    return ++op->wrong < MOST_WRONG ? PEN_VERDICT_RETRY : PEN_VERDICT_FAIL;
}

/* ---- a success ------------------------------------------------------------------------------- */

int pen__remote_has_strong_etag(const PenRemoteOp *op)
{
    return op->etag && *op->etag && strncmp(op->etag, "W/", 2) != 0;
}

/* An object that ends in the range: it has become shorter. If the ETag is known, the server decides
 * by that: a cache that is behind may have another object for a moment. */
static int is_shorter(const PenRemoteOp *op, const PenHttpReply *r)
{
    return r->status == 206 && !op->suffix && !pen__remote_has_strong_etag(op) &&
           r->range_first == op->range_first && r->range_total != PEN_HTTP_NONE &&
           r->range_last + 1 == r->range_total && r->range_total - r->range_first == r->bytes &&
           r->bytes < op->range_bytes;
}

static PenVerdict wrong_range(PenRemoteOp *op, const PenHttpReply *reply, PenError *err)
{
    if (is_shorter(op, reply)) {
        pen__fail(err, PEN_E_CHANGED, WHERE,
                  "%s: expected at least %" PRIu64 " bytes, found an object of %" PRIu64
                  ": it was overwritten",
                  op->title, op->range_first + op->range_bytes, reply->range_total);
        return PEN_VERDICT_FAIL;
    }
    if (reply->status == 200)
        pen__fail(err, PEN_E_IO, WHERE,
                  "%s: expected a range of the object (206), found all of it (200): the server or "
                  "a proxy does not support range requests",
                  op->title);
    else
        pen__fail(
            err, PEN_E_IO, WHERE,
            "%s: expected bytes %" PRIu64 " + %" PRIu64 ", found %" PRIu64 " bytes from %" PRId64,
            op->title, op->range_first, op->range_bytes, reply->bytes, (int64_t)reply->range_first);
    return wrong(op, err, PEN_E_IO);
}

static int range_fits(const PenRemoteOp *op, const PenHttpReply *r)
{
    if (r->status == 200) /* all of it was asked for, in fact */
        return (op->suffix ? r->bytes <= op->range_bytes
                           : op->range_first == 0 && r->bytes == op->range_bytes) &&
               r->content_length == r->bytes;
    if (r->status != 206 || r->range_first == PEN_HTTP_NONE || r->range_total == PEN_HTTP_NONE ||
        r->range_last < r->range_first || r->range_last >= r->range_total ||
        r->range_last - r->range_first + 1 != r->bytes)
        return 0;
    if (op->suffix)
        return r->bytes == PEN_MIN(op->range_bytes, r->range_total) &&
               r->range_last + 1 == r->range_total;
    return r->range_first == op->range_first && r->bytes == op->range_bytes;
}

/* Some stores, and what stands before them, say 200 and send an error's text as the object. */
static int is_error_text(const PenRemoteOp *op, const PenHttpReply *reply)
{
    PenS3Error s3 = {0};
    char text[PEN_HTTP_ERROR_BYTES];
    struct iovec one = {op->into, op->into_bytes};
    if (!pen__remote_is_s3(op->r) || !op->ranged || reply->status != 200 || !reply->bytes ||
        reply->bytes >= PEN_HTTP_ERROR_BYTES)
        return 0;
    size_t n = pen__iov_get(op->into_v ? op->into_v : &one, op->into_v ? op->n_into : 1, text,
                            (size_t)reply->bytes);
    return n && text[0] == '<' && pen__s3_error(text, n, &s3) > 0 && *s3.code;
}

static PenVerdict take(PenRemoteOp *op, const PenHttpReply *reply, PenError *err)
{
    if (is_error_text(op, reply)) {
        pen__fail(err, PEN_E_IO, WHERE,
                  "%s: expected the content of the object, found an error document with status "
                  "200; check the server and any proxy in between",
                  op->title);
        return wrong(op, err, PEN_E_IO);
    }
    if (op->ranged && !range_fits(op, reply))
        return wrong_range(op, reply, err);
    if (op->etag && *op->etag && (op->into || op->into_v) && strcmp(op->etag, reply->etag) != 0) {
        pen__fail(err, PEN_E_CHANGED, WHERE, "%s: expected ETag %s, found %s: it was overwritten",
                  op->title, op->etag, *reply->etag ? reply->etag : "none");
        return PEN_VERDICT_FAIL;
    }
    op->r->shared->reached = 1;
    op->status = reply->status;
    op->bytes = reply->bytes;
    op->content_length = reply->content_length;
    op->range_total = reply->status == 206 ? reply->range_total : reply->content_length;
    memcpy(op->ret_etag, reply->etag, sizeof op->ret_etag);
    return PEN_VERDICT_DONE;
}

/* ---- a refusal ------------------------------------------------------------------------------- */

static int is_one_of(const char *code, const char *const *names, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(code, names[i]) == 0)
            return 1;
    return 0;
}

/* The same credentials once more keep their cause: the source has no better ones, which is final.
 */
static PenVerdict new_credentials(PenRemoteOp *op, unsigned *cause)
{
    pen__keyring_refuse(op->r->keyring, op->secret);
    if (!op->refused || !pen__credentials_same(op->refused, op->secret))
        op->n_refused++;
    pen__credentials_put(&op->refused);
    op->refused = pen__credentials_get(op->secret);
    *cause = CAUSE_CREDENTIALS + op->n_refused - 1;
    return PEN_VERDICT_AGAIN;
}

static PenVerdict new_clock(PenRemoteOp *op, const PenHttpReply *reply, unsigned *cause)
{
    PenTransport *t = op->r->transport;
    uint64_t now_s = t->class_->unix_ns(t) / 1000000000u;
    op->r->shared->skew_s = (int64_t)(reply->date_s - now_s);
    *cause = CAUSE_CLOCK;
    return PEN_VERDICT_AGAIN;
}

/* Another region: of AWS that is another host, too; elsewhere only the signature changes. */
static int new_region(PenRemoteOp *op, const char *region)
{
    PenEndpoint *at = &op->r->shared->endpoint, next;
    if (!*region || strcmp(region, at->region) == 0 || strlen(region) >= sizeof at->region)
        return 0;
    if (op->r->shared->given_host) {
        memcpy(at->region, region, strlen(region) + 1);
        return 1;
    }
    if (pen__endpoint_make(NULL, region, &next, NULL) < 0)
        return 0;
    next.path_style = at->path_style;
    next.unsigned_ = at->unsigned_;
    next.requester_pays = at->requester_pays;
    next.allow_http = at->allow_http;
    *at = next;
    return 1;
}

/* To who may not list a bucket S3 says 403 also for what is not there. */
static const char *denied_hint(const PenRemoteOp *op)
{
    if (strcmp(op->method, "GET") == 0 || strcmp(op->method, "HEAD") == 0)
        return op->at_bucket
                   ? "; listing is not allowed: docs/how-to/s3.md has the policy"
                   : "; the object does not exist or reading it is not allowed (S3 reveals which "
                     "only to those who may list the bucket): docs/how-to/s3.md has the policy";
    return "; writing it is not allowed: docs/how-to/s3.md has the policy";
}

static void say_refused(const PenRemoteOp *op, const PenHttpReply *reply, const PenS3Error *s3,
                        PenError *err)
{
    static const struct {
        const char *code, *hint;
    } hints[] = {
        {"NoSuchBucket", "; check the bucket name and the endpoint"},
        {"AccessDenied", NULL},
        {"InvalidAccessKeyId", "; the endpoint does not know these credentials"},
        {"SignatureDoesNotMatch", "; check the secret access key and the endpoint"},
        {"ExpiredToken", "; renew the credentials"},
        {"ExpiredTokenException", "; renew the credentials"},
        {"InvalidToken", "; the endpoint does not know this session token"},
        {"RequestTimeTooSkewed", "; check the clocks of this machine and of the server"},
        {"RequestExpired", "; check the clocks of this machine and of the server"},
    };
    const char *hint = "", *region = *s3->region ? s3->region : reply->region;
    char source[160] = "", where[128] = "";
    if (*region && strcmp(region, op->r->shared->endpoint.region) != 0)
        snprintf(where, sizeof where, "; the bucket is in region %s", region);
    else if (*region && reply->status == 301)
        snprintf(where, sizeof where, "; requested in region %s, as the server reports", region);
    for (size_t i = 0; i < PEN_LEN(hints); i++)
        if (strcmp(s3->code, hints[i].code) == 0)
            hint = hints[i].hint;
    if (!hint || (reply->status == 403 && !*s3->code)) /* an answer to HEAD has no text */
        hint = denied_hint(op);
    if (op->r->keyring && err->status == PEN_E_ACCESS)
        pen__keyring_source(op->r->keyring, source, sizeof source);
    pen__fail(err, err->status, WHERE, "%s: %s returned %d%s%s%s%s%s%s%s%s%s", op->title,
              op->r->shared->endpoint.host, reply->status, *s3->code ? " " : "", s3->code,
              *source ? ", credentials from " : "", source, *reply->request_id ? ", request " : "",
              reply->request_id, where, hint,
              err->status == PEN_E_ACCESS && op->r->shared->endpoint.unsigned_
                  ? "; the request was not signed"
                  : "");
}

static PenVerdict refuse(PenRemoteOp *op, const PenHttpReply *reply, unsigned *cause, PenError *err)
{
    static const char *const expired[] = {"ExpiredToken", "ExpiredTokenException", "InvalidToken",
                                          "TokenRefreshRequired"};
    static const char *const skewed[] = {"RequestTimeTooSkewed", "RequestExpired"};
    static const char *const elsewhere[] = {"PermanentRedirect", "AuthorizationHeaderMalformed",
                                            "IllegalLocationConstraintException"};
    static const char *const again[] = {"RequestTimeout", "InternalError", "OperationAborted"};
    PenS3Error s3 = {0};
    if (reply->error_bytes)
        (void)pen__s3_error(reply->error, reply->error_bytes, &s3);
    PenVerdict v = pen__policy_classify(op->title, reply, err);
    if (is_one_of(s3.code, expired, PEN_LEN(expired)))
        err->status = PEN_E_ACCESS;
    if (reply->status == 412 && op->when == PEN_IF_ABSENT)
        err->status = PEN_E_EXISTS;
    if (v == PEN_VERDICT_FAIL)
        say_refused(op, reply, &s3, err);
    if (op->secret && is_one_of(s3.code, expired, PEN_LEN(expired)))
        return new_credentials(op, cause);
    if (reply->date_s != PEN_HTTP_NONE && is_one_of(s3.code, skewed, PEN_LEN(skewed)))
        return new_clock(op, reply, cause);
    const char *region = *s3.region ? s3.region : reply->region;
    if ((is_one_of(s3.code, elsewhere, PEN_LEN(elsewhere)) || reply->status == 301 ||
         (reply->status == 400 && !*s3.code)) &&
        new_region(op, region)) {
        *cause = CAUSE_REGION;
        return PEN_VERDICT_AGAIN;
    }
    if (reply->status == 400 && is_one_of(s3.code, again, PEN_LEN(again)))
        v = PEN_VERDICT_RETRY;
    return v;
}

static PenVerdict verdict_of(PenRemoteOp *op, const PenHttpReply *reply, unsigned *cause,
                             PenError *err)
{
    if (reply->failure == PEN_HTTP_OK && reply->status >= 200 && reply->status < 300)
        return take(op, reply, err);
    if (reply->failure == PEN_HTTP_OK && pen__remote_is_s3(op->r))
        return refuse(op, reply, cause, err);
    PenVerdict v = pen__policy_classify(op->title, reply, err);
    /* A server that is never silent may be wrong for ever. */
    int contradicts = reply->failure == PEN_HTTP_GARBLED || reply->failure == PEN_HTTP_TOO_LONG ||
                      reply->failure == PEN_HTTP_ENCODED;
    if (v == PEN_VERDICT_RETRY && contradicts)
        return wrong(op, err, err->status);
    /* An address that has never answered is more likely mistyped than away: some seconds of trying,
     * not the minutes that a running job waits. */
    int unreached = !op->r->shared->reached &&
                    (reply->failure == PEN_HTTP_RESOLVE || reply->failure == PEN_HTTP_CONNECT);
    if (v == PEN_VERDICT_RETRY && unreached && ++op->unreached >= MOST_UNREACHED)
        return PEN_VERDICT_FAIL;
    return v;
}

/* What servers send goes into messages only in small parts, but any of them may be what it was
 * sent: the token, the key's name, the signature. */
static void hide_secrets(const PenRemoteOp *op, PenError *err)
{
    const char *text = (const char *)op->sign.authorization.data;
    const char *signature = text ? strstr(text, "Signature=") : NULL;
    pen__credentials_hide(op->secret, err->message);
    if (signature)
        pen__text_hide(signature + strlen("Signature="), err->message);
}

PenVerdict pen__remote_classify(void *ctx, const PenHttpReply *reply, unsigned *cause,
                                PenError *err)
{
    PenRemoteOp *op = ctx;
    PenVerdict v = verdict_of(op, reply, cause, err);
    if (v != PEN_VERDICT_DONE && op->secret)
        hide_secrets(op, err);
    return v;
}
