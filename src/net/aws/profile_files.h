/* SPDX-License-Identifier: Apache-2.0 */
/* The files users of AWS keep their profiles in: ~/.aws/config and ~/.aws/credentials, or where
 * AWS_CONFIG_FILE and AWS_SHARED_CREDENTIALS_FILE say. */
#ifndef PEN_NET_AWS_PROFILE_FILES_H
#define PEN_NET_AWS_PROFILE_FILES_H

#include <stdint.h>

#include "net/aws/environment.h"
#include "net/aws/ini.h"

typedef struct PenAwsFiles {
    const PenAwsEnv *env;         /* outlives it */
    PenIni *config, *credentials; /* NULL when there is no such file */
    char config_path[1024], credentials_path[1024];
    char profile[128];
    uint8_t named; /* by a setting or the environment: has to be there */
} PenAwsFiles;

/* The profile: `profile`, else AWS_PROFILE, AWS_DEFAULT_PROFILE, "default". One that was named and
 * is in neither file is PEN_E_NOT_FOUND. */
int pen__aws_files_open(const PenAwsEnv *env, const char *profile, PenAwsFiles *ret,
                        PenError *reterr);
void pen__aws_files_close(PenAwsFiles *files);

int pen__aws_profile_has(const PenAwsFiles *files, const char *profile);
/* The credentials file counts before the config file. NULL when it is not said, or empty. */
const char *pen__aws_profile_get(const PenAwsFiles *files, const char *profile, const char *block,
                                 const char *key);
/* Where requests for "s3" or "sts" are to go: AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL, the profile's
 * [services] section, its endpoint_url; NULL when nobody says. */
const char *pen__aws_endpoint(const PenAwsFiles *files, const char *profile, const char *service);
const char *pen__aws_region(const PenAwsFiles *files, const char *profile); /* or NULL */

/* Names and paths go into messages: what could break a line there becomes "?". */
void pen__aws_clean(PenError *err); /* accepts NULL */

#endif
