/* SPDX-License-Identifier: Apache-2.0 */
/* The transport against a server that misbehaves in every way a server can. */
#include "net/http/engine.h"

#include "engine_help.h"
#include "test.h"

static PenEngine *engine;

/* --- behaviours */

typedef struct Case {
    const char *port, *path;
    PenHttpFailure failure;
    int status;
    uint32_t connect_ms, first_byte_ms, slow_ms, deadline_ms; /* 0: long */
    const char *error;                                        /* is in the error's body */
    bool right;                                               /* the bytes are those of the file */
    const char *host;                                         /* instead of 127.0.0.1 */
    const char *method;
} Case;

#define ANY (-1) /* a slow machine may not have got it yet */
#define B(name) "/behave/" name "/1/data"
#define AT(at, what, as, number, ...)                                                              \
    {                                                                                              \
        .port = at, .path = what, .failure = as, .status = number, __VA_ARGS__                     \
    }

/* clang-format off */
static const Case CASES[] = {
    AT("http", "/data", PEN_HTTP_OK, 206, .right = true),
    AT("https", "/data", PEN_HTTP_OK, 206, .right = true),
    AT("http", "/data", PEN_HTTP_OK, 206, .method = "HEAD"),
    /* connecting */
    AT("refused", "/data", PEN_HTTP_CONNECT, 0),
    AT("black_hole", "/data", PEN_HTTP_T_CONNECT, 0, .connect_ms = 300),
    AT("http", "/data", PEN_HTTP_RESOLVE, 0, .host = "none.test"),
    AT("http", "/data", PEN_HTTP_OK, 206, .host = "slow.test", .right = true),
    AT("http", "/data", PEN_HTTP_OK, 206, .host = "dead.test", .right = true),
    AT("http", "/data", PEN_HTTP_T_CONNECT, 0, .host = "hang.test", .connect_ms = 300),
    AT("http", "/data", PEN_HTTP_T_DEADLINE, 0, .host = "hang.test", .deadline_ms = 300),
    AT("tls_stall", "/data", PEN_HTTP_T_CONNECT, 0, .connect_ms = 300),
    AT("tls_wrong_host", "/data", PEN_HTTP_TLS, 0),
    AT("tls_expired", "/data", PEN_HTTP_TLS, 0),
    AT("tls_untrusted", "/data", PEN_HTTP_TLS, 0),
    AT("https", B("tls_alert"), PEN_HTTP_BROKEN, 206),
    AT("https", B("tls_garbage"), PEN_HTTP_BROKEN, 206),
    /* headers */
    AT("http", B("headers_none_close"), PEN_HTTP_BROKEN, 0),
    AT("http", B("headers_none_stall"), PEN_HTTP_T_FIRST_BYTE, 0, .first_byte_ms = 300),
    AT("http", B("headers_none_stall"), PEN_HTTP_T_DEADLINE, 0, .deadline_ms = 300),
    AT("http", B("headers_drip"), PEN_HTTP_T_FIRST_BYTE, 0, .first_byte_ms = 500),
    AT("http", B("headers_huge"), PEN_HTTP_GARBLED, 206),
    AT("http", B("headers_line_endless"), PEN_HTTP_GARBLED, 206),
    AT("http", B("headers_many"), PEN_HTTP_GARBLED, 206),
    AT("http", B("headers_endless"), PEN_HTTP_GARBLED, 206),
    AT("http", B("headers_folded"), PEN_HTTP_GARBLED, 206),
    AT("http", B("headers_absent"), PEN_HTTP_GARBLED, 0),
    AT("http", B("status_line_bad"), PEN_HTTP_GARBLED, 0),
    AT("http", B("status_line_number"), PEN_HTTP_GARBLED, 0),
    AT("http", B("stray_100"), PEN_HTTP_OK, 206, .right = true),
    AT("http", B("endless_100"), PEN_HTTP_GARBLED, 100),
    AT("http", B("status_101"), PEN_HTTP_GARBLED, 101),
    AT("http", B("chunked_right"), PEN_HTTP_OK, 206, .right = true),
    AT("http", B("chunk_bad"), PEN_HTTP_GARBLED, 206),
    AT("http", B("chunk_huge"), PEN_HTTP_GARBLED, 206),
    AT("http", B("chunk_truncated"), PEN_HTTP_BROKEN, 206),
    AT("http", B("chunk_trailers_endless"), PEN_HTTP_GARBLED, 206),
    AT("http", B("length_and_chunked"), PEN_HTTP_GARBLED, 206),
    AT("http", B("length_2_63"), PEN_HTTP_GARBLED, 206),
    AT("http", B("length_negative"), PEN_HTTP_GARBLED, 206),
    AT("http", B("length_twice"), PEN_HTTP_GARBLED, 206),
    AT("http", B("length_absent"), PEN_HTTP_OK, 206, .right = true),
    /* status */
    AT("http", B("status_500"), PEN_HTTP_OK, 500, .error = "<Code>InternalError</Code>"),
    AT("http", B("status_502"), PEN_HTTP_OK, 502),
    AT("http", B("status_503"), PEN_HTTP_OK, 503, .error = "SlowDown"),
    AT("http", B("status_503_hour"), PEN_HTTP_OK, 503, .error = "SlowDown"),
    AT("http", B("status_429"), PEN_HTTP_OK, 429, .error = "TooMany"),
    AT("http", B("status_400_timeout"), PEN_HTTP_OK, 400, .error = "RequestTimeout"),
    AT("http", B("status_400_expired"), PEN_HTTP_OK, 400, .error = "ExpiredToken"),
    AT("http", B("status_403"), PEN_HTTP_OK, 403, .error = "AccessDenied"),
    AT("http", B("status_403_skewed"), PEN_HTTP_OK, 403, .error = "RequestTimeTooSkewed"),
    AT("http", B("status_404"), PEN_HTTP_OK, 404, .error = "NoSuchKey"),
    AT("http", B("status_412"), PEN_HTTP_OK, 412),
    AT("http", B("status_416"), PEN_HTTP_OK, 416),
    AT("http", B("status_301_region"), PEN_HTTP_OK, 301),
    AT("http", B("status_307_host"), PEN_HTTP_OK, 307),
    AT("http", B("status_200_error"), PEN_HTTP_OK, 200),
    AT("http", B("status_500_endless"), PEN_HTTP_OK, 500, .error = "<Error>no</Error>"),
    /* bodies */
    AT("http", B("body_rst"), PEN_HTTP_BROKEN, 206),
    AT("http", B("body_fin"), PEN_HTTP_BROKEN, 206),
    AT("https", B("body_fin"), PEN_HTTP_BROKEN, 206),
    AT("http", B("body_stall"), PEN_HTTP_T_SLOW, 206, .slow_ms = 400),
    AT("http", B("body_drip"), PEN_HTTP_T_SLOW, 206, .slow_ms = 400),
    AT("http", B("slow_right"), PEN_HTTP_OK, 206, .slow_ms = 2000, .right = true),
    AT("http", B("body_stall"), PEN_HTTP_T_DEADLINE, ANY, .deadline_ms = 1000),
    AT("http", B("slow_start"), PEN_HTTP_OK, 206, .right = true),
    AT("http", B("body_flip"), PEN_HTTP_OK, 206),
    AT("http", B("range_ignored"), PEN_HTTP_TOO_LONG, 200),
    AT("http", B("body_longer_than_asked"), PEN_HTTP_TOO_LONG, 200),
    AT("http", B("body_endless"), PEN_HTTP_TOO_LONG, 206),
    AT("http", B("range_other"), PEN_HTTP_OK, 206),
    AT("http", B("range_short"), PEN_HTTP_OK, 206),
    AT("http", B("range_contradicts"), PEN_HTTP_GARBLED, 206),
    AT("http", B("range_garbled"), PEN_HTTP_GARBLED, 206),
    AT("http", B("body_long"), PEN_HTTP_OK, 206, .right = true),
    AT("http", B("gzip_encoded"), PEN_HTTP_ENCODED, 200),
    AT("http", B("encoding_aws_chunked"), PEN_HTTP_OK, 206, .right = true),
    AT("http", B("etag_changed"), PEN_HTTP_OK, 206, .right = true),
};
/* clang-format on */

