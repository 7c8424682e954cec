/* SPDX-License-Identifier: Apache-2.0 */
#include "net/s3/response.h"

#include <openssl/crypto.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "net/s3/response_fields.h"

#define WHERE "net/s3"
#define LEAF(path, kind, type, field, needed)                                                      \
    {                                                                                              \
        path, PEN_S3_##kind, offsetof(type, field), sizeof(((type *)0)->field), needed             \
    }

static const PenS3Leaf started_leaves[] = {
    LEAF("UploadId", STRING, PenS3Started, upload_id, 1),
    {0},
};
static const PenS3Shape started_shape = {
    .roots = {"InitiateMultipartUploadResult"},
    .leaves = started_leaves,
};

static const PenS3Leaf completed_leaves[] = {
    LEAF("ETag", ETAG, PenS3Completed, etag, 0),
    {0},
};
static const PenS3Shape completed_shape = {
    .roots = {"CompleteMultipartUploadResult"},
    .leaves = completed_leaves,
};

static const PenS3Leaf uploads_leaves[] = {
    LEAF("IsTruncated", FLAG, PenS3Uploads, more, 0),
    LEAF("NextKeyMarker", KEY, PenS3Uploads, next_key, 0),
    LEAF("NextUploadIdMarker", STRING, PenS3Uploads, next_id, 0),
    LEAF("EncodingType", URL, PenS3Uploads, encoded, 0),
    {0},
};
static const PenS3Leaf upload_leaves[] = {
    LEAF("Key", KEY, PenS3Upload, key, 1),
    LEAF("UploadId", STRING, PenS3Upload, id, 1),
    LEAF("Initiated", TIME, PenS3Upload, started_s, 0),
    {0},
};
static const PenS3Shape uploads_shape = {
    .roots = {"ListMultipartUploadsResult"},
    .leaves = uploads_leaves,
    .item = "Upload",
    .item_leaves = upload_leaves,
    .item_bytes = sizeof(PenS3Upload),
    .encoded = offsetof(PenS3Uploads, encoded),
};

static const PenS3Leaf objects_leaves[] = {
    LEAF("IsTruncated", FLAG, PenS3Objects, more, 0),
    LEAF("NextContinuationToken", STRING, PenS3Objects, next_token, 0),
    LEAF("EncodingType", URL, PenS3Objects, encoded, 0),
    {0},
};
static const PenS3Leaf object_leaves[] = {
    LEAF("Key", KEY, PenS3Object, key, 1),
    LEAF("Size", NUMBER, PenS3Object, bytes, 1),
    LEAF("ETag", ETAG, PenS3Object, etag, 0),
    LEAF("LastModified", TIME, PenS3Object, changed_s, 0),
    {0},
};
static const PenS3Shape objects_shape = {
    .roots = {"ListBucketResult"},
    .leaves = objects_leaves,
    .item = "Contents",
    .item_leaves = object_leaves,
    .item_bytes = sizeof(PenS3Object),
    .encoded = offsetof(PenS3Objects, encoded),
};

static const PenS3Leaf prefixes_leaves[] = {
    LEAF("IsTruncated", FLAG, PenS3Prefixes, more, 0),
    LEAF("NextContinuationToken", STRING, PenS3Prefixes, next_token, 0),
    LEAF("EncodingType", URL, PenS3Prefixes, encoded, 0),
    {0},
};
static const PenS3Leaf prefix_leaves[] = {
    LEAF("Prefix", KEY, PenS3Prefix, prefix, 1),
    {0},
};
static const PenS3Shape prefixes_shape = {
    .roots = {"ListBucketResult"},
    .leaves = prefixes_leaves,
    .item = "CommonPrefixes",
    .item_leaves = prefix_leaves,
    .item_bytes = sizeof(PenS3Prefix),
    .encoded = offsetof(PenS3Prefixes, encoded),
};

#define STS(result)                                                                                \
    LEAF(result "/Credentials/AccessKeyId", TEXT, PenStsCredentials, key_id, 0),                   \
        LEAF(result "/Credentials/SecretAccessKey", TEXT, PenStsCredentials, secret, 0),           \
        LEAF(result "/Credentials/SessionToken", TEXT, PenStsCredentials, token, 0),               \
        LEAF(result "/Credentials/Expiration", TIME, PenStsCredentials, expires_s, 0)
