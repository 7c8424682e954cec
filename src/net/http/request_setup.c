/* SPDX-License-Identifier: Apache-2.0 */
/* Everything curl is told about one request. */
#include "net/http/engine_impl.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include <penstock/version.h>

#include "base/attr.h"
#include "base/bytes.h"
#include "base/error.h"

#define WHERE "net/engine"

/* What one read from a socket brings at most, and one write takes. curl holds a buffer of this size
 * for every transfer under way, so small answers get small ones. */
#define BUFFER_MOST (256 * 1024)
#define BUFFER_LEAST (16 * 1024)

/* Names stay known for so long. A second request for a slow one asks anew: to other machines. */
#define DNS_SECONDS 30L

static bool is_token(const char *name)
{
    for (const char *p = name; *p; p++) {
        if (*p <= 0x20 || *p >= 0x7f || *p == ':')
            return false;
    }
    return name[0] != 0;
}

static bool is_value(const char *value)
{
    for (const char *p = value; *p; p++) {
        if ((unsigned char)*p < 0x20 || *p == 0x7f)
            return false;
    }
    return true;
}

static int add_header(PenCurlTransfer *t, const char *line)
{
    struct curl_slist *more = curl_slist_append(t->headers, line);
    if (!more)
        return PEN_E_NO_MEMORY;
    t->headers = more;
    return PEN_OK;
}

static int add_pair(PenCurlTransfer *t, const PenHttpHeader *h, PenError *reterr)
{
    if (!is_token(h->name) || !is_value(h->value))
        return pen__fail(reterr, PEN_E_INVALID, WHERE,
                         "request header: a control character or an empty name");
    size_t name = strlen(h->name), value = strlen(h->value), line_bytes;
    if (__builtin_add_overflow(name, value, &line_bytes) || !(line_bytes < SIZE_MAX - 3))
        return pen__fail(reterr, PEN_E_LIMIT, WHERE, "request header: too long");
    line_bytes += 3;
    char *line = pen__alloc(line_bytes);
    if (!line)
        return pen__fail_memory(reterr, WHERE, "a request's headers");
    /* A semicolon is how curl is told of a header without a value. */
    snprintf(line, line_bytes, value ? "%s: %s" : "%s;", h->name, h->value);
    int r = add_header(t, line);
    explicit_bzero(line, line_bytes); /* it may be a signature or a token */
    pen__free(line);
    return r < 0 ? pen__fail_memory(reterr, WHERE, "a request's headers") : r;
}

static int set_headers(PenCurlTransfer *t, PenError *reterr)
{
    for (size_t i = 0; i < t->request.n_headers; i++) {
        int r = add_pair(t, &t->request.headers[i], reterr);
        if (r < 0)
            return r;
    }
    /* curl would wait for a 100 before it sends a body, and adds a type to what it posts. */
    if (add_header(t, "Accept-Encoding: identity") < 0 || add_header(t, "Expect:") < 0)
        return pen__fail_memory(reterr, WHERE, "a request's headers");
    return PEN_OK;
}

static int set_url(PenCurlTransfer *t, PenError *reterr)
{
    const char *url = t->request.url;
    if (strncasecmp(url, "http://", 7) != 0 && strncasecmp(url, "https://", 8) != 0)
        return pen__fail(reterr, PEN_E_INVALID, WHERE, "URL: expected http:// or https://");
    t->url = curl_url();
    if (!t->url)
        return pen__fail_memory(reterr, WHERE, "a URL");
    /* The text is not shown: a query may be a credential. */
    CURLUcode code =
        curl_url_set(t->url, CURLUPART_URL, url, CURLU_PATH_AS_IS | CURLU_DISALLOW_USER);
    if (code == CURLUE_OUT_OF_MEMORY)
        return pen__fail_memory(reterr, WHERE, "a URL");
    if (code)
        return pen__fail(reterr, PEN_E_INVALID, WHERE, "URL: not valid: %s",
                         curl_url_strerror(code));
    return PEN_OK;
}

static int set_body_bytes(PenCurlTransfer *t, PenError *reterr)
{
    uint64_t sum = 0;
    for (int i = 0; i < t->request.n_body; i++) {
        if (pen__add_over(sum, t->request.body[i].iov_len, &sum) || sum > INT64_MAX)
            return pen__fail(reterr, PEN_E_LIMIT, WHERE, "request body: too long");
    }
    t->body_bytes = sum;
    return PEN_OK;
}

/* The options of all requests. Each either is taken or the transfer is not started: a curl that
 * does not know one of them would do something else than we promise. */
