/* SPDX-License-Identifier: Apache-2.0 */
/* What the sources of credentials share: the profile files, the name of the source, credentials in
 * JSON. */
#include <stdarg.h>
#include <stdio.h>

#include "base/error.h"
#include "base/json.h"
#include "net/credentials/sources.h"
#include "net/http/date.h"

#define WHERE "net/credentials"

void pen__cred_set_source(PenCred *c, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    vsnprintf(c->source, sizeof c->source, fmt, args);
    va_end(args);
}

int pen__cred_files(PenCred *c, PenError *reterr)
{
    if (c->files_read)
        return PEN_OK;
    int r = pen__aws_files_open(c->env, c->profile, &c->files, reterr);
    c->files_read = r == PEN_OK;
    return r;
}

void pen__cred_end(PenCred *c)
{
    if (c->files_read)
        pen__aws_files_close(&c->files);
    c->files_read = false;
}

/* A word like AccessDenied: anything else may be an echo of something secret. */
static const char *word_or_nothing(const char *text)
{
    size_t n = 0;
    for (; text && text[n]; n++)
        if (n == 48 || !((text[n] >= 'A' && text[n] <= 'Z') || (text[n] >= 'a' && text[n] <= 'z')))
            return "";
    return text ? text : "";
}

static int make(const char *name, const PenJson *json, const char *token_name, bool expires,
                PenAwsCredentials **ret, PenError *reterr)
{
    const char *key_id = pen__json_string(json, "AccessKeyId");
    const char *secret = pen__json_string(json, "SecretAccessKey");
    const char *token = pen__json_string(json, token_name);
    const char *until = pen__json_string(json, "Expiration");
    uint64_t until_s = 0;
    if (!key_id || !secret || (expires && (!until || !token))) {
        const char *code = pen__json_string(json, "Code");
        code = word_or_nothing(code ? code : pen__json_string(json, "code"));
        return pen__fail(reterr, PEN_E_FORMAT, WHERE,
                         "%s: expected AccessKeyId, SecretAccessKey%s%s%s, found an object that "
                         "lacks one of them%s%s",
                         name, expires ? ", " : "", expires ? token_name : "",
                         expires ? " and Expiration" : "", *code ? ", with Code " : "", code);
    }
    if (until && !pen__iso_date(until, &until_s))
        return pen__fail(reterr, PEN_E_FORMAT, WHERE,
                         "%s: Expiration: expected a time like 2026-01-31T12:00:00Z", name);
    return pen__credentials_new(key_id, secret, token, until_s, ret, reterr);
}

int pen__cred_json(const char *name, const PenSecretMemory *body, const char *token, bool expires,
                   PenAwsCredentials **ret, PenError *reterr)
{
    PenJson *json = NULL;
    int r = pen__json_parse(name, body->data, body->bytes, &json, reterr);
    if (r < 0)
        return r;
    r = make(name, json, token, expires, ret, reterr);
    pen__json_free(&json);
    return r;
}
