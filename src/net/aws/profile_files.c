/* SPDX-License-Identifier: Apache-2.0 */
#include "net/aws/profile_files.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"

#define WHERE "net/aws_config"

/* *ret is "" when there is no place for such a file. 1: the user named it. */
static int find_path(const PenAwsEnv *env, const char *variable, const char *usual, char *ret,
                     size_t bytes, PenError *reterr)
{
    const char *named = pen__aws_env_get(env, variable), *home = pen__aws_env_get(env, "HOME");
    bool below_home = !named || strncmp(named, "~/", 2) == 0;
    *ret = 0;
    if (below_home && !home)
        return 0;
    int n = snprintf(ret, bytes, "%s%s%s", below_home ? home : "", below_home ? "/" : "",
                     !named ? usual : named + (below_home ? 2 : 0));
    if (n < 0 || (size_t)n >= bytes)
        return pen__fail(reterr, PEN_E_LIMIT, WHERE, "%s: the path is longer than %zu bytes",
                         named ? variable : "HOME", bytes - 1);
    return named != NULL;
}

/* A file that is not there is no failure. Nor is one in another user's home, as in containers that
 * do not run as root: only what the user named has to be readable. */
static int read_file(const char *path, bool named, PenIni **ret, PenError *reterr)
{
    PenError err;
    int r = *path ? pen__ini_read(path, ret, &err) : PEN_OK;
    if (r == PEN_OK || r == PEN_E_NOT_FOUND || (r == PEN_E_ACCESS && !named))
        return PEN_OK;
    if (reterr)
        *reterr = err;
    return r;
}

static int find_profile(const char *profile, PenAwsFiles *f, PenError *reterr)
{
    const char *variable = "profile";
    if (!profile)
        profile = pen__aws_env_get(f->env, variable = "AWS_PROFILE");
    if (!profile)
        profile = pen__aws_env_get(f->env, variable = "AWS_DEFAULT_PROFILE");
    f->named = profile != NULL;
    int n = snprintf(f->profile, sizeof f->profile, "%s", profile ? profile : "default");
    if (n < 0 || (size_t)n >= sizeof f->profile)
        return pen__fail(reterr, PEN_E_LIMIT, WHERE,
                         "%s: the profile name is longer than %zu bytes", variable,
                         sizeof f->profile - 1);
    return PEN_OK;
}

static int open_files(const char *profile, PenAwsFiles *f, PenError *reterr)
{
    int r = find_profile(profile, f, reterr);
    if (r < 0)
        return r;
    r = find_path(f->env, "AWS_CONFIG_FILE", ".aws/config", f->config_path, sizeof f->config_path,
                  reterr);
    if (r >= 0)
        r = read_file(f->config_path, r || f->named, &f->config, reterr);
    if (r >= 0)
        r = find_path(f->env, "AWS_SHARED_CREDENTIALS_FILE", ".aws/credentials",
                      f->credentials_path, sizeof f->credentials_path, reterr);
    if (r >= 0)
        r = read_file(f->credentials_path, r || f->named, &f->credentials, reterr);
    if (r >= 0 && f->named && !pen__aws_profile_has(f, f->profile))
        r = pen__fail(reterr, PEN_E_NOT_FOUND, WHERE,
                      "profile %s: found neither in %s nor in %s; `aws configure list-profiles` "
                      "lists the profiles",
                      f->profile, f->config ? f->config_path : "a config file",
                      f->credentials ? f->credentials_path : "a credentials file");
    return r;
}

int pen__aws_files_open(const PenAwsEnv *env, const char *profile, PenAwsFiles *ret,
                        PenError *reterr)
{
    PenAwsFiles files = {.env = env};
    int r = open_files(profile, &files, reterr);
    if (r < 0)
        pen__aws_files_close(&files);
    else
        *ret = files;
    return r;
}

void pen__aws_files_close(PenAwsFiles *files)
{
    pen__ini_free(&files->config);
    pen__ini_free(&files->credentials);
}

/* In the config file all but "default" are called "profile NAME"; if that is called so as well, it
 * is the one that counts. 0 when there is none. */
static int config_section(const PenAwsFiles *files, const char *profile, char *ret, size_t bytes)
{
    int n = snprintf(ret, bytes, "profile %s", profile);
    if (n > 0 && (size_t)n < bytes && pen__ini_has(files->config, ret))
        return 1;
    if (strcmp(profile, "default") != 0 || !pen__ini_has(files->config, profile))
        return 0;
    snprintf(ret, bytes, "default");
    return 1;
}

int pen__aws_profile_has(const PenAwsFiles *files, const char *profile)
{
    char section[256];
    return pen__ini_has(files->credentials, profile) ||
           config_section(files, profile, section, sizeof section);
}

const char *pen__aws_profile_get(const PenAwsFiles *files, const char *profile, const char *block,
                                 const char *key)
{
    char section[256];
    const char *value = pen__ini_get(files->credentials, profile, block, key);
    if (!value && config_section(files, profile, section, sizeof section))
        value = pen__ini_get(files->config, section, block, key);
    return value && *value ? value : NULL;
}

const char *pen__aws_region(const PenAwsFiles *files, const char *profile)
{
    const char *region = pen__aws_env_get(files->env, "AWS_REGION");
    if (!region)
        region = pen__aws_env_get(files->env, "AWS_DEFAULT_REGION");
    return region ? region : pen__aws_profile_get(files, profile, NULL, "region");
}

static const char *services_endpoint(const PenAwsFiles *files, const char *profile,
                                     const char *service)
{
    char section[256];
    const char *name = pen__aws_profile_get(files, profile, NULL, "services");
    if (!name)
        return NULL;
    int n = snprintf(section, sizeof section, "services %s", name);
    if (n < 0 || (size_t)n >= sizeof section)
        return NULL;
    const char *url = pen__ini_get(files->config, section, service, "endpoint_url");
    return url && *url ? url : NULL;
}

const char *pen__aws_endpoint(const PenAwsFiles *files, const char *profile, const char *service)
{
    const char *variable =
        strcmp(service, "s3") == 0 ? "AWS_ENDPOINT_URL_S3" : "AWS_ENDPOINT_URL_STS";
    const char *url = pen__aws_env_get(files->env, variable);
    if (!url)
        url = pen__aws_env_get(files->env, "AWS_ENDPOINT_URL");
    if (url || pen__aws_env_is_true(files->env, "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS") ||
        pen__aws_is_true(
            pen__aws_profile_get(files, profile, NULL, "ignore_configured_endpoint_urls")))
        return url;
    url = services_endpoint(files, profile, service);
    return url ? url : pen__aws_profile_get(files, profile, NULL, "endpoint_url");
}

void pen__aws_clean(PenError *err)
{
    for (char *c = err ? err->message : NULL; c && *c; c++)
        if ((unsigned char)*c < ' ' || *c == 127)
            *c = '?';
}
