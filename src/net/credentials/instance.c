/* SPDX-License-Identifier: Apache-2.0 */
/* An EC2 instance's role, by IMDSv2 alone: a token, the role's name, its credentials. */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/error.h"
#include "net/credentials/sources.h"

#define WHERE "net/instance"
#define ROLES "/latest/meta-data/iam/security-credentials/"

enum { TRY_MS = 1000, TOKEN_BYTES = 1024, ROLE_BYTES = 256 };

static const char *setting(const PenCred *c, const char *variable, const char *key)
{
    const char *text = pen__aws_env_get(c->env, variable);
    return text || !c->files_read ? text
                                  : pen__aws_profile_get(&c->files, c->files.profile, NULL, key);
}

static int find_base(const PenCred *c, char *ret, size_t bytes, PenError *reterr)
{
    const char *name = "AWS_EC2_METADATA_SERVICE_ENDPOINT";
    const char *given = setting(c, name, "ec2_metadata_service_endpoint");
    const char *mode =
        setting(c, "AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE", "ec2_metadata_service_endpoint_mode");
    if (!given)
        given = mode && strcasecmp(mode, "ipv6") == 0 ? "http://[fd00:ec2::254]"
                                                      : "http://169.254.169.254";
    size_t n = strlen(given);
    while (n && given[n - 1] == '/')
        n--;
    if (n >= bytes)
        return pen__fail(reterr, PEN_E_LIMIT, WHERE, "%s: longer than %zu bytes", name, bytes - 1);
    memcpy(ret, given, n);
    ret[n] = 0;
    return pen__cred_place(name, ret, reterr);
}

/* One line of what may stand in a header or a path, without the line's end. */
static bool is_line(PenSecretMemory *body, size_t limit, const char *also)
{
    static const char usual[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
    body->data[body->bytes] = 0;
    size_t n = strcspn(body->data, "\r\n");
    if (!n || n > limit || n + strspn(body->data + n, "\r\n") != body->bytes)
        return false;
    body->data[n] = 0;
    for (size_t i = 0; i < n; i++)
        if (!strchr(usual, body->data[i]) && !strchr(also, body->data[i]))
            return false;
    return true;
}

/* PEN_END with the reason kept when nothing answers, or says that there is nothing. */
static int ask(PenCred *c, const char *method, const char *url, const PenHttpHeader *header,
               PenAnswer *ret, PenError *reterr)
{
    PenAnswer answer;
    char why[64];
    PenCredQuestion q = {method, url, *header, TRY_MS};
    int r = pen__cred_metadata(c, &q, &answer, reterr);
    if (r < 0)
        return r;
    if (answer.failure == PEN_HTTP_OK && answer.status == 200) {
        *ret = answer;
        return PEN_OK;
    }
    pen__cred_answer_text(&answer, why, sizeof why);
    pen__answer_free(&answer);
    snprintf(c->absent, sizeof c->absent, "no instance role (%s)", why);
    return PEN_END;
}

static int find_role(PenCred *c, const char *base, const PenHttpHeader *token, char *ret,
                     size_t bytes, PenError *reterr)
{
    char url[1024];
    PenAnswer answer;
    snprintf(url, sizeof url, "%s" ROLES, base);
    int r = ask(c, "GET", url, token, &answer, reterr);
    if (r != PEN_OK)
        return r;
    if (is_line(&answer.body, ROLE_BYTES, "+=,.@-_"))
        snprintf(ret, bytes, "%s", answer.body.data);
    else
        r = pen__fail(reterr, PEN_E_FORMAT, WHERE, "expected one role name");
    pen__answer_free(&answer);
    return r;
}

static int fetch(PenCred *c, const char *base, const PenHttpHeader *token, PenAwsCredentials **ret,
                 PenError *reterr)
{
    char role[ROLE_BYTES + 1], url[1024];
    PenAnswer answer;
    int r = find_role(c, base, token, role, sizeof role, reterr);
    if (r != PEN_OK)
        return r;
    snprintf(url, sizeof url, "%s" ROLES "%s", base, role);
    r = ask(c, "GET", url, token, &answer, reterr);
    if (r == PEN_END) /* a role that is there has to have some */
        return pen__fail(reterr, PEN_E_ACCESS, WHERE, "role %s: %s", role, c->absent);
    if (r < 0)
        return r;
    r = pen__cred_json("the response", &answer.body, "Token", true, ret, reterr);
    if (r == PEN_OK && answer.date_s != PEN_HTTP_NONE)
        c->date_s = answer.date_s;
    if (r == PEN_OK)
        pen__cred_set_source(c, "instance role %s", role);
    pen__answer_free(&answer);
    return r;
}

int pen__cred_instance(PenCred *c, PenAwsCredentials **ret, PenError *reterr)
{
    char base[512], url[1024];
    PenAnswer token;
    PenHttpHeader ttl = {"X-aws-ec2-metadata-token-ttl-seconds", "21600"};
    if (pen__aws_env_is_true(c->env, "AWS_EC2_METADATA_DISABLED")) {
        snprintf(c->absent, sizeof c->absent,
                 "instance metadata disabled by AWS_EC2_METADATA_DISABLED");
        return PEN_END;
    }
    int r = find_base(c, base, sizeof base, reterr);
    if (r < 0)
        return r;
    snprintf(url, sizeof url, "%s/latest/api/token", base);
    r = ask(c, "PUT", url, &ttl, &token, reterr);
    if (r == PEN_OK && !is_line(&token.body, TOKEN_BYTES, "+/=-_.~:")) {
        pen__answer_free(&token);
        r = pen__fail(reterr, PEN_E_FORMAT, WHERE, "expected a session token on one line");
    }
    if (r == PEN_OK) {
        PenHttpHeader header = {"X-aws-ec2-metadata-token", token.body.data};
        r = fetch(c, base, &header, ret, reterr);
        pen__answer_free(&token);
    }
    if (r < 0)
        pen__error_prefix(reterr, "instance metadata");
    return r;
}
