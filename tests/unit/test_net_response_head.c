/* SPDX-License-Identifier: Apache-2.0 */
#include "net/http/response_head.h"

#include <stdlib.h>

#include "net/http/date.h"
#include "test.h"

#include "base/attr.h"

#define NOW 1000000000u /* 9 September 2001, 01:46:40 */

static PenHead head;
static PenHttpReply reply;

/* The last line's result; lines end in \n, with \r before it. */
static int take(const char *text)
{
    int r = 0;
    pen__head_clear(&head, &reply);
    reply.detail[0] = 0;
    while (*text && r >= 0) {
        const char *end = strchr(text, '\n');
        size_t n = (size_t)(end - text) + 1;
        char *line = malloc(n); /* exactly as long: what is read beyond it is found */
        memcpy(line, text, n);
        r = pen__head_line(&head, line, n, NOW, &reply);
        free(line);
        text += n;
    }
    return r;
}

/* One header of a 206 or 503. */
static int take_one(int status, const char *header)
{
    char text[1024];
    snprintf(text, sizeof text, "HTTP/1.1 %d X\r\n%s\r\n\r\n", status, header);
    return take(text);
}

TEST(everything_known)
{
    CHECK_INT(take("HTTP/1.1 206 Partial Content\r\n"
                   "content-LENGTH:  100 \r\n"
                   "Content-Range: bytes 50-149/1000\r\n"
                   "ETag: \"abc-2\"\r\n"
                   "x-amz-bucket-region: eu-north-1\r\n"
                   "x-amz-request-id: R\x01Q\r\n"
                   "Content-Type: text/plain\r\n"
                   "Date: Sun, 09 Sep 2001 01:46:40 GMT\r\n"
                   "Something: else\r\n"
                   "\r\n"),
              1);
    CHECK_INT(reply.failure, PEN_HTTP_OK);
    CHECK_INT(reply.status, 206);
    CHECK_INT(reply.content_length, 100);
    CHECK_INT(reply.range_first, 50);
    CHECK_INT(reply.range_last, 149);
    CHECK_INT(reply.range_total, 1000);
    CHECK_STR(reply.etag, "\"abc-2\"");
    CHECK_STR(reply.region, "eu-north-1");
    CHECK_STR(reply.request_id, "R?Q");
    CHECK_STR(reply.content_type, "text/plain");
    CHECK_INT(reply.date_s, NOW);
    CHECK_INT(reply.retry_after_ms, PEN_HTTP_NONE);
}

TEST(nothing_known)
{
    CHECK_INT(take("HTTP/1.0 200\r\n\r\n"), 1);
    CHECK_INT(reply.content_length, PEN_HTTP_NONE);
    CHECK_INT(reply.range_first, PEN_HTTP_NONE);
    CHECK_INT(reply.range_total, PEN_HTTP_NONE);
    CHECK_INT(reply.date_s, PEN_HTTP_NONE);
    CHECK_STR(reply.etag, "");
}

TEST(status_lines)
{
    static const char *const BAD[] = {
        "HTTP/1.1\r\n",        "HTTP/1.1 20\r\n",     "HTTP/1.1 2x0 OK\r\n", "HTTP/1.1 2000 OK\r\n",
        "HTTP/1.1 -20 OK\r\n", "HTTP/1.1 099 OK\r\n", "HTTP/1.1 600 OK\r\n", "\r\n",
        "HTTP/1.1  200 OK\r\n"};
    for (size_t i = 0; i < PEN_LEN(BAD); i++) {
        CHECK_INT(take(BAD[i]), -1);
        CHECK_INT(reply.failure, PEN_HTTP_GARBLED);
        CHECK(reply.detail[0]);
    }
}

TEST(interim_answers)
{
    /* What a 103 said does not count for the answer. */
    CHECK_INT(take("HTTP/1.1 103 Early\r\nContent-Length: 7\r\nETag: \"x\"\r\n\r\n"), 0);
    CHECK_INT(head.complete, 0);
    CHECK_INT(take("HTTP/1.1 103 Early\r\nContent-Length: 7\r\nETag: \"x\"\r\n\r\n"
                   "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"),
              1);
    CHECK_INT(reply.content_length, PEN_HTTP_NONE);
    CHECK_STR(reply.etag, "");
    CHECK_INT(take("HTTP/1.1 101 Switching\r\n\r\n"), -1);
}

