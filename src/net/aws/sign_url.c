/* SPDX-License-Identifier: Apache-2.0 */
/* Takes a URL apart for a signature, and refuses what the server would not write the same. */
#include <string.h>

#include "base/error.h"
#include "net/aws/sign_impl.h"

#define WHERE "net/sign"
#define HOST_BYTES 512

static int is_strict(char c)
{
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '.' || c == '_' || c == '~';
}

/* The encoded character at `s`: its length, or 0 when it would be encoded differently. */
static size_t strict_at(const char *s)
{
    static const char digits[] = "0123456789ABCDEF";
    if (is_strict(*s))
        return 1;
    if (*s != '%' || !s[1] || !s[2])
        return 0;
    const char *high = strchr(digits, s[1]), *low = strchr(digits, s[2]);
    if (!high || !low)
        return 0;
    return is_strict((char)((high - digits) * 16 + (low - digits))) ? 0 : 3;
}

static int check_path(const char *path, size_t bytes, PenError *reterr)
{
    size_t n, at = 0;
    while (at < bytes && (n = path[at] == '/' ? 1 : strict_at(path + at)) > 0)
        at += n;
    if (*path != '/' || at != bytes)
        return pen__fail(
            reterr, PEN_E_INVALID, WHERE,
            "path: expected '/' and strict percent-encoding, found something else at byte %zu", at);
    return PEN_OK;
}

static size_t slice(const char *s)
{
    size_t n, all = 0;
    while (s[all] && (n = strict_at(s + all)) > 0)
        all += n;
    return all;
}

static int compare_slices(const char *a, size_t a_bytes, const char *b, size_t b_bytes)
{
    int c = memcmp(a, b, a_bytes < b_bytes ? a_bytes : b_bytes);
    return c ? c : (a_bytes > b_bytes) - (a_bytes < b_bytes);
}

/* The text of a query is in no message: it may be a credential. */
static int check_query(const char *query, PenError *reterr)
{
    const char *old_name = "", *old_value = "", *s = query;
    size_t old_name_bytes = 0, old_value_bytes = 0;
    while (*s) {
        size_t name_bytes = slice(s);
        if (s[name_bytes] != '=')
            break;
        const char *value = s + name_bytes + 1;
        size_t value_bytes = slice(value);
        if (value[value_bytes] && (value[value_bytes] != '&' || !value[value_bytes + 1]))
            break;
        int c = compare_slices(old_name, old_name_bytes, s, name_bytes);
        if (c > 0 || (c == 0 && compare_slices(old_value, old_value_bytes, value, value_bytes) > 0))
            return pen__fail(reterr, PEN_E_INVALID, WHERE,
                             "query: expected sorted names, found one out of order at byte %zu",
                             (size_t)(s - query));
        old_name = s;
        old_name_bytes = name_bytes;
        old_value = value;
        old_value_bytes = value_bytes;
        s = value + value_bytes + (value[value_bytes] == '&');
    }
    if (*s)
        return pen__fail(reterr, PEN_E_INVALID, WHERE,
                         "query: expected strictly encoded name=value pairs, found something else "
                         "in the pair at byte %zu",
                         (size_t)(s - query));
    return PEN_OK;
}

static int check_host(const char *host, size_t bytes, PenError *reterr)
{
    size_t n = 0;
    while (n < bytes && host[n] > ' ' && host[n] <= '~' && host[n] != '@')
        n++;
    if (!bytes || bytes > HOST_BYTES || n < bytes)
        return pen__fail(reterr, PEN_E_INVALID, WHERE, "URL: expected a host of 1 to %d characters",
                         HOST_BYTES);
    return PEN_OK;
}

int pen__url_split(const char *url, PenUrlParts *ret, PenError *reterr)
{
    const char *host = strstr(url, "://");
    if (!host || strchr(url, '#'))
        return pen__fail(reterr, PEN_E_INVALID, WHERE, "URL: expected scheme://host/path?query");
    host += 3;
    size_t host_bytes = strcspn(host, "/?");
    const char *path = host + host_bytes;
    size_t path_bytes = strcspn(path, "?");
    const char *query = path[path_bytes] ? path + path_bytes + 1 : "";
    if (!path_bytes) {
        path = "/";
        path_bytes = 1;
    }
    int r = check_host(host, host_bytes, reterr);
    if (r == PEN_OK)
        r = check_path(path, path_bytes, reterr);
    if (r == PEN_OK)
        r = check_query(query, reterr);
    if (r < 0)
        return r;
    char *block = pen__alloc(host_bytes + path_bytes + 2);
    if (!block)
        return pen__fail_memory(reterr, WHERE, "url");
    memcpy(block, host, host_bytes);
    block[host_bytes] = 0;
    char *path_at = block + host_bytes + 1;
    memcpy(path_at, path, path_bytes);
    path_at[path_bytes] = 0;
    *ret = (PenUrlParts){block, path_at, query};
    return PEN_OK;
}

void pen__url_parts_free(PenUrlParts *parts)
{
    pen__free(parts->host);
    *parts = (PenUrlParts){0};
}
