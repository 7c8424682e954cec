/* SPDX-License-Identifier: Apache-2.0 */
/* Metadata services: who may be asked over http, and how. */
#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/error.h"
#include "base/thread.h"
#include "net/credentials/sources.h"

#define WHERE "net/metadata"

enum { TRIES = 3 };

static bool is_local_v4(const char *host)
{
    static const char *const known[] = {"169.254.169.254", "169.254.170.2", "169.254.170.23"};
    struct in_addr a, b;
    if (inet_pton(AF_INET, host, &a) != 1)
        return false;
    if (ntohl(a.s_addr) >> 24 == 127)
        return true;
    for (size_t i = 0; i < PEN_LEN(known); i++)
        if (inet_pton(AF_INET, known[i], &b) == 1 && a.s_addr == b.s_addr)
            return true;
    return false;
}

static bool is_local_v6(const char *host)
{
    static const char *const known[] = {"::1", "fd00:ec2::254", "fd00:ec2::23"};
    struct in6_addr a, b;
    if (inet_pton(AF_INET6, host, &a) != 1)
        return false;
    for (size_t i = 0; i < PEN_LEN(known); i++)
        if (inet_pton(AF_INET6, known[i], &b) == 1 && memcmp(&a, &b, sizeof a) == 0)
            return true;
    return false;
}

/* http://HOST or http://[HOST], then a port, a path, a query or nothing. */
static bool is_local(const char *rest)
{
    char host[64];
    bool v6 = *rest == '[';
    rest += v6;
    size_t n = strcspn(rest, v6 ? "]" : ":/?#");
    if (n >= sizeof host || (v6 && rest[n] != ']'))
        return false;
    memcpy(host, rest, n);
    host[n] = 0;
    const char *behind = rest + n + v6;
    if (*behind && !strchr(":/?#", *behind))
        return false;
    return v6 ? is_local_v6(host) : strcasecmp(host, "localhost") == 0 || is_local_v4(host);
}

int pen__cred_place(const char *name, const char *url, PenError *reterr)
{
    bool https = strncasecmp(url, "https://", 8) == 0, http = strncasecmp(url, "http://", 7) == 0;
    for (const char *s = url; *s; s++)
        if (*s <= ' ' || *s > '~' || *s == '@' || *s == '\\')
            return pen__fail(
                reterr, PEN_E_INVALID, WHERE,
                "%s: expected a URL without spaces, control characters and a user name", name);
    if (https && url[8] && !strchr("/:?#", url[8]))
        return PEN_OK;
    if (http && is_local(url + 7))
        return PEN_OK;
    if (http)
        return pen__fail(reterr, PEN_E_ACCESS, WHERE,
                         "%s: refusing to send credentials over http to a host that is neither "
                         "this machine nor the AWS metadata service; use https",
                         name);
    return pen__fail(reterr, PEN_E_INVALID, WHERE, "%s: expected https://host or http://host",
                     name);
}

int pen__cred_metadata(PenCred *c, const PenCredQuestion *q, PenAnswer *ret, PenError *reterr)
{
    PenHttpHeader headers[2] = {{"Accept", "*/*"}, q->header};
    PenHttpRequest request = {
        .method = q->method,
        .url = q->url,
        .headers = headers,
        .n_headers = q->header.name ? 2 : 1,
        .limits = {q->ms, q->ms, 1, q->ms, q->ms},
    };
    return pen__ask_again(c->ask, &request, TRIES, c->deadline_ns, ret, reterr);
}

void pen__cred_answer_text(const PenAnswer *a, char *ret, size_t bytes)
{
    if (a->failure == PEN_HTTP_OK)
        snprintf(ret, bytes, "status %d", a->status);
    else
        snprintf(ret, bytes, "%s", pen__http_failure_text(a->failure));
}
