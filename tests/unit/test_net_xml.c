/* SPDX-License-Identifier: Apache-2.0 */
#include "net/http/date.h"
#include "net/s3/xml.h"

#include "test.h"

#include "base/sys.h"
#include "fault_sweep.h"
#include "net/s3/response.h"

#define HEAD "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
#define XMLNS " xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\""

/* ---- the reader -------------------------------------------------------------------------------*/

static char seen[4096];
static size_t n_begun;

static int note_begin(void *ctx, const char *path, PenError *reterr)
{
    (void)ctx, (void)path, (void)reterr;
    n_begun++;
    return PEN_OK;
}

static int note_text(void *ctx, const char *path, const char *text, size_t bytes, PenError *reterr)
{
    (void)ctx, (void)reterr;
    size_t n = strlen(seen);
    if (strlen(text) == bytes)
        snprintf(seen + n, sizeof seen - n, "%s=%s;", path, text);
    return PEN_OK;
}

static int read_text(const char *text, PenError *reterr)
{
    static const PenXmlCalls calls = {note_begin, note_text};
    seen[0] = 0;
    n_begun = 0;
    return pen__xml_read(text, strlen(text), &calls, NULL, reterr);
}

TEST(text_comes_by_path)
{
    PenError err;
    CHECK_INT(read_text(HEAD "<A" XMLNS "><B>one &lt;&#228;&quot;</B>loose<C x='y'><D/><E> 2\n</E>"
                             "</C><B><![CDATA[<raw>]]> more</B></A>",
                        &err),
              PEN_OK);
    CHECK_STR(seen, "A/B=one <ä\";A/C/D=;A/C/E= 2\n;A/B=<raw> more;");
    CHECK_INT(n_begun, 6);
    CHECK_INT(read_text("  \r\n\t" HEAD "\n\n   <ns2:A><x:B>1</x:B></ns2:A>  ", &err), PEN_OK);
    CHECK_STR(seen, "A/B=1;");
    CHECK_INT(read_text("<A/>", &err), PEN_OK);
    CHECK_STR(seen, "A=;");
}

static void check_refused(const char *text, int status, const char *message)
{
    PenError err = {.message = ""};
    CHECK_INT(read_text(text, &err), status);
    CHECK_STR(err.where, "net/xml");
    CHECK(strstr(err.message, message));
    CHECK_INT(read_text(text, NULL), status);
}

TEST(what_no_server_should_send_is_refused)
{
    static const char doctype[] = "response: expected no document type, found one at line ";
    check_refused("<!DOCTYPE a><a/>", PEN_E_CORRUPT, doctype);
    check_refused(HEAD "<!DOCTYPE a SYSTEM \"file:///etc/passwd\"><a/>", PEN_E_CORRUPT, doctype);
    check_refused("<!DOCTYPE a [<!ENTITY x \"y\"><!ENTITY z \"&x;&x;\">]><a>&z;</a>", PEN_E_CORRUPT,
                  doctype);
    check_refused("<!DOCTYPE html><html><body>busy</body></html>", PEN_E_CORRUPT, doctype);
    static const char xml[] = "response: expected XML, found ";
    check_refused("", PEN_E_CORRUPT, xml);
    check_refused("   ", PEN_E_CORRUPT, xml);
    check_refused("busy", PEN_E_CORRUPT, xml);
    check_refused("{\"a\": 1}", PEN_E_CORRUPT, xml);
    check_refused("<a><b></a>", PEN_E_CORRUPT, xml);
    check_refused("<a>", PEN_E_CORRUPT, xml);
    check_refused("<a/><b/>", PEN_E_CORRUPT, xml);
    check_refused("<a>&nbsp;</a>", PEN_E_CORRUPT, xml);
    check_refused("<a>&#0;</a>", PEN_E_CORRUPT, xml);
    check_refused("<a>\xFF</a>", PEN_E_CORRUPT, xml);
    check_refused("<?xml version=\"1.0\" encoding=\"ISO-8859-1\"?><a>\xE4</a>", PEN_E_CORRUPT, xml);
}

