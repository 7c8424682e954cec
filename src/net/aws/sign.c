/* SPDX-License-Identifier: Apache-2.0 */
/* Checks what is to be signed, derives the key and writes the Authorization header. */
#include "net/aws/sign.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/error.h"
#include "base/sha256.h"
#include "net/aws/sign_impl.h"

#define WHERE "net/sign"
#define SECRET_BYTES 512
#define KEY_ID_BYTES 256
#define TOKEN_BYTES 16384
#define SCOPE_BYTES 64 /* of region and service each */

static int is_hex(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
}

/* 1: from 1 to `most` printable characters without a space and without any of `except`. */
static int is_word(const char *s, size_t most, const char *except)
{
    size_t n = 0;
    for (; s && s[n]; n++)
        if (n == most || s[n] <= ' ' || s[n] > '~' || strchr(except, s[n]))
            return 0;
    return n > 0;
}

static int check_with(const PenSigning *with, PenError *reterr)
{
    if (!is_word(with->key_id, KEY_ID_BYTES, "/,"))
        return pen__fail(reterr, PEN_E_INVALID, WHERE,
                         "access key id: expected 1 to %d printable characters without '/' and ','",
                         KEY_ID_BYTES);
    if (!with->secret || !*with->secret || strlen(with->secret) > SECRET_BYTES)
        return pen__fail(reterr, PEN_E_INVALID, WHERE, "secret key: expected 1 to %d bytes",
                         SECRET_BYTES);
    if (with->token && !is_word(with->token, TOKEN_BYTES, ""))
        return pen__fail(reterr, PEN_E_INVALID, WHERE,
                         "session token: expected 1 to %d printable characters", TOKEN_BYTES);
    if (!is_word(with->region, SCOPE_BYTES - 1, "/,") ||
        !is_word(with->service, SCOPE_BYTES - 1, "/,"))
        return pen__fail(
            reterr, PEN_E_INVALID, WHERE,
            "region and service: expected 1 to %d printable characters each, without '/' "
            "and ','",
            SCOPE_BYTES - 1);
    return PEN_OK;
}

static int check_hash(const char *hash, PenError *reterr)
{
    size_t n = 0;
    if (strcmp(hash, "UNSIGNED-PAYLOAD") == 0)
        return PEN_OK;
    while (n < 65 && is_hex(hash[n]))
        n++;
    if (n != 64 || hash[n])
        return pen__fail(reterr, PEN_E_INVALID, WHERE,
                         "payload hash: expected 64 lower-case hex digits or UNSIGNED-PAYLOAD");
    return PEN_OK;
}

static int check(const PenSigning *with, const PenToSign *what, PenError *reterr)
{
    int r = check_with(with, reterr);
    if (r == PEN_OK)
        r = check_hash(what->payload_hash, reterr);
    if (r == PEN_OK && strspn(what->method, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") != strlen(what->method))
        r = pen__fail(reterr, PEN_E_INVALID, WHERE, "method: expected capital letters");
    return r;
}

static int write_date(uint64_t unix_s, char ret[20], PenError *reterr)
{
    struct tm tm;
    time_t t = (time_t)unix_s;
    if (unix_s > 253402300799u || !gmtime_r(&t, &tm) || !strftime(ret, 20, "%Y%m%dT%H%M%SZ", &tm))
        return pen__fail(reterr, PEN_E_INVALID, WHERE, "time: expected a year before 10000");
    return PEN_OK;
}

static void put_hex(const uint8_t *digest, char ret[65])
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < 32; i++) {
        ret[2 * i] = digits[digest[i] >> 4];
        ret[2 * i + 1] = digits[digest[i] & 15];
    }
    ret[64] = 0;
}

void pen__sha256_hex(const void *data, size_t bytes, char ret[65])
{
    uint8_t digest[32];
    pen__sha256(data, bytes, digest);
    put_hex(digest, ret);
}

