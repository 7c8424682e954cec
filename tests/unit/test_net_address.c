/* SPDX-License-Identifier: Apache-2.0 */
#include "net/address/address.h"
#include "net/address/uri.h"

#include "test.h"

#include "base/rng.h"
#include "fault_sweep.h"

TEST(remote_or_not)
{
    static const char *const remote[] = {"s3://b/k",  "S3://b",  "https://h",
                                         "HTTPS://h", "http://", "Http://h"};
    static const char *const paths[] = {"",      "a",        "/s3://b", "s3:/b",  "s3:b", "s3//b",
                                        "gs://", "file:///", " s3://b", "https:", "s3"};
    for (size_t i = 0; i < sizeof remote / sizeof *remote; i++)
        CHECK_INT(pen__address_is_remote(remote[i]), 1);
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
        CHECK_INT(pen__address_is_remote(paths[i]), 0);
}

static void check_text(const PenAddress *a, const char *expected)
{
    PenBuf text = {0};
    CHECK_INT(pen__address_text(a, &text), PEN_OK);
    CHECK_STR((char *)text.data, expected);
    CHECK_INT(text.bytes, strlen(expected));
    pen__buf_free(&text);
}

/* name: bucket or host. */
static void check_parse(const char *from, PenScheme scheme, const char *name, unsigned port,
                        const char *path, const char *text)
{
    PenAddress a;
    PenError err;
    CHECK_INT(pen__address_parse(from, &a, &err), PEN_OK);
    CHECK_INT(a.scheme, scheme);
    CHECK(!a.host == (scheme == PEN_SCHEME_S3) && !a.bucket == (scheme != PEN_SCHEME_S3));
    CHECK_STR(a.host ? a.host : a.bucket, name);
    CHECK_INT(a.port, port);
    CHECK_STR(a.path, path);
    check_text(&a, text);
    pen__address_free(&a);
    CHECK(!a.host && !a.bucket && !a.path);
    pen__address_free(&a);
}

TEST(s3_addresses)
{
#define S3(from, bucket, key, text) check_parse(from, PEN_SCHEME_S3, bucket, 0, key, text)
    S3("s3://my-bucket/train.pen", "my-bucket", "train.pen", "s3://my-bucket/train.pen");
    S3("S3://my.bucket", "my.bucket", "", "s3://my.bucket");
    S3("s3://Old_Bucket/", "Old_Bucket", "", "s3://Old_Bucket");
    S3("s3://abc/a/b//c/", "abc", "a/b//c/", "s3://abc/a/b//c/");
    S3("s3://abc//a", "abc", "/a", "s3://abc//a");
    S3("s3://abc/a=b+c:d@e f%20", "abc", "a=b+c:d@e f%20", "s3://abc/a=b+c:d@e f%20");
    S3("s3://abc/.a/..b/...", "abc", ".a/..b/...", "s3://abc/.a/..b/...");
    S3("s3://abc/ä漢🜚", "abc", "ä漢🜚", "s3://abc/ä漢🜚");
#undef S3
}

TEST(http_addresses)
{
#define HTTPS PEN_SCHEME_HTTPS
#define HTTP PEN_SCHEME_HTTP
    check_parse("https://example.org/a/b.pen", HTTPS, "example.org", 0, "/a/b.pen",
                "https://example.org/a/b.pen");
    check_parse("HTTPS://Example.ORG", HTTPS, "example.org", 0, "/", "https://example.org/");
    check_parse("https://h:443/", HTTPS, "h", 0, "/", "https://h/");
    check_parse("http://h:80/", HTTP, "h", 0, "/", "http://h/");
    check_parse("https://h:80/", HTTPS, "h", 80, "/", "https://h:80/");
    check_parse("http://h:00065535/", HTTP, "h", 65535, "/", "http://h:65535/");
    check_parse("http://127.0.0.1:8080/x", HTTP, "127.0.0.1", 8080, "/x",
                "http://127.0.0.1:8080/x");
    check_parse("http://[::1]/x", HTTP, "[::1]", 0, "/x", "http://[::1]/x");
    check_parse("http://[2001:0DB8:0::1]:9/", HTTP, "[2001:db8::1]", 9, "/",
                "http://[2001:db8::1]:9/");
    check_parse("https://h/a b/ä|^", HTTPS, "h", 0, "/a%20b/%C3%A4%7C%5E",
                "https://h/a%20b/%C3%A4%7C%5E");
    check_parse("https://h/a%2fb%20c", HTTPS, "h", 0, "/a%2fb%20c", "https://h/a%2fb%20c");
    check_parse("https://h//a@b:c;d=e,f", HTTPS, "h", 0, "//a@b:c;d=e,f", "https://h//a@b:c;d=e,f");
    check_parse("https://my_host.xn--bcher-kva.ch/", HTTPS, "my_host.xn--bcher-kva.ch", 0, "/",
                "https://my_host.xn--bcher-kva.ch/");
}

