/* SPDX-License-Identifier: Apache-2.0 */
/* STS: AssumeRole, signed with other credentials, and AssumeRoleWithWebIdentity, with a token. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/sys.h"
#include "base/thread.h"
#include "net/address/address.h"
#include "net/aws/sign.h"
#include "net/credentials/sources.h"
#include "net/s3/response.h"

#define WHERE "net/sts"
#define FORM "application/x-www-form-urlencoded; charset=utf-8"

enum { TRIES = 3, TOKEN_BYTES = 65536, SKEW_S = 240 };

static const PenHttpLimits limits = {3000, 5000, 1, 5000, 10000};

/* A request as it is sent once; the body is kept over all tries. */
typedef struct Sts {
    PenEndpoint place;
    char url[600];
    PenBuf body; /* may hold a token */
    int64_t skew_s;
} Sts;

/* Without a region it is the old global one, which signs as us-east-1. */
static int find_place(const PenCred *c, const char *profile, Sts *s, PenError *reterr)
{
    const char *given = pen__aws_endpoint(&c->files, profile, "sts");
    const char *region = pen__aws_region(&c->files, profile);
    int r = pen__endpoint_make(given, region, &s->place, reterr);
    if (r < 0)
        return r;
    if (!given && region) {
        char host[sizeof s->place.host];
        memcpy(host, s->place.host, sizeof host);
        snprintf(s->place.host, sizeof s->place.host, "sts%.250s", host + strlen("s3"));
    } else if (!given) {
        snprintf(s->place.host, sizeof s->place.host, "sts.amazonaws.com");
    }
    snprintf(s->url, sizeof s->url, "%s://%s%s/", s->place.scheme, s->place.host, s->place.base);
    if (!pen__endpoint_is_safe(&s->place))
        return pen__fail(reterr, PEN_E_ACCESS, WHERE,
                         "%s: refusing to send credentials over http to another machine; use https",
                         s->place.host);
    return PEN_OK;
}

static int make_body(const PenCredRole *role, const char *token, Sts *s, PenError *reterr)
{
    char name[48];
    snprintf(name, sizeof name, "penstock-%" PRIu64, pen__sys->unix_ns() / 1000000000u);
    PenHttpHeader pairs[8] = {
        {"Action", token ? "AssumeRoleWithWebIdentity" : "AssumeRole"},
        {"Version", "2011-06-15"},
        {"RoleArn", role->arn},
        {"RoleSessionName", role->session ? role->session : name},
    };
    size_t n = 4;
    if (role->external_id && !token)
        pairs[n++] = (PenHttpHeader){"ExternalId", role->external_id};
    if (role->duration)
        pairs[n++] = (PenHttpHeader){"DurationSeconds", role->duration};
    if (token)
        pairs[n++] = (PenHttpHeader){"WebIdentityToken", token};
    return pen__query_make(pairs, n, &s->body) < 0 ? pen__fail_memory(reterr, WHERE, "request")
                                                   : PEN_OK;
}

static int ask_with(PenCred *c, const Sts *s, const PenHttpHeader *headers, size_t n,
                    PenAnswer *ret, PenError *reterr)
{
    struct iovec body = {s->body.data, s->body.bytes};
    PenHttpRequest request = {
        .method = "POST",
        .url = s->url,
        .headers = headers,
        .n_headers = n,
        .body = &body,
        .n_body = 1,
        .limits = limits,
    };
    return pen__ask_again(c->ask, &request, TRIES, c->deadline_ns, ret, reterr);
}

static int ask_signed(PenCred *c, const Sts *s, const PenAwsCredentials *with, PenAnswer *ret,
                      PenError *reterr)
{
    PenHttpHeader headers[6] = {{"Content-Type", FORM}, {"Accept", "application/xml"}};
    char hash[65];
    const char *token = pen__credentials_token(with);
    PenSigned signature = {0};
    PenSigning signing = {
        .key_id = pen__credentials_key_id(with),
        .secret = pen__credentials_secret(with),
        .token = token,
        .region = s->place.region,
        .service = "sts",
        .unix_s = (uint64_t)((int64_t)(pen__sys->unix_ns() / 1000000000u) + s->skew_s),
    };
    PenToSign what = {"POST", s->url, headers, 1, hash};
    pen__sha256_hex(s->body.data, s->body.bytes, hash);
    int r = pen__sign(&signing, &what, &signature, reterr);
    if (r < 0)
        return r;
    size_t n = 2;
    headers[n++] = (PenHttpHeader){"X-Amz-Date", signature.date};
    headers[n++] = (PenHttpHeader){"X-Amz-Content-Sha256", signature.content_sha256};
    headers[n++] = (PenHttpHeader){"Authorization", (const char *)signature.authorization.data};
    if (token)
        headers[n++] = (PenHttpHeader){"X-Amz-Security-Token", token};
    r = ask_with(c, s, headers, n, ret, reterr);
    pen__signed_free(&signature);
    return r;
}

