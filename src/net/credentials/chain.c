/* SPDX-License-Identifier: Apache-2.0 */
/* The order in which sources of credentials are tried. */
#include "base/error.h"
#include "net/credentials/sources.h"

#define WHERE "net/credentials"

int pen__cred_find(PenCred *c, PenAwsCredentials **ret, PenError *reterr)
{
    static int (*const sources[])(PenCred *, PenAwsCredentials **, PenError *) = {
        pen__cred_environment, pen__cred_web_identity, pen__cred_profile,
        pen__cred_container,   pen__cred_instance,
    };
    for (size_t i = c->profile ? 2 : 0; i < PEN_LEN(sources); i++) {
        int r = sources[i](c, ret, reterr);
        if (r < 0)
            pen__aws_clean(reterr);
        if (r != PEN_END)
            return r;
    }
    return pen__fail(
        reterr, PEN_E_ACCESS, WHERE,
        "no credentials: none in the environment (AWS_ACCESS_KEY_ID), none for profile "
        "%s (AWS_PROFILE), no container role, and %s; for public data pass "
        "--no-sign (Python: no_sign=True)",
        c->files.profile[0] ? c->files.profile : "default",
        c->absent[0] ? c->absent : "no instance role");
}
