/* SPDX-License-Identifier: Apache-2.0 */
/* AWS Signature Version 4, on libcrypto. */
#ifndef PEN_NET_AWS_SIGN_H
#define PEN_NET_AWS_SIGN_H

#include <penstock/error.h>

#include "base/mem.h"
#include "net/http/message.h"

typedef struct PenSigning {
    const char *key_id, *secret, *token; /* token NULL when there is none */
    const char *region, *service;        /* "s3", "sts" */
    uint64_t unix_s;                     /* corrected for the server's clock */
} PenSigning;

/* What a signature adds, to be sent as headers: each in the order the array below has. */
typedef struct PenSigned {
    char date[20];           /* x-amz-date */
    char content_sha256[65]; /* x-amz-content-sha256 */
    PenBuf authorization;    /* Authorization; ends in NUL */
} PenSigned;

typedef struct PenToSign {
    const char *method;
    const char *url;              /* as it is sent: path encoded once, query encoded and sorted */
    const PenHttpHeader *headers; /* to be signed besides host, x-amz-date, x-amz-content-sha256,
                                   * x-amz-security-token: any order and case */
    size_t n_headers;
    const char *payload_hash; /* 64 hex digits or "UNSIGNED-PAYLOAD" */
} PenToSign;

/* A path or query that servers would write differently (not strictly encoded, not sorted, a name
 * without '=') is refused here, where it can be said, and not by the server as a bad signature:
 * what pen__endpoint_url and pen__query_make have made is right. The Host header that is sent has
 * to be what the URL says. */
int pen__sign(const PenSigning *with, const PenToSign *what, PenSigned *ret, PenError *reterr);
void pen__signed_free(PenSigned *s); /* wipes */

/* Encodes names and values and sorts them, as both the URL and the signature have it. A value may
 * be NULL: "uploads" becomes "uploads=". Added to `ret` as in address.h. PEN_E_NO_MEMORY,
 * PEN_E_LIMIT over 64 pairs. */
int pen__query_make(const PenHttpHeader *pairs, size_t n, PenBuf *ret);

void pen__sha256_hex(const void *data, size_t bytes, char ret[65]);

#endif
