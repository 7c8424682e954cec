/* SPDX-License-Identifier: Apache-2.0 */
/* The canonical request: what client and server both write down and hash. */
#include <openssl/crypto.h>
#include <string.h>

#include "base/error.h"
#include "net/aws/sign_impl.h"

#define WHERE "net/sign"
#define HEADERS 64

static unsigned char lower(unsigned char c)
{
    return c >= 'A' && c <= 'Z' ? (unsigned char)(c + 32) : c;
}

static int compare_names(const char *a, const char *b)
{
    for (;; a++, b++) {
        int x = lower((unsigned char)*a), y = lower((unsigned char)*b);
        if (x != y || !x)
            return x - y;
    }
}

static int is_name(const char *s)
{
    static const char marks[] = "!#$%&'*+-.^_`|~";
    if (!*s)
        return 0;
    for (; *s; s++) {
        unsigned char c = lower((unsigned char)*s);
        if (!(c >= 'a' && c <= 'z') && !(c >= '0' && c <= '9') && !strchr(marks, c))
            return 0;
    }
    return 1;
}

static int is_value(const char *s)
{
    for (; *s; s++)
        if (((unsigned char)*s < 0x20 && *s != '\t') || *s == 0x7F)
            return 0;
    return 1;
}

static int is_own(const char *name)
{
    static const char *const own[] = {"authorization", "host", "x-amz-content-sha256", "x-amz-date",
                                      "x-amz-security-token"};
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        if (compare_names(name, own[i]) == 0)
            return 1;
    return 0;
}

/* Sorted by name; those of one name stay in the order they came in. */
static void insert(PenHttpHeader *list, size_t *n, const char *name, const char *value)
{
    size_t at = (*n)++;
    for (; at > 0 && compare_names(name, list[at - 1].name) < 0; at--)
        list[at] = list[at - 1];
    list[at] = (PenHttpHeader){.name = name, .value = value};
}

/* A header's name may be shown, its value never. */
static int collect(const PenToSign *in, PenHttpHeader list[HEADERS], size_t *ret_n,
                   PenError *reterr)
{
    size_t n = 0;
    if (in->n_headers > HEADERS - 4)
        return pen__fail(reterr, PEN_E_LIMIT, WHERE,
                         "request: expected at most %d headers to sign, found %zu", HEADERS - 4,
                         in->n_headers);
    for (size_t i = 0; i < in->n_headers; i++) {
        const PenHttpHeader *h = &in->headers[i];
        if (!is_name(h->name))
            return pen__fail(reterr, PEN_E_INVALID, WHERE,
                             "header %zu: expected a name of letters, digits and punctuation", i);
        if (!is_value(h->value))
            return pen__fail(reterr, PEN_E_INVALID, WHERE,
                             "header %.64s: expected a value without control characters", h->name);
        if (is_own(h->name))
            return pen__fail(reterr, PEN_E_INVALID, WHERE,
                             "header %.64s: reserved for the signature", h->name);
        insert(list, &n, h->name, h->value);
    }
    *ret_n = n;
    return PEN_OK;
}

/* All of it is reserved before: growing would leave copies of a token behind. */
static void put(PenBuf *b, const char *text, size_t bytes)
{
    (void)pen__buf_add(b, text, bytes);
}

static void put_lower(PenBuf *b, const char *name)
{
    for (; *name; name++) {
        char c = (char)lower((unsigned char)*name);
        put(b, &c, 1);
    }
}

static int is_space(char c)
{
    return c == ' ' || c == '\t';
}

/* Without spaces around it, and one where there were several. */
static void put_value(PenBuf *b, const char *value)
{
    int wrote = 0;
    while (*value) {
        while (is_space(*value))
            value++;
        size_t n = 0;
        while (value[n] && !is_space(value[n]))
            n++;
        if (n && wrote)
            put(b, " ", 1);
        put(b, value, n);
        wrote = 1;
        value += n;
    }
}

static void put_headers(PenBuf *b, PenBuf *names, const PenHttpHeader *list, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        int same = i > 0 && compare_names(list[i].name, list[i - 1].name) == 0;
        if (same) {
            put(b, ",", 1);
        } else {
            if (i) {
                put(b, "\n", 1);
                put(names, ";", 1);
            }
            put_lower(b, list[i].name);
            put(b, ":", 1);
            put_lower(names, list[i].name);
        }
        put_value(b, list[i].value);
    }
    put(b, "\n", 1);
}

static void put_line(PenBuf *b, const char *text)
{
    put(b, text, strlen(text));
    put(b, "\n", 1);
}

static int reserve(const PenToSign *what, const PenUrlParts *url, const PenHttpHeader *list,
                   size_t n, PenBuf *request, PenBuf *names)
{
    size_t names_bytes = 1, bytes = strlen(what->method) + strlen(url->path) + strlen(url->query) +
                                    strlen(what->payload_hash) + 8;
    for (size_t i = 0; i < n; i++) {
        names_bytes += strlen(list[i].name) + 1;
        bytes += strlen(list[i].name) + strlen(list[i].value) + 2;
    }
    int r = pen__buf_reserve(names, names_bytes);
    if (r == PEN_OK)
        r = pen__buf_reserve(request, bytes + names_bytes);
    return r;
}

int pen__sign_canonical(const PenToSign *what, const PenUrlParts *url, const char *date,
                        const char *token, PenBuf *ret_request, PenBuf *ret_names, PenError *reterr)
{
    PenHttpHeader list[HEADERS];
    PenBuf request = {0}, names = {0};
    size_t n = 0;
    int r = collect(what, list, &n, reterr);
    if (r < 0)
        return r;
    insert(list, &n, "host", url->host);
    insert(list, &n, "x-amz-content-sha256", what->payload_hash);
    insert(list, &n, "x-amz-date", date);
    if (token)
        insert(list, &n, "x-amz-security-token", token);
    if (reserve(what, url, list, n, &request, &names) < 0) {
        pen__buf_free(&names);
        return pen__fail_memory(reterr, WHERE, "request to sign");
    }
    put_line(&request, what->method);
    put_line(&request, url->path);
    put_line(&request, url->query);
    put_headers(&request, &names, list, n);
    names.data[names.bytes] = 0;
    put(&request, "\n", 1);
    put_line(&request, (const char *)names.data);
    put(&request, what->payload_hash, strlen(what->payload_hash) + 1);
    request.bytes--;
    *ret_request = request;
    *ret_names = names;
    return PEN_OK;
}

void pen__buf_wipe(PenBuf *b)
{
    if (b->data)
        OPENSSL_cleanse(b->data, b->cap);
    pen__buf_free(b);
}
