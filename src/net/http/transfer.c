/* SPDX-License-Identifier: Apache-2.0 */
/* One transfer from start to reply. */
#include "net/http/engine_impl.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/attr.h"
#include "base/error.h"
#include "base/iov.h"
#include "base/sys.h"

#define WHERE "net/engine"

#define LEAST_PAUSE_NS 5000000ull /* from one look at all time limits to the next */

static void free_transfer(PenCurlTransfer *t)
{
    pen__list_remove(t);
    if (t->easy) {
        curl_multi_remove_handle(t->engine->multi, t->easy);
        curl_easy_cleanup(t->easy);
    }
    for (struct curl_slist *h = t->headers; h; h = h->next)
        explicit_bzero(h->data, strlen(h->data)); /* signatures and tokens are among them */
    curl_slist_free_all(t->headers);
    curl_url_cleanup(t->url);
    pen__buf_free(&t->error);
    pen__free(t);
}

static int add(PenCurlTransfer *t, PenError *reterr)
{
    CURLMcode code = curl_multi_add_handle(t->engine->multi, t->easy);
    if (code == CURLM_OUT_OF_MEMORY)
        return pen__fail_memory(reterr, WHERE, "a transfer");
    if (code)
        return pen__fail(reterr, PEN_E_IO, WHERE, "libcurl cannot start a transfer: %s",
                         curl_multi_strerror(code));
    return PEN_OK;
}

/* No more than there is, whatever was said. */
static size_t capacity_of(const PenHttpRequest *q)
{
    struct iovec one;
    const struct iovec *v;
    int n = pen__http_into(q, &one, &v);
    return (size_t)PEN_MIN((uint64_t)q->into_bytes, pen__iov_bytes(v, n));
}

int pen__transfer_start(PenTransport *transport, const PenHttpRequest *request,
                        void (*done)(void *ctx, const PenHttpReply *reply), void *ctx,
                        PenTransfer **ret, PenError *reterr)
{
    PenEngine *e = pen__engine_of(transport);
    if (e->pid != getpid())
        return pen__fail(reterr, PEN_E_CLOSED, WHERE,
                         "connections: opened by process %d; open them again in process %d",
                         (int)e->pid, (int)getpid());
    PenCurlTransfer *t = pen__zalloc(sizeof *t);
    if (!t)
        return pen__fail_memory(reterr, WHERE, "a transfer");
    pen__list_init(t);
    t->base.transport = transport;
    t->engine = e;
    t->fd = CURL_SOCKET_BAD;
    t->request = *request;
    t->request.into_bytes = capacity_of(&t->request);
    t->done = done;
    t->ctx = ctx;
    t->start_ns = pen__sys->now_ns();
    pen__head_clear(&t->head, &t->reply);
    int r = pen__transfer_setup(t, reterr);
    if (r >= 0)
        r = add(t, reterr);
    if (r < 0) {
        free_transfer(t);
        return r;
    }
    pen__limits_phase(t, PEN_PHASE_CONNECT);
    pen__list_add(&e->transfers, t);
    *ret = &t->base;
    return PEN_OK;
}

void pen__transfer_cancel(PenTransfer *transfer)
{
    if (pen__engine_of(transfer->transport)->pid == getpid())
        free_transfer((PenCurlTransfer *)transfer);
}

static const struct {
    int code;
    PenHttpFailure failure;
} FAILURES[] = {
    {CURLE_OK, PEN_HTTP_OK},
    {CURLE_COULDNT_RESOLVE_HOST, PEN_HTTP_RESOLVE},
    {CURLE_COULDNT_RESOLVE_PROXY, PEN_HTTP_RESOLVE},
    {CURLE_COULDNT_CONNECT, PEN_HTTP_CONNECT},
    {CURLE_PROXY, PEN_HTTP_CONNECT},
    {CURLE_SSL_CONNECT_ERROR, PEN_HTTP_CONNECT},
    {CURLE_PEER_FAILED_VERIFICATION, PEN_HTTP_TLS},
    {CURLE_SSL_CACERT_BADFILE, PEN_HTTP_TLS},
    {CURLE_SSL_CERTPROBLEM, PEN_HTTP_TLS},
    {CURLE_SSL_ISSUER_ERROR, PEN_HTTP_TLS},
    {CURLE_SSL_INVALIDCERTSTATUS, PEN_HTTP_TLS},
    {CURLE_SSL_CIPHER, PEN_HTTP_TLS},
    {CURLE_OPERATION_TIMEDOUT, PEN_HTTP_T_DEADLINE},
    {CURLE_OUT_OF_MEMORY, PEN_HTTP_NO_MEMORY},
    {CURLE_UNSUPPORTED_PROTOCOL, PEN_HTTP_GARBLED}, /* HTTP/0.9, that is no headers at all */
    {CURLE_WEIRD_SERVER_REPLY, PEN_HTTP_GARBLED},
    {CURLE_FILESIZE_EXCEEDED, PEN_HTTP_GARBLED}, /* a Content-Length beyond 63 bits */
    {CURLE_BAD_CONTENT_ENCODING, PEN_HTTP_GARBLED},
    {100, PEN_HTTP_GARBLED}, /* CURLE_TOO_LARGE since 8.6: a header line */
};