static void case_init(Job *j, const Case *c)
{
    job_init(j, engine, c->port, c->path);
    if (c->host)
        snprintf(j->url, sizeof j->url, "http://%s:%d%s", c->host, help_port(c->port), c->path);
    if (c->method)
        j->request.method = c->method;
    PenHttpLimits *l = &j->request.limits;
    l->connect_ms = c->connect_ms ? c->connect_ms : l->connect_ms;
    l->first_byte_ms = c->first_byte_ms ? c->first_byte_ms : l->first_byte_ms;
    l->deadline_ms = c->deadline_ms ? c->deadline_ms : l->deadline_ms;
    l->slow_ms = c->slow_ms ? c->slow_ms : l->slow_ms;
    l->slow_bytes = c->slow_ms ? 1000 : 1;
}

static void case_check(const Job *j, const Case *c)
{
    const PenHttpReply *reply = &j->reply;
    uint64_t limit = c->connect_ms + c->first_byte_ms + c->slow_ms + c->deadline_ms;
    bool timed = c->failure >= PEN_HTTP_T_CONNECT && c->failure <= PEN_HTTP_T_DEADLINE;
    if (reply->failure != c->failure || (c->status != ANY && reply->status != c->status))
        printf("%s %s: status %d, %s: %s\n", c->port, c->path, reply->status,
               pen__http_failure_text(reply->failure), reply->detail);
    CHECK_INT(reply->failure, c->failure);
    CHECK(c->status == ANY || reply->status == c->status);
    CHECK(!c->error || strstr(j->error, c->error));
    if (c->right) {
        CHECK_INT(reply->bytes, BYTES);
        CHECK_MEM(j->into, bad_server.data + FIRST, BYTES);
        CHECK_INT(reply->range_first, FIRST);
        CHECK_INT(reply->range_last, FIRST + BYTES - 1);
        CHECK_INT(reply->range_total, FILE_BYTES);
    }
    CHECK(reply->failure == PEN_HTTP_OK || reply->detail[0]);
    CHECK(!timed || reply->total_ns >= limit * 1000000u);
    CHECK(!timed || reply->total_ns <= limit * 1250000u + 2 * SECOND);
}

