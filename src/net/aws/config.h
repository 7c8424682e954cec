/* SPDX-License-Identifier: Apache-2.0 */
/* What environment and profile say besides credentials. */
#ifndef PEN_NET_AWS_CONFIG_H
#define PEN_NET_AWS_CONFIG_H

#include <stdint.h>

#include <penstock/error.h>

/* region, endpoint, ... of the environment and the profile; "" when not said. */
typedef struct PenAwsConfig {
    char region[64];
    char endpoint[512]; /* AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL, the profile's endpoint_url (and
                           its services) */
    char ca_file[1024]; /* AWS_CA_BUNDLE, ca_bundle */
    char profile[128];
    uint8_t path_style; /* s3 = addressing_style */
    uint8_t unsigned_;  /* AWS_S3_NO_SIGN_REQUEST=YES and the like */
} PenAwsConfig;
int pen__aws_config(const char *profile, PenAwsConfig *ret, PenError *reterr);

#endif
