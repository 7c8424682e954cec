/* SPDX-License-Identifier: Apache-2.0 */
/* What S3 and STS answer in XML, as plain values.
 *
 * Every pen__s3_read_* returns 0; 1 when the answer is an error in spite of its status 200
 * (CompleteMultipartUpload does that), which then is in ret_refused; PEN_E_CORRUPT for what is no
 * such answer, PEN_E_LIMIT, PEN_E_NO_MEMORY. */
#ifndef PEN_NET_S3_RESPONSE_H
#define PEN_NET_S3_RESPONSE_H

#include <stddef.h>
#include <stdint.h>

#include <penstock/error.h>

#include "net/s3/response_fields.h"

typedef struct PenS3Started {
    char *upload_id;
} PenS3Started;

typedef struct PenS3Completed {
    char etag[132];
} PenS3Completed;

/* Lists are pages of up to 1,000; more is PEN_E_LIMIT. When `more` is set, the marks to go on from
 * are there. ETags have their quotes. Keys are decoded when the answer says that they are encoded.
 */
typedef struct PenS3Upload {
    char *key, *id;
    uint64_t started_s; /* 0: not said */
} PenS3Upload;

typedef struct PenS3Uploads {
    PenS3Upload *items;
    size_t n;
    uint8_t more, encoded;
    char *next_key, *next_id; /* key-marker, upload-id-marker; next_id may be NULL */
} PenS3Uploads;

typedef struct PenS3Object {
    char *key;
    uint64_t bytes;
    char etag[132];
    uint64_t changed_s; /* 0: not said */
} PenS3Object;

typedef struct PenS3Objects {
    PenS3Object *items;
    size_t n;
    uint8_t more, encoded;
    char *next_token; /* continuation-token */
} PenS3Objects;

/* Of a list with a delimiter: what lies before it in keys, with the delimiter. Such a page also has
 * objects. */
typedef struct PenS3Prefix {
    char *prefix;
} PenS3Prefix;

typedef struct PenS3Prefixes {
    PenS3Prefix *items;
    size_t n;
    uint8_t more, encoded;
    char *next_token;
} PenS3Prefixes;

int pen__s3_read_started(const void *body, size_t bytes, PenS3Started *ret, PenS3Error *ret_refused,
                         PenError *reterr);
int pen__s3_read_completed(const void *body, size_t bytes, PenS3Completed *ret,
                           PenS3Error *ret_refused, PenError *reterr);
int pen__s3_read_uploads(const void *body, size_t bytes, PenS3Uploads *ret, PenS3Error *ret_refused,
                         PenError *reterr);
int pen__s3_read_objects(const void *body, size_t bytes, PenS3Objects *ret, PenS3Error *ret_refused,
                         PenError *reterr);
int pen__s3_read_prefixes(const void *body, size_t bytes, PenS3Prefixes *ret,
                          PenS3Error *ret_refused, PenError *reterr);
void pen__s3_started_free(PenS3Started *s);
void pen__s3_uploads_free(PenS3Uploads *u);
void pen__s3_objects_free(PenS3Objects *o);
void pen__s3_prefixes_free(PenS3Prefixes *p);

/* Of AssumeRole and AssumeRoleWithWebIdentity. */
typedef struct PenStsCredentials {
    char key_id[257];
    char secret[513];
    char token[16385];
    uint64_t expires_s;
} PenStsCredentials;

int pen__sts_read_credentials(const void *body, size_t bytes, PenStsCredentials *ret,
                              PenS3Error *ret_refused, PenError *reterr);
void pen__sts_credentials_wipe(PenStsCredentials *keys);

#endif