static const PenS3Leaf sts_leaves[] = {
    STS("AssumeRoleResult"),
    STS("AssumeRoleWithWebIdentityResult"),
    {0},
};
static const PenS3Shape sts_shape = {
    .roots = {"AssumeRoleResponse", "AssumeRoleWithWebIdentityResponse"},
    .leaves = sts_leaves,
};

/* A list that says that it goes on, but not from where, would be asked for again and again. */
static int no_mark(PenError *reterr)
{
    return pen__fail(reterr, PEN_E_CORRUPT, WHERE,
                     "response: expected a continuation token in a truncated list, found none");
}

/* Reads into a cleared struct and hands it over, or frees what it holds. */
#define READ(type, shape, check)                                                                   \
    type found = {0};                                                                              \
    int r = pen__s3_shape_read(&(shape), body, bytes, &found, ret_refused, reterr);                \
    if (r == PEN_OK)                                                                               \
        r = check;                                                                                 \
    if (r == PEN_OK)                                                                               \
        *ret = found;                                                                              \
    else                                                                                           \
        pen__s3_shape_free(&(shape), &found);                                                      \
    return r

int pen__s3_read_started(const void *body, size_t bytes, PenS3Started *ret, PenS3Error *ret_refused,
                         PenError *reterr)
{
    READ(PenS3Started, started_shape, PEN_OK);
}

int pen__s3_read_completed(const void *body, size_t bytes, PenS3Completed *ret,
                           PenS3Error *ret_refused, PenError *reterr)
{
    READ(PenS3Completed, completed_shape, PEN_OK);
}

int pen__s3_read_uploads(const void *body, size_t bytes, PenS3Uploads *ret, PenS3Error *ret_refused,
                         PenError *reterr)
{
    READ(PenS3Uploads, uploads_shape, found.more && !found.next_key ? no_mark(reterr) : PEN_OK);
}

int pen__s3_read_objects(const void *body, size_t bytes, PenS3Objects *ret, PenS3Error *ret_refused,
                         PenError *reterr)
{
    READ(PenS3Objects, objects_shape, found.more && !found.next_token ? no_mark(reterr) : PEN_OK);
}

int pen__s3_read_prefixes(const void *body, size_t bytes, PenS3Prefixes *ret,
                          PenS3Error *ret_refused, PenError *reterr)
{
    READ(PenS3Prefixes, prefixes_shape, found.more && !found.next_token ? no_mark(reterr) : PEN_OK);
}

void pen__s3_started_free(PenS3Started *s)
{
    pen__s3_shape_free(&started_shape, s);
    *s = (PenS3Started){0};
}

void pen__s3_uploads_free(PenS3Uploads *u)
{
    pen__s3_shape_free(&uploads_shape, u);
    *u = (PenS3Uploads){0};
}

void pen__s3_objects_free(PenS3Objects *o)
{
    pen__s3_shape_free(&objects_shape, o);
    *o = (PenS3Objects){0};
}

void pen__s3_prefixes_free(PenS3Prefixes *p)
{
    pen__s3_shape_free(&prefixes_shape, p);
    *p = (PenS3Prefixes){0};
}

int pen__sts_read_credentials(const void *body, size_t bytes, PenStsCredentials *ret,
                              PenS3Error *ret_refused, PenError *reterr)
{
    PenStsCredentials found = {.expires_s = 0};
    int r = pen__s3_shape_read(&sts_shape, body, bytes, &found, ret_refused, reterr);
    if (r == PEN_OK &&
        (!found.key_id[0] || !found.secret[0] || !found.token[0] || !found.expires_s))
        r = pen__fail(
            reterr, PEN_E_CORRUPT, WHERE,
            "response: expected AccessKeyId, SecretAccessKey, SessionToken and Expiration");
    if (r == PEN_OK)
        *ret = found;
    pen__sts_credentials_wipe(&found);
    return r;
}

void pen__sts_credentials_wipe(PenStsCredentials *keys)
{
    OPENSSL_cleanse(keys, sizeof *keys);
}
