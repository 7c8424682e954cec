/* SPDX-License-Identifier: Apache-2.0 */
#include "net/http/response_head.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/attr.h"
#include "base/bytes.h"
#include "net/http/date.h"

typedef struct Text {
    const char *at;
    size_t bytes;
} Text;

PEN_PRINTF(3, 4)
static int refuse(PenHttpReply *reply, PenHttpFailure failure, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    vsnprintf(reply->detail, sizeof reply->detail, fmt, args);
    va_end(args);
    reply->failure = failure;
    return -1;
}

static bool is(Text t, const char *word)
{
    return t.bytes == strlen(word) && strncasecmp(t.at, word, t.bytes) == 0;
}

static Text trim(Text t)
{
    while (t.bytes && (t.at[0] == ' ' || t.at[0] == '\t'))
        t = (Text){t.at + 1, t.bytes - 1};
    while (t.bytes && (t.at[t.bytes - 1] == ' ' || t.at[t.bytes - 1] == '\t'))
        t.bytes--;
    return t;
}

/* For messages: what cannot be printed becomes a question mark, what does not fit is cut. */
static void copy_text(Text t, char *ret, size_t capacity)
{
    size_t n = PEN_MIN(t.bytes, capacity - 1);
    for (size_t i = 0; i < n; i++)
        ret[i] = t.at[i] >= 0x20 && t.at[i] < 0x7f ? t.at[i] : '?';
    ret[n] = 0;
}

/* To be sent back as If-Match: one that is cut or odd would match nothing, or worse. */
static void copy_etag(Text t, char *ret, size_t capacity)
{
    bool good = t.bytes < capacity;
    for (size_t i = 0; good && i < t.bytes; i++)
        good = t.at[i] > 0x20 && t.at[i] < 0x7f;
    copy_text(good ? t : (Text){"", 0}, ret, capacity);
}

/* Digits alone, at least one, at most what 63 bits hold. */
static bool number(Text t, uint64_t *ret)
{
    uint64_t v = 0;
    if (!t.bytes)
        return false;
    for (size_t i = 0; i < t.bytes; i++) {
        if (t.at[i] < '0' || t.at[i] > '9' || pen__mul_over(v, 10, &v) ||
            pen__add_over(v, (uint64_t)(t.at[i] - '0'), &v))
            return false;
    }
    *ret = v;
    return v <= INT64_MAX;
}

/* Splits at the first `c`; false when there is none. */
static bool split(Text t, char c, Text *ret_left, Text *ret_right)
{
    const char *at = t.bytes ? memchr(t.at, c, t.bytes) : NULL;
    if (!at)
        return false;
    size_t left = (size_t)(at - t.at);
    *ret_left = (Text){t.at, left};
    *ret_right = (Text){at + 1, t.bytes - left - 1};
    return true;
}

/* "bytes 0-99/1000", "bytes 0-99/" with a star for an unknown total, or a star for the range when
 * none of it can be had. */
static bool parse_range(Text t, PenHttpReply *reply)
{
    Text unit, rest, range, total, first, last;
    uint64_t a = PEN_HTTP_NONE, b = PEN_HTTP_NONE, n = PEN_HTTP_NONE;
    if (!split(t, ' ', &unit, &rest) || !is(unit, "bytes") || !split(rest, '/', &range, &total))
        return false;
    if (!is(total, "*") && !number(total, &n))
        return false;
    if (is(range, "*"))
        return reply->range_total = n, n != PEN_HTTP_NONE;
    if (!split(range, '-', &first, &last) || !number(first, &a) || !number(last, &b))
        return false;
    if (a > b || (n != PEN_HTTP_NONE && b >= n))
        return false;
    reply->range_first = a;
    reply->range_last = b;
    reply->range_total = n;
    return true;
}

static void take_length(PenHead *head, Text value, PenHttpReply *reply)
{
    uint64_t n;
    if (!number(value, &n) ||
        (reply->content_length != PEN_HTTP_NONE && reply->content_length != n))
        head->bad_length = 1;
    else
        reply->content_length = n;
}

static void take_range(PenHead *head, Text value, PenHttpReply *reply)
{
    if (head->has_range || !parse_range(value, reply))
        head->bad_range = 1;
    head->has_range = 1;
}

static void take_date(Text value, PenHttpReply *reply)
{
    char text[64];
    copy_text(value, text, sizeof text);
    (void)pen__http_date(text, &reply->date_s); /* another text is no date, and changes nothing */
}

/* Some stores keep the aws-chunked of an upload as if it were the object's; the body is plain. */
static bool plain_encoding(Text value)
{
    return !value.bytes || is(value, "identity") || is(value, "aws-chunked");
}

