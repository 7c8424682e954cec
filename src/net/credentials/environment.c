/* SPDX-License-Identifier: Apache-2.0 */
/* Credentials that variables of the environment name: the keys themselves, or a web identity. */
#include "base/error.h"
#include "net/credentials/sources.h"

int pen__cred_environment(PenCred *c, PenAwsCredentials **ret, PenError *reterr)
{
    const char *key_id = pen__aws_env_get(c->env, "AWS_ACCESS_KEY_ID");
    const char *secret = pen__aws_env_get(c->env, "AWS_SECRET_ACCESS_KEY");
    const char *token = pen__aws_env_get(c->env, "AWS_SESSION_TOKEN");
    if (!key_id)
        return PEN_END;
    if (!secret)
        return pen__fail(reterr, PEN_E_INVALID, "net/environment",
                         "AWS_ACCESS_KEY_ID is set, but AWS_SECRET_ACCESS_KEY is not; set both or "
                         "neither");
    if (!token)
        token = pen__aws_env_get(c->env, "AWS_SECURITY_TOKEN"); /* its name of old */
    int r = pen__credentials_new(key_id, secret, token, 0, ret, reterr);
    if (r < 0)
        pen__error_prefix(reterr, "environment");
    else
        pen__cred_set_source(c, "environment");
    return r;
}

/* Web identity, as EKS sets it up for service accounts: AWS_WEB_IDENTITY_TOKEN_FILE names a file
 * with a token that STS changes for credentials of AWS_ROLE_ARN. */
int pen__cred_web_identity(PenCred *c, PenAwsCredentials **ret, PenError *reterr)
{
    const char *file = pen__aws_env_get(c->env, "AWS_WEB_IDENTITY_TOKEN_FILE");
    const char *arn = pen__aws_env_get(c->env, "AWS_ROLE_ARN");
    if (!file)
        return PEN_END;
    if (!arn)
        return pen__fail(reterr, PEN_E_INVALID, "net/web_identity",
                         "AWS_WEB_IDENTITY_TOKEN_FILE is set, but AWS_ROLE_ARN is not; set both or "
                         "neither");
    int r = pen__cred_files(c, reterr); /* for the region */
    if (r < 0)
        return r;
    PenCredRole role = {
        .profile = c->files.profile,
        .arn = arn,
        .session = pen__aws_env_get(c->env, "AWS_ROLE_SESSION_NAME"),
        .web_token_file = file,
    };
    r = pen__cred_role(c, &role, ret, reterr);
    if (r < 0)
        pen__error_prefix(reterr, "web identity");
    else
        pen__cred_set_source(c, "web identity for %s", arn);
    return r;
}
