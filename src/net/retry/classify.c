/* SPDX-License-Identifier: Apache-2.0 */
/* What a plain answer means. Texts from the server are never repeated whole: they may hold what was
 * sent to it. */
#include "net/retry/policy.h"

#include <stdio.h>
#include <string.h>

#include "base/attr.h"
#include "base/error.h"

#define WHERE "net/policy"

typedef struct Meaning {
    int key; /* a PenHttpFailure, or a status */
    PenVerdict verdict;
    int status;
    const char *found, *next;
} Meaning;

#define NEXT_NETWORK "check the network and the server's URL"
#define NEXT_SERVER "check the server and any proxy in between"

static const Meaning failures[] = {
    {PEN_HTTP_RESOLVE, PEN_VERDICT_RETRY, PEN_E_IO, "cannot resolve the server's name",
     "check its spelling and DNS"},
    {PEN_HTTP_CONNECT, PEN_VERDICT_RETRY, PEN_E_IO, "cannot connect", NEXT_NETWORK},
    {PEN_HTTP_TLS, PEN_VERDICT_FAIL, PEN_E_IO, "the server's certificate is not valid",
     "check the host name and the clock, or pass the right CA bundle"},
    {PEN_HTTP_BROKEN, PEN_VERDICT_RETRY, PEN_E_IO,
     "the connection was closed before the response was complete", NEXT_NETWORK},
    {PEN_HTTP_GARBLED, PEN_VERDICT_RETRY, PEN_E_IO, "the response is not valid HTTP", NEXT_SERVER},
    {PEN_HTTP_TOO_LONG, PEN_VERDICT_RETRY, PEN_E_IO, "the response is longer than requested",
     NEXT_SERVER},
    {PEN_HTTP_ENCODED, PEN_VERDICT_FAIL, PEN_E_IO,
     "the response has a content encoding that was not requested", NEXT_SERVER},
    {PEN_HTTP_T_CONNECT, PEN_VERDICT_RETRY, PEN_E_TIMEOUT, "connection timed out", NEXT_NETWORK},
    {PEN_HTTP_T_FIRST_BYTE, PEN_VERDICT_RETRY, PEN_E_TIMEOUT, "no response in time", NEXT_SERVER},
    {PEN_HTTP_T_SLOW, PEN_VERDICT_RETRY, PEN_E_TIMEOUT, "the transfer was too slow", NEXT_NETWORK},
    {PEN_HTTP_T_DEADLINE, PEN_VERDICT_RETRY, PEN_E_TIMEOUT, "the response was not complete in time",
     NEXT_NETWORK},
    {PEN_HTTP_NO_MEMORY, PEN_VERDICT_FAIL, PEN_E_NO_MEMORY, "out of memory", NULL},
};

#define NEXT_RIGHTS "check the credentials and their permissions"

static const Meaning statuses[] = {
    {401, PEN_VERDICT_FAIL, PEN_E_ACCESS, "not authorised", NEXT_RIGHTS},
    {403, PEN_VERDICT_FAIL, PEN_E_ACCESS, "forbidden", NEXT_RIGHTS},
    {404, PEN_VERDICT_FAIL, PEN_E_NOT_FOUND, "no such object", "check the URL"},
    {408, PEN_VERDICT_RETRY, PEN_E_TIMEOUT, "request timeout", NEXT_NETWORK},
    {410, PEN_VERDICT_FAIL, PEN_E_NOT_FOUND, "gone", "check the URL"},
    {412, PEN_VERDICT_FAIL, PEN_E_CHANGED, "the object was overwritten", "open it again"},
    {416, PEN_VERDICT_FAIL, PEN_E_CORRUPT, "the object is shorter than expected",
     "run 'penstock verify'"},
    {429, PEN_VERDICT_THROTTLE, PEN_E_IO, "too many requests", "use fewer readers"},
    {500, PEN_VERDICT_RETRY, PEN_E_IO, "server error", NEXT_SERVER},
    {502, PEN_VERDICT_RETRY, PEN_E_IO, "bad gateway", NEXT_SERVER},
    {503, PEN_VERDICT_RETRY, PEN_E_IO, "service unavailable", NEXT_SERVER},
    {504, PEN_VERDICT_RETRY, PEN_E_TIMEOUT, "gateway timeout", NEXT_SERVER},
};

static const Meaning *find(const Meaning *m, size_t n, int key)
{
    for (size_t i = 0; i < n; i++)
        if (m[i].key == key)
            return &m[i];
    return NULL;
}

/* " (127.0.0.1:80, request 4442587FB7D0A2F9)": who to ask, without what could break the line. */
static void who(const PenHttpReply *reply, char ret[256])
{
    ret[0] = 0;
    if (reply->request_id[0])
        snprintf(ret, 256, " (%s%srequest %s)", reply->peer, reply->peer[0] ? ", " : "",
                 reply->request_id);
    else if (reply->peer[0])
        snprintf(ret, 256, " (%s)", reply->peer);
    for (char *c = ret; *c; c++)
        if (*c < ' ' || *c > '~')
            *c = '?';
}

static PenVerdict classify_failure(const char *name, const PenHttpReply *reply, PenError *err)
{
    static const Meaning other = {0, PEN_VERDICT_FAIL, PEN_E_IO, "the request failed",
                                  NEXT_NETWORK};
    const Meaning *m = find(failures, PEN_LEN(failures), (int)reply->failure);
    if (!m)
        m = &other;
    char from[256];
    who(reply, from);
    pen__fail(err, m->status, WHERE, "%.160s: %s%s%s%.100s%s%s", name, m->found, from,
              reply->detail[0] ? ": " : "", reply->detail, m->next ? "; " : "",
              m->next ? m->next : "");
    err->os_errno = reply->os_errno;
    return m->verdict;
}

static int says_slow_down(const PenHttpReply *reply)
{
    static const char *const words[] = {"<Code>SlowDown</Code>", "<Code>Throttling",
                                        "<Code>RequestLimitExceeded</Code>"};
    if (reply->retry_after_ms != PEN_HTTP_NONE)
        return 1;
    for (size_t i = 0; i < PEN_LEN(words); i++)
        if (reply->error && memmem(reply->error, reply->error_bytes, words[i], strlen(words[i])))
            return 1;
    return 0;
}

PenVerdict pen__policy_classify(const char *name, const PenHttpReply *reply, PenError *err)
{
    if (reply->failure != PEN_HTTP_OK)
        return classify_failure(name, reply, err);
    if (reply->status >= 200 && reply->status < 300)
        return PEN_VERDICT_DONE;
    static const Meaning other = {0, PEN_VERDICT_FAIL, PEN_E_IO, "an unexpected status",
                                  NEXT_SERVER};
    const Meaning *m = find(statuses, PEN_LEN(statuses), reply->status);
    if (!m)
        m = &other;
    char from[256];
    who(reply, from);
    pen__fail(err, m->status, WHERE, "%.160s: the server returned %d, %s%s; %s", name,
              reply->status, m->found, from, m->next);
    if (reply->status == 503 && says_slow_down(reply))
        return PEN_VERDICT_THROTTLE;
    return m->verdict;
}
