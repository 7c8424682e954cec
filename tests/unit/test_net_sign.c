/* SPDX-License-Identifier: Apache-2.0 */
/* Signatures as AWS documents them ("Signature Calculations for the Authorization Header", S3's
 * reference); tests/python/test_net_sign.py compares many more with botocore's. */
#include "net/aws/sign.h"

#include "test.h"

#include "fault_sweep.h"
#include "net/address/address.h"
#include "net/aws/sign_impl.h"

#define EMPTY "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
#define SECRET "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
#define HOST "https://examplebucket.s3.amazonaws.com"

static const PenSigning example = {
    "AKIAIOSFODNN7EXAMPLE", SECRET, NULL, "us-east-1", "s3", 1369353600};

static void check_example(const char *method, const char *url, const PenHttpHeader *headers,
                          size_t n, const char *hash, const char *names, const char *signature)
{
    PenSigned s;
    PenError err;
    char expected[512];
    PenToSign what = {method, url, headers, n, hash};
    snprintf(expected, sizeof expected,
             "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request, "
             "SignedHeaders=%s, Signature=%s",
             names, signature);
    CHECK_INT(pen__sign(&example, &what, &s, &err), PEN_OK);
    CHECK_STR(s.date, "20130524T000000Z");
    CHECK_STR(s.content_sha256, hash);
    CHECK_STR((char *)s.authorization.data, expected);
    CHECK_INT(s.authorization.bytes, strlen(expected));
    pen__signed_free(&s);
    CHECK(!s.authorization.data && !s.date[0]);
}

TEST(documented_get)
{
    PenHttpHeader headers[] = {{"Range", "bytes=0-9"}};
    check_example("GET", HOST "/test.txt", headers, 1, EMPTY,
                  "host;range;x-amz-content-sha256;x-amz-date",
                  "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41");
}

TEST(documented_put)
{
    PenHttpHeader headers[] = {{"x-amz-storage-class", "REDUCED_REDUNDANCY"},
                               {"Date", "Fri, 24 May 2013 00:00:00 GMT"}};
    char hash[65];
    pen__sha256_hex("Welcome to Amazon S3.", 21, hash);
    check_example("PUT", HOST "/test%24file.text", headers, 2, hash,
                  "date;host;x-amz-content-sha256;x-amz-date;x-amz-storage-class",
                  "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd");
}

TEST(documented_query_without_a_value)
{
    check_example("GET", HOST "/?lifecycle=", NULL, 0, EMPTY,
                  "host;x-amz-content-sha256;x-amz-date",
                  "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543");
}

TEST(documented_list)
{
    check_example("GET", HOST "?max-keys=2&prefix=J", NULL, 0, EMPTY,
                  "host;x-amz-content-sha256;x-amz-date",
                  "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7");
}

TEST(canonical_request_in_full)
{
    PenHttpHeader headers[] = {
        {"X-Amz-Meta-B", "  a \t b  "}, {"RANGE", "bytes=0-9"}, {"x-amz-meta-b", "c"}, {"A", " "}};
    PenToSign what = {"GET", HOST "/a//b/.c%20?a=1&a-b=0", headers, 4, "UNSIGNED-PAYLOAD"};
    PenUrlParts parts;
    PenBuf request = {0}, names = {0};
    PenError err;
    CHECK_INT(pen__url_split(what.url, &parts, &err), PEN_OK);
    CHECK_INT(
        pen__sign_canonical(&what, &parts, "20130524T000000Z", "the-token", &request, &names, &err),
        PEN_OK);
    CHECK_STR((char *)request.data,
              "GET\n/a//b/.c%20\na=1&a-b=0\na:\nhost:examplebucket.s3.amazonaws.com\n"
              "range:bytes=0-9\nx-amz-content-sha256:UNSIGNED-PAYLOAD\n"
              "x-amz-date:20130524T000000Z\nx-amz-meta-b:a b,c\nx-amz-security-token:the-token\n\n"
              "a;host;range;x-amz-content-sha256;x-amz-date;x-amz-meta-b;x-amz-security-token\n"
              "UNSIGNED-PAYLOAD");
    CHECK_INT(request.bytes, strlen((char *)request.data));
    pen__buf_wipe(&request);
    pen__buf_free(&names);
    pen__url_parts_free(&parts);
}

