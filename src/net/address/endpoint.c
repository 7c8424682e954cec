/* SPDX-License-Identifier: Apache-2.0 */
/* Where requests for a bucket go: AWS by its regions, and stores that speak like it. */
#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "net/address/address.h"
#include "net/address/uri.h"

#define WHERE "net/endpoint"

/* AWS's partitions: what the name of a region begins with, and what its hosts end in. */
static const struct {
    const char *region, *suffix;
} partitions[] = {
    {"cn-", "amazonaws.com.cn"}, {"eusc-", "amazonaws.eu"},      {"us-isob-", "sc2s.sgov.gov"},
    {"us-iso-", "c2s.ic.gov"},   {"us-isof-", "csp.hci.ic.gov"}, {"eu-isoe-", "cloud.adc-e.uk"},
};

static int begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

static int ends(const char *text, const char *with)
{
    size_t n = strlen(text), m = strlen(with);
    return n >= m && strcmp(text + n - m, with) == 0;
}

/* Regions of other stores are names that their owners gave. */
static int is_region(const char *s, int aws)
{
    const char *allowed = aws ? "abcdefghijklmnopqrstuvwxyz0123456789-"
                              : "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
    size_t n = strlen(s);
    return n > 0 && n < sizeof((PenEndpoint){0}).region && strspn(s, allowed) == n;
}

static const char *default_region(const char *host)
{
    if (ends(host, ".r2.cloudflarestorage.com") || strcmp(host, "storage.googleapis.com") == 0)
        return "auto";
    return "us-east-1";
}

static int set_region(PenEndpoint *e, const char *region, int aws, PenError *reterr)
{
    if (!region || !*region)
        region = default_region(e->host);
    if (!is_region(region, aws))
        return pen__fail(
            reterr, PEN_E_INVALID, WHERE, "region: expected at most 63 %s, as in eu-west-1",
            aws ? "lower-case letters, digits and '-'" : "letters, digits, '-', '_' and '.'");
    snprintf(e->region, sizeof e->region, "%s", region);
    return PEN_OK;
}

static void set_aws_host(PenEndpoint *e)
{
    const char *suffix = "amazonaws.com";
    for (size_t i = 0; i < sizeof partitions / sizeof *partitions; i++)
        if (begins(e->region, partitions[i].region))
            suffix = partitions[i].suffix;
    snprintf(e->host, sizeof e->host, "s3.%s.%s", e->region, suffix);
}

/* Encoded strictly, since it is signed with the rest of the path; without a slash at its end. */
static int set_base(PenEndpoint *e, const PenAddress *a, PenError *reterr)
{
    PenBuf plain = {0}, path = {0};
    int r = pen__path_decode(&plain, a->path, strlen(a->path));
    while (r == PEN_OK && plain.bytes && plain.data[plain.bytes - 1] == '/')
        plain.bytes--;
    if (r == PEN_OK)
        r = pen__uri_encode(&path, (const char *)plain.data, plain.bytes, 1);
    if (r < 0)
        r = pen__fail_memory(reterr, WHERE, "endpoint");
    else if (path.bytes >= sizeof e->base)
        r = pen__fail(reterr, PEN_E_INVALID, WHERE,
                      "endpoint %s: expected a path of at most %zu bytes, found %zu", e->host,
                      sizeof e->base - 1, path.bytes);
    else if (path.bytes)
        memcpy(e->base, path.data, path.bytes);
    pen__buf_free(&plain);
    pen__buf_free(&path);
    return r;
}

static int set_given(PenEndpoint *e, const char *endpoint, PenError *reterr)
{
    PenAddress a;
    char port[8] = "";
    if (!pen__address_is_remote(endpoint))
        return pen__fail(reterr, PEN_E_INVALID, WHERE,
                         "endpoint: expected https://host[:port], found no scheme");
    int r = pen__address_parse(endpoint, &a, reterr);
    if (r < 0) {
        pen__error_prefix(reterr, "endpoint");
        return r;
    }
    if (a.scheme == PEN_SCHEME_S3) {
        r = pen__fail(reterr, PEN_E_INVALID, WHERE,
                      "endpoint: expected https://host[:port], found s3://");
        goto out;
    }
    if (a.port)
        snprintf(port, sizeof port, ":%u", a.port);
    snprintf(e->scheme, sizeof e->scheme, "%s", a.scheme == PEN_SCHEME_HTTPS ? "https" : "http");
    if (strlen(a.host) + strlen(port) >= sizeof e->host) {
        r = pen__fail(reterr, PEN_E_INVALID, WHERE,
                      "endpoint: expected a host name of at most %zu bytes including the port",
                      sizeof e->host - 1);
        goto out;
    }
    memcpy(e->host, a.host, strlen(a.host));
    memcpy(e->host + strlen(a.host), port, strlen(port));
    e->path_style = 1;
    r = set_base(e, &a, reterr);
out:
    pen__address_free(&a);
    return r;
}

