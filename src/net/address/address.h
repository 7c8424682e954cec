/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses: s3://bucket/key, https://host/path, http://host/path; and the URLs made of them. */
#ifndef PEN_NET_ADDRESS_ADDRESS_H
#define PEN_NET_ADDRESS_ADDRESS_H

#include <penstock/error.h>

#include "base/mem.h"

/* Buffers that functions here return text in: it is added behind what they hold, and a NUL follows
 * that `bytes` does not count; a failure leaves them as they were. */

/* 1: `text` begins with s3://, https:// or http:// in any case; 0: a path. */
int pen__address_is_remote(const char *text);

typedef enum PenScheme { PEN_SCHEME_S3, PEN_SCHEME_HTTPS, PEN_SCHEME_HTTP } PenScheme;

/* One allocation; pen__address_free. Refused: user:password@, a query or fragment on s3 and http(s)
 * (a signed URL is a credential), control characters, "." and ".." segments, empty buckets or
 * hosts, bucket names S3 does not allow, keys over 1,024 bytes, what is not UTF-8. No message shows
 * anything of a query or of what stands before an @. */
typedef struct PenAddress {
    PenScheme scheme;
    char *host;    /* https, http: host or [v6], lower case; s3: NULL */
    uint16_t port; /* 0: the scheme's own */
    char *bucket;  /* s3 */
    char *path;    /* s3: the key without a leading slash, as it is, not encoded, may be empty;
                    * http(s): as given, percent-encoded (what must be and was not now is), with
                    * its slash */
} PenAddress;

int pen__address_parse(const char *text, PenAddress *ret, PenError *reterr);
void pen__address_free(PenAddress *a);
/* The address of `name` under the prefix `a`; as text again, without anything secret. */
int pen__address_join(const PenAddress *a, const char *name, PenAddress *ret, PenError *reterr);
int pen__address_text(const PenAddress *a, PenBuf *ret);
int pen__host_is_ipv4(const char *text, size_t bytes);

/* Where S3 requests go. Plain values, copied from the environment, a profile or arguments. */
typedef struct PenEndpoint {
    char scheme[8];  /* "https" */
    char host[256];  /* without the bucket; may carry a port */
    char base[256];  /* path before the bucket, "" mostly */
    char region[64]; /* "us-east-1" */
    uint8_t
        path_style;    /* bucket in the path: set for given endpoints; without it still so for
                        * buckets that are no host names (dots, capitals) and hosts without names */
    uint8_t unsigned_; /* no signature */
    uint8_t requester_pays;
    uint8_t allow_http; /* secrets may go over http to other than loopback */
} PenEndpoint;

/* endpoint: "https://host[:port][/base]", or NULL or "" for AWS by region (also cn-, us-gov-).
 * region: NULL or "" for the default, "us-east-1" or what the endpoint's owner calls "auto". */
int pen__endpoint_make(const char *endpoint, const char *region, PenEndpoint *ret,
                       PenError *reterr);
/* 1 when secrets may be sent there: https, or loopback, or allow_http. */
int pen__endpoint_is_safe(const PenEndpoint *e);
/* The URL of an object, or of the bucket when key is ""; query is NULL or "a=b&c=d" already encoded
 * and sorted. ret_host (may be NULL) gets the Host header's value. PEN_E_NO_MEMORY. */
int pen__endpoint_url(const PenEndpoint *e, const char *bucket, const char *key, const char *query,
                      PenBuf *ret_url, PenBuf *ret_host);

#endif