TEST(queries_are_encoded_and_sorted)
{
    PenHttpHeader pairs[] = {{"uploads", NULL}, {"a-b", "1"},        {"a", "2"},
                             {"a", "1"},        {"prefix", "x/y+z"}, {"A", ""}};
    PenBuf query = {0};
    CHECK_INT(pen__query_make(pairs, 6, &query), PEN_OK);
    CHECK_STR((char *)query.data, "A=&a=1&a=2&a-b=1&prefix=x%2Fy%2Bz&uploads=");
    query.bytes = 0;
    CHECK_INT(pen__query_make(NULL, 0, &query), PEN_OK);
    CHECK_STR((char *)query.data, "");
    CHECK_INT(pen__query_make(pairs, 65, &query), PEN_E_LIMIT);
    pen__buf_free(&query);
}

static void check_refused(const PenSigning *with, const PenToSign *what, const char *message)
{
    PenSigned s = {.date = "untouched"};
    PenError err = {.message = ""};
    CHECK_INT(pen__sign(with, what, &s, &err), PEN_E_INVALID);
    CHECK_STR(err.where, "net/sign");
    CHECK(strstr(err.message, message));
    CHECK(!strstr(err.message, "hush"));
    CHECK_STR(s.date, "untouched");
}

static void check_url(const char *url, const char *message)
{
    PenToSign what = {"GET", url, NULL, 0, EMPTY};
    check_refused(&example, &what, message);
}

TEST(what_servers_would_write_differently_is_refused)
{
    static const char path[] = "path: expected '/' and strict percent-encoding";
    check_url("https://h/a=b", path);
    check_url("https://h/a+b", path);
    check_url("https://h/a:b", path);
    check_url("https://h/a@b", path);
    check_url("https://h/a b", path);
    check_url("https://h/a%2fb", path);
    check_url("https://h/a%41b", path);
    check_url("https://h/a%4", path);
    check_url("https://h/a%", path);
    check_url("https://h/\xC3\xA9", path);
    static const char pairs[] = "query: expected strictly encoded name=value pairs";
    check_url("https://h/?hush", pairs);
    check_url("https://h/?a=hush/", pairs);
    check_url("https://h/?a=hush&", pairs);
    check_url("https://h/?&a=hush", pairs);
    check_url("https://h/?a=hush=", pairs);
    check_url("https://h/?a=1&b", pairs);
    static const char order[] = "query: expected sorted names, found one out of order at byte 7";
    check_url("https://h/?b=hush&a=hush", order);
    check_url("https://h/?a=husi&a=hush", order);
    check_url("https://h/?a-b=1&a=hush", "query: expected sorted names");
    check_url("h/x", "URL: expected scheme://host/path?query");
    check_url("https://h/x#y", "URL: expected scheme://host/path?query");
    check_url("https:///x", "URL: expected a host");
    check_url("https://me:hush@h/x", "URL: expected a host");
}