static void check_refused(const char *text, const char *message)
{
    PenAddress a = {.path = (char *)"untouched"};
    PenError err = {.message = ""};
    CHECK_INT(pen__address_parse(text, &a, &err), PEN_E_INVALID);
    CHECK_STR(err.where, "net/address");
    CHECK_STR(err.message, message);
    CHECK_STR(a.path, "untouched");
    CHECK_INT(pen__address_parse(text, &a, NULL), PEN_E_INVALID);
}

TEST(secrets_are_refused_and_not_shown)
{
#define NO_USER                                                                                    \
    "expected no user name or password in the URL; pass credentials with a profile or the "        \
    "AWS_ "                                                                                        \
    "variables"
#define NO_QUERY                                                                                   \
    "expected no '?' and no '#' (presigned URLs are not supported); pass credentials with a "      \
    "profile or "                                                                                  \
    "the AWS_ variables"
#define BUCKET                                                                                     \
    "expected a bucket name of 3 to 63 letters, digits, '.', '-' and '_' that begins and ends "    \
    "with a letter or digit"
    check_refused("s3://AKIA:hush@bucket/key", "s3://...: " NO_USER);
    check_refused("https://me:hush@host/path", "https://...: " NO_USER);
    check_refused("http://me@host", "http://...: " NO_USER);
    check_refused("s3://AKIA:hu/sh@bucket/key", "s3://...: " BUCKET);
    check_refused("https://me:hu/sh@host",
                  "https://...: expected a port from 1 to 65535 after ':'");
    check_refused("https://me:1?sh@host", "https://...: " NO_QUERY);
    check_refused("https://me:1#sh@host", "https://...: " NO_QUERY);
    check_refused("https://host/path?X-Amz-Signature=hush", "https://host/path...: " NO_QUERY);
    check_refused("https://host?hush", "https://host...: " NO_QUERY);
    check_refused("s3://bucket/key?versionId=hush", "s3://bucket/key...: " NO_QUERY);
    check_refused("s3://bucket/key#hush", "s3://bucket/key...: " NO_QUERY);
}