static size_t find_case(const char *path)
{
    size_t i = 0;
    while (i < PEN_LEN(CASES) && !strstr(CASES[i].path, path))
        i++;
    return i;
}

/* What of the headers is handed on. */
static void check_headers(const Job *jobs)
{
    const PenHttpReply *hour = &jobs[find_case("status_503_hour")].reply;
    CHECK_INT(hour->retry_after_ms, 3600000);
    CHECK_STR(hour->request_id, "BAD0123456789");
    CHECK_STR(hour->content_type, "application/xml");
    CHECK_STR(jobs[find_case("301_region")].reply.region, "eu-north-1");
    CHECK_STR(jobs[find_case("etag_changed")].reply.etag, "\"changed\"");
    CHECK_INT(jobs[find_case("status_416")].reply.range_total, 1000);
    CHECK_INT(jobs[find_case("status_404")].reply.retry_after_ms, PEN_HTTP_NONE);
    CHECK_INT(jobs[find_case("range_other")].reply.range_first, FIRST + 16);
    CHECK_INT(jobs[find_case("range_short")].reply.bytes, BYTES - 10);
    CHECK_INT(jobs[find_case("range_ignored")].reply.bytes, 0); /* the length told it */
    uint64_t now = pen__sys->unix_ns() / SECOND;
    uint64_t ahead = jobs[find_case("403_skewed")].reply.date_s;
    CHECK(ahead > now + 86000 && ahead < now + 86800);
    CHECK(strncmp(jobs[0].reply.peer, "127.0.0.1:", 10) == 0);
    CHECK(jobs[0].reply.connect_ns <= jobs[0].reply.first_byte_ns);
    CHECK(jobs[0].reply.first_byte_ns <= jobs[0].reply.total_ns);
}

/* Every one of them at the same time. */
TEST(behaviours)
{
    static Job jobs[PEN_LEN(CASES)];
    for (size_t i = 0; i < PEN_LEN(CASES); i++)
        case_init(&jobs[i], &CASES[i]);
    CHECK(jobs_run(jobs, PEN_LEN(CASES), 20000));
    for (size_t i = 0; i < PEN_LEN(CASES); i++)
        case_check(&jobs[i], &CASES[i]);
    CHECK_OK_SO_FAR();
    check_headers(jobs);
    for (size_t i = 0; i < PEN_LEN(CASES); i++)
        job_free(&jobs[i]);
}

