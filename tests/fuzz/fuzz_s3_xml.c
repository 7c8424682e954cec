/* SPDX-License-Identifier: Apache-2.0 */
/* An answer's XML, read as every kind of answer. What is accepted holds together. */
#include <stdlib.h>
#include <string.h>

#include "help.h"
#include "net/s3/response.h"
#include "net/s3/xml.h"

static int note(void *ctx, const char *path, const char *text, size_t bytes, PenError *reterr)
{
    (void)reterr;
    REQUIRE(strlen(text) == bytes && bytes <= *(size_t *)ctx);
    REQUIRE(*path && strlen(path) < PEN_XML_PATH_BYTES);
    return PEN_OK;
}

static void check_error(const PenS3Error *e)
{
    const char *texts[] = {e->code, e->message, e->region, e->endpoint, e->request_id};
    for (size_t i = 0; i < 5; i++)
        for (const char *s = texts[i]; *s; s++)
            REQUIRE((unsigned char)*s >= ' ' && *s != 0x7F);
}

/* 1: accepted, 0: an error of the server's or of ours. */
static int accepted(int r, const PenS3Error *refused)
{
    if (r == 1)
        check_error(refused);
    return r == PEN_OK;
}

static void read_lists(const uint8_t *body, size_t bytes)
{
    PenError err;
    PenS3Error refused;
    PenS3Uploads u;
    PenS3Objects o;
    PenS3Prefixes p;
    if (accepted(CALL(pen__s3_read_uploads(body, bytes, &u, &refused, &err)), &refused)) {
        REQUIRE(u.n <= 1000 && (!u.more || u.next_key));
        for (size_t i = 0; i < u.n; i++)
            REQUIRE(*u.items[i].key && *u.items[i].id);
        pen__s3_uploads_free(&u);
    }
    if (accepted(CALL(pen__s3_read_objects(body, bytes, &o, &refused, &err)), &refused)) {
        REQUIRE(o.n <= 1000 && (!o.more || o.next_token));
        for (size_t i = 0; i < o.n; i++)
            REQUIRE(*o.items[i].key && strlen(o.items[i].etag) < sizeof o.items[i].etag);
        pen__s3_objects_free(&o);
    }
    if (accepted(CALL(pen__s3_read_prefixes(body, bytes, &p, &refused, &err)), &refused)) {
        REQUIRE(p.n <= 1000 && (!p.more || p.next_token));
        for (size_t i = 0; i < p.n; i++)
            REQUIRE(*p.items[i].prefix);
        pen__s3_prefixes_free(&p);
    }
}

static void read_single(const uint8_t *body, size_t bytes)
{
    static PenStsCredentials keys;
    PenError err;
    PenS3Error refused;
    PenS3Started s;
    PenS3Completed c;
    if (accepted(CALL(pen__s3_read_started(body, bytes, &s, &refused, &err)), &refused)) {
        REQUIRE(*s.upload_id);
        pen__s3_started_free(&s);
    }
    (void)accepted(CALL(pen__s3_read_completed(body, bytes, &c, &refused, &err)), &refused);
    if (accepted(CALL(pen__sts_read_credentials(body, bytes, &keys, &refused, &err)), &refused)) {
        REQUIRE(*keys.key_id && *keys.secret && *keys.token && keys.expires_s);
        pen__sts_credentials_wipe(&keys);
    }
    if (pen__s3_error(body, bytes, &refused)) {
        REQUIRE(*refused.code);
        check_error(&refused);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static const PenXmlCalls calls = {NULL, note};
    PenError err;
    uint8_t *body = copy_of(data, bytes);
    if (GOES(pen__xml_read(body, bytes, &calls, &bytes, &err))) {
        read_lists(body, bytes);
        read_single(body, bytes);
    } else {
        PenS3Error refused;
        if (pen__s3_error(body, bytes, &refused))
            check_error(&refused);
    }
    free(body);
    return 0;
}
