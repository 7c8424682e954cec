/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stdio.h>

#include "base/error.h"
#include "net/credentials/sources.h"

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

int pen__cred_find(PenCred *c, PenCredentials **ret, PenError *reterr)
{
    static int (*const sources[])(PenCred *, PenCredentials **, PenError *) = {
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