TEST(what_is_no_address_is_refused)
{
#define HOST_NAME                                                                                  \
    "expected a host name of letters, digits, '-' and '.', or a complete IP address (write "       \
    "international names in their xn-- form)"
    check_refused("/tmp/x", "URL: expected s3://, https:// or http:// at the start");
    check_refused("s3://", "s3://: expected a bucket name after s3://");
    check_refused("s3:///key", "s3:///key: expected a bucket name after s3://");
    check_refused("s3://ab/k", "s3://ab/k: " BUCKET);
    check_refused("s3://a..b/k", "s3://a..b/k: " BUCKET);
    check_refused("s3://-ab/k", "s3://-ab/k: " BUCKET);
    check_refused("s3://ab_/k", "s3://ab_/k: " BUCKET);
    check_refused("s3://192.168.0.1/k", "s3://192.168.0.1/k: " BUCKET);
    check_refused("s3://bucket:9000/k", "s3://bucket:9000/k: " BUCKET);
    check_refused("s3://b%75cket/k", "s3://b%75cket/k: " BUCKET);
    check_refused("s3://bücket/k", "s3://b??cket/k: " BUCKET);
    check_refused("s3://abc/./k", "s3://abc/./k: expected no '.' or '..' between slashes");
    check_refused("s3://abc/k/..", "s3://abc/k/..: expected no '.' or '..' between slashes");
    check_refused("s3://abc/a\nb", "s3://abc/a?b: expected utf-8 without control characters");
    check_refused("s3://abc/\xFF", "s3://abc/?: expected utf-8 without control characters");
    check_refused("s3://abc/\xC2\x85", "s3://abc/??: expected utf-8 without control characters");
    check_refused("s3://abc/\xED\xA0\x80",
                  "s3://abc/???: expected utf-8 without control characters");
    check_refused("s3://abc/\xC0\xAF", "s3://abc/??: expected utf-8 without control characters");
    check_refused("s3://abc/\xE2\x82", "s3://abc/??: expected utf-8 without control characters");
    check_refused("https://", "https://: expected a host name after http:// or https://");
    check_refused("https:///path", "https:///path: expected a host name after http:// or https://");
    check_refused("https://:80/", "https://:80/: expected a host name after http:// or https://");
    check_refused("https://h:/", "https://h:/: expected a port from 1 to 65535 after ':'");
    check_refused("https://h:0/", "https://h:0/: expected a port from 1 to 65535 after ':'");
    check_refused("https://h:65536/",
                  "https://h:65536/: expected a port from 1 to 65535 after ':'");
    check_refused("https://h:8x/", "https://h:8x/: expected a port from 1 to 65535 after ':'");
    check_refused("https://a..b/", "https://a..b/: " HOST_NAME);
    check_refused("https://a./", "https://a./: " HOST_NAME);
    check_refused("https://127.1/", "https://127.1/: " HOST_NAME);
    check_refused("https://0x7f000001/", "https://0x7f000001/: " HOST_NAME);
    check_refused("https://2130706433/", "https://2130706433/: " HOST_NAME);
    check_refused("https://1.2.3.256/", "https://1.2.3.256/: " HOST_NAME);
    check_refused("https://h%41/", "https://h%41/: " HOST_NAME);
    check_refused("https://h h/", "https://h h/: " HOST_NAME);
    check_refused("https://::1/", "https://::1/: " HOST_NAME);
    check_refused("https://[::g]/", "https://[::g]/: expected an IPv6 address between [ and ]");
    check_refused("https://[fe80::1%eth0]/",
                  "https://[fe80::1%eth0]/: expected an IPv6 address between [ and ]");
    check_refused("https://[::1/", "https://[::1/: expected an IPv6 address between [ and ]");
    check_refused("https://[]/", "https://[]/: expected an IPv6 address between [ and ]");
    check_refused("https://[::1]x/", "https://[::1]x/: expected an IPv6 address between [ and ]");
    check_refused("https://h/a%2", "https://h/a%2: expected two hex digits after every '%'");
    check_refused("https://h/%zz", "https://h/%zz: expected two hex digits after every '%'");
    check_refused("https://h/a%0Ab", "https://h/a%0Ab: expected no encoded control characters");
    check_refused("https://h/%00", "https://h/%00: expected no encoded control characters");
    check_refused("https://h/a/../b", "https://h/a/../b: expected no '.' or '..' between slashes");
    check_refused("https://h/a/%2E%2e",
                  "https://h/a/%2E%2e: expected no '.' or '..' between slashes");
    check_refused("https://h/a%2f..%2Fb",
                  "https://h/a%2f..%2Fb: expected no '.' or '..' between slashes");
}

static char *long_text(char *to, const char *head, size_t more)
{
    size_t n = strlen(head);
    memcpy(to, head, n);
    memset(to + n, 'k', more);
    to[n + more] = 0;
    return to;
}

TEST(lengths_have_limits)
{
    static char text[8192];
    PenAddress a;
    PenError err;
    CHECK_INT(pen__address_parse(long_text(text, "s3://abc/", 1024), &a, &err), PEN_OK);
    pen__address_free(&a);
    CHECK_INT(pen__address_parse(long_text(text, "s3://abc/", 1025), &a, &err), PEN_E_INVALID);
    CHECK(strstr(err.message, "kkk...: expected a key of at most 1024 bytes, found 1025"));
    CHECK(strlen(err.message) < 160);
    CHECK_INT(pen__address_parse(long_text(text, "s3://", 63), &a, &err), PEN_OK);
    pen__address_free(&a);
    CHECK_INT(pen__address_parse(long_text(text, "s3://", 64), &a, &err), PEN_E_INVALID);
    CHECK_INT(pen__address_parse(long_text(text, "https://h/", 4095), &a, &err), PEN_OK);
    pen__address_free(&a);
    CHECK_INT(pen__address_parse(long_text(text, "https://h/", 4096), &a, &err), PEN_E_INVALID);
    CHECK(strstr(err.message, "expected a path of at most 4096 bytes, found 4097"));
    CHECK_INT(pen__address_parse(long_text(text, "https://", 63), &a, &err), PEN_OK);
    pen__address_free(&a);
    CHECK_INT(pen__address_parse(long_text(text, "https://", 64), &a, &err), PEN_E_INVALID);
}