TEST(limits)
{
    static char text[PEN_XML_BYTES + 64];
    PenError err;
    for (int depth = 31; depth <= 33; depth++) {
        char *at = text;
        for (int i = 0; i < 2 * depth; i++)
            at += snprintf(at, 5, "%s", i < depth ? "<a>" : "</a>");
        CHECK_INT(read_text(text, &err), depth <= 32 ? PEN_OK : PEN_E_LIMIT);
    }
    CHECK_STR(err.message, "response: expected at most 32 nested elements, found more");
    for (size_t name = 510; name <= 511; name++) {
        memset(text, 'a', 1024);
        text[0] = '<';
        memcpy(text + 1 + name, "/>", 3);
        CHECK_INT(read_text(text, &err), name < 511 ? PEN_OK : PEN_E_LIMIT);
    }
    CHECK_STR(err.message,
              "response: expected nested element names of at most 512 bytes in total, found more");
    memset(text, 'x', sizeof text);
    memcpy(text, "<a>", 3);
    memcpy(text + PEN_XML_BYTES - 4, "</a>", 5);
    CHECK_INT(read_text(text, &err), PEN_OK);
    memset(text + PEN_XML_BYTES - 4, 'x', 16);
    memcpy(text + PEN_XML_BYTES - 3, "</a>", 5);
    CHECK_INT(read_text(text, &err), PEN_E_LIMIT);
    CHECK_STR(err.message, "response: expected at most 1048576 bytes, found 1048577");
}

static int stop_at_b(void *ctx, const char *path, const char *text, size_t bytes, PenError *reterr)
{
    (void)ctx, (void)text, (void)bytes, (void)reterr;
    return strcmp(path, "A/B") == 0 ? PEN_E_CANCELLED : note_text(ctx, path, text, bytes, reterr);
}

TEST(a_call_can_end_it)
{
    static const PenXmlCalls calls = {NULL, stop_at_b};
    static const char text[] = "<A><C>1</C><B>2</B><C>3</C></A>";
    seen[0] = 0;
    CHECK_INT(pen__xml_read(text, sizeof text - 1, &calls, NULL, NULL), PEN_E_CANCELLED);
    CHECK_STR(seen, "A/C=1;");
}

/* ---- answers ----------------------------------------------------------------------------------*/

#define READ(what, text, ret) pen__s3_read_##what(text, strlen(text), ret, &refused, &err)

static PenS3Error refused;
static PenError err;

TEST(error_of_s3)
{
    static const char text[] =
        HEAD "<Error><Code>AuthorizationHeaderMalformed</Code><Message>The region 'us-east-1' is "
             "wrong;\n expecting 'eu-west-1'</Message><Region>eu-west-1</Region>"
             "<Endpoint>b.s3.eu-west-1.amazonaws.com</Endpoint><RequestId>0A1B</RequestId>"
             "<AWSAccessKeyId>AKIAHUSH</AWSAccessKeyId><StringToSign>hush</StringToSign></Error>";
    PenS3Error e;
    memset(&e, 'h', sizeof e);
    CHECK_INT(pen__s3_error(text, sizeof text - 1, &e), 1);
    CHECK_STR(e.code, "AuthorizationHeaderMalformed");
    CHECK_STR(e.message, "The region 'us-east-1' is wrong;  expecting 'eu-west-1'");
    CHECK_STR(e.region, "eu-west-1");
    CHECK_STR(e.endpoint, "b.s3.eu-west-1.amazonaws.com");
    CHECK_STR(e.request_id, "0A1B");
    CHECK(!memmem(&e, sizeof e, "hush", 4) && !memmem(&e, sizeof e, "HUSH", 4));
}

TEST(error_of_sts)
{
    static const char text[] =
        "<ErrorResponse xmlns=\"https://sts.amazonaws.com/doc/2011-06-15/\"><Error>"
        "<Type>Sender</Type><Code>ExpiredTokenException</Code><Message>expired</Message></Error>"
        "<RequestId>7</RequestId></ErrorResponse>";
    PenS3Error e;
    PenStsCredentials keys;
    CHECK_INT(pen__s3_error(text, sizeof text - 1, &e), 1);
    CHECK_STR(e.code, "ExpiredTokenException");
    CHECK_STR(e.message, "expired");
    CHECK_STR(e.request_id, "7");
    CHECK_INT(pen__sts_read_credentials(text, sizeof text - 1, &keys, &refused, &err), 1);
    CHECK_STR(refused.code, "ExpiredTokenException");
}