TEST(lengths)
{
    static const char *const BAD[] = {
        "Content-Length: -1",
        "Content-Length: +1",
        "Content-Length:",
        "Content-Length: 1 2",
        "Content-Length: 0x10",
        "Content-Length: 9223372036854775808",
        "Content-Length: 18446744073709551616",
        "Content-Length: 99999999999999999999999",
        "Content-Length: 5\r\nContent-Length: 6",
        "Content-Length: 5, 5",
        "Content-Length: 5\r\nTransfer-Encoding: chunked",
        "Transfer-Encoding: chunked\r\nContent-Length: 5",
    };
    for (size_t i = 0; i < PEN_LEN(BAD); i++) {
        CHECK_INT(take_one(200, BAD[i]), -1);
        CHECK_INT(reply.failure, PEN_HTTP_GARBLED);
        CHECK_INT(take_one(404, BAD[i]), -1);
    }
    CHECK_INT(take_one(200, "Content-Length: 9223372036854775807"), 1);
    CHECK_INT(reply.content_length, INT64_MAX);
    CHECK_INT(take_one(200, "Content-Length: 5\r\nContent-Length: 5"), 1);
}

TEST(ranges)
{
    static const char *const BAD[] = {"bytes 0-99",
                                      "bytes 5-4/100",
                                      "bytes 0-100/100",
                                      "bytes 0-/100",
                                      "bytes -5/100",
                                      "bytes 0-99/",
                                      "bytes  0-99/100",
                                      "bytes=0-99/100",
                                      "items 0-99/100",
                                      "bytes 0-99/1e3",
                                      "bytes 0-99 /100",
                                      "bytes */*",
                                      "bytes 0-18446744073709551615/*",
                                      "bytes",
                                      "",
                                      "bytes 0-9/100\r\nContent-Range: bytes 0-9/100"};
    char header[256];
    for (size_t i = 0; i < PEN_LEN(BAD); i++) {
        snprintf(header, sizeof header, "Content-Range: %s", BAD[i]);
        CHECK_INT(take_one(206, header), -1);
        CHECK_INT(reply.failure, PEN_HTTP_GARBLED);
    }
    CHECK_INT(take_one(206, "Content-Range: bytes 0-0/*"), 1);
    CHECK_INT(reply.range_last, 0);
    CHECK_INT(reply.range_total, PEN_HTTP_NONE);
    CHECK_INT(take_one(416, "Content-Range: bytes */1000"), 1);
    CHECK_INT(reply.range_total, 1000);
    CHECK_INT(reply.range_first, PEN_HTTP_NONE);
    CHECK_INT(take_one(206, "Content-Range: bytes 0-9/100\r\nContent-Length: 9"), -1);
}

TEST(encodings)
{
    CHECK_INT(take_one(200, "Content-Encoding: gzip"), -1);
    CHECK_INT(reply.failure, PEN_HTTP_ENCODED);
    CHECK_INT(take_one(200, "Transfer-Encoding: gzip, chunked"), -1);
    CHECK_INT(reply.failure, PEN_HTTP_ENCODED);
    CHECK_INT(take_one(200, "Content-Encoding: Identity"), 1);
    CHECK_INT(take_one(200, "Content-Encoding: aws-chunked"), 1);
    CHECK_INT(take_one(503, "Content-Encoding: gzip"), 1); /* the status is what counts */
}

