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

/* Texts are cut to their room; control characters are spaces, so that they can be shown. Elements
 * that repeat what was sent (string to sign, canonical request, key id) are not read. */
typedef struct PenS3Error {
    char code[64]; /* "SlowDown" */
    char message[256];
    char region[64]; /* where the bucket is */
    char endpoint[256];
    char request_id[128];
} PenS3Error;

/* 1: the body says a code. Of a body that was cut it takes what is there. */
int pen__s3_error(const void *body, size_t bytes, PenS3Error *ret);

typedef struct PenS3Started {
    char *upload_id;
} PenS3Started;

typedef struct PenS3Completed {
    char etag[132];
} PenS3Completed;

/* Lists are pages of up to 1,000; more is PEN_E_LIMIT. When `more` is set, the marks to go on from
 * are there. ETags have their quotes. Keys are decoded when the answer says that they are encoded.
 */
typedef struct PenS3Part {
    uint64_t number; /* 1 to 10,000 */
    uint64_t bytes;
    char etag[132];
    char crc32c[16], sha256[48]; /* base64; "" when not said */
} PenS3Part;

typedef struct PenS3Parts {
    PenS3Part *items;
    size_t n;
    uint8_t more;
    uint64_t next_number; /* part-number-marker */
} PenS3Parts;

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

int pen__s3_read_started(const void *body, size_t bytes, PenS3Started *ret, PenS3Error *ret_refused,
                         PenError *reterr);
int pen__s3_read_completed(const void *body, size_t bytes, PenS3Completed *ret,
                           PenS3Error *ret_refused, PenError *reterr);
int pen__s3_read_parts(const void *body, size_t bytes, PenS3Parts *ret, PenS3Error *ret_refused,
                       PenError *reterr);
int pen__s3_read_uploads(const void *body, size_t bytes, PenS3Uploads *ret, PenS3Error *ret_refused,
                         PenError *reterr);
int pen__s3_read_objects(const void *body, size_t bytes, PenS3Objects *ret, PenS3Error *ret_refused,
                         PenError *reterr);
void pen__s3_started_free(PenS3Started *s);
void pen__s3_parts_free(PenS3Parts *p);
void pen__s3_uploads_free(PenS3Uploads *u);
void pen__s3_objects_free(PenS3Objects *o);

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