TEST(error_that_was_cut_or_is_none)
{
    static const char cut[] = "<Error><Code>SlowDown</Code><Message>Please red";
    static const char html[] = "<html><Code>x</Code></html>";
    PenS3Error e = {.code = "untouched"};
    CHECK_INT(pen__s3_error(html, sizeof html - 1, &e), 0);
    CHECK_INT(pen__s3_error("", 0, &e), 0);
    CHECK_INT(pen__s3_error("<Error/>", 8, &e), 0);
    CHECK_INT(pen__s3_error("<Error><Message>m</Message></Error>", 35, &e), 0);
    CHECK_STR(e.code, "untouched");
    CHECK_INT(pen__s3_error(cut, sizeof cut - 1, &e), 1);
    CHECK_STR(e.code, "SlowDown");
    CHECK_STR(e.message, "");
}

TEST(error_texts_are_cut_between_characters)
{
    char text[1024];
    PenS3Error e;
    for (int more = 0; more < 4; more++) {
        int n = snprintf(text, sizeof text, "<Error><Code>c</Code><Message>%.*s", more, "xxx");
        for (int i = 0; i < 100; i++)
            n += snprintf(text + n, sizeof text - (size_t)n, "漢");
        n += snprintf(text + n, sizeof text - (size_t)n, "</Message></Error>");
        CHECK_INT(pen__s3_error(text, (size_t)n, &e), 1);
        CHECK_INT(strlen(e.message) % 3, more % 3);
        CHECK(strlen(e.message) >= 253 && strlen(e.message) <= 255);
    }
}

TEST(upload_is_started)
{
    PenS3Started s;
    CHECK_INT(READ(started,
                   HEAD "<InitiateMultipartUploadResult" XMLNS "><Bucket>b</Bucket><Key>k</Key>"
                        "<UploadId>2~VXBs+/=</UploadId></InitiateMultipartUploadResult>",
                   &s),
              PEN_OK);
    CHECK_STR(s.upload_id, "2~VXBs+/=");
    pen__s3_started_free(&s);
    CHECK(s.upload_id == NULL);
    s.upload_id = (char *)"untouched";
    CHECK_INT(READ(started, "<InitiateMultipartUploadResult/>", &s), PEN_E_CORRUPT);
    CHECK_STR(err.message, "response: UploadId: expected a value, found none");
    CHECK_INT(READ(started,
                   "<InitiateMultipartUploadResult><UploadId/>"
                   "</InitiateMultipartUploadResult>",
                   &s),
              PEN_E_CORRUPT);
    CHECK_STR(err.message, "response: UploadId: expected some text");
    CHECK_INT(READ(started,
                   "<InitiateMultipartUploadResult><UploadId>1</UploadId>"
                   "<UploadId>2</UploadId></InitiateMultipartUploadResult>",
                   &s),
              PEN_E_CORRUPT);
    CHECK_STR(err.message, "response: UploadId: expected only one");
    CHECK_INT(READ(started, "<ListBucketResult/>", &s), PEN_E_CORRUPT);
    CHECK_STR(err.message,
              "response: expected InitiateMultipartUploadResult, found another element");
    CHECK_STR(s.upload_id, "untouched");
}