/* A redirect is told, not followed. */
TEST(redirects_are_not_followed)
{
    CHECK_INT(stat_of(engine, "trapped"), 0);
}

TEST(connections_are_used_again)
{
    char nothing[16];
    engine_ask(engine, "POST", "/_reset", nothing, sizeof nothing);
    for (int i = 0; i < 20; i++) {
        Job j;
        job_init(&j, engine, "http", "/data");
        j.request.fresh = i >= 15;
        CHECK(jobs_run(&j, 1, 10000));
        CHECK_INT(j.reply.failure, PEN_HTTP_OK);
        CHECK_INT(j.reply.reused, i < 15);
        CHECK_MEM(j.into, bad_server.data + FIRST, BYTES);
        job_free(&j);
    }
    CHECK_INT(stat_of(engine, "connections"), 5);
    CHECK_INT(stat_of(engine, "requests"), 20);
}

/* Never over the connection of the request before, and without anybody having to ask again. */
static void check_reuse(const char *path, bool upload, bool left_over)
{
    PenEngine *e = NULL;
    PenEngineSettings settings = {.connections = 1};
    CHECK_INT(pen__engine_new(&settings, &e, NULL), PEN_OK);
    struct iovec body[3] = {{bad_server.data, 1000}, {NULL, 0}, {bad_server.data + 1000, 70000}};
    for (int i = 0; i < 3; i++) {
        Job j;
        job_init(&j, e, "http", path);
        if (upload) {
            j.request.method = "PUT";
            j.request.body = body;
            j.request.n_body = 3;
        }
        CHECK(jobs_run(&j, 1, 10000));
        CHECK_INT(j.reply.failure, PEN_HTTP_OK);
        CHECK_INT(j.reply.reused, 0);
        CHECK(upload || memcmp(j.into, bad_server.data + FIRST, BYTES) == 0);
        for (int k = 0; left_over && k < 300 && stat_of(engine, "left_over") <= i; k++)
            nap(10);
        job_free(&j);
    }
    pen__engine_free(&e);
}

TEST(connection_closed_when_used_again)
{
    check_reuse("/behave/close_on_reuse/1/data", false, false);
    check_reuse("/behave/reset_on_reuse/1/data", false, false);
    check_reuse("/behave/close_on_reuse/1/up", true, false);
}

TEST(answer_left_over)
{
    check_reuse("/behave/left_over/1/data", false, true);
}

static void read_file(const char *name, uint8_t *ret, size_t bytes, size_t *ret_bytes)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", bad_server.root, name);
    FILE *f = fopen(path, "rb");
    CHECK(f != NULL);
    *ret_bytes = fread(ret, 1, bytes, f);
    fclose(f);
}

TEST(uploads)
{
    static uint8_t back[FILE_BYTES + 1];
    struct iovec body[3] = {
        {bad_server.data, 1}, {bad_server.data + 1, 499999}, {bad_server.data + 500000, 500000}};
    for (int n = 0; n < 4; n += 3) { /* nothing, and all */
        Job j;
        size_t bytes = 0, expected = n ? FILE_BYTES : 0;
        job_init(&j, engine, n ? "https" : "http", "/up");
        j.request.method = "PUT";
        j.request.n_headers = 0;
        j.request.body = body;
        j.request.n_body = n;
        CHECK(jobs_run(&j, 1, 10000));
        CHECK_INT(j.reply.failure, PEN_HTTP_OK);
        CHECK_INT(j.reply.status, 200);
        read_file("up", back, sizeof back, &bytes);
        CHECK_OK_SO_FAR();
        CHECK_INT(bytes, expected);
        CHECK_MEM(back, bad_server.data, expected);
        job_free(&j);
    }
}