static int mac(const void *key, size_t key_bytes, const char *text, uint8_t ret[32])
{
    unsigned n = 32;
    const uint8_t *data = (const uint8_t *)text;
    return HMAC(EVP_sha256(), key, (int)key_bytes, data, strlen(text), ret, &n) && n == 32;
}

/* Each key signs the next part of the scope; the last one signs the text. */
static int write_signature(const PenSigning *with, const char *date, const char *text, char ret[65])
{
    char day[9], first[4 + SECRET_BYTES + 1];
    uint8_t a[32], b[32];
    memcpy(day, date, 8);
    day[8] = 0;
    int n = snprintf(first, sizeof first, "AWS4%s", with->secret);
    int ok = mac(first, (size_t)n, day, a) && mac(a, 32, with->region, b) &&
             mac(b, 32, with->service, a) && mac(a, 32, "aws4_request", b) && mac(b, 32, text, a);
    if (ok)
        put_hex(a, ret);
    OPENSSL_cleanse(first, sizeof first);
    OPENSSL_cleanse(a, sizeof a);
    OPENSSL_cleanse(b, sizeof b);
    return ok;
}

static int add_text(PenBuf *b, const char *text)
{
    return pen__buf_add(b, text, strlen(text));
}

static int write_authorization(const PenSigning *with, const char *scope, const PenBuf *names,
                               const char *signature, PenBuf *ret)
{
    if (add_text(ret, "AWS4-HMAC-SHA256 Credential=") < 0 || add_text(ret, with->key_id) < 0 ||
        add_text(ret, "/") < 0 || add_text(ret, scope) < 0 ||
        add_text(ret, ", SignedHeaders=") < 0 || pen__buf_add(ret, names->data, names->bytes) < 0 ||
        add_text(ret, ", Signature=") < 0 || pen__buf_add(ret, signature, 65) < 0)
        return PEN_E_NO_MEMORY;
    ret->bytes--; /* the NUL stays behind it */
    return PEN_OK;
}

/* The rest, once the canonical request is there. */
static int sign_request(const PenSigning *with, const PenBuf *request, const PenBuf *names,
                        PenSigned *made)
{
    char hash[65], scope[8 + 2 * SCOPE_BYTES + 16], text[sizeof scope + 128], signature[65];
    pen__sha256_hex(request->data, request->bytes, hash);
    snprintf(scope, sizeof scope, "%.8s/%s/%s/aws4_request", made->date, with->region,
             with->service);
    snprintf(text, sizeof text, "AWS4-HMAC-SHA256\n%s\n%s\n%s", made->date, scope, hash);
    if (!write_signature(with, made->date, text, signature))
        return PEN_E_NO_MEMORY;
    return write_authorization(with, scope, names, signature, &made->authorization);
}

int pen__sign(const PenSigning *with, const PenToSign *what, PenSigned *ret, PenError *reterr)
{
    PenSigned made = {.date = ""};
    PenBuf request = {0}, names = {0};
    PenUrlParts url = {0};
    int r = check(with, what, reterr);
    if (r == PEN_OK)
        r = write_date(with->unix_s, made.date, reterr);
    if (r == PEN_OK)
        r = pen__url_split(what->url, &url, reterr);
    if (r == PEN_OK)
        r = pen__sign_canonical(what, &url, made.date, with->token, &request, &names, reterr);
    if (r < 0)
        goto out;
    snprintf(made.content_sha256, sizeof made.content_sha256, "%s", what->payload_hash);
    r = sign_request(with, &request, &names, &made);
    if (r == PEN_OK) {
        *ret = made;
    } else {
        pen__signed_free(&made);
        pen__fail_memory(reterr, WHERE, "signature");
    }
out:
    pen__buf_wipe(&request);
    pen__buf_free(&names);
    pen__url_parts_free(&url);
    return r;
}

void pen__signed_free(PenSigned *s)
{
    pen__buf_wipe(&s->authorization);
    OPENSSL_cleanse(s, sizeof *s);
}