/* RFC 9110, 5.6.7: one form to write, three to read. Not by libcurl, which may be built without. */
TEST(dates)
{
    static const struct {
        const char *text;
        uint64_t unix_s;
    } good[] = {
        {"Sun, 06 Nov 1994 08:49:37 GMT", 784111777},
        {"Sunday, 06-Nov-94 08:49:37 GMT", 784111777},
        {"Sun Nov  6 08:49:37 1994", 784111777},
        {"Sun Nov 16 08:49:37 1994", 784975777},
        {"Thu, 01 Jan 1970 00:00:00 GMT", 0},
        {"Thu, 29 Feb 2024 23:59:60 GMT", 1709251200},
        {"Friday, 31-Dec-69 23:59:59 GMT", 3155759999},
        {"Fri, 31 Dec 9999 23:59:59 GMT", 253402300799},
    };
    static const char *const bad[] = {"",
                                      " ",
                                      "GMT",
                                      "Sun",
                                      "Sun, 06 Nov 1994 08:49:37",
                                      "Sun, 06 Nov 1994 08:49:37 GMT ",
                                      "Sun, 06 Nov 1994 08:49:37 CET",
                                      "Sun, 06 Nov 1994 08:49 GMT",
                                      "06 Nov 1994 08:49:37 GMT",
                                      "Sun, 6 Nov 1994 08:49:37 GMT",
                                      "Sun, 31 Nov 1994 08:49:37 GMT",
                                      "Thu, 29 Feb 2023 00:00:00 GMT",
                                      "Sun, 06 Foo 1994 08:49:37 GMT",
                                      "Sun, 06 Nov 1994 24:00:00 GMT",
                                      "Sun, 06 Nov 1994 00:60:00 GMT",
                                      "Sun, 06 Nov 1994 00:00:61 GMT",
                                      "Wed, 31 Dec 1969 23:59:59 GMT",
                                      "Sun, 00 Nov 1994 08:49:37 GMT",
                                      "Sun, -6 Nov 1994 08:49:37 GMT",
                                      "Sun Nov  6 08:49:37 94",
                                      "Su, 06 Nov 1994 08:49:37 GMT",
                                      "1994-11-06T08:49:37Z",
                                      "784111777"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        uint64_t s = 1;
        CHECK_INT(pen__http_date(good[i].text, &s), 1);
        CHECK_INT(s, good[i].unix_s);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        uint64_t s = 1;
        if (pen__http_date(bad[i], &s) || s != 1)
            test__fail(__FILE__, __LINE__, "%s is taken for a date", bad[i]);
    }
}

/* Every prefix of a date, and each byte replaced, is read without going beyond its end. */
TEST(dates_cut_and_changed)
{
    static const char text[] = "Sun, 06 Nov 1994 08:49:37 GMT";
    for (size_t n = 0; n < sizeof text; n++)
        for (int c = 0; c < 256; c++) {
            char *copy = strndup(text, n); /* the sanitizer sees its end */
            uint64_t s;
            if (n)
                copy[n - 1] = (char)c;
            int good = pen__http_date(copy, &s);
            CHECK(!good || n == sizeof text - 1);
            free(copy);
        }
}

TEST(retry_after)
{
    CHECK_INT(take_one(503, "Retry-After: 120"), 1);
    CHECK_INT(reply.retry_after_ms, 120000);
    CHECK_INT(take_one(503, "Retry-After: 9999999999999"), 1);
    CHECK_INT(reply.retry_after_ms, UINT32_MAX * 1000ull);
    /* An hour and 40 seconds after our clock; 40 after the server's own. */
    CHECK_INT(take_one(503, "Retry-After: Sun, 09 Sep 2001 02:47:20 GMT"), 1);
    CHECK_INT(reply.retry_after_ms, 3640000);
    CHECK_INT(take_one(503, "Retry-After: Sun, 09 Sep 2001 02:47:20 GMT\r\n"
                            "Date: Sun, 09 Sep 2001 02:46:40 GMT"),
              1);
    CHECK_INT(reply.retry_after_ms, 40000);
    CHECK_INT(take_one(503, "Retry-After: Sat, 08 Sep 2001 02:47:20 GMT"), 1);
    CHECK_INT(reply.retry_after_ms, 0);
    CHECK_INT(take_one(503, "Retry-After: soon"), 1);
    CHECK_INT(reply.retry_after_ms, PEN_HTTP_NONE);
    CHECK_INT(take_one(503, "Retry-After: -5"), 1);
    CHECK_INT(reply.retry_after_ms, PEN_HTTP_NONE);
}