TEST(uploads_that_are_not_taken)
{
    const size_t bytes = 32u << 20;
    struct iovec body = {calloc(1, bytes), bytes};
    static const char *const PATHS[] = {"/behave/upload_stall/1/up", "/behave/upload_refused/1/up",
                                        "/behave/headers_none_stall/1/up",
                                        "/behave/upload_stall/1/up"};
    Job jobs[PEN_LEN(PATHS)];
    /* The last fits into the kernel's buffers: it has left us, but nobody has taken it. */
    struct iovec little = {body.iov_base, 300000};
    for (size_t i = 0; i < PEN_LEN(PATHS); i++) {
        Job *j = &jobs[i];
        job_init(j, engine, "http", PATHS[i]);
        j->request.method = "PUT";
        j->request.body = i < 3 ? &body : &little;
        j->request.n_body = 1;
        j->request.limits.slow_bytes = 100;
        j->request.limits.slow_ms = 400;
        j->request.limits.first_byte_ms = 300;
    }
    CHECK(jobs_run(jobs, PEN_LEN(PATHS), 10000));
    CHECK_INT(jobs[0].reply.failure, PEN_HTTP_T_SLOW);
    /* The answer came, or the connection was gone before it could be read. */
    CHECK(jobs[1].reply.status == 403 || jobs[1].reply.failure == PEN_HTTP_BROKEN);
    CHECK_INT(jobs[2].reply.failure, PEN_HTTP_T_FIRST_BYTE);
    CHECK_INT(jobs[3].reply.failure, PEN_HTTP_T_SLOW);
    for (size_t i = 0; i < PEN_LEN(PATHS); i++)
        job_free(&jobs[i]);
    free(body.iov_base);
}

/* Method, target and headers go out as they stand; what is the transport's own is there once. */
TEST(what_is_sent)
{
    Job j;
    job_init(&j, engine, "http", "/_echo");
    size_t n = strlen(j.url);
    snprintf(j.url + n, sizeof j.url - n, "%s", "?b=%2fx%2F&a=%20/../~&uploads=");
    j.headers[0] = (PenHttpHeader){"X-Empty", ""};
    j.headers[1] = (PenHttpHeader){"Authorization", "AWS4-HMAC-SHA256 x"};
    j.request.n_headers = 2;
    struct iovec body = {"hello", 5};
    j.request.method = "POST";
    j.request.body = &body;
    j.request.n_body = 1;
    CHECK(jobs_run(&j, 1, 10000));
    CHECK_INT(j.reply.status, 200);
    char text[4096];
    snprintf(text, sizeof text, "%.*s", (int)j.reply.bytes, (char *)j.into);
    CHECK(strstr(text, "POST /_echo?b=%2fx%2F&a=%20/../~&uploads= HTTP/1.1\r\n") == text);
    CHECK(strstr(text, "\r\nX-Empty:\r\n"));
    CHECK(strstr(text, "\r\nAuthorization: AWS4-HMAC-SHA256 x\r\n"));
    CHECK(strstr(text, "\r\nAccept-Encoding: identity\r\n"));
    CHECK(strstr(text, "\r\nContent-Length: 5\r\n"));
    CHECK(strstr(text, "\r\n\r\nhello"));
    CHECK(!strstr(text, "Expect:") && !strstr(text, "Transfer-Encoding"));
    CHECK(!strstr(text, "Cookie:") && !strstr(text, "Content-Type:"));
    job_free(&j);
}

TEST(requests_that_are_refused)
{
    static const char *const URLS[] = {"ftp://127.0.0.1/x", "file:///etc/passwd", "127.0.0.1/x",
                                       "http://user:pass@127.0.0.1/x", ""};
    for (size_t i = 0; i < PEN_LEN(URLS) + 4; i++) {
        Job j;
        job_init(&j, engine, "http", "/data");
        size_t k = i - PEN_LEN(URLS);
        if (i < PEN_LEN(URLS))
            j.request.url = URLS[i];
        else if (k == 0)
            j.request.method = "TRACE";
        else if (k == 1)
            j.request.limits.deadline_ms = 0;
        else
            j.headers[0] =
                k == 2 ? (PenHttpHeader){"X-A", "a\r\nX-B: b"} : (PenHttpHeader){"X A", "a"};
        CHECK(jobs_run(&j, 1, 10000));
        if (j.started >= 0)
            printf("taken: %zu\n", i);
        CHECK_INT(j.started, PEN_E_INVALID);
        job_free(&j);
    }
}