static void check_join(const char *from, const char *name, const char *expected)
{
    PenAddress a, b = {0};
    PenError err = {.message = ""};
    CHECK_INT(pen__address_parse(from, &a, &err), PEN_OK);
    int r = pen__address_join(&a, name, &b, &err);
    pen__address_free(&a);
    if (r == PEN_OK) {
        check_text(&b, expected);
        pen__address_free(&b);
    } else {
        CHECK_INT(r, PEN_E_INVALID);
        CHECK_STR(err.message, expected);
    }
}

TEST(names_below_an_address)
{
    check_join("s3://abc", "x", "s3://abc/x");
    check_join("s3://abc/", "x/y", "s3://abc/x/y");
    check_join("s3://abc/k", "a=b c", "s3://abc/k/a=b c");
    check_join("s3://abc/k/", "x", "s3://abc/k/x");
    check_join("https://h", "x", "https://h/x");
    check_join("https://h:9/k", "x y?/#ä", "https://h:9/k/x%20y%3F/%23%C3%A4");
    check_join("https://h/k%20/", "%20", "https://h/k%20/%2520");
    check_join("s3://abc/k", "a?b/c#d", "s3://abc/k/a?b/c#d");
    check_join("s3://abc/k", "",
               "object '' in s3://abc: expected a name that does not begin with '/'; rename the "
               "object");
    check_join("https://h/k", "/x",
               "object '/x' in https://h: expected a name that does not begin with '/'; rename "
               "the object");
    check_join("s3://abc/k", "a/../b",
               "object 'a/../b' in s3://abc: expected no '.' or '..' between slashes; rename the "
               "object");
    check_join("s3://abc/k", "a\t\xff",
               "object 'a?\?' in s3://abc: expected utf-8 without control characters; rename the "
               "object");
    char name[1100];
    check_join("s3://abc/k", long_text(name, "", 1023),
               "object name in s3://abc: expected at most 1024 bytes including its prefix, found "
               "1025");
}

TEST(all_but_unreserved_is_encoded)
{
    PenBuf b = {0};
    char text[256], expected[1024], *at = expected;
    for (int i = 0; i < 256; i++) {
        static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                                    "0123456789-._~";
        text[i] = (char)i;
        at += i && strchr(plain, i) ? snprintf(at, 4, "%c", i) : snprintf(at, 4, "%%%02X", i);
    }
    CHECK_INT(pen__uri_encode(&b, text, 256, 0), PEN_OK);
    CHECK_INT(b.bytes, strlen(expected));
    CHECK_MEM(b.data, expected, b.bytes);
    CHECK_INT(pen__uri_encode(&b, "/", 1, 1), PEN_OK);
    CHECK_INT(b.data[b.bytes - 1], '/');
    pen__buf_free(&b);
}

/* Endpoint, region, then what is expected: URL of an object, of a bucket, the host, the region. */
static void check_endpoint(const char *endpoint, const char *region, const char *expected[4])
{
    PenEndpoint e;
    PenError err = {.message = ""};
    PenBuf url = {0}, host = {0};
    CHECK_INT(pen__endpoint_make(endpoint, region, &e, &err), PEN_OK);
    CHECK_STR(e.region, expected[3]);
    CHECK_INT(pen__endpoint_url(&e, "my-bucket", "a b/ä+", "partNumber=1", &url, &host), PEN_OK);
    CHECK_STR((char *)url.data, expected[0]);
    CHECK_STR((char *)host.data, expected[2]);
    url.bytes = host.bytes = 0;
    CHECK_INT(pen__endpoint_url(&e, "my-bucket", "", NULL, &url, NULL), PEN_OK);
    CHECK_STR((char *)url.data, expected[1]);
    pen__buf_free(&url);
    pen__buf_free(&host);
}

#define ENDPOINT(endpoint, region, ...)                                                            \
    do {                                                                                           \
        check_endpoint(endpoint, region, (const char *[]){__VA_ARGS__});                           \
        CHECK_OK_SO_FAR();                                                                         \
    } while (0)