TEST(bad_headers_are_refused)
{
    static const struct {
        PenHttpHeader header;
        const char *message;
    } cases[] = {
        {{"a b", "hush"}, "header 0: expected a name"},
        {{"", "hush"}, "header 0: expected a name"},
        {{"a", "hush\r\nb: c"}, "header a: expected a value without control characters"},
        {{"a", "hush\x7F"}, "header a: expected a value without control characters"},
        {{"HOST", "hush"}, "header HOST: reserved for the signature"},
        {{"X-Amz-Date", "hush"}, "header X-Amz-Date: reserved for the signature"},
        {{"Authorization", "hush"}, "header Authorization: reserved for the signature"},
        {{"x-amz-security-token", "hush"}, "x-amz-security-token: reserved for the signature"},
        {{"x-amz-content-sha256", "hush"}, "x-amz-content-sha256: reserved for the signature"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        PenToSign what = {"GET", "https://h/", &cases[i].header, 1, EMPTY};
        check_refused(&example, &what, cases[i].message);
        CHECK_OK_SO_FAR();
    }
    static PenHttpHeader many[61];
    for (size_t i = 0; i < 61; i++)
        many[i] = (PenHttpHeader){"a", "b"};
    PenSigned s;
    PenToSign what = {"GET", "https://h/", many, 60, EMPTY};
    CHECK_INT(pen__sign(&example, &what, &s, NULL), PEN_OK);
    pen__signed_free(&s);
    what.n_headers = 61;
    CHECK_INT(pen__sign(&example, &what, &s, NULL), PEN_E_LIMIT);
}

TEST(bad_keys_are_refused_without_being_shown)
{
    static char longest[16386];
    memset(longest, 'h', sizeof longest - 1);
    PenToSign what = {"GET", "https://h/", NULL, 0, EMPTY};
    PenSigning with = example;
    with.key_id = "hush hush";
    check_refused(&with, &what, "access key id: expected 1 to 256 printable characters");
    with.key_id = "";
    check_refused(&with, &what, "access key id: expected");
    with.key_id = longest + sizeof longest - 258;
    check_refused(&with, &what, "access key id: expected");
    with = example;
    with.secret = NULL;
    check_refused(&with, &what, "secret key: expected 1 to 512 bytes");
    with.secret = longest + sizeof longest - 514;
    check_refused(&with, &what, "secret key: expected 1 to 512 bytes");
    with = example;
    with.token = "hush\nhush";
    check_refused(&with, &what, "session token: expected 1 to 16384 printable characters");
    with.token = longest;
    check_refused(&with, &what, "session token: expected");
    with = example;
    with.region = "a/b";
    check_refused(&with, &what, "region and service");
    with = example;
    with.unix_s = 253402300800;
    check_refused(&with, &what, "time: expected a year before 10000");
    what.payload_hash = "abc";
    check_refused(&example, &what, "payload hash: expected 64 lower-case hex digits");
    what.payload_hash = EMPTY "0";
    check_refused(&example, &what, "payload hash: expected 64 lower-case hex digits");
    what = (PenToSign){"get", "https://h/", NULL, 0, EMPTY};
    check_refused(&example, &what, "method: expected capital letters");
}

TEST(longest_keys_are_taken)
{
    static char token[16385], secret[513], id[257];
    memset(token, 't', sizeof token - 1);
    memset(secret, 's', sizeof secret - 1);
    memset(id, 'i', sizeof id - 1);
    PenSigning with = {id, secret, token, "us-east-1", "s3", 253402300799};
    PenToSign what = {"GET", "https://h", NULL, 0, "UNSIGNED-PAYLOAD"};
    PenSigned s;
    PenError err;
    CHECK_INT(pen__sign(&with, &what, &s, &err), PEN_OK);
    CHECK_STR(s.date, "99991231T235959Z");
    pen__signed_free(&s);
}

static int sign_once(void)
{
    PenHttpHeader headers[] = {{"Range", "bytes=0-9"}};
    PenToSign what = {"GET", HOST "/test.txt", headers, 1, EMPTY};
    PenSigned s;
    int r = pen__sign(&example, &what, &s, NULL);
    if (r == PEN_OK)
        pen__signed_free(&s);
    return r;
}

static int make_query_once(void)
{
    PenHttpHeader pairs[] = {{"uploads", NULL}};
    PenBuf query = {0};
    int r = pen__query_make(pairs, 1, &query);
    pen__buf_free(&query);
    return r;
}

TEST(memory_runs_out)
{
    CHECK(fault_sweep_memory(sign_once) >= 4);
    CHECK_INT(fault_sweep_memory(make_query_once), 2);
}

int main(int argc, char **argv)
{
    TEST_START(argc, argv);
    RUN(documented_get);
    RUN(documented_put);
    RUN(documented_query_without_a_value);
    RUN(documented_list);
    RUN(canonical_request_in_full);
    RUN(queries_are_encoded_and_sorted);
    RUN(what_servers_would_write_differently_is_refused);
    RUN(bad_headers_are_refused);
    RUN(bad_keys_are_refused_without_being_shown);
    RUN(longest_keys_are_taken);
    RUN(memory_runs_out);
    return TEST_END();
}
