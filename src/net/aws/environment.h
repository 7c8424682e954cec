/* SPDX-License-Identifier: Apache-2.0 */
/* The variables of the environment that matter here, as they were at one moment. Read by the thread
 * that opens things and not later: another may change the environment, and getenv is not safe
 * against that. Some are secret. */
#ifndef PEN_NET_AWS_ENVIRONMENT_H
#define PEN_NET_AWS_ENVIRONMENT_H

#include "base/secret_memory.h"

#define PEN_AWS_ENV_MAX 40

typedef struct PenAwsEnv {
    PenSecretMemory text;
    const char *values[PEN_AWS_ENV_MAX]; /* NULL when not set or empty */
} PenAwsEnv;

int pen__aws_env_read(PenAwsEnv *ret, PenError *reterr);
void pen__aws_env_free(PenAwsEnv *env);
/* NULL when not set or empty. Only for the names that environment.c lists. */
const char *pen__aws_env_get(const PenAwsEnv *env, const char *name);
/* Is it true, yes, on or 1, in any case? */
int pen__aws_env_is_true(const PenAwsEnv *env, const char *name);
int pen__aws_is_true(const char *text); /* accepts NULL */

#endif
