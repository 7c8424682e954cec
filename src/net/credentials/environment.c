/* SPDX-License-Identifier: Apache-2.0 */
/* AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN. */
#include "base/error.h"
#include "net/credentials/sources.h"

int pen__cred_environment(PenCred *c, PenCredentials **ret, PenError *reterr)
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
