/* SPDX-License-Identifier: Apache-2.0 */
#include "net/credentials/credentials.h"

#include <stdatomic.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/secret_memory.h"

#define WHERE "net/secret"

/* AWS's are 20, 40 and some 1,000 bytes; a token goes into one header. */
enum { KEY_ID_BYTES = 256, SECRET_BYTES = 512, TOKEN_BYTES = 16384 };

/* The object itself holds nothing secret, but where it lies. */
struct PenAwsCredentials {
    atomic_uint refs;
    uint64_t expires_s;
    PenSecretMemory text;
    const char *key_id, *secret, *token;
};

/* All three go into headers or a hash: visible ASCII. The text itself is never shown. */
static int check_text(const char *name, const char *text, size_t limit, PenError *reterr)
{
    size_t n = text ? strnlen(text, limit + 1) : 0;
    if (!n)
        return pen__fail(reterr, PEN_E_INVALID, WHERE, "credentials: the %s is empty", name);
    if (n > limit)
        return pen__fail(reterr, PEN_E_LIMIT, WHERE, "credentials: the %s is longer than %zu bytes",
                         name, limit);
    for (size_t i = 0; i < n; i++)
        if (text[i] <= ' ' || text[i] > '~')
            return pen__fail(reterr, PEN_E_INVALID, WHERE,
                             "credentials: the %s contains a space, a control character or a "
                             "non-ASCII character",
                             name);
    return PEN_OK;
}

static const char *put_text(PenSecretMemory *memory, const char *text)
{
    const char *at = memory->data + memory->bytes;
    (void)pen__secret_memory_add(memory, text, strlen(text) + 1);
    return at;
}

int pen__credentials_new(const char *key_id, const char *secret, const char *token,
                         uint64_t expires_s, PenAwsCredentials **ret, PenError *reterr)
{
    if (token && !*token)
        token = NULL;
    int r = check_text("access key id", key_id, KEY_ID_BYTES, reterr);
    if (r == PEN_OK)
        r = check_text("secret access key", secret, SECRET_BYTES, reterr);
    if (r == PEN_OK && token)
        r = check_text("session token", token, TOKEN_BYTES, reterr);
    if (r < 0)
        return r;
    PenAwsCredentials *s = pen__zalloc(sizeof *s);
    if (!s)
        return pen__fail_memory(reterr, WHERE, "credentials");
    size_t bytes = strlen(key_id) + strlen(secret) + (token ? strlen(token) : 0) + 3;
    r = pen__secret_memory_new(bytes, &s->text, reterr);
    if (r < 0) {
        pen__free(s);
        return r;
    }
    atomic_init(&s->refs, 1);
    s->expires_s = expires_s;
    s->key_id = put_text(&s->text, key_id);
    s->secret = put_text(&s->text, secret);
    s->token = token ? put_text(&s->text, token) : NULL;
    *ret = s;
    return PEN_OK;
}

PenAwsCredentials *pen__credentials_get(PenAwsCredentials *s)
{
    atomic_fetch_add_explicit(&s->refs, 1, memory_order_relaxed);
    return s;
}

void pen__credentials_put(PenAwsCredentials **s)
{
    PenAwsCredentials *old = *s;
    *s = NULL;
    if (!old || atomic_fetch_sub_explicit(&old->refs, 1, memory_order_acq_rel) != 1)
        return;
    pen__secret_memory_free(&old->text);
    pen__free(old);
}

const char *pen__credentials_key_id(const PenAwsCredentials *s)
{
    return s->key_id;
}

const char *pen__credentials_secret(const PenAwsCredentials *s)
{
    return s->secret;
}

const char *pen__credentials_token(const PenAwsCredentials *s)
{
    return s->token;
}

uint64_t pen__credentials_expires(const PenAwsCredentials *s)
{
    return s->expires_s;
}

bool pen__credentials_same(const PenAwsCredentials *a, const PenAwsCredentials *b)
{
    const char *ta = a->token ? a->token : "", *tb = b->token ? b->token : "";
    return strcmp(a->key_id, b->key_id) == 0 && strcmp(a->secret, b->secret) == 0 &&
           strcmp(ta, tb) == 0;
}

enum { HIDE_LEAST = 4, HIDE_BYTES = 10 };

/* A place is overwritten when all that begins there has been looked at. */
void pen__text_hide(const char *secret, char *message)
{
    size_t n = strlen(secret), bytes = strlen(message), part = n < HIDE_BYTES ? n : HIDE_BYTES;
    if (n < HIDE_LEAST)
        return;
    for (size_t i = 0, end = 0; i < bytes; i++) {
        if (i + part <= bytes && memmem(secret, n, message + i, part))
            end = i + part;
        if (i < end)
            message[i] = '*';
    }
}

void pen__credentials_hide(const PenAwsCredentials *s, char *message)
{
    pen__text_hide(s->key_id, message);
    pen__text_hide(s->secret, message);
    if (s->token)
        pen__text_hide(s->token, message);
}