static int ask_once(PenCred *c, const Sts *s, const PenAwsCredentials *with, PenAnswer *ret,
                    PenError *reterr)
{
    static const PenHttpHeader plain[] = {{"Content-Type", FORM}, {"Accept", "application/xml"}};
    return with ? ask_signed(c, s, with, ret, reterr) : ask_with(c, s, plain, 2, ret, reterr);
}

/* A refusal of a server whose clock is far from ours may be about that: 1, and *s is put right. */
static int set_clock(Sts *s, const PenAnswer *a)
{
    int64_t ours = (int64_t)(pen__sys->unix_ns() / 1000000000u);
    if (a->failure != PEN_HTTP_OK || a->status / 100 != 4 || a->date_s > INT64_MAX || s->skew_s)
        return 0;
    int64_t skew = (int64_t)a->date_s - ours;
    s->skew_s = skew;
    return skew > SKEW_S || skew < -SKEW_S;
}

/* A word like AccessDenied: other texts of a server may be an echo of something secret. */
static bool is_word(const char *text)
{
    size_t n = strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.");
    return n > 0 && n <= 48 && !text[n];
}

static int refused(const Sts *s, const PenAnswer *a, const PenS3Error *why, PenError *reterr)
{
    char text[64];
    pen__cred_answer_text(a, text, sizeof text);
    bool coded = why && is_word(why->code);
    int status = a->failure == PEN_HTTP_OK && a->status < 500 ? PEN_E_ACCESS : PEN_E_IO;
    return pen__fail(reterr, status, WHERE, "%s: expected credentials, found %s%s%s%s",
                     s->place.host, text, coded ? " (" : "", coded ? why->code : "",
                     coded ? ")" : "");
}

static int read_answer(PenCred *c, const Sts *s, const PenAnswer *a, PenAwsCredentials **ret,
                       PenError *reterr)
{
    PenS3Error why = {.code = ""};
    PenStsCredentials keys;
    if (a->failure != PEN_HTTP_OK || a->status / 100 != 2) {
        (void)pen__s3_error(a->body.data, a->body.bytes, &why);
        return refused(s, a, &why, reterr);
    }
    int r = pen__sts_read_credentials(a->body.data, a->body.bytes, &keys, &why, reterr);
    if (r > 0)
        return refused(s, a, &why, reterr);
    if (r < 0) {
        pen__error_prefix(reterr, "%s", s->place.host);
        return r;
    }
    r = pen__credentials_new(keys.key_id, keys.secret, keys.token, keys.expires_s, ret, reterr);
    pen__sts_credentials_wipe(&keys);
    if (r == PEN_OK && a->date_s != PEN_HTTP_NONE)
        c->date_s = a->date_s;
    return r;
}

static int exchange(PenCred *c, const PenCredRole *role, const char *token, PenAwsCredentials **ret,
                    PenError *reterr)
{
    Sts s = {.skew_s = 0};
    PenAnswer answer;
    int r = find_place(c, role->profile, &s, reterr);
    if (r == PEN_OK)
        r = make_body(role, token, &s, reterr);
    if (r == PEN_OK)
        r = ask_once(c, &s, role->with, &answer, reterr);
    if (r == PEN_OK && role->with && set_clock(&s, &answer)) {
        pen__answer_free(&answer);
        r = ask_once(c, &s, role->with, &answer, reterr);
    }
    if (r == PEN_OK) {
        r = read_answer(c, &s, &answer, ret, reterr);
        pen__answer_free(&answer);
    }
    if (s.body.data)
        explicit_bzero(s.body.data, s.body.cap);
    pen__buf_free(&s.body);
    return r;
}

int pen__cred_role(PenCred *c, const PenCredRole *role, PenAwsCredentials **ret, PenError *reterr)
{
    PenSecretMemory token = {0};
    int r = PEN_OK;
    if (role->web_token_file) {
        r = pen__secret_memory_read(role->web_token_file, TOKEN_BYTES, &token, reterr);
        while (r == PEN_OK && token.bytes && strchr(" \t\r\n", token.data[token.bytes - 1]))
            token.data[--token.bytes] = 0;
        if (r == PEN_OK && (!token.bytes || strlen(token.data) != token.bytes))
            r = pen__fail(reterr, PEN_E_FORMAT, WHERE, "%s: expected a token, found %s",
                          role->web_token_file, token.bytes ? "a NUL byte" : "an empty file");
    }
    if (r == PEN_OK)
        r = exchange(c, role, token.data, ret, reterr);
    pen__secret_memory_free(&token);
    return r;
}