TEST(upload_is_completed_or_refused_with_status_200)
{
    PenS3Completed c = {.etag = ""};
    CHECK_INT(READ(completed,
                   HEAD
                   "\n  \n <CompleteMultipartUploadResult" XMLNS "><Location>http://x</Location>"
                   "<Bucket>b</Bucket><Key>k</Key><ETag>&quot;3858f62230ac3c915f300c664312c63f-9"
                   "&quot;</ETag></CompleteMultipartUploadResult>",
                   &c),
              PEN_OK);
    CHECK_STR(c.etag, "\"3858f62230ac3c915f300c664312c63f-9\"");
    CHECK_INT(READ(completed,
                   "<CompleteMultipartUploadResult><ETag>12-3</ETag>"
                   "</CompleteMultipartUploadResult>",
                   &c),
              PEN_OK);
    CHECK_STR(c.etag, "\"12-3\"");
    CHECK_INT(READ(completed,
                   "    " HEAD "<Error><Code>InternalError</Code><Message>We encountered "
                   "an internal error.</Message></Error>",
                   &c),
              1);
    CHECK_STR(refused.code, "InternalError");
    CHECK_STR(refused.message, "We encountered an internal error.");
    CHECK_STR(c.etag, "\"12-3\"");
    CHECK_INT(READ(completed, "", &c), PEN_E_CORRUPT);
}

TEST(uploads)
{
    PenS3Uploads u;
    CHECK_INT(
        READ(uploads,
             "<ListMultipartUploadsResult" XMLNS "><EncodingType>url</EncodingType>"
             "<NextKeyMarker>z%2B</NextKeyMarker>"
             "<NextUploadIdMarker>i%2B</NextUploadIdMarker><IsTruncated>true</IsTruncated>"
             "<Upload><Key>a+b%2Fc%C3%A4</Key><UploadId>1+</UploadId>"
             "<Initiator><ID>i</ID></Initiator><Initiated>2010-11-10T20:48:33.000Z</Initiated>"
             "</Upload><Upload><UploadId>2</UploadId><Key>k</Key></Upload>"
             "<CommonPrefixes><Prefix>p</Prefix></CommonPrefixes>"
             "</ListMultipartUploadsResult>",
             &u),
        PEN_OK);
    CHECK_INT(u.n, 2);
    CHECK_STR(u.items[0].key, "a b/cä");
    CHECK_STR(u.items[0].id, "1+");
    CHECK_INT(u.items[0].started_s, 1289422113);
    CHECK_STR(u.items[1].key, "k");
    CHECK_INT(u.items[1].started_s, 0);
    CHECK_STR(u.next_key, "z+");
    CHECK_STR(u.next_id, "i%2B");
    pen__s3_uploads_free(&u);
    CHECK_INT(READ(uploads,
                   "<ListMultipartUploadsResult><NextKeyMarker></NextKeyMarker>"
                   "<NextUploadIdMarker/><IsTruncated>false</IsTruncated>"
                   "</ListMultipartUploadsResult>",
                   &u),
              PEN_OK);
    CHECK(!u.next_key && !u.next_id && !u.items);
    pen__s3_uploads_free(&u);
    CHECK_INT(READ(uploads,
                   "<ListMultipartUploadsResult><EncodingType>url</EncodingType><Upload>"
                   "<UploadId>2</UploadId><Key>k%0</Key></Upload>"
                   "</ListMultipartUploadsResult>",
                   &u),
              PEN_E_CORRUPT);
    CHECK_INT(READ(uploads,
                   "<ListMultipartUploadsResult><EncodingType>url</EncodingType><Upload>"
                   "<UploadId>2</UploadId><Key>k%00</Key></Upload>"
                   "</ListMultipartUploadsResult>",
                   &u),
              PEN_E_CORRUPT);
}

TEST(objects)
{
    PenS3Objects o;
    CHECK_INT(
        READ(objects,
             "<ListBucketResult" XMLNS "><Name>b</Name><Prefix>p</Prefix><KeyCount>2</KeyCount>"
             "<NextContinuationToken>1/+==</NextContinuationToken>"
             "<IsTruncated>true</IsTruncated>"
             "<Contents><Key>a+b%2F</Key><LastModified>2009-10-12T17:50:30.000Z</LastModified>"
             "<ETag>&quot;fba9&quot;</ETag><Size>434234</Size>"
             "<StorageClass>STANDARD</StorageClass></Contents>"
             "<Contents><Key>c</Key><Size>18446744073709551615</Size></Contents>"
             "</ListBucketResult>",
             &o),
        PEN_OK);
    CHECK_INT(o.n, 2);
    CHECK_INT(o.more, 1);
    CHECK_STR(o.next_token, "1/+==");
    CHECK_STR(o.items[0].key, "a+b%2F");
    CHECK_STR(o.items[0].etag, "\"fba9\"");
    CHECK_INT(o.items[0].bytes, 434234);
    CHECK_INT(o.items[0].changed_s, 1255369830);
    CHECK_INT(o.items[1].bytes, UINT64_MAX);
    pen__s3_objects_free(&o);
}

