/* SPDX-License-Identifier: Apache-2.0 */
/* An address: up to the first NUL. What is accepted reads the same when written down, and leads to
 * URLs that can be signed; what stands before an @ or behind a ? is in no message. Behind the NUL
 * there is a name below it; an object's name may have marks that no address may. */
#include <stdlib.h>
#include <string.h>

#include "help.h"
#include "net/address/address.h"
#include "net/aws/sign.h"

#define HASH "UNSIGNED-PAYLOAD"

static void read_again(const PenAddress *a)
{
    PenError err;
    PenAddress b;
    PenBuf text = {0};
    REQUIRE(pen__address_text(a, &text) == PEN_OK && strlen((char *)text.data) == text.bytes);
    REQUIRE(!strpbrk((char *)text.data, "?#"));
    MUST(pen__address_parse((char *)text.data, &b, &err));
    REQUIRE(a->scheme == b.scheme && a->port == b.port && !a->host == !b.host);
    REQUIRE(strcmp(a->host ? a->host : a->bucket, b.host ? b.host : b.bucket) == 0);
    REQUIRE(strcmp(a->path, b.path) == 0);
    pen__address_free(&b);
    pen__buf_free(&text);
}

static void sign(const PenEndpoint *e, const char *bucket, const char *key)
{
    static const PenSigning with = {"id", "secret", NULL, "us-east-1", "s3", 1};
    PenHttpHeader pairs[] = {{"uploads", NULL}, {"prefix", key}, {key, bucket}};
    PenError err;
    PenSigned made;
    PenBuf query = {0}, url = {0}, host = {0};
    REQUIRE(pen__query_make(pairs, 3, &query) == PEN_OK);
    REQUIRE(pen__endpoint_url(e, bucket, key, (char *)query.data, &url, &host) == PEN_OK);
    PenToSign what = {"GET", (char *)url.data, NULL, 0, HASH};
    MUST(pen__sign(&with, &what, &made, &err));
    pen__signed_free(&made);
    pen__buf_free(&query);
    pen__buf_free(&url);
    pen__buf_free(&host);
}

static void use(const PenAddress *a, const char *text, const char *name)
{
    PenError err;
    PenAddress below;
    PenEndpoint e;
    read_again(a);
    if (a->scheme == PEN_SCHEME_S3)
        MUST(pen__endpoint_make(NULL, "eu-west-1", &e, &err));
    if (GOES(pen__address_join(a, name, &below, &err))) {
        if (a->scheme == PEN_SCHEME_S3)
            sign(&e, below.bucket, below.path);
        if (a->scheme != PEN_SCHEME_S3 || !strpbrk(name, "?#"))
            read_again(&below);
        pen__address_free(&below);
    }
    if (a->scheme == PEN_SCHEME_S3) {
        sign(&e, a->bucket, a->path);
    } else if (GOES(pen__endpoint_make(text, NULL, &e, &err))) {
        sign(&e, "bucket", name);
        e.path_style = 0;
        sign(&e, "bucket", name);
    }
}

/* The message has nothing of four or more bytes that only stands where secrets do. */
static void check_message(const char *text, const char *message)
{
    const char *rest = strstr(text, "://"), *at = strrchr(text, '@');
    if (rest && at > rest) {
        const char *shown = strstr(message, "://");
        REQUIRE(!shown || strncmp(shown, "://...", 6) == 0);
    } else if (rest && strpbrk(rest, "?#")) {
        const char *query = strpbrk(rest, "?#");
        size_t before = (size_t)(query - text);
        const char *cut = strstr(message, "...");
        REQUIRE(cut && (size_t)(cut - message) <= before);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    PenError err;
    PenAddress a;
    size_t text_bytes = strnlen((const char *)data, bytes);
    size_t name_at = text_bytes < bytes ? text_bytes + 1 : bytes;
    size_t name_bytes = strnlen((const char *)data + name_at, bytes - name_at);
    char *text = malloc(text_bytes + 1), *name = malloc(name_bytes + 1);
    memcpy(text, data, text_bytes);
    memcpy(name, data + name_at, name_bytes);
    text[text_bytes] = name[name_bytes] = 0;
    if (GOES(pen__address_parse(text, &a, &err))) {
        REQUIRE(pen__address_is_remote(text));
        use(&a, text, name);
        pen__address_free(&a);
    } else if (pen__address_is_remote(text)) {
        check_message(text, err.message);
    }
    free(text);
    free(name);
    return 0;
}