#define OBJECT "/a%20b/%C3%A4%2B?partNumber=1"

TEST(endpoints_of_aws)
{
    ENDPOINT(NULL, NULL, "https://my-bucket.s3.us-east-1.amazonaws.com" OBJECT,
             "https://my-bucket.s3.us-east-1.amazonaws.com/",
             "my-bucket.s3.us-east-1.amazonaws.com", "us-east-1");
    ENDPOINT("", "eu-west-1", "https://my-bucket.s3.eu-west-1.amazonaws.com" OBJECT,
             "https://my-bucket.s3.eu-west-1.amazonaws.com/",
             "my-bucket.s3.eu-west-1.amazonaws.com", "eu-west-1");
    ENDPOINT(NULL, "cn-north-1", "https://my-bucket.s3.cn-north-1.amazonaws.com.cn" OBJECT,
             "https://my-bucket.s3.cn-north-1.amazonaws.com.cn/",
             "my-bucket.s3.cn-north-1.amazonaws.com.cn", "cn-north-1");
    ENDPOINT(NULL, "us-gov-west-1", "https://my-bucket.s3.us-gov-west-1.amazonaws.com" OBJECT,
             "https://my-bucket.s3.us-gov-west-1.amazonaws.com/",
             "my-bucket.s3.us-gov-west-1.amazonaws.com", "us-gov-west-1");
}

TEST(endpoints_of_others)
{
    /* MinIO */
    ENDPOINT("http://localhost:9000", NULL, "http://localhost:9000/my-bucket" OBJECT,
             "http://localhost:9000/my-bucket", "localhost:9000", "us-east-1");
    /* Ceph, by its zone group */
    ENDPOINT("http://127.0.0.1:7480/", "my_Zone", "http://127.0.0.1:7480/my-bucket" OBJECT,
             "http://127.0.0.1:7480/my-bucket", "127.0.0.1:7480", "my_Zone");
    /* Cloudflare R2 */
    ENDPOINT("https://0123abcd.r2.cloudflarestorage.com", NULL,
             "https://0123abcd.r2.cloudflarestorage.com/my-bucket" OBJECT,
             "https://0123abcd.r2.cloudflarestorage.com/my-bucket",
             "0123abcd.r2.cloudflarestorage.com", "auto");
    /* Google Cloud Storage, with an HMAC key */
    ENDPOINT("https://storage.googleapis.com", "",
             "https://storage.googleapis.com/my-bucket" OBJECT,
             "https://storage.googleapis.com/my-bucket", "storage.googleapis.com", "auto");
    ENDPOINT("https://storage.googleapis.com", "us-east1",
             "https://storage.googleapis.com/my-bucket" OBJECT,
             "https://storage.googleapis.com/my-bucket", "storage.googleapis.com", "us-east1");
    /* behind a gateway */
    ENDPOINT("HTTPS://Gate.example.org:443/a+b%7E/s3/", NULL,
             "https://gate.example.org/a%2Bb~/s3/my-bucket" OBJECT,
             "https://gate.example.org/a%2Bb~/s3/my-bucket", "gate.example.org", "us-east-1");
    ENDPOINT("http://[0:0::1]:8000", NULL, "http://[::1]:8000/my-bucket" OBJECT,
             "http://[::1]:8000/my-bucket", "[::1]:8000", "us-east-1");
}

static void check_style(const char *endpoint, const char *bucket, const char *expected)
{
    PenEndpoint e;
    PenError err;
    PenBuf url = {0};
    CHECK_INT(pen__endpoint_make(endpoint, NULL, &e, &err), PEN_OK);
    e.path_style = 0;
    CHECK_INT(pen__endpoint_url(&e, bucket, "k", NULL, &url, NULL), PEN_OK);
    CHECK_STR((char *)url.data, expected);
    pen__buf_free(&url);
}

TEST(bucket_in_the_host_where_it_can_be)
{
    check_style("https://gate.example.org:8443", "abc", "https://abc.gate.example.org:8443/k");
    check_style("https://gate.example.org/s3", "abc", "https://abc.gate.example.org/s3/k");
    check_style(NULL, "a.b.c", "https://s3.us-east-1.amazonaws.com/a.b.c/k");
    check_style(NULL, "Abc", "https://s3.us-east-1.amazonaws.com/Abc/k");
    check_style(NULL, "a_c", "https://s3.us-east-1.amazonaws.com/a_c/k");
    check_style("http://127.0.0.1:9", "abc", "http://127.0.0.1:9/abc/k");
    check_style("http://[::1]:9", "abc", "http://[::1]:9/abc/k");
    check_style("http://localhost:9", "abc", "http://localhost:9/abc/k");
    check_style("http://localhost", "abc", "http://localhost/abc/k");
}