static void take_field(PenHead *head, Text name, Text value, PenHttpReply *reply)
{
    if (is(name, "Content-Length"))
        take_length(head, value, reply);
    else if (is(name, "Content-Range"))
        take_range(head, value, reply);
    else if (is(name, "Transfer-Encoding") && is(value, "chunked"))
        head->chunked = 1;
    else if (is(name, "Transfer-Encoding") ||
             (is(name, "Content-Encoding") && !plain_encoding(value)))
        head->encoded = 1;
    else if (is(name, "ETag"))
        copy_etag(value, reply->etag, sizeof reply->etag);
    else if (is(name, "Date"))
        take_date(value, reply);
    else if (is(name, "Retry-After"))
        copy_text(value, head->retry_after, sizeof head->retry_after);
    else if (is(name, "Content-Type"))
        copy_text(value, reply->content_type, sizeof reply->content_type);
    else if (is(name, "x-amz-bucket-region"))
        copy_text(value, reply->region, sizeof reply->region);
    else if (is(name, "x-amz-request-id"))
        copy_text(value, reply->request_id, sizeof reply->request_id);
}

static void take_retry_after(const PenHead *head, uint64_t unix_s, PenHttpReply *reply)
{
    Text text = {head->retry_after, strlen(head->retry_after)};
    uint64_t s, t;
    if (!number(text, &s)) {
        if (!pen__http_date(text.at, &t))
            return;
        /* By the server's own clock where it told it: the two may differ by more than the wait. */
        uint64_t now = reply->date_s != PEN_HTTP_NONE ? reply->date_s : unix_s;
        s = t > now ? t - now : 0;
    }
    reply->retry_after_ms = PEN_MIN(s, UINT32_MAX) * 1000;
}

/* The empty line came. */
static int finish(PenHead *head, uint64_t unix_s, PenHttpReply *reply)
{
    head->inside = 0;
    if (reply->status < 200)
        return reply->status == 101 ? refuse(reply, PEN_HTTP_GARBLED, "unexpected status 101") : 0;
    head->complete = 1;
    take_retry_after(head, unix_s, reply);
    if (head->bad_length)
        return refuse(reply, PEN_HTTP_GARBLED,
                      "content-length is not a number, or two that differ");
    if (head->chunked && reply->content_length != PEN_HTTP_NONE)
        return refuse(reply, PEN_HTTP_GARBLED, "both content-length and chunked encoding");
    if (reply->status < 200 || reply->status > 299)
        return 1;
    if (head->encoded)
        return refuse(reply, PEN_HTTP_ENCODED, "an encoding that was not requested");
    if (reply->status != 206)
        return 1;
    if (head->bad_range)
        return refuse(reply, PEN_HTTP_GARBLED, "content-range is not a range");
    if (reply->range_first != PEN_HTTP_NONE && reply->content_length != PEN_HTTP_NONE &&
        reply->range_last - reply->range_first + 1 != reply->content_length)
        return refuse(reply, PEN_HTTP_GARBLED, "content-range and content-length disagree");
    return 1;
}

static int take_status(PenHead *head, Text line, PenHttpReply *reply)
{
    Text version, rest;
    uint64_t status;
    size_t bytes = head->bytes, lines = head->lines;
    pen__head_clear(head, reply);
    head->bytes = bytes;
    head->lines = lines;
    if (!split(line, ' ', &version, &rest) || rest.bytes < 3 ||
        !number((Text){rest.at, 3}, &status) || (rest.bytes > 3 && rest.at[3] != ' ') ||
        status < 100 || status > 599)
        return refuse(reply, PEN_HTTP_GARBLED, "not an HTTP status line");
    head->inside = 1;
    reply->status = (int)status;
    return 0;
}

void pen__head_clear(PenHead *head, PenHttpReply *reply)
{
    *head = (PenHead){0};
    reply->failure = PEN_HTTP_OK;
    reply->status = 0;
    reply->content_length = PEN_HTTP_NONE;
    reply->range_first = reply->range_last = reply->range_total = PEN_HTTP_NONE;
    reply->retry_after_ms = reply->date_s = PEN_HTTP_NONE;
    reply->etag[0] = reply->region[0] = reply->request_id[0] = reply->content_type[0] = 0;
}

int pen__head_line(PenHead *head, const char *line, size_t bytes, uint64_t unix_s,
                   PenHttpReply *reply)
{
    Text t = {line, bytes}, name, value;
    head->bytes += bytes;
    if (head->bytes > PEN_HTTP_HEADER_BYTES || ++head->lines > PEN_HTTP_HEADER_LINES)
        return refuse(reply, PEN_HTTP_GARBLED, "more than %d bytes or %d lines of headers",
                      PEN_HTTP_HEADER_BYTES, PEN_HTTP_HEADER_LINES);
    while (t.bytes && (t.at[t.bytes - 1] == '\n' || t.at[t.bytes - 1] == '\r'))
        t.bytes--;
    if (head->complete) /* trailers: nothing in them is of use */
        return 0;
    if (!head->inside)
        return take_status(head, t, reply);
    if (!t.bytes)
        return finish(head, unix_s, reply);
    if (!split(t, ':', &name, &value) || !name.bytes || name.at[0] == ' ' || name.at[0] == '\t' ||
        name.at[name.bytes - 1] == ' ')
        return refuse(reply, PEN_HTTP_GARBLED, "a header line that is folded or has no name");
    take_field(head, name, trim(value), reply);
    return 0;
}
