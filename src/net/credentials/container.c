/* SPDX-License-Identifier: Apache-2.0 */
/* The agent beside a container: ECS sets AWS_CONTAINER_CREDENTIALS_RELATIVE_URI, EKS Pod Identity
 * AWS_CONTAINER_CREDENTIALS_FULL_URI and a token to show. */
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "net/credentials/sources.h"

#define WHERE "net/container"
#define ECS "http://169.254.170.2"

enum { TOKEN_BYTES = 65536, TRY_MS = 2000 };

static int find_url(const PenCred *c, char *ret, size_t bytes, PenError *reterr)
{
    const char *relative = pen__aws_env_get(c->env, "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI");
    const char *full = pen__aws_env_get(c->env, "AWS_CONTAINER_CREDENTIALS_FULL_URI");
    const char *name =
        relative ? "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI" : "AWS_CONTAINER_CREDENTIALS_FULL_URI";
    if (!relative && !full)
        return PEN_END;
    if (relative && relative[0] != '/')
        return pen__fail(reterr, PEN_E_INVALID, WHERE, "%s: expected a path that begins with /",
                         name);
    int n = snprintf(ret, bytes, "%s%s", relative ? ECS : "", relative ? relative : full);
    if (n < 0 || (size_t)n >= bytes)
        return pen__fail(reterr, PEN_E_LIMIT, WHERE, "%s: longer than %zu bytes", name, bytes - 1);
    return pen__cred_place(name, ret, reterr);
}

/* The token is read anew each time: it is renewed by others. Empty when there is none. */
static int read_token(const PenCred *c, PenSecretMemory *ret, PenError *reterr)
{
    const char *file = pen__aws_env_get(c->env, "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE");
    const char *text = pen__aws_env_get(c->env, "AWS_CONTAINER_AUTHORIZATION_TOKEN");
    if (!file && !text)
        return PEN_OK;
    PenSecretMemory token = {0};
    int r = file ? pen__secret_memory_read(file, TOKEN_BYTES, &token, reterr)
                 : pen__secret_memory_new(strlen(text), &token, reterr);
    if (r < 0)
        return r;
    if (!file)
        (void)pen__secret_memory_add(&token, text, strlen(text));
    while (token.bytes && strchr(" \t\r\n", token.data[token.bytes - 1]))
        token.data[--token.bytes] = 0;
    for (size_t i = 0; i < token.bytes; i++)
        if (token.data[i] < ' ' || token.data[i] > '~') {
            pen__secret_memory_free(&token);
            return pen__fail(reterr, PEN_E_INVALID, WHERE,
                             "%s: expected one line of ASCII, found a control character",
                             file ? "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"
                                  : "AWS_CONTAINER_AUTHORIZATION_TOKEN");
        }
    *ret = token;
    return PEN_OK;
}

static int ask(PenCred *c, const char *url, const PenSecretMemory *token, PenAwsCredentials **ret,
               PenError *reterr)
{
    PenAnswer answer;
    char why[64];
    PenCredQuestion q = {"GET", url, {token->data ? "Authorization" : NULL, token->data}, TRY_MS};
    int r = pen__cred_metadata(c, &q, &answer, reterr);
    if (r < 0)
        return r;
    pen__cred_answer_text(&answer, why, sizeof why);
    if (answer.failure != PEN_HTTP_OK || answer.status / 100 != 2)
        r = pen__fail(reterr, answer.failure == PEN_HTTP_OK ? PEN_E_ACCESS : PEN_E_IO, WHERE,
                      "expected credentials, found %s", why);
    else
        r = pen__cred_json("the response", &answer.body, "Token", true, ret, reterr);
    if (r == PEN_OK && answer.date_s != PEN_HTTP_NONE)
        c->date_s = answer.date_s;
    pen__answer_free(&answer);
    return r;
}

int pen__cred_container(PenCred *c, PenAwsCredentials **ret, PenError *reterr)
{
    char url[2048];
    PenSecretMemory token = {0};
    int r = find_url(c, url, sizeof url, reterr);
    if (r != PEN_OK)
        return r;
    r = read_token(c, &token, reterr);
    if (r == PEN_OK)
        r = ask(c, url, &token, ret, reterr);
    pen__secret_memory_free(&token);
    if (r < 0)
        pen__error_prefix(reterr, "container credentials");
    else
        pen__cred_set_source(c, "container");
    return r;
}