TEST(etags)
{
    char header[400];
    snprintf(header, sizeof header, "ETag: \"%0129d\"", 7); /* fits to the byte */
    CHECK_INT(take_one(200, header), 1);
    CHECK_INT(strlen(reply.etag), 131);
    snprintf(header, sizeof header, "ETag: \"%0130d\"", 7);
    CHECK_INT(take_one(200, header), 1);
    CHECK_STR(reply.etag, "");
    CHECK_INT(take_one(200, "ETag: \"a b\""), 1);
    CHECK_STR(reply.etag, "");
    CHECK_INT(take_one(200, "ETag: \"a\rX: b\""), 1);
    CHECK_STR(reply.etag, "");
}

TEST(odd_lines)
{
    static const char *const BAD[] = {": x", " folded: x", "\tfolded", "no colon", "Name : x"};
    for (size_t i = 0; i < PEN_LEN(BAD); i++) {
        CHECK_INT(take_one(200, BAD[i]), -1);
        CHECK_INT(reply.failure, PEN_HTTP_GARBLED);
    }
}

TEST(bounds)
{
    static char big[80000];
    pen__head_clear(&head, &reply);
    CHECK_INT(pen__head_line(&head, "HTTP/1.1 200 OK\r\n", 17, NOW, &reply), 0);
    for (int i = 0; i < PEN_HTTP_HEADER_LINES - 1; i++)
        CHECK_INT(pen__head_line(&head, "A: b\r\n", 6, NOW, &reply), 0);
    CHECK_INT(pen__head_line(&head, "A: b\r\n", 6, NOW, &reply), -1);
    CHECK_INT(reply.failure, PEN_HTTP_GARBLED);

    memset(big, 'x', sizeof big);
    memcpy(big, "A: ", 3);
    pen__head_clear(&head, &reply);
    CHECK_INT(pen__head_line(&head, "HTTP/1.1 200 OK\r\n", 17, NOW, &reply), 0);
    CHECK_INT(pen__head_line(&head, big, PEN_HTTP_HEADER_BYTES - 17, NOW, &reply), 0);
    CHECK_INT(pen__head_line(&head, "\r\n", 2, NOW, &reply), -1);

    /* Trailers and interim answers count too. */
    CHECK_INT(take("HTTP/1.1 200 OK\r\n\r\n"), 1);
    int r = 0, n = 0;
    for (; r == 0 && n < 200; n++)
        r = pen__head_line(&head, "Content-Length: -1\r\n", 20, NOW, &reply);
    CHECK_INT(n, PEN_HTTP_HEADER_LINES - 2 + 1);
    pen__head_clear(&head, &reply);
    for (r = n = 0; r == 0 && n < 200; n += 2) {
        r = pen__head_line(&head, "HTTP/1.1 100 OK\r\n", 17, NOW, &reply);
        if (r == 0)
            r = pen__head_line(&head, "\r\n", 2, NOW, &reply);
    }
    CHECK_INT(n, PEN_HTTP_HEADER_LINES + 2);
}

TEST(failures_have_texts)
{
    for (int i = 0; i <= PEN_HTTP_NO_MEMORY; i++) {
        CHECK(strcmp(pen__http_failure_text((PenHttpFailure)i), "unknown failure") != 0);
        for (int k = 0; k < i; k++)
            CHECK(strcmp(pen__http_failure_text((PenHttpFailure)i),
                         pen__http_failure_text((PenHttpFailure)k)) != 0);
    }
}

int main(int argc, char **argv)
{
    TEST_START(argc, argv);
    RUN(everything_known);
    RUN(nothing_known);
    RUN(status_lines);
    RUN(interim_answers);
    RUN(lengths);
    RUN(ranges);
    RUN(encodings);
    RUN(dates);
    RUN(dates_cut_and_changed);
    RUN(retry_after);
    RUN(etags);
    RUN(odd_lines);
    RUN(bounds);
    RUN(failures_have_texts);
    return TEST_END();
}