TEST(secrets_go_over_http_to_loopback_alone)
{
    static const struct {
        const char *endpoint;
        int safe;
    } cases[] = {
        {"https://example.org", 1},    {"http://example.org", 0},
        {"http://localhost", 1},       {"http://LOCALHOST:9000", 1},
        {"http://127.0.0.1:7480", 1},  {"http://127.255.0.9", 1},
        {"http://[::1]:9", 1},         {"http://[0:0:0:0:0:0:0:1]", 1},
        {"http://[::11]", 0},          {"http://[::2]", 0},
        {"http://128.0.0.1", 0},       {"http://127.0.0.1.example.org", 0},
        {"http://localhost.evil", 0},  {"http://mylocalhost", 0},
        {"http://127.example.org", 0}, {"http://[::ffff:10.0.0.1]", 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        PenEndpoint e;
        PenError err;
        CHECK_INT(pen__endpoint_make(cases[i].endpoint, NULL, &e, &err), PEN_OK);
        CHECK_INT(pen__endpoint_is_safe(&e), cases[i].safe);
        e.allow_http = 1;
        CHECK_INT(pen__endpoint_is_safe(&e), 1);
    }
}

TEST(bad_endpoints_are_refused)
{
    static char base[512], region[128];
    const struct {
        const char *endpoint, *region, *message;
    } cases[] = {
        {"localhost:9000", NULL, "endpoint: expected https://host[:port], found no scheme"},
        {"s3://bucket", NULL, "endpoint: expected https://host[:port], found s3://"},
        {"https://me:hush@h", NULL, "endpoint: https://...: " NO_USER},
        {"https://h?hush", NULL, "endpoint: https://h...: " NO_QUERY},
        {"ftp://h", NULL, "endpoint: expected https://host[:port], found no scheme"},
        {long_text(base, "https://h/", 256), NULL,
         "endpoint h: expected a path of at most 255 bytes, found 257"},
        {NULL, "eu west",
         "region: expected at most 63 lower-case letters, digits and '-', as in "
         "eu-west-1"},
        {NULL, "evil.com/x",
         "region: expected at most 63 lower-case letters, digits and '-', as "
         "in eu-west-1"},
        {"https://h", "a/b",
         "region: expected at most 63 letters, digits, '-', '_' and '.', as in "
         "eu-west-1"},
        {"https://h", long_text(region, "", 64),
         "region: expected at most 63 letters, digits, '-', '_' and '.', as in eu-west-1"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        PenEndpoint e = {.scheme = "x"};
        PenError err = {.message = ""};
        CHECK_INT(pen__endpoint_make(cases[i].endpoint, cases[i].region, &e, &err), PEN_E_INVALID);
        CHECK_STR(err.message, cases[i].message);
        CHECK_STR(e.scheme, "x");
    }
}

static PenRng rng;

static const char *random_piece(void)
{
    static const char *const pieces[] = {
        "s3://",   "https://", "http://", "bucket", "Host.org", "/",   "/",         "/",
        ".",       "..",       "a",       "b c",    "%20",      "%2E", "%",         ":",
        ":80",     "@",        "?",       "#",      "[::1]",    "[",   "]",         "ä",
        "漢",      "\x80",     "\n",      "-",      "_",        "~",   "127.0.0.1", "0x1",
        "key.pen", "=+&",      "\xC3",    "|^`{}",  "%2f",      "%0a", "..a",       "A"};
    return pieces[pen__rng_below(&rng, sizeof pieces / sizeof *pieces)];
}

static void add_text(char *to, size_t room, const char *text)
{
    size_t n = strlen(to);
    snprintf(to + n, room - n, "%s", text);
}

static void random_text(char *to, size_t room)
{
    static const char *const heads[] = {"s3://bucket/", "https://host/", "http://h:8/", "s3://",
                                        "HTTPS://"};
    snprintf(to, room, "%s", heads[pen__rng_below(&rng, 5)]);
    for (uint64_t i = pen__rng_below(&rng, 9); i > 0; i--)
        add_text(to, room, random_piece());
}

static void check_again(const PenAddress *a)
{
    PenBuf text = {0};
    PenAddress b;
    PenError err;
    CHECK_INT(pen__address_text(a, &text), PEN_OK);
    CHECK_INT(pen__address_parse((char *)text.data, &b, &err), PEN_OK);
    CHECK_INT(a->scheme, b.scheme);
    CHECK_INT(a->port, b.port);
    CHECK_STR(a->host ? a->host : a->bucket, b.host ? b.host : b.bucket);
    CHECK_STR(a->path, b.path);
    pen__address_free(&b);
    pen__buf_free(&text);
}

TEST(text_of_an_address_reads_the_same)
{
    char text[512];
    PenAddress a;
    int good = 0, bad = 0;
    rng = pen__rng_init(1, 6);
    for (int i = 0; i < 100000; i++) {
        random_text(text, sizeof text);
        if (pen__address_parse(text, &a, NULL) < 0) {
            bad++;
            continue;
        }
        good++;
        check_again(&a);
        CHECK_OK_SO_FAR();
        pen__address_free(&a);
    }
    CHECK(good > 20000 && bad > 20000);
}

/* A secret stands before an @ or behind a ?, with anything around it. */
TEST(no_message_shows_a_secret)
{
    char text[1024];
    PenAddress a;
    PenEndpoint e;
    PenError err;
    rng = pen__rng_init(2, 6);
    for (int i = 0; i < 50000; i++) {
        static const char *const secrets[] = {"hush@",     ":hush@", "me:hush@",          "?hush",
                                              "?a=hush&b", "#hush",  ":hu@sh/hush?hush@", "/hush@"};
        random_text(text, 512);
        add_text(text, sizeof text, secrets[pen__rng_below(&rng, 8)]);
        for (uint64_t n = pen__rng_below(&rng, 5); n > 0; n--)
            add_text(text, sizeof text, random_piece());
        err.message[0] = 0;
        if (pen__address_parse(text, &a, &err) == PEN_OK)
            pen__address_free(&a); /* "/hush@" is a path */
        CHECK(!strstr(err.message, "hush"));
        err.message[0] = 0;
        (void)pen__endpoint_make(text, NULL, &e, &err);
        CHECK(!strstr(err.message, "hush"));
    }
}

static int use_once(void)
{
    PenAddress a = {0}, b = {0};
    PenBuf text = {0};
    int r = pen__address_parse("https://host/a b", &a, NULL);
    if (r == PEN_OK)
        r = pen__address_join(&a, "c", &b, NULL);
    if (r == PEN_OK)
        r = pen__address_text(&b, &text);
    pen__address_free(&a);
    pen__address_free(&b);
    pen__buf_free(&text);
    return r;
}

static int make_url_once(void)
{
    PenEndpoint e;
    PenBuf url = {0}, host = {0};
    int r = pen__endpoint_make("https://host/base", NULL, &e, NULL);
    if (r == PEN_OK)
        r = pen__endpoint_url(&e, "bucket", "key", "a=b", &url, &host);
    if (r < 0 && (url.bytes || host.bytes))
        r = PEN_E_INVALID;
    pen__buf_free(&url);
    pen__buf_free(&host);
    return r;
}

TEST(memory_runs_out)
{
    CHECK_INT(fault_sweep_memory(use_once), 6);
    CHECK_INT(fault_sweep_memory(make_url_once), 7);
}

int main(int argc, char **argv)
{
    TEST_START(argc, argv);
    RUN(remote_or_not);
    RUN(s3_addresses);
    RUN(http_addresses);
    RUN(secrets_are_refused_and_not_shown);
    RUN(what_is_no_address_is_refused);
    RUN(lengths_have_limits);
    RUN(names_below_an_address);
    RUN(all_but_unreserved_is_encoded);
    RUN(endpoints_of_aws);
    RUN(endpoints_of_others);
    RUN(bucket_in_the_host_where_it_can_be);
    RUN(secrets_go_over_http_to_loopback_alone);
    RUN(bad_endpoints_are_refused);
    RUN(text_of_an_address_reads_the_same);
    RUN(no_message_shows_a_secret);
    RUN(memory_runs_out);
    return TEST_END();
}
