/* SPDX-License-Identifier: Apache-2.0 */
/* An answer's elements as data: which one goes where in a plain struct. */
#ifndef PEN_NET_S3_RESPONSE_FIELDS_H
#define PEN_NET_S3_RESPONSE_FIELDS_H

#include <stddef.h>
#include <stdint.h>

#include <penstock/error.h>

#define PEN_S3_ITEMS 1000

/* Texts are cut to the size of the array; control characters are spaces, so that they can be shown.
 * Elements that repeat what was sent (string to sign, canonical request, key id) are not read. */
typedef struct PenS3Error {
    char code[64]; /* "SlowDown" */
    char message[256];
    char region[64]; /* where the bucket is */
    char endpoint[256];
    char request_id[128];
} PenS3Error;

/* 1: the body says a code. Of a body that was cut it takes what is there. */
int pen__s3_error(const void *body, size_t bytes, PenS3Error *ret);

typedef enum PenS3Kind {
    PEN_S3_TEXT,   /* char[capacity]; longer is an error */
    PEN_S3_CUT,    /* char[capacity]; longer is cut, control characters become spaces */
    PEN_S3_ETAG,   /* char[capacity]; gets quotes where it has none */
    PEN_S3_STRING, /* char *, of its own */
    PEN_S3_KEY,    /* the same; decoded at the end when the answer is encoded */
    PEN_S3_NUMBER, /* uint64_t */
    PEN_S3_FLAG,   /* uint8_t: "true" or "false" */
    PEN_S3_URL,    /* uint8_t: 1 for "url" */
    PEN_S3_TIME    /* uint64_t */
} PenS3Kind;

typedef struct PenS3Leaf {
    const char *path; /* below the root; of an item's leaf below the item */
    PenS3Kind kind;
    size_t offset, capacity;
    uint8_t needed;
} PenS3Leaf;

/* NULL-terminated texts; leaves end with a path of NULL. */
typedef struct PenS3Shape {
    const char *roots[3];
    const PenS3Leaf *leaves;
    const char *item; /* NULL: no list. Else `items` and `n` come first in the struct */
    const PenS3Leaf *item_leaves;
    size_t item_bytes;
    size_t encoded; /* offset of the flag, 0: none */
} PenS3Shape;

typedef struct PenS3List {
    void *items;
    size_t n;
} PenS3List;

/* `ret` is cleared, `bytes` long, and freed by pen__s3_shape_free, also after a failure. */
int pen__s3_shape_read(const PenS3Shape *shape, const void *body, size_t bytes, void *ret,
                       PenS3Error *ret_refused, PenError *reterr);
void pen__s3_shape_free(const PenS3Shape *shape, void *of);

#endif