static CURLcode set_common(CURL *c, PenEngine *e)
{
    CURLcode bad = CURLE_OK;
#define SET(option, value) bad = bad ? bad : curl_easy_setopt(c, option, value)
    SET(CURLOPT_NOSIGNAL, 1L);
    SET(CURLOPT_QUICK_EXIT, 1L); /* does not wait for a name's thread when the transfer is over */
    SET(CURLOPT_PROTOCOLS_STR, "http,https");
    SET(CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    SET(CURLOPT_HTTP09_ALLOWED, 0L);
    SET(CURLOPT_FOLLOWLOCATION, 0L); /* a redirect could carry a signature elsewhere */
    SET(CURLOPT_NETRC, (long)CURL_NETRC_IGNORED);
    SET(CURLOPT_HTTP_CONTENT_DECODING, 0L);
    SET(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
    SET(CURLOPT_USERAGENT, "penstock/" PEN_VERSION);
    SET(CURLOPT_OPENSOCKETFUNCTION, pen__socket_open);
    SET(CURLOPT_OPENSOCKETDATA, e);
    SET(CURLOPT_CLOSESOCKETFUNCTION, pen__socket_close);
    SET(CURLOPT_CLOSESOCKETDATA, e);
    SET(CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    SET(CURLOPT_SSL_VERIFYPEER, 1L);
    SET(CURLOPT_SSL_VERIFYHOST, 2L);
    SET(CURLOPT_PROXY_SSL_VERIFYPEER, 1L);
    SET(CURLOPT_PROXY_SSL_VERIFYHOST, 2L);
    /* Also when there is none: what curl was built with is of another machine. */
    SET(CURLOPT_CAINFO, e->ca.file[0] ? e->ca.file : NULL);
    SET(CURLOPT_CAPATH, e->ca.dir[0] ? e->ca.dir : NULL);
    SET(CURLOPT_PROXY_CAINFO, e->ca.file[0] ? e->ca.file : NULL);
    SET(CURLOPT_PROXY_CAPATH, e->ca.dir[0] ? e->ca.dir : NULL);
    SET(CURLOPT_NOPROXY, e->proxy.except);
#undef SET
    return bad;
}

static long buffer_for(uint64_t bytes)
{
    return (long)PEN_MAX(BUFFER_LEAST, PEN_MIN(bytes, BUFFER_MOST));
}

static CURLcode set_one(CURL *c, PenCurlTransfer *t)
{
    const PenHttpRequest *q = &t->request;
    CURLcode bad = CURLE_OK;
#define SET(option, value) bad = bad ? bad : curl_easy_setopt(c, option, value)
    SET(CURLOPT_PRIVATE, t);
    SET(CURLOPT_ERRORBUFFER, t->why);
    SET(CURLOPT_CURLU, t->url);
    SET(CURLOPT_HTTPHEADER, t->headers);
    SET(CURLOPT_PROXY,
        strncasecmp(q->url, "https:", 6) ? t->engine->proxy.http : t->engine->proxy.https);
    SET(CURLOPT_FRESH_CONNECT, (long)q->fresh);
    SET(CURLOPT_DNS_CACHE_TIMEOUT, q->fresh ? 0L : DNS_SECONDS);
    /* Ours holds too; curl's is what makes it go on to the next address in time. */
    SET(CURLOPT_CONNECTTIMEOUT_MS, (long)PEN_MIN(q->limits.connect_ms, INT32_MAX));
    SET(CURLOPT_BUFFERSIZE, buffer_for(q->into_bytes));
    SET(CURLOPT_HEADERFUNCTION, pen__flow_header);
    SET(CURLOPT_HEADERDATA, t);
    SET(CURLOPT_WRITEFUNCTION, pen__flow_write);
    SET(CURLOPT_WRITEDATA, t);
    SET(CURLOPT_PREREQFUNCTION, pen__flow_connected);
    SET(CURLOPT_PREREQDATA, t);
    if (strcmp(q->method, "PUT") == 0 || strcmp(q->method, "POST") == 0) {
        SET(CURLOPT_UPLOAD, 1L);
        SET(CURLOPT_INFILESIZE_LARGE, (curl_off_t)t->body_bytes);
        SET(CURLOPT_UPLOAD_BUFFERSIZE, buffer_for(t->body_bytes));
        SET(CURLOPT_READFUNCTION, pen__flow_read);
        SET(CURLOPT_READDATA, t);
        SET(CURLOPT_SEEKFUNCTION, pen__flow_seek);
        SET(CURLOPT_SEEKDATA, t);
    }
    if (strcmp(q->method, "HEAD") == 0)
        SET(CURLOPT_NOBODY, 1L);
    else if (strcmp(q->method, "GET") != 0)
        SET(CURLOPT_CUSTOMREQUEST, q->method);
#undef SET
    return bad;
}

static int check_request(const PenHttpRequest *q, PenError *reterr)
{
    static const char *const METHODS[] = {"GET", "HEAD", "PUT", "POST", "DELETE"};
    const PenHttpLimits *l = &q->limits;
    if (!l->connect_ms || !l->first_byte_ms || !l->slow_ms || !l->deadline_ms)
        return pen__fail(reterr, PEN_E_INVALID, WHERE,
                         "request: expected all time limits to be set");
    for (size_t i = 0; i < PEN_LEN(METHODS); i++) {
        if (strcmp(q->method, METHODS[i]) == 0)
            return PEN_OK;
    }
    return pen__fail(reterr, PEN_E_INVALID, WHERE, "request: unknown method");
}

int pen__transfer_setup(PenCurlTransfer *t, PenError *reterr)
{
    int r = check_request(&t->request, reterr);
    if (r < 0 || (r = set_body_bytes(t, reterr)) < 0 || (r = set_url(t, reterr)) < 0 ||
        (r = set_headers(t, reterr)) < 0)
        return r;
    t->easy = curl_easy_init();
    if (!t->easy)
        return pen__fail_memory(reterr, WHERE, "a transfer");
    CURLcode code = set_common(t->easy, t->engine);
    if (!code)
        code = set_one(t->easy, t);
    if (code == CURLE_OUT_OF_MEMORY)
        return pen__fail_memory(reterr, WHERE, "a transfer");
    if (code)
        return pen__fail(reterr, PEN_E_UNSUPPORTED, WHERE, "cannot configure libcurl %s: %s",
                         curl_version_info(CURLVERSION_NOW)->version, curl_easy_strerror(code));
    return PEN_OK;
}