TEST(prefixes)
{
    PenS3Prefixes p;
    CHECK_INT(READ(prefixes,
                   "<ListBucketResult" XMLNS "><Name>b</Name><Prefix>p/</Prefix>"
                   "<Delimiter>/</Delimiter><EncodingType>url</EncodingType>"
                   "<Contents><Key>p/a.jpg</Key><Size>1</Size></Contents>"
                   "<CommonPrefixes><Prefix>p/caf%C3%A9/</Prefix></CommonPrefixes>"
                   "<CommonPrefixes><Prefix>p/x/</Prefix></CommonPrefixes>"
                   "<NextContinuationToken>t</NextContinuationToken>"
                   "<IsTruncated>true</IsTruncated></ListBucketResult>",
                   &p),
              PEN_OK);
    CHECK_INT(p.n, 2);
    CHECK_STR(p.items[0].prefix, "p/caf\xc3\xa9/");
    CHECK_STR(p.items[1].prefix, "p/x/");
    CHECK_STR(p.next_token, "t");
    pen__s3_prefixes_free(&p);
    CHECK_INT(READ(prefixes, "<ListBucketResult><CommonPrefixes/></ListBucketResult>", &p),
              PEN_E_CORRUPT);
    CHECK_INT(
        READ(prefixes, "<ListBucketResult><IsTruncated>true</IsTruncated></ListBucketResult>", &p),
        PEN_E_CORRUPT);
}

static void check_objects_refused(const char *inside, const char *message)
{
    char text[1024];
    PenS3Objects o = {.n = 77};
    snprintf(text, sizeof text, "<ListBucketResult>%s</ListBucketResult>", inside);
    CHECK(READ(objects, text, &o) < 0);
    CHECK_STR(err.message, message);
    CHECK_INT(o.n, 77);
}

TEST(objects_that_cannot_be)
{
#define OBJECT(etag, size)                                                                         \
    "<Contents><Key>k</Key><ETag>" etag "</ETag><Size>" size "</Size></Contents>"
    check_objects_refused(OBJECT("a", "-1"), "response: Size: expected a number");
    check_objects_refused(OBJECT("a", ""), "response: Size: expected a number");
    check_objects_refused(OBJECT("a", "18446744073709551616"), "response: Size: expected a number");
    check_objects_refused(OBJECT("a&#10;", "1"),
                          "response: ETag: expected text without control characters");
    check_objects_refused("<Contents/>" OBJECT("a", "1"),
                          "response: Key: expected a value, found none");
    check_objects_refused(OBJECT("a", "1") "<Contents/>",
                          "response: Key: expected a value, found none");
    check_objects_refused("<Contents><Key>1</Key><Key>2</Key></Contents>",
                          "response: Key: expected only one");
    check_objects_refused("<IsTruncated>yes</IsTruncated>",
                          "response: IsTruncated: expected true or false");
    check_objects_refused(
        "<IsTruncated>true</IsTruncated>",
        "response: expected a continuation token in a truncated list, found none");
}

TEST(pages_have_at_most_1000)
{
    static char text[65536];
    PenS3Objects o;
    for (int n = 1000; n <= 1001; n++) {
        size_t used = (size_t)snprintf(text, sizeof text, "<ListBucketResult>");
        for (int i = 0; i < n; i++)
            used += (size_t)snprintf(text + used, sizeof text - used,
                                     "<Contents><Key>%d</Key><Size>1</Size></Contents>", i);
        snprintf(text + used, sizeof text - used, "</ListBucketResult>");
        CHECK_INT(READ(objects, text, &o), n == 1000 ? PEN_OK : PEN_E_LIMIT);
        if (n > 1000)
            break;
        CHECK_INT(o.n, 1000);
        CHECK_STR(o.items[999].key, "999");
        pen__s3_objects_free(&o);
    }
    CHECK_STR(err.message, "response: Contents: expected at most 1000, found more");
}

