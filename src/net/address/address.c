/* SPDX-License-Identifier: Apache-2.0 */
#include "net/address/address.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "net/address/uri.h"

#define WHERE "net/address"
#define KEY_BYTES 1024
#define PATH_BYTES 4096

static const char *const schemes[] = {"s3://", "https://", "http://"};

/* -1: none of them. */
static int scheme_of(const char *text)
{
    for (int s = PEN_SCHEME_S3; s <= PEN_SCHEME_HTTP; s++) {
        size_t i = 0;
        while (schemes[s][i] &&
               schemes[s][i] == (text[i] >= 'A' && text[i] <= 'Z' ? text[i] + 32 : text[i]))
            i++;
        if (!schemes[s][i])
            return s;
    }
    return -1;
}

int pen__address_is_remote(const char *text)
{
    return scheme_of(text) >= 0;
}

/* ---- what names may hold ---- */

static int is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static int is_alnum(char c)
{
    return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* The length of the character that begins at `s`, 0 when it is none or a control character. */
static size_t clean_at(const uint8_t *s, size_t bytes)
{
    static const uint32_t least[] = {0, 0, 0xA0, 0x800, 0x10000};
    if (*s < 0x80)
        return *s >= 0x20 && *s != 0x7F;
    size_t n = *s >= 0xF0 ? 4 : *s >= 0xE0 ? 3 : 2;
    if (*s < 0xC2 || *s > 0xF4 || n > bytes)
        return 0;
    uint32_t c = *s & (0x7Fu >> n);
    for (size_t i = 1; i < n; i++) {
        if ((s[i] & 0xC0) != 0x80)
            return 0;
        c = c << 6 | (s[i] & 0x3F);
    }
    return c < least[n] || c > 0x10FFFF || (c >= 0xD800 && c <= 0xDFFF) ? 0 : n;
}

/* UTF-8 without control characters (C0, DEL, C1)? */
static int text_is_clean(const char *text, size_t bytes)
{
    const uint8_t *s = (const uint8_t *)text, *end = s + bytes;
    while (s < end) {
        size_t n = clean_at(s, (size_t)(end - s));
        if (!n)
            return 0;
        s += n;
    }
    return 1;
}

/* Is a segment between slashes "." or ".."? */
static int text_has_dots(const char *text, size_t bytes)
{
    size_t dots = 0, others = 0;
    for (size_t i = 0; i <= bytes; i++) {
        if (i < bytes && text[i] != '/') {
            *(text[i] == '.' ? &dots : &others) += 1;
            continue;
        }
        if (!others && (dots == 1 || dots == 2))
            return 1;
        dots = others = 0;
    }
    return 0;
}

int pen__host_is_ipv4(const char *text, size_t bytes)
{
    char copy[16];
    struct in_addr a;
    if (bytes >= sizeof copy)
        return 0;
    memcpy(copy, text, bytes);
    copy[bytes] = 0;
    return inet_pton(AF_INET, copy, &a) == 1;
}

/* 3 to 63 letters, digits, '.', '-' and '_', as S3 has them or once had; no IPv4 address. */
static int text_is_bucket(const char *text, size_t bytes)
{
    if (bytes < 3 || bytes > 63 || !is_alnum(text[0]) || !is_alnum(text[bytes - 1]))
        return 0;
    for (size_t i = 0; i < bytes; i++) {
        if (!is_alnum(text[i]) && text[i] != '.' && text[i] != '-' && text[i] != '_')
            return 0;
        if (text[i] == '.' && text[i + 1] == '.')
            return 0;
    }
    return !pen__host_is_ipv4(text, bytes);
}

/* What a resolver could take for a number, and with it the whole for an address: 0x7f.1, 127.1 */
static int is_number(const char *label, size_t bytes)
{
    if (bytes > 1 && label[0] == '0' && (label[1] | 32) == 'x')
        return 1;
    size_t n = 0;
    while (n < bytes && is_digit(label[n]))
        n++;
    return n == bytes;
}

/* Labels of letters, digits, '-' and '_'; when the last is a number, an IPv4 address. */
static int text_is_host(const char *text, size_t bytes)
{
    size_t label = 0;
    if (!bytes || bytes > 253)
        return 0;
    for (size_t i = 0; i <= bytes; i++) {
        if (i < bytes && text[i] != '.') {
            if (!is_alnum(text[i]) && text[i] != '-' && text[i] != '_')
                return 0;
            continue;
        }
        if (i == label || i - label > 63)
            return 0;
        if (i < bytes)
            label = i + 1;
    }
    return !is_number(text + label, bytes - label) || pen__host_is_ipv4(text, bytes);
}

/* ---- reading an address ---- */

/* What is being read. */
typedef struct Text {
    PenScheme scheme;
    const char *name; /* bucket, or host and port */
    size_t name_bytes;
    const char *path; /* from the slash on */
    size_t path_bytes;
    char shown[100]; /* for messages */
} Text;

/* Of an address that is refused a message shows nothing that could be a secret: no query, and
 * nothing at all where there is an @, since a password may hold every other mark. */
static void show(const char *text, const char *rest, char ret[100])
{
    size_t n = (size_t)(rest - text), all = strlen(text);
    size_t end = strchr(rest, '@') ? n : n + strcspn(rest, "?#");
    size_t used = 0;
    for (size_t i = 0; i < end && used < 92; i++)
        ret[used++] = text[i] >= ' ' && text[i] <= '~' ? text[i] : '?';
    snprintf(ret + used, 100 - used, "%s", used < all ? "..." : "");
}

static int refuse(const Text *t, const char *expected, PenError *reterr)
{
    return pen__fail(reterr, PEN_E_INVALID, WHERE, "%s: %s", t->shown, expected);
}

static int split(const char *text, Text *ret, PenError *reterr)
{
    int scheme = scheme_of(text);
    if (scheme < 0)
        return pen__fail(reterr, PEN_E_INVALID, WHERE,
                         "URL: expected s3://, https:// or http:// at the start");
    const char *rest = text + strlen(schemes[scheme]);
    ret->scheme = (PenScheme)scheme;
    show(text, rest, ret->shown);
    ret->name = rest;
    ret->name_bytes = strcspn(rest, "/?#");
    ret->path = rest + ret->name_bytes;
    ret->path_bytes = strlen(ret->path);
    if (memchr(ret->name, '@', ret->name_bytes))
        return refuse(
            ret,
            "expected no user name or password in the URL; pass credentials with a profile "
            "or the AWS_ variables",
            reterr);
    if (strpbrk(rest, "?#"))
        return refuse(ret,
                      "expected no '?' and no '#' (presigned URLs are not supported); pass "
                      "credentials with a profile or the AWS_ variables",
                      reterr);
    if (!text_is_clean(rest, strlen(rest)))
        return refuse(ret, "expected utf-8 without control characters", reterr);
    return PEN_OK;
}

/* Name and path lie in one block, the name first. */
static int make(PenScheme scheme, const char *name, uint16_t port, const char *path,
                PenAddress *ret, PenError *reterr)
{
    size_t name_bytes = strlen(name) + 1, path_bytes = strlen(path) + 1;
    char *block = pen__alloc(name_bytes + path_bytes);
    if (!block)
        return pen__fail_memory(reterr, WHERE, "URL");
    memcpy(block, name, name_bytes);
    memcpy(block + name_bytes, path, path_bytes);
    int s3 = scheme == PEN_SCHEME_S3;
    *ret = (PenAddress){scheme, s3 ? NULL : block, port, s3 ? block : NULL, block + name_bytes};
    return PEN_OK;
}

static int parse_s3(const Text *t, PenAddress *ret, PenError *reterr)
{
    char bucket[64];
    const char *key = t->path_bytes ? t->path + 1 : "";
    size_t key_bytes = t->path_bytes ? t->path_bytes - 1 : 0;
    if (!t->name_bytes)
        return refuse(t, "expected a bucket name after s3://", reterr);
    if (!text_is_bucket(t->name, t->name_bytes))
        return refuse(t,
                      "expected a bucket name of 3 to 63 letters, digits, '.', '-' and '_' that "
                      "begins and ends with a letter or digit",
                      reterr);
    if (key_bytes > KEY_BYTES)
        return pen__fail(reterr, PEN_E_INVALID, WHERE,
                         "%s: expected a key of at most %d bytes, found %zu", t->shown, KEY_BYTES,
                         key_bytes);
    if (text_has_dots(key, key_bytes))
        return refuse(t, "expected no '.' or '..' between slashes", reterr);
    memcpy(bucket, t->name, t->name_bytes);
    bucket[t->name_bytes] = 0;
    return make(t->scheme, bucket, 0, key, ret, reterr);
}

static int parse_port(const Text *t, const char *text, size_t bytes, uint16_t *ret,
                      PenError *reterr)
{
    unsigned port = 0;
    for (size_t i = 0; i < bytes && port <= 65535; i++)
        port = text[i] >= '0' && text[i] <= '9' ? port * 10 + (unsigned)(text[i] - '0') : 65536;
    if (!port || port > 65535)
        return refuse(t, "expected a port from 1 to 65535 after ':'", reterr);
    *ret = port == (t->scheme == PEN_SCHEME_HTTPS ? 443 : 80) ? 0 : (uint16_t)port;
    return PEN_OK;
}

/* "[v6]" as the system writes it, or the name in lower case, into `ret`. */
static int parse_host(const Text *t, size_t bytes, char ret[256], PenError *reterr)
{
    if (*t->name == '[') {
        struct in6_addr a;
        if (bytes < 4 || bytes > 64 || t->name[bytes - 1] != ']')
            return refuse(t, "expected an IPv6 address between [ and ]", reterr);
        memcpy(ret, t->name + 1, bytes - 2);
        ret[bytes - 2] = 0;
        if (inet_pton(AF_INET6, ret, &a) != 1 || !inet_ntop(AF_INET6, &a, ret + 1, 250))
            return refuse(t, "expected an IPv6 address between [ and ]", reterr);
        ret[0] = '[';
        memcpy(ret + strlen(ret), "]", 2);
        return PEN_OK;
    }
    if (!bytes)
        return refuse(t, "expected a host name after http:// or https://", reterr);
    if (!text_is_host(t->name, bytes))
        return refuse(t,
                      "expected a host name of letters, digits, '-' and '.', or a complete IP "
                      "address (write international names in their xn-- form)",
                      reterr);
    for (size_t i = 0; i < bytes; i++)
        ret[i] = (char)(t->name[i] >= 'A' && t->name[i] <= 'Z' ? t->name[i] + 32 : t->name[i]);
    ret[bytes] = 0;
    return PEN_OK;
}

static int end_text(PenBuf *b)
{
    int r = pen__buf_add(b, "", 1);
    if (r == PEN_OK)
        b->bytes--;
    return r;
}

static int check_path(const Text *t, const PenBuf *path, PenError *reterr)
{
    PenBuf decoded = {0};
    int r = PEN_OK;
    if (path->bytes > PATH_BYTES)
        return pen__fail(reterr, PEN_E_INVALID, WHERE,
                         "%s: expected a path of at most %d bytes, found %zu", t->shown, PATH_BYTES,
                         path->bytes);
    if (pen__path_decode(&decoded, (const char *)path->data, path->bytes) < 0)
        return pen__fail_memory(reterr, WHERE, "URL");
    for (size_t i = 0; i < decoded.bytes && r == PEN_OK; i++)
        if (decoded.data[i] < 0x20 || decoded.data[i] == 0x7F)
            r = refuse(t, "expected no encoded control characters", reterr);
    if (r == PEN_OK && text_has_dots((const char *)decoded.data, decoded.bytes))
        r = refuse(t, "expected no '.' or '..' between slashes", reterr);
    pen__buf_free(&decoded);
    return r;
}

static int parse_http(const Text *t, PenAddress *ret, PenError *reterr)
{
    char host[256];
    uint16_t port = 0;
    PenBuf path = {0};
    const char *colon = memrchr(t->name, ':', t->name_bytes);
    if (colon && memchr(colon, ']', (size_t)(t->path - colon)))
        colon = NULL;
    size_t host_bytes = colon ? (size_t)(colon - t->name) : t->name_bytes;
    int r = PEN_OK;
    if (colon)
        r = parse_port(t, colon + 1, t->name_bytes - host_bytes - 1, &port, reterr);
    if (r == PEN_OK)
        r = parse_host(t, host_bytes, host, reterr);
    if (r < 0)
        return r;
    r = pen__path_clean(&path, t->path_bytes ? t->path : "/", t->path_bytes ? t->path_bytes : 1);
    if (r == PEN_OK)
        r = end_text(&path);
    if (r == PEN_E_INVALID)
        r = refuse(t, "expected two hex digits after every '%'", reterr);
    else if (r < 0)
        r = pen__fail_memory(reterr, WHERE, "URL");
    else
        r = check_path(t, &path, reterr);
    if (r == PEN_OK)
        r = make(t->scheme, host, port, (const char *)path.data, ret, reterr);
    pen__buf_free(&path);
    return r;
}

int pen__address_parse(const char *text, PenAddress *ret, PenError *reterr)
{
    Text t;
    int r = split(text, &t, reterr);
    if (r < 0)
        return r;
    return t.scheme == PEN_SCHEME_S3 ? parse_s3(&t, ret, reterr) : parse_http(&t, ret, reterr);
}

void pen__address_free(PenAddress *a)
{
    pen__free(a->host ? a->host : a->bucket);
    *a = (PenAddress){0};
}

static int check_name(const PenAddress *a, const char *name, size_t bytes, PenError *reterr)
{
    const char *wrong = NULL;
    char shown[201];
    if (!bytes || name[0] == '/')
        wrong = "expected a name that does not begin with '/'";
    else if (!text_is_clean(name, bytes))
        wrong = "expected utf-8 without control characters";
    else if (text_has_dots(name, bytes))
        wrong = "expected no '.' or '..' between slashes";
    if (!wrong)
        return PEN_OK;
    snprintf(shown, sizeof shown, "%s", name);
    for (char *c = shown; *c; c++)
        *c = *c >= ' ' && *c <= '~' ? *c : '?';
    return pen__fail(reterr, PEN_E_INVALID, WHERE, "object '%s' in %s%s: %s; rename the object",
                     shown, schemes[a->scheme], a->host ? a->host : a->bucket, wrong);
}

int pen__address_join(const PenAddress *a, const char *name, PenAddress *ret, PenError *reterr)
{
    PenBuf path = {0};
    size_t base = strlen(a->path), bytes = strlen(name);
    int s3 = a->scheme == PEN_SCHEME_S3;
    const char *first = s3 ? a->bucket : a->host;
    int r = check_name(a, name, bytes, reterr);
    if (r < 0)
        return r;
    r = pen__buf_add(&path, a->path, base);
    if (r == PEN_OK && base && a->path[base - 1] != '/')
        r = pen__buf_add(&path, "/", 1);
    if (r == PEN_OK)
        r = s3 ? pen__buf_add(&path, name, bytes) : pen__uri_encode(&path, name, bytes, 1);
    if (r == PEN_OK)
        r = end_text(&path);
    size_t most = s3 ? KEY_BYTES : PATH_BYTES;
    if (r < 0)
        r = pen__fail_memory(reterr, WHERE, "URL");
    else if (path.bytes > most)
        r = pen__fail(
            reterr, PEN_E_INVALID, WHERE,
            "object name in %s%s: expected at most %zu bytes including its prefix, found %zu",
            schemes[a->scheme], first, most, path.bytes);
    else
        r = make(a->scheme, first, a->port, (const char *)path.data, ret, reterr);
    pen__buf_free(&path);
    return r;
}

int pen__address_text(const PenAddress *a, PenBuf *ret)
{
    char port[8] = "";
    const char *name = a->host ? a->host : a->bucket ? a->bucket : "";
    const char *slash = a->bucket && *a->path ? "/" : "";
    if (a->port)
        snprintf(port, sizeof port, ":%u", a->port);
    const char *parts[] = {schemes[a->scheme], name, port, slash, a->path};
    size_t bytes = 1, n = sizeof parts / sizeof *parts;
    for (size_t i = 0; i < n; i++)
        bytes += strlen(parts[i]);
    int r = pen__buf_reserve(ret, bytes);
    if (r < 0)
        return r;
    for (size_t i = 0; i < n; i++)
        (void)pen__buf_add(ret, parts[i], strlen(parts[i]));
    ret->data[ret->bytes] = 0;
    return PEN_OK;
}