static PenHttpFailure failure_of(const PenCurlTransfer *t, CURLcode code)
{
    if (t->phase == PEN_PHASE_CONNECT &&
        (code == CURLE_OPERATION_TIMEDOUT || t->reply.os_errno == ETIMEDOUT))
        return PEN_HTTP_T_CONNECT;
    /* curl has one code for a connection that broke and for chunks that are none. */
    if (code == CURLE_RECV_ERROR && strcasestr(t->why, "chunk"))
        return PEN_HTTP_GARBLED;
    /* A header line that grows too long is "out of memory" to curl before 8.6. */
    if (code == CURLE_OUT_OF_MEMORY && t->phase == PEN_PHASE_WAIT)
        return PEN_HTTP_GARBLED;
    for (size_t i = 0; i < PEN_LEN(FAILURES); i++) {
        if (FAILURES[i].code == (int)code)
            return FAILURES[i].failure;
    }
    return PEN_HTTP_BROKEN;
}

static void copy_printable(const char *from, char *ret, size_t bytes)
{
    size_t n = 0;
    for (; from[n] && n < bytes - 1; n++)
        ret[n] = from[n] >= 0x20 && from[n] < 0x7f ? from[n] : '?';
    ret[n] = 0;
}

/* Hands the reply over. It lives in the transfer, which is out of curl and of every list by then,
 * but is freed after: `done` may start, cancel or post whatever it likes. */
static void deliver(PenCurlTransfer *t)
{
    PenHttpReply *reply = &t->reply;
    reply->total_ns = pen__sys->now_ns() - t->start_ns;
    reply->error = t->error.bytes ? (const char *)t->error.data : "";
    reply->error_bytes = t->error.bytes;
    curl_multi_remove_handle(t->engine->multi, t->easy);
    curl_easy_cleanup(t->easy);
    t->easy = NULL;
    pen__list_remove(t);
    t->done(t->ctx, reply);
    free_transfer(t);
}

static void note_peer(PenCurlTransfer *t)
{
    char *ip = NULL;
    long port = 0;
    if (t->reply.peer[0] || curl_easy_getinfo(t->easy, CURLINFO_PRIMARY_IP, &ip) || !ip || !ip[0] ||
        curl_easy_getinfo(t->easy, CURLINFO_PRIMARY_PORT, &port))
        return;
    snprintf(t->reply.peer, sizeof t->reply.peer, strchr(ip, ':') ? "[%s]:%ld" : "%s:%ld", ip,
             port);
}

/* Once more, on a connection of its own: the one it got is closed, and nothing was sent on it. */
static bool add_again(PenCurlTransfer *t)
{
    t->stale = 0;
    t->fd = CURL_SOCKET_BAD;
    t->why[0] = 0;
    curl_multi_remove_handle(t->engine->multi, t->easy);
    if (curl_easy_setopt(t->easy, CURLOPT_FRESH_CONNECT, 1L) || add(t, NULL) < 0)
        return false;
    pen__limits_phase(t, PEN_PHASE_CONNECT);
    return true;
}

void pen__transfer_finish(PenCurlTransfer *t, CURLcode code)
{
    PenHttpReply *reply = &t->reply;
    if (code && t->stale && add_again(t))
        return;
    long os_errno = 0;
    curl_easy_getinfo(t->easy, CURLINFO_OS_ERRNO, &os_errno);
    note_peer(t);
    if (t->is_cut && reply->failure == PEN_HTTP_OK)
        code = CURLE_OK;
    if (code && reply->failure == PEN_HTTP_OK) {
        reply->os_errno = (int)os_errno;
        reply->failure = failure_of(t, code);
        copy_printable(t->why[0] ? t->why : curl_easy_strerror(code), reply->detail,
                       sizeof reply->detail);
    }
    /* What curl checks already, and must never be otherwise. */
    bool has_body =
        strcmp(t->request.method, "HEAD") != 0 && reply->status / 100 == 2 && reply->status != 204;
    if (reply->failure == PEN_HTTP_OK && has_body && reply->content_length != PEN_HTTP_NONE &&
        reply->bytes != reply->content_length) {
        reply->failure = PEN_HTTP_BROKEN;
        snprintf(reply->detail, sizeof reply->detail, "fewer bytes than content-length");
    }
    deliver(t);
}

static void expire(PenCurlTransfer *t, PenHttpFailure failure)
{
    t->reply.failure = failure;
    t->reply.os_errno = ETIMEDOUT;
    note_peer(t);
    bool early = failure == PEN_HTTP_T_DEADLINE && t->phase == PEN_PHASE_CONNECT;
    snprintf(t->reply.detail, sizeof t->reply.detail, "%s",
             early ? "connection timed out" : pen__http_failure_text(failure));
    deliver(t);
}

void pen__transfers_check_limits(PenEngine *e)
{
    uint64_t now = pen__sys->now_ns();
    if (now < e->due_ns)
        return;
    e->due_ns = UINT64_MAX;
    for (PenCurlTransfer *t = e->transfers.next, *next; t != &e->transfers; t = next) {
        next = t->next;
        PenHttpFailure failure = now >= t->due_ns ? pen__limits_over(t, now) : PEN_HTTP_OK;
        e->due_ns = PEN_MIN(e->due_ns, t->due_ns);
        if (failure == PEN_HTTP_OK)
            continue;
        t->reply.failure = failure;
        pen__list_remove(t);
        pen__list_add(&e->expired, t);
    }
    /* Looking at all of them is cheap, but not again for each of hundreds in turn. */
    e->due_ns = PEN_MAX(e->due_ns, now + LEAST_PAUSE_NS);
    /* Whoever is called may cancel any other, which takes it from this list too. */
    while (e->expired.next != &e->expired)
        expire(e->expired.next, e->expired.next->reply.failure);
}
