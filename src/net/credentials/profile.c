/* SPDX-License-Identifier: Apache-2.0 */
/* A profile: keys, a program to run, or a role with the profile (and its profile, ...) that may
 * take it on. */
#include <string.h>

#include "base/error.h"
#include "net/credentials/sources.h"

#define WHERE "net/profile"

enum { MAX_CHAIN = 8 };

/* The profiles passed through on the way, to notice a circle. */
typedef struct Chain {
    PenCred *c;
    const char *names[MAX_CHAIN];
    int n;
} Chain;

static int resolve(Chain *chain, const char *profile, PenAwsCredentials **ret, PenError *reterr);

static const char *get(const Chain *chain, const char *profile, const char *key)
{
    return pen__aws_profile_get(&chain->c->files, profile, NULL, key);
}

static int keys(Chain *chain, const char *profile, PenAwsCredentials **ret, PenError *reterr)
{
    const PenAwsFiles *f = &chain->c->files;
    const char *key_id = get(chain, profile, "aws_access_key_id");
    const char *secret = get(chain, profile, "aws_secret_access_key");
    const char *token = get(chain, profile, "aws_session_token");
    if (!key_id || !secret)
        return pen__fail(
            reterr, PEN_E_INVALID, WHERE,
            "expected both aws_access_key_id and aws_secret_access_key, found only one");
    int r = pen__credentials_new(key_id, secret, token, 0, ret, reterr);
    if (r == PEN_OK)
        pen__cred_set_source(chain->c, "profile %s in %s", profile,
                             pen__ini_get(f->credentials, profile, NULL, "aws_access_key_id")
                                 ? f->credentials_path
                                 : f->config_path);
    return r;
}

static int named_source(Chain *chain, const char *source, PenAwsCredentials **ret, PenError *reterr)
{
    int r;
    if (strcmp(source, "Environment") == 0)
        r = pen__cred_environment(chain->c, ret, reterr);
    else if (strcmp(source, "EcsContainer") == 0)
        r = pen__cred_container(chain->c, ret, reterr);
    else if (strcmp(source, "Ec2InstanceMetadata") == 0)
        r = pen__cred_instance(chain->c, ret, reterr);
    else
        return pen__fail(reterr, PEN_E_INVALID, WHERE,
                         "credential_source: expected Environment, EcsContainer or "
                         "Ec2InstanceMetadata");
    if (r == PEN_END)
        return pen__fail(reterr, PEN_E_ACCESS, WHERE, "credential_source %s: has no credentials",
                         source);
    return r;
}

/* The credentials that a role is taken on with. */
static int role_source(Chain *chain, const char *profile, PenAwsCredentials **ret, PenError *reterr)
{
    const char *other = get(chain, profile, "source_profile");
    const char *named = get(chain, profile, "credential_source");
    if (!other == !named)
        return pen__fail(reterr, PEN_E_INVALID, WHERE,
                         "role_arn: expected either source_profile or credential_source, found %s",
                         other ? "both" : "neither");
    if (named)
        return named_source(chain, named, ret, reterr);
    if (strcmp(other, profile) == 0 && get(chain, profile, "aws_access_key_id"))
        return keys(chain, profile, ret, reterr);
    int r = resolve(chain, other, ret, reterr);
    if (r == PEN_END)
        r = pen__fail(reterr, PEN_E_ACCESS, WHERE, "source_profile %.64s: has no credentials",
                      other);
    return r;
}

static int role(Chain *chain, const char *profile, PenAwsCredentials **ret, PenError *reterr)
{
    PenAwsCredentials *with = NULL;
    PenCredRole what = {
        .profile = profile,
        .arn = get(chain, profile, "role_arn"),
        .session = get(chain, profile, "role_session_name"),
        .external_id = get(chain, profile, "external_id"),
        .duration = get(chain, profile, "duration_seconds"),
        .web_token_file = get(chain, profile, "web_identity_token_file"),
    };
    if (get(chain, profile, "mfa_serial"))
        return pen__fail(reterr, PEN_E_UNSUPPORTED, WHERE,
                         "mfa_serial: cannot prompt for an MFA code; use a profile with "
                         "credential_process = aws configure export-credentials --profile %s",
                         profile);
    int r = what.web_token_file ? PEN_OK : role_source(chain, profile, &with, reterr);
    if (r < 0)
        return r;
    what.with = with;
    r = pen__cred_role(chain->c, &what, ret, reterr);
    pen__credentials_put(&with);
    if (r == PEN_OK)
        pen__cred_set_source(chain->c, "role of profile %s", profile);
    return r;
}

static int process(Chain *chain, const char *profile, const char *command, PenAwsCredentials **ret,
                   PenError *reterr)
{
    int r = pen__cred_process(chain->c, command, ret, reterr);
    if (r < 0)
        pen__error_prefix(reterr, "credential_process");
    else
        pen__cred_set_source(chain->c, "credential_process of profile %s", profile);
    return r;
}

static int look(Chain *chain, const char *profile, PenAwsCredentials **ret, PenError *reterr)
{
    const char *command = get(chain, profile, "credential_process");
    bool has_keys =
        get(chain, profile, "aws_access_key_id") || get(chain, profile, "aws_secret_access_key");
    /* Of the profile asked for the role counts; further on keys end the chain. */
    if (get(chain, profile, "role_arn") && (chain->n == 1 || !has_keys))
        return role(chain, profile, ret, reterr);
    if (has_keys)
        return keys(chain, profile, ret, reterr);
    if (command)
        return process(chain, profile, command, ret, reterr);
    if (get(chain, profile, "sso_session") || get(chain, profile, "sso_start_url") ||
        get(chain, profile, "login_session"))
        return pen__fail(reterr, PEN_E_UNSUPPORTED, WHERE,
                         "signing in with a browser (sso, login) is not supported; use a profile "
                         "with credential_process = aws configure export-credentials "
                         "--profile %s",
                         profile);
    return PEN_END;
}

static int resolve(Chain *chain, const char *profile, PenAwsCredentials **ret, PenError *reterr)
{
    for (int i = 0; i < chain->n; i++)
        if (strcmp(chain->names[i], profile) == 0)
            return pen__fail(reterr, PEN_E_INVALID, WHERE,
                             "source_profile %.64s: the chain of profiles is circular", profile);
    if (chain->n == MAX_CHAIN)
        return pen__fail(reterr, PEN_E_LIMIT, WHERE,
                         "source_profile: a chain of more than %d profiles", MAX_CHAIN);
    if (chain->n && !pen__aws_profile_has(&chain->c->files, profile))
        return pen__fail(reterr, PEN_E_NOT_FOUND, WHERE, "source_profile %.64s: no such profile",
                         profile);
    chain->names[chain->n++] = profile;
    return look(chain, profile, ret, reterr);
}

int pen__cred_profile(PenCred *c, PenAwsCredentials **ret, PenError *reterr)
{
    int r = pen__cred_files(c, reterr);
    if (r < 0)
        return r;
    Chain chain = {.c = c};
    r = resolve(&chain, c->files.profile, ret, reterr);
    if (r < 0)
        pen__error_prefix(reterr, "profile %s", c->files.profile);
    return r;
}