TEST(an_answer_nobody_wants)
{
    Job j;
    job_init(&j, engine, "http", "/data");
    j.request.into = NULL;
    CHECK(jobs_run(&j, 1, 10000));
    CHECK_INT(j.reply.failure, PEN_HTTP_TOO_LONG);
    job_free(&j);
}

TEST(hundreds_at_once)
{
    enum { N = 300 };
    static Job jobs[N];
    for (size_t i = 0; i < N; i++) {
        job_init(&jobs[i], engine, "http", "/data");
        unsigned first = FIRST + (unsigned)i * 13;
        snprintf(jobs[i].range, sizeof jobs[i].range, "bytes=%u-%u", first, first + BYTES - 1);
    }
    CHECK(jobs_run(jobs, N, 30000));
    for (size_t i = 0; i < N; i++) {
        CHECK_INT(jobs[i].reply.failure, PEN_HTTP_OK);
        CHECK_INT(jobs[i].reply.range_first, FIRST + i * 13);
        CHECK(memcmp(jobs[i].into, bad_server.data + FIRST + i * 13, BYTES) == 0);
        job_free(&jobs[i]);
    }
}

TEST(certificates_that_are_named)
{
    PenEngine *e = NULL;
    PenError err = {0};
    PenEngineSettings settings = {.ca_file = "/nonexistent/ca.pem"};
    CHECK_INT(pen__engine_new(&settings, &e, &err), PEN_E_NOT_FOUND);
    CHECK(strstr(err.message, "/nonexistent/ca.pem"));
    settings.ca_file = NULL;
    setenv("SSL_CERT_FILE", bad_server.ca, 1);
    CHECK_INT(pen__engine_new(&settings, &e, &err), PEN_OK);
    Job j;
    job_init(&j, e, "https", "/data");
    CHECK(jobs_run(&j, 1, 10000));
    CHECK_INT(j.reply.failure, PEN_HTTP_OK);
    job_free(&j);
    pen__engine_free(&e);
    unsetenv("SSL_CERT_FILE"); /* the system's do not have ours */
    CHECK_INT(pen__engine_new(&settings, &e, &err), PEN_OK);
    job_init(&j, e, "https", "/data");
    CHECK(jobs_run(&j, 1, 10000));
    CHECK_INT(j.reply.failure, PEN_HTTP_TLS);
    job_free(&j);
    pen__engine_free(&e);
}

/* The scripted server stands in for a proxy: it sees the whole URL as the target. */
TEST(proxies)
{
    char proxy[64];
    snprintf(proxy, sizeof proxy, "http://127.0.0.1:%d", help_port("http"));
    setenv("http_proxy", proxy, 1);
    setenv("no_proxy", "other.test", 1);
    PenEngine *e = NULL;
    PenEngineSettings settings = {0};
    CHECK_INT(pen__engine_new(&settings, &e, NULL), PEN_OK);
    unsetenv("http_proxy"); /* read once */
    unsetenv("no_proxy");
    Job jobs[2];
    for (int i = 0; i < 2; i++) {
        job_init(&jobs[i], e, "http", "/data");
        snprintf(jobs[i].url, sizeof jobs[i].url, "http://%s:%d/data",
                 i ? "other.test" : "far.test", help_port("refused"));
    }
    CHECK(jobs_run(jobs, 2, 10000));
    CHECK_INT(jobs[0].reply.status, 404); /* the "proxy" answered */
    CHECK_INT(jobs[1].reply.failure, PEN_HTTP_CONNECT);
    job_free(&jobs[0]);
    job_free(&jobs[1]);
    pen__engine_free(&e);
}

int main(int argc, char **argv)
{
    TEST_START(argc, argv);
    int r = engine_begin(&engine);
    if (r)
        return r;
    RUN(behaviours);
    RUN(redirects_are_not_followed);
    RUN(connections_are_used_again);
    RUN(connection_closed_when_used_again);
    RUN(answer_left_over);
    RUN(uploads);
    RUN(uploads_that_are_not_taken);
    RUN(what_is_sent);
    RUN(requests_that_are_refused);
    RUN(an_answer_nobody_wants);
    RUN(hundreds_at_once);
    RUN(certificates_that_are_named);
    RUN(proxies);
    pen__engine_free(&engine);
    bad_server_stop();
    return TEST_END();
}