#define STS(name, inside)                                                                          \
    "<" name "Response xmlns=\"https://sts.amazonaws.com/doc/2011-06-15/\"><" name "Result>"       \
    "<AssumedRoleUser><Arn>arn</Arn></AssumedRoleUser><Credentials>" inside                        \
    "</Credentials></" name                                                                        \
    "Result><ResponseMetadata><RequestId>c</RequestId></ResponseMetadata></" name "Response>"
#define KEYS                                                                                       \
    "<AccessKeyId>ASIAEXAMPLE</AccessKeyId><SecretAccessKey>wJalr/+hush</SecretAccessKey>"         \
    "<SessionToken>AQoDYXdz+/==</SessionToken>"

TEST(keys_of_sts)
{
    static PenStsCredentials keys;
    static const char *const texts[] = {
        STS("AssumeRole", KEYS "<Expiration>2019-11-09T13:34:41Z</Expiration>"),
        STS("AssumeRoleWithWebIdentity", "<Expiration>2019-11-09T13:34:41Z</Expiration>" KEYS)};
    for (int i = 0; i < 2; i++) {
        CHECK_INT(pen__sts_read_credentials(texts[i], strlen(texts[i]), &keys, &refused, &err),
                  PEN_OK);
        CHECK_STR(keys.key_id, "ASIAEXAMPLE");
        CHECK_STR(keys.secret, "wJalr/+hush");
        CHECK_STR(keys.token, "AQoDYXdz+/==");
        CHECK_INT(keys.expires_s, 1573306481);
        pen__sts_credentials_wipe(&keys);
        CHECK_STR(keys.secret, "");
    }
    static const char *const bad[] = {
        STS("AssumeRole", KEYS), STS("AssumeRole", KEYS "<Expiration>soon</Expiration>"),
        STS("GetSessionToken", KEYS),
        STS("AssumeRole", "<Expiration>2019-11-09T13:34:41Z</Expiration>")};
    for (int i = 0; i < 4; i++) {
        CHECK_INT(pen__sts_read_credentials(bad[i], strlen(bad[i]), &keys, &refused, &err),
                  PEN_E_CORRUPT);
        CHECK(!strstr(err.message, "hush"));
        CHECK_STR(keys.secret, "");
    }
}

TEST(text_that_is_too_long_is_refused)
{
    static PenStsCredentials keys;
    static char text[1024], id[258];
    memset(id, 'A', sizeof id - 1);
    snprintf(text, sizeof text,
             "<AssumeRoleResponse><AssumeRoleResult><Credentials><AccessKeyId>%s</AccessKeyId>"
             "</Credentials></AssumeRoleResult></AssumeRoleResponse>",
             id);
    CHECK_INT(pen__sts_read_credentials(text, strlen(text), &keys, &refused, &err), PEN_E_LIMIT);
    CHECK_STR(err.message,
              "response: AssumeRoleResult/Credentials/AccessKeyId: expected at most 256 "
              "bytes, found 257");
}

/* What is given back, looked at before it is. */
static struct {
    void *at;
    size_t bytes;
} blocks[64];
static size_t n_blocks, n_released, n_secrets;

static void *note_alloc(size_t bytes)
{
    void *p = pen__sys_real.alloc(bytes);
    if (n_blocks < 64) {
        blocks[n_blocks].at = p;
        blocks[n_blocks++].bytes = bytes;
    }
    return p;
}

static void search_and_release(void *p)
{
    for (size_t i = 0; i < n_blocks; i++)
        if (blocks[i].at == p) {
            n_secrets += memmem(p, blocks[i].bytes, "wJalr/+hush", 11) != NULL;
            blocks[i].at = NULL;
            n_released++;
        }
    pen__sys_real.release(p);
}

