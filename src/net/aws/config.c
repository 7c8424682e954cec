/* SPDX-License-Identifier: Apache-2.0 */
#include "net/aws/config.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/error.h"
#include "net/aws/profile_files.h"

#define WHERE "net/aws_config"

static int put(char *to, size_t bytes, const char *what, const char *text, PenError *reterr)
{
    if (!text)
        text = "";
    if (strlen(text) >= bytes)
        return pen__fail(reterr, PEN_E_LIMIT, WHERE, "%s: longer than %zu bytes", what, bytes - 1);
    for (const char *c = text; *c; c++)
        if ((unsigned char)*c < ' ' || *c == 127)
            return pen__fail(reterr, PEN_E_INVALID, WHERE, "%s: contains a control character",
                             what);
    memcpy(to, text, strlen(text) + 1);
    return PEN_OK;
}

/* botocore has no such variable; its users know GDAL's, s3fs's or that of the object_store crate.
 */
static int wants_unsigned(const PenAwsEnv *env)
{
    return pen__aws_env_is_true(env, "AWS_S3_NO_SIGN_REQUEST") ||
           pen__aws_env_is_true(env, "AWS_NO_SIGN_REQUEST") ||
           pen__aws_env_is_true(env, "AWS_SKIP_SIGNATURE");
}

static int fill(const PenAwsFiles *f, PenAwsConfig *ret, PenError *reterr)
{
    const char *style = pen__aws_profile_get(f, f->profile, "s3", "addressing_style");
    const char *ca = pen__aws_env_get(f->env, "AWS_CA_BUNDLE");
    if (!ca)
        ca = pen__aws_profile_get(f, f->profile, NULL, "ca_bundle");
    ret->path_style = style && strcasecmp(style, "path") == 0;
    ret->unsigned_ = wants_unsigned(f->env) ? 1 : 0;
    int r = put(ret->region, sizeof ret->region, "region", pen__aws_region(f, f->profile), reterr);
    if (r == PEN_OK)
        r = put(ret->endpoint, sizeof ret->endpoint, "endpoint URL",
                pen__aws_endpoint(f, f->profile, "s3"), reterr);
    if (r == PEN_OK)
        r = put(ret->ca_file, sizeof ret->ca_file, "ca_bundle", ca, reterr);
    return r == PEN_OK ? put(ret->profile, sizeof ret->profile, "profile", f->profile, reterr) : r;
}

int pen__aws_config(const char *profile, PenAwsConfig *ret, PenError *reterr)
{
    PenAwsEnv env = {.text = {0}};
    PenAwsFiles files = {0};
    PenAwsConfig config = {.path_style = 0};
    int r = pen__aws_env_read(&env, reterr);
    if (r == PEN_OK)
        r = pen__aws_files_open(&env, profile, &files, reterr);
    if (r == PEN_OK)
        r = fill(&files, &config, reterr);
    pen__aws_files_close(&files);
    pen__aws_env_free(&env);
    if (r == PEN_OK)
        *ret = config;
    else
        pen__aws_clean(reterr);
    return r;
}
