/* SPDX-License-Identifier: Apache-2.0 */
/* What curl calls while a transfer goes on. A refusal is noted in the reply and ends it. */
#include "net/http/engine_impl.h"

#include <stdio.h>
#include <string.h>

#include "base/attr.h"
#include "base/iov.h"
#include "base/sys.h"

static size_t refuse(PenCurlTransfer *t, PenHttpFailure failure, const char *why)
{
    t->reply.failure = failure;
    snprintf(t->reply.detail, sizeof t->reply.detail, "%s", why);
    return 0; /* which curl takes as an error, for no call brings 0 bytes */
}

static bool is_success(const PenCurlTransfer *t)
{
    return t->reply.status >= 200 && t->reply.status <= 299;
}

static bool has_body(const PenCurlTransfer *t)
{
    return strcmp(t->request.method, "HEAD") != 0;
}

size_t pen__flow_header(char *line, size_t one, size_t bytes, void *ctx)
{
    PenCurlTransfer *t = ctx;
    size_t n = one * bytes;
    int r = pen__head_line(&t->head, line, n, pen__sys->unix_ns() / 1000000000u, &t->reply);
    if (r < 0)
        return 0;
    if (!t->reply.first_byte_ns)
        t->reply.first_byte_ns = pen__sys->now_ns() - t->start_ns;
    if (r == 0)
        return n;
    const PenHttpReply *reply = &t->reply;
    if (is_success(t) && has_body(t) && reply->content_length != PEN_HTTP_NONE &&
        reply->content_length > t->request.into_bytes)
        return refuse(t, PEN_HTTP_TOO_LONG, "content-length is larger than requested");
    pen__limits_phase(t, PEN_PHASE_BODY);
    return n;
}

static size_t take_error(PenCurlTransfer *t, const char *data, size_t n)
{
    size_t part = PEN_MIN(n, PEN_HTTP_ERROR_BYTES - t->error.bytes);
    if (t->head.encoded) /* no text to be read; the status is what counts */
        part = 0;
    if (pen__buf_add(&t->error, data, part) < 0)
        return refuse(t, PEN_HTTP_NO_MEMORY, "out of memory for the body of an error");
    t->is_cut = part < n;
    return part < n ? 0 : n;
}

size_t pen__flow_write(char *data, size_t one, size_t bytes, void *ctx)
{
    PenCurlTransfer *t = ctx;
    size_t n = one * bytes;
    if (!is_success(t))
        return take_error(t, data, n);
    if (n > t->request.into_bytes - t->reply.bytes)
        return refuse(t, PEN_HTTP_TOO_LONG, "received more bytes than requested");
    struct iovec whole;
    const struct iovec *v;
    int n_v = pen__http_into(&t->request, &whole, &v);
    pen__iov_put(v, n_v, t->reply.bytes, data, n);
    t->reply.bytes += n;
    if (!t->engine->crowded)
        pen__arrival_tell(t->request.arrival, t->reply.bytes);
    return n;
}

size_t pen__flow_read(char *buf, size_t one, size_t bytes, void *ctx)
{
    PenCurlTransfer *t = ctx;
    size_t most = one * bytes, n = 0;
    while (n < most && t->iov < t->request.n_body) {
        const struct iovec *v = &t->request.body[t->iov];
        size_t part = PEN_MIN(most - n, v->iov_len - t->iov_at);
        if (part)
            memcpy(buf + n, (const char *)v->iov_base + t->iov_at, part);
        n += part;
        t->iov_at += part;
        if (t->iov_at == v->iov_len) {
            t->iov++;
            t->iov_at = 0;
        }
    }
    t->body_at += n;
    return n;
}

/* curl sends a request again when a connection kept open turns out to be closed. */
int pen__flow_seek(void *ctx, curl_off_t offset, int origin)
{
    PenCurlTransfer *t = ctx;
    if (origin != SEEK_SET || offset < 0 || (uint64_t)offset > t->body_bytes)
        return CURL_SEEKFUNC_FAIL;
    t->body_at = (uint64_t)offset;
    size_t left = (size_t)offset;
    t->iov = 0;
    while (t->iov < t->request.n_body && left >= t->request.body[t->iov].iov_len)
        left -= t->request.body[t->iov++].iov_len;
    t->iov_at = left;
    return CURL_SEEKFUNC_OK;
}

/* Connected, or a connection taken that was used before; nothing has been sent on it yet. */
int pen__flow_connected(void *ctx, char *peer_ip, char *local_ip, int peer_port, int local_port)
{
    PenCurlTransfer *t = ctx;
    long connects = 0;
    pen__arrival_tell(t->request.arrival, 0);
    curl_easy_getinfo(t->easy, CURLINFO_NUM_CONNECTS, &connects);
    t->reply.reused = connects == 0;
    t->reply.connect_ns = pen__sys->now_ns() - t->start_ns;
    snprintf(t->reply.peer, sizeof t->reply.peer, strchr(peer_ip, ':') ? "[%s]:%d" : "%s:%d",
             peer_ip, peer_port);
    t->fd = pen__socket_find(t->engine, peer_ip, peer_port, local_ip, local_port);
    /* Something to read, before anything was asked: the answer to another request would be taken
     * for ours. (A close is curl's to notice; it asks again on a new connection.) */
    t->stale = t->reply.reused && pen__socket_has_bytes(t->fd);
    if (t->stale)
        return CURL_PREREQFUNC_ABORT;
    pen__head_clear(&t->head, &t->reply);
    t->reply.first_byte_ns = 0;
    pen__limits_phase(t, t->body_bytes ? PEN_PHASE_SEND : PEN_PHASE_WAIT);
    return CURL_PREREQFUNC_OK;
}