int pen__endpoint_make(const char *endpoint, const char *region, PenEndpoint *ret, PenError *reterr)
{
    PenEndpoint e = {.scheme = "https"};
    int aws = !endpoint || !*endpoint;
    int r = aws ? PEN_OK : set_given(&e, endpoint, reterr);
    if (r == PEN_OK)
        r = set_region(&e, region, aws, reterr);
    if (r < 0)
        return r;
    if (aws)
        set_aws_host(&e);
    *ret = e;
    return PEN_OK;
}

/* Of the host without its port. */
static size_t host_bytes(const PenEndpoint *e)
{
    return e->host[0] == '[' ? strcspn(e->host, "]") + 1 : strcspn(e->host, ":");
}

static int is_localhost(const PenEndpoint *e)
{
    return host_bytes(e) == 9 && begins(e->host, "localhost");
}

int pen__endpoint_is_safe(const PenEndpoint *e)
{
    if (strcmp(e->scheme, "https") == 0 || e->allow_http || is_localhost(e))
        return 1;
    if (begins(e->host, "[::1]"))
        return 1;
    return begins(e->host, "127.") && pen__host_is_ipv4(e->host, host_bytes(e));
}

/* A bucket in the host's name needs a host with a name, and to be one label that a certificate for
 * *.host covers. localhost has no other names that are sure to lead to this machine. */
static int in_path(const PenEndpoint *e, const char *bucket)
{
    return e->path_style ||
           strspn(bucket, "abcdefghijklmnopqrstuvwxyz0123456789-") != strlen(bucket) ||
           e->host[0] == '[' || pen__host_is_ipv4(e->host, host_bytes(e)) || is_localhost(e);
}

/* Texts up to a NULL, and a NUL behind them. */
static int add_texts(PenBuf *to, const char *const *texts)
{
    int r = PEN_OK;
    for (; *texts && r == PEN_OK; texts++)
        r = pen__buf_add(to, *texts, strlen(*texts));
    if (r == PEN_OK)
        r = pen__buf_add(to, "", 1);
    if (r == PEN_OK)
        to->bytes--;
    return r;
}

static int add_url(const PenEndpoint *e, const char *bucket, const char *key, const char *query,
                   PenBuf *to)
{
    const char *in_host[] = {e->scheme, "://", bucket, ".", e->host, e->base, "/", NULL};
    const char *in_front[] = {e->scheme, "://",  e->host,           e->base,
                              "/",       bucket, *key ? "/" : NULL, NULL};
    const char *tail[] = {query && *query ? "?" : NULL, query, NULL};
    int r = add_texts(to, in_path(e, bucket) ? in_front : in_host);
    if (r == PEN_OK)
        r = pen__uri_encode(to, key, strlen(key), 1);
    if (r == PEN_OK)
        r = add_texts(to, tail);
    return r;
}

int pen__endpoint_url(const PenEndpoint *e, const char *bucket, const char *key, const char *query,
                      PenBuf *ret_url, PenBuf *ret_host)
{
    size_t before = ret_url->bytes, host_before = ret_host ? ret_host->bytes : 0;
    const char *in_host[] = {bucket, ".", e->host, NULL};
    int r = add_url(e, bucket, key, query, ret_url);
    if (r == PEN_OK && ret_host)
        r = add_texts(ret_host, in_path(e, bucket) ? in_host + 2 : in_host);
    if (r < 0) {
        ret_url->bytes = before;
        if (ret_host)
            ret_host->bytes = host_before;
    }
    return r;
}