TEST(memory_is_wiped_before_it_is_given_back)
{
    static PenStsCredentials keys;
    static const char text[] =
        STS("AssumeRole", KEYS "<Expiration>2019-11-09T13:34:41Z</Expiration>");
    PenSys sys = pen__sys_real;
    sys.alloc = note_alloc;
    sys.release = search_and_release;
    n_blocks = n_released = n_secrets = 0;
    pen__sys = &sys;
    int r = pen__sts_read_credentials(text, sizeof text - 1, &keys, &refused, &err);
    pen__sys = &pen__sys_real;
    CHECK_INT(r, PEN_OK);
    CHECK(n_released == n_blocks && n_blocks > 3 && n_blocks < 64);
    CHECK_INT(n_secrets, 0);
    pen__sts_credentials_wipe(&keys);
}

TEST(times)
{
    static const struct {
        const char *text;
        uint64_t unix_s;
    } good[] = {{"1970-01-01T00:00:00Z", 0},
                {"2026-10-03T21:40:59Z", 1791063659},
                {"2026-10-03T21:40:59", 1791063659},
                {"2026-10-03T21:40:59.999999999Z", 1791063659},
                {"2026-10-03T23:40:59+02:00", 1791063659},
                {"2026-10-03 16:10:59-0530", 1791063659},
                {"2000-02-29T00:00:00Z", 951782400},
                {"2100-03-01T00:00:00Z", 4107542400},
                {"9999-12-31T23:59:59Z", 253402300799}};
    static const char *const bad[] = {"",
                                      "2026-10-03",
                                      "2026-10-03T21:40Z",
                                      "2026-10-03T21:40:59X",
                                      "2026-10-03T21:40:59.Z",
                                      "2026-10-03T21:40:59Zx",
                                      "2026-02-29T00:00:00Z",
                                      "2100-02-29T00:00:00Z",
                                      "2026-04-31T00:00:00Z",
                                      "2026-13-01T00:00:00Z",
                                      "2026-00-01T00:00:00Z",
                                      "2026-01-00T00:00:00Z",
                                      "2026-01-01T24:00:00Z",
                                      "2026-01-01T00:60:00Z",
                                      "1969-12-31T23:59:59Z",
                                      "1970-01-01T00:00:00+00:01",
                                      "2026-01-01T00:00:00+24:00",
                                      "2026-01-01T00:00:00+1",
                                      "12026-01-01T00:00:00Z",
                                      "20261003T214059Z"};
    uint64_t s;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        CHECK_INT(pen__iso_date(good[i].text, &s), 1);
        CHECK_INT(s, good[i].unix_s);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        CHECK_INT(pen__iso_date(bad[i], &s), 0);
}

static int read_uploads_once(void)
{
    static const char text[] = "<ListMultipartUploadsResult><NextKeyMarker>a</NextKeyMarker>"
                               "<Upload><Key>k</Key><UploadId>1</UploadId></Upload>"
                               "<Upload><Key>l</Key><UploadId>2</UploadId></Upload>"
                               "</ListMultipartUploadsResult>";
    PenS3Uploads u;
    int r = READ(uploads, text, &u);
    if (r == PEN_OK)
        pen__s3_uploads_free(&u);
    return r;
}

TEST(memory_runs_out)
{
    CHECK(fault_sweep_memory(read_uploads_once) > 8);
}

int main(int argc, char **argv)
{
    TEST_START(argc, argv);
    RUN(text_comes_by_path);
    RUN(what_no_server_should_send_is_refused);
    RUN(limits);
    RUN(a_call_can_end_it);
    RUN(error_of_s3);
    RUN(error_of_sts);
    RUN(error_that_was_cut_or_is_none);
    RUN(error_texts_are_cut_between_characters);
    RUN(upload_is_started);
    RUN(upload_is_completed_or_refused_with_status_200);
    RUN(objects_that_cannot_be);
    RUN(uploads);
    RUN(objects);
    RUN(prefixes);
    RUN(pages_have_at_most_1000);
    RUN(keys_of_sts);
    RUN(text_that_is_too_long_is_refused);
    RUN(memory_is_wiped_before_it_is_given_back);
    RUN(times);
    RUN(memory_runs_out);
    return TEST_END();
}
