/* SPDX-License-Identifier: Apache-2.0 */
#include "net/aws/environment.h"

#include <stdint.h>
#include <string.h>
#include <strings.h>

#include "base/attr.h"
#include "base/error.h"
#include "base/sys.h"

#define WHERE "net/aws_config"

enum { VALUE_BYTES = 65536 }; /* the longest value that is taken */

static const char *const names[] = {
    "HOME",
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "AWS_SECURITY_TOKEN",
    "AWS_PROFILE",
    "AWS_DEFAULT_PROFILE",
    "AWS_CONFIG_FILE",
    "AWS_SHARED_CREDENTIALS_FILE",
    "AWS_REGION",
    "AWS_DEFAULT_REGION",
    "AWS_ENDPOINT_URL",
    "AWS_ENDPOINT_URL_S3",
    "AWS_ENDPOINT_URL_STS",
    "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS",
    "AWS_CA_BUNDLE",
    "AWS_S3_NO_SIGN_REQUEST",
    "AWS_NO_SIGN_REQUEST",
    "AWS_SKIP_SIGNATURE",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AWS_ROLE_ARN",
    "AWS_ROLE_SESSION_NAME",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
    "AWS_CONTAINER_AUTHORIZATION_TOKEN",
    "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE",
    "AWS_EC2_METADATA_DISABLED",
    "AWS_EC2_METADATA_SERVICE_ENDPOINT",
    "AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE",
};
_Static_assert(PEN_LEN(names) <= PEN_AWS_ENV_MAX, "a place for each value");

int pen__aws_env_read(PenAwsEnv *ret, PenError *reterr)
{
    const char *found[PEN_LEN(names)];
    size_t bytes = 0;
    for (size_t i = 0; i < PEN_LEN(names); i++) {
        found[i] = pen__sys->environment(names[i]);
        size_t n = found[i] ? strlen(found[i]) : 0;
        if (n > VALUE_BYTES)
            return pen__fail(reterr, PEN_E_LIMIT, WHERE, "%s: longer than %d bytes", names[i],
                             VALUE_BYTES);
        bytes += n + 1;
    }
    PenAwsEnv env = {.text = {0}};
    int r = pen__secret_memory_new(bytes, &env.text, reterr);
    if (r < 0)
        return r;
    for (size_t i = 0; i < PEN_LEN(names); i++) {
        if (!found[i] || !*found[i])
            continue;
        env.values[i] = env.text.data + env.text.bytes;
        (void)pen__secret_memory_add(&env.text, found[i], strlen(found[i]) + 1);
    }
    *ret = env;
    return PEN_OK;
}

void pen__aws_env_free(PenAwsEnv *env)
{
    pen__secret_memory_free(&env->text);
    *env = (PenAwsEnv){.text = {0}};
}

const char *pen__aws_env_get(const PenAwsEnv *env, const char *name)
{
    for (size_t i = 0; i < PEN_LEN(names); i++)
        if (strcmp(names[i], name) == 0)
            return env->values[i];
    return NULL;
}

int pen__aws_is_true(const char *text)
{
    return text && (strcasecmp(text, "true") == 0 || strcasecmp(text, "yes") == 0 ||
                    strcasecmp(text, "on") == 0 || strcmp(text, "1") == 0);
}

int pen__aws_env_is_true(const PenAwsEnv *env, const char *name)
{
    return pen__aws_is_true(pen__aws_env_get(env, name));
}
